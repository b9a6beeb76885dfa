//! What Laxity's scheduler decided, as the threads noted that had it decide.

use laxity_model::{CpuId, Instant, JobId, TaskId};
use laxity_sched::{ABOVE_ALL, BELOW_ALL};
use laxity_trace::{Event, Sink};

use super::Collector;
use crate::log::{Entry, JobStep};

/// For each task of a system its number in the trace, if it is one of that.
#[derive(Debug)]
pub(crate) struct Numbering(Vec<Option<TaskId>>);

impl Numbering {
    /// The first `tasks` of the system have their own numbers, and behind them in the trace come `others`.
    pub fn new(tasks: usize, others: &[TaskId]) -> Numbering {
        let last = others.iter().map(|task| task.index() + 1).max().unwrap_or(0);
        let own = (0..tasks.max(last)).map(|task| (task < tasks).then_some(TaskId(task as u32)));
        let mut numbers: Vec<Option<TaskId>> = own.collect();
        for (other, number) in others.iter().zip(tasks..) {
            numbers[other.index()] = Some(TaskId(number as u32));
        }
        Numbering(numbers)
    }

    fn of(&self, task: TaskId) -> Result<TaskId, TaskId> {
        self.0.get(task.index()).copied().flatten().ok_or(task)
    }

    /// `step` with the trace's numbers; or the task that has none.
    fn translate(&self, step: JobStep) -> Result<JobStep, TaskId> {
        Ok(match step {
            JobStep::Linked(cluster, cpu, task) => {
                JobStep::Linked(cluster, cpu, task.map(|task| self.of(task)).transpose()?)
            }
            JobStep::Carried(task, cpu) => JobStep::Carried(self.of(task)?, cpu),
            JobStep::Granted(task, lock, replica) => JobStep::Granted(self.of(task)?, lock, replica),
            JobStep::Prioritized(task, (level, tie)) => {
                let tie = if is_of_none(level) { tie } else { self.of(TaskId(tie))?.0 };
                JobStep::Prioritized(self.of(task)?, (level, tie))
            }
            JobStep::Waits(task) => JobStep::Waits(self.of(task)?),
            JobStep::GoesOn(task) => JobStep::GoesOn(self.of(task)?),
            _ => step,
        })
    }
}

/// Whether a priority of that level is that of no job.
fn is_of_none(level: u64) -> bool {
    level == ABOVE_ALL || level >= BELOW_ALL
}

impl Collector {
    /// Whether `entry` is what Laxity's scheduler decided when something happened to a task; if so it is recorded.
    pub(super) fn decision(&mut self, entry: &Entry, sink: &mut impl Sink) -> bool {
        let at = self.reached;
        let here = self.cpu(entry.cpu);
        let mut record = |event| sink.record(at, event);
        let step = match self.numbering.translate(entry.step) {
            Ok(step) => step,
            Err(task) => {
                self.stranger = Some(task);
                return true;
            }
        };
        match step {
            JobStep::Linked(cluster, cpu, task) => {
                let cpu = self.clusters[usize::from(cluster)][cpu.index()];
                record(Event::Link { cpu, job: task.map(|task| self.current(task)) });
                self.links[cpu.index()] = task;
            }
            JobStep::Carried(task, Some(cpu)) => {
                let (job, cpu) = (self.current(task), self.cpu_of_cluster(task, cpu));
                self.occupancy.enter(job, cpu, &mut record);
            }
            JobStep::Carried(task, None) => {
                let job = self.current(task);
                self.occupancy.preempt(job, &mut record);
            }
            JobStep::Granted(task, lock, replica) => record(Event::Grant { job: self.current(task), lock, replica }),
            JobStep::Prioritized(task, (level, tie)) => {
                let of = if is_of_none(level) { task } else { TaskId(tie) };
                record(Event::Priority { job: self.current(task), level: self.level(level), of });
            }
            JobStep::Waits(task) => {
                let (job, cpu) = (self.current(task), here);
                let host = self.host(job, cpu);
                self.occupancy.leave(job, cpu, Event::Suspend { cpu, job }, &mut record);
                host.into_iter().for_each(|host| self.go_on(host, cpu, sink));
            }
            JobStep::GoesOn(task) => record(Event::Resume { cpu: here, job: self.current(task) }),
            _ => return false,
        }
        true
    }

    /// The job of `task` that the scheduler knows, or knew last.
    pub(super) fn current(&self, task: TaskId) -> JobId {
        JobId { task, index: self.current[task.index()] }
    }

    fn cpu_of_cluster(&self, task: TaskId, cpu: CpuId) -> CpuId {
        self.clusters[self.cluster_of[task.index()]][cpu.index()]
    }

    /// As traces have it: deadlines count from the start.
    fn level(&self, level: u64) -> u64 {
        let is_deadline = self.by_deadline && level != ABOVE_ALL && level < BELOW_ALL;
        if is_deadline { self.since(Instant(level)).0 } else { level }
    }
}
