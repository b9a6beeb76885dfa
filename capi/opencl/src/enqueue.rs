//! How an operation gets to the driver: through, under an engine that is taken or shared, or behind a gate.
//!
//! ```text
//!   malformed, not arbitrated ------------------------------------------------> the call as it is
//!   admitted or taken, blocking, in order ------------------------------------> the call as it is, then unlock
//!   admitted or taken, unwatched ---------------------------------------------> the call as it is
//!   admitted or taken ------> the call, not blocking, with an event of ours, flushed, watched --(blocking)--> wait
//!   gated -----------------> the call, not blocking, behind a user event, flushed, watched --(blocking)--> wait
//! ```

use std::sync::Arc;

use laxity_interpose::Label;
use laxity_interpose::settings::Wait;
use laxity_policy::program::{OperationId, Order, Work};

use crate::layer::{self, Layer, Queue};
use crate::operation::ClOperation;
use crate::types::*;

/// The end of most calls: what to wait for, and where the event goes.
#[derive(Clone, Copy)]
pub struct Events {
    /// How many.
    pub count: cl_uint,
    /// Which.
    pub list: *const cl_event,
    /// Null: the program wants none.
    pub event: *mut cl_event,
}

/// What the program asks for.
#[derive(Clone, Copy)]
pub struct Request {
    /// The queue.
    pub queue: cl_command_queue,
    /// The operation.
    pub work: Work,
    /// Whether the call returns when it is complete.
    pub blocking: bool,
    /// What it waits for, and its event.
    pub events: Events,
}

impl Events {
    /// Nothing to wait for, and no event.
    pub const NONE: Events = Events { count: 0, list: std::ptr::null(), event: std::ptr::null_mut() };

    /// Whether the list is what its count says. A driver names the error of one that is not.
    fn is_well_formed(&self) -> bool {
        (self.count > 0) != self.list.is_null()
    }

    /// # Safety
    /// The list has as many events as it says.
    unsafe fn list(&self) -> &[cl_event] {
        // SAFETY: the caller's promise, and a list that is not null is aligned.
        if self.list.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(self.list, self.count as usize) } }
    }
}

/// Gives an operation to the driver by `call`, which gets whether to block and the events.
///
/// # Safety
/// `call` makes the program's call, whose arguments are the program's, with other events.
#[inline]
pub unsafe fn enqueue(
    request: Request,
    label: impl FnOnce() -> Option<Label>,
    mut call: impl FnMut(cl_bool, Events) -> cl_int,
) -> cl_int {
    let mut label = Some(label);
    // SAFETY: the caller's promise.
    unsafe { enqueue_by(request, &mut || label.take().and_then(|label| label()), &mut call) }
}

/// One for all entry points, as [`LiveStream::begin`](laxity_interpose::LiveStream::begin).
///
/// # Safety
/// That of [`enqueue`].
unsafe fn enqueue_by(
    request: Request,
    label: &mut dyn FnMut() -> Option<Label>,
    call: &mut dyn FnMut(cl_bool, Events) -> cl_int,
) -> cl_int {
    let Request { queue, work, blocking, events } = request;
    let layer = Layer::get();
    let arbitrated = if events.is_well_formed() { layer.queue(queue) } else { None };
    let Some(arbitrated) = arbitrated else { return call(blocking.into(), events) };
    // SAFETY: the program's call would read the list, too.
    let dependencies = unsafe { open_dependencies(layer, &arbitrated, &events) };
    let stream = &arbitrated.stream;
    let Some(ticket) = stream.begin(work, dependencies.is_empty(), label) else { return call(blocking.into(), events) };
    let id = ticket.id;
    let suspends = layer.process().settings.wait == Wait::Suspend;
    if blocking && !ticket.is_gated && !suspends && arbitrated.order == Order::InOrder {
        // It holds its engine, or shares it with what is before it: nothing that it waits for depends on the program. Out of
        // order a driver may have a blocking call wait for the whole queue, also for what waits for the program.
        let status = call(CL_TRUE, events);
        if status == CL_SUCCESS {
            ticket.complete(false);
            stream.synchronized();
        }
        return status;
    }
    if !ticket.is_watched {
        let status = call(CL_FALSE, events);
        if status == CL_SUCCESS {
            // SAFETY: the driver has written the program's event, if that wants one.
            let event = unsafe { events.event.as_ref() };
            ticket.leave(event.map_or(0, |&event| event as usize));
        }
        return status;
    }
    let gate = if ticket.is_gated { new_gate(arbitrated.context) } else { std::ptr::null_mut() };
    let mut event: cl_event = std::ptr::null_mut();
    let mut list: Vec<cl_event> = Vec::new();
    let mut with_gate = Events { event: &mut event, ..events };
    if !gate.is_null() {
        // SAFETY: as above.
        list.extend_from_slice(unsafe { events.list() });
        list.push(gate);
        with_gate = Events { count: list.len() as cl_uint, list: list.as_ptr(), event: &mut event };
    }
    let status = call(CL_FALSE, with_gate);
    if status != CL_SUCCESS || event.is_null() {
        ticket.cancel();
        if !gate.is_null() {
            layer::release(gate);
            // The driver may mean the gate; it shall judge what the program said.
            if [CL_INVALID_EVENT_WAIT_LIST, CL_INVALID_CONTEXT].contains(&status) {
                return call(blocking.into(), events);
            }
        }
        return status;
    }
    // What the program has no event of, it cannot name: then the layer keeps the only reference, as each call that counts
    // one takes a lock of the driver that the command's own thread wants now.
    let is_known = !events.event.is_null();
    if is_known {
        layer::retain(event);
        layer.know(event, &arbitrated, id);
        // SAFETY: the program's place for its event, which the driver would have written to.
        unsafe { events.event.write(event) };
    }
    let operation = Arc::new(ClOperation::new(event, is_known, gate, dependencies));
    // What is not flushed may never run, and would keep its engine.
    flush(queue);
    ticket.attach(operation.clone());
    operation.watch(stream, id, arbitrated.bears_gates);
    // The operation has a reference of its own.
    let status = if blocking { wait_for(&arbitrated, id, event) } else { CL_SUCCESS };
    drop(operation);
    status
}

/// The events that the operation waits for beyond the order of its queue, and that are not over.
///
/// # Safety
/// The list has as many events as it says.
unsafe fn open_dependencies(layer: &Layer, queue: &Queue, events: &Events) -> Vec<cl_event> {
    let is_before = |event: cl_event| {
        queue.order == Order::InOrder
            && layer.operation(event).is_some_and(|known| known.queue.stream.is_same(&queue.stream))
    };
    // SAFETY: the caller's promise.
    let list = unsafe { events.list() };
    list.iter().copied().filter(|&event| !is_before(event) && !layer::is_over(event)).collect()
}

/// A user event of `context` that nothing has completed; null if the driver has none.
fn new_gate(context: cl_context) -> cl_event {
    let Some(create) = Layer::target().clCreateUserEvent else { return std::ptr::null_mut() };
    let mut status = CL_SUCCESS;
    // SAFETY: the context is that of a queue that the program uses.
    let gate = unsafe { create(context, &mut status) };
    if status == CL_SUCCESS { gate } else { std::ptr::null_mut() }
}

/// Has the driver begin what was issued.
pub fn flush(queue: cl_command_queue) {
    if let Some(flush) = Layer::target().clFlush {
        // SAFETY: the program issues to this queue.
        unsafe { flush(queue) };
    }
}

/// Waits until operation `id`, whose event is `event`, is complete.
fn wait_for(queue: &Queue, id: OperationId, event: cl_event) -> cl_int {
    let only = queue.order == Order::OutOfOrder;
    let waiting = queue.before_wait(id, only);
    let Some(wait) = Layer::target().clWaitForEvents else { return CL_SUCCESS };
    // SAFETY: the caller has a reference.
    let status = unsafe { wait(1, &event) };
    drop(waiting);
    queue.stream.settle(id, only);
    status
}
