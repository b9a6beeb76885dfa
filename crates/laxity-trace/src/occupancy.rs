//! Which job is on which CPU, as far as logs tell. A thread does not notice that it is preempted.

use laxity_model::{CpuId, JobId, TaskId};

use crate::Event;

/// The jobs that began and did not complete or suspend.
///
/// At most one is on a CPU: if another shows up there, the first was preempted. Where Linux schedules, it is taken to go on
/// when the CPU is free again, unless it shows up elsewhere; Laxity's scheduler says when it goes on.
#[derive(Debug)]
pub struct CpuOccupancy {
    /// Whether it is said when a job that was preempted goes on.
    is_told: bool,
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
    /// No jobs yet, on at least one CPU.
    pub fn new(cpus: usize, tasks: usize) -> CpuOccupancy {
        CpuOccupancy { is_told: false, cpus: vec![Cpu::default(); cpus], jobs: vec![None; tasks] }
    }

    /// The same, where it is said when a job that was preempted goes on.
    #[must_use]
    pub fn told(self, is_told: bool) -> CpuOccupancy {
        CpuOccupancy { is_told, ..self }
    }

    /// The CPU that was logged as `number`; the last if the machine has no such CPU.
    pub fn cpu(&self, number: u16) -> CpuId {
        CpuId(number.min((self.cpus.len() - 1) as u16))
    }

    /// The task whose job is on `cpu`.
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].running.map(|task| TaskId(task as u32))
    }

    /// The CPU that the job of `task` is on, or was on when it was preempted.
    pub fn place(&self, task: TaskId) -> Option<CpuId> {
        self.jobs[task.index()].map(|(_, cpu)| cpu)
    }

    /// `job` is on `cpu`. Its task has no other job that began.
    pub fn enter(&mut self, job: JobId, cpu: CpuId, record: &mut impl FnMut(Event)) {
        let task = job.task.index();
        if self.cpus[cpu.index()].running == Some(task) {
            return;
        }
        self.withdraw(job.task, record);
        let here = &mut self.cpus[cpu.index()];
        if let Some(other) = here.running.replace(task) {
            if !self.is_told {
                here.preempted.push(other);
            }
            let (job, _) = self.jobs[other].expect("a task that runs has a job on the CPU");
            record(Event::Preempt { cpu, job });
        }
        self.jobs[task] = Some((job, cpu));
        record(Event::Dispatch { cpu, job });
    }

    /// `job` lost its CPU, if it had one.
    pub fn preempt(&mut self, job: JobId, record: &mut impl FnMut(Event)) {
        let task = job.task.index();
        let Some((job, cpu)) = self.jobs[task] else { return };
        if self.cpus[cpu.index()].running == Some(task) {
            self.cpus[cpu.index()].running = None;
            record(Event::Preempt { cpu, job });
        }
    }

    /// `job`, which is on `cpu`, leaves it with `event`.
    pub fn leave(&mut self, job: JobId, cpu: CpuId, event: Event, record: &mut impl FnMut(Event)) {
        self.enter(job, cpu, record);
        self.jobs[job.task.index()] = None;
        self.cpus[cpu.index()].running = None;
        record(event);
        self.resume_preempted(cpu, record);
    }

    /// The job of `task`, if it has one, is no longer where it was; it could go on.
    pub fn withdraw(&mut self, task: TaskId, record: &mut impl FnMut(Event)) {
        let task = task.index();
        let Some((job, cpu)) = self.jobs[task].take() else { return };
        let there = &mut self.cpus[cpu.index()];
        if there.running == Some(task) {
            record(Event::Preempt { cpu, job });
            self.resume_preempted(cpu, record);
        } else {
            there.preempted.retain(|&other| other != task);
        }
    }

    /// Jobs of such `tasks` that are on `cpu`, or were preempted there, are no longer: they could go on.
    pub fn clear(&mut self, cpu: CpuId, tasks: impl Fn(TaskId) -> bool, record: &mut impl FnMut(Event)) {
        let here = &self.cpus[cpu.index()];
        // The one that is on the CPU goes last, so that none of the others takes its place.
        let there: Vec<usize> = here.preempted.iter().chain(&here.running).copied().collect();
        for task in there.into_iter().map(|task| TaskId(task as u32)).filter(|&task| tasks(task)) {
            self.withdraw(task, record);
        }
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
