//! The protocols of locks, as far as a header and the records before tell.

use laxity_model::{EngineOrder, Instant, LockId, Nanos, TaskId};

use super::super::super::Violation;
use crate::replay::Level;
use crate::{LockKind, TraceHeader};

/// What a lock gives its holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Nothing.
    None,
    /// The priority above all.
    Highest,
    /// To each of its holders the priority of each job that waits.
    Inheritance,
    /// The same, or its ceiling: the header does not say which.
    Resource,
    /// The priority of a job that waits to one of the holders: the lock has a queue for each.
    OneInherits,
    /// That of a job that waits to a holder, or to another one that waits. Where the tokens are those of one GPU, a holder
    /// is as urgent as any job that waits.
    Tokens { is_one_gpu: bool },
}

/// The locks of a trace. Of a resource that is granted by priority, what its jobs do tells inheritance from a ceiling.
#[derive(Clone, Debug)]
pub(super) struct Protocols {
    by_deadline: bool,
    /// Of each task, its level under fixed priorities and its relative deadline.
    tasks: Vec<(u64, Nanos)>,
    locks: Vec<OfLock>,
    /// Violations of either protocol, found when the other was refuted.
    refuted: Vec<Violation>,
}

#[derive(Clone, Debug)]
struct OfLock {
    protocol: Protocol,
    inherits: bool,
    has_ceiling: bool,
    /// The first record that only a ceiling explains.
    needs_ceiling: Option<Violation>,
    /// The ceiling, once a holder had it under fixed priorities.
    ceiling: Option<Level>,
    /// The most urgent task that asked for it: under EDF, the one of the shortest relative deadline.
    user: Option<(u64, TaskId)>,
}

impl Protocols {
    pub fn new(header: &TraceHeader) -> Protocols {
        let protocol = |kind: &LockKind| match kind {
            LockKind::Semaphore { .. } => Protocol::None,
            LockKind::Bandwidth => Protocol::Highest,
            LockKind::Resource { order: EngineOrder::Priority } => Protocol::Resource,
            LockKind::Resource { order: EngineOrder::Fifo } | LockKind::Engine { .. } => Protocol::Inheritance,
            LockKind::KFmlp { .. } => Protocol::OneInherits,
            // A job that names a GPU may wait while no other does for that one, and gives to none. Where budgets end
            // within sections, requests are admitted that give to no holder.
            LockKind::Tokens { gpus } => Protocol::Tokens { is_one_gpu: gpus.len() == 1 && header.servers.is_empty() },
        };
        let lock = |kind: &LockKind| OfLock {
            protocol: protocol(kind),
            inherits: true,
            has_ceiling: protocol(kind) == Protocol::Resource,
            needs_ceiling: None,
            ceiling: None,
            user: None,
        };
        Protocols {
            by_deadline: header.scheduler.rule.goes_by_deadline(),
            tasks: header.tasks.iter().map(|info| (u64::from(info.rank) + 1, info.deadline)).collect(),
            locks: header.locks.iter().map(|info| lock(&info.kind)).collect(),
            refuted: Vec::new(),
        }
    }

    pub fn of(&self, lock: LockId) -> Protocol {
        self.locks.get(lock.index()).map_or(Protocol::None, |lock| lock.protocol)
    }

    /// Whether its holders may inherit.
    pub fn may_inherit(&self, lock: LockId) -> bool {
        self.locks.get(lock.index()).is_some_and(|lock| lock.inherits)
    }

    /// A job of `task` asks for it.
    pub fn learn_user(&mut self, lock: LockId, task: TaskId) {
        let Some(&(level, relative)) = self.tasks.get(task.index()) else { return };
        let Some(lock) = self.locks.get_mut(lock.index()) else { return };
        let user = (if self.by_deadline { relative.0 } else { level }, task);
        lock.user = Some(lock.user.map_or(user, |before| before.min(user)));
    }

    /// The level to which the ceiling raises a holder since then, as far as users are known: or a higher one.
    fn ceiling(&self, lock: &OfLock, since: Instant) -> Option<Level> {
        let (level, task) = lock.user?;
        Some((if self.by_deadline { since.0.saturating_add(level) } else { level }, task))
    }

    /// Whether `level`, of a holder since then, is lower than the ceiling of `lock`, if it has one.
    pub fn is_below_ceiling(&self, lock: LockId, since: Instant, level: Level) -> bool {
        let lock = self.locks.get(lock.index());
        lock.and_then(|lock| self.ceiling(lock, since)).is_some_and(|ceiling| level > ceiling)
    }

    /// Whether `level` may be the ceiling of `lock`, for a holder since then: that of a task which may use it, no lower
    /// than those of the tasks that did.
    pub fn may_be_ceiling(&self, lock: LockId, since: Instant, level: Level) -> bool {
        let Some(lock) = self.locks.get(lock.index()).filter(|lock| lock.has_ceiling) else { return false };
        let Some(&(rank, relative)) = self.tasks.get(level.1.index()) else { return false };
        let raised = if self.by_deadline { since.0.saturating_add(relative.0) } else { rank };
        raised == level.0
            && self.ceiling(lock, since).is_none_or(|known| level <= known)
            && lock.ceiling.is_none_or(|ceiling| ceiling == level)
    }

    /// A holder of `lock` lacks what it would inherit. Answers whether that is a violation by now: not where the lock may
    /// have a ceiling.
    pub fn refute_inheritance(&mut self, lock: LockId, violation: Violation) -> bool {
        let Some(lock) = self.locks.get_mut(lock.index()) else { return false };
        if lock.has_ceiling {
            lock.inherits = false;
            lock.needs_ceiling.get_or_insert(violation);
        }
        !lock.has_ceiling
    }

    /// A holder of `lock` has a level that only a ceiling explains.
    pub fn need_ceiling(&mut self, lock: LockId, level: Level, violation: Violation) {
        let by_deadline = self.by_deadline;
        if let Some(lock) = self.locks.get_mut(lock.index()) {
            lock.inherits = false;
            lock.needs_ceiling.get_or_insert(violation);
            lock.ceiling = Some(level).filter(|_| !by_deadline);
        }
    }

    /// A holder of `lock` is below every ceiling that it could have: its holders inherit.
    pub fn refute_ceiling(&mut self, lock: LockId) {
        if let Some(lock) = self.locks.get_mut(lock.index()) {
            (lock.has_ceiling, lock.inherits) = (false, true);
            self.refuted.extend(lock.needs_ceiling.take());
        }
    }

    /// What was wrong before, under the one protocol that is left.
    pub fn refuted(&mut self) -> impl Iterator<Item = Violation> + '_ {
        self.refuted.drain(..)
    }
}
