//! The throttle fair scheduler: paper 004, section V, equations 1 to 3, in exact fractions.

use num_traits::Zero;

use crate::Rational;
use crate::exact::whole;

/// Equation 1: virtual time of a task that executed for `executed` with `weight`. Panics if `weight` is 0.
pub fn virtual_time(executed: &Rational, weight: u32) -> Rational {
    executed / whole(weight)
}

/// Equation 3: the most virtual time a task can lose over the regulation periods 0 to `periods`, each of length
/// `period`: `rho * T * (J + 1)`.
pub fn lost_virtual_time_max(punishment: &Rational, period: &Rational, periods: u64) -> Rational {
    punishment * period * (whole(periods) + whole(1))
}

/// The long-run share of regulated periods that a memory task with budget fraction `budget` gets beside one CPU task
/// of equal weight: `1 / (1 + budget + rho * (1 - budget))`. With rho = 0 this is the unfairness TFS removes.
pub fn memory_task_share(budget: &Rational, punishment: &Rational) -> Rational {
    let one = whole(1);
    &one / (&one + budget + punishment * (&one - budget))
}

/// A best-effort task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TfsTask {
    /// Execution it needs in all.
    pub work: Rational,
    /// Its weight.
    pub weight: u32,
    /// How much of a regulated period it may execute before it is throttled; `None` if never.
    pub budget: Option<Rational>,
}

/// What the core does in a slice of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SliceKind {
    /// The task executes.
    Run,
    /// The task was picked and is throttled: the core idles to the end of the period.
    Throttled,
}

/// A slice of the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Start.
    pub start: Rational,
    /// End.
    pub end: Rational,
    /// Index of the task.
    pub task: usize,
    /// What it does.
    pub kind: SliceKind,
}

/// A complete schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TfsSchedule {
    /// The slices, in order of time.
    pub slices: Vec<Slice>,
    /// Virtual time of each task after each slice at whose end a period ends or a task completes, with that instant.
    pub virtual_times: Vec<(Rational, Vec<Rational>)>,
    /// When each task completes.
    pub finish: Vec<Rational>,
    /// Virtual time each task lost to punishment.
    pub lost: Vec<Rational>,
}

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TfsError {
    /// The period is not positive, or a weight is zero.
    #[error("the regulation period and every weight must be positive")]
    Parameter,
    /// More than this many slices.
    #[error("the schedule has more than {limit} slices; raise the limit")]
    Slices {
        /// The limit.
        limit: usize,
    },
}

impl TfsSchedule {
    /// Total time throttled.
    pub fn throttled(&self) -> Rational {
        let throttled = self.slices.iter().filter(|slice| slice.kind == SliceKind::Throttled);
        throttled.map(|slice| &slice.end - &slice.start).sum()
    }
}

/// The schedule of one core: at each period boundary and completion it picks the unfinished task of least virtual
/// time, ties to the first listed. In periods that start before `regulated_until`, a task that exhausts its budget is
/// throttled to the end of the period, and then its virtual time grows by the time lost times `punishment` (equation
/// 2; not divided by the weight).
///
/// # Errors
/// [`TfsError`] for a period or weight of 0, or more than `slices_max` slices.
pub fn schedule(
    tasks: &[TfsTask],
    punishment: &Rational,
    period: &Rational,
    regulated_until: &Rational,
    slices_max: usize,
) -> Result<TfsSchedule, TfsError> {
    if *period <= whole(0) || tasks.iter().any(|task| task.weight == 0) {
        return Err(TfsError::Parameter);
    }
    let mut core = Core::new(tasks);
    while let Some(task) = core.pick() {
        if core.result.slices.len() >= slices_max {
            return Err(TfsError::Slices { limit: slices_max });
        }
        let boundary = ((&core.now / period).floor() + whole(1)) * period;
        let regulated = &boundary - period < *regulated_until;
        let budget = tasks[task].budget.as_ref().filter(|_| regulated);
        core.run(task, &boundary, budget);
        if core.throttled(task, &boundary, budget) {
            core.throttle(task, &boundary, punishment);
        }
        core.close(&boundary);
    }
    Ok(core.result)
}

struct Core<'a> {
    tasks: &'a [TfsTask],
    now: Rational,
    left: Vec<Rational>,
    virtual_times: Vec<Rational>,
    /// Execution in the current period.
    used: Vec<Rational>,
    result: TfsSchedule,
}

impl<'a> Core<'a> {
    fn new(tasks: &'a [TfsTask]) -> Self {
        let zeros = vec![Rational::zero(); tasks.len()];
        Core {
            tasks,
            now: whole(0),
            left: tasks.iter().map(|task| task.work.clone()).collect(),
            virtual_times: zeros.clone(),
            used: zeros.clone(),
            result: TfsSchedule { slices: Vec::new(), virtual_times: Vec::new(), finish: zeros.clone(), lost: zeros },
        }
    }

    fn pick(&self) -> Option<usize> {
        let unfinished = (0..self.tasks.len()).filter(|&task| self.left[task] > whole(0));
        unfinished.reduce(|best, task| if self.virtual_times[task] < self.virtual_times[best] { task } else { best })
    }

    fn run(&mut self, task: usize, boundary: &Rational, budget: Option<&Rational>) {
        let mut length = (boundary - &self.now).min(self.left[task].clone());
        if let Some(budget) = budget {
            length = length.min((budget - &self.used[task]).max(whole(0)));
        }
        self.left[task] -= &length;
        self.used[task] += &length;
        self.virtual_times[task] += virtual_time(&length, self.tasks[task].weight);
        self.slice(task, length, SliceKind::Run);
        if self.left[task].is_zero() {
            self.result.finish[task] = self.now.clone();
        }
    }

    fn throttled(&self, task: usize, boundary: &Rational, budget: Option<&Rational>) -> bool {
        self.now < *boundary && self.left[task] > whole(0) && budget.is_some_and(|budget| self.used[task] >= *budget)
    }

    fn throttle(&mut self, task: usize, boundary: &Rational, punishment: &Rational) {
        let lost = boundary - &self.now;
        let punished = &lost * punishment;
        self.virtual_times[task] += &punished;
        self.result.lost[task] += punished;
        self.slice(task, lost, SliceKind::Throttled);
    }

    fn slice(&mut self, task: usize, length: Rational, kind: SliceKind) {
        if length.is_zero() {
            return;
        }
        let start = self.now.clone();
        self.now += length;
        self.result.slices.push(Slice { start, end: self.now.clone(), task, kind });
    }

    fn close(&mut self, boundary: &Rational) {
        if self.now == *boundary {
            self.used.fill(Rational::zero());
        }
        self.result.virtual_times.push((self.now.clone(), self.virtual_times.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rational;

    #[test]
    fn the_memory_task_gets_three_quarters_without_punishment_and_less_with_it() {
        let share = |rho: u32| memory_task_share(&rational(1, 3), &whole(rho));
        assert_eq!(share(0), rational(3, 4));
        assert_eq!(share(1), rational(1, 2));
        assert_eq!(share(3), rational(3, 10));
    }

    #[test]
    fn no_task_loses_more_virtual_time_than_the_bound() {
        assert_eq!(lost_virtual_time_max(&whole(3), &whole(1), 3), whole(12));
    }
}
