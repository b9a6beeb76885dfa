//! The largest budget of best-effort CPUs at which a protected program slows down by no more than it may (paper 004,
//! section VI-C).
//!
//! The original halves from 1 GB/s on. Here the first guess follows from one run beside unhindered hogs, and bisection
//! narrows it down; every trial is kept, so that the curve can be shown.

/// A budget that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Bytes a second for each CPU.
    pub budget: u64,
    /// The program's time, relative to alone.
    pub slowdown: f64,
}

/// A search, budget by budget: a pure state machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The most that the program may slow down, as 1.1 for 10 %.
    slowdown_max: f64,
    /// No smaller budget is tried.
    smallest: u64,
    trials: Vec<Trial>,
    next: Option<u64>,
    trials_max: usize,
}

/// Bounds that differ by less than this factor are close enough: noise is more.
const CLOSE: f64 = 1.15;

impl Search {
    /// Begins at `first`, and gives up below `smallest`; both in bytes a second.
    pub fn new(slowdown_max: f64, first: u64, smallest: u64, trials_max: usize) -> Search {
        Search { slowdown_max, smallest, trials: Vec::new(), next: Some(first.max(smallest)), trials_max }
    }

    /// The budget to try next; `None`: the search is over.
    pub fn next(&self) -> Option<u64> {
        self.next.filter(|_| self.trials.len() < self.trials_max)
    }

    /// The program took `slowdown` times as long at that budget.
    pub fn tried(&mut self, budget: u64, slowdown: f64) {
        self.trials.push(Trial { budget, slowdown });
        let (good, bad) = (self.threshold(), self.too_large());
        let double = |budget: u64| budget.checked_mul(2);
        self.next = match (good, bad) {
            (Some(good), Some(bad)) if (bad as f64) < good as f64 * CLOSE => None,
            // In the middle of their logarithms, as budgets differ by factors.
            (Some(good), Some(bad)) => Some((good as f64 * bad as f64).sqrt() as u64),
            (Some(good), None) => double(good),
            (None, Some(bad)) if bad <= self.smallest => None,
            (None, Some(bad)) => Some((bad / 2).max(self.smallest)),
            (None, None) => None,
        };
    }

    /// The largest budget at which the program slowed down by no more than it may, below all at which it did by more.
    pub fn threshold(&self) -> Option<u64> {
        let bad = self.too_large().unwrap_or(u64::MAX);
        let good = self.trials.iter().filter(|trial| self.is_good(trial) && trial.budget < bad);
        good.map(|trial| trial.budget).max()
    }

    /// What was tried, by budget.
    pub fn trials(&self) -> Vec<Trial> {
        let mut trials = self.trials.clone();
        trials.sort_by_key(|trial| trial.budget);
        trials
    }

    /// The smallest budget at which the program slowed down by more than it may.
    fn too_large(&self) -> Option<u64> {
        self.trials.iter().filter(|trial| !self.is_good(trial)).map(|trial| trial.budget).min()
    }

    fn is_good(&self, trial: &Trial) -> bool {
        trial.slowdown <= self.slowdown_max
    }
}

/// The budget of each of `hogs` equal hogs at which a slowdown of `slowdown_max` is expected, by a run beside them
/// unhindered that took `slowdown` times as long, at `traffic` bytes a second each. `period` and `latency` (from overflow
/// to standstill) are in seconds.
///
/// `Q = d (T x / ((1 + x) n loss(d)) - latency)` bytes a period, where `n loss(d)` is what the run lost (BWLOCK.md,
/// formula 10: bursts that do not coincide). `None`: the program slows down by no more even without a budget.
pub fn first_guess(slowdown_max: f64, slowdown: f64, traffic: f64, period: f64, latency: f64) -> Option<u64> {
    if slowdown <= slowdown_max {
        return None;
    }
    let (x, loss) = (slowdown_max - 1.0, 1.0 - 1.0 / slowdown);
    let of_period = traffic * (period * x / ((1.0 + x) * loss) - latency);
    Some((of_period / period).max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formula 8: slowdown by one throttled hog of 10 GB/s that trebles the program's time unhindered.
    fn slowdown(budget: u64) -> f64 {
        1.0 / (1.0 - (budget as f64 / 10e9).min(1.0) * (1.0 - 1.0 / 3.0))
    }

    fn search(first: u64) -> Search {
        let mut search = Search::new(1.1, first, 1_000_000, 30);
        while let Some(budget) = search.next() {
            search.tried(budget, slowdown(budget));
        }
        search
    }

    #[test]
    fn the_threshold_is_found_from_any_first_guess() {
        // 1 / (1 - b 2/3) = 1.1 at b = 3/22.
        let exact = 10e9 * 3.0 / 22.0;
        for first in [1, 5_000_000, 1_363_000_000, 1_000_000_000, 80_000_000_000] {
            let search = search(first);
            let found = search.threshold().expect("there is one") as f64;
            assert!(found <= exact && found > exact / 1.2, "{found} from {first}, not {exact}");
            assert!(search.trials().is_sorted_by_key(|trial| trial.budget));
        }
    }

    #[test]
    fn the_first_guess_is_exact_where_loss_is_proportional_to_time() {
        let guess = first_guess(1.1, 3.0, 10e9, 1e-3, 0.0).expect("it slows down");
        assert!((slowdown(guess) - 1.1).abs() < 1e-6);
        let later = first_guess(1.1, 3.0, 10e9, 1e-3, 10e-6).expect("it slows down");
        assert_eq!(guess - later, 100_000_000, "what a hog has in 10 us of each ms");
        assert_eq!(first_guess(1.1, 1.05, 10e9, 1e-3, 0.0), None, "no budget is needed");
        assert_eq!(first_guess(1.1, 3.0, 10e9, 1e-3, 1e-3), Some(0));
    }

    #[test]
    fn a_program_that_no_budget_protects_has_no_threshold() {
        let mut search = Search::new(1.1, 64_000_000, 16_000_000, 30);
        let mut tried = Vec::new();
        while let Some(budget) = search.next() {
            tried.push(budget);
            search.tried(budget, 2.0);
        }
        assert_eq!(tried, [64_000_000, 32_000_000, 16_000_000]);
        assert_eq!(search.threshold(), None);
    }

    /// One good run by luck, above a bad one, is no threshold.
    #[test]
    fn a_good_trial_above_a_bad_one_does_not_count() {
        let mut search = Search::new(1.1, 100, 1, 30);
        search.tried(100, 1.0);
        search.tried(50, 1.3);
        assert_eq!(search.threshold(), None);
        search.tried(25, 1.05);
        assert_eq!(search.threshold(), Some(25));
    }
}
