//! Interrupt threads that are bandwidth servers: what they run of anonymous bottom halves is bounded.
//!
//! ```text
//!   thread   bottom half          bottom half | budget exhausted            | replenished
//!   server   |######....#####|    |###########| waits (hard, sporadic)      |####
//!                                             | or goes on, due later (soft)
//! ```
//!
//! Source: paper 000, section III, independent threads. The server is charged for what its thread executes, not for
//! interrupts on its CPU.

use std::cmp::Reverse;

use laxity_model::{CpuId, Instant, TaskId};
use laxity_policy::cpu;
use laxity_policy::server::{Action, Server};
use laxity_trace::{Event, Sink};

use crate::Simulator;
use crate::interrupt::Interrupt;
use crate::setup::{ServerPlan, Setup};
use crate::simulator::{Timer, TimerKind};

/// A thread's server.
pub(crate) struct Served {
    server: Box<dyn Server>,
    plan: ServerPlan,
    /// The level of its priority.
    level: u64,
    /// What throttling has come upon.
    throttled: Throttled,
}

/// What a server without budget does when it has one again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Throttled {
    /// It has budget.
    No,
    /// Its thread is made ready: it had not begun.
    BeforeWork,
    /// Its thread resumes.
    AmidWork,
}

impl Served {
    /// The server of each thread; `None` for those without.
    pub fn all(setup: &Setup) -> Vec<Option<Served>> {
        let count = setup.threads.iter().max().map_or(0, |last| last + 1);
        let mut all: Vec<Option<Served>> = (0..count).map(|_| None).collect();
        for (device, &thread) in setup.threads.iter().enumerate() {
            if let Some(plan) = setup.devices[device].server {
                let server = plan.config.build().expect("validation saw to it that a server has a budget");
                all[thread] = Some(Served { server, plan, level: 0, throttled: Throttled::No });
            }
        }
        all
    }

    /// The level at which its thread competes.
    pub fn level(&self) -> u64 {
        self.level
    }
}

impl<S: Sink> Simulator<S> {
    /// The server of `task`, if it is an interrupt thread that has one.
    pub(crate) fn served(&mut self, task: TaskId) -> Option<&mut Served> {
        let thread = task.index().checked_sub(self.setup.first_thread)?;
        self.devices.servers.get_mut(thread)?.as_mut()
    }

    /// `thread`, which was idle or has finished a bottom half, has another; answers whether it may begin.
    pub(crate) fn server_has_work(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let now = self.now;
        let Some(served) = self.served(task) else { return true };
        let mut actions = Vec::new();
        served.server.wake(now, &mut actions);
        self.follow_server(cpu, task, &actions, Throttled::BeforeWork);
        self.served(task).is_none_or(|served| served.throttled == Throttled::No)
    }

    /// The thread executes on `cpu` from now on: no longer than it has budget.
    pub(crate) fn server_runs(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.now;
        let Some(served) = self.served(task) else { return };
        served.server.run(now);
        if let Some(exhausted) = served.server.next_timeout() {
            let end = &mut self.ends[cpu.index()];
            *end = exhausted.min(*end);
        }
    }

    /// The thread stops executing, and is not done.
    pub(crate) fn server_stops(&mut self, task: TaskId) {
        let now = self.now;
        let Some(served) = self.served(task) else { return };
        let mut actions = Vec::new();
        served.server.stop(now, &mut actions);
        assert!(actions.is_empty(), "the end of a budget is the end of a segment, which comes first");
    }

    /// The thread has finished a bottom half; `more`: it has another.
    pub(crate) fn server_finished(&mut self, cpu: CpuId, task: TaskId, more: bool) {
        let now = self.now;
        let Some(served) = self.served(task) else { return };
        let mut actions = Vec::new();
        if more {
            served.server.stop(now, &mut actions);
            self.follow_server(cpu, task, &actions, Throttled::BeforeWork);
        } else {
            served.server.idle(now);
        }
    }

    /// The budget of the thread that executes on `cpu` is exhausted, and its bottom half is not done.
    pub(crate) fn budget_exhausted(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.now;
        let served = self.served(task).expect("only servers have budgets");
        let mut actions = Vec::new();
        served.server.timeout(now, &mut actions);
        // One that goes on does so when its CPU has looked at its new priority.
        served.server.stop(now, &mut actions);
        self.follow_server(cpu, task, &actions, Throttled::AmidWork);
        if self.served(task).is_some_and(|served| served.throttled == Throttled::AmidWork) {
            self.give_up(cpu, task);
        } else {
            self.touch(cpu);
        }
    }

    /// The thread leaves `cpu` until its server has budget again.
    fn give_up(&mut self, cpu: CpuId, task: TaskId) {
        let job = self.job_id(task);
        self.sink.record(self.now, Event::Suspend { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Suspended { cpu: self.local_cpu(cpu, cluster), task: local };
        self.tell(cluster, event);
        self.vacate(cpu, task);
        self.tasks[task.index()].timer_cpu = cpu;
    }

    /// The server of `task` may have a budget again.
    pub(crate) fn replenish(&mut self, task: TaskId) {
        let now = self.now;
        let cpu = self.tasks[task.index()].timer_cpu;
        let served = self.served(task).expect("only servers are replenished");
        let before = served.throttled;
        let mut actions = Vec::new();
        served.server.timeout(now, &mut actions);
        served.throttled = Throttled::No;
        self.follow_server(cpu, task, &actions, before);
        if self.served(task).is_some_and(|served| served.throttled != Throttled::No) {
            return;
        }
        match before {
            Throttled::BeforeWork => self.begin_bottom_half(cpu, task),
            Throttled::AmidWork => {
                let cpu = self.setup.dedicated.unwrap_or(cpu);
                self.raise(cpu, Interrupt::Resume(task));
            }
            Throttled::No => {}
        }
    }

    /// Carries out what the server of `task` says.
    fn follow_server(&mut self, cpu: CpuId, task: TaskId, actions: &[Action], throttled: Throttled) {
        for action in actions {
            match *action {
                Action::Ready { deadline } => self.server_ready(task, deadline),
                Action::Throttled { until } => {
                    self.served(task).expect("it acts").throttled = throttled;
                    self.tasks[task.index()].timer_cpu = cpu;
                    self.timers.push(Reverse(Timer { at: until, kind: TimerKind::Replenish(task) }));
                }
                Action::Replenished { budget, deadline } => {
                    self.sink.record(self.now, Event::Replenish { task, budget, deadline });
                }
            }
        }
    }

    /// The server of `task` competes with that deadline; a thread that is at work follows at once.
    fn server_ready(&mut self, task: TaskId, deadline: Instant) {
        let served = self.served(task).expect("it acts");
        served.level = served.plan.level.unwrap_or(deadline.as_nanos());
        let level = (served.level, task.0);
        let run = &mut self.tasks[task.index()];
        if !run.active || run.level == level {
            return;
        }
        run.level = level;
        self.record_priority(task, level);
        let (cluster, local) = self.local(task);
        self.tell(cluster, cpu::Event::Prioritized { task: local, level });
    }
}
