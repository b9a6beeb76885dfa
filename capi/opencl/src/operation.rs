//! An operation that the driver has: its event, its gate, and what it waits for.

use std::ffi::c_void;
use std::sync::Arc;

use laxity_interpose::{LiveStream, Operation};
use laxity_policy::program::OperationId;

use crate::enqueue;
use crate::layer::{self, Layer};
use crate::types::*;

/// An operation of a queue.
#[derive(Debug)]
pub struct ClOperation {
    /// Owned.
    event: cl_event,
    /// The program has the event, too: the layer knows it by its address.
    is_known: bool,
    /// A user event that it waits for; null: it has no gate. Owned.
    gate: cl_event,
    /// What else it waits for. Retained.
    dependencies: Vec<cl_event>,
}

// SAFETY: handles of OpenCL may be used by any thread (OpenCL 3.0, appendix A.2: all calls but `clSetKernelArg` are
// thread-safe), and the references that it owns are counted by the driver.
unsafe impl Send for ClOperation {}
// SAFETY: as above.
unsafe impl Sync for ClOperation {}

/// A queue in which markers may be put until its program gives it up.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The queue.
    pub queue: cl_command_queue,
    /// Whether the driver may be called when it calls back.
    pub opens: bool,
}

// SAFETY: as `ClOperation`.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

/// What a callback is about.
struct Subject {
    stream: LiveStream<ClOperation>,
    id: OperationId,
    /// Of a callback of a dependency: how many are left.
    left: Option<Arc<std::sync::atomic::AtomicUsize>>,
    /// The driver may be called back.
    opens: bool,
}

impl ClOperation {
    /// Takes over the references to `event` and `gate`, and retains the others. `is_known`: see [`Layer::know`].
    pub fn new(event: cl_event, is_known: bool, gate: cl_event, dependencies: Vec<cl_event>) -> Self {
        dependencies.iter().for_each(|&event| layer::retain(event));
        ClOperation { event, is_known, gate, dependencies }
    }

    /// Has the driver call back when the operation is complete, and when all that it waits for is. `opens`: whether it may
    /// then be called.
    pub fn watch(&self, stream: &LiveStream<ClOperation>, id: OperationId, opens: bool) {
        watch(self.event, Subject { stream: stream.clone(), id, left: None, opens });
        if !self.dependencies.is_empty() {
            let left = Arc::new(std::sync::atomic::AtomicUsize::new(self.dependencies.len()));
            for &event in &self.dependencies {
                watch(event, Subject { stream: stream.clone(), id, left: Some(left.clone()), opens });
            }
        }
    }
}

fn watch(event: cl_event, subject: Subject) {
    let Some(set) = Layer::target().clSetEventCallback else { return };
    let data = Box::into_raw(Box::new(subject));
    // SAFETY: the event is retained by the operation, and the driver calls once at most with `data`.
    let status = unsafe { set(event, CL_COMPLETE, on_complete, data.cast()) };
    if status != CL_SUCCESS {
        // The home thread of the stream asks for its status now and then.
        // SAFETY: the driver refused, so that it will not call.
        drop(unsafe { Box::from_raw(data) });
    }
}

/// The event of a marker behind all that is in the queue. `None`: the driver refuses.
fn marker(queue: cl_command_queue) -> Option<cl_event> {
    let target = Layer::target();
    let mut event: cl_event = std::ptr::null_mut();
    let status = match (target.clEnqueueMarkerWithWaitList, target.clEnqueueMarker) {
        // SAFETY: the program has not given up the queue, in which it has operations.
        (Some(mark), _) => unsafe { mark(queue, 0, std::ptr::null(), &mut event) },
        // SAFETY: as above. OpenCL before 1.2.
        (None, Some(mark)) => unsafe { mark(queue, &mut event) },
        (None, None) => return None,
    };
    (status == CL_SUCCESS && !event.is_null()).then_some(event)
}

/// Called by the driver, on any thread, perhaps within a call of the program. It calls the driver only to open the next gate,
/// and only one that was seen to allow it; OpenCL does (clSetEventCallback forbids what blocks).
unsafe extern "C" fn on_complete(_event: cl_event, status: cl_int, data: *mut c_void) {
    // SAFETY: `watch` made it, and this is the one call.
    let subject = unsafe { Box::from_raw(data.cast::<Subject>()) };
    match &subject.left {
        // One that failed may be over before those before it.
        None if status == CL_COMPLETE => subject.stream.complete_until(subject.id, subject.opens),
        None if subject.opens => subject.stream.complete_and_go_on(subject.id),
        None => subject.stream.complete(subject.id),
        Some(left) => {
            if left.fetch_sub(1, std::sync::atomic::Ordering::AcqRel) == 1 {
                subject.stream.ready(subject.id);
            }
        }
    }
}

impl Operation for ClOperation {
    type Place = Place;

    fn mark(stream: &LiveStream<ClOperation>, place: Place, until: OperationId) -> Option<Arc<ClOperation>> {
        let event = marker(place.queue)?;
        let operation = Arc::new(ClOperation::new(event, false, std::ptr::null_mut(), Vec::new()));
        enqueue::flush(place.queue);
        operation.watch(stream, until, place.opens);
        Some(operation)
    }

    fn open(&self) {
        if let (Some(set), false) = (Layer::target().clSetUserEventStatus, self.gate.is_null()) {
            // SAFETY: the gate is a user event that only this layer knows, and its status is set once.
            unsafe { set(self.gate, CL_COMPLETE) };
        }
    }

    fn is_complete(&self) -> bool {
        layer::is_over(self.event)
    }

    fn is_ready(&self) -> bool {
        self.dependencies.iter().all(|&event| layer::is_over(event))
    }
}

impl Drop for ClOperation {
    fn drop(&mut self) {
        if self.is_known {
            Layer::get().forget(self.event);
        }
        for &event in self.dependencies.iter().chain([&self.event]) {
            layer::release(event);
        }
        if !self.gate.is_null() {
            layer::release(self.gate);
        }
    }
}
