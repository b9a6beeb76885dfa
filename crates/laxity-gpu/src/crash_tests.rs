//! Threads that end while they hold the state lock, between any two steps: what was published happened, all else did not,
//! and the next thread does what was left undone. And other threads that come between any two steps.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread::{self, Scope};
use std::time::Duration;

use laxity_membership::{Kind, Reaped};
use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::lock::{Arbiter, Event};
use laxity_testing::{HANG, TestRegistry, until};

use crate::arbiter_cache::ArbiterCache;
use crate::client::Client;
use crate::config::TOKEN;
use crate::owner_word::{self, HandOver};
use crate::registration;
use crate::request::{Resource, TokenRequest};
use crate::state_lock::StateGuard;
use crate::{Arbitration, Base, Config, LockError, OwnedToken, Registry};

/// `FUTEX_OWNER_DIED`.
const OWNER_DIED: u32 = 0x4000_0000;
/// Time for a thread to go to sleep; if it has not yet, it looks before it does.
const SOON: Duration = Duration::from_millis(20);
const ANY: Resource = Resource::Token { gpu: None };

/// The priority of B when it waits for A, which has the lowest: B parks, or waits by the arbiter.
const WAITS: [Option<Base>; 2] = [Some(Base::Background), Some(Base::Fixed(1))];

/// One GPU with one token; A holds it, B waits for it if it has a priority.
struct Scene {
    _place: TestRegistry<Registry>,
    arbitration: Arbitration,
    a: Client,
    b: Client,
}

impl Scene {
    fn new(test: &str, b: Option<Base>) -> Self {
        let place: TestRegistry<Registry> = TestRegistry::new(test);
        let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
        let register = |name, base| arbitration.register(name, base).expect("there is room");
        let waits = b.is_some();
        let (a, b) = (register("a", Base::Background), register("b", b.unwrap_or(Base::Background)));
        assert!(a.request_lock(TOKEN, TokenRequest::default(), ANY).expect("whole").is_some());
        if waits {
            assert!(b.request_lock(TOKEN, TokenRequest::default(), ANY).expect("whole").is_none());
        }
        Scene { _place: place, arbitration, a, b }
    }

    /// A thread does this under the state lock and ends there.
    fn crash(&self, under_the_lock: impl FnOnce(&mut StateGuard<'_>) + Send) {
        let shared = self.a.shared();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut state = shared.lock_state().expect("whole");
                under_the_lock(&mut state);
                state.die();
            });
        });
    }

    /// C sleeps, waiting for A, and is handed the token without a wake-up. It releases the token after `told`.
    fn hand_to_a_sleeper(&self, told: impl FnOnce(TaskId)) {
        let (shared, arbitration) = (self.a.shared(), &self.arbitration);
        thread::scope(|scope| {
            scope.spawn(move || {
                let client = arbitration.register("c", Base::Background).expect("there is room");
                drop(client.token().expect("it is handed over"));
            });
            while self.arbitration.snapshot().expect("whole").tokens.waiting.is_empty() {
                thread::yield_now();
            }
            thread::sleep(SOON);
            let HandOver::To(sleeper) = owner_word::hand_over(shared.slot_word(TOKEN)) else {
                panic!("it is parked there")
            };
            told(sleeper);
        });
        assert_eq!(shared.take(self.b.id(), TOKEN, None), Some(ReplicaId(0)), "it let go");
        self.b.release(TOKEN, ReplicaId(0));
    }

    fn holder(&self) -> Option<TaskId> {
        self.arbitration.snapshot().expect("whole").tokens.holders[0]
    }

    /// A lets go, B has it, and lets go, too.
    fn hand_over(&self) {
        self.a.release(TOKEN, ReplicaId(0));
        assert!(self.b.granted().is_some());
        self.b.release(TOKEN, ReplicaId(0));
    }

    /// Both are done, and the lock is open again.
    fn finish(self) {
        assert_eq!(self.holder(), None);
        assert_eq!(self.a.shared().take(self.b.id(), TOKEN, None).map(|replica| replica.0), Some(0), "it is open");
        drop(self.b);
        let last = self.arbitration.register("last", Base::Background).expect("there is room");
        assert_eq!(last.try_token().expect("it is free").gpu(), 0);
    }
}

/// A's unlocking, by the thread that is to die.
fn unlock(state: &mut StateGuard<'_>, task: TaskId) {
    state.arbitrate(TOKEN);
    state.handle(Event::Unlock { task, lock: TOKEN });
}

#[test]
fn a_lock_frozen_by_the_dead_is_still_held_by_its_owner() {
    let scene = Scene::new("frozen", None);
    scene.crash(|state| state.arbitrate(TOKEN));
    assert_eq!(scene.holder(), Some(scene.a.id()));
    assert!(scene.b.request_lock(TOKEN, TokenRequest::default(), ANY).expect("whole").is_none(), "A holds it");
    scene.hand_over();
    scene.finish();
}

#[test]
fn what_was_not_published_did_not_happen() {
    for b in WAITS {
        let scene = Scene::new("unpublished", b);
        let a = scene.a.id();
        scene.crash(|state| unlock(state, a));
        scene.crash(|state| {
            unlock(state, a);
            let (shared, version) = (state.shared(), state.version());
            state.cache.write(shared, version.wrapping_add(1));
        });
        assert_eq!(scene.holder(), Some(a));
        assert!(scene.b.granted().is_none());
        scene.hand_over();
        scene.finish();
    }
}

#[test]
fn a_grant_that_was_published_and_not_delivered_is_delivered_by_the_next() {
    for b in WAITS {
        let scene = Scene::new("undelivered", b);
        let (a, b) = (scene.a.id(), scene.b.id());
        scene.crash(|state| {
            unlock(state, a);
            assert_eq!(state.commit(), [], "it stays with the arbiter while it is granted");
        });
        assert_eq!(scene.holder(), Some(b));
        assert!(scene.b.granted().is_none());
        // Any other change.
        drop(scene.arbitration.register("c", Base::Background).expect("there is room"));
        assert!(scene.b.granted().is_some());
        scene.b.release(TOKEN, ReplicaId(0));
        scene.finish();
    }
}

#[test]
fn a_lock_that_was_reopened_and_not_thawed_is_thawed_by_the_next() {
    let scene = Scene::new("unthawed", None);
    let a = scene.a.id();
    scene.crash(|state| {
        unlock(state, a);
        state.commit();
    });
    assert!(scene.a.shared().take(a, TOKEN, None).is_none(), "frozen");
    drop(scene.arbitration.register("c", Base::Background).expect("there is room"));
    scene.finish();
}

/// The holder of the state lock dies, and so does the thread that repairs what it left.
#[test]
fn deaths_may_follow_each_other() {
    for b in WAITS {
        let scene = Scene::new("again", b);
        let a = scene.a.id();
        scene.crash(|state| {
            unlock(state, a);
            state.commit();
        });
        for lock in [0, 1, 2] {
            scene.crash(|state| state.arbitrate(LockId(lock)));
        }
        assert!(scene.b.granted().is_some());
        scene.b.release(TOKEN, ReplicaId(0));
        scene.finish();
    }
}

#[test]
fn a_panic_under_the_lock_changes_nothing() {
    for b in WAITS {
        let scene = Scene::new("panic", b);
        let a = scene.a.id();
        let shared = scene.a.shared();
        thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let mut state = shared.lock_state().expect("whole");
                unlock(&mut state, a);
                // An event that makes no sense.
                state.handle(Event::Unlock { task: a, lock: TOKEN });
            });
            assert!(panics.join().is_err());
        });
        assert_eq!(scene.holder(), Some(a));
        let late = TokenRequest { deadline: Instant::ZERO, length: Nanos(1), gpu: None };
        let c = scene.arbitration.register("c", Base::Background).expect("there is room");
        assert!(matches!(c.request(late), Err(LockError::TimedOut { .. })));
        scene.hand_over();
        scene.finish();
    }
}

#[test]
fn a_grant_that_comes_with_the_time_out_is_taken() {
    for b in WAITS {
        let scene = Scene::new("late", b);
        scene.a.release(TOKEN, ReplicaId(0));
        assert_eq!(scene.b.give_up(TOKEN).expect("whole"), Some(ReplicaId(0)));
        assert!(scene.b.granted().is_none(), "each grant is answered once");
        scene.b.release(TOKEN, ReplicaId(0));
        scene.finish();
    }
}

/// The owner hands over and dies before it wakes the parked waiter, which sleeps.
#[test]
fn a_waiter_that_was_handed_a_token_and_not_woken_is_notified_by_the_reaper() {
    let scene = Scene::new("untold", None);
    let shared = scene.a.shared();
    scene.hand_to_a_sleeper(|_| {
        let alive = shared.members().word(0).swap(OWNER_DIED, Ordering::SeqCst);
        shared.reap().expect("whole");
        shared.members().word(0).store(alive, Ordering::SeqCst);
    });
    scene.finish();
}

/// The parked waiter looks, finds the lock frozen, and goes to sleep again; the thread that froze it dies.
#[test]
fn a_waiter_that_was_handed_a_lock_frozen_by_the_dead_is_notified_by_the_next() {
    let scene = Scene::new("refrozen", None);
    scene.hand_to_a_sleeper(|sleeper| {
        scene.crash(|state| {
            owner_word::freeze(state.shared().slot_word(TOKEN));
        });
        scene.a.shared().notify(sleeper);
        thread::sleep(SOON);
        drop(scene.arbitration.register("d", Base::Background).expect("there is room"));
    });
    scene.finish();
}

/// A thread freezes the lock just after it was handed over, and dies there; the next thread repairs what it left.
#[test]
fn a_waiter_that_was_handed_a_lock_that_is_frozen_has_it() {
    for looks_first in [false, true] {
        let scene = Scene::new("handed", Some(Base::Background));
        assert_eq!(owner_word::hand_over(scene.a.shared().slot_word(TOKEN)), HandOver::To(scene.b.id()));
        let granted = || assert_eq!(scene.b.granted(), Some(ReplicaId(0)));
        if looks_first {
            granted();
        }
        scene.crash(|state| state.arbitrate(TOKEN));
        assert_eq!(scene.holder(), Some(scene.b.id()));
        drop(scene.arbitration.register("c", Base::Background).expect("there is room"));
        if !looks_first {
            granted();
        }
        assert!(scene.b.granted().is_none(), "each grant is answered once");
        scene.b.release(TOKEN, ReplicaId(0));
        scene.finish();
    }
}

/// Linux marks the word of a process that is killed when one of its threads has ended; the others may still run.
#[test]
fn a_thread_of_a_dead_process_keeps_what_it_holds_until_it_has_ended_itself() {
    for b in WAITS {
        let scene = Scene::new("ending", b);
        let shared = scene.a.shared();
        let died = |word: u32| shared.members().word(0).swap(word, Ordering::SeqCst);
        let alive = died(OWNER_DIED);
        let word = || shared.word(scene.b.id()).load(Ordering::Relaxed);
        let seen = word();
        assert_eq!(shared.reap().expect("whole"), Reaped::Pending);
        assert_ne!(seen, word(), "if it was about to go to sleep, it looks again");
        assert_eq!(scene.holder(), Some(scene.a.id()));
        assert!(scene.arbitration.register("c", Base::Background).is_err(), "no process would look for it");
        assert_eq!(died(alive), OWNER_DIED, "the word is cleared last");
        scene.hand_over();
        scene.finish();
    }
}

#[test]
fn a_watcher_that_was_overtaken_reads_again() {
    for b in WAITS {
        let scene = Scene::new("overtaken", b);
        let shared = scene.a.shared();
        let arbiter = Arbiter::new(shared.config.clients.into(), &shared.config.locks());
        let mut looks = 0;
        let waiting = ArbiterCache::new(arbiter, shared.locks.len(), shared.config.clients).peek(shared, |cache| {
            looks += 1;
            if looks == 1 {
                assert_eq!(scene.b.give_up(TOKEN).expect("whole"), None);
            }
            cache.arbiter.waiting(TOKEN)
        });
        assert_eq!((looks, waiting), (2, Ok(0)));
    }
}

/// Whatever memory holds, readers get an error if it is damaged.
#[test]
fn damaged_memory_is_an_error_for_everyone() {
    let scene = Scene::new("damaged", Some(Base::Fixed(1)));
    let shared = scene.a.shared();
    let copy = shared.layout.copy(shared.version().load(Ordering::Relaxed));
    for offset in (copy..copy + 8 * 40).step_by(8) {
        let word = shared.segment.u64(offset);
        let whole = word.swap(u64::MAX, Ordering::Relaxed);
        shared.cache.lock().expect("no thread panicked").version = None;
        if let Err(error) = scene.arbitration.snapshot() {
            assert!(error.to_string().starts_with("the arbitration's memory: number"), "{error}");
            assert!(shared.lock_state().is_err());
        }
        word.store(whole, Ordering::Relaxed);
    }
    assert_eq!(scene.holder(), Some(scene.a.id()));
}

/// A thread that takes the token and, once told, ends by the bare system call, as far as others see.
fn leak<'scope>(scope: &'scope Scope<'scope, '_>, arbitration: &'scope Arbitration) -> impl FnOnce() {
    let ((tell, told), (go_on, ended)) = (channel(), channel::<()>());
    let thread = scope.spawn(move || {
        let client = arbitration.register("leaked", Base::Background).expect("there is room");
        std::mem::forget(client.token().expect("it is free"));
        std::mem::forget(client);
        registration::forget_those_of_this_thread();
        tell.send(()).expect("it is awaited");
        ended.recv().expect("it is sent");
    });
    told.recv().expect("it is sent");
    move || {
        go_on.send(()).expect("it is awaited");
        thread.join().expect("no panic");
    }
}

#[test]
fn a_thread_that_ended_unnoticed_is_found_by_the_next_request() {
    for tries in [false, true] {
        let place: TestRegistry<Registry> = TestRegistry::new("unnoticed");
        let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
        thread::scope(|scope| leak(scope, &arbitration)());
        assert!(arbitration.snapshot().expect("whole").tokens.is_held(), "no thread has noticed");
        let client = arbitration.register("us", Base::Background).expect("there is room");
        drop(if tries { client.try_token() } else { client.token() }.expect("its holder has ended"));
        assert_eq!(arbitration.snapshot().expect("whole").clients.len(), 1);
    }
}

#[test]
fn a_thread_that_ends_unnoticed_is_found_by_a_waiter_whether_or_not_it_would_wait_for_ever() {
    for is_for_ever in [false, true] {
        let place: TestRegistry<Registry> = TestRegistry::new(&format!("noticed-{is_for_ever}"));
        let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
        thread::scope(|scope| {
            let end = leak(scope, &arbitration);
            let waits = scope.spawn(|| {
                let client = arbitration.register("us", Base::Background).expect("there is room");
                let granted =
                    if is_for_ever { client.token() } else { client.request_while(TokenRequest::default(), &|| true) };
                drop(granted.expect("its holder ends"));
            });
            until("it waits", || arbitration.snapshot().expect("whole").tokens.waiting.len() == 1);
            end();
            waits.join().expect("no panic");
        });
    }
}

#[test]
fn a_thread_that_ended_unnoticed_makes_room_for_the_next() {
    let place: TestRegistry<Registry> = TestRegistry::new("room");
    let arbitration = place.create("g", &Config { clients: 1, ..Config::new(2, 1) }).expect("the name is free");
    thread::scope(|scope| leak(scope, &arbitration)());
    let client = arbitration.register("us", Base::Background).expect("that of the thread that ended");
    drop(client.try_token().expect("its holder has ended"));
}

/// The thread that watches a budget may outlive the client's. The next client has its number.
#[test]
fn the_budget_of_a_thread_that_ended_unnoticed_is_of_no_other_client() {
    let place: TestRegistry<Registry> = TestRegistry::new("budget");
    let arbitration = place.create("g", &Config { clients: 2, ..Config::new(2, 1) }).expect("the name is free");
    let holder = arbitration.register("holder", Base::Background).expect("there is room");
    let token = holder.token().expect("it is free");
    let ended = thread::scope(|scope| {
        let end = scope.spawn(|| {
            let client = arbitration.register("ended", Base::Background).expect("there is room");
            let ended = (client.id(), client.budget());
            std::mem::forget(client);
            registration::forget_those_of_this_thread();
            ended
        });
        end.join().expect("no panic")
    });
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let client = arbitration.register("next", Base::Background).expect("that of the thread that ended");
            assert_eq!(client.id(), ended.0);
            drop(client.token().expect("granted some day"));
            client.is_exhausted()
        });
        let waiting = || arbitration.snapshot().expect("whole").tokens.waiting.len();
        until("it waits", || waiting() == 1);
        ended.1.exhaust().expect("whole");
        let after = waiting();
        ended.1.replenish().expect("whole");
        drop(token);
        assert!(!waits.join().expect("no panic"), "its budget is its own");
        assert_eq!(after, 1, "its request was not withdrawn");
    });
}

/// Thread-local values are dropped in any order: the registration may end before a token that outlives it.
#[test]
fn a_token_that_a_thread_keeps_to_its_very_end_is_released_once() {
    thread_local! {
        static KEPT: RefCell<Option<OwnedToken>> = const { RefCell::new(None) };
    }
    let place: TestRegistry<Registry> = TestRegistry::new("kept");
    let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
    let (tell, told) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Made first, so dropped last.
            KEPT.with(|kept| assert!(kept.borrow().is_none()));
            let client = Rc::new(arbitration.register("kept", Base::Background).expect("there is room"));
            let token = OwnedToken::request(&client, TokenRequest::default()).expect("it is free");
            KEPT.with(|kept| kept.replace(Some(token)));
            tell.send(()).expect("it is awaited");
        });
        told.recv().expect("it is sent");
        let client = arbitration.register("us", Base::Background).expect("there is room");
        let token = client.token_for(HANG).expect("its holder ends");
        until("the other is gone", || arbitration.snapshot().expect("whole").clients.len() == 1);
        assert_eq!(arbitration.snapshot().expect("whole").tokens.holders[0], Some(client.id()));
        drop(token);
    });
}
