//! Calls that wait: in the layer while something is held back, if the driver is one that needs it, then in the driver.

use super::{below, list};
use crate::layer::Layer;
use crate::types::*;

list![clFinish, clWaitForEvents];

unsafe extern "C" fn clFinish(queue: cl_command_queue) -> cl_int {
    let below = below!(clFinish);
    let known = Layer::started().and_then(|layer| layer.known_queue(queue));
    let Some(known) = known else {
        // SAFETY: the program's call.
        return unsafe { below(queue) };
    };
    // What another thread is about to give to the driver, the driver may not wait for.
    let last = known.stream.last_given();
    let waiting = last.and_then(|last| known.before_wait(last, false));
    // SAFETY: the program's call.
    let status = unsafe { below(queue) };
    drop(waiting);
    match last {
        Some(last) if status == CL_SUCCESS => known.stream.settle(last, false),
        _ => known.stream.synchronized(),
    }
    status
}

unsafe extern "C" fn clWaitForEvents(count: cl_uint, list: *const cl_event) -> cl_int {
    let below = below!(clWaitForEvents);
    let ours: Vec<_> = match Layer::started() {
        Some(layer) if !list.is_null() => {
            // SAFETY: the driver reads the list, too.
            let events = unsafe { std::slice::from_raw_parts(list, count as usize) };
            events.iter().filter_map(|&event| layer.operation(event)).collect()
        }
        _ => Vec::new(),
    };
    let waiting: Vec<_> = ours.iter().map(|ours| ours.queue.before_wait(ours.id, ours.is_alone())).collect();
    // SAFETY: the program's call.
    let status = unsafe { below(count, list) };
    drop(waiting);
    if status == CL_SUCCESS {
        ours.iter().for_each(|ours| ours.queue.stream.settle(ours.id, ours.is_alone()));
    }
    status
}
