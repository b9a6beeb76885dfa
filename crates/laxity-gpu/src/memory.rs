//! An arbitration in shared memory, and what this process knows of it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_model::{LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{self, Arbiter};
use laxity_sys::segment::Segment;
use laxity_sys::{futex, mutex};

use crate::arbiter_cache::ArbiterCache;
use crate::config::{Config, TOKEN};
use crate::layout::{self, ClientWords, Layout, STATE_MUTEX, VERSION};
use crate::owner_word::{self, Handed, Owners, REPLICAS};

#[derive(Debug)]
pub(crate) struct Shared {
    pub segment: Segment,
    pub layout: Layout,
    pub name: String,
    pub config: Config,
    /// Of every lock.
    pub locks: Vec<Lock>,
    /// This process's arbiter, for whoever holds the gate.
    pub cache: Mutex<ArbiterCache>,
}

/// What follows from a lock's configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lock {
    pub replicas: u16,
    /// Replica `r` belongs to GPU `r % gpus`.
    pub gpus: u16,
    /// Whether it is granted without the arbiter while nobody waits.
    pub may_open: bool,
    /// Whether one may also wait for it without the arbiter: [`owners`].
    pub has_waiter_slot: bool,
}

/// What the word of a client says. Bits above it are counted up whenever it begins to wait or is told to look again, so
/// that no two waits look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Idle,
    Waiting,
    Granted(ReplicaId),
}

/// One more in the bits above a [`Word`].
const COUNT: u32 = 1 << 17;

impl Word {
    pub fn of(value: u32) -> Self {
        match value % COUNT {
            0 => Word::Idle,
            1 => Word::Waiting,
            granted => Word::Granted(ReplicaId((granted - 2) as u16)),
        }
    }

    /// In place of what `before` says.
    pub fn instead_of(self, before: u32) -> u32 {
        let state = match self {
            Word::Idle => 0,
            Word::Waiting => 1,
            Word::Granted(replica) => 2 + u32::from(replica.0),
        };
        before - before % COUNT + state
    }

    /// Says so from now on. Others may count up meanwhile, which may be lost: the word is another one anyhow.
    pub fn store(self, word: &AtomicU32) {
        word.store(self.instead_of(word.load(Ordering::Relaxed)), Ordering::Release);
    }
}

impl Shared {
    /// `segment` is that of a draft or was checked to be one of ours.
    pub fn new(segment: Segment, name: String, config: Config) -> Self {
        let configs = config.locks();
        let arbiter = Arbiter::new(config.clients.into(), &configs);
        let layout = Layout::of(&config, &arbiter);
        let lock = |lock: &lock::Config| {
            let gpus = if let lock::Config::Tokens { gpus, .. } = *lock { gpus } else { lock.replicas() };
            let (replicas, may_open) = (lock.replicas(), Config::may_open(lock));
            Lock { replicas, gpus, may_open, has_waiter_slot: may_open && replicas == 1 }
        };
        let locks: Vec<Lock> = configs.iter().map(lock).collect();
        let cache = Mutex::new(ArbiterCache::new(arbiter, locks.len(), config.clients));
        Shared { segment, layout, name, config, locks, cache }
    }

    /// Where things are under a valid configuration.
    pub fn layout_of(config: &Config) -> Layout {
        Layout::of(config, &Arbiter::new(config.clients.into(), &config.locks()))
    }

    /// The mutex of whoever changes the state.
    pub fn state_mutex(&self) -> mutex::Mutex<'_> {
        self.mutex(STATE_MUTEX)
    }

    /// The mutex that the client `task` holds while it is registered.
    pub fn liveness(&self, task: TaskId) -> mutex::Mutex<'_> {
        self.mutex(self.client(task).liveness)
    }

    #[expect(unsafe_code, reason = "only the registry knows that the mutexes were made")]
    fn mutex(&self, offset: usize) -> mutex::Mutex<'_> {
        // SAFETY: the registry makes these mutexes in every draft, before it is published. Segments whose layout of
        // mutexes, PID namespace or boot are not ours are not admitted (`Kind::admit`), so nobody attaches to them,
        // buries in them or looks at more than their members.
        unsafe { self.segment.mutex(offset) }
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

    pub fn lock_ids(&self) -> impl Iterator<Item = LockId> + use<> {
        (0..self.locks.len() as u16).map(LockId)
    }

    /// The word that says whether the client `task` waits.
    #[inline]
    pub fn word(&self, task: TaskId) -> &AtomicU32 {
        self.segment.u32(self.client(task).word)
    }

    /// What `task` said of the token that it asked for last. Other locks know nothing of it.
    pub fn published_request(&self, task: TaskId, lock: LockId) -> (Nanos, Option<u16>) {
        if lock != TOKEN {
            return (Nanos::ZERO, None);
        }
        let words = self.client(task);
        let length = self.segment.u64(words.length).load(Ordering::Relaxed);
        let only = self.segment.u32(words.only).load(Ordering::Relaxed);
        (Nanos(length), only.checked_sub(1).map(|gpu| gpu as u16))
    }

    /// Notes what `task` says of the token that it asks for.
    #[inline]
    pub fn publish_request(&self, task: TaskId, length: Nanos, only: Option<u16>) {
        let words = self.client(task);
        self.segment.u64(words.length).store(length.0, Ordering::Relaxed);
        self.segment.u32(words.only).store(only.map_or(0, |gpu| 1 + u32::from(gpu)), Ordering::Relaxed);
    }

    /// The base priority that `task` says it has. The arbiter is told with its next request, as before that it matters
    /// to nobody.
    pub fn published_base(&self, task: TaskId) -> Priority {
        let level = self.segment.u64(self.client(task).base).load(Ordering::Relaxed);
        // Words come from memory that others can write to, and 0 is above all.
        Priority::of(level.max(1), task)
    }

    /// Notes the base priority of `task`, which holds nothing and waits for nothing.
    pub fn publish_base(&self, task: TaskId, level: u64) {
        self.segment.u64(self.client(task).base).store(level, Ordering::Relaxed);
    }

    /// The words that say who holds `lock` while it is open, and who waits in its seat, each for [`REPLICAS`] replicas.
    pub fn owner_words(&self, lock: LockId) -> impl Iterator<Item = &AtomicU64> {
        let start = self.layout.owners(lock);
        let words = layout::words(self.locks[usize::from(lock.0)].replicas);
        (0..words).map(move |word| self.segment.u64(start + 8 * word))
    }

    /// Who holds `replica` of `lock` by its words, which count while it is open.
    pub fn owner(&self, lock: LockId, replica: ReplicaId) -> Option<TaskId> {
        let (word, place) = (usize::from(replica.0) / REPLICAS, usize::from(replica.0) % REPLICAS);
        Owners::of(self.segment.u64(self.layout.owners(lock) + 8 * word)).owner(place)
    }

    /// Takes `lock` without the arbiter if it is open and the replica that a request would be granted is free. Exactly
    /// that one: where it might be one of a later word, which a single instruction cannot see, the arbiter decides.
    #[inline]
    pub fn take(&self, task: TaskId, lock: LockId, only: Option<u16>) -> Option<ReplicaId> {
        let Lock { replicas, gpus, .. } = self.locks[usize::from(lock.0)];
        // Replica `r` belongs to GPU `r % gpus`: the first one of GPU x is x.
        let (first, step) = only.map_or((0, 1), |gpu| (usize::from(gpu), usize::from(gpus)));
        let word = first / REPLICAS;
        let start = word * REPLICAS;
        let end = REPLICAS.min(usize::from(replicas) - start);
        let word = self.segment.u64(self.layout.owners(lock) + 8 * word);
        let taken = owner_word::take(word, task, (first - start..end).step_by(step))?;
        Some(ReplicaId((start + taken) as u16))
    }

    /// Lets go of `replica` without the arbiter if `lock` is open. Who waits in its seat has it then.
    #[inline(always)]
    pub fn release(&self, lock: LockId, replica: ReplicaId) -> bool {
        if self.locks[usize::from(lock.0)].has_waiter_slot {
            let handed = owner_word::hand_over(self.slot_word(lock));
            // Words come from memory that others can write to.
            if let Handed::To(task) = handed
                && task.index() < usize::from(self.config.clients)
            {
                self.notify(task);
            }
            return handed != Handed::Frozen;
        }
        let (word, place) = (usize::from(replica.0) / REPLICAS, usize::from(replica.0) % REPLICAS);
        owner_word::release(self.segment.u64(self.layout.owners(lock) + 8 * word), place)
    }

    /// Whether the arbiter decides about `lock`, or is about to.
    pub fn is_frozen(&self, lock: LockId) -> bool {
        self.owner_words(lock).any(|word| Owners::of(word).is_frozen())
    }

    /// The word of a lock that has a seat.
    pub fn slot_word(&self, lock: LockId) -> &AtomicU64 {
        self.segment.u64(self.layout.owners(lock))
    }

    /// Whether `task`, which waited in the seat of `lock`, is its owner by now.
    #[inline]
    pub fn was_handed(&self, task: TaskId, lock: LockId) -> bool {
        // Which lock comes from memory that others can write to.
        let has_waiter_slot = self.locks.get(usize::from(lock.0)).is_some_and(|lock| lock.has_waiter_slot);
        let owners = if has_waiter_slot { Owners::of(self.slot_word(lock)) } else { Owners::NOBODY };
        !owners.is_frozen() && owners.owner(0) == Some(task)
    }

    /// The lock that `task` asked for last, if it is one.
    pub fn wanted(&self, task: TaskId) -> Option<LockId> {
        let lock = self.number(self.client(task).wanted);
        ((lock as usize) < self.locks.len()).then_some(LockId(lock as u16))
    }

    /// `task` waits for `lock` from now on.
    pub fn begin_wait(&self, task: TaskId, lock: LockId) {
        self.segment.u32(self.client(task).wanted).store(lock.0.into(), Ordering::Relaxed);
        let word = self.word(task);
        let before = word.load(Ordering::Relaxed).wrapping_add(COUNT);
        word.store(Word::Waiting.instead_of(before), Ordering::Release);
    }

    /// Wakes the thread of `task` if it waits, to look at its word.
    #[inline(always)]
    pub fn wake(&self, task: TaskId) {
        futex::wake_all(self.word(task));
    }

    /// Wakes the thread of `task` if it waits or is about to, to look at its word and that of the lock.
    #[inline(always)]
    pub fn notify(&self, task: TaskId) {
        self.word(task).fetch_add(COUNT, Ordering::Release);
        self.wake(task);
    }
}
