//! A thread that takes part in an arbitration.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::lock::Event;
use laxity_sys::clock;
use laxity_sys::futex::{self, Ended};
use laxity_sys::scheduling::Attributes;

use crate::arbitration::{Base, Membership, RegisterError};
use crate::budget::State;
use crate::config::TOKEN;
use crate::inheritance;
use crate::owner_word::{self, Parked};
use crate::shared::{Shared, Word};
use crate::state_lock::StateError;
use crate::token::Token;

/// A registered thread, which alone uses it: the one that called
/// [`Arbitration::register`](crate::Arbitration::register). When it is dropped, or its process dies, whatever it holds
/// goes to the next.
///
/// It holds at most one token, and engines in the order of GPUs and of [`Engine::ALL`](laxity_model::Engine::ALL) only,
/// so that no two threads ever wait for each other.
#[derive(Debug)]
pub struct Client {
    membership: Arc<Membership>,
    task: TaskId,
    /// Its number in Linux.
    thread: u32,
    /// The fixed priority that it lends to those who follow it, when it inherits nothing; 0: none.
    lends: Cell<u8>,
    has_token: Cell<bool>,
    budget: Arc<State>,
    /// Locks of engines, ascending.
    engines: RefCell<Vec<LockId>>,
    /// Locks and lives belong to a thread.
    not_send: PhantomData<*mut ()>,
}

/// How often a wait with a condition looks whether it is to go on: [`Client::request_while`].
pub const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

/// What a request for a token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// The only GPU that will do; `None`: any.
    pub gpu: Option<u16>,
    /// Bound on how long it will be held, for what predicts waiting times.
    pub length: Nanos,
    /// How long to wait: [`Instant::NEVER`] to wait for ever, [`Instant::ZERO`] not to wait at all.
    pub deadline: Instant,
}

impl Default for TokenRequest {
    fn default() -> Self {
        TokenRequest { gpu: None, length: Nanos::ZERO, deadline: Instant::NEVER }
    }
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A token of any GPU, or of this one.
    Token {
        /// The only one that will do.
        gpu: Option<u16>,
    },
    /// An engine.
    Engine {
        /// Of this GPU.
        gpu: u16,
        /// Which.
        engine: laxity_model::Engine,
    },
}

/// Why nothing was granted.
#[derive(Debug)]
pub enum LockError {
    /// The deadline passed, or it was not free and there was none.
    TimedOut {
        /// What was asked for.
        what: Resource,
    },
    /// There is no such GPU.
    NoSuchGpu {
        /// Which was asked for.
        gpu: u16,
        /// How many there are.
        gpus: u16,
    },
    /// A copy from a GPU to itself occupies no copy engine.
    SameGpu {
        /// Which.
        gpu: u16,
    },
    /// This thread holds it, or a token, or an engine that comes later.
    Order {
        /// What was asked for.
        what: Resource,
    },
    /// This process was forked from the one that registered.
    Forked,
    /// The state of the arbitration.
    State(StateError),
}

impl Client {
    /// For the calling thread, which Linux calls `thread` and schedules as `own`.
    pub(crate) fn new(membership: Arc<Membership>, task: TaskId, thread: u32, own: Attributes) -> Self {
        let engines = RefCell::new(Vec::with_capacity(4));
        let (has_token, lends) = (Cell::new(false), Cell::new(inheritance::lent_priority(own).unwrap_or(0)));
        Client { membership, task, thread, lends, has_token, budget: Arc::default(), engines, not_send: PhantomData }
    }

    /// Waits for a token of any GPU.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn token(&self) -> Result<Token<'_>, LockError> {
        self.request(TokenRequest::default())
    }

    /// Waits for a token of `gpu`.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn token_of(&self, gpu: u16) -> Result<Token<'_>, LockError> {
        self.request(TokenRequest { gpu: Some(gpu), ..TokenRequest::default() })
    }

    /// Takes a token of any GPU if one is to be had at once.
    ///
    /// # Errors
    /// [`LockError`]; [`LockError::TimedOut`] if none is.
    pub fn try_token(&self) -> Result<Token<'_>, LockError> {
        self.request(TokenRequest { deadline: Instant::ZERO, ..TokenRequest::default() })
    }

    /// Waits for a token at most this long.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn token_for(&self, wait: Nanos) -> Result<Token<'_>, LockError> {
        self.request(TokenRequest { deadline: clock::now().saturating_add(wait), ..TokenRequest::default() })
    }

    /// Waits for what `request` says.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn request(&self, request: TokenRequest) -> Result<Token<'_>, LockError> {
        self.request_for(request, None)
    }

    /// As [`Client::request`], but while it waits `keep_waiting` is called after signals, and at least every [`POLL_INTERVAL`]:
    /// the wait goes on, in its place of the queue, while that says yes.
    ///
    /// # Errors
    /// [`LockError`]; [`LockError::TimedOut`] also if `keep_waiting` said no.
    pub fn request_while(
        &self,
        request: TokenRequest,
        keep_waiting: &dyn Fn() -> bool,
    ) -> Result<Token<'_>, LockError> {
        self.request_for(request, Some(keep_waiting))
    }

    // Inlined, as all that is between a caller and a system call: see `futex::wait`.
    #[inline(always)]
    fn request_for(
        &self,
        request: TokenRequest,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<Token<'_>, LockError> {
        let what = Resource::Token { gpu: request.gpu };
        let gpus = self.shared().config.gpus;
        if let Some(gpu) = request.gpu.filter(|&gpu| gpu >= gpus) {
            return Err(LockError::NoSuchGpu { gpu, gpus });
        }
        // Whoever holds an engine is not to wait for a token, whose holder may wait for that engine.
        if self.has_token.get() || !self.engines.borrow().is_empty() {
            return Err(LockError::Order { what });
        }
        self.check()?;
        self.acquire(TOKEN, request, what, keep_waiting).map(|replica| Token::new(self, replica))
    }

    /// A job that is as urgent as this begins. Calls nobody; Linux is to schedule this thread as when it registered, or as
    /// at the last [`Client::rebase`].
    ///
    /// # Errors
    /// [`RegisterError`].
    ///
    /// # Panics
    /// If a token is held that was [kept](Token::keep).
    pub fn begin_job(&mut self, base: Base) -> Result<(), RegisterError> {
        assert!(!self.has_token.get(), "priorities change between jobs");
        base.check()?;
        if !self.membership.is_ours() {
            return Err(RegisterError::NotAttached);
        }
        self.shared().publish_base(self.task, base.level());
        Ok(())
    }

    /// As [`Client::begin_job`], and how Linux schedules this thread, which may have been changed, is read anew.
    ///
    /// # Errors
    /// [`RegisterError`].
    ///
    /// # Panics
    /// As [`Client::begin_job`].
    pub fn rebase(&mut self, base: Base) -> Result<(), RegisterError> {
        self.begin_job(base)?;
        let shared = self.shared();
        let read = || Attributes::of(self.thread).map_err(|error| RegisterError::State(StateError::System(error)));
        if read()? != inheritance::own(shared, self.task) {
            // Who let us go may still be lowering us: not before it has left do we have our own.
            let _inside = shared.lock_state().map_err(RegisterError::State)?;
            let own = read()?;
            inheritance::store(shared, shared.client(self.task).own, own);
            inheritance::store(shared, shared.client(self.task).applied, own);
            self.lends.set(inheritance::lent_priority(own).unwrap_or(0));
        }
        Ok(())
    }

    /// The position among the clients of [`Snapshot`](crate::Snapshot) and in its queues.
    pub fn id(&self) -> TaskId {
        self.task
    }

    pub(crate) fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    pub(crate) fn budget_state(&self) -> &Arc<State> {
        &self.budget
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.membership.shared
    }

    pub(crate) fn engines(&self) -> &RefCell<Vec<LockId>> {
        &self.engines
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<(), LockError> {
        if self.membership.is_ours() { Ok(()) } else { Err(LockError::Forked) }
    }

    /// Waits for `lock`, as long as `keep_waiting` says if there is one.
    #[inline(always)]
    pub(crate) fn acquire(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<ReplicaId, LockError> {
        match self.request_lock(lock, request, what)? {
            Some(replica) => Ok(replica),
            None => self.wait(lock, request.deadline, what, keep_waiting),
        }
    }

    /// Asks for `lock`; `None`: it waits from now on. Calls nobody if nobody waits for the lock and it is free.
    #[inline]
    pub(crate) fn request_lock(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
    ) -> Result<Option<ReplicaId>, LockError> {
        if lock == TOKEN {
            self.shared().publish_request(self.task, request.length, request.gpu);
        }
        if lock == TOKEN && self.budget.is_exhausted() {
            return self.request_by_arbiter(lock, request, what);
        }
        loop {
            if let Some(replica) = self.shared().take(self.task, lock, request.gpu) {
                self.record_hold(lock);
                self.update_followers(lock);
                return Ok(Some(replica));
            }
            match self.try_park(lock, request) {
                Parked::Free => {}
                Parked::Behind(owner) if self.must_arbitrate(owner) => {
                    self.arbitrate(lock)?;
                    return Ok(self.granted());
                }
                Parked::Behind(_) => return Ok(None),
                Parked::Refused => return self.request_by_arbiter(lock, request, what),
            }
        }
    }

    /// Waits for `lock` without the arbiter if that can be: nobody else does.
    #[inline]
    fn try_park(&self, lock: LockId, request: TokenRequest) -> Parked {
        let shared = self.shared();
        // Whoever watches its budget may come between any two steps, and wants to know whether it waits.
        let has_budget = Arc::strong_count(&self.budget) > 1;
        let has_waiter_slot = shared.locks[usize::from(lock.0)].has_waiter_slot;
        if !has_waiter_slot || request.deadline == Instant::ZERO || has_budget || self.may_inherit() {
            return Parked::Refused;
        }
        shared.begin_wait(self.task, lock);
        let seated = owner_word::try_park(shared.slot_word(lock), self.task);
        if !matches!(seated, Parked::Behind(_)) {
            Word::Idle.store(shared.word(self.task));
        }
        seated
    }

    /// Whether `owner` is to be more urgent, or may have to be, for what this thread waits for since just now.
    fn must_arbitrate(&self, owner: TaskId) -> bool {
        // Whoever begins to arbitrate what this thread holds looks at what it waits for after freezing that: one of the
        // two sees the other.
        fence(Ordering::SeqCst);
        self.may_inherit() || inheritance::would_raise(self.shared(), self.task, owner)
    }

    /// Whether this thread may be more urgent than it is by itself, now or before it lets go of what it holds: somebody
    /// may wait for that in the arbiter.
    fn may_inherit(&self) -> bool {
        let shared = self.shared();
        (self.has_token.get() && shared.is_frozen(TOKEN))
            || self.engines.borrow().iter().any(|&engine| shared.is_frozen(engine))
    }

    /// Has the arbiter decide about `lock`, for which this thread waits.
    #[cold]
    fn arbitrate(&self, lock: LockId) -> Result<(), LockError> {
        let mut state = self.shared().lock_state().map_err(LockError::State)?;
        state.arbitrate(lock);
        state.publish();
        Ok(())
    }

    #[cold]
    fn request_by_arbiter(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
    ) -> Result<Option<ReplicaId>, LockError> {
        let (shared, task) = (self.shared(), self.task);
        let mut state = shared.lock_state().map_err(LockError::State)?;
        // Without budget it asks for nothing before it has some again, and waits for that.
        let is_barred = lock == TOKEN && self.budget.is_exhausted();
        state.arbitrate(lock);
        shared.begin_wait(task, lock);
        if !is_barred {
            state.handle(Event::Request { task, lock, length: request.length, only: request.gpu });
        }
        let is_late = state.granted(task, lock).is_none() && request.deadline == Instant::ZERO;
        if is_late && !is_barred {
            state.handle(Event::Withdraw { task, lock });
        }
        state.publish();
        if is_late {
            Word::Idle.store(shared.word(task));
            return Err(LockError::TimedOut { what });
        }
        Ok(self.granted())
    }

    /// What it was granted that it waited for, which is told once.
    pub(crate) fn granted(&self) -> Option<ReplicaId> {
        self.look().ok()
    }

    /// As [`Client::granted`]; if there is nothing, the value of its word that says so.
    #[inline]
    fn look(&self) -> Result<ReplicaId, u32> {
        let (shared, task) = (self.shared(), self.task);
        let word = shared.word(task);
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let Some(lock) = shared.wanted(task) else { return Err(seen) };
            match Word::of(seen) {
                Word::Granted(replica) => {
                    Word::Idle.store(word);
                    self.record_hold(lock);
                    return Ok(replica);
                }
                Word::Waiting if shared.was_handed(task, lock) => {}
                Word::Waiting | Word::Idle => return Err(seen),
            }
            // Whoever arbitrates the lock may be about to tell it the same.
            match word.compare_exchange(seen, Word::Idle.instead_of(seen), Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => {
                    self.record_hold(lock);
                    self.update_followers(lock);
                    return Ok(ReplicaId(0));
                }
                Err(other) => seen = other,
            }
        }
    }

    #[inline(always)]
    fn wait(
        &self,
        lock: LockId,
        deadline: Instant,
        what: Resource,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<ReplicaId, LockError> {
        let word = self.shared().word(self.task);
        loop {
            let seen = match self.look() {
                Ok(replica) => return Ok(replica),
                Err(seen) => seen,
            };
            let until = match keep_waiting {
                None => deadline,
                Some(_) => deadline.min(clock::now().saturating_add(POLL_INTERVAL)),
            };
            let is_late = futex::wait(word, seen, until) == Ended::TimedOut && until == deadline;
            let is_over = is_late || keep_waiting.is_some_and(|keep_waiting| !keep_waiting());
            if is_over {
                return self.give_up(lock)?.ok_or(LockError::TimedOut { what });
            }
        }
    }

    /// Waits no longer, unless it was granted meanwhile.
    pub(crate) fn give_up(&self, lock: LockId) -> Result<Option<ReplicaId>, LockError> {
        let (shared, task) = (self.shared(), self.task);
        let mut state = shared.lock_state().map_err(LockError::State)?;
        state.arbitrate_wait(task);
        if let Some(replica) = self.granted() {
            state.publish();
            return Ok(Some(replica));
        }
        Word::Idle.store(shared.word(task));
        // Unless that was done because its budget is exhausted.
        if state.cache.arbiter.waits_for(task) == Some(lock) {
            state.handle(Event::Withdraw { task, lock });
        }
        state.publish();
        Ok(None)
    }

    /// Lets go of `lock`. If the memory is damaged there is nobody to let go to.
    #[inline(always)]
    pub(crate) fn release(&self, lock: LockId, replica: ReplicaId) {
        if !self.membership.is_ours() {
            return;
        }
        if lock == TOKEN {
            self.has_token.set(false);
        } else {
            self.engines.borrow_mut().retain(|&held| held != lock);
        }
        if self.shared().release(lock, replica) {
            self.update_followers(lock);
        } else {
            self.release_by_arbiter(lock);
        }
    }

    /// This thread holds `lock` from now on.
    #[inline]
    fn record_hold(&self, lock: LockId) {
        if lock == TOKEN {
            self.has_token.set(true);
        } else {
            self.engines.borrow_mut().push(lock);
        }
    }

    /// The arbiter was not asked about `lock`: if it is that of the tokens, those that follow holders are to know,
    /// unless this thread lends too little to change them. It inherits nothing, as it holds nothing else.
    #[inline]
    fn update_followers(&self, lock: LockId) {
        if lock == TOKEN && self.lends.get() > self.membership.followers_threshold.load(Ordering::SeqCst) {
            self.membership.raise_followers();
        }
    }

    #[inline(always)]
    fn release_by_arbiter(&self, lock: LockId) {
        let Ok(mut state) = self.shared().lock_state() else { return };
        state.arbitrate(lock);
        state.handle(Event::Unlock { task: self.task, lock });
        state.publish();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.membership.is_ours() {
            return;
        }
        self.budget.end();
        let (shared, state) = (self.shared(), self.shared().lock_state());
        // If the memory is damaged nobody looks at it any more.
        let _ = shared.liveness(self.task).unlock();
        if let Ok(mut state) = state {
            state.retire(self.task);
            state.publish();
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Token { gpu: None } => write!(f, "a token of any GPU"),
            Resource::Token { gpu: Some(gpu) } => write!(f, "a token of GPU {gpu}"),
            Resource::Engine { gpu, engine } => write!(f, "engine {} of GPU {gpu}", engine.name()),
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::TimedOut { what } => write!(f, "{what}: not granted in time; wait longer or try again"),
            LockError::NoSuchGpu { gpu, gpus } => {
                write!(f, "GPU {gpu}: the arbitration has {gpus}, counted from 0; request for one of them")
            }
            LockError::SameGpu { gpu } => {
                write!(f, "copy from GPU {gpu} to itself: occupies no copy engine; take the execution engine")
            }
            LockError::Order { what } => write!(
                f,
                "{what}: this thread holds it or what comes after it; take a token, then engines in the order of GPUs \
                 and of EE, CE0, CE1"
            ),
            LockError::Forked => {
                write!(f, "this process was forked from the one that registered; attach and register here")
            }
            LockError::State(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LockError::State(error) => Some(error),
            _ => None,
        }
    }
}
