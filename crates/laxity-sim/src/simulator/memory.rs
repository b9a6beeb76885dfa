//! Memory traffic: what CPUs cause, what it does to GPU operations, and what keeps it within a budget.

use laxity_model::{CpuId, Nanos, TaskId};
use laxity_policy::bandwidth::{self, Action, Change};
use laxity_trace::{Event, Sink};

use super::Simulator;
use crate::context::TimerKind;
use crate::cpu::{Activity, Interrupt, Process};
use crate::memory::Traffic;
use crate::task::JobState;

impl<S: Sink> Simulator<S> {
    /// The job of `task`, on `cpu`, is about to issue an operation: it has the bandwidth lock, and the ceiling priority.
    #[inline(never)]
    pub(super) fn hold_bandwidth(&mut self, cpu: CpuId, task: TaskId) {
        let change = self.memory().hold(task, true);
        if change.ceiling == Some(true) {
            let lock = self.memory().lock();
            let granted = self.request(cpu, task, lock, Nanos::ZERO, None);
            assert!(granted, "the bandwidth lock has a replica for every task that uses GPUs");
        }
        self.follow_lock(change);
    }

    /// The job of `task`, on `cpu`, has waited for all operations that it issued.
    #[inline(never)]
    pub(super) fn end_bandwidth(&mut self, cpu: CpuId, task: TaskId) {
        let change = self.memory().hold(task, false);
        if change.ceiling == Some(false) {
            let lock = self.memory().lock();
            self.unlock(cpu, task, lock);
        }
        self.follow_lock(change);
    }

    /// The regulators learn of another budget.
    fn follow_lock(&mut self, change: Change) {
        let Some(budget) = change.budget else { return };
        for cpu in 0..self.cpus.len() {
            self.regulate(CpuId(cpu as u16), bandwidth::Event::Lock { budget });
        }
    }

    pub(super) fn regulator_timeout(&mut self, cpu: CpuId) {
        self.regulate(cpu, bandwidth::Event::Timeout);
    }

    /// What an interrupt of a regulator costs.
    pub(super) fn regulator_cost(&self) -> Nanos {
        self.plan.memory.as_ref().map_or(Nanos::ZERO, |memory| memory.regulator.interrupt)
    }

    /// At the end of an instant: tells engines and regulators of what CPUs cause from now on. Answers whether that has
    /// changed anything that must be settled at this very instant.
    #[inline(never)]
    pub(super) fn follow_traffic(&mut self) -> bool {
        let mut is_new = false;
        for at in 0..self.cpus.len() {
            let cpu = CpuId(at as u16);
            let task = self.executing(cpu);
            let rate = task.map_or(0, |task| self.memory().demand(task));
            // Only best-effort tasks have a budget.
            let is_counted = task.is_some_and(|task| self.is_best_effort(task));
            let traffic = Traffic { rate, counted: if is_counted { rate } else { 0 } };
            let before = self.memory().replace(cpu, traffic);
            is_new |= traffic.rate != before.rate;
            if traffic.counted != before.counted {
                self.regulate(cpu, bandwidth::Event::Traffic { rate: traffic.counted });
            }
        }
        if is_new {
            let traffic = self.memory().traffic();
            self.devices.follow_traffic(&mut self.cx, traffic);
        }
        !self.touched.is_empty() || self.best_effort.as_ref().is_some_and(|best_effort| best_effort.must_decide)
    }

    /// The task whose job executes on `cpu`, and does not spin.
    fn executing(&self, cpu: CpuId) -> Option<TaskId> {
        let state = &self.cpus[cpu.index()];
        match (&state.activity, state.process) {
            (Activity::Job, Process::Dispatched(task)) if self.tasks[task.index()].state != JobState::Spinning => {
                Some(task)
            }
            _ => None,
        }
    }

    /// Hands `event` to the regulator of `cpu`, and carries out what it decides.
    fn regulate(&mut self, cpu: CpuId, event: bandwidth::Event) {
        let now = self.cx.now;
        let mut actions = Vec::new();
        if let Some(at) = self.memory().regulate(now, cpu, event, &mut actions) {
            self.cx.set_timer(at, TimerKind::Regulator(cpu));
        }
        for action in actions {
            match action {
                Action::Regulate { budget } => self.cx.record(Event::Regulate { cpu, budget }),
                Action::Interrupt if self.regulator_cost().is_zero() => {}
                Action::Interrupt => self.raise(cpu, Interrupt::Regulator),
                // The regulator's interrupt is one of the CPU itself, which needs no other to notice.
                Action::Throttle => {
                    self.cpus[cpu.index()].handled_at = now;
                    let task = self.best_effort.as_mut().and_then(|best_effort| best_effort.throttle(now, cpu));
                    self.cx.record(Event::Throttle { cpu, task });
                }
                Action::Unthrottle { lost } => {
                    self.cpus[cpu.index()].handled_at = now;
                    let task = self.best_effort.as_mut().and_then(|it| it.unthrottle(now, cpu, lost));
                    self.cx.record(Event::Unthrottle { cpu, task, lost });
                }
            }
        }
    }

    fn memory(&mut self) -> &mut crate::memory::Memory {
        self.memory.as_mut().expect("a workload with a bandwidth lock or contention has a memory")
    }
}
