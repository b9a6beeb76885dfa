//! Response times and missed deadlines, as section VI measures them.

use laxity_model::{Instant, Nanos, Task};
use laxity_trace::{Event, Sink};

/// What became of a task's jobs.
///
/// A job counts if its period ends no later than the run. Its *release point* is its arrival or the completion of its
/// predecessor, whichever is later: a job is not blamed for the tardiness of another. It missed its deadline if it was
/// not complete one period after its release point; one that is not complete at the end of the run missed it too, but
/// has no response time. (The paper first says "within one period of its release time", then shifts release points; the
/// count against arrivals is kept beside.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskResponses {
    /// Its period, in nanoseconds.
    pub period: u64,
    /// Whether it uses a GPU.
    pub uses_gpu: bool,
    /// Jobs that count.
    pub jobs: u64,
    /// Of these, those that missed their deadline.
    pub missed: u64,
    /// Of these, those that were not complete one period after their arrival.
    pub missed_from_arrival: u64,
    /// Of these, those that were not complete a quantum (1 ms) after that.
    pub missed_by_quantum: u64,
    /// Of these, those that completed.
    pub completed: u64,
    /// Sum of the response times of the completed ones, in nanoseconds.
    pub response_sum: u64,
    /// The longest.
    pub response_max: u64,
}

/// The quantum of the paper's machine (Table III). A job that is late by less is late by overheads alone.
pub const QUANTUM: Nanos = Nanos::from_millis(1);

/// Measures them as jobs complete.
pub(super) struct Fold {
    end: Instant,
    tasks: Vec<TaskFold>,
}

struct TaskFold {
    phase: Nanos,
    last_completion: Instant,
    result: TaskResponses,
}

impl Fold {
    /// Nothing has happened; the tasks are strictly periodic, and the run will end at `end`.
    pub fn new(tasks: &[Task], uses_gpu: &[bool], end: Instant) -> Self {
        let fold = |(task, &uses_gpu): (&Task, &bool)| {
            let (period, available) = (task.period.0, end.saturating_since(Instant::ZERO + task.phase).0);
            let result = TaskResponses {
                period,
                uses_gpu,
                jobs: available / period,
                missed: 0,
                missed_from_arrival: 0,
                missed_by_quantum: 0,
                completed: 0,
                response_sum: 0,
                response_max: 0,
            };
            TaskFold { phase: task.phase, last_completion: Instant::ZERO, result }
        };
        Fold { end, tasks: tasks.iter().zip(uses_gpu).map(fold).collect() }
    }

    /// The results, by task.
    pub fn finish(self) -> Vec<TaskResponses> {
        let tasks = self.tasks.into_iter().map(|task| task.result);
        tasks.map(with_incomplete).collect()
    }
}

/// Jobs that are not complete missed their deadline.
fn with_incomplete(result: TaskResponses) -> TaskResponses {
    let incomplete = result.jobs - result.completed;
    TaskResponses {
        missed: result.missed + incomplete,
        missed_from_arrival: result.missed_from_arrival + incomplete,
        missed_by_quantum: result.missed_by_quantum + incomplete,
        ..result
    }
}

impl TaskFold {
    /// Job `index` completes at `at`.
    fn complete(&mut self, at: Instant, index: u32) {
        let period = self.result.period;
        let arrival = Instant::ZERO + self.phase + Nanos(period * u64::from(index));
        let response = (at - arrival.max(self.last_completion)).0;
        self.last_completion = at;
        let result = &mut self.result;
        if u64::from(index) >= result.jobs {
            return;
        }
        result.completed += 1;
        result.missed += u64::from(response > period);
        let from_arrival = (at - arrival).0;
        result.missed_from_arrival += u64::from(from_arrival > period);
        result.missed_by_quantum += u64::from(from_arrival > period + QUANTUM.0);
        result.response_sum += response;
        result.response_max = result.response_max.max(response);
    }
}

impl Sink for Fold {
    #[inline]
    fn record(&mut self, at: Instant, event: Event) {
        if let Event::Complete { job, .. } = event
            && at <= self.end
            // Interrupt threads come after the tasks.
            && let Some(task) = self.tasks.get_mut(job.task.index())
        {
            task.complete(at, job.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{CpuId, JobId, TaskId};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A task of period 10 ms whose jobs complete at the given milliseconds, in a run of 60 ms.
    fn measured(completions: &[u64]) -> TaskResponses {
        let task = Task::periodic("t", Nanos::from_millis(3), Nanos::from_millis(10));
        let mut fold = Fold::new(&[task], &[false], Instant::from_millis(60));
        for (index, &at) in completions.iter().enumerate() {
            let job = JobId { task: TaskId(0), index: index as u32 };
            fold.record(Instant::from_millis(at), Event::Complete { cpu: CpuId(0), job });
        }
        fold.finish()[0]
    }

    /// ```text
    ///                   ms   0         10        20        30        40        50        60
    ///   punctual             ###       ###       ###       ###       ###       ###
    ///   the second late      ###       .............##..#        ###       ###
    /// ```
    /// Job 1 arrives at 10 and completes at 25: 15 ms. Job 2 arrived at 20, its release point is 25, it completes at 31:
    /// 6 ms, in time by its release point and late by its arrival.
    #[test]
    fn a_job_is_not_blamed_for_the_tardiness_of_its_predecessor() {
        let punctual = measured(&[3, 13, 23, 33, 43, 53]);
        assert_eq!((punctual.jobs, punctual.missed, punctual.completed), (6, 0, 6));
        assert_eq!((punctual.response_sum, punctual.response_max), (18 * MS, 3 * MS));
        let late = measured(&[3, 25, 31, 34, 43, 53]);
        assert_eq!((late.missed, late.missed_from_arrival, late.completed), (1, 2, 6));
        assert_eq!((late.response_sum, late.response_max), ((3 + 15 + 6 + 3 + 3 + 3) * MS, 15 * MS));
    }

    #[test]
    fn jobs_that_are_not_complete_at_the_end_missed_their_deadline_and_have_no_response_time() {
        let starved = measured(&[3, 55]);
        assert_eq!((starved.jobs, starved.completed, starved.missed), (6, 2, 5));
        assert_eq!(starved.response_sum, (3 + 45) * MS);
    }

    #[test]
    fn a_deadline_is_met_by_a_job_that_completes_at_it() {
        assert_eq!(measured(&[10, 13, 23, 33, 43, 60]).missed, 0);
    }
}
