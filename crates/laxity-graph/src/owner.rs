//! Whose a node is, in one word.
//!
//! ```text
//!          claim              release
//! (free) ---------> (claimed) ---------> (free)
//!                       |  release with a job begun, or the process dies
//!                       v
//!                    (lost) ---------> (claimed)
//!                             claim
//! ```

/// Whose a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub state: State,
    /// The member that claimed it last: its place, and how often that place had been taken.
    pub member: u8,
    pub generation: u32,
    /// How often the node was claimed, modulo 2^16: tells one loss from the next.
    pub claims: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    Claimed,
    Lost,
}

impl Owner {
    /// What `word` says. Words come from memory that others can write to, so that each must mean something.
    pub fn of(word: u64) -> Self {
        let state = match word & 3 {
            0 => State::Free,
            1 => State::Claimed,
            _ => State::Lost,
        };
        // Seven bits: no word leads beyond the members.
        let member = (word >> 8) as u8 & 0x7f;
        Owner { state, member, claims: (word >> 16) as u16, generation: (word >> 32) as u32 }
    }

    pub fn word(self) -> u64 {
        let state = match self.state {
            State::Free => 0,
            State::Claimed => 1,
            State::Lost => 2,
        };
        state | u64::from(self.member) << 8 | u64::from(self.claims) << 16 | u64::from(self.generation) << 32
    }

    /// The same claim in another state.
    pub fn now(self, state: State) -> Self {
        Owner { state, ..self }
    }
}

#[cfg(test)]
mod tests {
    use laxity_membership::MEMBERS_MAX;

    use super::*;

    #[test]
    fn a_word_says_what_was_written_and_a_fresh_one_that_the_node_is_free() {
        for state in [State::Free, State::Claimed, State::Lost] {
            let owner = Owner { state, member: 126, generation: u32::MAX - 1, claims: 0x1234 };
            assert_eq!(Owner::of(owner.word()), owner);
        }
        assert_eq!(Owner::of(0).state, State::Free);
        assert!(usize::from(Owner::of(u64::MAX).member) <= MEMBERS_MAX);
    }
}
