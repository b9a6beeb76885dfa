//! When what the CPUs are at ends.

use laxity_model::{CpuId, Instant};

/// When the current segment of each CPU ends: a dense array, scanned, without a branch for each CPU.
pub(crate) struct Ends {
    /// Whole groups; those beyond the CPUs never end.
    at: Vec<[Instant; GROUP]>,
}

/// So many minima are looked for side by side, as each step of one must wait for the step before.
const GROUP: usize = 4;

impl Ends {
    /// None of so many CPUs is at anything that ends.
    pub fn new(cpus: usize) -> Ends {
        Ends { at: vec![[Instant::NEVER; GROUP]; cpus.div_ceil(GROUP)] }
    }

    /// When the segment of `cpu` ends.
    #[inline]
    pub fn of(&self, cpu: CpuId) -> Instant {
        self.at[cpu.index() / GROUP][cpu.index() % GROUP]
    }

    /// The segment of `cpu` ends at `end`.
    #[inline]
    pub fn set(&mut self, cpu: CpuId, end: Instant) {
        self.at[cpu.index() / GROUP][cpu.index() % GROUP] = end;
    }

    /// When the next segment ends.
    #[inline]
    pub fn next(&self) -> Instant {
        let mut least = [Instant::NEVER.0; GROUP];
        for group in &self.at {
            for (least, end) in least.iter_mut().zip(group) {
                *least = end.0.min(*least);
            }
        }
        Instant(least[0].min(least[1]).min(least[2].min(least[3])))
    }

    /// Appends the CPUs whose segment ends at `now`, in ascending order.
    #[inline]
    pub fn all_at(&self, now: Instant, cpus: &mut Vec<CpuId>) {
        for (index, groups) in self.at.chunks(64 / GROUP).enumerate() {
            let mut ending = 0;
            for (place, group) in groups.iter().enumerate() {
                for (bit, &end) in group.iter().enumerate() {
                    ending |= u64::from(end == now) << (place * GROUP + bit);
                }
            }
            while ending != 0 {
                cpus.push(CpuId(index as u16 * 64 + ending.trailing_zeros() as u16));
                ending &= ending - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_end_is_the_earliest_and_all_cpus_that_end_then_are_found_in_order() {
        let mut ends = Ends::new(131);
        assert_eq!(ends.next(), Instant::NEVER);
        for cpu in [130, 0, 64, 7] {
            ends.set(CpuId(cpu), Instant(20));
        }
        ends.set(CpuId(63), Instant(30));
        let mut cpus = Vec::new();
        ends.all_at(ends.next(), &mut cpus);
        assert_eq!((ends.next(), cpus), (Instant(20), [0, 7, 64, 130].map(CpuId).to_vec()));
        assert_eq!(ends.of(CpuId(63)), Instant(30));
    }
}
