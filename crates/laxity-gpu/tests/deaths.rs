//! Processes that are killed with SIGKILL, at any instruction: what they held and waited for goes to the next, no two
//! threads hold the same, no thread waits for ever, and nothing is left behind.

mod support;
#[path = "support/turns.rs"]
mod turns;
#[path = "support/witness.rs"]
mod witness;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use laxity_gpu::{Arbitration, Base, Client, Config, Registry, Token};
use laxity_model::{Engine, EngineOrder, GpuArbitration, GpuSync, Instant};
use laxity_sys::clock::now;
use laxity_testing::{HANG, Process, Random, role, soon, until};
use support::Place;
use turns::turn;
use witness::Witness;

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let registry = Registry::at(&place);
    match role.split_once(' ') {
        Some(("hold", what)) => hold(&registry, what),
        Some(("work", what)) => {
            let (threads, worker) = what.split_once(' ').expect("two numbers");
            work(&place, &registry, threads.parse().expect("a number"), worker.parse().expect("a number"));
        }
        Some(("create", _)) => create(&registry),
        Some(("exec", _)) => execute_another(&place, &registry),
        _ => panic!("no such role: {role}"),
    }
}

fn one_gpu() -> Config {
    Config::new(2, 1)
}

fn two_tokens() -> Config {
    Config { arbitration: GpuArbitration::GpuSync(GpuSync { tokens: 2, ..GpuSync::DEFAULT }), ..one_gpu() }
}

/// Holds or waits for what is said, and does nothing more.
fn hold(registry: &Registry, what: &str) {
    let arbitration = registry.attach("g").expect("it was created");
    let client = arbitration.register(what, Base::Background).expect("there is room");
    let token = client.token().expect("granted some day");
    let _engine = (what == "engine").then(|| token.execute_engine().expect("free"));
    loop {
        thread::park();
    }
}

/// Holds the token, and executes another program in place when told.
fn execute_another(place: &Path, registry: &Registry) {
    use std::os::unix::process::CommandExt;
    let arbitration = registry.attach("g").expect("it was created");
    let client = arbitration.register("exec", Base::Background).expect("there is room");
    let _token = client.token().expect("it is free");
    until("it is told", || place.join("go-on").exists());
    panic!("{}", std::process::Command::new("sleep").arg("60").exec());
}

fn create(registry: &Registry) {
    loop {
        drop(registry.create("g", &one_gpu()).expect("no other process uses the name"));
    }
}

/// Whether a client called `name` holds a token.
fn holds(arbitration: &Arbitration, name: &str) -> bool {
    let snapshot = arbitration.snapshot().expect("whole");
    let mut holders = snapshot.tokens.holders.iter().flatten();
    holders.any(|&holder| snapshot.client(holder).is_some_and(|client| client.name == name))
}

fn waiting(arbitration: &Arbitration) -> usize {
    arbitration.snapshot().expect("whole").tokens.waiting.len()
}

#[test]
fn a_waiter_is_granted_what_the_killed_held() {
    for what in ["token", "engine"] {
        let place = Place::new(what);
        let arbitration = place.create("g", &one_gpu()).expect("the name is free");
        let mut process = Process::start(&place, &format!("hold {what}"));
        until("it holds the token", || holds(&arbitration, what));
        let waits = {
            let arbitration = arbitration.clone();
            thread::spawn(move || {
                let client = arbitration.register("us", Base::Background).expect("there is room");
                let token = client.token_for(HANG).expect("its holder was killed");
                let _engine = token.engine(Engine::Execution, soon()).expect("its holder was killed");
                now()
            })
        };
        until("we wait", || waiting(&arbitration) == 1);
        let killed = now();
        process.kill();
        let granted = waits.join().expect("no panic").saturating_since(killed);
        assert!(granted < HANG, "granted because of the death and not by the deadline");
        println!("{what}: granted {granted} after the kill");
        assert!(arbitration.snapshot().expect("whole").clients.is_empty(), "the dead is forgotten");
    }
}

#[test]
fn a_waiter_that_was_killed_is_passed_over() {
    let place = Place::new("waiter");
    let arbitration = place.create("g", &one_gpu()).expect("the name is free");
    let client = arbitration.register("us", Base::Background).expect("there is room");
    let token = client.token().expect("it is free");
    let mut first = Process::start(&place, "hold first");
    until("the first waits", || waiting(&arbitration) == 1);
    let _second = Process::start(&place, "hold second");
    until("the second waits", || waiting(&arbitration) == 2);
    first.kill();
    until("the first is forgotten", || waiting(&arbitration) == 1);
    drop(token);
    until("the second holds it", || holds(&arbitration, "second"));
}

/// A lone waiter, to which the holder would hand the token over.
#[test]
fn a_token_is_not_handed_over_to_a_waiter_that_was_killed() {
    let place = Place::new("handed");
    let arbitration = place.create("g", &one_gpu()).expect("the name is free");
    let client = arbitration.register("test", Base::Background).expect("there is room");
    let token = client.token().expect("it is free");
    let mut process = Process::start(&place, "hold token");
    until("it waits", || waiting(&arbitration) == 1);
    process.kill();
    until("it is forgotten", || arbitration.snapshot().expect("whole").clients.len() == 1);
    drop(token);
    // It does not only try: it would park behind the dead.
    drop(client.token_for(HANG).expect("it is free"));
}

#[test]
fn what_all_left_by_being_killed_is_continued_or_collected_or_replaced() {
    let place = Place::new("left");
    let leave = || {
        let arbitration = place.create("g", &one_gpu()).expect("the name is free, or what has it is not in use");
        let mut process = Process::start(&place, "hold token");
        until("it holds the token", || holds(&arbitration, "token"));
        drop(arbitration);
        assert_eq!(place.gc().expect("readable"), Vec::<String>::new(), "it is in use");
        assert!(place.look("g").expect("whole").tokens.is_held());
        process.kill();
        assert_eq!(place.files().len(), 1);
    };
    leave();
    let arbitration = place.attach("g").expect("it is whole");
    let client = arbitration.register("us", Base::Background).expect("there is room");
    drop(client.try_token().expect("its holder was reaped when we attached"));
    drop((client, arbitration));
    assert!(place.files().is_empty(), "the last one out leaves nothing");
    leave();
    leave();
    assert_eq!(place.gc().expect("readable"), ["g"]);
    assert!(place.files().is_empty());
}

#[test]
fn a_creator_that_is_killed_leaves_a_whole_arbitration_or_none() {
    let place = Place::new("creator");
    let mut random = Random::new();
    for _ in 0..30 {
        let mut process = Process::start(&place, "create it");
        random.pause(6000);
        process.kill();
        for name in place.names().expect("readable") {
            let arbitration = place.attach(&name).expect("it is whole");
            assert_eq!(arbitration.config(), &one_gpu());
        }
        assert!(place.files().is_empty(), "nothing is left that has no owner");
    }
}

/// Two GPUs with two tokens each, few places in queues: all of GPUSync is used.
fn crowded() -> Config {
    let sync = GpuSync {
        tokens: 2,
        fifo_length: Some(2),
        fifo_requests: Some(6),
        engine_order: EngineOrder::Priority,
        chunk: Some(1000),
        ..GpuSync::DEFAULT
    };
    Config { arbitration: GpuArbitration::GpuSync(sync), clients: 32, ..Config::new(3, 2) }
}

/// The numbers of the clients of a process; each process has as many as there are `threads`.
fn clients(process: u64, threads: u64) -> std::ops::Range<u64> {
    process * threads..(process + 1) * threads
}

/// A process of several clients that take and let go, and now and then leave and come back, for ever.
fn work(place: &Path, registry: &Registry, threads: u64, process: u64) {
    let witness = &Witness::open(place);
    loop {
        let arbitration = &registry.attach("g").expect("the test is attached");
        let gpus = arbitration.config().gpus;
        thread::scope(|scope| {
            for worker in clients(process, threads) {
                scope.spawn(move || {
                    let mut random = Random::of(now().0.wrapping_mul(worker + 1));
                    for _ in 0..5 {
                        let base = Base::Fixed(1 + random.below(99) as u8);
                        let client = arbitration.register(&format!("{worker}"), base).expect("there is room");
                        for _ in 0..40 {
                            turn(witness, &client, gpus, worker, &mut random);
                        }
                    }
                });
            }
        });
    }
}

/// So many processes of so many threads each.
fn random_kills(test: &str, kills: u64, config: Config, processes: u64, threads: u64) {
    let place = Place::new(test);
    let witness = Witness::create(&place);
    let arbitration = place.create("g", &config).expect("the name is free");
    let mut random = Random::new();
    let start = |number: u64| (number, Process::start(&place, &format!("work {threads} {number}")));
    let mut workers: Vec<(u64, Process)> = (1..=processes).map(start).collect();
    let mut next = processes + 1;
    let doom = |worker: u64| clients(worker, threads).for_each(|client| witness.doom(client));
    for _ in 0..kills {
        // At times several at once, so that some die while they see to the dead.
        let first = random.below(processes);
        let victims: Vec<usize> =
            (first..=first + random.below(5) / 3).map(|victim| (victim % processes) as usize).collect();
        let progress = |worker: u64| witness.progress(worker * threads).load(Ordering::SeqCst);
        until("they work", || victims.iter().all(|&victim| progress(workers[victim].0) > 0));
        random.pause(2000);
        for &victim in &victims {
            doom(workers[victim].0);
            workers[victim].1.kill();
        }
        for victim in victims {
            workers[victim] = start(next);
            next += 1;
        }
        arbitration.snapshot().expect("whole");
    }
    // No grant is lost: all of those that live go on.
    let worker_threads = || workers.iter().flat_map(|(worker, _)| clients(*worker, threads));
    let before: Vec<u64> = worker_threads().map(|worker| witness.progress(worker).load(Ordering::SeqCst)).collect();
    until("everyone is granted again", || {
        let progress = worker_threads().map(|worker| witness.progress(worker).load(Ordering::SeqCst));
        progress.zip(&before).all(|(now, &before)| now > before)
    });
    let grants: u64 = (threads..next * threads).map(|worker| witness.progress(worker).load(Ordering::SeqCst)).sum();
    println!("{kills} times killed, {grants} grants");
    for (worker, process) in &mut workers {
        doom(*worker);
        process.kill();
    }
    everything_is_free(&arbitration);
    drop((arbitration, witness));
    assert_eq!(place.files(), ["witness"], "nothing is left");
}

/// As many clients as there are tokens get one each.
fn everything_is_free(arbitration: &Arbitration) {
    until("the dead are forgotten", || arbitration.snapshot().expect("whole").clients.is_empty());
    let Config { gpus, arbitration: GpuArbitration::GpuSync(GpuSync { tokens, .. }), .. } = *arbitration.config()
    else {
        unreachable!("tests use GPUSync");
    };
    let replicas = gpus * tokens as u16;
    let clients: Vec<Client> = (0..replicas)
        .map(|number| arbitration.register(&format!("{number}"), Base::Background).expect("room"))
        .collect();
    let tokens: Vec<Token<'_>> = clients.iter().map(|client| client.try_token().expect("it is free")).collect();
    assert!(tokens.iter().map(|token| token.replica().0).eq(0..replicas));
    for token in &tokens[..usize::from(gpus)] {
        for engine in Engine::ALL {
            drop(token.engine(engine, Instant::ZERO).expect("it is free"));
        }
    }
}

#[test]
fn random_kills_lose_nothing_and_hang_no_thread() {
    random_kills("random", 40, crowded(), 5, 3);
}

/// Two that hand a token, and three that hand an engine, over to each other without the arbiter.
#[test]
fn random_kills_of_few_lose_nothing_and_hang_no_thread() {
    random_kills("few", 20, one_gpu(), 2, 1);
    random_kills("engines", 20, two_tokens(), 3, 1);
}

/// `make test-kill`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_random_kills() {
    random_kills("thousand", 1000, crowded(), 5, 3);
    random_kills("few", 1000, one_gpu(), 2, 1);
    random_kills("engines", 1000, two_tokens(), 3, 1);
}

#[test]
fn a_thread_that_ends_with_a_token_lets_go_of_it_while_its_process_lives() {
    let place = Place::new("leaked");
    let arbitration = place.create("g", &one_gpu()).expect("the name is free");
    let ends = arbitration.clone();
    thread::spawn(move || {
        let client = ends.register("leaked", Base::Background).expect("there is room");
        std::mem::forget(client.token().expect("it is free"));
        std::mem::forget(client);
    })
    .join()
    .expect("no panic");
    assert!(arbitration.snapshot().expect("whole").clients.is_empty(), "its registration ended with it");
    let client = arbitration.register("us", Base::Background).expect("there is room");
    drop(client.try_token().expect("it is free"));
}

/// `exec` in place ends all threads of a program and keeps its process: the next program holds nothing.
#[test]
fn a_token_held_by_a_program_that_executes_another_goes_to_the_next_waiter() {
    let place = Place::new("exec");
    let arbitration = place.create("g", &one_gpu()).expect("the name is free");
    let mut process = Process::start(&place, "exec it");
    until("it holds the token", || holds(&arbitration, "exec"));
    std::fs::write(place.directory().join("go-on"), "").expect("writable");
    let client = arbitration.register("us", Base::Background).expect("there is room");
    drop(client.token_for(HANG).expect("its holder is another program now"));
    until("it is forgotten", || arbitration.snapshot().expect("whole").clients.len() == 1);
    assert!(laxity_sys::scheduling::is_thread_of(process.id(), process.id()), "its process goes on");
    process.kill();
}
