//! How long jobs wait for GPUSync's tokens, and for engines within them. Proof: `docs/decisions/0076-token-waits.md`.
//!
//! While a job is pi-blocked, a request of its own is in a FIFO queue, or donates to one that is: else as many requests of
//! higher base priority as there are CPUs are unfinished, and their jobs are pending. So it waits for
//!
//! ```text
//!   f holds          d times f holds                 f - 1 holds              R requests of a job, d displacements:
//!   donates once     donates again, after it was     in the FIFO queue        (2 R + d) f - R holds
//!                    displaced from the m highest
//! ```
//!
//! A displacement takes a request of a job of higher base priority, so d is no more than those of jobs pending
//! meanwhile. Where no request ever is outside the queues, only the last of the three remains. Of one task no more holds
//! count than it can make, and one in each phase.
//!
//! A hold includes its waits for engines: in FIFO order of one operation of each other token's holder; by priority those of
//! all jobs pending meanwhile, once for all holds together. A peer copy locks two engines, that of the lower GPU first, so
//! that the holder of one may wait for the other.
//!
//! Whatever the configuration, each other job's section counts at most once ([`waiting`](super::waiting)); the smaller bound
//! is taken.

use laxity_model::{EngineOrder, GpuSync, MigrationPath, PriorityRule};

use super::interrupts::jobs;
use super::uses::{Demand, Lock, Operation, Work};
use super::waiting::Waiting;

/// What of GPUSync's parameters bounds waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenRules {
    /// rho: of each GPU.
    pub tokens: u32,
    fifo_length: Option<u32>,
    fifo_requests: Option<u32>,
    order: EngineOrder,
    /// Whether the queue that a request joins is chosen by prediction.
    is_predicted: bool,
    /// Whether state is copied from GPU to GPU.
    copies_to_peers: bool,
}

impl TokenRules {
    pub fn of(sync: &GpuSync) -> Self {
        TokenRules {
            tokens: sync.tokens.max(1),
            fifo_length: sync.fifo_length,
            fifo_requests: sync.fifo_requests,
            order: sync.engine_order,
            is_predicted: sync.migration.is_some(),
            copies_to_peers: sync.migration.is_some() && sync.migration_path == MigrationPath::Peer,
        }
    }

    /// The queues for the tokens of `gpus` GPUs in a cluster of `cpus` CPUs.
    pub fn queues(&self, cpus: u32, gpus: usize) -> Queues {
        let tokens = u64::from(self.tokens).saturating_mul(gpus as u64).max(1);
        let length = self.fifo_length.map_or(u64::from(cpus).div_ceil(tokens), u64::from).max(1);
        let requests = self.fifo_requests.map_or(u64::from(cpus), u64::from).max(1);
        Queues { cpus: cpus.into(), tokens, length, places: requests.min(tokens.saturating_mul(length)) }
    }
}

/// The FIFO queues of a cluster's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queues {
    /// m.
    cpus: u64,
    /// How many tokens, and so queues, there are.
    tokens: u64,
    /// f: the longest that one may be.
    length: u64,
    /// Most requests in all of them together.
    places: u64,
}

impl Queues {
    /// Whether `requesters` tasks, one request each, always find room.
    pub fn never_fill(&self, requesters: u64, names_gpus: bool) -> bool {
        if names_gpus { requesters <= self.length.min(self.places) } else { requesters <= self.places }
    }

    /// Most requests ahead of one that joins a queue.
    fn ahead(&self, requesters: u64, is_shortest: bool) -> u64 {
        let others = requesters.saturating_sub(1);
        let longest = if is_shortest { others / self.tokens } else { others };
        longest.min(self.length - 1)
    }
}

/// The requests of others that a job may wait for.
struct Ahead {
    /// In all.
    holds: u64,
    /// Of one task, but no more than it makes.
    of_a_task: u64,
    /// Whether no job of the cluster ever waits for a token.
    none_waits: bool,
}

impl Waiting<'_> {
    /// How long a job of `member` waits for tokens, and for engines, in a window; `None` where the protocol gives no bound.
    pub(super) fn tokens(&self, member: usize, window: u64) -> Option<(u64, u64)> {
        let rules = self.sharing().tokens()?;
        let ahead = self.ahead(rules, member, window)?;
        let by_priority = rules.order == EngineOrder::Priority;
        let hold = |other: usize| {
            let of = |demand: &Demand| {
                let engines = if by_priority { 0 } else { self.engine_waits(rules, other, demand) };
                self.hold(other, demand).saturating_add(engines)
            };
            self.requests(other, Lock::Gpu).map(|request| of(&request.demand)).max().unwrap_or(0)
        };
        let most = |other: usize| {
            let task = self.task(other);
            let requests = self.requests(other, Lock::Gpu).count() as u64;
            jobs(task, self.pending(other), window).saturating_mul(requests).min(ahead.of_a_task)
        };
        let mut holds: Vec<(u64, u64)> = self.others(member).map(|other| (hold(other), most(other))).collect();
        holds.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = ahead.holds;
        let tokens = holds.into_iter().fold(0u64, |sum, (hold, most)| {
            let count = most.min(left);
            left -= count;
            sum.saturating_add(count.saturating_mul(hold))
        });
        let engines = if by_priority {
            let all = self.operations_of_others(rules, member, window);
            // Where no job ever waits for a token, priorities are lent to holders of engines only.
            if ahead.none_waits { all.min(self.more_urgent_operations(rules, member, window)) } else { all }
        } else {
            self.engine_waits(rules, member, &self.task(member).uses.demand)
        };
        Some((tokens, engines))
    }

    fn ahead(&self, rules: &TokenRules, member: usize, window: u64) -> Option<Ahead> {
        let users = || self.members().filter(|&user| self.requests(user, Lock::Gpu).next().is_some());
        let requesters = users().count() as u64;
        let names = |user: usize| self.requests(user, Lock::Gpu).any(|held| held.demand.named_gpu().is_some());
        let queues = self.queues(rules);
        let own = self.requests(member, Lock::Gpu).count() as u64;
        let in_queue = queues.ahead(requesters, !rules.is_predicted && !names(member));
        let any_names = self.pool() > 1 && users().any(names);
        if queues.never_fill(requesters, any_names) {
            let none_waits = in_queue == 0 && !users().any(names);
            return Some(Ahead { holds: own.saturating_mul(in_queue), of_a_task: own, none_waits });
        }
        if any_names || queues.places < queues.cpus {
            return None;
        }
        let displaced = self.higher_requests(member, window);
        let phases = own.saturating_mul(2).saturating_add(displaced);
        let holds = phases.saturating_mul(in_queue + 1).saturating_sub(own);
        Some(Ahead { holds, of_a_task: phases, none_waits: false })
    }

    /// Requests for tokens of jobs that may be pending in the window and have a higher base priority.
    fn higher_requests(&self, member: usize, window: u64) -> u64 {
        self.others(member).fold(0, |sum: u64, other| {
            let requests = self.requests(other, Lock::Gpu).count() as u64;
            sum.saturating_add(requests.saturating_mul(self.higher_jobs(member, other, window)))
        })
    }

    /// Jobs of `other` that may be pending in the window of a job of `member` and have a higher base priority.
    fn higher_jobs(&self, member: usize, other: usize, window: u64) -> u64 {
        let (task, urgent) = (self.task(member), self.task(other));
        let pending = jobs(urgent, self.pending(other), window);
        if self.rule() != PriorityRule::Edf {
            return if self.precedes(other, member) { pending } else { 0 };
        }
        // Their deadlines are no later than this job's, nor so early that they are complete.
        let late = self.pending(other).saturating_sub(urgent.deadline);
        (task.deadline.saturating_add(task.ahead()).saturating_add(late) / urgent.period).saturating_add(1).min(pending)
    }

    /// What operations of `member` wait for in order of priority if no job waits for tokens: at each, the one that its
    /// engine is at, then those of jobs of higher base priority. If state is copied from GPU to GPU, a holder may itself
    /// wait for the next GPU's engine, with the priority of a job that waits for it: each wait counts so many times as
    /// there are GPUs, and each operation of a higher job may let a copy go ahead.
    fn more_urgent_operations(&self, rules: &TokenRules, member: usize, window: u64) -> u64 {
        let own = &self.task(member).uses.demand.operations;
        let engines = self.sharing().copy_engines_of(self.cluster());
        let of = |other: usize| self.requests(other, Lock::Gpu).flat_map(|request| &request.demand.operations);
        let longest = |work: Work| {
            let met = self.others(member).flat_map(of).filter(|one| one.work.meets(work, engines));
            met.map(|one| self.engine_hold(one)).max().unwrap_or(0)
        };
        let times = |work: Work| {
            let gpus = if rules.copies_to_peers && work != Work::Kernel { self.pool() as u64 } else { 1 };
            if work == Work::Peer { 2 * gpus } else { gpus }
        };
        let amid =
            own.iter().fold(0, |sum: u64, one| sum.saturating_add(longest(one.work).saturating_mul(times(one.work))));
        self.others(member).fold(amid, |sum: u64, other| {
            let met = of(other).filter(|one| own.iter().any(|own| own.work.meets(one.work, engines)));
            let time = met.fold(0, |sum: u64, one| {
                let behind = if rules.copies_to_peers { longest(one.work).saturating_mul(times(one.work)) } else { 0 };
                sum.saturating_add(self.engine_hold(one)).saturating_add(behind)
            });
            sum.saturating_add(self.higher_jobs(member, other, window).saturating_mul(time))
        })
    }

    /// What the operations of `demand` wait for in FIFO order, the job holding a token.
    fn engine_waits(&self, rules: &TokenRules, member: usize, demand: &Demand) -> u64 {
        let wait = |operation: &Operation| self.engine_wait(rules, member, operation.work);
        demand.operations.iter().map(wait).fold(0, u64::saturating_add)
    }

    /// Of each other holder that may use the engine no more than one operation is ahead.
    fn engine_wait(&self, rules: &TokenRules, member: usize, work: Work) -> u64 {
        let peers = rules.copies_to_peers && self.pool() > 1 && work != Work::Kernel;
        let tokens = if peers { self.queues(rules).tokens } else { rules.tokens.into() };
        let engines = self.sharing().copy_engines_of(self.cluster());
        let longest = |other: usize| {
            let operations = self.requests(other, Lock::Gpu).flat_map(|request| &request.demand.operations);
            operations.filter(|one| one.work.meets(work, engines)).map(|one| self.engine_hold(one)).max()
        };
        let mut operations: Vec<u64> = self.others(member).filter_map(longest).collect();
        operations.sort_unstable_by(|a, b| b.cmp(a));
        let ahead = (operations.len() as u64).min(tokens - 1);
        let once = operations.into_iter().take(ahead as usize).fold(0, u64::saturating_add);
        if !peers {
            return once;
        }
        // The engine of the last GPU is waited for alone; holders of any other may wait for all that come after it.
        let lowest = (1..self.pool()).fold(once, |above, _| once.saturating_add(ahead.saturating_mul(above)));
        if work == Work::Peer { lowest.saturating_mul(2) } else { lowest }
    }

    /// How long an operation keeps its engines, and what its holder takes besides.
    fn engine_hold(&self, operation: &Operation) -> u64 {
        let dispatch = self.holding.dispatch.saturating_add(self.holding.late);
        // The second engine of a peer copy may have a holder that must become more urgent first.
        let (times, requests) = if operation.work == Work::Peer { (3, 1) } else { (2, 0) };
        let dispatches = dispatch.saturating_mul(times).saturating_add(self.holding.late.saturating_mul(requests));
        let interrupts = self.holding.interrupt.saturating_mul(operation.interrupts.into());
        operation.time.saturating_add(dispatches).saturating_add(interrupts)
    }

    /// All operations of others' jobs that may be pending in a window: none where no two jobs use one GPU.
    fn operations_of_others(&self, rules: &TokenRules, member: usize, window: u64) -> u64 {
        if rules.tokens < 2 && !(rules.copies_to_peers && self.pool() > 1) {
            return 0;
        }
        self.others(member).fold(0, |sum: u64, other| {
            let requests = self.requests(other, Lock::Gpu);
            let operations = requests.flat_map(|request| &request.demand.operations);
            let time = operations.map(|one| self.engine_hold(one)).fold(0, u64::saturating_add);
            let jobs = jobs(self.task(other), self.pending(other), window);
            sum.saturating_add(jobs.saturating_mul(time))
        })
    }

    fn queues(&self, rules: &TokenRules) -> Queues {
        rules.queues(self.sharing().pool_cpus(self.cluster()), self.pool())
    }
}
