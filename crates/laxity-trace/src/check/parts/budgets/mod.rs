//! Servers that tasks are: budgets are no larger and come no earlier than their rules say, and jobs execute on no more.

mod problem;
mod server;
mod supply;

use laxity_model::{Instant, JobId, Nanos, TaskId};

pub use self::problem::BudgetProblem;

use self::server::{SLACK, Server};
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

impl Budgets {
    pub fn new(header: &TraceHeader) -> Self {
        let count = if header.servers.is_empty() { 0 } else { header.tasks.len() };
        let mut servers = vec![None; count];
        let is_simulated = header.origin == Origin::Simulated;
        for info in &header.servers {
            if let Some(place) = servers.get_mut(info.task.index()) {
                *place = Some(Server::new(info, is_simulated));
            }
        }
        Budgets { servers, is_simulated }
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
            // Its spinning begins where that of the CPU's jobs before it ended.
            Event::Dispatch { cpu, job } => {
                let spun = before.cpus().get(cpu.index()).map_or(Nanos::ZERO, |cpu| cpu.spun_by(at));
                self.with(job.task, |server| server.counted = spun);
            }
            // It has a budget, and what it is given from now on is another one.
            Event::Ready { job, .. } => self.with(job.task, |server| server.was_idle = false),
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
                    (server.sections, server.has_completed) = (0, true);
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
        // A job that spins uses its budget, too.
        let Some(so_far) = cpu.map(|cpu| Nanos(cpu.executed_by(at).0.saturating_add(cpu.spun_by(at).0))) else {
            return;
        };
        let more = so_far.0.saturating_sub(std::mem::replace(&mut server.counted, so_far).0);
        server.used = Nanos(server.used.0.saturating_add(more));
        if more > 0 {
            server.used_until = at;
        }
        let exceeds = server.sections == 0 && server.used > server.limit;
        if is_simulated && exceeds && !std::mem::replace(&mut server.is_reported, true) {
            let what = Problem::ExceededBudget { executed: server.used, budget: server.limit };
            report.push(Violation { at, cpu: None, job: Some(job), what });
        }
    }

    fn replenish(&mut self, at: Instant, task: TaskId, (budget, deadline): (Nanos, Instant), report: &mut Report) {
        let Some(server) = self.server(task) else { return };
        if let Some(what) = server.give(at, budget, deadline) {
            report.push(Violation { at, cpu: None, job: None, what: Problem::WrongBudget { task, what } });
        }
    }
}

/// The job of `task` that has a CPU.
fn running(task: TaskId, before: &Replay) -> Option<JobId> {
    before.cpus().iter().filter_map(|cpu| cpu.job()).find(|job| job.task == task)
}
