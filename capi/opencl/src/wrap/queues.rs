//! Queues that the program gives up.

use std::thread;

use super::{below, list};
use crate::layer::{self, Layer, Queue};
use crate::types::*;

list![clReleaseCommandQueue];

unsafe extern "C" fn clReleaseCommandQueue(queue: cl_command_queue) -> cl_int {
    let below = below!(clReleaseCommandQueue);
    let known = Layer::started().and_then(|layer| layer.known_queue(queue));
    let is_last = || layer::queue_info::<cl_uint>(queue, CL_QUEUE_REFERENCE_COUNT) == Some(1);
    let Some(known) = known.filter(|_| is_last()) else {
        // SAFETY: the program's call.
        return unsafe { below(queue) };
    };
    // From here on the driver may use the address for another queue.
    Layer::get().remove_queue(queue);
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
