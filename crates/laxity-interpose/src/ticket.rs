//! An operation between a stream and its driver.

use std::sync::Arc;

use laxity_policy::program::{Event, OperationId};

use crate::issue_lock::Issuing;
use crate::operation::Operation;
use crate::stream::LiveStream;

/// An operation that the driver is about to get: then [`Ticket::attach`], or [`Ticket::cancel`] if it refused. Until then
/// no other thread issues to the stream.
#[must_use = "the driver has it, or refused"]
pub struct Ticket<'a, O: Operation> {
    pub(crate) stream: &'a LiveStream<O>,
    /// Its number.
    pub id: OperationId,
    /// Whether it needs a gate.
    pub is_gated: bool,
    /// Whether the driver is to say when it is complete. If not, the stream puts a [marker](Operation::mark) behind it if need be.
    pub is_watched: bool,
    pub(crate) is_settled: bool,
    pub(crate) _issuing: Issuing<'a>,
}

impl<O: Operation> Ticket<'_, O> {
    /// The driver has the operation.
    pub fn attach(mut self, operation: Arc<O>) {
        self.is_settled = true;
        let mut state = self.stream.inner.lock();
        let opens = state.attach(self.id, operation);
        let leftovers = state.leftovers();
        drop(state);
        if let Some(operation) = opens {
            operation.open();
        }
        drop(leftovers);
    }

    /// The driver has the operation, which is not watched. `name`: of the front's, by which it may [find](LiveStream::left_as) it, or 0.
    pub fn leave(mut self, name: usize) {
        assert!(!self.is_watched, "an operation that is watched is attached");
        self.is_settled = true;
        self.stream.inner.lock().leave(self.id, name);
    }

    /// The driver refused it.
    pub fn cancel(self) {}

    /// The driver carried it out before it returned: `only` it, or all before it, too.
    pub fn complete(mut self, only: bool) {
        self.is_settled = true;
        self.stream.settle(self.id, only);
    }
}

impl<O: Operation> Drop for Ticket<'_, O> {
    fn drop(&mut self) {
        if !self.is_settled {
            let mut state = self.stream.inner.lock();
            state.handle(&self.stream.inner.process.settings, Event::Cancelled(self.id));
            self.stream.inner.go_on(state);
        }
    }
}
