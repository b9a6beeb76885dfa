//! Arbitrations by name, clients, and what is refused.

mod support;

use laxity_gpu::{Base, Config, LockError, RegisterError, RegistryError, TokenRequest};
use laxity_model::{CopyDirection, Engine, GpuArbitration, GpuSync, Instant, Nanos};
use support::Place;

fn text(error: &dyn std::fmt::Display) -> String {
    error.to_string()
}

#[test]
fn processes_that_start_in_any_order_find_one_arbitration() {
    let place = Place::new("order");
    let config = Config::new(4, 2);
    let first = place.create_or_attach("g", &config).expect("free");
    let second = place.create_or_attach("g", &config).expect("the same");
    assert!(matches!(place.create_or_attach("g", &Config::new(4, 1)), Err(RegistryError::Different { .. })));
    assert!(matches!(place.create("g", &config), Err(RegistryError::Exists { .. })));
    assert_eq!(place.names().expect("readable"), ["g"]);
    drop(first);
    assert!(place.is_in_use("g").expect("whole"));
    assert_eq!(place.gc().expect("readable"), Vec::<String>::new());
    drop(second);
    assert!(place.files().is_empty(), "the last one out leaves nothing");
    assert!(matches!(place.attach("g"), Err(RegistryError::NotFound { .. })));
    assert!(matches!(place.look("g"), Err(RegistryError::NotFound { .. })));
}

#[test]
fn what_is_no_arbitration_is_refused_and_left_alone() {
    let place = Place::new("foreign");
    std::fs::write(place.directory().join("laxity-gpu.text"), "something else").expect("writable");
    assert!(matches!(place.attach("text"), Err(RegistryError::Segment(_))));
    assert_eq!(place.gc().expect("readable"), Vec::<String>::new());
    assert_eq!(place.files().len(), 1);
    for name in ["", "a/b", &"x".repeat(201)] {
        assert!(matches!(place.create(name, &Config::new(1, 1)), Err(RegistryError::Name { .. })));
    }
    let error = place.create("g", &Config::new(1, 65)).expect_err("too many");
    assert_eq!(text(&error), "GPUs: 65 is outside 1 to 64; choose one within");
}

#[test]
fn clients_are_as_many_as_configured_and_leave_when_dropped() {
    let place = Place::new("clients");
    let arbitration = place.create("g", &Config { clients: 2, ..Config::new(1, 1) }).expect("free");
    let register = |name: &str| arbitration.register(name, Base::Background);
    let (first, _second) = (register("first").expect("room"), register("second").expect("room"));
    let error = register("third").expect_err("full");
    assert_eq!(text(&error), "2 threads are registered, which is all the configuration allows; raise `clients`");
    let token = first.token().expect("it is free");
    // Forgotten tokens go with their client.
    std::mem::forget(token);
    drop(first);
    drop(register("third").expect("room").try_token().expect("it is free"));
    assert!(matches!(register(""), Err(RegisterError::Name { .. })));
    assert!(matches!(arbitration.register("x", Base::Fixed(100)), Err(RegisterError::Priority { priority: 100 })));
}

#[test]
fn requests_that_could_end_in_a_deadlock_are_refused() {
    let place = Place::new("refused");
    let sync = GpuSync { tokens: 2, ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 2) };
    let arbitration = place.create("g", &config).expect("free");
    let client = arbitration.register("us", Base::Background).expect("room");
    assert_eq!(
        text(&client.token_of(2).expect_err("none")),
        "GPU 2: the arbitration has 2, counted from 0; ask for one of them"
    );
    let token = client.token_of(1).expect("it is free");
    assert_eq!((token.gpu(), token.replica().0), (1, 1));
    assert!(matches!(client.token(), Err(LockError::Order { .. })), "one token at a time");
    let copy = token.copy_engine(CopyDirection::In).expect("it is free");
    assert_eq!((copy.gpu(), copy.engine()), (1, Engine::Copy(0)));
    assert!(matches!(token.copy_engine(CopyDirection::In), Err(LockError::Order { .. })), "it has that one");
    assert!(matches!(token.execute_engine(), Err(LockError::Order { .. })), "another may hold EE and wait for CE0");
    drop(token.copy_engine(CopyDirection::Out).expect("it comes later"));
    drop(copy);
    drop(token.execute_engine().expect("it is free"));
    assert!(matches!(token.peer_copy(1, Instant::ZERO), Err(LockError::SameGpu { gpu: 1 })));
    assert!(matches!(token.peer_copy(9, Instant::ZERO), Err(LockError::NoSuchGpu { gpu: 9, gpus: 2 })));
    let pair = token.peer_copy(0, Instant::ZERO).expect("both are free");
    let engines = pair.engines().each_ref().map(|engine| (engine.gpu(), engine.engine()));
    assert_eq!(engines, [(0, Engine::Copy(1)), (1, Engine::Copy(0))]);
}

#[test]
fn a_copy_is_broken_into_chunks_between_which_others_may_copy() {
    let place = Place::new("chunks");
    let sync = GpuSync { tokens: 2, chunk: Some(1000), ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), copy_engines: 1, ..Config::new(2, 1) };
    let arbitration = place.create("g", &config).expect("free");
    let register = |name: &str| arbitration.register(name, Base::Background).expect("room");
    let (long, short) = (register("long"), register("short"));
    let (long, short) = (long.token().expect("free"), short.token().expect("free"));
    let mut chunks = long.copy_chunks(CopyDirection::In, 2500, Instant::NEVER);
    let mut ranges = Vec::new();
    while let Some(chunk) = chunks.next().expect("free") {
        ranges.push(chunk.range());
        assert!(short.engine(Engine::Copy(0), Instant::ZERO).is_err(), "in the middle of a chunk");
        drop(chunk);
        drop(short.engine(Engine::Copy(0), Instant::ZERO).expect("between chunks"));
    }
    assert_eq!(ranges, [0..1000, 1000..2000, 2000..2500]);
    assert!(short.copy_chunks(CopyDirection::In, 0, Instant::NEVER).next().expect("nothing to do").is_none());
}

#[test]
fn a_wait_that_takes_too_long_fails_and_leaves_no_trace() {
    let place = Place::new("late");
    let arbitration = place.create("g", &Config::new(1, 1)).expect("free");
    let register = |name: &str| arbitration.register(name, Base::Background).expect("room");
    let (first, second) = (register("first"), register("second"));
    let token = first.token().expect("free");
    let error = second.token_for(Nanos::from_millis(1)).expect_err("held");
    assert_eq!(text(&error), "a token of any GPU: not granted in time; wait longer or try again");
    assert!(second.request(TokenRequest { deadline: Instant::ZERO, ..TokenRequest::default() }).is_err());
    let shown = arbitration.snapshot().expect("whole").to_string();
    assert!(shown.starts_with("g: 1 GPUs, 2 clients, 0 waiting\n  GPU 0 token 0   first"), "{shown}");
    drop(token);
    drop(second.try_token().expect("free"));
}

#[test]
fn a_predictor_of_holds_is_told_of_all_of_them() {
    let place = Place::new("affinity");
    let sync = GpuSync { migration: Some(Nanos::from_secs(1)), ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 2) };
    let arbitration = place.create("g", &config).expect("free");
    let register = |name: &str| arbitration.register(name, Base::Background).expect("room");
    let (first, second) = (register("first"), register("second"));
    let other = first.token().expect("free");
    assert_eq!(second.token().expect("free").gpu(), 1);
    drop(other);
    assert_eq!(second.token().expect("free").gpu(), 1, "its state is there, and moving it is dear");
}
