//! Where records go as they happen.

use laxity_model::Instant;

use crate::{Event, Record};

/// A receiver of records, in order.
pub trait Sink {
    /// Takes one event that happened at `at`.
    fn record(&mut self, at: Instant, event: Event);
}

/// Throws every record away.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Sink for NoTrace {
    fn record(&mut self, _at: Instant, _event: Event) {}
}

impl Sink for Vec<Record> {
    fn record(&mut self, at: Instant, event: Event) {
        self.push(Record { at, event });
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn record(&mut self, at: Instant, event: Event) {
        (**self).record(at, event);
    }
}

/// Both receive every record.
impl<A: Sink, B: Sink> Sink for (A, B) {
    fn record(&mut self, at: Instant, event: Event) {
        self.0.record(at, event);
        self.1.record(at, event);
    }
}

/// Records only if there is a receiver.
impl<S: Sink> Sink for Option<S> {
    fn record(&mut self, at: Instant, event: Event) {
        if let Some(sink) = self {
            sink.record(at, event);
        }
    }
}
