//! The device as a state machine: what runs on which engine until when. It knows neither clock nor sockets.
//!
//! ```text
//!                        begin, if it has work                     complete
//! issue --> (waiting) ----------------------------> (on engine) ----------------> interrupt, and the next begins
//!               |                                        |        once its work is done and its time has passed
//!               |     its process is gone: at once       |
//!               +----------------------------------------+----------------------> the next begins
//! ```

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{Engine, Instant};
use laxity_policy::gpu::{Action, Engines, Operation};

use super::history::{Entry, History, What};
use super::streams::Streams;
use crate::message::Issue;

/// The most operations of one process that are not complete. Its library stays within the limit.
pub(crate) const OUTSTANDING_MAX: usize = 1024;
/// The most streams of one process. Each takes memory of the server.
pub(crate) const STREAMS_MAX: usize = 1 << 16;

/// When, and on which CPU, the server notices something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub at: Instant,
    pub cpu: u16,
}

/// A message to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The engine is the process's: it carries out the work of the operation.
    Begin { client: u64, engine: Engine, operation: u64 },
    /// The operation is complete.
    Complete { client: u64, operation: u64 },
}

/// A process broke the protocol. The server ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation;

/// An operation of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owned {
    client: u64,
    operation: u64,
    stream: u32,
    index: u32,
    job: Option<u32>,
    has_work: bool,
}

/// The operation on an engine.
#[derive(Clone, Copy, Debug)]
struct Running {
    what: Owned,
    until: Instant,
    is_working: bool,
}

/// What a connected process has.
#[derive(Debug, Default)]
struct Client {
    /// Its operations that are not complete.
    outstanding: BTreeSet<u64>,
    streams: BTreeSet<u32>,
}

/// See above.
#[derive(Debug)]
pub(crate) struct Device {
    engines: Engines<Owned>,
    copy_engines: u8,
    running: [Option<Running>; Engine::ALL.len()],
    /// The connected processes.
    clients: BTreeMap<u64, Client>,
    streams: Streams,
    history: History,
}

impl Device {
    pub fn new(copy_engines: u8) -> Self {
        Device {
            engines: Engines::new(copy_engines),
            copy_engines,
            running: [None; 3],
            clients: BTreeMap::new(),
            streams: Streams::default(),
            history: History::default(),
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The streams of all processes.
    pub fn streams(&self) -> &Streams {
        &self.streams
    }

    pub fn join(&mut self, client: u64) {
        self.clients.insert(client, Client::default());
    }

    /// `client` makes a stream.
    pub fn create_stream(&mut self, client: u64, name: String) -> Result<u32, Violation> {
        let its = &mut self.clients.get_mut(&client).ok_or(Violation)?.streams;
        if its.len() >= STREAMS_MAX {
            return Err(Violation);
        }
        let number = self.streams.create(client, name);
        its.insert(number);
        Ok(number)
    }

    /// `client` will not use the stream again, whose operations are complete.
    pub fn release_stream(&mut self, client: u64, number: u32) -> Result<(), Violation> {
        let stream = self.streams.of(client, number).ok_or(Violation)?;
        if stream.pending > 0 {
            return Err(Violation);
        }
        self.streams.release(client, number);
        self.clients.get_mut(&client).map(|client| client.streams.remove(&number));
        Ok(())
    }

    /// `client` issues an operation.
    pub fn issue(&mut self, now: Now, client: u64, issue: Issue, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let Issue { operation, stream: number, job, engine, duration, has_work } = issue;
        let exists = !matches!(engine, Engine::Copy(copy) if copy >= self.copy_engines);
        let outstanding = &mut self.clients.get_mut(&client).ok_or(Violation)?.outstanding;
        let stream = self.streams.of(client, number).ok_or(Violation)?;
        if !exists || outstanding.len() >= OUTSTANDING_MAX || !outstanding.insert(operation) {
            return Err(Violation);
        }
        let what = Owned { client, operation, stream: number, index: stream.issued, job, has_work };
        stream.issued = stream.issued.wrapping_add(1);
        stream.pending += 1;
        self.note(now, What::Issued, engine, what);
        let mut actions = Vec::new();
        self.engines.issue(Operation { stream: number, engine, duration, what }, &mut actions);
        self.begin(now, actions, effects);
        Ok(())
    }

    /// `client` carried out the work of an operation that had begun.
    pub fn worked(
        &mut self,
        now: Now,
        client: u64,
        operation: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        let is_it = |running: &&mut Running| {
            (running.what.client, running.what.operation, running.is_working) == (client, operation, true)
        };
        let running = self.running.iter_mut().flatten().find(is_it).ok_or(Violation)?;
        running.is_working = false;
        self.pass(now, effects);
        Ok(())
    }

    /// `client` is gone. Its operations on engines end now, and those that wait for engines end when they begin.
    pub fn leave(&mut self, now: Now, client: u64, effects: &mut Vec<Effect>) {
        let streams = self.clients.remove(&client).map(|client| client.streams).unwrap_or_default();
        for stream in streams {
            self.streams.release(client, stream);
        }
        for engine in Engine::ALL {
            if self.running[engine.index()].is_some_and(|running| running.what.client == client) {
                self.end(now, engine, effects);
            }
        }
    }

    /// Time has passed.
    pub fn pass(&mut self, now: Now, effects: &mut Vec<Effect>) {
        while let Some(engine) = Engine::ALL.into_iter().find(|engine| self.is_over(now.at, *engine)) {
            self.end(now, engine, effects);
        }
    }

    /// When the first operation ends, of those whose work is done.
    pub fn next_timeout(&self) -> Option<Instant> {
        let running = self.running.iter().flatten();
        running.filter(|running| !running.is_working).map(|running| running.until).min()
    }

    fn is_over(&self, at: Instant, engine: Engine) -> bool {
        self.running[engine.index()].is_some_and(|running| !running.is_working && running.until <= at)
    }

    fn end(&mut self, now: Now, engine: Engine, effects: &mut Vec<Effect>) {
        let Some(Running { what, .. }) = self.running[engine.index()].take() else {
            unreachable!("only what runs ends")
        };
        self.note(now, What::Ended, engine, what);
        if let Some(client) = self.clients.get_mut(&what.client) {
            client.outstanding.remove(&what.operation);
            // A stream is not released while an operation of a connected process is pending.
            self.streams.of(what.client, what.stream).expect("it has a pending operation").pending -= 1;
            self.note(now, What::Interrupted, engine, what);
            effects.push(Effect::Complete { client: what.client, operation: what.operation });
        }
        let mut actions = Vec::new();
        self.engines.complete(engine, &mut actions);
        self.begin(now, actions, effects);
    }

    /// Carries out `actions`, and those that follow from them, in order.
    fn begin(&mut self, now: Now, mut actions: Vec<Action<Owned>>, effects: &mut Vec<Effect>) {
        let mut next = 0;
        while let Some(&Action::Begin { engine, what, duration }) = actions.get(next) {
            next += 1;
            self.note(now, What::Began, engine, what);
            if !self.clients.contains_key(&what.client) {
                self.note(now, What::Ended, engine, what);
                self.engines.complete(engine, &mut actions);
                continue;
            }
            let until = now.at.saturating_add(duration);
            self.running[engine.index()] = Some(Running { what, until, is_working: what.has_work });
            if what.has_work {
                effects.push(Effect::Begin { client: what.client, engine, operation: what.operation });
            }
        }
    }

    fn note(&mut self, now: Now, what: What, engine: Engine, operation: Owned) {
        let Owned { stream, index, job, .. } = operation;
        self.history.push(Entry { at: now.at, what, engine, cpu: now.cpu, stream, index, job });
    }
}
