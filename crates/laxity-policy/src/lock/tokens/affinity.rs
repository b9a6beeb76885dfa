//! What a token hold is predicted to take, and on which GPU a task left its state.

use std::collections::VecDeque;

use laxity_model::{Instant, Nanos, TaskId};

/// Longer holds are no samples (GPUSync).
pub(in crate::lock) const SAMPLE_MAX: Nanos = Nanos::from_secs(2);
/// Samples that the mean and deviation are of.
pub(in crate::lock) const WINDOW: usize = 20;
/// From so many samples on those outside two deviations are dropped (GPUSync).
const SETTLED: usize = 10;

/// GPUSync's affinity predictor: for each task, and each of the migration distances 0 (the GPU that it held last) and 1
/// (another), the mean of its last holds. A task's first hold moves no state, so it counts as distance 0.
///
/// Until there are samples, a hold is predicted to be as long as the request says, and one at distance 1 longer than
/// one at distance 0 by what a migration costs.
#[derive(Clone, Debug)]
pub(in crate::lock) struct Affinity {
    migration: Nanos,
    /// By task, as far as they have held a token.
    pub(in crate::lock) tasks: Vec<History>,
}

#[derive(Clone, Debug, Default)]
pub(in crate::lock) struct History {
    /// Where its last hold was.
    pub(in crate::lock) last_gpu: Option<u16>,
    /// The hold that goes on.
    pub(in crate::lock) current: Option<Hold>,
    pub(in crate::lock) at_home: Window,
    pub(in crate::lock) away: Window,
}

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::lock) struct Hold {
    pub(in crate::lock) since: Instant,
    pub(in crate::lock) gpu: u16,
    pub(in crate::lock) estimate: Nanos,
}

impl Affinity {
    /// Nothing known; moving a task's state costs `migration`.
    pub fn new(migration: Nanos) -> Self {
        Affinity { migration, tasks: Vec::new() }
    }

    /// Forgets all holds.
    pub fn clear(&mut self) {
        self.tasks.clear();
    }

    /// The GPU that `task` held last.
    pub fn last_gpu(&self, task: TaskId) -> Option<u16> {
        self.history(task).and_then(|history| history.last_gpu)
    }

    /// How many tasks held `gpu` last.
    pub fn affine(&self, gpu: u16) -> usize {
        self.tasks.iter().filter(|history| history.last_gpu == Some(gpu)).count()
    }

    /// How long `task` will hold a token of `gpu`; `length` is what its request says.
    pub fn estimate(&self, task: TaskId, gpu: u16, length: Nanos) -> Nanos {
        let history = self.history(task);
        let at_home = history.and_then(|history| history.at_home.mean()).unwrap_or(length);
        let Some(history) = history.filter(|history| history.is_away(gpu)) else { return at_home };
        history.away.mean().unwrap_or(Nanos(at_home.0.saturating_add(self.migration.0)))
    }

    /// How much longer `task`, a holder, will hold its token.
    pub fn remaining(&self, now: Instant, task: TaskId) -> Nanos {
        let current = self.history(task).and_then(|history| history.current);
        current.map_or(Nanos::ZERO, |hold| hold.estimate.saturating_sub(now.saturating_since(hold.since)))
    }

    /// `task` holds a token of `gpu` from now on.
    pub fn start(&mut self, now: Instant, task: TaskId, gpu: u16, length: Nanos) {
        if self.tasks.len() <= task.index() {
            self.tasks.resize_with(task.index() + 1, History::default);
        }
        let estimate = self.estimate(task, gpu, length);
        self.tasks[task.index()].current = Some(Hold { since: now, gpu, estimate });
    }

    /// It does no longer.
    pub fn finish(&mut self, now: Instant, task: TaskId) {
        let history = self.tasks.get_mut(task.index());
        let Some((history, hold)) = history.and_then(|history| history.current.take().map(|hold| (history, hold)))
        else {
            return;
        };
        let window = if history.is_away(hold.gpu) { &mut history.away } else { &mut history.at_home };
        window.observe(now.saturating_since(hold.since));
        history.last_gpu = Some(hold.gpu);
    }

    /// `task` is another one from now on.
    pub fn forget(&mut self, task: TaskId) {
        if let Some(history) = self.tasks.get_mut(task.index()) {
            *history = History::default();
        }
    }

    fn history(&self, task: TaskId) -> Option<&History> {
        self.tasks.get(task.index())
    }
}

impl History {
    fn is_away(&self, gpu: u16) -> bool {
        self.last_gpu.is_some_and(|last| last != gpu)
    }
}

/// The last samples. No fraction is ever rounded but the mean's, down to a nanosecond: with n samples x, S their sum
/// and Q that of their squares, the variance is `Q / n - (S / n)^2`, so x is outside two deviations of the mean iff
/// `(n x - S)^2 > 4 (n Q - S^2)`. All of it is below `(20 * 2e9)^2 * 4 < 2^93`.
#[derive(Clone, Debug, Default)]
pub(in crate::lock) struct Window {
    pub(in crate::lock) samples: VecDeque<Nanos>,
}

impl Window {
    fn observe(&mut self, hold: Nanos) {
        if hold > SAMPLE_MAX || self.is_outlier(hold) {
            return;
        }
        if self.samples.len() == WINDOW {
            self.samples.pop_front();
        }
        self.samples.push_back(hold);
    }

    fn mean(&self) -> Option<Nanos> {
        let sum: u64 = self.samples.iter().map(|sample| sample.0).sum();
        sum.checked_div(self.samples.len() as u64).map(Nanos)
    }

    /// Equal samples say nothing about what is usual, so nothing is outside them.
    fn is_outlier(&self, hold: Nanos) -> bool {
        let count = self.samples.len() as u128;
        let sum: u128 = self.samples.iter().map(|sample| u128::from(sample.0)).sum();
        let squares: u128 = self.samples.iter().map(|sample| u128::from(sample.0).pow(2)).sum();
        let variance = count * squares - sum.pow(2);
        let distance = (count * u128::from(hold.0)).abs_diff(sum);
        self.samples.len() >= SETTLED && variance > 0 && distance.pow(2) > 4 * variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(samples: impl IntoIterator<Item = u64>) -> Window {
        let mut window = Window::default();
        samples.into_iter().for_each(|sample| window.observe(Nanos(sample)));
        window
    }

    #[test]
    fn holds_beyond_two_seconds_are_no_samples() {
        assert_eq!(window([2_000_000_001]).mean(), None);
        assert_eq!(window([2_000_000_000]).mean(), Some(Nanos(2_000_000_000)));
    }

    /// Five of 10 and five of 20: mean 15, deviation 5, so 5..=25 is usual.
    #[test]
    fn from_ten_samples_on_those_outside_two_deviations_are_dropped() {
        let ten = || (0..10).map(|sample| 10 + 10 * (sample % 2));
        for (sample, is_kept) in [(4, false), (5, true), (25, true), (26, false)] {
            let kept = window(ten().chain([sample]));
            assert_eq!(kept.samples.len() == 11, is_kept, "{sample}");
            let before_ten = window(ten().skip(1).chain([sample]));
            assert_eq!(before_ten.samples.len(), 10, "{sample}");
        }
    }

    #[test]
    fn nothing_is_outside_equal_samples() {
        assert_eq!(window([7; 20].into_iter().chain([8])).samples.back(), Some(&Nanos(8)));
    }

    /// None of a ramp is dropped: after n samples in steps of 1 the next is (n + 1) / 2 from their mean, and two deviations
    /// are `sqrt((n^2 - 1) / 3)`, more than that for n > 7.
    #[test]
    fn the_mean_is_of_the_last_twenty() {
        assert_eq!(window(1..=20).mean(), Some(Nanos(10)), "10.5 rounded down");
        assert_eq!(window(1..=40).mean(), Some(Nanos(30)), "of 21 to 40");
    }

    #[test]
    fn an_unknown_migration_costs_what_the_configuration_says() {
        let (task, length) = (TaskId(3), Nanos(100));
        let mut affinity = Affinity::new(Nanos(30));
        assert_eq!(affinity.estimate(task, 1, length), length, "no state to move");
        affinity.start(Instant(0), task, 0, length);
        assert_eq!(affinity.remaining(Instant(40), task), Nanos(60));
        affinity.finish(Instant(50), task);
        assert_eq!(affinity.estimate(task, 0, length), Nanos(50));
        assert_eq!(affinity.estimate(task, 1, length), Nanos(80));
        affinity.start(Instant(100), task, 1, length);
        affinity.finish(Instant(170), task);
        assert_eq!((affinity.last_gpu(task), affinity.affine(0), affinity.affine(1)), (Some(1), 0, 1));
        assert_eq!(affinity.estimate(task, 0, length), Nanos(70), "observed");
    }
}
