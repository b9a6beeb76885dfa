//! What one thread holds of the bandwidth lock: by hand, as often as it has taken it, and for every stream with GPU
//! operations that it has not waited for.

/// What happens to a thread's hold on the lock. Budgets are in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It takes the lock by hand. Holds nest.
    Lock {
        /// What best-effort tasks may use of each CPU's bandwidth.
        budget: u64,
    },
    /// It ends the hold that it took last by hand.
    Unlock,
    /// It ends the hold of this budget that it took last by hand, which need not be its last.
    End {
        /// The budget.
        budget: u64,
    },
    /// It hands an operation to a stream, which is active from then on.
    Issue {
        /// The stream.
        stream: u64,
        /// As for [`Hold::Lock`].
        budget: u64,
    },
    /// It has waited for all operations of a stream.
    Synchronized {
        /// The stream.
        stream: u64,
    },
    /// It has waited for all operations of all streams.
    AllSynchronized,
    /// It has ended, or died: it holds nothing any longer.
    Ended,
}

/// The thread does not hold the lock by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bandwidth lock is not held by hand (0 holds to end); lock it before it is unlocked")]
pub struct NotHeld;

/// A thread's hold on the lock (paper 004, section IV-B and Table I).
///
/// The lock is held while a hold by hand is left or a stream is active, whether the thread executes or waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The budgets of the holds taken by hand, the innermost last.
    by_hand: Vec<u64>,
    /// The active streams with the least budget that was asked for each, by stream.
    streams: Vec<(u64, u64)>,
}

impl Holder {
    /// Takes note of what happens.
    ///
    /// # Errors
    /// A hold that ends was never taken; nothing changes.
    pub fn handle(&mut self, hold: Hold) -> Result<(), NotHeld> {
        match hold {
            Hold::Lock { budget } => self.by_hand.push(budget),
            Hold::Unlock => {
                self.by_hand.pop().ok_or(NotHeld)?;
            }
            Hold::End { budget } => {
                let found = self.by_hand.iter().rposition(|&held| held == budget);
                self.by_hand.remove(found.ok_or(NotHeld)?);
            }
            Hold::Issue { stream, budget } => match self.streams.binary_search_by_key(&stream, |&(stream, _)| stream) {
                Ok(at) => self.streams[at].1 = self.streams[at].1.min(budget),
                Err(at) => self.streams.insert(at, (stream, budget)),
            },
            Hold::Synchronized { stream } => self.streams.retain(|&(active, _)| active != stream),
            Hold::AllSynchronized => self.streams.clear(),
            Hold::Ended => {
                self.by_hand.clear();
                self.streams.clear();
            }
        }
        Ok(())
    }

    /// What best-effort tasks may use of each CPU's bandwidth, in bytes a second: the least budget of all holds. `None`: the
    /// thread does not hold the lock.
    pub fn budget(&self) -> Option<u64> {
        let of_streams = self.streams.iter().map(|&(_, budget)| budget);
        self.by_hand.iter().copied().chain(of_streams).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_that_end_out_of_order_end_with_their_own_budgets() {
        let mut holder = Holder::default();
        holder.handle(Hold::Lock { budget: 100 }).expect("it is taken");
        holder.handle(Hold::Lock { budget: 50 }).expect("holds nest");
        holder.handle(Hold::End { budget: 100 }).expect("it was taken");
        assert_eq!(holder.budget(), Some(50));
        assert_eq!(holder.handle(Hold::End { budget: 100 }), Err(NotHeld), "it ended before");
        holder.handle(Hold::End { budget: 50 }).expect("it was taken");
        assert_eq!(holder.budget(), None);
    }
}
