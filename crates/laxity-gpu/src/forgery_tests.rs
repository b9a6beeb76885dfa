//! Words of shared memory that a hostile process of this user forged: a privileged process raises no thread for them that
//! is not a member's, and none beyond the priorities that Linux really gives to a holder and its waiters.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use laxity_membership::Kind;
use laxity_model::TaskId;
use laxity_sys::scheduling::{self, Attributes, current_thread};
use laxity_sys::segment::HEADER;
use laxity_testing::{TestRegistry, skip, until};

use crate::inheritance;
use crate::layout::HOME;
use crate::shared::Shared;
use crate::{Arbitration, Base, Config, Inheritance, Registry, RegistryError};

const NOT_PERMITTED: u32 = 1;
const URGENT: u8 = 20;

/// A process of another user, which is none of the arbitration's.
struct Stranger(Child);

impl Stranger {
    fn start() -> Option<Self> {
        let mut command = Command::new("sleep");
        command.arg("60").uid(65534).stdout(Stdio::null()).spawn().ok().map(Stranger)
    }

    fn policy(&self) -> Attributes {
        Attributes::of(self.0.id()).expect("it sleeps")
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An arbitration that can raise threads; none where Linux does not permit it.
fn arbitration(place: &TestRegistry<Registry>) -> Option<Arbitration> {
    let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
    if arbitration.inheritance() == Inheritance::Real {
        return Some(arbitration);
    }
    skip(arbitration.inheritance());
    None
}

/// This thread holds the token at no fixed priority, `forge` forges words of it and of the waiter, and the waiter waits at
/// [`URGENT`]. Then `check` looks.
fn raise(arbitration: &Arbitration, forge: impl Fn(&Shared, TaskId, TaskId), check: impl Fn(&Shared, TaskId)) {
    let shared = arbitration.membership().shared.clone();
    let holder = arbitration.register("holder", Base::Background).expect("there is room");
    let token = holder.token().expect("it is free");
    let (tell, told) = channel();
    let (go_on, forged) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            scheduling::set_fifo(URGENT).expect("it is permitted");
            let waiter = arbitration.register("waiter", Base::Fixed(URGENT)).expect("there is room");
            tell.send(waiter.id()).expect("it is awaited");
            forged.recv().expect("it is sent");
            drop(waiter.token().expect("granted some day"));
        });
        let waiter = told.recv().expect("it is sent");
        forge(&shared, holder.id(), waiter);
        go_on.send(()).expect("it is awaited");
        until("the waiter waits by the arbiter", || {
            let snapshot = arbitration.snapshot().expect("whole");
            snapshot.client(holder.id()).is_some_and(|client| client.inherits_from == Some(waiter))
        });
        // Under the state lock: what follows the publication is done.
        drop(shared.lock_state().expect("whole"));
        check(&shared, holder.id());
        drop(token);
    });
}

fn store(shared: &Shared, offset: usize, value: u32) {
    shared.segment.u32(offset).store(value, Ordering::Relaxed);
}

#[test]
fn a_thread_of_another_user_is_not_raised() {
    let place = TestRegistry::new("stranger");
    let Some(arbitration) = arbitration(&place) else { return };
    let Some(stranger) = Stranger::start() else {
        return skip("only root starts processes of other users");
    };
    let before = stranger.policy();
    let pid = stranger.0.id();
    let forge = |shared: &Shared, holder: TaskId, _: TaskId| {
        let words = shared.client(holder);
        store(shared, words.thread, pid);
        store(shared, words.pid, pid);
        // And the number of the member itself, 8 bytes after the word that it holds.
        let from = |word: &AtomicU32| word.as_ptr().addr();
        let member = shared.members().word(arbitration.membership().slot);
        let offset = from(member) - from(shared.segment.u32(HEADER)) + HEADER;
        shared.segment.u64(offset + 8).store(pid.into(), Ordering::Relaxed);
    };
    let check = |shared: &Shared, holder: TaskId| {
        assert_eq!(shared.number(shared.client(holder).refused), NOT_PERMITTED);
        assert_eq!(stranger.policy(), before);
    };
    raise(&arbitration, forge, check);
}

#[test]
fn a_thread_that_is_not_of_a_member_is_not_raised() {
    let place = TestRegistry::new("outsider");
    let Some(arbitration) = arbitration(&place) else { return };
    let mut outsider = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep(1)");
    let pid = outsider.id();
    let policy = || Attributes::of(pid).expect("it sleeps");
    let before = policy();
    let forge = |shared: &Shared, holder: TaskId, _: TaskId| {
        let words = shared.client(holder);
        store(shared, words.thread, pid);
        store(shared, words.pid, pid);
    };
    raise(&arbitration, forge, |_, _| assert_eq!(policy(), before));
    outsider.kill().expect("it is ours");
    outsider.wait().expect("it is ours");
}

#[test]
fn a_holder_is_raised_no_further_than_its_waiter_really_is() {
    let place = TestRegistry::new("forged-waiter");
    let Some(arbitration) = arbitration(&place) else { return };
    let forge = |shared: &Shared, _: TaskId, waiter: TaskId| {
        let own = inheritance::own(shared, waiter).fixed(99).expect("there is such a priority");
        inheritance::store(shared, shared.client(waiter).own, own);
    };
    let check = |_: &Shared, _: TaskId| {
        let has = Attributes::of(current_thread()).expect("it is this one");
        assert_eq!(has.fixed_priority(), Some(URGENT));
    };
    raise(&arbitration, forge, check);
}

#[test]
fn a_holder_gets_back_no_more_than_it_had() {
    let place = TestRegistry::new("forged-holder");
    let Some(arbitration) = arbitration(&place) else { return };
    let before = Attributes::of(current_thread()).expect("it is this one");
    let forge = |shared: &Shared, holder: TaskId, _: TaskId| {
        let own = inheritance::own(shared, holder).fixed(99).expect("there is such a priority");
        inheritance::store(shared, shared.client(holder).own, own);
    };
    raise(&arbitration, forge, |_, _| {
        let has = Attributes::of(current_thread()).expect("it is this one").fixed_priority();
        assert!(has <= Some(URGENT), "{has:?}");
    });
    let has = Attributes::of(current_thread()).expect("it is this one").fixed_priority();
    assert!(has <= Some(URGENT), "{has:?}");
    before.give_to(current_thread()).expect("a thread may be lowered");
}

/// Each word that says where numbers of threads and mutexes mean something, forged alone while a member lives.
#[test]
fn an_arbitration_of_another_boot_namespace_or_c_library_is_refused_by_name() {
    let place = TestRegistry::<Registry>::new("elsewhere");
    let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
    let segment = &arbitration.membership().shared.segment;
    for (word, expected) in ["C library", "PID namespace", "boot"].into_iter().enumerate() {
        let word = segment.u64(HOME.offset + 8 * word);
        let own = word.fetch_xor(1, Ordering::Relaxed);
        let error = place.attach("g").expect_err("it is elsewhere");
        assert!(matches!(error, RegistryError::Elsewhere { part, .. } if part == expected), "{error}");
        assert!(error.to_string().starts_with("arbitration g: its processes have another "), "{error}");
        word.store(own, Ordering::Relaxed);
        drop(place.attach("g").expect("it is here again"));
    }
}
