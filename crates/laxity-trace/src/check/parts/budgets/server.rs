//! The rules of each kind of server.

use laxity_model::{Instant, Nanos, ServerKind};

use super::BudgetProblem;
use super::supply::Supply;
use crate::ServerInfo;

/// A server, as its trace says.
#[derive(Clone, Debug)]
pub(super) struct Server {
    kind: ServerKind,
    budget: Nanos,
    period: Nanos,
    is_simulated: bool,
    given: Option<Given>,
    /// Whether it may be without work, or was when the job came that is not ready yet.
    pub was_idle: bool,
    /// Whether a job was complete since it was given its budget.
    pub has_completed: bool,
    /// Jobs that are released and not complete, and when the last one was.
    pub pending: u32,
    pub released: Instant,
    /// Used of that budget, up to the use `counted` of the CPU that its job has.
    pub used: Nanos,
    pub counted: Nanos,
    /// Until when.
    pub used_until: Instant,
    /// What it may use of it: more if a section outlasted the budget.
    pub limit: Nanos,
    /// Sections that its job is in.
    pub sections: u32,
    pub is_reported: bool,
    /// Of a sporadic server.
    supply: Supply,
}

/// The last budget.
#[derive(Clone, Copy, Debug)]
struct Given {
    budget: Nanos,
    deadline: Instant,
    /// How much of it is accounted for.
    covered: Nanos,
}

/// By how much a live job may be complete before its trace says so.
pub(super) const SLACK: Nanos = Nanos::from_millis(5);

impl Server {
    pub fn new(info: &ServerInfo, is_simulated: bool) -> Server {
        Server {
            kind: info.kind,
            budget: info.budget,
            period: info.period,
            is_simulated,
            given: None,
            was_idle: true,
            has_completed: false,
            pending: 0,
            released: Instant::ZERO,
            used: Nanos::ZERO,
            counted: Nanos::ZERO,
            used_until: Instant::ZERO,
            limit: Nanos::ZERO,
            sections: 0,
            is_reported: false,
            supply: Supply::whole(info.budget),
        }
    }

    /// It is given a budget; answers what is wrong with that.
    pub fn give(&mut self, at: Instant, budget: Nanos, deadline: Instant) -> Option<BudgetProblem> {
        let back = match self.kind {
            ServerKind::Sporadic => {
                self.give_back();
                self.supply.take(self.begin_of(deadline), budget)
            }
            ServerKind::CbsHard | ServerKind::CbsSoft => budget,
        };
        let wrong = self.size_problem(budget).or_else(|| match self.kind {
            ServerKind::CbsHard => self.hard_problem(at, deadline),
            ServerKind::CbsSoft => self.soft_problem(at, deadline),
            ServerKind::Sporadic => self.sporadic_problem(at, deadline),
        });
        self.given = Some(Given { budget, deadline, covered: back });
        (self.used, self.limit) = (Nanos::ZERO, budget);
        (self.was_idle, self.has_completed, self.is_reported) = (self.pending == 0, false, false);
        wrong.or_else(|| (back < budget).then_some(BudgetProblem::NotBack { budget, back }))
    }

    /// When the budget that is due at `deadline` begins.
    fn begin_of(&self, deadline: Instant) -> Instant {
        Instant(deadline.0.saturating_sub(self.period.0))
    }

    /// Whether the trace says that the last budget is used up.
    fn is_exhausted(&self) -> bool {
        self.given.is_some_and(|given| self.used >= given.budget)
    }

    /// What was used of the last budget comes back a period after that began, and not before its use ended. The rest is still
    /// there. How much it was is known in simulated traces alone, or where there was always work.
    fn give_back(&mut self) {
        let Some(Given { deadline, covered, .. }) = self.given else { return };
        let begin = self.begin_of(deadline);
        let back = begin.saturating_add(self.period);
        let (used, back) = match (self.is_simulated, self.has_completed) {
            (true, _) => (self.used.min(covered), back.max(self.used_until)),
            (false, true) => (Nanos::ZERO, back),
            (false, false) => (covered, back),
        };
        self.supply.put(begin, covered - used);
        self.supply.put(back, used);
    }

    fn size_problem(&self, budget: Nanos) -> Option<BudgetProblem> {
        let whole = self.budget;
        match self.kind {
            _ if budget > whole => Some(BudgetProblem::Large { budget, whole }),
            // Live what was used beyond the last one is missing.
            ServerKind::CbsHard | ServerKind::CbsSoft if self.is_simulated && budget < whole => {
                Some(BudgetProblem::Small { budget, whole })
            }
            _ => None,
        }
    }

    /// It must be due a period after it was given: exactly so in simulated traces, where `is_exact`.
    fn period_problem(&self, at: Instant, deadline: Instant, is_exact: bool) -> Option<BudgetProblem> {
        let expected = at.saturating_add(self.period);
        if deadline > expected {
            return Some(BudgetProblem::Late { deadline, latest: expected });
        }
        (is_exact && deadline < expected).then_some(BudgetProblem::Short { deadline, expected })
    }

    fn hard_problem(&self, at: Instant, deadline: Instant) -> Option<BudgetProblem> {
        if let Some(what) = self.period_problem(at, deadline, self.is_simulated) {
            return Some(what);
        }
        let Some(given) = self.given.filter(|_| !self.was_idle) else { return self.waking_problem(at) };
        let due = given.deadline;
        // Live it may have been idle a little earlier than the trace says.
        if at < due || self.begin_of(deadline).saturating_add(SLACK) < due {
            return Some(BudgetProblem::Early { due });
        }
        self.unused_problem()
    }

    fn soft_problem(&self, at: Instant, deadline: Instant) -> Option<BudgetProblem> {
        if let Some(Given { deadline: before, .. }) = self.given {
            // Its deadline was postponed, while it had work or with the end of that.
            let later = deadline.0.saturating_sub(before.0);
            let is_postponed = later > 0 && later.is_multiple_of(self.period.0.max(1));
            match (self.is_simulated, self.was_idle) {
                (false, _) if is_postponed => return None,
                (true, _) if later == self.period.0 && self.is_exhausted() => return None,
                (true, false) if later == self.period.0 => return self.unused_problem(),
                (_, false) => return Some(BudgetProblem::OffPeriod { deadline, before }),
                _ => {}
            }
        }
        self.period_problem(at, deadline, self.is_simulated).or_else(|| self.waking_problem(at))
    }

    fn sporadic_problem(&self, at: Instant, deadline: Instant) -> Option<BudgetProblem> {
        // The next part of a budget that is used up may have been there for some time.
        let is_next = self.is_exhausted();
        self.period_problem(at, deadline, self.is_simulated && !is_next).or_else(|| match self.was_idle {
            true => None,
            false => self.unused_problem(),
        })
    }

    /// A server that had work all the time gets another budget when this one is used up. Live it may have used it unseen.
    fn unused_problem(&self) -> Option<BudgetProblem> {
        let left = self.given.filter(|_| self.is_simulated)?.budget.0.saturating_sub(self.used.0);
        (left > 0).then_some(BudgetProblem::Unused { left: Nanos(left) })
    }

    /// A server that wakes up gets a new one if what is left of the old one would exceed its bandwidth until that is due.
    fn waking_problem(&self, at: Instant) -> Option<BudgetProblem> {
        let Given { budget, deadline: due, .. } = self.given.filter(|_| self.is_simulated)?;
        let left = u128::from(budget.0.saturating_sub(self.used.0)) * u128::from(self.period.0);
        let is_kept = at < due && left < u128::from((due - at).0) * u128::from(self.budget.0);
        is_kept.then_some(BudgetProblem::Early { due })
    }
}
