//! What must hold of things other than the life of a job: part of [`LegalityCheck`](super::LegalityCheck).

mod budgets;
mod engines;
mod latest;
mod locks;
mod memory;
mod stacks;
mod threads;
mod tokens;

use laxity_model::Instant;

pub use self::budgets::BudgetProblem;

use self::budgets::Budgets;
use self::engines::Engines;
use self::latest::Latest;
use self::locks::Locks;
use self::memory::Memory;
use self::threads::Threads;
use self::tokens::Tokens;
use super::Report;
use crate::replay::Replay;
use crate::{Event, TraceHeader};

/// The parts, all of which see every record.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    budgets: Budgets,
    engines: Engines<'a>,
    latest: Latest<'a>,
    locks: Locks<'a>,
    memory: Memory<'a>,
    threads: Threads<'a>,
    tokens: Tokens<'a>,
}

impl<'a> Parts<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        Parts {
            budgets: Budgets::new(header),
            engines: Engines::new(header),
            latest: Latest::new(header),
            locks: Locks::new(header),
            memory: Memory::new(header),
            threads: Threads::new(header),
            tokens: Tokens::new(header),
        }
    }

    /// The recording begins with the first job of every task and lacks none.
    pub fn expect_all_jobs(&mut self) {
        self.latest.expect_all_jobs();
        self.tokens.expect_all_jobs();
    }

    /// Takes one event; times do not go back. `before`: what was true before it.
    pub fn record(&mut self, at: Instant, event: Event, before: &Replay, report: &mut Report) {
        self.budgets.record(at, event, before, report);
        self.engines.record(at, event, &before.details().engines, report);
        self.locks.record(at, event, before, report);
        self.memory.record(at, event, before, report);
        stacks::judge(at, event, before, report);
        self.threads.record(at, event, before, report);
        self.latest.record(at, event, report);
        self.tokens.record(at, event, report);
    }
}
