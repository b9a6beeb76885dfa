//! Response times. Spuri, INRIA RR-2772, 1996; George, Rivierre & Spuri, INRIA RR-2966, 1996.

use super::{Load, due, spend};
use crate::{AnalysisTask, Limits, Outcome};

/// So many evaluations of a task's part are done for each of [`Limits::steps`]: the bounds of a set are worth more than one
/// fixed point.
const WORK: u64 = 100;

/// Bounds on response times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Responses {
    /// Of each task, counted from the arrival, in ticks.
    pub times: Vec<u64>,
    /// Whether all candidates were looked at; else some of the times are that by which a busy period is over.
    pub is_complete: bool,
}

/// The longest response times under EDF on one CPU, whether deadlines are met or not.
///
/// Let a job of task i arrive at `a`, counted from the instant `t0` before which none was pending that is due no later, and be due at
/// `d = a + D_i`. It is complete by the least `L > 0` with
///
/// ```text
/// L = B(d) + H(L) + sum over j of min( ceil((L + J_j) / T_j), floor((d + J_j - D_j) / T_j) + 1 ) * C_j
/// ```
///
/// where of task i itself all jobs count that are due by `d`. So its response time is at most the largest `L - a` over all
/// `a >= -J_i` within the longest busy period. `L` grows only where another job is due by `d`, so these `d` are all that need
/// to be looked at. Without blocking and handlers some arrivals attain it.
///
/// # Errors
/// There is no bound on busy periods, or it is not found within the limits.
pub fn response_times(load: Load<'_>, limits: &Limits) -> Result<Responses, Outcome> {
    let tasks = load.set.tasks();
    let firsts = load.firsts().map_err(|_| Outcome::NotApplicable(crate::Precondition::ConstrainedDeadlines))?;
    let mut steps = limits.steps.saturating_mul(WORK);
    let busy = load.busy_period(tasks.iter().any(|task| task.ends_waiting), &mut steps, limits)?;
    let jitter: Vec<u64> = load.tasks().map(|(_, jitter)| jitter).collect();
    let mut analysis = Analysis { load, tasks, firsts, jitter, busy, ends: Vec::new(), steps, limits };
    let has_ends = analysis.find_ends();
    let mut is_complete = true;
    let bound = |task: usize| {
        let found = if has_ends { analysis.response(task) } else { None };
        is_complete &= found.is_some();
        found.unwrap_or_else(|| busy.saturating_add(analysis.jitter[task]))
    };
    let times = (0..tasks.len()).map(bound).collect();
    Ok(Responses { times, is_complete })
}

struct Analysis<'a> {
    load: Load<'a>,
    tasks: &'a [AnalysisTask],
    firsts: Vec<u64>,
    jitter: Vec<u64>,
    /// The longest busy period.
    busy: u64,
    /// When jobs may be due, ascending, and the time of all that are due by then.
    ends: Vec<(u64, u128)>,
    steps: u64,
    limits: &'a Limits,
}

/// What is known of the least `L` for an earlier `d`.
#[derive(Clone, Copy, Default)]
struct Known {
    end: u64,
    blocking: u64,
    length: u64,
}

impl Analysis<'_> {
    /// Lists when jobs may be due; answers whether these are few enough.
    fn find_ends(&mut self) -> bool {
        let longest = self.tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
        let last = self.busy.saturating_add(longest);
        let counts = self.tasks.iter().zip(&self.firsts).map(|(task, &first)| due(first, task.period, last));
        if counts.fold(0, u64::saturating_add) > self.limits.points {
            return false;
        }
        for (task, &first) in self.tasks.iter().zip(&self.firsts) {
            let jobs = (0..due(first, task.period, last)).map(|job| first + job * task.period);
            self.ends.extend(jobs.map(|end| (end, u128::from(task.wcet))));
        }
        self.ends.sort_unstable();
        let mut sum = 0;
        for (_, time) in &mut self.ends {
            sum += *time;
            *time = sum;
        }
        // Of several at one instant the last has the sum of all.
        self.ends.reverse();
        self.ends.dedup_by_key(|(end, _)| *end);
        self.ends.reverse();
        true
    }

    /// The longest of `task`; `None` if the steps do not suffice.
    fn response(&mut self, task: usize) -> Option<u64> {
        let (parameters, deadline) = (self.tasks[task], self.tasks[task].deadline);
        let begin = self.ends.partition_point(|&(end, _)| end < self.firsts[task]);
        let until = self.busy.saturating_add(deadline);
        let until = self.ends.partition_point(|&(end, _)| end < until);
        // The most promising first, so that most of the others need no more than a look.
        let hope = |&at: &usize| {
            let (end, jobs) = self.ends[at];
            let most = (jobs + u128::from(self.load.blocking.at(end))).min(u128::from(self.busy));
            (most + u128::from(deadline)).saturating_sub(u128::from(end))
        };
        let first = (begin..until).max_by_key(hope);
        spend(&mut self.steps, (until - begin) as u64, self.limits).ok()?;
        let (mut best, mut known) = (0, Known::default());
        for at in first.into_iter().chain(begin..until) {
            spend(&mut self.steps, 1 + self.load.streams.len() as u64, self.limits).ok()?;
            let (end, jobs) = self.ends[at];
            if end.saturating_add(best) >= self.busy.saturating_add(deadline) {
                // Even at the end of the busy period it is complete sooner.
                break;
            }
            let blocking = self.load.blocking.at(end);
            // By then it has to be incomplete to be worth a look.
            if let Some(sooner) = (end + best).checked_sub(deadline).filter(|&sooner| sooner > 0) {
                let all = jobs + u128::from(blocking) + self.load.handlers(parameters.arrivals_within(sooner));
                if all <= u128::from(sooner) {
                    continue;
                }
            }
            let start = if known.end <= end && known.blocking <= blocking { known.length } else { 0 };
            let length = self.length(task, end, blocking, start)?;
            known = Known { end, blocking, length };
            best = best.max((length + deadline).saturating_sub(end));
        }
        Some(best)
    }

    /// The least `L` that is at least `start`, which must not exceed it.
    fn length(&mut self, task: usize, end: u64, blocking: u64, start: u64) -> Option<u64> {
        let jobs = self.tasks.iter().zip(&self.firsts);
        let most: Vec<u64> = jobs.map(|(task, &first)| due(first, task.period, end)).collect();
        let parts = (self.tasks.len() + self.load.streams.len()) as u64;
        let mut length = start.max(1);
        loop {
            spend(&mut self.steps, parts, self.limits).ok()?;
            let window = self.tasks[task].arrivals_within(length);
            let mut sum = u128::from(blocking) + self.load.handlers(window);
            for (other, parameters) in self.tasks.iter().enumerate().filter(|&(other, _)| most[other] > 0) {
                let released = if other == task {
                    most[other]
                } else {
                    most[other].min((window + self.jitter[other]).div_ceil(parameters.period))
                };
                sum += u128::from(released) * u128::from(parameters.wcet);
            }
            // No more than the longest busy period, which is within reach.
            let next = u64::try_from(sum).ok()?;
            if next <= length {
                return Some(length);
            }
            length = next;
        }
    }
}
