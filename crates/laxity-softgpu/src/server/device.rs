//! The device itself, as a state machine: what runs on which engine until when. It knows neither clock nor sockets.
//!
//! ```text
//!                        begin, if it has work                     complete
//! issue --> (waiting) ----------------------------> (on engine) ----------------> interrupt, and the next begins
//!               |                                        |        once its work is done and its time is over
//!               |     its process is gone: at once       |
//!               +----------------------------------------+----------------------> the next begins
//! ```

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{Engine, Instant};
use laxity_policy::gpu::{Action, Engines, Operation};

use super::history::{Entry, History, What};
use crate::message::Issue;

/// Operations of one process that are not complete. Its library stays within them.
pub(crate) const OUTSTANDING_MAX: usize = 1024;
/// Streams whose names are remembered, those in use excepted.
const NAMES: usize = 4096;

/// When and where something is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Now {
    pub at: Instant,
    pub cpu: u16,
}

/// What a process is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Carry out the work of the operation: the engine is yours.
    Begin { client: u32, engine: Engine, operation: u64 },
    /// The operation is complete.
    Complete { client: u32, operation: u64 },
}

/// A process that says what it must not: nothing more is heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Violation;

/// An operation, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owned {
    client: u32,
    operation: u64,
    stream: u32,
    index: u32,
    job: Option<u32>,
    has_work: bool,
}

/// What an engine does.
#[derive(Clone, Copy, Debug)]
struct Running {
    what: Owned,
    until: Instant,
    is_working: bool,
}

#[derive(Debug)]
struct Stream {
    client: u32,
    name: String,
    issued: u32,
}

/// See above.
#[derive(Debug)]
pub(crate) struct Device {
    engines: Engines<Owned>,
    copy_engines: u8,
    running: [Option<Running>; Engine::ALL.len()],
    /// Those that are connected, with the operations of each that are not complete.
    clients: BTreeMap<u32, BTreeSet<u64>>,
    streams: BTreeMap<u32, Stream>,
    streams_made: u32,
    history: History,
}

impl Device {
    pub fn new(copy_engines: u8) -> Self {
        Device {
            engines: Engines::new(copy_engines),
            copy_engines,
            running: [None; 3],
            clients: BTreeMap::new(),
            streams: BTreeMap::new(),
            streams_made: 0,
            history: History::default(),
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// The name of a stream, unless it is long forgotten.
    pub fn name(&self, stream: u32) -> Option<&str> {
        self.streams.get(&stream).map(|stream| stream.name.as_str())
    }

    pub fn join(&mut self, client: u32) {
        self.clients.insert(client, BTreeSet::new());
    }

    /// A new stream of `client`.
    pub fn stream(&mut self, client: u32, name: String) -> u32 {
        if self.streams.len() >= 2 * NAMES {
            let oldest = self.streams_made.saturating_sub(NAMES as u32);
            self.streams.retain(|number, stream| *number >= oldest || self.clients.contains_key(&stream.client));
        }
        let number = self.streams_made;
        self.streams_made = self.streams_made.checked_add(1).expect("a stream takes longer to make than 1 us");
        self.streams.insert(number, Stream { client, name, issued: 0 });
        number
    }

    /// `client` issues an operation.
    pub fn issue(&mut self, now: Now, client: u32, issue: Issue, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let Issue { operation, stream: number, job, engine, duration, has_work } = issue;
        let exists = !matches!(engine, Engine::Copy(copy) if copy >= self.copy_engines);
        let outstanding = self.clients.get_mut(&client).ok_or(Violation)?;
        let stream = self.streams.get_mut(&number).filter(|stream| stream.client == client).ok_or(Violation)?;
        if !exists || outstanding.len() >= OUTSTANDING_MAX || !outstanding.insert(operation) {
            return Err(Violation);
        }
        let what = Owned { client, operation, stream: number, index: stream.issued, job, has_work };
        // Jobs of a trace have 32 bits, too.
        stream.issued = stream.issued.wrapping_add(1);
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
        client: u32,
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

    /// `client` is gone. What it had on engines ends, and what waits for them will when its turn comes.
    pub fn leave(&mut self, now: Now, client: u32, effects: &mut Vec<Effect>) {
        self.clients.remove(&client);
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

    /// When an engine is done with what it does, if only time must pass.
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
        if let Some(outstanding) = self.clients.get_mut(&what.client) {
            outstanding.remove(&what.operation);
            self.note(now, What::Interrupted, engine, what);
            effects.push(Effect::Complete { client: what.client, operation: what.operation });
        }
        let mut actions = Vec::new();
        self.engines.complete(engine, &mut actions);
        self.begin(now, actions, effects);
    }

    /// Carries out `actions` and what follows from them, in order.
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
