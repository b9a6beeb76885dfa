//! The state that the threads of one process share.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use laxity_model::{Engine, Nanos};
use laxity_sys::packets::Packets;
use laxity_sys::pi_mutex::{Happening, PiMutex};
use laxity_sys::process::forks;
use laxity_sys::sparse::Sparse;

use super::start::Connection;
use super::stream::{Callback, Core, KernelResult, lock};
use crate::config::Config;
use crate::error::GpuError;
use crate::message::{Issue, Message, Reply, Request};
use crate::server::device::OUTSTANDING_MAX;

/// The work of an operation in this process.
pub(super) type Work = Box<dyn FnOnce() -> KernelResult + Send>;

/// See above.
pub(super) struct Shared {
    pub name: String,
    pub config: Config,
    pub packets: Packets,
    /// That of the process that opened it.
    forks: u32,
    /// By engine, the connection on which the server tells its thread to begin.
    pub engines: [Packets; Engine::ALL.len()],
    pub memory: Sparse,
    /// The server's answers. Held from question to answer, as answers come in the order of questions.
    answers: Mutex<Receiver<Reply>>,
    operations: PiMutex<Operations>,
    numbers: AtomicU64,
    limit: Arc<Limit>,
    /// The callback thread. `None`: callbacks are not called any more.
    pub callbacks: PiMutex<Option<Sender<Call>>>,
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
    _permit: Permit,
}

/// A callback, the stream that it was added to, and whether those that synchronize wait for it.
pub(super) type Call = (Arc<Core>, Callback, bool);

/// The number of outstanding operations.
#[derive(Debug, Default)]
struct Limit {
    taken: AtomicUsize,
    freed: Happening,
}

/// The permission for one outstanding operation.
#[derive(Debug)]
pub(super) struct Permit(Arc<Limit>);

impl Drop for Permit {
    fn drop(&mut self) {
        if self.0.taken.fetch_sub(1, Ordering::AcqRel) == OUTSTANDING_MAX {
            self.0.freed.happen();
        }
    }
}

impl Shared {
    pub fn new(name: &str, config: Config, connection: Connection, answers: Receiver<Reply>) -> Shared {
        let Connection { packets, memory, engines } = connection;
        Shared {
            name: name.to_owned(),
            config,
            packets,
            forks: forks(),
            engines,
            memory,
            answers: Mutex::new(answers),
            operations: PiMutex::default(),
            numbers: AtomicU64::new(0),
            limit: Arc::default(),
            callbacks: PiMutex::default(),
            is_gone: AtomicBool::new(false),
        }
    }

    pub fn gone(&self) -> GpuError {
        GpuError::Gone { name: self.name.clone() }
    }

    /// Whether this is the process that opened it, not one forked from it. That one alone has threads which answer, and
    /// locks that another thread may have held meanwhile are locked in the other for ever.
    pub fn is_ours(&self) -> bool {
        forks() == self.forks
    }

    /// [`GpuError::Forked`] in a process that was forked; [`GpuError::Inside`] if this thread belongs to a soft GPU.
    pub fn refuse(&self) -> Result<(), GpuError> {
        if !self.is_ours() {
            return Err(GpuError::Forked);
        }
        super::inside::refuse()
    }

    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Asks the server.
    pub fn ask(&self, request: &Request) -> Result<Reply, GpuError> {
        self.refuse()?;
        let answers = lock(&self.answers);
        self.packets.send(&request.encode()).map_err(|_| self.gone())?;
        answers.recv().map_err(|_| self.gone())
    }

    /// Waits until one more operation may be outstanding.
    pub fn make_room(&self) -> Result<Permit, GpuError> {
        let taken = &self.limit.taken;
        let one_more = |taken: usize| (taken < OUTSTANDING_MAX).then_some(taken + 1);
        self.limit.freed.wait_until(|| taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok());
        Ok(Permit(self.limit.clone()))
    }

    pub fn issue(
        &self,
        core: &Arc<Core>,
        index: u64,
        engine: Engine,
        duration: Nanos,
        work: Option<Work>,
        permit: Permit,
    ) -> Result<(), GpuError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let (stream, job, has_work) = (core.number, core.job(), work.is_some());
        let issue = Issue { operation: number, stream, job, engine, duration, has_work };
        let outstanding = Outstanding { core: core.clone(), index, work, failure: None, _permit: permit };
        {
            let mut operations = self.operations.lock();
            if operations.is_gone {
                drop(operations);
                return Err(self.gone());
            }
            operations.by_number.insert(number, outstanding);
        }
        if self.packets.send(&Request::Issue(issue).encode()).is_err() {
            let outstanding = self.operations.lock().by_number.remove(&number);
            drop(outstanding);
            return Err(self.gone());
        }
        Ok(())
    }

    /// Carries out the work of operation `number`, whose engine is this process's now, and tells the server.
    pub fn work(&self, number: u64) {
        let work = self.operations.lock().by_number.get_mut(&number).and_then(|outstanding| outstanding.work.take());
        let Some(work) = work else { return };
        let result = super::threads::guarded(work);
        if let Err(reason) = result
            && let Some(outstanding) = self.operations.lock().by_number.get_mut(&number)
        {
            let (stream, index) = (outstanding.core.name.clone(), outstanding.index);
            outstanding.failure = Some(GpuError::Failed { stream, index, reason: reason.into() });
        }
        if self.packets.send(&Request::Worked(number).encode()).is_err() {
            // The server would keep the engine for this operation, which no other process could use then.
            self.packets.end();
        }
    }

    /// Forgets an operation that is complete. Returns its stream, and its failure if it failed.
    pub fn take(&self, number: u64) -> Option<(Arc<Core>, Option<GpuError>)> {
        let outstanding = self.operations.lock().by_number.remove(&number)?;
        Some((outstanding.core.clone(), outstanding.failure.clone()))
    }

    /// Passes `callback` to the callback thread.
    pub fn call_back(&self, core: &Arc<Core>, callback: Callback, is_counted: bool) {
        if let Some(callbacks) = self.callbacks.lock().as_ref() {
            let _ = callbacks.send((core.clone(), callback, is_counted));
        }
    }

    /// The server is gone: pending operations will not complete.
    pub fn lose(&self) {
        let lost = {
            let mut operations = self.operations.lock();
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
