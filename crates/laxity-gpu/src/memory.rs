//! The words of an arbitration in shared memory, without its state.

use std::iter;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_model::{LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{self, Arbiter};
use laxity_sys::mutex;
use laxity_sys::segment::Segment;

use crate::client_word::{COUNT, ClientWord};
use crate::config::{Config, TOKEN};
use crate::layout::{self, ClientWords, Layout, STATE_MUTEX, VERSION};
use crate::owner_word::{self, HandOver, Owners, REPLICAS};
use crate::step;

/// The memory of an arbitration. Other processes write to it, so every number that is read from it is checked.
#[derive(Debug)]
pub(crate) struct Memory {
    pub segment: Segment,
    pub layout: Layout,
    pub name: String,
    pub config: Config,
    /// The properties of every lock.
    pub locks: Vec<Lock>,
}

/// What follows from a lock's configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub replicas: u16,
    /// Replica `r` belongs to GPU `r % gpus`.
    pub gpus: u16,
    /// Whether it is granted without the arbiter while nothing waits for it.
    pub may_open: bool,
    /// Whether one thread may also wait for it without the arbiter: [`owner_word`].
    pub has_waiter_slot: bool,
}

impl Memory {
    /// `segment` is that of a draft, or of one of our arbitrations.
    pub fn new(segment: Segment, name: String, config: Config, layout: Layout) -> Self {
        let lock = |lock: &lock::Config| {
            let gpus = if let lock::Config::Tokens { gpus, .. } = *lock { gpus } else { lock.replicas() };
            let (replicas, may_open) = (lock.replicas(), Config::may_open(lock));
            Lock { replicas, gpus, may_open, has_waiter_slot: may_open && replicas == 1 }
        };
        let locks = config.locks().iter().map(lock).collect();
        Memory { segment, layout, name, config, locks }
    }

    /// The arbiter and the layout of a valid configuration.
    pub fn arbiter_and_layout(config: &Config) -> (Arbiter, Layout) {
        let arbiter = Arbiter::new(config.clients.into(), &config.locks());
        let layout = Layout::of(config, &arbiter);
        (arbiter, layout)
    }

    /// The mutex that guards the state.
    pub fn state_mutex(&self) -> mutex::Mutex<'_> {
        self.mutex(STATE_MUTEX)
    }

    /// The mutex that the thread of `task` holds while it is registered.
    pub fn liveness(&self, task: TaskId) -> mutex::Mutex<'_> {
        self.mutex(self.client(task).liveness)
    }

    #[expect(unsafe_code, reason = "only the registry knows that the mutexes were made")]
    fn mutex(&self, offset: usize) -> mutex::Mutex<'_> {
        // SAFETY: the registry makes these mutexes in every draft, before it is published. A segment with another layout
        // of mutexes, another PID namespace or another boot is not admitted (`Kind::admit`), so no thread attaches to it,
        // reaps in it or reads more of it than its members.
        unsafe { self.segment.mutex(offset) }
    }

    /// How many clients live.
    pub fn living(&self) -> usize {
        self.tasks().filter(|&task| self.liveness(task).is_held()).count()
    }

    /// A word of 32 bits.
    pub fn number(&self, offset: usize) -> u32 {
        self.segment.u32(offset).load(Ordering::Relaxed)
    }

    pub fn version(&self) -> &AtomicU64 {
        self.segment.u64(VERSION)
    }

    pub fn client(&self, task: TaskId) -> ClientWords {
        self.layout.client(task)
    }

    pub fn tasks(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0..u32::from(self.config.clients)).map(TaskId)
    }

    /// Whether there can be a client of that number.
    pub fn is_task(&self, task: TaskId) -> bool {
        task.index() < usize::from(self.config.clients)
    }

    pub fn lock(&self, lock: LockId) -> Lock {
        self.locks[usize::from(lock.0)]
    }

    pub fn lock_ids(&self) -> impl Iterator<Item = LockId> + use<> {
        (0..self.locks.len() as u16).map(LockId)
    }

    pub fn replicas(&self, lock: LockId) -> impl Iterator<Item = ReplicaId> + Clone + use<> {
        (0..self.lock(lock).replicas).map(ReplicaId)
    }

    /// The word on which the client `task` waits.
    #[inline]
    pub fn word(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.client(task).word)
    }

    /// How often a thread registered as `task`. Changed under the state lock only.
    pub fn registrations(&self, task: TaskId) -> &AtomicU64 {
        self.segment.u64(self.client(task).registrations)
    }

    /// Whether the client `task` waits.
    pub fn is_waiting(&self, task: TaskId) -> bool {
        ClientWord::of(self.word(task).load(Ordering::Acquire)) == ClientWord::Waiting
    }

    /// The length and the GPU of the token that `task` requested last. Requests for other locks have neither.
    pub fn published_request(&self, task: TaskId, lock: LockId) -> (Nanos, Option<u16>) {
        if lock != TOKEN {
            return (Nanos::ZERO, None);
        }
        let words = self.segment.u64s(self.client(task).request, 2);
        let only = words[1].load(Ordering::Relaxed);
        (Nanos(words[0].load(Ordering::Relaxed)), only.checked_sub(1).map(|gpu| gpu as u16))
    }

    /// Publishes the length and the GPU of the token that `task` is about to request.
    #[inline]
    pub fn publish_request(&self, task: TaskId, length: Nanos, only: Option<u16>) {
        let words = self.segment.u64s(self.client(task).request, 2);
        words[0].store(length.0, Ordering::Relaxed);
        words[1].store(only.map_or(0, |gpu| 1 + u64::from(gpu)), Ordering::Relaxed);
    }

    /// The base priority that `task` published. The arbiter learns it with the next request, before which it affects no
    /// other task.
    pub fn published_base(&self, task: TaskId) -> Priority {
        let level = self.segment.u64(self.client(task).base).load(Ordering::Relaxed);
        // Level 0 is above all base priorities.
        Priority::of(level.max(1), task)
    }

    /// Publishes the base priority of `task`, which holds nothing and waits for nothing.
    pub fn publish_base(&self, task: TaskId, level: u64) {
        self.segment.u64(self.client(task).base).store(level, Ordering::Relaxed);
    }

    /// The owner words of `lock`, each for [`REPLICAS`] replicas. They count while the lock is open.
    pub fn owner_words(&self, lock: LockId) -> impl Iterator<Item = &AtomicU64> {
        let start = self.layout.owners(lock);
        (0..layout::owner_words(self.lock(lock).replicas)).map(move |word| self.segment.u64(start + 8 * word))
    }

    /// The owner word of `replica`, and the position of the replica there.
    #[inline]
    fn owner_word(&self, lock: LockId, replica: ReplicaId) -> (&AtomicU64, usize) {
        let (word, position) = (usize::from(replica.0) / REPLICAS, usize::from(replica.0) % REPLICAS);
        (self.segment.u64(self.layout.owners(lock) + 8 * word), position)
    }

    /// The owner of `replica` of `lock` by its word, which counts while the lock is open.
    pub fn owner(&self, lock: LockId, replica: ReplicaId) -> Option<TaskId> {
        let (word, position) = self.owner_word(lock, replica);
        Owners::of(word).owner(position)
    }

    /// Takes `lock` without the arbiter if it is open and the replica that a request would be granted is free. It takes
    /// exactly that replica: where it might be one of a later word, which a single instruction cannot see, the arbiter
    /// decides.
    #[inline]
    pub fn take(&self, task: TaskId, lock: LockId, only: Option<u16>) -> Option<ReplicaId> {
        let Lock { replicas, gpus, has_waiter_slot, .. } = self.lock(lock);
        let start = self.layout.owners(lock);
        // Most requests leave nothing to choose, or the choice among all that the first word has.
        let Some(gpu) = only.map(usize::from).filter(|_| !has_waiter_slot) else {
            let word = self.segment.u64(start);
            let taken = match has_waiter_slot {
                true => owner_word::take(word, task, iter::once(0)),
                false => owner_word::take(word, task, 0..REPLICAS.min(replicas.into())),
            };
            return taken.map(|taken| ReplicaId(taken as u16));
        };
        // Replica `r` belongs to GPU `r % gpus`: the first one of GPU x is x.
        let (word, first) = (gpu / REPLICAS, gpu % REPLICAS);
        let end = REPLICAS.min(usize::from(replicas) - word * REPLICAS);
        let positions = (first..end).step_by(gpus.into());
        let taken = owner_word::take(self.segment.u64(start + 8 * word), task, positions)?;
        Some(ReplicaId((word * REPLICAS + taken) as u16))
    }

    /// Releases `replica` without the arbiter if `lock` is open, and hands it over to the waiter in the lock's slot.
    #[inline(always)]
    pub fn release(&self, lock: LockId, replica: ReplicaId) -> bool {
        if !self.lock(lock).has_waiter_slot {
            let (word, position) = self.owner_word(lock, replica);
            return owner_word::release(word, position);
        }
        let outcome = owner_word::hand_over(self.slot_word(lock));
        if let HandOver::To(task) = outcome
            && self.is_task(task)
        {
            self.notify(task);
        }
        outcome != HandOver::Frozen
    }

    /// Whether a thread may be waiting for `lock`: in its slot, or at the arbiter.
    #[inline]
    pub fn may_be_wanted(&self, lock: LockId) -> bool {
        let has_slot = self.lock(lock).has_waiter_slot;
        let is_wanted = |owners: Owners| owners.is_frozen() || (has_slot && owners.waiter().is_some());
        self.owner_words(lock).any(|word| is_wanted(Owners::of(word)))
    }

    /// Whether the arbiter decides about `lock`, or is about to.
    pub fn is_frozen(&self, lock: LockId) -> bool {
        self.owner_words(lock).any(|word| Owners::of(word).is_frozen())
    }

    /// The only owner word of a lock that has a waiter slot.
    pub fn slot_word(&self, lock: LockId) -> &AtomicU64 {
        self.segment.u64(self.layout.owners(lock))
    }

    /// Whether `task`, which waited in the slot of `lock`, is its owner by now.
    #[inline]
    pub fn was_handed(&self, task: TaskId, lock: LockId) -> bool {
        let has_slot = self.locks.get(usize::from(lock.0)).is_some_and(|lock| lock.has_waiter_slot);
        let owners = if has_slot { Owners::of(self.slot_word(lock)) } else { Owners::NONE };
        !owners.is_frozen() && owners.owner(0) == Some(task)
    }

    /// The lock that `task` requested last, if its word names one.
    pub fn wanted(&self, task: TaskId) -> Option<LockId> {
        let lock = self.number(self.client(task).wanted);
        ((lock as usize) < self.locks.len()).then_some(LockId(lock as u16))
    }

    /// `task` waits for `lock` from now on.
    pub fn begin_wait(&self, task: TaskId, lock: LockId) {
        self.segment.u32(self.client(task).wanted).store(lock.0.into(), Ordering::Relaxed);
        step::point();
        let word = self.word(task);
        let before = word.load(Ordering::Relaxed).wrapping_add(COUNT);
        word.store(ClientWord::Waiting.instead_of(before), Ordering::Release);
    }

    /// Wakes the thread of `task`, if it sleeps, to read its word.
    #[inline(always)]
    pub fn wake(&self, task: TaskId) {
        step::wake(task, self.word(task));
    }

    /// Has the thread of `task` read its word and the owner word again, if it sleeps or is about to.
    #[inline(always)]
    pub fn notify(&self, task: TaskId) {
        step::point();
        self.word(task).fetch_add(COUNT, Ordering::Release);
        step::point();
        self.wake(task);
    }
}
