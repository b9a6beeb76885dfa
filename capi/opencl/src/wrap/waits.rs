//! Calls that wait: in the layer while something is held back, then in the driver.

use laxity_policy::program::Order;

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
    let last = known.stream.last();
    if let Some(last) = last {
        known.stream.wait_until_open(last, false);
    }
    // SAFETY: the program's call.
    let status = unsafe { below(queue) };
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
    for (stream, id, order) in &ours {
        stream.wait_until_open(*id, *order == Order::OutOfOrder);
    }
    // SAFETY: the program's call.
    let status = unsafe { below(count, list) };
    if status == CL_SUCCESS {
        for (stream, id, order) in &ours {
            stream.settle(*id, *order == Order::OutOfOrder);
        }
    }
    status
}
