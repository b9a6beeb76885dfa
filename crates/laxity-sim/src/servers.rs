//! Bandwidth servers: tasks with a budget, and the interrupt threads that klmirqd gives devices that serve no job.
//!
//! ```text
//!   work     .########....###|            |###.
//!   budget                   | exhausted: | replenished
//!                            | waits (hard, sporadic), or goes on, due later (soft)
//! ```
//!
//! A server is charged for what its jobs execute: not for interrupts on their CPU, and not while they are suspended.
//! Whoever is in a critical section when the budget is exhausted goes on to its end, uncharged, and is throttled then:
//! GPUSync's signal is masked inside lock and GPU calls, and here a section is one such call. Tokens then admit the next
//! waiter at once ([`Enforcement`]).
//!
//! Source: paper 000, section III (independent threads); GPUSync's rules for budgets.

use std::cmp::Reverse;

use laxity_model::{CpuId, Instant, LockId, TaskId};
use laxity_policy::cpu::{self, Priority};
use laxity_policy::lock;
use laxity_policy::lock::budget::{self, Enforcement};
use laxity_policy::server::{Action, Server};
use laxity_trace::{Event, Sink};

use crate::Simulator;
use crate::interrupt::Interrupt;
use crate::simulator::{Activity, Timer, TimerKind};
use laxity_plan::{Plan, ServerLevel, ServerPlan};

/// A server and the task or thread it serves.
pub(crate) struct Served {
    server: Box<dyn Server>,
    plan: ServerPlan,
    /// The level at which it competes.
    level: u64,
    throttled: Throttled,
    /// What the budget of the pending job means for the locks it holds.
    enforcement: Enforcement,
}

/// What waits for the next budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Throttled {
    /// Nothing: there is budget.
    No,
    /// The next job, which is released and not yet ready.
    BeforeWork,
    /// The job, which gave its CPU up.
    AmidWork,
    /// Nothing yet: the job goes on to the end of its section.
    InSection,
}

impl Served {
    /// The server of every task and thread that has one; empty if none has.
    pub fn all(plan: &Plan) -> Vec<Option<Served>> {
        let served = |plan: &ServerPlan| Served {
            server: plan.config.build().expect("validation saw to it that a server has a budget"),
            plan: *plan,
            level: 0,
            throttled: Throttled::No,
            enforcement: Enforcement::new(),
        };
        if plan.tasks.iter().all(|task| task.server.is_none()) {
            return Vec::new();
        }
        plan.tasks.iter().map(|task| task.server.as_deref().map(served)).collect()
    }

    /// The level at which it competes.
    pub fn level(&self) -> u64 {
        self.level
    }
}

impl<S: Sink> Simulator<S> {
    fn served(&mut self, task: TaskId) -> Option<&mut Served> {
        self.servers.get_mut(task.index())?.as_mut()
    }

    /// There is a job, or a bottom half, for `task` to begin; answers whether it may begin now. If not, it is begun as
    /// soon as it may.
    #[inline(never)]
    pub(crate) fn server_has_work(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let now = self.now;
        let Some(served) = self.served(task) else { return true };
        if served.throttled == Throttled::BeforeWork {
            return false;
        }
        let mut actions = Vec::new();
        served.server.wake(now, &mut actions);
        self.follow_server(cpu, task, &actions, Throttled::BeforeWork);
        let served = self.served(task).expect("as before");
        if served.throttled != Throttled::No {
            return false;
        }
        served.enforcement = Enforcement::new();
        let level = served.level;
        self.tasks[task.index()].sharing.level = (level, task.0);
        true
    }

    /// The deadline by which the job of `task` that is due at `deadline` is ranked.
    pub(crate) fn server_deadline(&self, task: TaskId, deadline: Instant) -> Instant {
        match self.servers.get(task.index()) {
            Some(Some(Served { plan: ServerPlan { level: ServerLevel::Deadline { .. }, .. }, level, .. })) => {
                Instant(*level)
            }
            _ => deadline,
        }
    }

    /// `task` executes on `cpu` from now on: no longer than it has budget.
    #[inline(never)]
    pub(crate) fn server_runs(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.now;
        let Some(served) = self.served(task).filter(|served| served.throttled == Throttled::No) else { return };
        served.server.run(now);
        if let Some(exhausted) = served.server.next_timeout() {
            let end = &mut self.ends[cpu.index()];
            *end = exhausted.min(*end);
        }
    }

    /// `task`, whose job is not complete, stops executing on `cpu`.
    #[inline(never)]
    pub(crate) fn server_stops(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.now;
        let Some(served) = self.served(task) else { return };
        let mut actions = Vec::new();
        served.server.stop(now, &mut actions);
        self.follow_server(cpu, task, &actions, Throttled::InSection);
    }

    /// A segment of `task` on `cpu` has ended. Answers whether that is all: its step is not done.
    #[inline(never)]
    pub(crate) fn end_of_budget(&mut self, cpu: CpuId, task: TaskId) -> bool {
        if self.served(task).is_none() {
            return false;
        }
        let executed = (self.now - self.cpus[cpu.index()].since).as_nanos();
        self.server_stops(cpu, task);
        let run = &mut self.tasks[task.index()];
        if !run.spinning {
            run.remaining -= executed;
            if run.remaining == 0 {
                return false;
            }
        }
        if self.must_give_up(task) {
            self.give_up(cpu, task);
        }
        self.touch(cpu);
        true
    }

    /// Whether the job of `task` has no budget, and no section to end first.
    #[inline(never)]
    pub(crate) fn must_give_up(&mut self, task: TaskId) -> bool {
        let masked = self.tasks[task.index()].non_preemptive;
        self.served(task)
            .is_some_and(|served| served.throttled == Throttled::InSection && served.enforcement.is_barred() && !masked)
    }

    /// The job of `task` leaves `cpu` until there is budget again.
    #[inline(never)]
    pub(crate) fn give_up(&mut self, cpu: CpuId, task: TaskId) {
        self.served(task).expect("only who has a budget can be without").throttled = Throttled::AmidWork;
        let job = self.job_id(task);
        if self.tasks[task.index()].spinning {
            self.sink.record(self.now, Event::SpinEnd { cpu, job });
        }
        self.sink.record(self.now, Event::Suspend { cpu, job });
        let (cluster, local) = self.local(task);
        let event = cpu::Event::Suspended { cpu: self.local_cpu(cpu, cluster), task: local };
        self.tell(cluster, event);
        self.vacate(cpu, task);
        self.tasks[task.index()].timer_cpu = cpu;
    }

    /// The job of `task`, on `cpu`, is complete; `more`: the next has been released.
    #[inline(never)]
    pub(crate) fn server_finished(&mut self, cpu: CpuId, task: TaskId, more: bool) {
        let now = self.now;
        let Some(served) = self.served(task) else { return };
        let mut actions = Vec::new();
        if more {
            served.server.stop(now, &mut actions);
        } else {
            served.server.idle(now);
        }
        if served.throttled == Throttled::InSection {
            served.throttled = if more { Throttled::BeforeWork } else { Throttled::No };
        }
        self.follow_server(cpu, task, &actions, Throttled::BeforeWork);
    }

    /// The server of `task` may have a budget again.
    #[inline(never)]
    pub(crate) fn replenish(&mut self, task: TaskId) {
        let now = self.now;
        let cpu = self.tasks[task.index()].timer_cpu;
        let served = self.served(task).expect("only servers are replenished");
        let mut actions = Vec::new();
        served.server.timeout(now, &mut actions);
        if !actions.iter().any(|action| matches!(action, Action::Ready { .. })) {
            // The timer of a budget that nobody waited for any more.
            return;
        }
        let throttled = std::mem::replace(&mut served.throttled, Throttled::No);
        served.enforcement.handle(budget::Event::Replenished, &mut Vec::new());
        self.follow_server(cpu, task, &actions, throttled);
        match throttled {
            Throttled::BeforeWork if task.index() < self.plan.threads.first_task => self.make_ready(cpu, task),
            Throttled::BeforeWork => self.begin_bottom_half(cpu, task),
            Throttled::AmidWork => {
                let cpu = self.plan.dedicated.unwrap_or(cpu);
                self.raise(cpu, Interrupt::Resume(task));
            }
            Throttled::InSection => {
                let executes =
                    |cpu: &usize| self.cpus[*cpu].process == Some(task) && self.cpus[*cpu].activity == Activity::Job;
                if let Some(cpu) = (0..self.cpus.len()).find(executes) {
                    self.server_runs(CpuId(cpu as u16), task);
                }
            }
            Throttled::No => {}
        }
    }

    /// Carries out what the server of `task` says; `throttled` waits for budget if there is none.
    fn follow_server(&mut self, cpu: CpuId, task: TaskId, actions: &[Action], throttled: Throttled) {
        for action in actions {
            match *action {
                Action::Ready { deadline } => self.server_ready(cpu, task, deadline),
                Action::Throttled { until } => {
                    let served = self.served(task).expect("it acts");
                    served.throttled = throttled;
                    self.tasks[task.index()].timer_cpu = cpu;
                    self.timers.push(Reverse(Timer { at: until, kind: TimerKind::Replenish(task) }));
                    if throttled == Throttled::InSection {
                        self.enforce(cpu, task, budget::Event::Exhausted);
                    }
                }
                Action::Replenished { budget, deadline } => {
                    self.sink.record(self.now, Event::Replenish { task, budget, deadline });
                }
            }
        }
    }

    /// The server of `task` competes with that deadline; a job that is pending follows at once.
    fn server_ready(&mut self, cpu: CpuId, task: TaskId, deadline: Instant) {
        let served = self.served(task).expect("it acts");
        served.level = match served.plan.level {
            ServerLevel::Fixed(level) => level,
            ServerLevel::Deadline { period, relative } => deadline.as_nanos() - period.0 + relative.0,
        };
        let level = (served.level, task.0);
        let run = &mut self.tasks[task.index()];
        if !run.active || run.sharing.level == level {
            return;
        }
        run.sharing.level = level;
        if task.index() < self.plan.threads.first_task && self.locking.is_some() {
            let priority = Priority::of(level.0, task);
            return self.arbitrate(cpu, lock::Event::Rebase { priority });
        }
        self.record_priority(task, level);
        let (cluster, local) = self.local(task);
        self.tell(cluster, cpu::Event::Prioritized { task: local, level });
    }

    // --- Locks and budgets ---------------------------------------------------------------------------------------

    /// The job of `task` asks for `lock`; from the first that it holds to the last it is not interrupted.
    pub(crate) fn enforce_request(&mut self, cpu: CpuId, task: TaskId, lock: LockId) {
        if self.served(task).is_some() {
            if self.tasks[task.index()].sharing.held.is_empty() {
                self.enforce(cpu, task, budget::Event::CallEntered);
            }
            self.enforce(cpu, task, budget::Event::Request { lock });
        }
    }

    /// It has given `lock` up.
    pub(crate) fn enforce_unlock(&mut self, cpu: CpuId, task: TaskId, lock: LockId) {
        if self.served(task).is_some() {
            self.enforce(cpu, task, budget::Event::Unlocked { lock });
            if self.tasks[task.index()].sharing.held.is_empty() {
                self.enforce(cpu, task, budget::Event::CallLeft);
            }
        }
    }

    pub(crate) fn enforce(&mut self, cpu: CpuId, task: TaskId, event: budget::Event) {
        let Some(served) = self.served(task) else { return };
        let mut actions = Vec::new();
        served.enforcement.handle(event, &mut actions);
        for action in actions {
            match action {
                // The step that asks is under way.
                budget::Action::Request { .. } => {}
                budget::Action::Admit { lock } => self.arbitrate(cpu, lock::Event::Overrun { task, lock }),
                budget::Action::Withdraw { .. } => unreachable!("a job that waits does not execute"),
                budget::Action::Synchronize | budget::Action::Unlock { .. } => {
                    unreachable!("the signal is masked for as long as a lock is held")
                }
            }
        }
    }
}
