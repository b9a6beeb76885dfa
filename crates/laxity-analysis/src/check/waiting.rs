//! How long jobs wait for resources, for GPUs, and for the engines of GPUs.
//!
//! The argument is suspension-oblivious, like that of all accounting here: what counts is the time during which a job i
//! waits *and is among the m most urgent pending jobs* by base priority. During that time the holder that it waits for, through
//! any number of locks, is at least as urgent as i by inheritance. Each job that inherits does so from a waiting job of
//! its own, because a job waits for one holder: a mutex has one, and a queue of the k-FMLP or of GPUSync, too. So at most
//! m - 1 ready jobs are more urgent than the one that i waits for, and that one runs or its GPU operation does: i waits only
//! while a holder executes its critical section. Under quanta and across ready queues this argument does not hold, and
//! waits are kept apart from execution instead ([`occupancy`](super::occupancy)).
//!
//! - **Any protocol**: of each other task's jobs pending in the window, the outermost critical sections with locks that
//!   may be in the way: each delays i once. This covers nested sections and priority queues.
//! - **FIFO, not nested**: at each request at most one of each other task is ahead.
//! - **k-FMLP, not nested**: the queue joined is the one that is shortest by declared lengths ("l-aware"), which are
//!   those of equations 1 and 3 of paper 000, appendix A; but what holders take beyond them is not divided by k,
//!   because nothing keeps it from being in one queue. Or it is the one of fewest requests (equation 2), so at most
//!   floor((n - 1) / k), the longest of them. A job that names its GPU joins that queue, whatever is there.
//! - **Tokens** of GPUSync, not nested: see [`tokens`](super::tokens).
//! - **Engines**, where the driver arbitrates: of each other task at most one operation is ahead at each operation.
//! - **Ceilings** raise a holder without anybody waiting, and all holders of **replicas** inherit from one job that waits.
//!   Then more jobs may be more urgent than there are jobs to inherit from, and one that asks for nothing may not run: but
//!   only while one of these executes a section with such a lock. So these sections of others count for every task. That is
//!   also all that its waits for such locks come to, since the holder of a replica executes, or one of these in its place.

use std::collections::BTreeSet;

use laxity_model::PriorityRule;

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::interrupts::jobs;
use super::lock_groups::{LockGroup, LockGroups};
use super::sharing::{Arbitration, Sharing};
use super::uses::{Demand, Lock, Operation, Request};
use crate::exact::floor_ticks;
use crate::klmirqd::{Blocking, blocking};

/// Nodes of the search for the exact blocking of a request under the k-FMLP.
const NODES_MAX: u64 = 5_000;

/// What a holder takes beyond what it does, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holding {
    /// Each time that it gets a CPU: once it is granted, after each suspension.
    pub dispatch: u64,
    /// The part of that for a section which cannot be preempted.
    pub section: u64,
    /// How late the scheduler may act on that, and on priorities that change: under quanta only.
    pub late: u64,
    /// Each interrupt of its GPU operations.
    pub interrupt: u64,
}

/// The waits of a cluster's members.
pub(super) struct Waiting<'a> {
    context: &'a Context<'a>,
    /// How long a job of each member may be pending.
    pending: &'a [u64],
    pub(super) holding: Holding,
    groups: LockGroups,
    /// The members that ask for locks which raise many at a time.
    raising: Vec<usize>,
    /// Of each member: the declared lengths that may be ahead of it in the queue it joins, by the exact program.
    declared_ahead: Vec<u64>,
}

/// What a job waits for in all, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    pub locks: u64,
    pub gpus: u64,
    pub engines: u64,
}

impl<'a> Waiting<'a> {
    /// `pending`: how long a job of each member may be pending.
    pub fn new(context: &'a Context<'a>, pending: &'a [u64], holding: Holding) -> Self {
        let groups = LockGroups::of(context);
        let mut waiting =
            Waiting { context, pending, holding, groups, raising: Vec::new(), declared_ahead: Vec::new() };
        let raising = waiting.groups.iter().filter(|group| waiting.raises_many(group)).flat_map(|group| &group.users);
        waiting.raising = BTreeSet::from_iter(raising.copied()).into_iter().collect();
        waiting.declared_ahead = waiting.shortest_queues();
        waiting
    }

    /// The waits of a job of `member` that may be pending for up to `window`, while it is among the m most urgent.
    pub fn of(&self, member: usize, window: u64) -> Waits {
        self.sum(member, window, false)
    }

    /// The same whichever jobs are more urgent: as long as something that it waits for makes progress.
    pub fn in_any_order(&self, member: usize, window: u64) -> Waits {
        self.sum(member, window, true)
    }

    fn sum(&self, member: usize, window: u64, in_any_order: bool) -> Waits {
        let task = self.task(member);
        let mut waits = Waits { engines: self.engines(member, &task.uses.demand), ..Waits::default() };
        let raises_many = |request: &Request| self.raises_many(self.groups.of_request(request));
        waits.locks = self.sections_of_others(member, &self.raising, window, raises_many);
        for group in self.groups.asked_by(member).filter(|group| !self.raises_many(group)) {
            let (longest, engines) = self.of_group(member, window, group, in_any_order);
            waits.engines = waits.engines.saturating_add(engines);
            let term = if group.locks.contains(&Lock::Gpu) { &mut waits.gpus } else { &mut waits.locks };
            *term = term.saturating_add(longest);
        }
        waits
    }

    /// Waits for the locks of a group, and for engines within them.
    fn of_group(&self, member: usize, window: u64, group: &LockGroup, in_any_order: bool) -> (u64, u64) {
        let all = self.sections_of_others(member, &group.users, window, |request| group.contains(request));
        let [lock] = *group.locks else { return (all, 0) };
        if self.sharing().is_fifo(lock) {
            let count = self.requests(member, lock).count() as u64;
            return (all.min(count.saturating_mul(self.fifo(member, lock))), 0);
        }
        if lock == Lock::Gpu && self.sharing().arbitration == Arbitration::Semaphore {
            return (all.min(self.semaphore(member)), 0);
        }
        let is_bounded = lock == Lock::Gpu && !(in_any_order && self.sharing().tokens_run_out(self.context.index));
        let by_tokens = if is_bounded { self.tokens(member, window) } else { None };
        by_tokens.filter(|&(tokens, engines)| tokens.saturating_add(engines) < all).unwrap_or((all, 0))
    }

    fn raises_many(&self, group: &LockGroup) -> bool {
        group.locks.iter().any(|&lock| self.sharing().raises_many(lock))
    }

    pub(super) fn sharing(&self) -> &'a Sharing {
        &self.context.machine.sharing
    }

    pub(super) fn rule(&self) -> PriorityRule {
        self.context.machine.rule
    }

    pub(super) fn cluster(&self) -> usize {
        self.context.index
    }

    /// How many GPUs the cluster shares.
    pub(super) fn pool(&self) -> usize {
        self.sharing().pools[self.context.index].len()
    }

    pub(super) fn members(&self) -> std::ops::Range<usize> {
        0..self.pending.len()
    }

    /// How long a job may be pending.
    pub(super) fn pending(&self, member: usize) -> u64 {
        self.pending[member]
    }

    /// Whether the fixed priority of one member is higher than that of the other.
    pub(super) fn precedes(&self, one: usize, other: usize) -> bool {
        let (machine, members) = (self.context.machine, &self.context.cluster.members);
        machine.rank(members[one], self.context.analysed) < machine.rank(members[other], self.context.analysed)
    }

    pub(super) fn task(&self, member: usize) -> &'a AnalysedTask {
        &self.context.analysed[self.context.cluster.members[member]]
    }

    pub(super) fn others(&self, member: usize) -> impl Iterator<Item = usize> {
        self.members().filter(move |&other| other != member)
    }

    /// The outermost sections that `counts` of `users` other than `member`, of all jobs that may be pending in a window.
    fn sections_of_others(
        &self,
        member: usize,
        users: &[usize],
        window: u64,
        counts: impl Fn(&Request) -> bool,
    ) -> u64 {
        users.iter().filter(|&&other| other != member).fold(0, |sum: u64, &other| {
            let task = self.task(other);
            let sections = task.uses.outermost().filter(|request| counts(request));
            let holds = sections.fold(0, |sum: u64, request| sum.saturating_add(self.hold(other, &request.demand)));
            let jobs = jobs(task, self.pending(other), window);
            sum.saturating_add(jobs.saturating_mul(holds))
        })
    }

    /// How long a section of `member` takes once it is granted, if nothing but waits for inner locks interferes.
    pub(super) fn hold(&self, member: usize, demand: &Demand) -> u64 {
        let dispatches = 1 + demand.suspensions;
        // A holder that it waits for may have to become more urgent first.
        let notices = dispatches.saturating_add(demand.requests).saturating_add(demand.engine_locks);
        [
            demand.wcet,
            demand.suspension,
            demand.gpu(),
            self.engines(member, demand),
            dispatches.saturating_mul(self.holding.dispatch),
            notices.saturating_mul(self.holding.late),
            demand.interrupts.saturating_mul(self.holding.interrupt),
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// The same if no section that cannot be preempted is in its way.
    pub(super) fn hold_at_once(&self, member: usize, demand: &Demand) -> u64 {
        let sections = (1 + demand.suspensions).saturating_mul(self.holding.section);
        self.hold(member, demand).saturating_sub(sections)
    }

    /// How soon after one is released another job may be due that `request` of `member` keeps waiting.
    pub(super) fn first_due_of_others(&self, member: usize, request: &Request) -> Option<u64> {
        let others = self.groups.of_request(request).users.iter().filter(|&&other| other != member);
        others.map(|&other| self.task(other).deadline.saturating_sub(self.task(other).jitter)).min()
    }

    /// What one request of `member` for a lock that is not nested waits for in FIFO order.
    fn fifo(&self, member: usize, lock: Lock) -> u64 {
        let longest = |other: usize| self.requests(other, lock).map(|held| self.hold(other, &held.demand)).max();
        let holds = self.groups.other_users(member, lock).filter_map(longest);
        let sum = |holds: &mut dyn Iterator<Item = u64>| holds.fold(0, u64::saturating_add);
        let replicas = self.pool();
        let names_gpu = || self.requests(member, lock).any(|request| request.demand.named_gpu().is_some());
        let in_one_queue = lock != Lock::Gpu || self.sharing().arbitration == Arbitration::Semaphore;
        if in_one_queue || replicas < 2 || names_gpu() {
            return sum(&mut { holds });
        }
        if self.sharing().length_aware() == Some(true) {
            let beyond = |other: usize| {
                let request = |held: &Request| self.hold(other, &held.demand).saturating_sub(held.demand.declared());
                self.requests(other, lock).map(request).max()
            };
            let beyond = sum(&mut self.groups.other_users(member, lock).filter_map(beyond));
            return self.declared_ahead[member].saturating_add(beyond);
        }
        let mut holds: Vec<u64> = holds.collect();
        holds.sort_unstable_by(|a, b| b.cmp(a));
        let ahead = holds.len() / replicas;
        sum(&mut holds.into_iter().take(ahead))
    }

    /// What the requests of `member` wait for in the one queue of all GPUs, as long as each of these is used.
    fn semaphore(&self, member: usize) -> u64 {
        let gpus = self.pool().max(1) as u64;
        let wait = |request: &Request| {
            let all = self.fifo(member, Lock::Gpu);
            if request.demand.named_gpu().is_some() { all } else { all.div_ceil(gpus) }
        };
        self.requests(member, Lock::Gpu).map(wait).fold(0, u64::saturating_add)
    }

    /// How often a job of `member` may be given a CPU within its critical sections.
    pub(super) fn dispatches_in_sections(&self, member: usize) -> u64 {
        let dispatches = |request: &Request| request.demand.suspensions.saturating_add(1);
        self.task(member).uses.outermost().map(dispatches).fold(0, u64::saturating_add)
    }

    /// How often a job of `member` that holds something asks for something else, so that what it waits for is another job.
    pub(super) fn nested_requests(&self, member: usize) -> u64 {
        let inner = |request: &Request| request.demand.requests.saturating_add(request.demand.engine_locks);
        self.task(member).uses.outermost().map(inner).fold(0, u64::saturating_add)
    }

    /// From which place on, in the order of falling fixed priorities, jobs may find critical sections of `member` above them, which
    /// is itself further down; `places` has that of each member. A holder has the priority of a job that waits, for that job's
    /// own priority no two unless a lock has several holders.
    pub(super) fn raised_from(&self, member: usize, places: &[usize]) -> usize {
        let of = |group: &LockGroup| {
            let users = group.users.iter().filter(|&&other| other != member).map(|&other| places[other]);
            users.min().map(|highest| highest + usize::from(!self.raises_many(group)))
        };
        self.groups.asked_by(member).filter_map(of).min().unwrap_or(usize::MAX)
    }

    /// The parts of the cluster whose jobs may keep a CPU from what a job of `member` waits for: its own first.
    pub(super) fn reach(&self, member: usize) -> Vec<usize> {
        let part = |member: usize| self.context.cluster.part_of(self.context.cluster.members[member]);
        let mut reach = vec![part(member)];
        if self.context.cluster.parts.len() == 1 {
            return reach;
        }
        for group in self.groups.asked_by(member) {
            reach.extend(group.users.iter().filter(|&&other| other != member).map(|&other| part(other)));
        }
        reach[1..].sort_unstable();
        let own = reach[0];
        let mut others: Vec<usize> = reach.drain(1..).filter(|&part| part != own).collect();
        others.dedup();
        reach.extend(others);
        reach
    }

    /// For how long a job of `member` may keep a CPU within its critical sections.
    pub(super) fn sections_on_cpus(&self, member: usize) -> u64 {
        let section = |request: &Request| {
            let demand = &request.demand;
            let dispatches = demand.suspensions.saturating_add(1).saturating_mul(self.holding.dispatch);
            let interrupts = demand.interrupts.saturating_mul(self.holding.interrupt);
            let spins =
                if self.sharing().spins { self.engines(member, demand).saturating_add(demand.gpu()) } else { 0 };
            [dispatches, interrupts, spins].into_iter().fold(demand.wcet, u64::saturating_add)
        };
        self.task(member).uses.outermost().map(section).fold(0, u64::saturating_add)
    }

    pub(super) fn requests(&self, member: usize, lock: Lock) -> impl Iterator<Item = &'a Request> {
        self.task(member).uses.requests.iter().filter(move |request| request.lock == lock)
    }

    /// Equation 3 on the declared lengths, for each member.
    fn shortest_queues(&self) -> Vec<u64> {
        let replicas = self.pool() as u32;
        if self.sharing().length_aware() != Some(true) || replicas == 0 {
            return Vec::new();
        }
        let longest = |member| self.requests(member, Lock::Gpu).map(|request| request.demand.declared()).max();
        let lengths: Vec<u64> = (0..self.context.members().len()).map(|member| longest(member).unwrap_or(0)).collect();
        let bounds = blocking(&lengths, replicas, Blocking::Exact, NODES_MAX);
        bounds.iter().map(|bound| floor_ticks(&bound.bound)).collect()
    }

    /// What the operations of `demand` wait for where the driver hands them to the engines.
    fn engines(&self, member: usize, demand: &Demand) -> u64 {
        if self.sharing().holds_gpus() {
            // The holder of a GPU has its engines to itself; those of tokens lock engines.
            return 0;
        }
        let wait = |operation: &Operation| {
            let ahead = |other: usize| {
                let engine = self.engine(member, operation)?;
                let operations = self.task(other).uses.demand.operations.iter();
                operations.filter(|ahead| self.engine(other, ahead) == Some(engine)).map(|ahead| ahead.time).max()
            };
            self.others(member).filter_map(ahead).fold(0, u64::saturating_add)
        };
        demand.operations.iter().map(wait).fold(0, u64::saturating_add)
    }

    fn engine(&self, member: usize, operation: &Operation) -> Option<(usize, laxity_model::Engine)> {
        self.sharing().engine(self.context.cluster.members[member], operation)
    }
}
