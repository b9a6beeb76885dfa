//! The device against the state machine that it carries out, and against the rules that the sources state for GPUs.

use std::collections::{BTreeMap, VecDeque};

use laxity_model::{Engine, Instant, Nanos};
use laxity_policy::gpu::{Action, Engines, Operation};
use proptest::prelude::*;

use super::device::{Device, Effect, Now, Violation};
use super::history::{Entry, What};
use crate::message::Issue;

const CLIENTS: u64 = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    Issue {
        client: u64,
        stream: usize,
        engine: usize,
        duration: u64,
        has_work: bool,
    },
    /// The work on an engine is done, if there is any.
    Work(usize),
    Pass(u64),
    /// A process is killed.
    Leave(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let issue = (0..CLIENTS, 0usize..2, 0usize..3, 0u64..20, any::<bool>());
    prop_oneof![
        6 => issue.prop_map(|(client, stream, engine, duration, has_work)| Step::Issue {
            client, stream, engine, duration, has_work
        }),
        4 => (0usize..3).prop_map(Step::Work),
        4 => (0u64..30).prop_map(Step::Pass),
        1 => (0..CLIENTS).prop_map(Step::Leave),
    ]
}

/// A device, its processes, and the effects that they saw.
struct Bench {
    device: Device,
    now: Now,
    /// The streams of each process that is connected.
    streams: BTreeMap<u64, [u32; 2]>,
    issued: u64,
    /// Operations whose work is under way, each with its process.
    working: Vec<(u64, u64)>,
    /// By process, its operations that are not complete.
    pending: BTreeMap<u64, Vec<u64>>,
}

impl Bench {
    fn new() -> Self {
        let mut device = Device::new(2);
        let streams = (0..CLIENTS).map(|client| {
            device.join(client);
            (client, ["a", "b"].map(|name| device.create_stream(client, name.to_owned()).expect("it has few")))
        });
        let streams = streams.collect();
        let now = Now { at: Instant(0), cpu: 0 };
        Bench { device, now, streams, issued: 0, working: Vec::new(), pending: BTreeMap::new() }
    }

    fn step(&mut self, step: Step) {
        let mut effects = Vec::new();
        match step {
            Step::Issue { client, stream, engine, duration, has_work } => {
                let Some(streams) = self.streams.get(&client) else { return };
                let operation = self.issued;
                let (stream, engine) = (streams[stream], Engine::ALL[engine]);
                let issue = Issue { operation, stream, job: None, engine, duration: Nanos(duration), has_work };
                self.issued += 1;
                self.pending.entry(client).or_default().push(operation);
                assert_eq!(self.device.issue(self.now, client, issue, &mut effects), Ok(()));
            }
            Step::Work(which) if which < self.working.len() => {
                let (client, operation) = self.working.swap_remove(which);
                assert_eq!(self.device.worked(self.now, client, operation, &mut effects), Ok(()));
            }
            Step::Work(_) => {}
            Step::Pass(time) => {
                self.now.at += Nanos(time);
                self.device.pass(self.now, &mut effects);
            }
            Step::Leave(client) => {
                self.streams.remove(&client);
                self.pending.remove(&client);
                self.working.retain(|(owner, _)| *owner != client);
                self.device.leave(self.now, client, &mut effects);
            }
        }
        for effect in effects {
            match effect {
                Effect::Begin { client, operation, .. } => {
                    assert!(self.streams.contains_key(&client), "only connected processes are told");
                    self.working.push((client, operation));
                }
                Effect::Complete { client, operation } => {
                    assert!(!self.working.contains(&(client, operation)), "its work is done");
                    let pending = self.pending.get_mut(&client).expect("only connected processes are told");
                    let position = pending.iter().position(|one| *one == operation).expect("once each");
                    pending.remove(position);
                }
            }
        }
    }

    fn drain(&mut self) {
        while !self.working.is_empty() || self.device.next_timeout().is_some() {
            self.step(Step::Work(0));
            self.step(Step::Pass(20));
        }
    }

    fn history(&self) -> Vec<Entry> {
        self.device.history().from(0, usize::MAX).1
    }
}

/// The operations that [`Engines`] begins, given the issued and ended ones in this order.
fn replayed(history: &[Entry]) -> Vec<(Engine, u32, u32)> {
    let (mut engines, mut actions) = (Engines::new(2), Vec::new());
    for &Entry { what, engine, stream, index, .. } in history {
        match what {
            What::Issued => {
                let operation = Operation { stream, engine, duration: Nanos::ZERO, what: (engine, stream, index) };
                engines.issue(operation, &mut actions);
            }
            What::Ended => assert_eq!(engines.complete(engine, &mut actions), (engine, stream, index)),
            What::Began | What::Interrupted => {}
        }
    }
    actions.into_iter().map(|Action::Begin { what, .. }| what).collect()
}

/// First come, first served, said without the state machine: on each engine operations begin in the order in which they
/// became eligible, and those of a stream do not overlap.
fn check_order(history: &[Entry]) {
    let mut queues: [VecDeque<(u32, u32)>; 3] = Default::default();
    let mut streams: BTreeMap<u32, VecDeque<(Engine, u32)>> = BTreeMap::new();
    for &Entry { what, engine, stream, index, .. } in history {
        let order = streams.entry(stream).or_default();
        match what {
            What::Issued => {
                if order.is_empty() {
                    queues[engine.index()].push_back((stream, index));
                }
                order.push_back((engine, index));
            }
            What::Began => {
                assert_eq!(queues[engine.index()].pop_front(), Some((stream, index)), "first come, first served");
                assert_eq!(order.front(), Some(&(engine, index)), "in order inside");
            }
            What::Ended => {
                assert_eq!(order.pop_front(), Some((engine, index)), "not preempted");
                if let Some(&(engine, index)) = order.front() {
                    queues[engine.index()].push_back((stream, index));
                }
            }
            What::Interrupted => {}
        }
    }
}

proptest! {
    #[test]
    fn the_device_does_what_the_state_machine_says(steps in prop::collection::vec(step(), 1..200)) {
        let mut bench = Bench::new();
        steps.into_iter().for_each(|step| bench.step(step));
        bench.drain();
        let history = bench.history();
        let began = history.iter().filter(|entry| entry.what == What::Began);
        let began: Vec<_> = began.map(|entry| (entry.engine, entry.stream, entry.index)).collect();
        // An operation that begins as another ends comes after it in the history, so replaying it agrees.
        prop_assert_eq!(&replayed(&history), &began);
        prop_assert_eq!(began.len() as u64, bench.issued, "every operation began, also those of dead processes");
        prop_assert!(bench.pending.values().all(Vec::is_empty), "connected processes were told of every completion");
    }

    #[test]
    fn engines_are_first_come_first_served(steps in prop::collection::vec(step(), 1..200)) {
        let mut bench = Bench::new();
        steps.into_iter().for_each(|step| bench.step(step));
        check_order(&bench.history());
    }
}

fn issue(operation: u64, stream: u32, engine: Engine) -> Issue {
    Issue { operation, stream, job: None, engine, duration: Nanos(5), has_work: true }
}

/// Work takes 3, then 9, where the model says 5 at least.
#[test]
fn an_engine_is_busy_for_the_longer_of_work_and_model() {
    let mut device = Device::new(1);
    let (at, mut effects) = (|at| Now { at: Instant(at), cpu: 0 }, Vec::new());
    device.join(0);
    let stream = device.create_stream(0, String::new()).expect("it has few");
    for (operation, worked, ended) in [(0, 3, 5), (1, 14, 14)] {
        let begun = if operation == 0 { 0 } else { 5 };
        assert_eq!(device.issue(at(begun), 0, issue(operation, stream, Engine::Execution), &mut effects), Ok(()));
        assert_eq!(device.worked(at(worked), 0, operation, &mut effects), Ok(()));
        device.pass(at(ended), &mut effects);
        assert_eq!(effects.pop(), Some(Effect::Complete { client: 0, operation }));
        let history = device.history().from(0, usize::MAX).1;
        let last = history.iter().rfind(|entry| entry.what == What::Ended).expect("it ended");
        assert_eq!(last.at, Instant(ended));
    }
}

#[test]
fn requests_that_no_library_sends_are_violations() {
    let mut device = Device::new(1);
    let (now, mut effects) = (Now { at: Instant(0), cpu: 0 }, Vec::new());
    device.join(0);
    device.join(1);
    let stream = device.create_stream(0, String::new()).expect("it has few");
    let mut say = |client, issue| device.issue(now, client, issue, &mut effects);
    assert_eq!(say(1, issue(0, stream, Engine::Execution)), Err(Violation), "another's stream");
    assert_eq!(say(2, issue(0, stream, Engine::Execution)), Err(Violation), "not connected");
    assert_eq!(say(0, issue(0, stream, Engine::Copy(1))), Err(Violation), "no such engine");
    assert_eq!(say(0, issue(0, stream, Engine::Execution)), Ok(()));
    assert_eq!(say(0, issue(0, stream, Engine::Execution)), Err(Violation), "the same again");
    assert_eq!(device.worked(now, 1, 0, &mut effects), Err(Violation), "another's work");
    assert_eq!(device.worked(now, 0, 0, &mut effects), Ok(()));
    assert_eq!(device.worked(now, 0, 0, &mut effects), Err(Violation), "done already");
}
