//! Response times. Spuri, INRIA RR-2772, 1996; George, Rivierre & Spuri, INRIA RR-2966, 1996.

use std::cmp::Reverse;
use std::ops::Range;

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
/// So its response time is at most the largest `L - a` over all `a >= -J_i` within the longest busy period. `L` grows only where some job
/// is due by `d`, so these `d` are all that need to be looked at. Without blocking and handlers some arrivals attain it.
///
/// `L` is the same for all tasks, and so the response time of task i is `D_i` and the largest `L - d` over all `d >= D_i - J_i`: one look at
/// each `d` is enough, from the last one back. (Of task i itself all jobs that are due by `d` count in the papers, although they may be
/// released only after `L`. But then `L <= a`, so that the interval is over when the job arrives, and its response time is seen at a `d` that
/// is `L` earlier.)
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
    let mut found = vec![None; tasks.len()];
    if analysis.find_ends() {
        for ends_waiting in [false, true] {
            analysis.find_responses(ends_waiting, &mut found);
        }
    }
    let is_complete = found.iter().all(Option::is_some);
    let over = analysis.jitter.iter().map(|&jitter| busy.saturating_add(jitter));
    let times = found.iter().zip(over).map(|(&time, over)| time.unwrap_or(over)).collect();
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

    /// Writes those of the tasks whose jobs end with a wait, or of the others, as far as the steps suffice.
    fn find_responses(&mut self, ends_waiting: bool, found: &mut [Option<u64>]) {
        let is_one = |&task: &usize| self.tasks[task].ends_waiting == ends_waiting;
        let mut tasks: Vec<usize> = (0..self.tasks.len()).filter(is_one).collect();
        tasks.sort_unstable_by_key(|&task| Reverse(self.firsts[task]));
        let Some(&one) = tasks.first() else { return };
        let (mut until, mut late) = (self.ends.len(), i128::MIN);
        for task in tasks {
            let begin = self.ends.partition_point(|&(end, _)| end < self.firsts[task]);
            match self.latest(begin..until, late, self.tasks[one]) {
                Some(latest) => (until, late) = (begin, latest),
                None => return,
            }
            // Each task has a first job, which is due when some job is, so that there is such a time. No job takes less than none.
            found[task] = u64::try_from(late + i128::from(self.tasks[task].deadline)).ok();
        }
    }

    /// The largest `L - d` of some `d`, or `late` if that is larger; `None` if the steps do not suffice. `one`: a task whose jobs end as
    /// those that it is asked for.
    fn latest(&mut self, ends: Range<usize>, mut late: i128, one: AnalysisTask) -> Option<i128> {
        let busy = i128::from(self.busy);
        // The most promising first, so that most of the others need no more than a look.
        let hope = |&at: &usize| {
            let (end, jobs) = self.ends[at];
            let most = (jobs + u128::from(self.load.blocking.at(end))).min(u128::from(self.busy));
            most as i128 - i128::from(end)
        };
        let first = ends.clone().max_by_key(hope);
        spend(&mut self.steps, ends.len() as u64, self.limits).ok()?;
        let mut known = Known::default();
        for at in first.into_iter().chain(ends) {
            spend(&mut self.steps, 1 + self.load.streams.len() as u64, self.limits).ok()?;
            let (end, jobs) = self.ends[at];
            if busy - i128::from(end) <= late {
                // Even at the end of the busy period it is complete sooner.
                break;
            }
            let blocking = self.load.blocking.at(end);
            // By then something has to be incomplete for it to be worth a look.
            let sooner = late.checked_add(i128::from(end)).and_then(|sooner| u64::try_from(sooner).ok());
            if let Some(sooner) = sooner.filter(|&sooner| sooner > 0) {
                let all = jobs + u128::from(blocking) + self.load.handlers(one.arrivals_within(sooner));
                if all <= u128::from(sooner) {
                    continue;
                }
            }
            let start = if known.end <= end && known.blocking <= blocking { known.length } else { 0 };
            let length = self.length(one, end, blocking, start)?;
            known = Known { end, blocking, length };
            late = late.max(i128::from(length) - i128::from(end));
        }
        Some(late)
    }

    /// The least `L` that is at least `start`, which must not exceed it.
    fn length(&mut self, one: AnalysisTask, end: u64, blocking: u64, start: u64) -> Option<u64> {
        let parts = (self.tasks.len() + self.load.streams.len()) as u64;
        let mut length = start.max(1);
        loop {
            spend(&mut self.steps, parts, self.limits).ok()?;
            let window = one.arrivals_within(length);
            let mut sum = u128::from(blocking) + self.load.handlers(window);
            for ((task, &first), &jitter) in self.tasks.iter().zip(&self.firsts).zip(&self.jitter) {
                if end >= first {
                    let released = (window + jitter).div_ceil(task.period).min(due(first, task.period, end));
                    sum += u128::from(released) * u128::from(task.wcet);
                }
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
