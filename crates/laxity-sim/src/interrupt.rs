//! Interrupts: releases, ends of suspensions, devices, ticks.

use laxity_model::{CpuId, InterruptHandling, Nanos, OverheadKind, TaskId};
use laxity_policy::cpu;
use laxity_trace::{Event, Sink};

use crate::Simulator;
use crate::halves::Half;
use crate::simulator::{Activity, Work};

/// An interrupt of one CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// Releases jobs that share a timer.
    Release(Vec<TaskId>),
    /// Ends a suspension.
    Resume(TaskId),
    /// A device wants attention.
    TopHalf(TopHalf),
    /// The top half is done: its bottom half goes to whoever runs it.
    Deliver(Half),
    /// The periodic tick; `quantum` is set where a scheduling quantum begins.
    Tick { quantum: Option<u64> },
}

/// The top half of a device interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopHalf {
    /// What is left for later.
    pub half: Half,
    /// How long it takes itself.
    pub time: Nanos,
}

impl<S: Sink> Simulator<S> {
    /// `cpu` receives `interrupt`: at once if it is interruptible, else when its current work ends.
    pub(crate) fn raise(&mut self, cpu: CpuId, interrupt: Interrupt) {
        let state = &mut self.cpus[cpu.index()];
        let free = !matches!(state.activity, Activity::Scheduler(_)) && state.interrupts.is_empty();
        if free && self.interrupt_cost(&interrupt).1.is_zero() {
            self.handle_interrupt(cpu, interrupt);
        } else {
            self.cpus[cpu.index()].interrupts.push_back(interrupt);
        }
        self.touch(cpu);
    }

    /// What handling `interrupt` costs.
    pub(crate) fn interrupt_cost(&self, interrupt: &Interrupt) -> (OverheadKind, Nanos) {
        match interrupt {
            Interrupt::Release(_) | Interrupt::Resume(_) => (OverheadKind::Release, self.plan.header.costs.release),
            Interrupt::TopHalf(top) => (OverheadKind::TopHalf, top.time),
            Interrupt::Deliver(_) => match self.plan.header.handling {
                InterruptHandling::ProcessAware => (OverheadKind::PaiEnqueue, self.plan.header.costs.pai_enqueue),
                _ => (OverheadKind::ThreadRelease, self.plan.header.costs.thread_release),
            },
            Interrupt::Tick { .. } => (OverheadKind::Tick, self.plan.header.costs.tick),
        }
    }

    /// The effect of `interrupt`, at the end of its handler.
    pub(crate) fn handle_interrupt(&mut self, cpu: CpuId, interrupt: Interrupt) {
        self.cpus[cpu.index()].handled_at = self.now;
        self.handler = cpu;
        match interrupt {
            Interrupt::Release(mut tasks) => {
                for task in tasks.drain(..) {
                    self.make_ready(cpu, task);
                }
                self.spare_batches.push(tasks);
            }
            Interrupt::Resume(task) => {
                let job = self.job_id(task);
                self.sink.record(self.now, Event::Resume { cpu, job });
                let (cluster, local) = self.local(task);
                let event = cpu::Event::Resumed { cpu: self.local_cpu(cpu, cluster), task: local };
                self.tell(cluster, event);
            }
            Interrupt::TopHalf(top) => self.after_top_half(cpu, top.half),
            Interrupt::Deliver(half) => self.deliver(cpu, half),
            Interrupt::Tick { quantum: None } => {}
            Interrupt::Tick { quantum: Some(quantum) } => {
                if let Some((cluster, cpu_in_cluster)) = self.cpus[cpu.index()].cluster {
                    self.cpus[cpu.index()].boundary = true;
                    self.tell(cluster, cpu::Event::Tick { cpu: cpu_in_cluster, quantum });
                }
            }
        }
    }

    /// Hands `event` to the policy of `cluster`.
    pub(crate) fn tell(&mut self, cluster: usize, event: cpu::Event) {
        self.clusters[cluster].policy.handle(self.now, event);
        self.mark_dirty(cluster);
    }

    /// The cluster of `task` and its number there.
    pub(crate) fn local(&self, task: TaskId) -> (usize, TaskId) {
        let plan = &self.plan.tasks[task.index()];
        (usize::from(plan.cluster), plan.local)
    }

    /// The number of `cpu` in `cluster`; a CPU outside (dedicated to interrupts) acts through the first.
    pub(crate) fn local_cpu(&self, cpu: CpuId, cluster: usize) -> CpuId {
        match self.cpus[cpu.index()].cluster {
            Some((own, local)) if own == cluster => local,
            _ => CpuId(0),
        }
    }

    /// Whether `work` holds the cluster's scheduler lock, if that is modelled; and which cluster's.
    pub(crate) fn locked_cluster(&self, cpu: CpuId, work: &Work) -> Option<usize> {
        if !self.plan.header.scheduler.coarse_lock {
            return None;
        }
        let own = self.cpus[cpu.index()].cluster.map(|(cluster, _)| cluster);
        match work {
            Work::Schedule | Work::Interrupt(Interrupt::Tick { quantum: Some(_) }) => own,
            Work::Interrupt(Interrupt::Release(tasks)) => tasks.first().map(|&task| self.local(task).0),
            Work::Interrupt(Interrupt::Resume(task)) => Some(self.local(*task).0),
            Work::Interrupt(Interrupt::TopHalf(_) | Interrupt::Deliver(_) | Interrupt::Tick { quantum: None })
            | Work::PaiCheck
            | Work::ContextSwitch
            | Work::RearmTimer
            | Work::Lock(_) => None,
        }
    }
}
