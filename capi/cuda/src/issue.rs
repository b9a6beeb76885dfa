//! How an operation gets to the driver: through, under an engine that is taken or shared, or when its turn has come.
//!
//! ```text
//!   not arbitrated, captured ------------------------------------------------------------> the call as it is
//!   admitted or taken, blocking ---------------------------------------------------------> the call, then unlock
//!   admitted or taken --------------------------> the call, with an event behind it, watched
//!   gated ------> the thread waits for its turn --> the call, with an event behind it, watched --(blocking)--> unlock
//! ```

use laxity_interpose::Label;
use laxity_policy::program::{OperationId, Work};

use crate::layer::Layer;
use crate::stream::Stream;
use crate::types::*;
use crate::watch::Position;

/// Where an operation is issued to.
#[derive(Clone, Copy)]
pub struct Place {
    pub handle: CUstream,
    pub default: Default0,
    /// Whether the call returns when the operation is complete.
    pub blocking: bool,
}

/// Gives an operation to the driver by `call`.
pub fn issue(
    place: Place,
    work: impl FnOnce() -> Work,
    label: impl FnOnce() -> Option<Label>,
    call: impl FnOnce() -> CUresult,
) -> CUresult {
    let layer = Layer::get();
    if !layer.is_on() || layer.is_captured(place.handle, place.default) {
        return call();
    }
    let Some(stream) = layer.stream(place.handle, place.default) else { return call() };
    if layer.is_behind_others(&stream) {
        mark(&stream, || SUCCESS);
    }
    let Some(ticket) = stream.live.begin(work(), true, label) else { return call() };
    let id = ticket.id;
    let position = || if place.blocking { stream.position() } else { None };
    if ticket.is_gated {
        ticket.attach(stream.operation.clone());
        stream.hurry();
        stream.live.wait_for_turn(id);
        let before = position();
        stream.close_tail();
        let result = call();
        // It is complete, or never was.
        if result != SUCCESS || place.blocking || !watch(&stream, id) {
            stream.live.complete_and_go_on(id);
        }
        settle_blocking(&stream, place, before, result);
        return result;
    }
    let before = position();
    stream.close_tail();
    let result = call();
    if result != SUCCESS {
        ticket.cancel();
    } else if place.blocking {
        ticket.complete(true);
        settle_blocking(&stream, place, before, result);
    } else {
        ticket.attach(stream.operation.clone());
        if !watch(&stream, id) {
            stream.live.complete_and_go_on(id);
        }
    }
    result
}

/// The driver has an operation, whose completion is to be seen. Answers whether it can be.
fn watch(stream: &Stream, id: OperationId) -> bool {
    if stream.is_alone() {
        stream.watch(id, None);
        // Another stream with which this one is ordered may have come meanwhile.
        if !stream.is_alone() {
            stream.close_tail();
        }
        return true;
    }
    let event = stream.record();
    let is_seen = event.is_some();
    if is_seen {
        stream.watch(id, event);
    }
    is_seen
}

/// A call that returns when its operation is complete says so of what was before it, too.
fn settle_blocking(stream: &Stream, place: Place, before: Option<Position>, result: CUresult) {
    if place.blocking && result == SUCCESS {
        match before {
            Some(before) => stream.settle(before),
            None => stream.live.synchronized(),
        }
    }
}

/// Something in a stream that uses no engine, and that what is behind it waits for: an event of another stream, a function
/// of the host, a value in memory.
pub fn wait(handle: CUstream, default: Default0, call: impl FnOnce() -> CUresult) -> CUresult {
    let layer = Layer::get();
    if !layer.is_on() || layer.is_captured(handle, default) {
        return call();
    }
    match layer.stream(handle, default) {
        Some(stream) => mark(&stream, call),
        None => call(),
    }
}

fn mark(stream: &Stream, call: impl FnOnce() -> CUresult) -> CUresult {
    let Some(ticket) = stream.live.begin(Work::Marker, false, || None) else { return call() };
    stream.close_tail();
    let (id, result) = (ticket.id, call());
    match stream.record().filter(|_| result == SUCCESS) {
        Some(event) => {
            ticket.attach(stream.operation.clone());
            stream.watch_marker(id, event);
        }
        None => ticket.cancel(),
    }
    result
}

/// A thread waits for what the driver has of a stream.
pub fn synchronize(stream: Option<&Stream>, call: impl FnOnce() -> CUresult) -> CUresult {
    let Some((stream, until)) = stream.and_then(|stream| Some((stream, stream.position()?))) else { return call() };
    let _awaiting = stream.before_wait(until, true);
    let result = call();
    if result == SUCCESS {
        stream.settle(until);
    }
    result
}
