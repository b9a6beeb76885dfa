//! The fold over the jobs of a task.

use laxity_model::{Instant, Nanos, SignedNanos};

use super::histogram::Histogram;
use super::{JobSummary, LatenessSummary, OverheadUse, ResponseTimeSummary, TardinessSummary};
use crate::header::is_no_deadline;
use crate::replay::{Completion, Task};

/// A set of jobs, folded; sums over sets are sums of folds. It takes whole cache lines, and fields that change together
/// are neighbours: tasks take turns, so that each line of one must be fetched anew for each job.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct JobFold {
    pub released: u64,
    pub execution: u64,
    completed: u64,
    response_min: u64,
    response_max: u64,
    lateness_min: i64,
    lateness_max: i64,
    /// The first job of the greatest lateness.
    latest_job: u32,
    /// Completed jobs without a deadline, or [`u32::MAX`] if there are more: they are neither early nor late.
    undue: u32,

    response_sum: u128,
    lateness_sum: i128,
    tardiness_sum: u128,
    pub missed_late: u64,
    pub migrations: u64,

    response_times: Histogram,
    pub preemptions: u64,
    pub cache_delay: u64,
    pub suspensions: u64,
    pub missed_incomplete: u64,
}

const _: () = assert!(size_of::<JobFold>() == 3 * 64);

impl JobFold {
    /// Job `index` completed at `at`.
    #[inline]
    pub fn complete(&mut self, index: u32, at: Instant, job: Completion) {
        let (response_time, lateness) = (at.saturating_since(job.arrival), at.signed_since(job.deadline));
        self.completed += 1;
        self.response_min = self.response_min.min(response_time.0);
        self.response_max = self.response_max.max(response_time.0);
        self.response_sum += u128::from(response_time.0);
        self.response_times.record(response_time);
        if is_no_deadline(job.arrival, job.deadline) {
            self.undue = self.undue.saturating_add(1);
            return;
        }
        self.lateness_min = self.lateness_min.min(lateness.0);
        if lateness.0 > self.lateness_max || self.due() == 1 {
            self.lateness_max = lateness.0;
            self.latest_job = index;
        }
        self.lateness_sum += i128::from(lateness.0);
        if lateness.0 > 0 {
            self.missed_late += 1;
            self.tardiness_sum += u128::from(lateness.0.unsigned_abs());
        }
    }

    /// Completed jobs that had deadlines.
    #[inline]
    fn due(&self) -> u64 {
        self.completed - u64::from(self.undue)
    }

    /// The same up to `end`, the pending jobs of the task that missed their deadlines included.
    pub fn up_to(&self, end: Instant, task: &Task) -> JobFold {
        let late = task.pending().iter().filter(|&(_, deadline)| deadline <= end);
        JobFold { missed_incomplete: late.count() as u64, ..self.clone() }
    }

    /// Adds the jobs of another set.
    pub fn merge(&mut self, other: &JobFold) {
        self.released += other.released;
        self.missed_late += other.missed_late;
        self.missed_incomplete += other.missed_incomplete;
        self.preemptions += other.preemptions;
        self.migrations += other.migrations;
        self.suspensions += other.suspensions;
        self.execution = self.execution.saturating_add(other.execution);
        self.cache_delay = self.cache_delay.saturating_add(other.cache_delay);
        self.completed += other.completed;
        self.undue = self.undue.saturating_add(other.undue);
        self.response_min = self.response_min.min(other.response_min);
        self.response_max = self.response_max.max(other.response_max);
        self.response_sum += other.response_sum;
        self.response_times.merge(&other.response_times);
        self.lateness_min = self.lateness_min.min(other.lateness_min);
        self.lateness_max = self.lateness_max.max(other.lateness_max);
        self.lateness_sum += other.lateness_sum;
        self.tardiness_sum += other.tardiness_sum;
    }

    /// How many are complete, and for how long all of them executed.
    pub fn use_of_cpu(&self) -> OverheadUse {
        OverheadUse { count: self.completed, time: Nanos(self.execution) }
    }

    /// The results; `of_one_task`: a job is named by its index alone.
    pub fn summary(&self, of_one_task: bool) -> JobSummary {
        let any = self.completed > 0;
        let count = u128::from(self.completed.max(1));
        let (any_due, due) = (self.due() > 0, u128::from(self.due().max(1)));
        let percentile = |percent| Nanos(self.response_times.percentile(percent).0.min(self.response_max));
        JobSummary {
            released: self.released,
            completed: self.completed,
            missed: self.missed_late + self.missed_incomplete,
            missed_incomplete: self.missed_incomplete,
            preemptions: self.preemptions,
            migrations: self.migrations,
            suspensions: self.suspensions,
            response_time: any.then(|| ResponseTimeSummary {
                min: Nanos(self.response_min),
                mean: Nanos((self.response_sum / count) as u64),
                p50: percentile(50),
                p90: percentile(90),
                p99: percentile(99),
                max: Nanos(self.response_max),
            }),
            lateness: any_due.then(|| LatenessSummary {
                min: SignedNanos(self.lateness_min),
                mean: SignedNanos(self.lateness_sum.div_euclid(due as i128) as i64),
                max: SignedNanos(self.lateness_max),
            }),
            tardiness: any_due.then(|| TardinessSummary {
                mean: Nanos((self.tardiness_sum / due) as u64),
                max: Nanos(self.lateness_max.max(0).unsigned_abs()),
            }),
            laxity_min: any_due.then(|| SignedNanos(self.lateness_max.saturating_neg())),
            laxity_min_job: (any_due && of_one_task).then_some(self.latest_job),
            execution: Nanos(self.execution),
            cache_delay: Nanos(self.cache_delay),
        }
    }
}

impl Default for JobFold {
    fn default() -> Self {
        JobFold {
            released: 0,
            undue: 0,
            missed_late: 0,
            missed_incomplete: 0,
            preemptions: 0,
            migrations: 0,
            suspensions: 0,
            execution: 0,
            cache_delay: 0,
            completed: 0,
            response_min: u64::MAX,
            response_max: 0,
            response_sum: 0,
            response_times: Histogram::default(),
            lateness_min: i64::MAX,
            lateness_max: i64::MIN,
            lateness_sum: 0,
            latest_job: 0,
            tardiness_sum: 0,
        }
    }
}
