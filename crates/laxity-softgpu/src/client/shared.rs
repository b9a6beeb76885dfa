//! What the threads of one process share of a soft GPU.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use laxity_model::{Engine, Nanos};
use laxity_sys::packets::Packets;
use laxity_sys::sparse::Sparse;

use super::start::Connection;
use super::stream::{Callback, Core, KernelResult, lock};
use crate::config::Config;
use crate::error::GpuError;
use crate::message::{Issue, Reply, Request};
use crate::server::device::OUTSTANDING_MAX;

/// What an operation does in this process.
pub(super) type Work = Box<dyn FnOnce() -> KernelResult + Send>;

/// See above.
pub(super) struct Shared {
    pub name: String,
    pub config: Config,
    pub packets: Packets,
    /// By engine, where the server says to its thread what to begin.
    pub engines: [Packets; Engine::ALL.len()],
    pub memory: Sparse,
    /// Where answers come from; held from question to answer, as answers come in the order of questions.
    answers: Mutex<Receiver<Reply>>,
    operations: Mutex<Operations>,
    numbers: AtomicU64,
    places: Arc<Places>,
    /// The callback thread. `None`: nobody is called any more.
    pub callbacks: Mutex<Option<Sender<Call>>>,
    is_gone: AtomicBool,
}

#[derive(Default)]
struct Operations {
    by_number: BTreeMap<u64, Outstanding>,
    is_gone: bool,
}

/// An operation that is not complete.
struct Outstanding {
    core: Arc<Core>,
    index: u64,
    work: Option<Work>,
    failure: Option<GpuError>,
    _place: Place,
}

/// A callback, and the stream that it was added to.
pub(super) type Call = (Arc<Core>, Callback);

/// How many operations there may be.
#[derive(Debug, Default)]
struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Place(Arc<Places>);

impl Drop for Place {
    fn drop(&mut self) {
        *lock(&self.0.taken) -= 1;
        self.0.freed.notify_one();
    }
}

impl Shared {
    pub fn new(name: &str, config: Config, connection: Connection, answers: Receiver<Reply>) -> Shared {
        let Connection { packets, memory, engines } = connection;
        Shared {
            name: name.to_owned(),
            config,
            packets,
            engines,
            memory,
            answers: Mutex::new(answers),
            operations: Mutex::default(),
            numbers: AtomicU64::new(0),
            places: Arc::default(),
            callbacks: Mutex::new(None),
            is_gone: AtomicBool::new(false),
        }
    }

    pub fn gone(&self) -> GpuError {
        GpuError::Gone { name: self.name.clone() }
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Asks the server.
    pub fn ask(&self, request: &Request) -> Result<Reply, GpuError> {
        super::inside::refuse()?;
        let answers = lock(&self.answers);
        self.packets.send(&request.encode()).map_err(|_| self.gone())?;
        answers.recv().map_err(|_| self.gone())
    }

    /// Waits until there may be one more operation.
    pub fn make_room(&self) -> Result<Place, GpuError> {
        let mut taken = lock(&self.places.taken);
        while *taken >= OUTSTANDING_MAX {
            taken = self.places.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += 1;
        Ok(Place(self.places.clone()))
    }

    pub fn issue(
        &self,
        core: &Arc<Core>,
        index: u64,
        engine: Engine,
        duration: Nanos,
        work: Option<Work>,
        place: Place,
    ) -> Result<(), GpuError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (stream, job, has_work) = (core.number, core.job(), work.is_some());
        let issue = Issue { operation: number, stream, job, engine, duration, has_work };
        let outstanding = Outstanding { core: core.clone(), index, work, failure: None, _place: place };
        {
            let mut operations = lock(&self.operations);
            if operations.is_gone {
                drop(operations);
                return Err(self.gone());
            }
            operations.by_number.insert(number, outstanding);
        }
        if self.packets.send(&Request::Issue(issue).encode()).is_err() {
            let outstanding = lock(&self.operations).by_number.remove(&number);
            drop(outstanding);
            return Err(self.gone());
        }
        Ok(())
    }

    /// The engine of operation `number` is this process's: carries out its work, and tells the server.
    pub fn work(&self, number: u64) {
        let work = lock(&self.operations).by_number.get_mut(&number).and_then(|outstanding| outstanding.work.take());
        let Some(work) = work else { return };
        let result = super::threads::guarded(work);
        if let Err(reason) = result
            && let Some(outstanding) = lock(&self.operations).by_number.get_mut(&number)
        {
            let (stream, index) = (outstanding.core.name.clone(), outstanding.index);
            outstanding.failure = Some(GpuError::Failed { stream, index, reason: reason.into() });
        }
        // If the server is gone, the link knows.
        let _ = self.packets.send(&Request::Worked(number).encode());
    }

    /// The stream of an operation that is complete, and whether it failed.
    pub fn take(&self, number: u64) -> Option<(Arc<Core>, Option<GpuError>)> {
        let outstanding = lock(&self.operations).by_number.remove(&number)?;
        Some((outstanding.core.clone(), outstanding.failure.clone()))
    }

    /// Has the callback thread call `callback`.
    pub fn call_back(&self, core: &Arc<Core>, callback: Callback) {
        if let Some(callbacks) = lock(&self.callbacks).as_ref() {
            let _ = callbacks.send((core.clone(), callback));
        }
    }

    /// Nothing becomes complete any more.
    pub fn lose(&self) {
        let lost = {
            let mut operations = lock(&self.operations);
            operations.is_gone = true;
            std::mem::take(&mut operations.by_number)
        };
        self.is_gone.store(true, Ordering::Release);
        lost.values().for_each(|outstanding| outstanding.core.lose());
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).field("config", &self.config).finish_non_exhaustive()
    }
}
