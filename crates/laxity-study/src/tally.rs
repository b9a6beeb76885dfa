//! What a study counts: integers only, so that partial results add up to the same whatever the split.

use std::collections::BTreeMap;

use laxity_gen::Utilization;

/// Counts at one place of one curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Task sets looked at.
    pub sets: u64,
    /// Task sets shown schedulable.
    pub accepted: u64,
    /// Of the others, those for which a test gave up before it had an answer.
    pub undecided: u64,
    /// Utilization of all task sets, in millionths of a CPU, rounded down for each set.
    pub weight: u64,
    /// Utilization of those shown schedulable. Its sum over a curve by that of `weight` is the weighted schedulability.
    pub weight_accepted: u64,
}

/// What an evaluation found for one task set under one curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Shown schedulable.
    Accepted,
    /// Not shown schedulable.
    Rejected,
    /// A test gave up at its limit of work.
    Undecided,
}

/// Counts of a part of a study, by scenario, curve and place on the x-axis.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    tallies: BTreeMap<(u32, u32, u64), Tally>,
}

/// One line of a result table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index into [`Study::scenarios`](crate::Study::scenarios).
    pub scenario: u32,
    /// Index into [`Study::curves`](crate::Study::curves).
    pub curve: u32,
    /// Place on the x-axis, in thousandths of a CPU.
    pub x: u64,
    /// What was counted there.
    pub tally: Tally,
}

impl Answer {
    /// What this answer and another test's come to together.
    pub fn or(self, other: Answer) -> Answer {
        match (self, other) {
            (Answer::Accepted, _) | (_, Answer::Accepted) => Answer::Accepted,
            (Answer::Undecided, _) | (_, Answer::Undecided) => Answer::Undecided,
            (Answer::Rejected, Answer::Rejected) => Answer::Rejected,
        }
    }
}

impl Counts {
    /// Counts one task set of the given utilization.
    pub fn add(&mut self, scenario: u32, curve: u32, x: u64, utilization: Utilization, answer: Answer) {
        let weight = millionths(utilization);
        let tally = self.tallies.entry((scenario, curve, x)).or_default();
        tally.sets += 1;
        tally.weight += weight;
        match answer {
            Answer::Accepted => {
                tally.accepted += 1;
                tally.weight_accepted += weight;
            }
            Answer::Undecided => tally.undecided += 1,
            Answer::Rejected => {}
        }
    }

    /// Adds the counts of another part of the same study.
    pub fn merge(&mut self, other: &Counts) {
        for (place, theirs) in &other.tallies {
            let ours = self.tallies.entry(*place).or_default();
            ours.sets += theirs.sets;
            ours.accepted += theirs.accepted;
            ours.undecided += theirs.undecided;
            ours.weight += theirs.weight;
            ours.weight_accepted += theirs.weight_accepted;
        }
    }

    /// All lines, ordered by scenario, curve and place.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.tallies.iter().map(|(&(scenario, curve, x), &tally)| Row { scenario, curve, x, tally })
    }
}

/// Cannot overflow: a utilization is below 2^11 CPUs in 64 bits.
fn millionths(utilization: Utilization) -> u64 {
    ((u128::from(utilization.units()) * 1_000_000) >> Utilization::BITS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_parts_add_up_to_the_counts_of_the_whole() {
        let one = Utilization::ONE;
        let (mut whole, mut left, mut right) = (Counts::default(), Counts::default(), Counts::default());
        for (index, answer) in [Answer::Accepted, Answer::Rejected, Answer::Undecided].into_iter().enumerate() {
            let part = if index == 0 { &mut left } else { &mut right };
            for counts in [&mut whole, part] {
                counts.add(3, 1, 500, one, answer);
            }
        }
        left.merge(&right);
        assert_eq!(left, whole);
        let expected = Tally { sets: 3, accepted: 1, undecided: 1, weight: 3_000_000, weight_accepted: 1_000_000 };
        assert_eq!(whole.rows().collect::<Vec<_>>(), [Row { scenario: 3, curve: 1, x: 500, tally: expected }]);
    }
}
