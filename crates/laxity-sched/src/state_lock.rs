//! Changing the state of a cluster: one thread of all processes at a time, under the state lock.
//!
//! ```text
//!  lock ---> events ---> the policy decides ---> switch processes ---> publish ---> place other threads ---> unlock
//!                                                                                                              |
//!                                                        place the calling thread, and look again  <-----------'
//! ```
//!
//! The thread to which an event happens does all of this. The steps after a publication may be repeated: the next thread does
//! it again if the state lock's last holder was killed.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use laxity_model::{CpuId, Instant, TaskId};
use laxity_policy::cpu::{Action, CpuPolicy, Event, Standing};
use laxity_policy::lock::Damaged;
use laxity_sys::clock;
use laxity_sys::mutex::{self, Attempt};
use smallvec::SmallVec;

use crate::cluster_cache::ClusterCache;
use crate::decision::{Carried, Change, Decision, Link};
use crate::placement::{Class, Placement};
use crate::shared::Shared;
use crate::step::{self, Sleep};

/// Why the state cannot be changed, or read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// What is in shared memory is no state: something else wrote there.
    #[error("the system's memory: {0}; end its tasks and remove it")]
    Damaged(#[source] Damaged),
    /// Linux refuses.
    #[error("cannot enter the system: {0}")]
    System(#[source] io::Error),
}

/// How often a thread tries the state lock before it suspends: the lock is held for microseconds.
const TRIES: u32 = 200;

/// The state lock of a cluster, held. Unpublished changes did not happen.
#[derive(Debug)]
pub(crate) struct ClusterGuard<'a> {
    shared: &'a Shared,
    cluster: usize,
    pub cache: MutexGuard<'a, ClusterCache>,
    pub now: Instant,
    /// The version that counts.
    version: u64,
    /// Tasks whose placement may have changed.
    touched: SmallVec<[TaskId; 8]>,
    /// Tasks that lose their CPUs, and hear so until that is demanded.
    taken: SmallVec<[TaskId; 4]>,
    /// Tasks that the publication ends.
    freed: SmallVec<[TaskId; 1]>,
    decision: Decision,
    mutex: mutex::Guard<'a>,
}

impl Shared {
    /// Waits for the state lock of `cluster`.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn lock(&self, cluster: usize) -> Result<ClusterGuard<'_>, StateError> {
        step::point();
        let mutex = self.spin_then_lock(cluster).map_err(StateError::System)?;
        step::point();
        // Only the holder of the state lock uses the cache. After a panic the state is loaded anew.
        let cache = self.caches[cluster].lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version(cluster).load(Ordering::Acquire);
        let mut state = ClusterGuard {
            shared: self,
            cluster,
            cache,
            now: Instant::ZERO,
            version,
            touched: SmallVec::new(),
            taken: SmallVec::new(),
            freed: SmallVec::new(),
            decision: Decision { cluster, ..Decision::default() },
            mutex,
        };
        state.cache.actions.clear();
        if state.mutex.is_inherited || state.cache.version != Some(version) {
            state.cache.load(self, cluster, version).map_err(StateError::Damaged)?;
        }
        if state.mutex.is_inherited {
            state.repair();
        }
        state.now = clock::now().max(state.cache.last.saturating_add(laxity_model::Nanos(1)));
        state.cache.last = state.now;
        Ok(state)
    }

    pub fn spin_then_lock(&self, cluster: usize) -> io::Result<mutex::Guard<'_>> {
        for _ in 0..TRIES {
            match self.state_mutex(cluster).try_lock()? {
                Attempt::Taken(mutex) => return Ok(mutex),
                Attempt::Busy => std::hint::spin_loop(),
            }
        }
        while step::is_simulated() {
            step::point();
            if let Attempt::Taken(mutex) = self.state_mutex(cluster).try_lock()? {
                return Ok(mutex);
            }
        }
        self.state_mutex(cluster).lock()
    }
}

impl<'a> ClusterGuard<'a> {
    pub fn shared(&self) -> &'a Shared {
        self.shared
    }

    pub fn cluster(&self) -> usize {
        self.cluster
    }

    /// The policy takes note of `event`, which happened to `task`.
    pub fn handle(&mut self, task: TaskId, event: Event) {
        // Before, too: a thread that has no work any more leaves its owner.
        self.touch(task);
        self.cache.version = None;
        self.cache.policy.handle(self.now, event);
        self.touch(task);
    }

    /// The placement of `task` may have changed, and that of the task it works for with it.
    fn touch(&mut self, task: TaskId) {
        let owner = self.cache.policy.owner(task);
        for task in [task].into_iter().chain(owner) {
            if !self.touched.contains(&task) {
                self.touched.push(task);
            }
        }
    }

    /// `task`'s job is changed because of locks: the policy takes note of it, and the decision says so.
    pub fn change(&mut self, change: Change) {
        let task = change.task();
        let cpu = self.cpu_of(task);
        self.handle(
            task,
            match change {
                Change::Woken { owner, level, .. } => Event::Woken { cpu, thread: task, owner, level },
                Change::Prioritized { level, .. } => Event::Prioritized { task, level },
                Change::Suspended { .. } => Event::Suspended { cpu, task },
                Change::Resumed { .. } => Event::Resumed { cpu, task },
                Change::Completed { .. } => Event::Completed { cpu, task },
            },
        );
        self.decision.changes.push(change);
    }

    /// The CPU that takes note of what happens to `task`: its own, if it has one.
    pub fn cpu_of(&self, task: TaskId) -> CpuId {
        match self.cache.policy.standing(task).0 {
            Standing::Linked(cpu) => cpu,
            _ => self.placed_on(task).unwrap_or(CpuId(0)),
        }
    }

    /// The CPU that the thread of `task` has, linked there or not.
    pub fn placed_on(&self, task: TaskId) -> Option<CpuId> {
        self.cpus().find(|&cpu| self.cache.policy.scheduled(cpu) == Some(task))
    }

    fn cpus(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.shared.config.clusters[self.cluster].len() as u16).map(CpuId)
    }

    /// The CPU of a cluster that has no other: its threads never move.
    fn only_cpu(&self) -> Option<CpuId> {
        (self.shared.config.clusters[self.cluster].len() == 1).then_some(CpuId(0))
    }

    /// The policy decides about all that happened since the last decision. CPUs whose threads are in non-preemptive
    /// sections keep them until those end.
    pub fn decide(&mut self) {
        let mut actions = std::mem::take(&mut self.cache.actions);
        self.cache.policy.decide(self.now, &mut actions);
        for &Action::Link { cpu, task } in &actions {
            self.decision.links.push(Link { cpu, task });
            // Linked where another thread is in a section, it is not placed there yet.
            task.into_iter().for_each(|task| self.touch(task));
        }
        actions.clear();
        self.cache.actions = actions;
        let linked = |state: &Self, cpu| state.cache.policy.linked(cpu).map(|job| job.task);
        // A thread leaves its CPU before the next one gets it: that one may come from another of these CPUs.
        let mut switches: SmallVec<[CpuId; 8]> = SmallVec::new();
        for cpu in self.cpus() {
            let (on, to) = (self.cache.policy.scheduled(cpu), linked(self, cpu));
            if on == to || on.is_some_and(|task| self.keeps_its_cpu(task)) {
                continue;
            }
            switches.push(cpu);
            if let Some(task) = on {
                self.taken.push(task);
                self.handle(task, Event::Switched { cpu, task: None });
            }
        }
        for cpu in switches {
            if let Some(task) = linked(self, cpu) {
                self.handle(task, Event::Switched { cpu, task: Some(task) });
            }
        }
    }

    /// Whether the thread of `task`, which has lost its link, is in a non-preemptive section. It then hears that it is to
    /// give up its CPU after that. One that is about to enter a section meanwhile waits for what is decided.
    fn keeps_its_cpu(&self, task: TaskId) -> bool {
        step::point();
        // Either we see the section, or the thread that enters or leaves it sees this.
        self.shared.is_due(task).store(1, Ordering::SeqCst);
        step::point();
        self.shared.sections(task).load(Ordering::SeqCst) > 0
    }

    /// How the thread of `task` is to be placed.
    fn demand(&self, task: TaskId) -> Placement {
        let on = |class, cpu| Placement { class, cpu };
        match self.cache.policy.standing(task).0 {
            // A program is not about to wait, but is stopped, soon.
            Standing::Inactive | Standing::Suspended if self.shared.program(task).is_some() => {
                on(Class::Waiting, self.only_cpu())
            }
            // It computes on, where no task wants the CPU.
            Standing::Suspended if self.shared.is_throttled(task) => on(Class::Throttled, self.only_cpu()),
            // It keeps its CPU: it would come back there.
            Standing::Inactive | Standing::Suspended => {
                let before = Placement::of_word(self.shared.demand(task).load(Ordering::Relaxed));
                on(Class::Urgent, before.cpu)
            }
            standing @ (Standing::Linked(_) | Standing::Ready | Standing::Held) => match self.placed_on(task) {
                Some(cpu) => on(Class::Running, Some(cpu)),
                None => {
                    let class = if standing == Standing::Held { Class::Held } else { Class::Waiting };
                    on(class, self.only_cpu().or_else(|| self.cpu_of_entity(task)))
                }
            },
        }
    }

    /// The CPU of a task and the interrupt threads that work for it, if that is what `task` is one of: they keep to one
    /// while they wait, as they must not run side by side. It is that of the thread that goes first, or that which it had: a
    /// thread that executes moves only when the CPU where it is has taken note, and all others wait for that.
    fn cpu_of_entity(&self, task: TaskId) -> Option<CpuId> {
        let policy = &self.cache.policy;
        let owner = policy.owner(task).unwrap_or(task);
        let occupant = policy.occupant(owner)?;
        let is_held = |task| policy.standing(task).0 == Standing::Held;
        let had = || Placement::of_word(self.shared.demand(occupant).load(Ordering::Relaxed)).cpu;
        (is_held(task) || is_held(owner)).then(|| self.placed_on(occupant).or_else(had).unwrap_or(CpuId(0)))
    }

    /// Decides, publishes, has Linux do what follows, and unlocks the state. The thread of `caller` is the calling one,
    /// which places itself after this: [`Shared::settle`].
    pub fn publish(mut self, caller: Option<TaskId>) -> Decision {
        self.decide();
        self.commit();
        self.carry_out(caller);
        let ClusterGuard { cache, mutex, decision, .. } = self;
        drop(cache);
        drop(mutex);
        decision
    }

    /// Up to the store that decides.
    pub fn commit(&mut self) {
        // Linear in the tasks, and the policy has tests of its own: not in release.
        if cfg!(debug_assertions) {
            self.cache.policy.assert_invariants();
        }
        self.decision.at = self.now;
        let (shared, cluster, version) = (self.shared, self.cluster, self.version);
        step::point();
        self.cache.publish(shared, cluster, version);
        step::point();
        // Only now another cluster may have the number: a thread that is killed before this leaves it to this one.
        for task in self.freed.drain(..) {
            shared.segment.u32(shared.task(task).claim).store(0, Ordering::Release);
        }
    }

    /// Takes the number `task`, which is none of the cluster's tasks, for the cluster. Answers whether it has it.
    pub fn claim(&self, task: TaskId) -> bool {
        let claim = self.shared.segment.u32(self.shared.task(task).claim);
        let ours = self.cluster as u32 + 1;
        // A thread that was killed in between leaves one that is ours and no task of ours.
        claim.load(Ordering::Relaxed) == ours
            || claim.compare_exchange(0, ours, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// `task` is none of the cluster's any more once the state is published.
    pub fn free(&mut self, task: TaskId) {
        self.cache.set_member(task, false);
        self.freed.push(task);
    }

    /// Has Linux do what the state demands.
    fn carry_out(&mut self, caller: Option<TaskId>) {
        let demands = self.touched.iter().map(|&task| (task, self.demand(task)));
        let mut demands: SmallVec<[(TaskId, Placement); 8]> = demands.collect();
        // Threads that lose their CPUs go first.
        demands.sort_by_key(|&(_, demand)| demand.class);
        for (task, demand) in demands {
            if !self.cache.is_member(task) {
                continue;
            }
            let word = self.shared.demand(task);
            let before = Placement::of_word(word.load(Ordering::Relaxed));
            if before == demand {
                continue;
            }
            step::point();
            word.store(demand.to_word(), Ordering::SeqCst);
            step::point();
            if Some(task) == caller {
                continue;
            }
            self.shared.carry(task, Some(before), demand);
            // A thread without a CPU, too: it may have run where Linux had nothing else to do.
            let moves = demand.cpu.is_some() && demand.cpu != before.cpu;
            if demand.class == Class::Running || before.class == Class::Running || moves {
                let cpu = demand.cpu.filter(|_| demand.class == Class::Running);
                self.decision.carried.push(Carried { at: clock::now(), task, cpu });
            }
            self.open_gate(task, demand);
        }
        for task in self.taken.drain(..) {
            step::point();
            self.shared.is_due(task).store(0, Ordering::SeqCst);
        }
    }

    /// Lets the thread of `task` look if it sleeps until it has its CPU, or is not held.
    fn open_gate(&self, task: TaskId, demand: Placement) {
        if demand.class == Class::Held {
            return;
        }
        step::point();
        if self.shared.gate(task).swap(0, Ordering::SeqCst) != 0 {
            step::point();
            step::wake(task, Sleep::Gate, self.shared.gate(task));
        }
    }

    /// Does what follows from the state again: the thread that published it was killed, perhaps before it was done.
    fn repair(&mut self) {
        for task in self.shared.tasks().filter(|&task| self.cache.is_member(task)).collect::<Vec<_>>() {
            let demand = self.demand(task);
            step::point();
            self.shared.demand(task).store(demand.to_word(), Ordering::SeqCst);
            step::point();
            self.shared.carry(task, None, demand);
            self.open_gate(task, demand);
        }
    }

    /// As if the thread was killed here, if it ends without doing anything more.
    #[cfg(test)]
    pub fn die(self) {
        let ClusterGuard { cache, mutex, .. } = self;
        drop(cache);
        mutex.keep();
    }
}
