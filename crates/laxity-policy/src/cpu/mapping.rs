//! The processor mapping: which job is linked to which CPU, and which CPU would be the first to give way.
//!
//! A tournament of CPUs (paper 002, section 3, "Processor mapping", has a heap): the most common question is whether a
//! preemption is required, and it needs the lowest-priority linked job. A change replays the matches of one CPU: as many
//! steps as a heap takes at worst, but no branch that depends on priorities.

use std::hint::select_unpredictable;

use super::Priority;

/// CPUs ordered by the job linked to them.
#[derive(Clone, Debug)]
pub struct ProcessorMapping {
    linked: Vec<Option<Priority>>,
    /// The larger key gives way first. One more than there are CPUs, for seeds without one: it loses to all.
    keys: Vec<u128>,
    /// The winner of each match; match 1 is the final, and winners of matches 2i and 2i + 1 meet in match i. The second
    /// half are the seeds.
    winners: Vec<u16>,
}

impl ProcessorMapping {
    /// `cpus` CPUs, all idle. Panics if there are none.
    pub fn idle(cpus: usize) -> Self {
        assert!(cpus > 0, "a cluster has at least one CPU");
        let seeds = cpus.next_power_of_two();
        let mut keys: Vec<u128> = (0..cpus).map(|cpu| key(cpu, None)).collect();
        keys.push(0);
        let mut winners = vec![0; seeds];
        winners.extend((0..seeds).map(|seed| seed.min(cpus) as u16));
        let mut mapping = ProcessorMapping { linked: vec![None; cpus], keys, winners };
        (1..seeds).rev().for_each(|at| mapping.play(at));
        mapping
    }

    /// Number of CPUs.
    pub fn cpus(&self) -> usize {
        self.linked.len()
    }

    /// What is linked to `cpu`.
    pub fn linked(&self, cpu: usize) -> Option<Priority> {
        self.linked[cpu]
    }

    /// The CPU that gives way first (an idle one if there is any, then the one with the least urgent job; among idle
    /// CPUs the smallest number), and what is linked to it.
    pub fn lowest(&self) -> (usize, Option<Priority>) {
        let cpu = usize::from(self.winners[1]);
        (cpu, self.linked[cpu])
    }

    /// Links `job` to `cpu` and returns what was linked there.
    pub fn set(&mut self, cpu: usize, job: Option<Priority>) -> Option<Priority> {
        let before = std::mem::replace(&mut self.linked[cpu], job);
        // The winner so far climbs with its key: a match loads only the winner of the one beside it.
        let (mut at, mut winner, mut key) = (self.winners.len() / 2 + cpu, cpu as u16, key(cpu, job));
        self.keys[cpu] = key;
        while at > 1 {
            let rival = self.winners[at ^ 1];
            let rivals = self.keys[usize::from(rival)];
            let is_second = at % 2 == 1;
            let rival_wins = (key < rivals) | (is_second & (key == rivals));
            winner = select_unpredictable(rival_wins, rival, winner);
            key = select_unpredictable(rival_wins, rivals, key);
            at /= 2;
            self.winners[at] = winner;
        }
        before
    }

    /// Decides match `at`.
    #[inline]
    fn play(&mut self, at: usize) {
        let key = |contender: usize| self.keys[usize::from(self.winners[contender])];
        let second_wins = key(2 * at) < key(2 * at + 1);
        self.winners[at] = self.winners[2 * at + usize::from(second_wins)];
    }

    /// Panics if a CPU won that had the smaller key.
    pub(super) fn assert_invariants(&self) {
        for at in 1..self.winners.len() / 2 {
            let [winner, first, second] = [at, 2 * at, 2 * at + 1].map(|at| self.keys[usize::from(self.winners[at])]);
            assert_eq!(winner, first.max(second), "the larger key wins");
        }
    }
}

/// Below the key of every idle CPU, which a CPU number has 16 bits for.
const LEAST_URGENT: u128 = u128::MAX - (1 << 16);

/// Idle CPUs above all jobs, the smallest number first; then the least urgent job first.
fn key(cpu: usize, job: Option<Priority>) -> u128 {
    match job {
        None => u128::MAX - cpu as u128,
        Some(Priority { major, tie, task }) => {
            // Only a deadline at the end of time has to be told from an idle CPU.
            let key = u128::from(major) << 64 | u128::from(tie) << 32 | u128::from(task.0);
            key.min(LEAST_URGENT)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::TaskId;

    #[test]
    fn the_idle_cpu_of_smallest_number_gives_way_first_and_then_the_least_urgent_job() {
        let job = |major, task| Some(Priority::of(major, TaskId(task)));
        let mut mapping = ProcessorMapping::idle(3);
        assert_eq!(mapping.lowest(), (0, None));
        mapping.set(0, job(10, 0));
        assert_eq!(mapping.lowest(), (1, None));
        mapping.set(1, job(30, 1));
        mapping.set(2, job(30, 2));
        assert_eq!(mapping.lowest(), (2, job(30, 2)), "a tie goes to the task listed first, so the other gives way");
        assert_eq!(mapping.set(2, job(5, 3)), job(30, 2));
        assert_eq!(mapping.lowest(), (1, job(30, 1)));
        mapping.set(0, None);
        assert_eq!(mapping.lowest(), (0, None));
        mapping.assert_invariants();
    }
}
