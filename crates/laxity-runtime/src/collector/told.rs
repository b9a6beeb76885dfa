//! What Laxity's scheduler decided, as the threads noted that had it decide.

use laxity_model::{CpuId, Instant, JobId, TaskId};
use laxity_sched::{ABOVE_ALL, BELOW_ALL};
use laxity_trace::{Event, Sink};

use super::Collector;
use crate::log::{Entry, JobStep};

impl Collector {
    /// Whether `entry` is what Laxity's scheduler decided when something happened to a task; if so it is recorded.
    pub(super) fn decision(&mut self, entry: &Entry, sink: &mut impl Sink) -> bool {
        let at = self.reached;
        let here = self.cpu(entry.cpu);
        let mut record = |event| sink.record(at, event);
        match entry.step {
            JobStep::Linked(cluster, cpu, task) => {
                let event = Event::Link {
                    cpu: self.clusters[usize::from(cluster)][cpu.index()],
                    job: task.map(|task| self.current(task)),
                };
                record(event);
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
                let is_of_none = level == ABOVE_ALL || level >= BELOW_ALL;
                let of = if is_of_none { task } else { TaskId(tie) };
                record(Event::Priority { job: self.current(task), level: self.level(level), of });
            }
            JobStep::Waits(task) => {
                let (job, cpu) = (self.current(task), here);
                self.occupancy.leave(job, cpu, Event::Suspend { cpu, job }, &mut record);
            }
            JobStep::GoesOn(task) => record(Event::Resume { cpu: here, job: self.current(task) }),
            _ => return false,
        }
        true
    }

    /// The job of `task` that the scheduler knows, or knew last.
    fn current(&self, task: TaskId) -> JobId {
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
