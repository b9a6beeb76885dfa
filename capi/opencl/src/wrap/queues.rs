//! Queues: made, shared and given up.

use std::thread;

use super::{below, list};
use crate::layer::{Layer, Queue};
use crate::types::*;

list![clCreateCommandQueue, clCreateCommandQueueWithProperties, clRetainCommandQueue, clReleaseCommandQueue,];

unsafe extern "C" fn clCreateCommandQueue(
    context: cl_context,
    device: cl_device_id,
    properties: cl_bitfield,
    status: *mut cl_int,
) -> cl_command_queue {
    // SAFETY: the program's call.
    made(unsafe { below!(clCreateCommandQueue)(context, device, properties, status) })
}

unsafe extern "C" fn clCreateCommandQueueWithProperties(
    context: cl_context,
    device: cl_device_id,
    properties: *const cl_bitfield,
    status: *mut cl_int,
) -> cl_command_queue {
    // SAFETY: the program's call.
    made(unsafe { below!(clCreateCommandQueueWithProperties)(context, device, properties, status) })
}

fn made(queue: cl_command_queue) -> cl_command_queue {
    let layer = Layer::get();
    if !queue.is_null() && layer.is_on() {
        layer.add_queue(queue);
    }
    queue
}

unsafe extern "C" fn clRetainCommandQueue(queue: cl_command_queue) -> cl_int {
    // SAFETY: the program's call.
    let status = unsafe { below!(clRetainCommandQueue)(queue) };
    if let (CL_SUCCESS, Some(layer)) = (status, Layer::started()) {
        layer.retain_queue(queue);
    }
    status
}

unsafe extern "C" fn clReleaseCommandQueue(queue: cl_command_queue) -> cl_int {
    let below = below!(clReleaseCommandQueue);
    // From here on the driver may use the address for another queue, if this is the last reference.
    let Some(known) = Layer::started().and_then(|layer| layer.release_queue(queue)) else {
        // SAFETY: the program's call.
        return unsafe { below(queue) };
    };
    if known.stream.waits_for_program() {
        // What it waits for may come from the thread that gives the queue up: another thread waits.
        let queue = Abandoned { handle: queue, known };
        let waiting = thread::Builder::new().name("laxity-release".to_owned()).spawn(move || {
            let queue = queue;
            finish(&queue.known);
            // SAFETY: the program's reference, which it gave up.
            unsafe { below(queue.handle) };
        });
        return if waiting.is_ok() { CL_SUCCESS } else { CL_OUT_OF_RESOURCES };
    }
    finish(&known);
    // SAFETY: the program's call.
    unsafe { below(queue) }
}

/// A queue that its program gave up.
struct Abandoned {
    handle: cl_command_queue,
    known: Queue,
}

// SAFETY: handles may be used by any thread; see `ClOperation`.
unsafe impl Send for Abandoned {}

/// Some drivers wait within the release for what was issued, so nothing may be held back any more.
fn finish(queue: &Queue) {
    if let Some(last) = queue.stream.last() {
        queue.stream.wait_until_open(last, false);
    }
    queue.stream.close();
}
