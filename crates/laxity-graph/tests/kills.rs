//! Processes that are killed, stopped, starved of descriptors, forked and replaced by `exec`, at random: every job is done
//! once and in order, and nothing is left behind.
//!
//! The processes are this test program, started again for the test `child`.
#![cfg(debug_assertions)]

#[path = "support/relay.rs"]
mod relay;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity_graph::{ChannelKind, Registry, Spec, WaitError};
use laxity_testing::{Directory, HANG, Misbehaviour, NOTES, Process, Random, role};
use relay::{exchange, one_job, pipeline, pipeline_of, swapping_pipeline};
use rustix::process::{Pid, Signal, kill_process};
use support::Place;

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let registry = Registry::at(place);
    match role.split_once(' ') {
        Some(("work", node)) => work(&registry, node),
        Some(("misbehave", node)) => misbehave(&registry, node),
        _ => panic!("no such role: {role}"),
    }
}

/// Attaches, works and leaves again, for ever: it can be killed in the middle of each.
fn work(registry: &Registry, name: &str) {
    loop {
        let graph = registry.attach("g").expect("the test is attached");
        for _ in 0..20 {
            let mut node = graph.claim(name).expect("its process is gone");
            for _ in 0..20 {
                one_job(&mut node);
            }
        }
    }
}

/// Works, and now and then does in the middle of a job what ends processes or confuses those that judge them.
fn misbehave(registry: &Registry, name: &str) {
    let mut random = Random::new();
    let graph = registry.attach("g").expect("the test is attached");
    let mut node = graph.claim(name).expect("its process is gone");
    loop {
        match node.wait_for(HANG) {
            Ok(mut job) => {
                exchange(&mut job);
                if let Some(kind) = Misbehaviour::ALL.get(random.below(60) as usize) {
                    kind.carry_out(random.below(12), || drop(registry.attach("g")));
                }
                job.complete();
            }
            Err(WaitError::Lost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// What is done to a worker.
#[derive(Clone, Copy, PartialEq)]
enum Harm {
    Kill,
    /// Stops it for a moment.
    Stop,
}

/// How often something happened, or has to happen at least.
#[derive(Clone, Copy, Default)]
struct Counts {
    kills: usize,
    stops: usize,
    execs: usize,
    forks: usize,
    starvations: usize,
}

impl Counts {
    fn reach(self, goal: Counts) -> bool {
        self.kills >= goal.kills && self.stops >= goal.stops && self.execs >= goal.execs
    }

    /// With what is noted in `file`.
    fn with_notes(self, file: &std::path::Path) -> Counts {
        let [execs, forks, starvations] = Misbehaviour::ALL.map(|kind| kind.count(file));
        Counts { execs, forks, starvations, ..self }
    }
}

/// Lets four processes that play `role` work, and does harm to them at random until `goal` is reached.
fn harm(test: &str, spec: &Spec, role: &str, goal: Counts, kinds: &[Harm]) {
    let place = Place::new(test);
    let notes = Directory::new(&format!("{test}-notes"));
    let notes = notes.path().join("events");
    let graph = place.create(spec).expect("the name is free");
    let names = ["a", "b", "c", "d"];
    let start = |worker: usize| {
        Process::start_with(&place, &format!("{role} {}", names[worker]), &[(NOTES, notes.as_os_str())])
    };
    let mut workers: Vec<Process> = (0..names.len()).map(start).collect();
    let mut sink = graph.claim("sink").expect("it is free");
    let mut random = Random::new();
    let is_over = AtomicBool::new(false);
    let is_over = &is_over;
    thread::scope(|scope| {
        let sink = scope.spawn(move || {
            let mut expected = 0;
            while !is_over.load(Ordering::Relaxed) {
                // The sink is never harmed, and what was sent to it comes.
                assert_eq!(one_job(&mut sink), (expected, 0), "no job is lost and none comes twice");
                expected += 1;
            }
            expected
        });
        let mut counts = Counts::default();
        while !counts.with_notes(&notes).reach(goal) {
            random.pause(20_000);
            // At times several at once, so that some die while they reap others.
            let first = random.below(4) as usize;
            let count = 1 + random.below(4) as usize / 2;
            let victims: Vec<usize> = (first..first + count).map(|victim| victim % 4).collect();
            match kinds[random.below(kinds.len() as u64) as usize] {
                Harm::Kill => {
                    counts.kills += count;
                    victims.iter().for_each(|&victim| workers[victim].kill());
                    victims.iter().for_each(|&victim| workers[victim] = start(victim));
                }
                Harm::Stop => {
                    counts.stops += count;
                    let send = |signal| {
                        for &victim in &victims {
                            let process = Pid::from_raw(workers[victim].id() as i32).expect("a number");
                            kill_process(process, signal).expect("it is ours");
                        }
                    };
                    send(Signal::STOP);
                    random.pause(5_000);
                    send(Signal::CONT);
                }
            }
            if sink.is_finished() {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let jobs = sink.join().expect("every job came once, in order");
        let Counts { kills, stops, execs, forks, starvations } = counts.with_notes(&notes);
        println!(
            "{test}: {jobs} jobs, {kills} kills, {stops} stops, {execs} execs, {forks} forks, \
             {starvations} without descriptors"
        );
    });
    workers.iter_mut().for_each(Process::kill);
    drop(graph);
    assert!(place.files().is_empty(), "nothing is left");
}

fn random_kills(test: &str, spec: &Spec, kills: usize) {
    harm(test, spec, "work", Counts { kills, ..Counts::default() }, &[Harm::Kill]);
}

/// Kills and stops processes that execute other programs, fork and lack descriptors.
fn random_misbehaviour(test: &str, spec: &Spec, stops: usize, execs: usize) {
    let goal = Counts { stops, execs, ..Counts::default() };
    harm(test, spec, "misbehave", goal, &[Harm::Kill, Harm::Stop, Harm::Stop]);
}

#[test]
fn random_kills_lose_nothing_and_no_process_hangs() {
    random_kills("random", &pipeline(), 150);
}

#[test]
fn random_kills_lose_no_job_and_no_buffer_where_buffers_are_swapped() {
    random_kills("swapped", &swapping_pipeline(), 90);
}

#[test]
fn processes_that_stop_fork_lack_descriptors_or_execute_programs_lose_no_job() {
    random_misbehaviour("misbehaved", &pipeline(), 80, 5);
    random_misbehaviour("misbehaved-mixed", &mixed_pipelines()[0], 50, 5);
}

/// Two pipelines have each kind where producers die, where consumers die, and where the sink sees what comes.
fn mixed_pipelines() -> Vec<Spec> {
    use ChannelKind::{Fifo, Queue, Ring, Stream};
    let kinds =
        [[Fifo, Queue, Stream, Fifo, Ring], [Stream, Fifo, Queue, Stream, Fifo], [Queue, Stream, Fifo, Queue, Stream]];
    kinds.into_iter().map(pipeline_of).collect()
}

#[test]
fn random_kills_lose_no_job_on_edges_of_any_kind() {
    for (number, spec) in mixed_pipelines().iter().enumerate() {
        random_kills(&format!("mixed-{number}"), spec, 60);
    }
}

/// `make test-kill`.
#[test]
#[ignore = "takes minutes"]
fn ten_thousand_random_kills() {
    random_kills("ten-thousand", &pipeline(), 2000);
    random_kills("ten-thousand-swapped", &swapping_pipeline(), 2000);
    for (number, spec) in mixed_pipelines().iter().enumerate() {
        random_kills(&format!("ten-thousand-{number}"), spec, 2000);
    }
}

/// `make test-kill`.
#[test]
#[ignore = "takes minutes"]
fn two_thousand_stops_and_five_hundred_execs() {
    for (number, spec) in mixed_pipelines().iter().enumerate() {
        random_misbehaviour(&format!("misbehaved-{number}"), spec, 700, 170);
    }
}
