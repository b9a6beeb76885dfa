//! Bandwidth servers: tasks with a budget, and the interrupt threads that klmirqd gives devices that serve no job.
//!
//! ```text
//!   work     .########....###|            |###.
//!   budget                   | exhausted: | replenished
//!                            | waits (hard, sporadic), or goes on, due later (soft)
//! ```
//!
//! A server is charged for what its jobs execute: not for interrupts on their CPU, and not while they are suspended.
//! A job that is in a critical section when its budget is exhausted goes on to the end of the section, uncharged, and is
//! throttled then: GPUSync's signal is masked inside lock and GPU calls, and here a section is one such call. Tokens then
//! admit the next waiter at once ([`Enforcement`]).
//!
//! Source: paper 000, section III (independent threads); GPUSync's rules for budgets.

use laxity_model::{Instant, LockId};
use laxity_plan::{Plan, ServerPlan};
use laxity_policy::lock::budget::{self, Enforcement};
use laxity_policy::server::{self, Action, ServerLevel};

/// A server, and what waits for it.
pub(crate) struct Server {
    server: Box<dyn server::Server>,
    plan: ServerPlan,
    /// The level at which it competes.
    level: u64,
    throttled: Throttled,
    /// What the budget of the pending job means for the locks it holds.
    enforcement: Enforcement,
}

/// What waits for the next budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Throttled {
    /// Nothing: there is budget.
    No,
    /// The next job, which is released and not yet ready.
    BeforeWork,
    /// The job, which gave its CPU up.
    AmidWork,
    /// Nothing yet: the job goes on to the end of its section.
    InSection,
}

impl Server {
    /// The server of every task and thread that has one; empty if none has.
    pub fn all(plan: &Plan) -> Vec<Option<Server>> {
        let server = |plan: &ServerPlan| Server {
            server: plan.config.build().expect("validation saw to it that a server has a budget"),
            plan: *plan,
            level: 0,
            throttled: Throttled::No,
            enforcement: Enforcement::new(),
        };
        if plan.tasks.iter().all(|task| task.server.is_none()) {
            return Vec::new();
        }
        plan.tasks.iter().map(|task| task.server.as_deref().map(server)).collect()
    }

    /// The level at which it competes.
    pub fn level(&self) -> u64 {
        self.level
    }

    /// What waits for the next budget.
    pub fn throttled(&self) -> Throttled {
        self.throttled
    }

    /// From now on `throttled` waits for the next budget.
    pub fn throttle(&mut self, throttled: Throttled) {
        self.throttled = throttled;
    }

    /// There is work to begin.
    pub fn wake(&mut self, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        self.server.wake(now, &mut actions);
        actions
    }

    /// A job begins, if there is budget; answers the level at which it competes.
    pub fn begin(&mut self) -> Option<u64> {
        if self.throttled != Throttled::No {
            return None;
        }
        self.enforcement = Enforcement::new();
        Some(self.level)
    }

    /// The deadline by which a job is ranked that is due at `deadline`.
    pub fn ranked_deadline(&self, deadline: Instant) -> Instant {
        match self.plan.level {
            ServerLevel::Deadline { .. } => Instant(self.level),
            ServerLevel::Fixed(_) => deadline,
        }
    }

    /// The job executes from now on; answers when its budget will be exhausted.
    pub fn run(&mut self, now: Instant) -> Option<Instant> {
        if self.throttled != Throttled::No {
            return None;
        }
        self.server.run(now);
        self.server.next_timeout()
    }

    /// The job, which is not complete, stops executing.
    pub fn stop(&mut self, now: Instant) -> Vec<Action> {
        let mut actions = Vec::new();
        self.server.stop(now, &mut actions);
        actions
    }

    /// Whether the job has no budget, and no critical section to end first.
    pub fn must_give_up(&self) -> bool {
        self.throttled == Throttled::InSection && self.enforcement.is_barred()
    }

    /// The job is complete; `more`: the next one has been released.
    pub fn finish(&mut self, now: Instant, more: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        if more {
            self.server.stop(now, &mut actions);
        } else {
            self.server.idle(now);
        }
        if self.throttled == Throttled::InSection {
            self.throttled = if more { Throttled::BeforeWork } else { Throttled::No };
        }
        actions
    }

    /// The timer of a budget goes off; answers what waited for it. `None`: nothing does any more.
    pub fn replenish(&mut self, now: Instant) -> Option<(Throttled, Vec<Action>)> {
        let mut actions = Vec::new();
        self.server.timeout(now, &mut actions);
        if !actions.iter().any(|action| matches!(action, Action::Ready { .. })) {
            return None;
        }
        self.enforcement.handle(budget::Event::Replenished, &mut Vec::new());
        Some((std::mem::replace(&mut self.throttled, Throttled::No), actions))
    }

    /// It competes with that deadline; answers the level.
    pub fn compete(&mut self, deadline: Instant) -> u64 {
        self.level = match self.plan.level {
            ServerLevel::Fixed(level) => level,
            ServerLevel::Deadline { period, relative } => deadline.as_nanos() - period.0 + relative.0,
        };
        self.level
    }

    /// `event` happens to a lock that the job requests or holds, or to its budget; answers the locks whose next waiters are
    /// admitted at once.
    pub fn enforce(&mut self, event: budget::Event) -> Vec<LockId> {
        let mut actions = Vec::new();
        self.enforcement.handle(event, &mut actions);
        let admitted = |action| match action {
            budget::Action::Admit { lock } => Some(lock),
            // The step that requests it is under way.
            budget::Action::Request { .. } => None,
            budget::Action::Withdraw { .. } => unreachable!("a job that waits does not execute"),
            budget::Action::Synchronize | budget::Action::Unlock { .. } => {
                unreachable!("the signal is masked for as long as a lock is held")
            }
        };
        actions.into_iter().filter_map(admitted).collect()
    }
}
