//! Tasks whose budgets are enforced: a job that computes more than its server gives it waits, or goes behind others.
//!
//! ```text
//!  release: begin the budget    call: take it back, charge it    section, lock, suspension, completion
//! (no job) ----------------> (computes: lent) --------------------> (in a call) --------> (own)
//!                                   ^    a budget, after a wait if need be   |   the end of it
//!                                   '----------------------------------------'-----------------
//! ```
//!
//! While the job computes its [`Supervisor`] has the budget. In a critical or non-preemptive section nothing is lent, as nothing
//! interrupts those; what they use is charged afterwards.

use std::cell::RefMut;
use std::sync::atomic::Ordering;

use laxity_model::{Instant, Nanos};
use laxity_policy::server::{Budget, Config, ServerLevel};
use laxity_sys::clock;

use crate::config::Rule;
use crate::supervisor::Supervisor;
use crate::system::BeginError;
use crate::task::{Job, Parameters, Phase, Task, TaskError};

/// The server that a task is.
#[derive(Debug)]
pub(crate) struct Served {
    supervisor: Supervisor<()>,
    /// `None`: the supervisor has it.
    budget: Option<Budget>,
    /// The CPU time of the thread up to which the budget is charged.
    charged: Nanos,
    /// The last job, with the deadline that it was released with.
    pub job: Option<Job>,
}

impl Served {
    /// Charges the budget, which is back, for what the thread used.
    fn charge(&mut self) {
        let used = clock::thread_cpu_time();
        if let Some(budget) = &mut self.budget {
            budget.charge(used.saturating_sub(self.charged), clock::now());
            budget.take_replenished().for_each(drop);
        }
        self.charged = used;
    }

    /// The budget, if it is back and there is none until then.
    fn throttled(&self) -> Option<Instant> {
        self.budget.as_ref().and_then(Budget::throttled)
    }

    /// It is `until`, and there is to be a budget.
    fn replenish(&mut self, until: Instant) {
        if let Some(budget) = &mut self.budget {
            budget.replenish(until);
            budget.take_replenished().for_each(drop);
        }
        self.charged = clock::thread_cpu_time();
    }

    /// The deadline by which the job is ranked from now on, if that is another one.
    fn take_postponed(&mut self) -> Option<Instant> {
        self.budget.as_mut().and_then(Budget::take_postponed)
    }
}

/// The budget that `parameters` ask for under `rule`, if one is to be enforced.
///
/// # Errors
/// [`BeginError`].
pub(crate) fn budget(parameters: &Parameters, rule: Rule) -> Result<Option<Budget>, BeginError> {
    let Some(kind) = parameters.server else { return Ok(None) };
    let &Parameters { ref name, period, deadline, budget, .. } = parameters;
    let budget = budget.ok_or_else(|| BeginError::NoBudget { task: name.clone() })?;
    let level = match rule {
        Rule::Edf => ServerLevel::Deadline { period, relative: deadline },
        Rule::RateMonotonic | Rule::DeadlineMonotonic | Rule::Given => ServerLevel::Fixed(parameters.level(rule)),
    };
    let built = Budget::new(Config { budget, period, kind: kind.into() }, level);
    built.map(Some).map_err(|error| BeginError::Server { task: name.clone(), error })
}

impl Task {
    /// The task is a server from now on. It has no job.
    ///
    /// # Errors
    /// [`BeginError`] if it cannot be supervised.
    pub(crate) fn enforce(&self, budget: Budget) -> Result<(), BeginError> {
        let supervisor = Supervisor::start(self, ()).map_err(|error| BeginError::Refused {
            task: self.parameters().name.clone(),
            action: "supervise its budget",
            error,
        })?;
        let served = Served { supervisor, budget: Some(budget), charged: Nanos::ZERO, job: None };
        *self.server.borrow_mut() = Some(Box::new(served));
        Ok(())
    }

    /// The server, if the task is one and this is its process.
    fn served(&self) -> Option<RefMut<'_, Served>> {
        let server = RefMut::filter_map(self.server.borrow_mut(), |server| server.as_deref_mut()).ok();
        server.filter(|_| self.membership.is_ours())
    }

    /// `job` is to be released: waits until there is a budget for it. Answers it with the deadline by which it is ranked.
    pub(crate) fn begin_budget(&self, job: Job) -> Job {
        let Some(mut served) = self.served() else { return job };
        (served.job, served.charged) = (Some(job), clock::thread_cpu_time());
        served.budget.iter_mut().for_each(|budget| budget.begin(job.release.min(clock::now())));
        while let Some(until) = served.throttled() {
            clock::sleep_until(until);
            served.replenish(until);
        }
        served.take_postponed();
        served.budget.iter_mut().for_each(|budget| budget.take_replenished().for_each(drop));
        let deadline = served.budget.as_ref().map_or(job.deadline, |budget| budget.ranked(job.deadline));
        Job { deadline, ..job }
    }

    /// Does `act`, a call by which the job may stop or begin to compute. If it computes before, its budget is charged; if it
    /// computes after, it has one first.
    ///
    /// # Errors
    /// Those of `act`, and [`TaskError`].
    pub(crate) fn charged<T>(&self, act: impl FnOnce() -> Result<T, TaskError>) -> Result<T, TaskError> {
        let Some(served) = self.served() else { return act() };
        take_budget(served)?;
        let outcome = act();
        let computes = self.compute();
        outcome.and_then(|outcome| computes.map(|()| outcome))
    }

    /// If the job computes now, it has a budget, and the supervisor looks after it.
    fn compute(&self) -> Result<(), TaskError> {
        while let Some(mut served) = self.served() {
            let sections = self.shared().sections(self.id()).load(Ordering::Relaxed);
            if self.phase.get() != Phase::Pending || self.held.get() > 0 || sections > 0 {
                return Ok(());
            }
            if let Some(until) = served.throttled() {
                drop(served);
                self.suspend_now(&mut ())?;
                clock::sleep_until(until);
                let postponed = self.served().and_then(|mut served| {
                    served.replenish(until);
                    served.take_postponed()
                });
                postponed.map(|deadline| self.postpone_now(deadline)).transpose()?;
                self.resume_now(&mut ())?;
            } else if let Some(deadline) = served.take_postponed() {
                drop(served);
                self.postpone_going_on(deadline, &mut ())?;
            } else {
                let Served { supervisor, budget, charged, job } = &mut *served;
                if let (Some(budget), Some(job)) = (budget.take(), job) {
                    supervisor.lend(budget, *charged, job.index);
                }
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The budget comes back, if it is lent, and is charged.
fn take_budget(mut served: RefMut<'_, Served>) -> Result<(), TaskError> {
    if served.budget.is_some() {
        served.charge();
        return Ok(());
    }
    let Some(returned) = served.supervisor.take_back(|| true) else { return Ok(()) };
    (served.budget, served.charged) = (Some(returned.budget), returned.charged);
    served.charge();
    returned.outcome
}
