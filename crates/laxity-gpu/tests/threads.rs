//! Threads that share GPUs under every kind of rules: no two hold the same, and each is granted its requests.

mod support;
#[path = "support/turns.rs"]
mod turns;
#[path = "support/witness.rs"]
mod witness;

use std::sync::atomic::Ordering;
use std::thread;

use laxity_gpu::{Base, Config, Snapshot};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync, Instant, TaskId};
use laxity_testing::Random;
use support::Place;
use turns::turn;
use witness::Witness;

const THREADS: u64 = 5;
const TURNS: u32 = 1000;

fn share(test: &str, config: Config) {
    share_among(THREADS, test, config);
}

fn share_among(threads: u64, test: &str, config: Config) {
    let place = Place::new(test);
    let witness = &Witness::create(&place);
    let first = place.create("g", &config).expect("the name is free");
    // Attached twice: what one remembers of the state, the other changes.
    let attached = [first, place.attach("g").expect("it was created")];
    let mut random = Random::new();
    thread::scope(|scope| {
        let attached = &attached;
        let work = move |worker: u64, seed| {
            let arbitration = &attached[worker as usize % 2];
            let mut random = Random::of(seed);
            for _ in 0..2 {
                let base = Base::Fixed(1 + random.below(99) as u8);
                let client = arbitration.register("worker", base).expect("there is room");
                for _ in 0..TURNS / 2 {
                    turn(witness, &client, config.gpus, worker, &mut random);
                }
            }
        };
        let spawn = |worker| {
            let seed = random.below(u64::MAX);
            scope.spawn(move || work(worker, seed))
        };
        let workers: Vec<_> = (1..=threads).map(spawn).collect();
        while !workers.iter().all(|worker| worker.is_finished()) {
            is_possible(&place.look("g").expect("whole"));
        }
    });
    let grants: u64 = (1..=threads).map(|worker| witness.progress(worker).load(Ordering::SeqCst)).sum();
    assert!(grants > threads * u64::from(TURNS) / 2, "most are patient");
    let snapshot = attached[0].snapshot().expect("whole");
    assert!(snapshot.clients.is_empty());
    assert!(!snapshot.engines.iter().flatten().chain([&snapshot.tokens]).any(|lock| lock.is_held()));
    let client = attached[1].register("last", Base::Background).expect("there is room");
    for gpu in 0..config.gpus {
        let request = laxity_gpu::TokenRequest { gpu: Some(gpu), deadline: Instant::ZERO, ..Default::default() };
        drop(client.request(request).expect("all are free"));
    }
}

/// Snapshots show states that can be.
fn is_possible(snapshot: &Snapshot) {
    for lock in snapshot.engines.iter().flatten().chain([&snapshot.tokens]) {
        let holders: Vec<TaskId> = lock.holders.iter().copied().flatten().collect();
        for &holder in &holders {
            assert!(snapshot.client(holder).is_some(), "a holder is registered:\n{snapshot}");
            assert_eq!(holders.iter().filter(|&&other| other == holder).count(), 1, "{snapshot}");
        }
        for (waiter, _) in &lock.waiting {
            assert!(snapshot.client(*waiter).is_some(), "a waiter is registered:\n{snapshot}");
            assert!(!holders.contains(waiter), "a holder does not wait:\n{snapshot}");
        }
    }
}

fn gpusync(sync: GpuSync, config: Config) -> Config {
    Config { arbitration: GpuArbitration::GpuSync(sync), ..config }
}

#[test]
fn threads_share_by_the_k_fmlp() {
    for length_aware in [false, true] {
        share("kfmlp", Config { arbitration: GpuArbitration::KFmlp { length_aware }, ..Config::new(2, 2) });
    }
}

#[test]
fn threads_share_by_tokens_with_queues_and_donors() {
    let sync = GpuSync { tokens: 1, fifo_length: Some(2), fifo_requests: Some(3), ..GpuSync::DEFAULT };
    share("donors", gpusync(GpuSync { engine_order: EngineOrder::Priority, ..sync }, Config::new(2, 2)));
}

/// (rho g, 1): a thread without a token waits in the priority queue or as a donor.
#[test]
fn threads_share_by_tokens_without_queues() {
    let sync = GpuSync { tokens: 2, fifo_length: Some(1), ..GpuSync::DEFAULT };
    share("queueless", gpusync(sync, Config { copy_engines: 1, ..Config::new(2, 1) }));
}

/// More tokens than one word has owners; fewer may be requested than there are.
#[test]
fn threads_share_many_tokens() {
    let sync = GpuSync { tokens: 4, ..GpuSync::DEFAULT };
    share("many", gpusync(sync, Config::new(16, 4)));
    share("few", gpusync(GpuSync { fifo_requests: Some(2), ..sync }, Config::new(16, 4)));
}

/// Most of the time at most one thread waits for each lock, without the arbiter.
#[test]
fn few_threads_share() {
    for (threads, tokens) in [(2, 1), (3, 1), (3, 2)] {
        for engine_order in [EngineOrder::Fifo, EngineOrder::Priority] {
            let sync = GpuSync { tokens, engine_order, ..GpuSync::DEFAULT };
            share_among(threads, "slots", gpusync(sync, Config { copy_engines: 1, ..Config::new(2, 1) }));
        }
    }
}

#[test]
fn threads_share_with_prediction() {
    let sync = GpuSync { tokens: 1, migration: Some(laxity_model::Nanos::from_micros(50)), ..GpuSync::DEFAULT };
    share("predicted", gpusync(sync, Config::new(4, 2)));
}
