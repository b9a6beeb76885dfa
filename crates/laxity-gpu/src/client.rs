//! A thread that takes part in an arbitration.

use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use laxity_model::{Instant, LockId, Nanos, TaskId};
use laxity_policy::bandwidth::Holder;
use laxity_sys::clock;
use laxity_sys::scheduling::Attributes;

use crate::arbitration::{Base, Membership, RegisterError};
use crate::budget::State;
use crate::config::TOKEN;
use crate::inheritance;
use crate::registration::Registration;
use crate::request::{LockError, Resource, TokenRequest};
use crate::shared::Shared;
use crate::state_lock::StateError;
use crate::token::Token;

/// A registered thread. Only that thread uses it: the one that called
/// [`Arbitration::register`](crate::Arbitration::register). When it is dropped, or its thread or process ends, all that it
/// holds goes to the next threads.
///
/// It holds at most one token, and engines in the order of GPUs and of [`Engine::ALL`](laxity_model::Engine::ALL) only,
/// so that no two threads ever wait for each other.
#[derive(Debug)]
pub struct Client {
    pub(crate) membership: Arc<Membership>,
    pub(crate) task: TaskId,
    pub(crate) registration: Rc<Registration>,
    /// Its thread number.
    thread: u32,
    /// The fixed priority that it lends to its followers when it inherits nothing; 0: none.
    pub(crate) lends: Cell<u8>,
    pub(crate) has_token: Cell<bool>,
    pub(crate) budget: Arc<State>,
    /// Locks of engines, ascending.
    pub(crate) engines: RefCell<Vec<LockId>>,
    /// For what this thread holds the bandwidth lock.
    pub(crate) holder: RefCell<Holder>,
    /// Locks belong to a thread.
    not_send: PhantomData<*mut ()>,
}

/// How often a wait with a condition calls the condition: [`Client::request_while`].
pub const POLL_INTERVAL: Nanos = Nanos::from_millis(50);

impl Client {
    /// For the calling thread, which has number `thread`, which Linux schedules as `own`, and which holds the liveness
    /// lock of `task`; it is the one that registered as `task` in the `registration`th place.
    pub(crate) fn new(
        membership: Arc<Membership>,
        task: TaskId,
        registration: u64,
        thread: u32,
        own: Attributes,
    ) -> Self {
        let budget = Arc::new(State::of(registration));
        Client {
            registration: Registration::begin(membership.clone(), task, budget.clone()),
            membership,
            task,
            thread,
            lends: Cell::new(inheritance::lent_priority(own).unwrap_or(0)),
            has_token: Cell::new(false),
            budget,
            engines: RefCell::new(Vec::with_capacity(4)),
            holder: RefCell::default(),
            not_send: PhantomData,
        }
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

    /// Takes a token of any GPU if one can be had at once.
    ///
    /// # Errors
    /// [`LockError`]; [`LockError::TimedOut`] if none can.
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

    /// Waits for the token that `request` describes.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn request(&self, request: TokenRequest) -> Result<Token<'_>, LockError> {
        self.request_token(request, None)
    }

    /// As [`Client::request`]. While it waits, it calls `keep_waiting` after signals, and at least every
    /// [`POLL_INTERVAL`]; it keeps its place in the queue while the answer is yes.
    ///
    /// # Errors
    /// [`LockError`]; [`LockError::TimedOut`] also if `keep_waiting` answered no.
    pub fn request_while(
        &self,
        request: TokenRequest,
        keep_waiting: &dyn Fn() -> bool,
    ) -> Result<Token<'_>, LockError> {
        self.request_token(request, Some(keep_waiting))
    }

    // Inlined, as is all that lies between a caller and a system call: see `futex::wait`.
    #[inline(always)]
    fn request_token(
        &self,
        request: TokenRequest,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<Token<'_>, LockError> {
        let what = Resource::Token { gpu: request.gpu };
        let gpus = self.shared().config.gpus;
        if let Some(gpu) = request.gpu.filter(|&gpu| gpu >= gpus) {
            return Err(LockError::NoSuchGpu { gpu, gpus });
        }
        // A thread that holds an engine must not wait for a token, whose holder may wait for that engine.
        if self.has_token.get() || !self.engines.borrow().is_empty() {
            return Err(LockError::Order { what });
        }
        self.check()?;
        self.acquire(TOKEN, request, what, keep_waiting).map(|replica| Token::new(self, replica))
    }

    /// A job of this priority begins. It makes no system call; Linux is to schedule this thread as when it registered, or
    /// as at the last [`Client::rebase`].
    ///
    /// # Errors
    /// [`RegisterError`].
    ///
    /// # Panics
    /// If a token is held that was [detached](Token::detach).
    pub fn begin_job(&mut self, base: Base) -> Result<(), RegisterError> {
        assert!(!self.has_token.get(), "priorities change between jobs");
        base.check()?;
        if !self.is_registered() {
            return Err(RegisterError::NotAttached);
        }
        self.shared().publish_base(self.task, base.level());
        Ok(())
    }

    /// As [`Client::begin_job`], and reads anew how Linux schedules this thread, which may have been changed.
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
            // The thread that unlocked last may still be restoring our priority: it holds the state lock then.
            let _state = shared.lock_state().map_err(RegisterError::State)?;
            let own = read()?;
            inheritance::store(shared, shared.client(self.task).own, own);
            inheritance::store(shared, shared.client(self.task).applied, own);
            self.lends.set(inheritance::lent_priority(own).unwrap_or(0));
        }
        Ok(())
    }

    /// Its number among the clients of [`Snapshot`](crate::Snapshot) and in its queues.
    pub fn id(&self) -> TaskId {
        self.task
    }

    pub(crate) fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    pub(crate) fn budget_state(&self) -> &Arc<State> {
        &self.budget
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.membership.shared
    }

    /// Whether this is the process and the thread that registered, and the thread is not ending.
    #[inline]
    pub(crate) fn is_registered(&self) -> bool {
        self.membership.is_ours() && !self.registration.is_over()
    }

    /// Whether its home lives, which is `thread`: a home that ends without a word, as by the bare system call, leaves a client
    /// whose locks others take, and whose number is soon another client's.
    #[inline]
    pub(crate) fn check_home(&self, thread: u32) -> bool {
        let is_there = self.membership.is_ours() && self.shared().liveness(self.task).is_held_by(thread);
        if !is_there {
            self.registration.lose();
        }
        is_there
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<(), LockError> {
        if self.is_registered() {
            return Ok(());
        }
        if !self.membership.is_ours() {
            return Err(LockError::Forked);
        }
        let ending = io::Error::other("this thread is ending, and its registration ended before");
        Err(LockError::State(StateError::System(ending)))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.registration.end_early();
    }
}
