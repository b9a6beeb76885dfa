//! Holders run at the priority of their waiters, through any number of locks, and no longer than these wait.
//!
//! What Linux says of threads is looked at where this user may use `SCHED_FIFO`; what the arbitration says, everywhere.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};

use laxity_gpu::{Arbitration, Base, ClientState, Config, Inheritance, Snapshot, Token};
use laxity_model::{GpuArbitration, GpuSync, Instant, TaskId};
use laxity_sys::scheduling::{self, Attributes};
use laxity_testing::{skip, until};
use support::Place;

/// Two tokens of one GPU.
fn shared_gpu() -> Config {
    let sync = GpuSync { tokens: 2, ..GpuSync::DEFAULT };
    Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) }
}

/// A thread at a fixed priority that does one thing after another, when told.
struct Actor<'scope> {
    keep_waiting: Sender<()>,
    _thread: ScopedJoinHandle<'scope, ()>,
}

impl Actor<'_> {
    fn keep_waiting(&self) {
        self.keep_waiting.send(()).expect("it waits for this");
    }
}

/// Takes a token, then the execution engine, then lets go of both; told to before each but the first.
fn actor<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    arbitration: &'scope Arbitration,
    name: &'scope str,
    priority: u8,
) -> Actor<'scope> {
    let (keep_waiting, told) = channel();
    let play = move |told: Receiver<()>| {
        // Where it may not, the order alone can be looked at.
        let _ = scheduling::set_fifo(priority);
        let client = arbitration.register(name, Base::Fixed(priority)).expect("there is room");
        let token = client.token().expect("granted some day");
        if told.recv().is_ok() {
            let engine = token.execute_engine().expect("granted some day");
            let _ = told.recv();
            drop(engine);
            let _ = told.recv();
        }
        drop(token);
        let _ = told.recv();
    };
    Actor { keep_waiting, _thread: scope.spawn(move || play(told)) }
}

fn client(snapshot: &Snapshot, name: &str) -> Option<ClientState> {
    snapshot.clients.iter().find(|client| client.name == name).cloned()
}

/// The arbitration says that `name` has this priority, and so does Linux.
fn has_priority(arbitration: &Arbitration, name: &str, priority: u8) -> bool {
    let snapshot = arbitration.snapshot().expect("whole");
    let Some(client) = client(&snapshot, name) else { return false };
    let is_so = client.effective == Base::Fixed(priority);
    if arbitration.inheritance() == Inheritance::OrderOnly {
        return is_so;
    }
    is_so && Attributes::of(client.thread).is_ok_and(|attributes| attributes.fixed_priority() == Some(priority))
}

fn is_waiting(arbitration: &Arbitration, name: &str) -> bool {
    let snapshot = arbitration.snapshot().expect("whole");
    let mut locks = snapshot.engines.iter().flatten().chain([&snapshot.tokens]);
    let id = client(&snapshot, name).map(|client| client.id);
    locks.any(|lock| lock.waiting.iter().any(|&(task, _)| Some(task) == id))
}

fn holds_token(arbitration: &Arbitration, name: &str) -> bool {
    let snapshot = arbitration.snapshot().expect("whole");
    client(&snapshot, name).is_some_and(|client| snapshot.tokens.holders.contains(&Some(client.id)))
}

fn holds_engine(arbitration: &Arbitration, name: &str) -> bool {
    let snapshot = arbitration.snapshot().expect("whole");
    client(&snapshot, name).is_some_and(|client| snapshot.engines[0][0].holders.contains(&Some(client.id)))
}

/// ```text
///   other (40) --donates--> middle (20) --waits for the engine--> low (10) <--donates-- high (30)
/// ```
#[test]
fn priorities_are_inherited_through_tokens_and_engines_and_given_back() {
    let place = Place::new("inheritance");
    let arbitration = place.create("g", &shared_gpu()).expect("the name is free");
    if arbitration.inheritance() == Inheritance::OrderOnly {
        skip(format_args!("only the order of jobs is tested: {}", arbitration.inheritance()));
    }
    let arbitration = &arbitration;
    thread::scope(|scope| {
        let low = actor(scope, arbitration, "low", 10);
        until("low holds a token", || holds_token(arbitration, "low"));
        low.keep_waiting();
        until("low holds the engine", || holds_engine(arbitration, "low"));
        let middle = actor(scope, arbitration, "middle", 20);
        until("middle holds a token", || holds_token(arbitration, "middle"));
        assert!(has_priority(arbitration, "low", 10), "no thread waits");
        middle.keep_waiting();
        until("low inherits from middle", || has_priority(arbitration, "low", 20));
        let _high = actor(scope, arbitration, "high", 30);
        until("high waits", || is_waiting(arbitration, "high"));
        // Two requests fill the queues of two CPUs: high donates to the lowest from outside, then other to the next.
        until("low inherits from high", || has_priority(arbitration, "low", 30));
        assert!(has_priority(arbitration, "middle", 20));
        let _other = actor(scope, arbitration, "other", 40);
        until("other waits", || is_waiting(arbitration, "other"));
        until("middle inherits from other", || has_priority(arbitration, "middle", 40));
        until("low inherits from other through middle", || has_priority(arbitration, "low", 40));
        let snapshot = arbitration.snapshot().expect("whole");
        let lender = client(&snapshot, "low").and_then(|client| client.inherits_from);
        assert_eq!(lender, client(&snapshot, "other").map(|client| client.id));
        println!("{snapshot}");

        low.keep_waiting(); // drops the engine
        until("middle holds the engine", || holds_engine(arbitration, "middle"));
        until("low has what high lends", || has_priority(arbitration, "low", 30));
        low.keep_waiting(); // drops the token
        until("high holds the token", || holds_token(arbitration, "high"));
        until("low has its own", || has_priority(arbitration, "low", 10));
        low.keep_waiting();
        middle.keep_waiting();
        middle.keep_waiting();
        until("other holds the token", || holds_token(arbitration, "other"));
        until("middle has its own", || has_priority(arbitration, "middle", 20));
    });
    assert!(arbitration.snapshot().expect("whole").clients.is_empty());
}

#[test]
fn the_most_urgent_is_granted_first_where_the_order_is_by_priority() {
    use laxity_model::EngineOrder::{Fifo, Priority};
    for order in [Fifo, Priority] {
        let place = Place::new(if order == Fifo { "fifo" } else { "priority" });
        let sync = GpuSync { tokens: 4, engine_order: order, ..GpuSync::DEFAULT };
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, 1) };
        let arbitration = place.create("g", &config).expect("the name is free");
        let client = arbitration.register("us", Base::Fixed(50)).expect("there is room");
        let token = client.token().expect("it is free");
        let engine = token.execute_engine().expect("it is free");
        let (granted, grants) = channel();
        thread::scope(|scope| {
            for (name, deadline) in [("late", 2_000), ("early", 1_000), ("later", 3_000)] {
                let (arbitration, granted) = (&arbitration, granted.clone());
                scope.spawn(move || {
                    let base = Base::Deadline(Instant(deadline));
                    let client = arbitration.register(name, base).expect("there is room");
                    let token: Token<'_> = client.token().expect("there are enough");
                    let _engine = token.execute_engine().expect("granted some day");
                    granted.send(name).expect("the test listens");
                });
                until("it waits", || is_waiting(arbitration, name));
            }
            drop(engine);
        });
        drop(granted);
        let expected = if order == Fifo { ["late", "early", "later"] } else { ["early", "late", "later"] };
        assert_eq!(grants.iter().collect::<Vec<_>>(), expected);
        assert_eq!(client.id(), TaskId(0));
    }
}
