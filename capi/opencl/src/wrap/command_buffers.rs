//! Command buffers (`cl_khr_command_buffer`): one operation each.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::enqueue::{Events, Request, enqueue};
use crate::keys;
use crate::types::*;

type CommandBuffer = Handle;
type Create = unsafe extern "C" fn(cl_uint, *const cl_command_queue, *const c_void, *mut cl_int) -> CommandBuffer;
type Enqueue = unsafe extern "C" fn(
    cl_uint,
    *mut cl_command_queue,
    CommandBuffer,
    cl_uint,
    *const cl_event,
    *mut cl_event,
) -> cl_int;

static CREATE: OnceLock<Create> = OnceLock::new();
static ENQUEUE: OnceLock<Enqueue> = OnceLock::new();
/// The first queue that each buffer was created for. Drivers were seen to misreport it.
static QUEUES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// The layer's function in the place of `found`, which the driver has under `name`.
pub fn instead(name: &str, found: *mut c_void) -> Option<*mut c_void> {
    match name {
        "clCreateCommandBufferKHR" => {
            // SAFETY: the extension gives the name this type.
            CREATE.get_or_init(|| unsafe { std::mem::transmute::<*mut c_void, Create>(found) });
            Some(clCreateCommandBufferKHR as *mut c_void)
        }
        "clEnqueueCommandBufferKHR" => {
            // SAFETY: as above.
            ENQUEUE.get_or_init(|| unsafe { std::mem::transmute::<*mut c_void, Enqueue>(found) });
            Some(clEnqueueCommandBufferKHR as *mut c_void)
        }
        _ => None,
    }
}

unsafe extern "C" fn clCreateCommandBufferKHR(
    count: cl_uint,
    queues: *const cl_command_queue,
    properties: *const c_void,
    status: *mut cl_int,
) -> CommandBuffer {
    let below = CREATE.get().expect("programs get this function after the driver's was kept");
    // SAFETY: the program's call.
    let buffer = unsafe { below(count, queues, properties, status) };
    if !buffer.is_null() && count > 0 && !queues.is_null() {
        // SAFETY: the driver took the list, which has one queue at least.
        let queue = unsafe { *queues };
        QUEUES.lock().unwrap_or_else(PoisonError::into_inner).insert(buffer as usize, queue as usize);
    }
    buffer
}

unsafe extern "C" fn clEnqueueCommandBufferKHR(
    number: cl_uint,
    queues: *mut cl_command_queue,
    buffer: CommandBuffer,
    count: cl_uint,
    list: *const cl_event,
    event: *mut cl_event,
) -> cl_int {
    let below = ENQUEUE.get().expect("programs get this function after the driver's was kept");
    let queue = if number > 0 && !queues.is_null() {
        // SAFETY: the driver reads the list, too.
        unsafe { *queues }
    } else {
        let queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        queues.get(&(buffer as usize)).map_or(std::ptr::null_mut(), |&queue| queue as cl_command_queue)
    };
    let work = keys::within_device(keys::COMMANDS, 1);
    let request = Request { queue, work, blocking: false, events: Events { count, list, event } };
    let call = |_, Events { count, list, event }: Events| {
        // SAFETY: the program's call.
        unsafe { below(number, queues, buffer, count, list, event) }
    };
    // SAFETY: `call` makes the program's call.
    unsafe { enqueue(request, || Some("a command buffer".into()), call) }
}
