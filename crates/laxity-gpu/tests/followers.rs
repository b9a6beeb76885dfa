//! Threads that work on behalf of token holders are as urgent as these, also where waiters in other processes make
//! them so: the live klmirqd. What Linux says is looked at, so this user must be allowed `SCHED_FIFO`.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};

use laxity_gpu::{Arbitration, Base, Config, FollowError, Inheritance, Registry};
use laxity_model::{GpuArbitration, GpuSync};
use laxity_sys::scheduling::{self, Attributes};
use laxity_testing::{Process, role, skip, until};
use support::Place;

/// Not a test by itself: a process whose thread waits for the token at priority 40 until it is killed.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    assert_eq!(role, "wait");
    let arbitration = Registry::at(&place).attach("g").expect("it was created");
    scheduling::set_fifo(40).expect("the test was allowed to");
    let client = arbitration.register("other", Base::Fixed(40)).expect("there is room");
    let _token = client.token_of(0).expect("granted some day");
    loop {
        thread::park();
    }
}

/// Two GPUs, and `tokens` tokens of each.
fn gpus(tokens: u32) -> Config {
    let sync = GpuSync { tokens, ..GpuSync::DEFAULT };
    Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, 2) }
}

/// An arbitration whose holders can be raised; none: Linux does not permit it.
fn arbitration(place: &Place, tokens: u32) -> Option<Arbitration> {
    let arbitration = place.create("g", &gpus(tokens)).expect("the name is free");
    if arbitration.inheritance() == Inheritance::Real {
        return Some(arbitration);
    }
    skip(arbitration.inheritance());
    None
}

/// A thread that sleeps until it is dropped.
struct Servant<'scope> {
    number: u32,
    _end: Sender<()>,
    _thread: ScopedJoinHandle<'scope, ()>,
}

impl<'scope> Servant<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>) -> Self {
        let ((say, said), (end, ended)) = (channel(), channel());
        let thread = scope.spawn(move || {
            say.send(scheduling::current_thread()).expect("it is asked for");
            let _ = ended.recv();
        });
        Servant { number: said.recv().expect("it says so"), _end: end, _thread: thread }
    }

    /// Its fixed priority, if it has one.
    fn priority(&self) -> Option<u8> {
        Attributes::of(self.number).expect("it lives").fixed_priority()
    }
}

/// Takes a token of a GPU at a fixed priority, then its execution engine, and lets go of both; told to before each.
fn actor<'scope>(
    scope: &'scope Scope<'scope, '_>,
    arbitration: &'scope Arbitration,
    priority: u8,
    gpu: u16,
) -> Sender<()> {
    let (keep_waiting, told) = channel();
    let play = move |told: Receiver<()>| {
        scheduling::set_fifo(priority).expect("it is permitted");
        let name = format!("actor {priority}");
        let client = arbitration.register(&name, Base::Fixed(priority)).expect("there is room");
        if told.recv().is_err() {
            return;
        }
        let token = client.token_of(gpu).expect("granted some day");
        let Ok(()) = told.recv() else { return };
        let engine = token.execute_engine().expect("granted some day");
        let Ok(()) = told.recv() else { return };
        drop(engine);
        drop(token);
        let _ = told.recv();
    };
    scope.spawn(move || play(told));
    keep_waiting
}

#[test]
fn a_follower_is_as_urgent_as_the_most_urgent_holder_with_what_it_inherits() {
    let place = Place::new("followers");
    let Some(arbitration) = arbitration(&place, 2) else { return };
    let arbitration = &arbitration;
    thread::scope(|scope| {
        let (servant, of_other_gpu) = (Servant::start(scope), Servant::start(scope));
        let follower = arbitration.follow(0, servant.number).expect("there is room");
        let _other = arbitration.follow(1, of_other_gpu.number).expect("there is room");
        let [low, middle, high] = [10, 20, 30].map(|priority| actor(scope, arbitration, priority, 0));
        let keep_waiting = |actor: &Sender<()>| actor.send(()).expect("it waits for this");
        assert_eq!(servant.priority(), None, "no thread holds a token");
        keep_waiting(&low);
        until("the holder's", || servant.priority() == Some(10));
        keep_waiting(&middle);
        until("that of the most urgent holder", || servant.priority() == Some(20));
        keep_waiting(&high);
        until("that which a holder inherits", || servant.priority() == Some(30));
        assert_eq!(of_other_gpu.priority(), None, "its GPU has no holders");
        // Both holders take the engine, one after the other, and let go of it and of their tokens.
        [&low, &low, &middle, &middle].into_iter().for_each(keep_waiting);
        keep_waiting(&high);
        until("the last holder's", || servant.priority() == Some(30));
        keep_waiting(&high);
        until("its own again", || servant.priority().is_none());
        assert!(follower.refused().is_none());
    });
}

/// It took its token without a look at the followers, as it had nothing to lend yet.
#[test]
fn an_ordinary_holder_lends_what_it_inherits() {
    let place = Place::new("ordinary");
    let Some(arbitration) = arbitration(&place, 1) else { return };
    let arbitration = &arbitration;
    thread::scope(|scope| {
        let servant = Servant::start(scope);
        let _follower = arbitration.follow(0, servant.number).expect("there is room");
        let client = arbitration.register("ordinary", Base::Background).expect("there is room");
        let token = client.token_of(0).expect("it is free");
        assert_eq!(servant.priority(), None, "no holder has anything to lend");
        let urgent = actor(scope, arbitration, 30, 0);
        urgent.send(()).expect("it waits for this");
        until("that which the holder inherits", || servant.priority() == Some(30));
        drop(token);
        assert_eq!(servant.priority(), Some(30), "that of the next holder");
        urgent.send(()).expect("it waits for this");
        urgent.send(()).expect("it waits for this");
        until("its own again", || servant.priority().is_none());
    });
}

/// A second process's thread waits, so that it is that process which raises our threads, and its death that lowers them.
#[test]
fn other_processes_raise_and_lower_followers() {
    let place = Place::new("foreign");
    let Some(arbitration) = arbitration(&place, 1) else { return };
    let arbitration = &arbitration;
    thread::scope(|scope| {
        let servant = Servant::start(scope);
        let follower = arbitration.follow(0, servant.number).expect("there is room");
        let low = actor(scope, arbitration, 10, 0);
        low.send(()).expect("it waits for this");
        until("the holder's", || servant.priority() == Some(10));
        let mut other = Process::start(&place, "wait");
        until("that of the waiter in another process", || servant.priority() == Some(40));
        other.kill();
        until("the holder's again", || servant.priority() == Some(10));
        drop(follower);
        assert_eq!(servant.priority(), None, "a follower that is dropped is scheduled as before");
        low.send(()).expect("it waits for this");
    });
}

#[test]
fn threads_of_a_holder_s_own_process_follow_and_no_others() {
    let place = Place::new("whose");
    let Some(arbitration) = arbitration(&place, 1) else { return };
    // Attached twice: as good as two processes.
    let other = place.attach("g").expect("it was created");
    thread::scope(|scope| {
        let (ours, theirs) = (Servant::start(scope), Servant::start(scope));
        let _followers = [(&arbitration, &ours), (&other, &theirs)]
            .map(|(arbitration, servant)| arbitration.follow(0, servant.number).expect("there is room"));
        let holder = actor(scope, &arbitration, 10, 0);
        holder.send(()).expect("it waits for this");
        until("the holder's", || ours.priority() == Some(10));
        assert_eq!(theirs.priority(), None);
        // By the arbiter, as a thread waits.
        let waiter = actor(scope, &other, 20, 0);
        waiter.send(()).expect("it waits for this");
        until("that which the holder inherits", || ours.priority() == Some(20));
        holder.send(()).expect("it waits for this");
        holder.send(()).expect("it waits for this");
        until("that of the next holder", || theirs.priority() == Some(20));
        until("its own", || ours.priority().is_none());
    });
}

#[test]
fn what_cannot_follow_is_refused() {
    let place = Place::new("refused");
    let arbitration = place.create("g", &gpus(1)).expect("the name is free");
    let thread = scheduling::current_thread();
    assert!(matches!(arbitration.follow(2, thread), Err(FollowError::NoSuchGpu { gpu: 2, gpus: 2 })));
    assert!(matches!(arbitration.follow(0, 1), Err(FollowError::NoSuchThread { thread: 1 })));
    let followers: Vec<_> = (0..16).map(|_| arbitration.follow(0, thread).expect("there is room")).collect();
    assert!(matches!(arbitration.follow(0, thread), Err(FollowError::Full { threads: 16 })));
    drop(followers);
    arbitration.follow(0, thread).expect("there is room again");
}
