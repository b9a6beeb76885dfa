//! A client that threads of a process hand from one to the next, for interposers: the thread that issues an operation
//! takes a free engine, the one that learns of its completion unlocks it, and a third one waits where it must.

use std::sync::atomic::Ordering;
use std::thread::{self, ThreadId};

use laxity_model::{Engine, Instant, LockId, ReplicaId, TaskId};
use laxity_sys::{clock, scheduling};

use crate::arbitration::{Base, RegisterError};
use crate::client::Client;
use crate::config::TOKEN;
use crate::request::{LockError, Resource, TokenRequest};

/// A [`Client`] that any thread of its process may use, one at a time, while the thread that registered it, its *home*,
/// lives. It holds at most one token and one engine. The home lends its life: whatever is held goes to the next threads
/// when the home or the process ends, and then the client is refused everything. Priorities that are inherited go to the home, too.
#[derive(Debug)]
pub struct MobileClient {
    /// Dropped by the home only.
    client: Option<Client>,
    home: ThreadId,
    /// Its number in Linux.
    thread: u32,
    base: Base,
    token: Option<ReplicaId>,
    engine: Option<LockId>,
    /// The bandwidth lock is held with it while an engine is.
    budget: Option<u64>,
    /// The version of the state at which there was no other client. Each registration changes the state.
    alone_at: Option<u64>,
}

// SAFETY: a `Client` is bound to its thread by three things. Its cells are used through `&mut self` only, so by one
// thread at a time. Its reference-counted registration, which its home's thread-local list shares, is cloned when the
// client is made and dropped when the client is; both happen on the home (`Drop` forgets it elsewhere), and its only
// field that changes, whether it is over, is atomic. Its liveness lock is a mutex that the home locked, and that only
// the end of the registration unlocks, on the home.
#[expect(unsafe_code, reason = "threads hand the client on")]
unsafe impl Send for MobileClient {}

impl MobileClient {
    /// Makes the calling thread the home of `client`, which holds nothing.
    pub fn new(client: Client, base: Base) -> Self {
        assert!(!client.has_token.get() && client.engines.borrow().is_empty(), "it holds nothing");
        let (home, thread) = (thread::current().id(), scheduling::current_thread());
        MobileClient {
            client: Some(client),
            home,
            thread,
            base,
            token: None,
            engine: None,
            budget: None,
            alone_at: None,
        }
    }

    /// From now on it holds the bandwidth lock, too, while it holds an engine: meanwhile every regulated CPU may have at most
    /// `budget` bytes of memory traffic a second. It holds no engine now.
    pub fn protect(&mut self, budget: Option<u64>) {
        assert!(self.engine.is_none(), "protection does not change while an engine is held");
        self.budget = budget;
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("only the drop takes it")
    }

    /// As [`MobileClient::client`], which may act: its home lives, or else it is refused everything.
    #[inline]
    fn checked(&self) -> &Client {
        let client = self.client();
        client.check_home(self.thread);
        client
    }

    /// Its number among the clients of [`Snapshot`](crate::Snapshot).
    pub fn id(&self) -> TaskId {
        self.client().id()
    }

    /// The token that it holds.
    pub fn token(&self) -> Option<ReplicaId> {
        self.token
    }

    /// A job of this priority begins, unless a token is held.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn begin_job(&mut self, base: Base) -> Result<(), RegisterError> {
        if base == self.base || self.token.is_some() {
            return Ok(());
        }
        if !self.client().check_home(self.thread) {
            return Err(RegisterError::NotAttached);
        }
        self.client.as_mut().expect("only the drop takes it").begin_job(base)?;
        self.base = base;
        Ok(())
    }

    /// Takes `engine` of `gpu`, after a token of that GPU if it has none, if both are free and no other client wants
    /// them: an instruction for each, or one change of the arbiter's state where only the arbiter grants tokens, as it does if jobs
    /// migrate between GPUs. Answers whether it did; otherwise all is as before.
    #[inline]
    pub fn take_if_free(&mut self, gpu: u16, engine: Engine) -> bool {
        if self.engine.is_some() || self.checked().check().is_err() {
            return false;
        }
        let had_token = self.token.is_some();
        if !had_token {
            self.token = self.take_token_if_free(gpu);
            if self.token.is_none() {
                return false;
            }
        }
        let lock = self.client().shared().config.engine_lock(gpu, engine);
        self.engine = self.client().take_if_free(lock, None).map(|_| lock);
        if self.engine.is_none() && !had_token {
            self.release_token();
        }
        self.begin_protection();
        self.engine.is_some()
    }

    #[inline]
    fn take_token_if_free(&self, gpu: u16) -> Option<ReplicaId> {
        let client = self.client();
        if client.shared().lock(TOKEN).may_open {
            return client.take_if_free(TOKEN, Some(gpu));
        }
        let request = TokenRequest { gpu: Some(gpu), deadline: Instant::ZERO, ..TokenRequest::default() };
        client.acquire(TOKEN, request, Resource::Token { gpu: Some(gpu) }, None).ok()
    }

    /// Whether another client may be waiting for the engine that it holds, or for a token: two loads, of words that are read
    /// to take and unlock them anyway. The answer may be old.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        let shared = self.client().shared();
        self.engine.is_some_and(|lock| shared.may_be_wanted(lock)) || shared.may_be_wanted(TOKEN)
    }

    /// Whether it is the only client since [`MobileClient::look_around`] found it so: a load. The answer may be old.
    #[inline]
    pub fn is_alone(&mut self) -> bool {
        let Some(version) = self.alone_at else { return false };
        if self.client().shared().version().load(Ordering::Acquire) != version {
            self.look_around();
        }
        self.alone_at.is_some()
    }

    /// Looks whether there are other clients: a load for each that there can be.
    pub fn look_around(&mut self) {
        let shared = self.client().shared();
        let version = shared.version().load(Ordering::Acquire);
        self.alone_at = (shared.living() <= 1).then_some(version);
    }

    /// `name` is what it does from now on, or waits to do: for watchers ([`Arbitration::is_watched`](crate::Arbitration::is_watched)).
    pub fn say(&self, name: &str) {
        self.client().shared().say(self.id(), name);
    }

    /// It has one more operation.
    #[inline]
    pub fn count_operation(&self) {
        self.client().shared().count_operation(self.id());
    }

    /// Waits for `engine` of `gpu`, after a token of that GPU if it has none, as long as `keep_waiting` answers yes:
    /// see [`Client::request_while`]. It has a token and no engine if only the token was granted.
    ///
    /// # Errors
    /// [`LockError`].
    pub fn acquire(&mut self, gpu: u16, engine: Engine, keep_waiting: &dyn Fn() -> bool) -> Result<(), LockError> {
        let begin = clock::now();
        let result = self.wait_for(gpu, engine, keep_waiting);
        self.client().shared().add_wait(self.id(), clock::now().saturating_since(begin));
        result
    }

    fn wait_for(&mut self, gpu: u16, engine: Engine, keep_waiting: &dyn Fn() -> bool) -> Result<(), LockError> {
        self.checked().check()?;
        let (client, thread) = (self.client.as_ref().expect("only the drop takes it"), self.thread);
        let keep_waiting = &|| client.check_home(thread) && keep_waiting();
        let what = Resource::Engine { gpu, engine };
        if self.engine.is_some() {
            return Err(LockError::Order { what });
        }
        let config = &client.shared().config;
        if gpu >= config.gpus {
            return Err(LockError::NoSuchGpu { gpu, gpus: config.gpus });
        }
        if self.token.is_none() {
            let request = TokenRequest { gpu: Some(gpu), ..TokenRequest::default() };
            let what = Resource::Token { gpu: Some(gpu) };
            self.token = Some(client.acquire(TOKEN, request, what, Some(keep_waiting))?);
        }
        let lock = config.engine_lock(gpu, engine);
        let request = TokenRequest { deadline: Instant::NEVER, ..TokenRequest::default() };
        client.acquire(lock, request, what, Some(keep_waiting))?;
        self.engine = Some(lock);
        self.begin_protection();
        Ok(())
    }

    /// The bandwidth lock, if it goes with the engine that it holds.
    #[inline]
    fn begin_protection(&mut self) {
        if let Some(budget) = self.budget.filter(|_| self.engine.is_some()) {
            // Refused to a client whose registration has ended, which holds nothing.
            let _ = self.client().begin_bandwidth(budget);
        }
    }

    /// Unlocks the engine, if it holds one.
    #[inline]
    pub fn release_engine(&mut self) {
        if let Some(lock) = self.engine.take() {
            if self.budget.is_some() {
                let _ = self.checked().end_bandwidth();
            }
            self.checked().release(lock, ReplicaId(0));
        }
    }

    /// Releases the token, if it holds one. The engine must have been unlocked before.
    #[inline]
    pub fn release_token(&mut self) {
        assert!(self.engine.is_none(), "engines are unlocked before the token");
        if let Some(replica) = self.token.take() {
            self.checked().release(TOKEN, replica);
        }
    }
}

impl Drop for MobileClient {
    fn drop(&mut self) {
        self.release_engine();
        self.release_token();
        if thread::current().id() != self.home {
            // Only the home can unlock its liveness lock: the registration ends with the home.
            std::mem::forget(self.client.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use laxity_model::{GpuArbitration, GpuSync, Nanos};
    use laxity_testing::{TestRegistry, until};

    use super::*;
    use crate::{Config, Registry, registration};

    const EE: Engine = Engine::Execution;

    #[test]
    fn one_thread_takes_a_free_engine_and_another_unlocks_it() {
        let registry: TestRegistry<Registry> = TestRegistry::new("mobile");
        let gpus = registry.create("mobile", &Config::new(2, 2)).expect("created");
        let mut mobile = MobileClient::new(gpus.register("m", Base::Fixed(5)).expect("room"), Base::Fixed(5));
        let other = gpus.register("other", Base::Fixed(1)).expect("room");
        assert!(mobile.take_if_free(1, EE));
        let held = gpus.snapshot().expect("whole");
        assert_eq!(held.engines[1][0].holders, [Some(mobile.id())]);
        assert!(matches!(
            other.request(TokenRequest { gpu: Some(1), deadline: Instant::ZERO, ..Default::default() }),
            Err(LockError::TimedOut { .. })
        ));
        let mut mobile = thread::scope(|scope| {
            let there = scope.spawn(move || {
                mobile.release_engine();
                mobile.release_token();
                mobile
            });
            there.join().expect("no panic")
        });
        let token = other.token_of(1).expect("free");
        assert!(!mobile.take_if_free(1, EE), "the token is taken");
        assert_eq!(mobile.token(), None);
        drop(token);
        mobile.acquire(1, EE, &|| true).expect("free");
        drop(mobile);
        assert!(!gpus.snapshot().expect("whole").engines[1][0].is_held());
    }

    /// Only the arbiter knows which GPU a job that may migrate is to have: no token is free without it.
    #[test]
    fn a_free_engine_is_taken_where_only_the_arbiter_grants_tokens() {
        let registry: TestRegistry<Registry> = TestRegistry::new("mobile-migration");
        let sync = GpuSync { migration: Some(Nanos(1_000)), ..GpuSync::DEFAULT };
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 2) };
        let gpus = registry.create("mobile", &config).expect("created");
        let client = |name, base| MobileClient::new(gpus.register(name, base).expect("room"), base);
        let (mut mobile, mut other) = (client("m", Base::Fixed(5)), client("other", Base::Fixed(1)));
        for _ in 0..3 {
            assert!(mobile.take_if_free(1, EE));
            assert_eq!(mobile.token(), Some(ReplicaId(1)));
            assert!(!other.take_if_free(1, EE), "taken");
            assert_eq!(other.token(), None);
            assert!(other.take_if_free(0, EE), "another GPU's");
            other.release_engine();
            other.release_token();
            mobile.release_engine();
            mobile.release_token();
        }
        assert!(other.take_if_free(1, EE), "nothing was left requested");
    }

    #[test]
    fn a_holder_sees_whether_another_client_waits() {
        let registry: TestRegistry<Registry> = TestRegistry::new("wanted");
        let gpus = registry.create("wanted", &Config::new(2, 1)).expect("created");
        let mut mobile = MobileClient::new(gpus.register("m", Base::Fixed(5)).expect("room"), Base::Fixed(5));
        assert!(mobile.take_if_free(0, EE));
        assert!(!mobile.is_wanted());
        thread::scope(|scope| {
            scope.spawn(|| {
                let other = gpus.register("other", Base::Fixed(1)).expect("room");
                drop(other.token().expect("it is given up").execute_engine().expect("as above"));
            });
            until("the other one waits", || mobile.is_wanted());
            mobile.release_engine();
            mobile.release_token();
        });
        until("none waits any more", || !mobile.is_wanted());
    }

    /// It goes on taking and unlocking its engine meanwhile.
    #[test]
    fn a_client_sees_another_one_come_and_on_a_second_look_go() {
        let registry: TestRegistry<Registry> = TestRegistry::new("alone");
        let gpus = registry.create("alone", &Config::new(2, 1)).expect("created");
        let mut mobile = MobileClient::new(gpus.register("m", Base::Fixed(5)).expect("room"), Base::Fixed(5));
        let use_engine = |mobile: &mut MobileClient| {
            assert!(mobile.take_if_free(0, EE));
            mobile.release_engine();
            mobile.release_token();
        };
        assert!(!mobile.is_alone(), "it has not looked");
        for _ in 0..3 {
            mobile.look_around();
            use_engine(&mut mobile);
            assert!(mobile.is_alone());
            thread::scope(|scope| {
                let ((tell, told), (to, from)) = (mpsc::channel::<()>(), mpsc::channel());
                scope.spawn({
                    let gpus = &gpus;
                    move || {
                        let other = gpus.register("other", Base::Fixed(1)).expect("room");
                        to.send(()).expect("it is awaited");
                        told.recv().expect("it is sent");
                        drop(other);
                    }
                });
                from.recv().expect("it is sent");
                assert!(!mobile.is_alone(), "another one is registered");
                mobile.look_around();
                assert!(!mobile.is_alone());
                tell.send(()).expect("it is awaited");
            });
            use_engine(&mut mobile);
            assert!(!mobile.is_alone(), "it has not looked again");
        }
    }

    #[test]
    fn the_bandwidth_lock_goes_with_the_engine() {
        let registry: TestRegistry<Registry> = TestRegistry::new("protects");
        let gpus = registry.create("protects", &Config::new(2, 1)).expect("created");
        let client = || gpus.register("m", Base::Background).expect("room");
        let (mut mobile, mut other) = (MobileClient::new(client(), Base::Background), None);
        mobile.protect(Some(64_000_000));
        for _ in 0..3 {
            assert!(mobile.take_if_free(0, EE));
            assert_eq!(gpus.bandwidth_budget(), Some(64_000_000));
            let waiting = other.insert(MobileClient::new(client(), Base::Background));
            waiting.protect(Some(1));
            assert!(!waiting.take_if_free(0, EE));
            assert_eq!(gpus.bandwidth_budget(), Some(64_000_000), "it got no engine");
            mobile.release_engine();
            assert_eq!(gpus.bandwidth_budget(), None);
            mobile.acquire(0, EE, &|| true).expect("free");
            assert_eq!(gpus.bandwidth_budget(), Some(64_000_000));
            mobile.release_engine();
            mobile.release_token();
        }
        assert!(mobile.take_if_free(0, EE));
        drop(mobile);
        assert_eq!(gpus.bandwidth_budget(), None);
    }

    #[test]
    fn a_client_that_is_dropped_away_from_home_holds_nothing_and_is_forgotten_when_home_ends() {
        let registry: TestRegistry<Registry> = TestRegistry::new("away");
        let gpus = registry.create("away", &Config::new(2, 1)).expect("created");
        let mut mobile = thread::scope(|scope| {
            let home = scope.spawn(|| {
                let client = gpus.register("m", Base::Background).expect("room");
                let mut mobile = MobileClient::new(client, Base::Background);
                assert!(mobile.take_if_free(0, EE));
                thread::scope(|scope| scope.spawn(move || drop(mobile)).join().expect("no panic"));
                let look = gpus.snapshot().expect("whole");
                assert!(!look.tokens.is_held() && !look.engines[0][0].is_held());
                let client = gpus.register("n", Base::Background).expect("room");
                MobileClient::new(client, Base::Background)
            });
            home.join().expect("no panic")
        });
        assert!(!mobile.take_if_free(0, EE), "its registration ended with its home");
        assert!(gpus.snapshot().expect("whole").clients.is_empty());
    }

    /// As others see a thread that ends by the bare system call.
    #[test]
    fn a_client_whose_home_ended_without_a_word_takes_waits_and_releases_nothing_any_more() {
        for waits in [false, true] {
            let registry: TestRegistry<Registry> = TestRegistry::new("lost");
            let config = Config { clients: 1 + u16::from(waits), ..Config::new(2, 1) };
            let gpus = registry.create("lost", &config).expect("created");
            let other = waits.then(|| gpus.register("holds", Base::Background).expect("room"));
            let held = other.as_ref().map(|other| other.token().expect("free"));
            let (to, from) = mpsc::channel();
            let ((tell, told), gpus) = (mpsc::channel::<()>(), &gpus);
            let mut mobile = thread::scope(|scope| {
                let home = scope.spawn(move || {
                    let client = gpus.register("m", Base::Background).expect("room");
                    to.send(MobileClient::new(client, Base::Background)).expect("it is awaited");
                    told.recv().expect("it is sent");
                    registration::forget_those_of_this_thread();
                });
                let mut mobile = from.recv().expect("it is sent");
                let waiter = if waits {
                    let acquired = scope.spawn(move || (mobile.acquire(0, EE, &|| true).map_err(drop), mobile));
                    until("it waits", || gpus.snapshot().expect("whole").tokens.waiting.len() == 1);
                    Ok(acquired)
                } else {
                    assert!(mobile.take_if_free(0, EE));
                    Err(mobile)
                };
                tell.send(()).expect("it is awaited");
                home.join().expect("no panic");
                waiter.map_or_else(
                    |mobile| mobile,
                    |acquired| {
                        let (acquired, mobile) = acquired.join().expect("no panic");
                        assert_eq!(acquired, Err(()), "the wait of a client without a home ends");
                        mobile
                    },
                )
            });
            drop(held);
            // What it held, and its number, are another client's.
            let next = gpus.register("next", Base::Background).expect("room");
            let token = next.try_token().expect("its home has ended");
            assert_eq!(next.id(), mobile.id());
            mobile.release_engine();
            mobile.release_token();
            assert!(!mobile.take_if_free(0, EE) && mobile.acquire(0, EE, &|| true).is_err());
            assert!(mobile.begin_job(Base::Fixed(1)).is_err());
            drop(mobile);
            assert_eq!(gpus.snapshot().expect("whole").tokens.holders, [Some(next.id())]);
            drop(token);
        }
    }
}
