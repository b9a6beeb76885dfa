//! Processes that share GPUs and are killed, stopped, starved of descriptors, forked and replaced by `exec`, at random: no
//! two hold the same, all that live go on, and nothing is left behind.
//!
//! The processes are this test program, started again for the test `child`.
#![cfg(debug_assertions)]

mod support;
#[path = "support/turns.rs"]
mod turns;
#[path = "support/witness.rs"]
mod witness;

use std::cell::OnceCell;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use laxity_gpu::{Base, Client, Config, Registry, TokenRequest};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync, Instant, Nanos};
use laxity_testing::{Directory, Misbehaviour, NOTES, Process, Random, role, soon, until};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use support::Place;
use turns::turn;
use witness::Witness;

/// Threads of each process.
const THREADS: u64 = 2;
const PROCESSES: usize = 4;

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    work(&place, role.parse().expect("a place among the processes"));
}

/// Takes tokens and engines for ever, and now and then does, with a token, what ends processes or confuses those that judge
/// them.
fn work(place: &Path, at: usize) {
    let witness = &Witness::open(place);
    let registry = &Registry::at(place);
    let number = witness.come(at);
    let arbitration = &registry.attach("g").expect("the test is attached");
    let gpus = arbitration.config().gpus;
    thread::scope(|scope| {
        for worker in clients(number) {
            scope.spawn(move || {
                let mut random = Random::of(laxity_sys::clock::now().0.wrapping_mul(worker + 1));
                loop {
                    let base = Base::Fixed(1 + random.below(99) as u8);
                    let client = arbitration.register(&worker.to_string(), base).expect("there is room");
                    for _ in 0..20 {
                        turn(witness, &client, gpus, worker, &mut random);
                    }
                    misbehave(registry, witness, &client, number, worker, &mut random);
                }
            });
        }
    });
}

fn misbehave(registry: &Registry, witness: &Witness, client: &Client, number: u64, worker: u64, random: &mut Random) {
    let token = client.request(TokenRequest { deadline: soon(), ..TokenRequest::default() }).expect("granted some day");
    let place = usize::from(token.replica().0);
    witness.enter(place, worker);
    if let Some(&kind) = Misbehaviour::ALL.get(random.below(60) as usize) {
        if kind == Misbehaviour::Exec {
            clients(number).for_each(|client| witness.doom(client));
        }
        kind.carry_out(random.below(12), || drop(registry.attach("g")));
    }
    witness.leave(place, worker);
}

/// The numbers of the clients of process `number`, from 1.
fn clients(number: u64) -> std::ops::Range<u64> {
    number * THREADS..(number + 1) * THREADS
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

/// How often something has to happen.
#[derive(Clone, Copy)]
struct Goal {
    kills: usize,
    stops: usize,
    execs: usize,
}

/// Stops a process, which is a child of this one, with all its threads; whether it was there to be stopped.
fn stop(process: Pid) -> bool {
    let is_stopped = OnceCell::new();
    until("a process is stopped", || {
        // Again and again: Linux forgets a stop that comes while a process with other threads executes a program.
        kill_process(process, Signal::STOP).expect("it is ours");
        let changed = waitpid(Some(process), WaitOptions::UNTRACED | WaitOptions::NOHANG).expect("it is a child");
        changed.is_some_and(|(_, status)| is_stopped.set(status.stopped()).is_ok())
    });
    is_stopped.into_inner().unwrap_or(false)
}

/// Harms processes that share GPUs of `config` at random until `goal` is reached.
fn harm(test: &str, config: Config, goal: Goal) {
    let (place, notes) = (Place::new(test), Directory::new(&format!("{test}-notes")));
    let (witness, notes) = (Witness::create(&place), notes.path().join("events"));
    let arbitration = place.create("g", &config).expect("the name is free");
    let mut random = Random::new();
    let start = |at: usize| Process::start_with(&place, &at.to_string(), &[(NOTES, notes.as_os_str())]);
    let mut processes: Vec<Process> = (0..PROCESSES).map(start).collect();
    let (mut kills, mut stops) = (0, 0);
    while kills < goal.kills || stops < goal.stops || Misbehaviour::Exec.count(&notes) < goal.execs {
        random.pause(6000);
        // At times several at once, so that some die while they see to the dead.
        let first = random.below(PROCESSES as u64) as usize;
        let victims = (first..=first + random.below(5) as usize / 3).map(|victim| victim % PROCESSES);
        // Stopped first: it cannot become another program between the look at its number and its end.
        let victims = victims.map(|at| (at, Pid::from_raw(processes[at].id() as i32).expect("a number")));
        let victims: Vec<(usize, Pid)> = victims.filter(|&(_, process)| stop(process)).collect();
        assert!(!victims.is_empty(), "no process ends by itself");
        if random.below(3) == 0 {
            stops += victims.len();
            random.pause(3000);
            victims.iter().for_each(|&(_, process)| kill_process(process, Signal::CONT).expect("it is ours"));
        } else {
            kills += victims.len();
            for &(at, _) in &victims {
                witness.number(at).into_iter().flat_map(clients).for_each(|client| witness.doom(client));
                witness.number_word(at).store(0, Ordering::SeqCst);
                processes[at].kill();
            }
            victims.iter().for_each(|&(at, _)| processes[at] = start(at));
        }
        arbitration.snapshot().expect("whole");
    }
    // No grant is lost: all that live go on, whichever program they are by then.
    for at in 0..PROCESSES {
        let progress = || {
            let number = witness.number(at)?;
            Some((number, clients(number).map(|client| witness.progress(client).load(Ordering::SeqCst)).min()?))
        };
        let before = progress();
        until("everyone is granted again", || progress().is_some_and(|now| before.is_none_or(|before| now > before)));
    }
    let [execs, forks, starved] = Misbehaviour::ALL.map(|kind| kind.count(&notes));
    println!("{test}: {kills} kills, {stops} stops, {execs} execs, {forks} forks, {starved} without descriptors");
    for (at, process) in processes.iter_mut().enumerate() {
        stop(Pid::from_raw(process.id() as i32).expect("a number"));
        witness.number(at).into_iter().flat_map(clients).for_each(|client| witness.doom(client));
        process.kill();
    }
    until("the dead are forgotten", || arbitration.snapshot().expect("whole").clients.is_empty());
    let client = arbitration.register("last", Base::Background).expect("there is room");
    let token = client.request(TokenRequest { deadline: Instant::ZERO, length: Nanos::ZERO, gpu: None });
    drop(token.expect("it is free").execute_engine().expect("it is free"));
    drop(client);
    // Copies that were forked go on for a moment, and hold nothing.
    drop((arbitration, witness));
    assert_eq!(place.files(), ["witness"], "nothing is left");
}

#[test]
fn processes_that_stop_fork_lack_descriptors_or_execute_programs_lose_no_grant() {
    harm("misbehaved", crowded(), Goal { kills: 15, stops: 8, execs: 2 });
}

/// `make test-kill`.
#[test]
#[ignore = "takes minutes"]
fn two_thousand_kills_five_hundred_stops_and_two_hundred_execs() {
    harm("misbehaved-crowded", crowded(), Goal { kills: 1000, stops: 300, execs: 120 });
    harm("misbehaved-one", Config::new(2, 1), Goal { kills: 1000, stops: 200, execs: 80 });
}
