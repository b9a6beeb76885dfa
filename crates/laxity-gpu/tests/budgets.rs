//! Jobs that exhaust their budgets, by GPUSync's rules: a waiting job is withdrawn and requests again when it is
//! replenished; a job that holds a token loses its place to the next one, which is granted the token when it is released.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use laxity_gpu::{Arbitration, Base, Budget, Config, LockError, Standing};
use laxity_model::{GpuArbitration, GpuSync, Nanos, ReplicaId};
use laxity_testing::{HANG, until};
use support::Place;

/// One token, whose queue has two places.
fn one_token() -> Config {
    let sync = GpuSync { fifo_length: Some(2), ..GpuSync::DEFAULT };
    Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) }
}

/// A thread that asks for a token at once and lets go of it when told.
struct Job {
    budget: Budget,
    let_go: Sender<()>,
}

fn job<'scope>(
    scope: &'scope Scope<'scope, '_>,
    arbitration: &'scope Arbitration,
    name: &'static str,
    granted: &Sender<&'static str>,
) -> Job {
    let ((let_go, told), (say, said), granted) = (channel(), channel(), granted.clone());
    let body = move |told: Receiver<()>| {
        let client = arbitration.register(name, Base::Background).expect("there is room");
        say.send(client.budget()).expect("it is asked for");
        let token = client.token_for(HANG).expect("granted some day");
        granted.send(name).expect("the test listens");
        let _ = told.recv();
        drop(token);
    };
    scope.spawn(move || body(told));
    let job = Job { budget: said.recv().expect("it says so"), let_go };
    until("it holds or waits", || standing(arbitration, name).is_some());
    job
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Holds,
    Waits(Standing),
}

/// `None`: it neither holds nor waits.
fn standing(arbitration: &Arbitration, name: &str) -> Option<Where> {
    let snapshot = arbitration.snapshot().expect("whole");
    let id = snapshot.clients.iter().find(|client| client.name == name)?.id;
    if snapshot.tokens.holders.contains(&Some(id)) {
        return Some(Where::Holds);
    }
    let waiting = snapshot.tokens.waiting.iter().find(|(task, _)| *task == id);
    waiting.map(|&(_, standing)| Where::Waits(standing))
}

const QUEUED: Option<Where> = Some(Where::Waits(Standing::Fifo(ReplicaId(0))));

#[test]
fn the_next_waiter_is_admitted_as_if_the_token_were_free_and_has_it_when_it_is() {
    // The first waiter comes before the holder overruns, or after.
    for is_early in [false, true] {
        let place = Place::new(if is_early { "early" } else { "late" });
        let arbitration = &place.create("g", &one_token()).expect("the name is free");
        thread::scope(|scope| {
            let (granted, grants) = channel();
            let holder = job(scope, arbitration, "holder", &granted);
            assert_eq!(grants.recv(), Ok("holder"));
            if is_early {
                holder.budget.exhaust().expect("whole");
            }
            let first = job(scope, arbitration, "first", &granted);
            let second = job(scope, arbitration, "second", &granted);
            assert_eq!(standing(arbitration, "first"), QUEUED);
            if !is_early {
                let before = standing(arbitration, "second");
                assert!(matches!(before, Some(Where::Waits(Standing::Outside | Standing::Donor { .. }))), "{before:?}");
                holder.budget.exhaust().expect("whole");
                holder.budget.exhaust().expect("whole");
            }
            assert_eq!(standing(arbitration, "second"), QUEUED, "the holder has no place in the queue any more");
            assert_eq!(standing(arbitration, "holder"), Some(Where::Holds), "and holds all the same");
            assert!(grants.try_recv().is_err());
            drop(holder.let_go);
            assert_eq!(grants.recv(), Ok("first"));
            drop(first.let_go);
            assert_eq!(grants.recv(), Ok("second"));
            drop(second.let_go);
        });
    }
}

#[test]
fn a_waiting_job_is_withdrawn_and_requests_again_when_it_is_replenished() {
    let place = Place::new("withdrawn");
    let arbitration = &place.create("g", &Config::new(4, 1)).expect("the name is free");
    thread::scope(|scope| {
        let (granted, grants) = channel();
        let holder = job(scope, arbitration, "holder", &granted);
        assert_eq!(grants.recv(), Ok("holder"));
        let first = job(scope, arbitration, "first", &granted);
        let second = job(scope, arbitration, "second", &granted);
        first.budget.exhaust().expect("whole");
        assert_eq!(standing(arbitration, "first"), None);
        first.budget.replenish().expect("whole");
        assert_eq!(standing(arbitration, "first"), QUEUED, "behind the second");
        first.budget.exhaust().expect("whole");
        drop(holder.let_go);
        assert_eq!(grants.recv(), Ok("second"));
        drop(second.let_go);
        until("the token is free", || standing(arbitration, "second").is_none());
        assert!(grants.try_recv().is_err(), "a withdrawn job is granted nothing");
        first.budget.replenish().expect("whole");
        assert_eq!(grants.recv(), Ok("first"), "its thread waited all the time");
        drop(first.let_go);
    });
}

#[test]
fn without_budget_a_client_asks_for_nothing_before_it_has_some() {
    let place = Place::new("barred");
    let arbitration = place.create("g", &one_token()).expect("the name is free");
    let client = arbitration.register("client", Base::Background).expect("there is room");
    let budget = client.budget();
    budget.exhaust().expect("whole");
    assert!(client.is_exhausted());
    assert!(matches!(client.try_token(), Err(LockError::TimedOut { .. })), "though it is free");
    assert!(matches!(client.token_for(Nanos::from_micros(300)), Err(LockError::TimedOut { .. })));
    thread::scope(|scope| {
        scope.spawn(|| budget.replenish().expect("whole"));
        drop(client.token().expect("granted with the budget"));
    });
    assert!(!client.is_exhausted());
    drop(client.try_token().expect("it is free"));
}

#[test]
fn the_budget_of_a_client_that_is_gone_is_of_no_other() {
    let place = Place::new("gone");
    let arbitration = &place.create("g", &one_token()).expect("the name is free");
    thread::scope(|scope| {
        let (granted, grants) = channel();
        let holder = job(scope, arbitration, "holder", &granted);
        assert_eq!(grants.recv(), Ok("holder"));
        let gone = arbitration.register("gone", Base::Background).expect("there is room").budget();
        let next = job(scope, arbitration, "next", &granted);
        let ids: Vec<u32> = arbitration.snapshot().expect("whole").clients.iter().map(|client| client.id.0).collect();
        assert_eq!(ids, [0, 1], "it has the number of the one that is gone");
        gone.exhaust().expect("whole");
        assert_eq!(standing(arbitration, "next"), QUEUED);
        drop((holder.let_go, next.let_go));
        assert_eq!(grants.recv(), Ok("next"));
    });
}

/// A lone waiter, to which the holder would hand the token over.
#[test]
fn a_token_is_not_handed_to_a_job_without_budget() {
    let place = Place::new("unfunded");
    let arbitration = &place.create("g", &one_token()).expect("the name is free");
    thread::scope(|scope| {
        let (granted, grants) = channel();
        let holder = job(scope, arbitration, "holder", &granted);
        assert_eq!(grants.recv(), Ok("holder"));
        let waiter = job(scope, arbitration, "waiter", &granted);
        assert_eq!(standing(arbitration, "waiter"), QUEUED);
        waiter.budget.exhaust().expect("whole");
        assert_eq!(standing(arbitration, "waiter"), None, "it asks for nothing");
        holder.let_go.send(()).expect("it listens");
        until("it let go", || standing(arbitration, "holder").is_none());
        assert_eq!(standing(arbitration, "waiter"), None);
        waiter.budget.replenish().expect("whole");
        assert_eq!(grants.recv(), Ok("waiter"));
        waiter.let_go.send(()).expect("it listens");
    });
}
