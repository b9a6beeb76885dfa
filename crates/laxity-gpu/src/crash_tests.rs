//! Threads that end at the gate, between any two steps: what was published happened, all else did not, and whoever
//! comes next makes good what was left undone. And others that come between any two steps.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use laxity_membership::{Kind, Reaped};
use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::lock::{Arbiter, Event};
use laxity_testing::TestRegistry;

use crate::arbiter_cache::ArbiterCache;
use crate::client::{Client, Resource, TokenRequest};
use crate::config::TOKEN;
use crate::owner_word::{self, Handed};
use crate::state_lock::StateGuard;
use crate::{Arbitration, Base, Config, LockError, Registry};

/// `FUTEX_OWNER_DIED`.
const OWNER_DIED: u32 = 0x4000_0000;
/// Time for a thread to go to sleep; if it has not yet, it looks before it does.
const SOON: Duration = Duration::from_millis(20);
const ANY: Resource = Resource::Token { gpu: None };

/// How urgent B is when it waits for A, which is as urgent as can be least: it sits, or the arbiter knows of it.
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

    /// A thread does this at the gate and ends there.
    fn crash(&self, at_the_gate: impl FnOnce(&mut StateGuard<'_>) + Send) {
        let shared = self.a.shared();
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut state = shared.lock_state().expect("whole");
                at_the_gate(&mut state);
                state.die();
            });
        });
    }

    /// C sleeps, waiting for A, and is handed the token, which it is not told; it lets go once `told`.
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
            let Handed::To(sleeper) = owner_word::hand_over(shared.slot_word(TOKEN)) else { panic!("it sits there") };
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

/// A's unlocking, by whoever is to die.
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
        // Anyone who comes for anything.
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

/// The one at the gate dies, and so does the one that makes good what it left.
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
fn a_panic_at_the_gate_changes_nothing() {
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
        assert!(scene.b.granted().is_none(), "it is told once");
        scene.b.release(TOKEN, ReplicaId(0));
        scene.finish();
    }
}

/// The one that hands over dies before it wakes the one that sits there, which sleeps.
#[test]
fn who_was_handed_a_token_and_not_told_is_told_by_whoever_buries() {
    let scene = Scene::new("untold", None);
    let shared = scene.a.shared();
    scene.hand_to_a_sleeper(|_| {
        let alive = shared.members().word(0).swap(OWNER_DIED, Ordering::SeqCst);
        shared.reap().expect("whole");
        shared.members().word(0).store(alive, Ordering::SeqCst);
    });
    scene.finish();
}

/// The one that sits there looks, finds the lock frozen, and goes to sleep again; the one that froze it dies.
#[test]
fn who_was_handed_a_lock_that_the_dead_froze_is_told_by_the_next() {
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

/// The lock is frozen just when it was handed over, by one that dies there; the next one makes good what it left.
#[test]
fn who_was_handed_a_lock_that_is_frozen_has_it() {
    for looks_first in [false, true] {
        let scene = Scene::new("handed", Some(Base::Background));
        assert_eq!(owner_word::hand_over(scene.a.shared().slot_word(TOKEN)), Handed::To(scene.b.id()));
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
        assert!(scene.b.granted().is_none(), "it is told once");
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
        assert!(scene.arbitration.register("c", Base::Background).is_err(), "nobody would look for it");
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

/// Whatever memory says, readers are told that it is damaged.
#[test]
fn damaged_memory_is_an_error_for_everyone() {
    let scene = Scene::new("damaged", Some(Base::Fixed(1)));
    let shared = scene.a.shared();
    let copy = shared.layout.copy(shared.version().load(Ordering::Relaxed));
    for offset in (copy..copy + 8 * 40).step_by(8) {
        let word = shared.segment.u64(offset);
        let whole = word.swap(u64::MAX, Ordering::Relaxed);
        shared.cache.lock().expect("nobody panicked").version = None;
        if let Err(error) = scene.arbitration.snapshot() {
            assert!(error.to_string().starts_with("the arbitration's memory: number"), "{error}");
            assert!(shared.lock_state().is_err());
        }
        word.store(whole, Ordering::Relaxed);
    }
    assert_eq!(scene.holder(), Some(scene.a.id()));
}
