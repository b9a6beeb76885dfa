//! Interrupts: what handling one costs, and what follows.

use laxity_model::{CpuId, InterruptHandling, Nanos, OverheadKind};
use laxity_policy::cpu;
use laxity_trace::{Event, Sink};

use super::Simulator;
use crate::cpu::{Activity, Due, Interrupt, Work};

impl<S: Sink> Simulator<S> {
    /// `cpu` receives `interrupt`: at once if it is interruptible, else when its current work ends.
    pub(super) fn raise(&mut self, cpu: CpuId, interrupt: Interrupt) {
        let state = &self.cpus[cpu.index()];
        let free = !matches!(state.activity, Activity::Scheduler(_)) && state.interrupts.is_empty();
        if free && self.interrupt_cost(&interrupt).1.is_zero() {
            self.handle_interrupt(cpu, interrupt);
        } else {
            self.cpus[cpu.index()].interrupts.push_back(interrupt);
        }
        self.touch(cpu);
    }

    /// What handling `interrupt` costs.
    pub(super) fn interrupt_cost(&self, interrupt: &Interrupt) -> (OverheadKind, Nanos) {
        let costs = &self.plan.header.costs;
        match interrupt {
            Interrupt::Release(_) | Interrupt::Resume(_) => (OverheadKind::Release, costs.release),
            Interrupt::TopHalf(top) => (OverheadKind::TopHalf, top.time),
            Interrupt::Deliver(_) => match self.plan.header.handling {
                InterruptHandling::ProcessAware => (OverheadKind::PaiEnqueue, costs.pai_enqueue),
                _ => (OverheadKind::ThreadRelease, costs.thread_release),
            },
            Interrupt::Tick { .. } => (OverheadKind::Tick, costs.tick),
            Interrupt::Regulator => (OverheadKind::Tick, self.regulator_cost()),
        }
    }

    /// The effect of `interrupt`, at the end of its handler.
    pub(super) fn handle_interrupt(&mut self, cpu: CpuId, interrupt: Interrupt) {
        self.cpus[cpu.index()].handled_at = self.cx.now;
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
                self.cx.record(Event::Resume { cpu, job });
                let (cluster, local) = self.local(task);
                let event = cpu::Event::Resumed { cpu: self.local_cpu(cpu, cluster), task: local };
                self.notify_policy(cluster, event);
            }
            Interrupt::TopHalf(top) => self.after_top_half(cpu, top.deferred),
            Interrupt::Deliver(half) => self.deliver(cpu, half),
            Interrupt::Regulator => {}
            Interrupt::Tick { quantum: None } => self.tick_best_effort(cpu),
            Interrupt::Tick { quantum: Some(quantum) } => {
                self.tick_best_effort(cpu);
                if let Some((cluster, cpu_in_cluster)) = self.cpus[cpu.index()].cluster {
                    self.cpus[cpu.index()].due.add(Due::QUANTUM);
                    self.notify_policy(cluster, cpu::Event::Tick { cpu: cpu_in_cluster, quantum });
                }
            }
        }
    }

    /// Whether `work` holds the cluster's scheduler lock, if that is modelled; and which cluster's.
    pub(super) fn locked_cluster(&self, cpu: CpuId, work: &Work) -> Option<usize> {
        if !self.plan.header.scheduler.coarse_lock {
            return None;
        }
        let own = self.cpus[cpu.index()].cluster.map(|(cluster, _)| cluster);
        match work {
            Work::Schedule | Work::Interrupt(Interrupt::Tick { quantum: Some(_) }) => own,
            Work::Interrupt(Interrupt::Release(tasks)) => tasks.first().map(|&task| self.local(task).0),
            Work::Interrupt(Interrupt::Resume(task)) => Some(self.local(*task).0),
            Work::Interrupt(
                Interrupt::TopHalf(_)
                | Interrupt::Deliver(_)
                | Interrupt::Tick { quantum: None }
                | Interrupt::Regulator,
            )
            | Work::PaiCheck
            | Work::ContextSwitch
            | Work::RearmTimer
            | Work::Lock(_) => None,
        }
    }
}
