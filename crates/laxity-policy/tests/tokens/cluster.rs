//! A driver for the allocator alone: base priorities, effective priorities by relaxation, the grants so far.

use laxity_model::{Instant, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Discipline, Grant, Levels, Request, Tokens};

/// Tasks are numbered by priority: 0 is the highest.
pub struct Cluster {
    pub tokens: Tokens,
    pub now: u64,
    base: Vec<Option<Priority>>,
    effective: Vec<Option<Priority>>,
}

/// Sizes of an allocator. A place more than needed in the queues is the exception, so they default to `cpus` in all.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub cpus: u16,
    pub gpus: u16,
    pub tokens: u16,
    pub fifo_length: u16,
    pub fifo_requests: u16,
}

impl Sizes {
    /// `rho * g * f = m`.
    pub const fn balanced(cpus: u16, gpus: u16, tokens: u16) -> Self {
        Sizes { cpus, gpus, tokens, fifo_length: cpus / (gpus * tokens), fifo_requests: cpus }
    }

    pub fn cluster(self, tasks: usize) -> Cluster {
        self.predicting(tasks, None)
    }

    pub fn predicting(self, tasks: usize, migration: Option<u64>) -> Cluster {
        let Sizes { cpus, gpus, tokens, fifo_length, fifo_requests } = self;
        let tokens = Tokens::new(gpus, tokens, fifo_length, fifo_requests, cpus, migration.map(Nanos));
        Cluster { tokens, now: 0, base: vec![None; tasks], effective: vec![None; tasks] }
    }
}

impl Cluster {
    /// A job of `task` is pending, at the priority of its number.
    pub fn arrive(&mut self, task: usize) {
        self.base[task] = Some(Priority::of(task as u64, id(task)));
        self.relax();
    }

    pub fn complete(&mut self, task: usize) {
        self.base[task] = None;
        self.relax();
    }

    /// A job of `task` arrives if none is pending, and requests; returns which task is granted which replica.
    pub fn request(&mut self, task: usize) -> Vec<(usize, u16)> {
        self.request_with(task, None, 1)
    }

    /// One after the other.
    pub fn request_all<const N: usize>(&mut self, tasks: [usize; N]) {
        for task in tasks {
            self.request(task);
        }
    }

    pub fn request_with(&mut self, task: usize, only: Option<u16>, length: u64) -> Vec<(usize, u16)> {
        self.arrive(task);
        let request = Request { task: id(task), length: Nanos(length), only };
        self.act(|tokens, now, levels, grants| tokens.request(now, request, levels, grants))
    }

    pub fn unlock(&mut self, task: usize) -> Vec<(usize, u16)> {
        self.act(|tokens, now, levels, grants| tokens.unlock(now, id(task), levels, grants))
    }

    pub fn withdraw(&mut self, task: usize) -> Vec<(usize, u16)> {
        self.act(|tokens, now, levels, grants| tokens.withdraw(now, id(task), levels, grants))
    }

    pub fn overrun(&mut self, task: usize) -> Vec<(usize, u16)> {
        self.act(|tokens, now, levels, grants| tokens.overrun(now, id(task), levels, grants))
    }

    fn act(&mut self, act: impl FnOnce(&mut Tokens, Instant, Levels<'_>, &mut Vec<Grant>)) -> Vec<(usize, u16)> {
        let mut grants = Vec::new();
        let levels = Levels { base: &self.base, effective: &self.effective };
        act(&mut self.tokens, Instant(self.now), levels, &mut grants);
        self.tokens.assert_invariants();
        self.relax();
        grants.into_iter().map(|grant| (grant.task.index(), grant.replica.0)).collect()
    }

    pub fn holder(&self, replica: u16) -> Option<usize> {
        self.tokens.holder(ReplicaId(replica)).map(TaskId::index)
    }

    /// The pairs of which the first gives its priority to the second, sorted.
    pub fn gifts(&self) -> Vec<(usize, usize)> {
        let mut gifts = Vec::new();
        self.tokens.inheritance(&mut |from, to| gifts.push((from.index(), to.index())));
        gifts.sort_unstable();
        gifts
    }

    /// Whose priority that of `task` is.
    pub fn effective(&self, task: usize) -> Option<usize> {
        self.effective[task].map(|priority| priority.tie as usize)
    }

    pub fn priority(&self, task: usize) -> Option<Priority> {
        self.effective[task]
    }

    fn relax(&mut self) {
        let gifts = self.gifts();
        self.effective.clone_from(&self.base);
        // A path of gifts visits a task once.
        for _ in 0..self.base.len() {
            for &(from, to) in &gifts {
                let given = self.effective[from].expect("a giver is pending").given_to(id(to));
                let own = self.effective[to].expect("a receiver is pending");
                self.effective[to] = Some(own.min(given));
            }
        }
    }
}

fn id(task: usize) -> TaskId {
    TaskId(task as u32)
}
