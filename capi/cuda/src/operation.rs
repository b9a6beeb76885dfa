//! An operation that the driver has, or that a thread is about to give it, and the events that say when it is complete.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use laxity_interpose::{LiveStream, Operation};
use laxity_policy::program::OperationId;

use crate::real::ask;
use crate::types::*;

/// An operation of a stream: all that is to be known of it is its number.
#[derive(Debug, Default)]
pub struct CudaOperation;

/// An event of ours, which goes back to its pool.
#[derive(Debug)]
pub struct Event {
    handle: usize,
    pool: Weak<Pool>,
}

/// Events of one context that are free.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<usize>>);

impl Operation for CudaOperation {
    type Place = Infallible;

    fn mark(_: &LiveStream<Self>, place: Infallible, _: OperationId) -> Option<Arc<Self>> {
        match place {}
    }

    /// The gate is the thread that issues: it is woken with all that wait for news.
    fn open(&self) {}

    /// The thread that watches the stream asks the driver, and waits for it.
    fn is_complete(&self) -> bool {
        false
    }

    /// Whatever it waits for is before it in its stream.
    fn is_ready(&self) -> bool {
        true
    }
}

impl Pool {
    /// An event, recorded in `stream`. `None`: the driver has none.
    pub fn record(self: &Arc<Self>, stream: CUstream) -> Option<Arc<Event>> {
        let free = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let handle = match free {
            Some(handle) => handle,
            None => {
                let mut made: CUevent = std::ptr::null_mut();
                let flags = EVENT_DISABLE_TIMING | EVENT_BLOCKING_SYNC;
                let result = ask!(c"cuEventCreate": fn(*mut CUevent, u32)(&mut made, flags));
                if result != SUCCESS {
                    return None;
                }
                made as usize
            }
        };
        let event = Arc::new(Event { handle, pool: Arc::downgrade(self) });
        let result = ask!(c"cuEventRecord": fn(CUevent, CUstream)(handle as CUevent, stream));
        (result == SUCCESS).then_some(event)
    }

    /// Destroys those that are free. The context is current.
    pub fn clear(&self) {
        let free = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for handle in free {
            ask!(c"cuEventDestroy_v2": fn(CUevent)(handle as CUevent));
        }
    }
}

impl Event {
    /// Waits, suspended. An error counts as the end: the driver says no more about the operation.
    pub fn wait(&self) {
        ask!(c"cuEventSynchronize": fn(CUevent)(self.handle as CUevent));
    }

    /// Whether all before it is complete, or failed.
    pub fn is_complete(&self) -> bool {
        ask!(c"cuEventQuery": fn(CUevent)(self.handle as CUevent)) != NOT_READY
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Without a pool its context is gone, and it with it.
        if let Some(pool) = self.pool.upgrade() {
            pool.0.lock().unwrap_or_else(PoisonError::into_inner).push(self.handle);
        }
    }
}
