//! Jobs that note something on the CPU of another one.
//!
//! ```text
//! CPU 0   z z z z|. . .|y y y y y y      y is linked here, and z has lost the CPU; y's thread is on its way
//! CPU 1   n n n n n n n n|z|n n n n      z was done meanwhile: its thread rises to say so, and Linux moves it here
//! ```
//!
//! Under Laxity's scheduler a thread to which something happens is above all jobs until that is decided. A job that lost its CPU may
//! have computed on until the next job arrived there, and come to such a point; or it has a CPU where a linked thread waits for
//! something unknown. The few microseconds on the CPU of another job are the scheduler's. The trace has what the job noted, at that
//! CPU and in no time, and the job that the CPU belongs to goes on at once.

use laxity_model::{CpuId, JobId, TaskId};
use laxity_trace::Sink;

use super::Collector;

impl Collector {
    /// The job to which `cpu` belongs where `job` notes something there, if that is another one. A real-time job has its CPU where it is
    /// linked, and in a non-preemptive section; and best-effort jobs have no CPU that a real-time job has.
    pub(super) fn host(&self, job: JobId, cpu: CpuId) -> Option<JobId> {
        let is_real_time = |task: TaskId| task.index() < self.first_best_effort;
        let host =
            self.occupancy.running(cpu).filter(|&host| self.is_told && host != job.task && is_real_time(host))?;
        let keeps_it = self.links[cpu.index()] == Some(host) || self.progress[host.index()].is_non_preemptive();
        (keeps_it || !is_real_time(job.task)).then(|| self.current(host))
    }

    /// `host` has its CPU again after another job noted something there.
    pub(super) fn go_on(&mut self, host: JobId, cpu: CpuId, sink: &mut impl Sink) {
        let at = self.reached;
        self.occupancy.enter(host, cpu, &mut |event| sink.record(at, event));
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{CpuId, LockId, ReplicaId, TaskId};

    use super::super::recorded;
    use crate::LinuxScheduler;
    use crate::log::JobStep::{
        Carried, Complete, Executes, Granted, Linked, NonPreemptiveBegin, NonPreemptiveEnd, Ready, Request, Unlock,
    };

    const WORKLOAD: &str = "
laxity = 1
name = \"a section\"
scheduler = \"G-FP\"
platform.cpus = 2
resource = [{ name = \"r\" }]
task = [
    { name = \"n\", period = \"100 ms\", phase = \"1 ms\", priority = 1, body = [{ nonpreemptive = \"400 us\" }] },
    { name = \"y\", period = \"100 ms\", phase = \"2 ms\", priority = 2, wcet = \"500 us\" },
    { name = \"z\", period = \"100 ms\", priority = 3, body = [{ cpu = \"2 ms\" }, { critical = \"r\", body = [{ cpu = \"9 us\" }] }] },
]
";
    const N: usize = 0;
    const Y: usize = 1;
    const Z: usize = 2;

    /// The job of `z` computes until it loses CPU 0 to that of `y`, a job in a section has CPU 1, and the thread of `z`
    /// does more than compute there: `steps`.
    fn passes(steps: &[(u64, crate::log::JobStep)]) -> bool {
        let (lock, replica) = (LockId(0), ReplicaId(0));
        let task = |task: usize| TaskId(task as u32);
        let link = |cpu, to| Linked(0, CpuId(cpu), Some(task(to)));
        let mut entries = vec![
            (10, Z, 0, Ready),
            (10, Z, 0, link(0, Z)),
            (20, Z, 0, Executes),
            (1_010, N, 1, Ready),
            (1_010, N, 1, link(1, N)),
            (1_020, N, 1, Executes),
            (1_021, N, 1, NonPreemptiveBegin),
            (2_010, Y, 1, Ready),
            (2_010, Y, 1, link(0, Y)),
            (2_020, Y, 1, Carried(task(Z), None)),
            (2_090, Y, 0, Executes),
        ];
        entries.extend(steps.iter().map(|&(at, step)| (at, Z, 1, step)));
        entries.extend([(2_500, N, 1, NonPreemptiveEnd), (2_510, N, 1, Complete), (2_700, Y, 0, Complete)]);
        if !steps.iter().any(|&(_, step)| step == Complete) {
            entries.extend([(2_700, Y, 0, link(0, Z)), (2_720, Y, 0, Carried(task(Z), Some(CpuId(0))))]);
            entries.extend([(2_750, Z, 0, Unlock(lock, replica)), (2_750, Z, 0, Complete)]);
        }
        let Some(trace) = recorded::trace(WORKLOAD, LinuxScheduler::Laxity, &entries) else { return false };
        let report = recorded::judge(&trace);
        assert!(report.is_clean(), "{report}");
        let dispatched = recorded::dispatched(&trace);
        let times = steps.iter().map(|&(at, _)| at).collect::<std::collections::BTreeSet<u64>>();
        let passing = dispatched.iter().filter(|&&(at, ..)| times.contains(&at)).copied();
        let expected = times.iter().flat_map(|&at| [(at, Z as u32, 1), (at, N as u32, 1)]);
        assert!(passing.eq(expected), "{dispatched:?}");
        true
    }

    #[test]
    fn a_job_that_is_done_when_it_loses_its_cpu_completes_without_disturbing_a_section() {
        passes(&[(2_100, Complete)]);
    }

    #[test]
    fn a_job_that_loses_its_cpu_when_it_locks_has_its_lock_without_disturbing_a_section() {
        let (lock, replica) = (LockId(0), ReplicaId(0));
        passes(&[(2_100, Request(lock)), (2_100, Granted(TaskId(Z as u32), lock, replica))]);
    }
}
