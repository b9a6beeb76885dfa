//! Operations as a front has them.

use std::sync::Arc;

use laxity_policy::program::OperationId;

use crate::stream::LiveStream;

/// An operation that a front gave to its driver. It is dropped when the layer needs it no longer, by a thread that may
/// call the driver.
pub trait Operation: Send + Sync + Sized + 'static {
    /// What the front needs to [mark](Operation::mark) a stream; [`Infallible`](std::convert::Infallible): it never does.
    type Place: Copy + Send + Sync;

    /// Puts a marker behind all that the driver has of an in-order stream, and has the driver say when it is complete: by
    /// [`LiveStream::complete_until`]. `None`: the driver refuses.
    fn mark(stream: &LiveStream<Self>, place: Self::Place, until: OperationId) -> Option<Arc<Self>>;

    /// Opens its gate, if it has one: the driver may run it. Called once at most.
    fn open(&self);

    /// Asks the driver whether it is complete, or failed. Asked now and then, as some drivers do not call back for
    /// operations that fail.
    fn is_complete(&self) -> bool;

    /// Asks the driver whether all that it waits for, but its gate, is complete.
    fn is_ready(&self) -> bool;
}

/// What an operation is called in logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(pub std::sync::Arc<str>);

impl From<&str> for Label {
    fn from(text: &str) -> Self {
        Label(text.into())
    }
}
