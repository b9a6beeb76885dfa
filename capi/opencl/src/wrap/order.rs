//! Markers, barriers, and what acquires and releases objects of other interfaces: they use no engine, and what is behind
//! them may wait for them.

use laxity_policy::program::{Order, Work};

use super::{below, list};
use crate::enqueue::{Events, Request, enqueue};
use crate::layer::Layer;
use crate::types::*;

list![
    clEnqueueMarker,
    clEnqueueMarkerWithWaitList,
    clEnqueueBarrier,
    clEnqueueBarrierWithWaitList,
    clEnqueueWaitForEvents,
    clEnqueueAcquireGLObjects,
    clEnqueueReleaseGLObjects,
    clEnqueueAcquireEGLObjectsKHR,
    clEnqueueReleaseEGLObjectsKHR,
];

/// Makes `call`, which is of no concern where it waits for nothing but the order of its queue.
///
/// # Safety
/// As [`enqueue`].
unsafe fn order(queue: cl_command_queue, work: Work, events: Events, mut call: impl FnMut(Events) -> cl_int) -> cl_int {
    let is_in_order = Layer::get().queue(queue).is_some_and(|queue| queue.order == Order::InOrder);
    if is_in_order && events.count == 0 {
        return call(events);
    }
    let request = Request { queue, work, blocking: false, events };
    // SAFETY: the caller's promise.
    unsafe { enqueue(request, || None, |_, events| call(events)) }
}

unsafe extern "C" fn clEnqueueMarker(queue: cl_command_queue, event: *mut cl_event) -> cl_int {
    let below = below!(clEnqueueMarker);
    if event.is_null() {
        // SAFETY: the program's call, which the driver refuses.
        return unsafe { below(queue, event) };
    }
    let events = Events { event, ..Events::NONE };
    // SAFETY: the program's call.
    unsafe { order(queue, Work::Marker, events, |events| below(queue, events.event)) }
}

unsafe extern "C" fn clEnqueueMarkerWithWaitList(
    queue: cl_command_queue,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueMarkerWithWaitList);
    let call = |Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { order(queue, Work::Marker, Events { count, list, event }, call) }
}

/// Without an event there is no telling when the barrier is complete: its successor has one.
unsafe extern "C" fn clEnqueueBarrier(queue: cl_command_queue) -> cl_int {
    let is_tracked = Layer::get().queue(queue).is_some_and(|queue| queue.order == Order::OutOfOrder);
    match Layer::target().clEnqueueBarrierWithWaitList {
        // SAFETY: the program's call, by its later name.
        Some(_) if is_tracked => unsafe {
            clEnqueueBarrierWithWaitList(queue, 0, std::ptr::null(), std::ptr::null_mut())
        },
        // SAFETY: the program's call.
        _ => unsafe { below!(clEnqueueBarrier)(queue) },
    }
}

unsafe extern "C" fn clEnqueueBarrierWithWaitList(
    queue: cl_command_queue,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = below!(clEnqueueBarrierWithWaitList);
    let call = |Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(queue, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { order(queue, Work::Barrier, Events { count, list, event }, call) }
}

/// As [`clEnqueueBarrier`].
unsafe extern "C" fn clEnqueueWaitForEvents(queue: cl_command_queue, count: cl_uint, list: *const cl_event) -> cl_int {
    let is_tracked = Layer::get().queue(queue).is_some();
    match Layer::target().clEnqueueBarrierWithWaitList {
        Some(_) if is_tracked && count > 0 && !list.is_null() => {
            // SAFETY: the program's call, by its later name.
            unsafe { clEnqueueBarrierWithWaitList(queue, count, list, std::ptr::null_mut()) }
        }
        // SAFETY: the program's call.
        _ => unsafe { below!(clEnqueueWaitForEvents)(queue, count, list) },
    }
}

/// Objects of another interface begin or end to be OpenCL's.
macro_rules! hand_over {
    ($name:ident) => {
        unsafe extern "C" fn $name(
            queue: cl_command_queue,
            number: cl_uint,
            objects: *const cl_mem,
            count: cl_uint,
            list: *const cl_event,
            event: *mut cl_event,
        ) -> cl_int {
            let below = below!($name);
            let call = |Events { count, list, event }: Events| {
                // SAFETY: the program's call.
                unsafe { below(queue, number, objects, count, list, event) }
            };
            // SAFETY: `call` makes the program's call.
            unsafe { order(queue, Work::Marker, Events { count, list, event }, call) }
        }
    };
}

hand_over!(clEnqueueAcquireGLObjects);
hand_over!(clEnqueueReleaseGLObjects);
hand_over!(clEnqueueAcquireEGLObjectsKHR);
hand_over!(clEnqueueReleaseEGLObjectsKHR);
