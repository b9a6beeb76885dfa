//! Whole graphs under a deterministic schedule ([`laxity_testing::simulation`]): processes of two threads each that claim
//! nodes, exchange messages, let go and end; any interleaving of their accesses to shared memory; kills at any of them, of
//! one process or all, threads of killed processes that go on for a while, programs that execute another, threads that
//! are stopped, waits that end late, and processes that come anew. The rules that must hold after each step are in [`witness`].
//!
//! Each simulated process attaches by itself, to a mapping and a presence byte of its own; a guardian of the simulation
//! stands for the thread that Linux would have mark the liveness word. Of those that sleep Linux wakes one when a process
//! dies, and so does the simulation. Seeds repeat schedules.

mod witness;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_membership::{Kind, Membership, NameTable, Reaped};
use laxity_model::{Edge, Graph as Model, Instant, Nanos, Node as ModelNode};
use laxity_testing::simulation::{self, Pause, Played, Simulation};
use laxity_testing::{Random, TestRegistry, schedules};

use crate::node::{Job, Node};
use crate::shared::Shared;
use crate::{Channel, ClaimError, Graph, Registry, Spec, WaitError, step};
use witness::{GUARDIANS, Witness};

/// Jobs of the source in one schedule.
const JOBS: u64 = 24;
/// What happens to processes in one schedule, once in about so many steps.
const EVENTS: u32 = 24;
const EVENT_EVERY: u64 = 250;
const WORKERS: usize = 2;
/// `FUTEX_OWNER_DIED`.
const OWNER_DIED: u32 = 0x4000_0000;

/// A chain; two branches; several tokens a job and a threshold; a cycle without messages.
fn spec(seed: u64) -> Spec {
    let named = |names: &[&str]| {
        names
            .iter()
            .enumerate()
            .map(|(at, name)| ModelNode::new(*name, (at == 0).then_some(Nanos::from_millis(1))))
            .collect()
    };
    let ring = |capacity| Channel::Ring { message: 8, capacity };
    let (nodes, edges, channels): (Vec<ModelNode>, Vec<Edge>, Vec<Channel>) = match seed % 4 {
        0 => (named(&["a", "b", "c"]), vec![Edge::new(0, 1), Edge::new(1, 2)], vec![ring(2), ring(1)]),
        1 => {
            let edges = [(0, 1), (0, 2), (1, 3), (2, 3)].map(|(from, to)| Edge::new(from, to));
            (named(&["a", "b", "c", "d"]), edges.to_vec(), [1, 3, 2, 1].map(ring).to_vec())
        }
        2 => {
            let edges = vec![Edge::rated(0, 1, 2, 1), Edge { threshold: 4, ..Edge::rated(1, 2, 1, 3) }];
            (named(&["a", "b", "c"]), edges, vec![ring(3), ring(6)])
        }
        _ => {
            let back = Edge { initial: 2, back_edge: true, ..Edge::new(2, 0) };
            let edges = vec![Edge::new(0, 1), Edge::new(1, 2), back];
            (named(&["a", "b", "c"]), edges, vec![Channel::Counter, ring(2), Channel::Counter])
        }
    };
    Spec::with_channels(Model::new("g", nodes, edges), channels).expect("a graph that can be")
}

/// What is in the message of a token; zeros if it was there at the start.
fn message(edge: usize, token: u64, initial: u32) -> [u8; 8] {
    if token < initial.into() { [0; 8] } else { (token.wrapping_mul(31) + edge as u64 + 1).to_le_bytes() }
}

/// Reads what job `job` should read, in two steps, and writes what it should write.
fn exchange(job: &mut Job<'_>, node: usize, shared: &Shared) {
    let index = job.index();
    for (edge, rule) in shared.spec.plan().edges().iter().enumerate() {
        if shared.spec.channels()[edge] == Channel::Counter {
            continue;
        }
        if rule.consumer == node {
            for number in 0..rule.threshold {
                let expected = message(edge, index * u64::from(rule.consume) + u64::from(number), rule.initial);
                for half in [0..4, 4..8] {
                    step::point();
                    let read = job.input(edge, number).expect("a message");
                    assert_eq!(read[half.clone()], expected[half], "job {index} of node {node}, edge {edge}");
                }
            }
        }
        if rule.producer == node {
            for number in 0..rule.produce {
                let token = u64::from(rule.initial) + index * u64::from(rule.produce) + u64::from(number);
                let written = message(edge, token, rule.initial);
                for half in [0..4, 4..8] {
                    step::point();
                    job.output(edge, number).expect("room")[half.clone()].copy_from_slice(&written[half]);
                }
            }
        }
    }
}

/// A thread that claims nodes at random, works at each for some jobs, and lets go.
fn work(graph: &Graph, number: usize, witness: &Witness) {
    let mut random = Random::of(31 * number as u64 + 7);
    while !witness.is_over() {
        let position = random.below(graph.spec().graph().nodes.len() as u64) as usize;
        if graph.status(position).has_terminated {
            step::pause(Nanos::from_micros(20));
            continue;
        }
        // To claim what a dead process had, a thread sees to the dead, as a guardian does.
        match witness.tell(number, None, || graph.claim(&graph.shared().name(position))) {
            Ok(node) => {
                witness.enter(position, number);
                serve(node, number, witness, &mut random);
            }
            Err(ClaimError::Claimed { .. } | ClaimError::Ending { .. }) => step::pause(Nanos::from_micros(20)),
            Err(error) => panic!("{error}"),
        }
    }
}

fn serve(mut node: Node, number: usize, witness: &Witness, random: &mut Random) {
    let position = node.position();
    for _ in 0..1 + random.below(8) {
        let deadline = match random.below(4) {
            0 => Instant::ZERO,
            1 => step::now().saturating_add(Nanos::from_micros(50)),
            _ => Instant::NEVER,
        };
        // An end that it notices is told to others from within.
        let begun = match node.wait_until(deadline) {
            Ok(mut job) => {
                exchange(&mut job, position, &witness.shared);
                // Now and then it drops the job, and begins it anew.
                if random.below(8) > 0 {
                    witness.done(position, job.index());
                    witness.tell(number, Some(position), || job.complete());
                }
                Ok(())
            }
            Err(error) => Err(error),
        };
        let is_last = position == 0 && witness.shared.completed(0) == JOBS;
        match begun {
            Ok(()) | Err(WaitError::Lost { .. } | WaitError::TimedOut { .. }) if !is_last => {}
            Ok(()) | Err(WaitError::Terminated { .. } | WaitError::Lost { .. } | WaitError::TimedOut { .. }) => {
                witness.leave(position, number);
                return witness.tell(number, None, || node.terminate());
            }
            Err(error) => panic!("{error}"),
        }
    }
    witness.leave(position, number);
    witness.tell(number, None, || node.release());
}

/// Sees to the dead, as the guardian of a process does. It may still be waking the sleepers when another guardian has seen to
/// all of the dead: until then a peer that finds the word of a sleeper changed leaves the wake-up to it.
fn guard(graph: &Graph, number: usize, witness: &Witness) {
    while !witness.is_over() {
        let seen = witness.news.load(Ordering::SeqCst);
        match witness.tell(number, None, || graph.shared().reap()) {
            Reaped::Done => {
                let _ = simulation::sleep(GUARDIANS, &witness.news, seen, Instant::NEVER);
            }
            Reaped::Pending => step::pause(Nanos::from_micros(200)),
        }
    }
}

/// A simulated process.
struct Process {
    graph: Graph,
    guardian: usize,
    workers: Vec<usize>,
    /// Its liveness word is marked, and it may have threads that go on.
    is_dying: bool,
}

struct Scene {
    simulation: Simulation,
    names: NameTable,
    witness: Arc<Witness>,
    processes: Vec<Process>,
    kills: u64,
}

impl Scene {
    fn start(&mut self) {
        let memory = Arc::new(self.names.open::<Shared>("g").expect("it is whole"));
        let member = Membership::simulated(&memory).expect("Linux lets it").expect("there is a slot");
        let graph = Graph::simulated(member);
        let (guarded, witness) = (graph.clone(), self.witness.clone());
        let guardian = self.simulation.start(move |number| guard(&guarded, number, &witness));
        let workers = (0..WORKERS).map(|_| {
            let (graph, witness) = (graph.clone(), self.witness.clone());
            self.simulation.start(move |number| work(&graph, number, &witness))
        });
        let workers = workers.collect();
        self.processes.push(Process { graph, guardian, workers, is_dying: false });
    }

    /// Something happens to processes: a dying one loses a thread, or one is killed, or executes another program, or all
    /// are killed. Others come in their places.
    fn happen(&mut self) {
        if !self.simulation.is_eventful() {
            // Nothing happens any more: the dying end.
            while let Some(at) = self.processes.iter().position(|process| process.is_dying) {
                self.end(at);
            }
            return;
        }
        let dying = self.processes.iter().position(|process| process.is_dying);
        match (dying, self.simulation.below(8)) {
            (Some(at), 0..4) => self.lose_thread(at),
            (_, 4) => (0..self.processes.len()).for_each(|at| self.kill(at)),
            (_, 5) => {
                let at = self.simulation.below(self.processes.len() as u64) as usize;
                self.kill(at);
                self.end(at);
            }
            _ => {
                let at = self.simulation.below(self.processes.len() as u64) as usize;
                self.kill(at);
            }
        }
    }

    /// Kills a process: its guardian ends at once, its other threads some day. Another process comes.
    fn kill(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if process.is_dying {
            return;
        }
        process.is_dying = true;
        let slot = process.graph.member().slot;
        self.simulation.kill(process.guardian);
        self.witness.forget(process.guardian);
        self.witness.shared.members().word(slot).fetch_or(OWNER_DIED, Ordering::SeqCst);
        self.witness.announce();
        self.simulation.wake(GUARDIANS, 1);
        self.kills += 1;
        self.start();
    }

    /// One more thread of a dying process ends; after the last one the process has ended.
    fn lose_thread(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if let Some(worker) = process.workers.pop() {
            self.simulation.kill(worker);
            self.witness.forget(worker);
        }
        if process.workers.is_empty() {
            process.graph.shared().members().simulate_end(process.graph.member().slot);
            // Its threads never let go of it.
            std::mem::forget(self.processes.swap_remove(at));
        }
    }

    fn end(&mut self, at: usize) {
        (0..WORKERS).take(self.processes[at].workers.len()).for_each(|_| self.lose_thread(at));
    }
}

/// One schedule. Answers how it went, and how many processes were killed.
fn simulate(seed: u64) -> (Played, u64) {
    let place: TestRegistry<Registry> = TestRegistry::new(&format!("simulated-{seed}"));
    let draft = place.draft(&spec(seed)).expect("there is memory");
    draft.segment.publish().expect("the name is free");
    let witness = Arc::new(Witness::new(draft));
    let checked = witness.clone();
    let events = if seed.is_multiple_of(8) { 0 } else { EVENTS };
    let simulation = Simulation::new(seed, events, EVENT_EVERY, Box::new(move |sleepers| checked.check(sleepers)));
    let names = NameTable::at(place.as_ref());
    let mut scene = Scene { simulation, names, witness, processes: Vec::new(), kills: 0 };
    // As many threads as nodes, or more: each node can have one that waits for ever.
    (0..2 + seed % 2).for_each(|_| scene.start());
    while scene.simulation.go_on() == Pause::Event {
        scene.happen();
    }
    scene.witness.check_end(JOBS);
    for process in &scene.processes {
        let (members, slot) = (process.graph.shared().members(), process.graph.member().slot);
        members.word(slot).store(0, Ordering::SeqCst);
    }
    (scene.simulation.played(), scene.kills)
}

#[test]
fn no_schedule_of_steps_and_kills_loses_a_token_a_wake_up_or_a_claim() {
    schedules::play_all(1..221, 1_400_000, simulate);
}

#[test]
fn a_seed_repeats_its_schedule_to_the_last_step() {
    schedules::assert_repeats(1001, simulate);
}

#[test]
#[ignore = "a quarter of a minute; make test-kill"]
fn none_of_many_schedules_loses_a_token_a_wake_up_or_a_claim() {
    schedules::play_all(2000..2300, 2_000_000, simulate);
}
