//! Which job is on which CPU, as far as logs tell. A thread does not notice that it is preempted.

use laxity_model::{CpuId, JobId};
use laxity_trace::Event;

/// The jobs that began and did not complete or suspend.
///
/// At most one is on a CPU: if another shows up there, the first was preempted. It is taken to go on when the CPU is free
/// again, unless it shows up elsewhere.
#[derive(Debug)]
pub(super) struct CpuOccupancy {
    cpus: Vec<Cpu>,
    /// For each task its job, if that is on a CPU or was preempted there.
    jobs: Vec<Option<(JobId, CpuId)>>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<usize>,
    /// The tasks whose jobs were preempted here, the last one last.
    preempted: Vec<usize>,
}

impl CpuOccupancy {
    pub fn new(cpus: usize, tasks: usize) -> CpuOccupancy {
        CpuOccupancy { cpus: vec![Cpu::default(); cpus], jobs: vec![None; tasks] }
    }

    /// `job` is on `cpu`.
    pub fn enter(&mut self, job: JobId, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let task = job.task.index();
        if self.cpus[cpu.index()].running == Some(task) {
            return;
        }
        if let Some((_, before)) = self.jobs[task] {
            let there = &mut self.cpus[before.index()];
            if there.running == Some(task) {
                record(Event::Preempt { cpu: before, job });
                there.running = None;
                self.resume_preempted(before, record);
            } else {
                there.preempted.retain(|&other| other != task);
            }
        }
        let here = &mut self.cpus[cpu.index()];
        if let Some(other) = here.running.replace(task) {
            here.preempted.push(other);
            let (job, _) = self.jobs[other].expect("a task that runs has a job on the CPU");
            record(Event::Preempt { cpu, job });
        }
        self.jobs[task] = Some((job, cpu));
        record(Event::Dispatch { cpu, job });
    }

    /// `job`, which is on `cpu`, leaves it with `event`.
    pub fn leave(&mut self, job: JobId, cpu: CpuId, event: Event, record: &mut impl FnMut(Event)) {
        self.enter(job, cpu, record);
        self.jobs[job.task.index()] = None;
        self.cpus[cpu.index()].running = None;
        record(event);
        self.resume_preempted(cpu, record);
    }

    /// No job is on `cpu`: the job that was preempted there last goes on.
    fn resume_preempted(&mut self, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let here = &mut self.cpus[cpu.index()];
        here.running = here.preempted.pop();
        if let Some((job, _)) = here.running.and_then(|task| self.jobs[task]) {
            record(Event::Dispatch { cpu, job });
        }
    }
}
