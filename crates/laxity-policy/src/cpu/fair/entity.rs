//! What the fair class counts of a thread.

use laxity_model::{Factor, Nanos};

/// The weight of a thread of nice value 0.
pub const NICE_0_WEIGHT: u64 = 1024;

/// A thread's account: how much it has executed, in nanoseconds and in virtual time.
///
/// Virtual time V grows by E * 1024 / W when a thread of weight W executes for E (paper 004, section IV-C). It is counted
/// from the clock of the CPU the thread is on, and so may be negative.
///
/// Threads are charged here and nowhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    weight: u64,
    virtual_time: i64,
    executed: Nanos,
    /// What it had executed when its present slice began.
    slice_from: Nanos,
}

impl Entity {
    /// A thread of `weight` that has not executed yet.
    ///
    /// Panics if it weighs nothing.
    pub fn new(weight: u64) -> Entity {
        assert!(weight > 0, "a thread without weight would never have a turn");
        Entity { weight, virtual_time: 0, executed: Nanos::ZERO, slice_from: Nanos::ZERO }
    }

    /// It executed for `executed`.
    pub fn charge(&mut self, executed: Nanos) {
        self.executed = Nanos(self.executed.0.saturating_add(executed.0));
        self.virtual_time = self.virtual_time.saturating_add(self.virtual_span(executed));
    }

    /// Its CPU was throttled for `lost` because of it, for which it is charged `punishment` times that (TFS; paper 004,
    /// equation 2): virtual time, whatever its weight.
    pub fn punish(&mut self, lost: Nanos, punishment: Factor) {
        let charge = i64::try_from(punishment.of(lost.0)).unwrap_or(i64::MAX);
        self.virtual_time = self.virtual_time.saturating_add(charge);
    }

    /// How much virtual time `span` is to a thread of its weight (`calc_delta_fair`).
    pub fn virtual_span(&self, span: Nanos) -> i64 {
        let scaled = u128::from(span.0) * u128::from(NICE_0_WEIGHT) / u128::from(self.weight);
        i64::try_from(scaled).unwrap_or(i64::MAX)
    }

    /// Its share is in proportion to this.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Its virtual time.
    pub fn virtual_time(&self) -> i64 {
        self.virtual_time
    }

    /// It goes from a CPU whose clock shows `from` to one whose clock shows `to`, and is as far ahead there as here.
    pub fn translate(&mut self, from: i64, to: i64) {
        self.virtual_time = self.virtual_time.saturating_sub(from).saturating_add(to);
    }

    /// It wakes: what it slept through gives it credit, but not beyond `earliest`.
    pub fn wake_no_earlier_than(&mut self, earliest: i64) {
        self.virtual_time = self.virtual_time.max(earliest);
    }

    /// It has a CPU from now on.
    pub fn begin_slice(&mut self) {
        self.slice_from = self.executed;
    }

    /// What it has executed of its present slice.
    pub fn in_slice(&self) -> Nanos {
        Nanos(self.executed.0 - self.slice_from.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_grows_more_slowly_for_a_heavier_thread() {
        let ms = Nanos::from_millis;
        let mut threads = [512, 1024, 2048].map(Entity::new);
        threads.iter_mut().for_each(|thread| thread.charge(ms(4)));
        assert_eq!(threads.map(|thread| thread.virtual_time()), [8_000_000, 4_000_000, 2_000_000]);
    }

    #[test]
    fn a_punishment_is_virtual_time_whatever_the_weight() {
        let mut threads = [512, 2048].map(Entity::new);
        threads.iter_mut().for_each(|thread| thread.punish(Nanos(10), Factor(1_500_000)));
        assert_eq!(threads.map(|thread| (thread.virtual_time(), thread.in_slice())), [(15, Nanos::ZERO); 2]);
    }

    #[test]
    fn a_slice_counts_from_where_it_began() {
        let mut thread = Entity::new(NICE_0_WEIGHT);
        thread.charge(Nanos(5));
        thread.begin_slice();
        thread.charge(Nanos(7));
        assert_eq!(thread.in_slice(), Nanos(7));
    }
}
