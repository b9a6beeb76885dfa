//! Which job is on which CPU, as far as beginnings and completions tell.

use laxity_model::{CpuId, JobId};
use laxity_trace::Event;

/// The jobs that began and did not complete.
///
/// At most one is on a CPU: if another begins there the one that was there was preempted, and goes on when the CPU is
/// free again.
#[derive(Debug)]
pub(super) struct Stage {
    cpus: Vec<Cpu>,
    /// For each node its job and where that was last.
    jobs: Vec<Option<(JobId, CpuId)>>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    running: Option<usize>,
    /// The nodes whose jobs were preempted here, the last one last.
    preempted: Vec<usize>,
}

impl Stage {
    pub fn new(cpus: usize, nodes: usize) -> Self {
        Stage { cpus: vec![Cpu::default(); cpus], jobs: vec![None; nodes] }
    }

    /// The CPU that was recorded as `number`; the last if the machine has no such CPU.
    pub fn cpu(&self, number: u16) -> CpuId {
        CpuId(number.min((self.cpus.len() - 1) as u16))
    }

    /// A job of `node`, which has none here, runs on `cpu` from now on.
    pub fn enter(&mut self, node: usize, job: JobId, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let here = &mut self.cpus[cpu.index()];
        if let Some(other) = here.running.replace(node) {
            here.preempted.push(other);
            let (job, _) = self.jobs[other].expect("a running node has a job");
            record(Event::Preempt { cpu, job });
        }
        self.jobs[node] = Some((job, cpu));
        record(Event::Dispatch { cpu, job });
    }

    /// The job of `node`, if it has one, is no longer here; it could go on.
    pub fn leave(&mut self, node: usize, record: &mut impl FnMut(Event)) {
        let Some((job, cpu)) = self.jobs[node].take() else { return };
        let here = &mut self.cpus[cpu.index()];
        if here.running == Some(node) {
            record(Event::Preempt { cpu, job });
            self.free(cpu, record);
        } else {
            here.preempted.retain(|&other| other != node);
        }
    }

    /// The job of `node` completes on `cpu`, so that it runs there.
    pub fn complete(&mut self, node: usize, job: JobId, cpu: CpuId, record: &mut impl FnMut(Event)) {
        if self.cpus[cpu.index()].running != Some(node) {
            self.leave(node, record);
            self.enter(node, job, cpu, record);
        }
        self.jobs[node] = None;
        record(Event::Complete { cpu, job });
        self.free(cpu, record);
    }

    /// No node runs on `cpu`: the one that was preempted there last goes on.
    fn free(&mut self, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let here = &mut self.cpus[cpu.index()];
        here.running = here.preempted.pop();
        if let Some((job, _)) = here.running.and_then(|node| self.jobs[node]) {
            record(Event::Dispatch { cpu, job });
        }
    }
}
