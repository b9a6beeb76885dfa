//! Which job is on which CPU, as far as jobs tell. A thread does not notice that it is preempted.

use laxity_model::{CpuId, JobId};
use laxity_trace::Event;

/// The jobs that began and did not complete or suspend.
///
/// At most one is on a CPU: if another shows up there, the one that was there was preempted. It is taken to go on when
/// the CPU is free again, unless it shows up elsewhere.
#[derive(Debug)]
pub(super) struct Stage {
    cpus: Vec<Cpu>,
    /// For each task its job, if that is on a CPU or was preempted there.
    places: Vec<Option<(JobId, CpuId)>>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<usize>,
    /// The tasks whose jobs were preempted here, the last one last.
    preempted: Vec<usize>,
}

impl Stage {
    pub fn new(cpus: usize, tasks: usize) -> Stage {
        Stage { cpus: vec![Cpu::default(); cpus], places: vec![None; tasks] }
    }

    /// `job` is on `cpu`.
    pub fn be_on(&mut self, job: JobId, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let task = job.task.index();
        if self.cpus[cpu.index()].running == Some(task) {
            return;
        }
        if let Some((_, before)) = self.places[task] {
            let there = &mut self.cpus[before.index()];
            if there.running == Some(task) {
                record(Event::Preempt { cpu: before, job });
                there.running = None;
                self.go_on(before, record);
            } else {
                there.preempted.retain(|&other| other != task);
            }
        }
        let here = &mut self.cpus[cpu.index()];
        if let Some(other) = here.running.replace(task) {
            here.preempted.push(other);
            let (job, _) = self.places[other].expect("who runs has a place");
            record(Event::Preempt { cpu, job });
        }
        self.places[task] = Some((job, cpu));
        record(Event::Dispatch { cpu, job });
    }

    /// `job`, which is on `cpu`, leaves it with `event`.
    pub fn leave(&mut self, job: JobId, cpu: CpuId, event: Event, record: &mut impl FnMut(Event)) {
        self.be_on(job, cpu, record);
        self.places[job.task.index()] = None;
        self.cpus[cpu.index()].running = None;
        record(event);
        self.go_on(cpu, record);
    }

    /// Nobody is on `cpu`: whoever was preempted there last goes on.
    fn go_on(&mut self, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let here = &mut self.cpus[cpu.index()];
        here.running = here.preempted.pop();
        if let Some((job, _)) = here.running.and_then(|task| self.places[task]) {
            record(Event::Dispatch { cpu, job });
        }
    }
}
