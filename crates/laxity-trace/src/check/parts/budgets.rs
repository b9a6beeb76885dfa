//! Servers that tasks are: budgets are no larger and come no earlier than their rules say, and jobs execute on no more.

use std::fmt;

use laxity_model::{Instant, JobId, Nanos, ServerKind, TaskId};

use super::super::{Problem, Report, Violation};
use crate::replay::Replay;
use crate::{Event, Origin, TraceHeader};

/// Finds budgets that are too large, given too early, or due too late or at a wrong time, and jobs that execute for longer
/// than their budget: but for the section in which they use it up. How much of a budget was used is judged in simulated traces
/// alone, as live a job may lose its CPU unseen.
///
/// Sources of the rules: Abeni & Buttazzo, RTSS 1998 (constant bandwidth servers); Sprunt, Sha & Lehoczky 1989 (sporadic
/// server).
#[derive(Debug)]
pub(super) struct Budgets {
    /// By task; `None` if it is no server. Empty if none is.
    servers: Vec<Option<Server>>,
    is_simulated: bool,
}

#[derive(Clone, Debug)]
struct Server {
    kind: ServerKind,
    budget: Nanos,
    period: Nanos,
    /// The last budget that it was given, and when that is due.
    given: Option<(Nanos, Instant)>,
    /// Whether it was without work since.
    was_idle: bool,
    /// Jobs that are released and not complete, and when the last one was.
    pending: u32,
    released: Instant,
    /// Executed on that budget, up to the execution `counted` of the job that has a CPU.
    used: Nanos,
    counted: Nanos,
    /// What it may execute on it: more if a section outlasted the budget.
    limit: Nanos,
    /// Sections that its job is in.
    sections: u32,
    is_reported: bool,
}

/// By how much a live job may be complete before its trace says so.
const SLACK: Nanos = Nanos::from_millis(5);

impl Budgets {
    pub fn new(header: &TraceHeader) -> Self {
        let count = if header.servers.is_empty() { 0 } else { header.tasks.len() };
        let mut servers = vec![None; count];
        for info in &header.servers {
            let server = Server {
                kind: info.kind,
                budget: info.budget,
                period: info.period,
                given: None,
                was_idle: true,
                pending: 0,
                released: Instant::ZERO,
                used: Nanos::ZERO,
                counted: Nanos::ZERO,
                limit: Nanos::ZERO,
                sections: 0,
                is_reported: false,
            };
            if let Some(place) = servers.get_mut(info.task.index()) {
                *place = Some(server);
            }
        }
        Budgets { servers, is_simulated: header.origin == Origin::Simulated }
    }

    /// `before`: what was true before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Replay, report: &mut Report) {
        if self.servers.is_empty() {
            return;
        }
        match event {
            Event::Release { job, .. } => self.with(job.task, |server| {
                server.pending += 1;
                server.released = at;
            }),
            Event::Dispatch { job, .. } => self.with(job.task, |server| server.counted = Nanos::ZERO),
            Event::Preempt { job, .. } | Event::Suspend { job, .. } => self.count(at, job, before, report),
            Event::Complete { job, .. } => {
                self.count(at, job, before, report);
                // Live it says so a little late: it may have been complete when the next one was released.
                let slack = if self.is_simulated { Nanos::ZERO } else { SLACK };
                self.with(job.task, |server| {
                    server.pending = server.pending.saturating_sub(1);
                    // Of one instant, the completion comes before the release.
                    let meets_the_next = server.pending == 1 && server.released == at;
                    let since = at.saturating_since(server.released);
                    server.was_idle |= server.pending == 0 || meets_the_next || since < slack;
                    server.sections = 0;
                });
            }
            Event::NonPreemptiveBegin { job, .. } | Event::Grant { job, .. } => {
                self.with(job.task, |server| server.sections += 1);
            }
            Event::NonPreemptiveEnd { job, .. } | Event::Unlock { job, .. } => {
                self.count(at, job, before, report);
                self.with(job.task, |server| {
                    server.sections = server.sections.saturating_sub(1);
                    server.limit = server.limit.max(server.used);
                });
            }
            Event::Replenish { task, budget, deadline } => {
                if let Some(job) = running(task, before) {
                    self.count(at, job, before, report);
                }
                self.replenish(at, task, (budget, deadline), report);
            }
            _ => {}
        }
    }

    fn server(&mut self, task: TaskId) -> Option<&mut Server> {
        self.servers.get_mut(task.index())?.as_mut()
    }

    fn with(&mut self, task: TaskId, change: impl FnOnce(&mut Server)) {
        if let Some(server) = self.server(task) {
            change(server);
        }
    }

    /// Counts what `job` has executed until `at`, if it has a CPU, and judges it.
    fn count(&mut self, at: Instant, job: JobId, before: &Replay, report: &mut Report) {
        let is_simulated = self.is_simulated;
        let Some(server) = self.server(job.task) else { return };
        let cpu = before.cpus().iter().find(|cpu| cpu.job() == Some(job));
        let Some(executed) = cpu.map(|cpu| cpu.executed_by(at)) else { return };
        let more = executed.0.saturating_sub(std::mem::replace(&mut server.counted, executed).0);
        server.used = Nanos(server.used.0.saturating_add(more));
        let exceeds = server.sections == 0 && server.used > server.limit;
        if is_simulated && exceeds && !std::mem::replace(&mut server.is_reported, true) {
            let what = Problem::ExceededBudget { executed: server.used, budget: server.limit };
            report.push(Violation { at, cpu: None, job: Some(job), what });
        }
    }

    fn replenish(&mut self, at: Instant, task: TaskId, given: (Nanos, Instant), report: &mut Report) {
        let is_simulated = self.is_simulated;
        let Some(server) = self.server(task) else { return };
        if let Some(what) = server.wrong(at, given, is_simulated) {
            report.push(Violation { at, cpu: None, job: None, what: Problem::WrongBudget { task, what } });
        }
        let (budget, _) = given;
        server.given = Some(given);
        (server.used, server.limit) = (Nanos::ZERO, budget);
        (server.was_idle, server.is_reported) = (server.pending == 0, false);
    }
}

/// The job of `task` that has a CPU.
fn running(task: TaskId, before: &Replay) -> Option<JobId> {
    before.cpus().iter().filter_map(|cpu| cpu.job()).find(|job| job.task == task)
}

/// What is wrong with a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetProblem {
    /// It is larger than a whole one.
    Large {
        /// It.
        budget: Nanos,
        /// A whole one.
        whole: Nanos,
    },
    /// The one before is not due yet, and the server has had work all the time, or left too little unused.
    Early {
        /// When that is due.
        due: Instant,
    },
    /// It is due more than a period after it was given.
    Late {
        /// When it is due.
        deadline: Instant,
        /// The latest that is allowed.
        latest: Instant,
    },
    /// A soft server's is not due whole periods after the one before.
    OffPeriod {
        /// When it is due.
        deadline: Instant,
        /// When the one before is.
        before: Instant,
    },
}

impl fmt::Display for BudgetProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BudgetProblem::Large { budget, whole } => {
                write!(f, "is given a budget of {budget}; a whole one is {whole}")
            }
            BudgetProblem::Early { due } => write!(f, "is given a budget while the one before is due at {due} only"),
            BudgetProblem::Late { deadline, latest } => {
                write!(
                    f,
                    "is given a budget that is due at {deadline}; it must be at {latest}, a period later, or before"
                )
            }
            BudgetProblem::OffPeriod { deadline, before } => write!(
                f,
                "goes on with a budget that is due at {deadline}, which is not whole periods after the one before, at {before}"
            ),
        }
    }
}

impl Server {
    /// What is wrong with the budget that it is given at `at`.
    fn wrong(&self, at: Instant, (budget, deadline): (Nanos, Instant), is_simulated: bool) -> Option<BudgetProblem> {
        if budget > self.budget {
            return Some(BudgetProblem::Large { budget, whole: self.budget });
        }
        let latest = at.saturating_add(self.period);
        let before = self.given.filter(|_| !self.was_idle);
        if let (ServerKind::CbsSoft, Some((_, due))) = (self.kind, self.given) {
            // Its deadline was postponed, while it had work or with the end of that.
            let later = deadline.0.saturating_sub(due.0);
            if later > 0 && later.is_multiple_of(self.period.0.max(1)) {
                return None;
            }
        }
        match (self.kind, before) {
            (ServerKind::CbsSoft, Some((_, before))) => return Some(BudgetProblem::OffPeriod { deadline, before }),
            _ if deadline > latest => return Some(BudgetProblem::Late { deadline, latest }),
            (ServerKind::CbsHard, Some((_, due))) if at < due => return Some(BudgetProblem::Early { due }),
            _ => {}
        }
        // A server that wakes up gets a new one if what is left of the old one would exceed its bandwidth until that is due.
        let (left, due) = self.given.filter(|_| is_simulated && self.kind != ServerKind::Sporadic)?;
        let left = u128::from(left.0.saturating_sub(self.used.0)) * u128::from(self.period.0);
        let is_kept = at < due && left < u128::from((due - at).0) * u128::from(self.budget.0);
        (self.was_idle && is_kept).then_some(BudgetProblem::Early { due })
    }
}
