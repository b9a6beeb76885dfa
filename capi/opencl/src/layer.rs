//! What the layer knows in its process: the target, the streams of queues, and the operations of events.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use laxity_interpose::settings::{Settings, Wait};
use laxity_interpose::{InDriver, LiveStream, Process};
use laxity_policy::program::{EngineUse, OperationId, Order, Policy};

use crate::operation::{ClOperation, Place};
use crate::target::Target;
use crate::types::*;

/// The name of the front in reports.
pub const FRONT: &str = "OpenCL";

static TARGET: OnceLock<Target> = OnceLock::new();
static LAYER: OnceLock<Layer> = OnceLock::new();

/// The layer in its process.
pub struct Layer {
    process: Arc<Process>,
    state: AtomicU8,
    queues: RwLock<BTreeMap<usize, Known>>,
    events: Mutex<BTreeMap<usize, Issued>>,
}

/// An operation.
#[derive(Clone)]
pub struct Issued {
    /// Its queue.
    pub queue: Queue,
    /// Its number there.
    pub id: OperationId,
}

const ON: u8 = 1;

/// What is known of a queue's handle.
struct Known {
    /// References of the program, which the driver does not tell: its own commands and events may be counted, too. 0: the
    /// layer did not see the queue made.
    references: u32,
    queue: State,
}

/// Whether a queue is arbitrated.
#[derive(Clone)]
enum State {
    /// Nothing was issued to it.
    Unused,
    /// The device issues to it.
    OnDevice,
    Arbitrated(Queue),
}

/// A queue under arbitration.
#[derive(Clone)]
pub struct Queue {
    /// Its stream.
    pub stream: LiveStream<ClOperation>,
    /// In which order it runs operations.
    pub order: Order,
    /// Its context, for gates.
    pub context: cl_context,
    /// Whether the driver was seen to open gates in its callbacks, and to suspend a thread that waits behind one.
    pub bears_gates: bool,
}

// SAFETY: as `ClOperation`.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Layer {
    /// The entry points below. Those of the first loader, where a process has several.
    pub fn target() -> &'static Target {
        TARGET.get().expect("a loader calls the layer after it initialised it")
    }

    /// Keeps the entry points of the first loader.
    pub fn set_target(target: Target) {
        // A wheel may bring a loader of its own; handles know their driver, whichever loader is asked.
        let _ = TARGET.set(target);
    }

    /// The layer, which begins its work now if it has not.
    pub fn get() -> &'static Layer {
        LAYER.get_or_init(|| {
            let process = Arc::new(Process::start(FRONT));
            if process.is_arbitrating() {
                extern "C" fn leave() {
                    if let Some(layer) = LAYER.get() {
                        layer.process.exit();
                    }
                }
                // SAFETY: `leave` needs nothing that ends before the process.
                unsafe { libc::atexit(leave) };
                Layer::target().keep_loaded();
            }
            let state = AtomicU8::new(if process.is_arbitrating() { ON } else { 0 });
            Layer { process, state, queues: RwLock::default(), events: Mutex::default() }
        })
    }

    /// The layer, if it began its work.
    pub fn started() -> Option<&'static Layer> {
        LAYER.get()
    }

    /// The process.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// Whether there is an arbitration. It costs a load.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ON && self.process.is_arbitrating()
    }

    /// The stream of `queue`, which is made if this is its first operation; `None`: it is not arbitrated.
    pub fn queue(&self, queue: cl_command_queue) -> Option<Queue> {
        if queue.is_null() || !self.is_on() {
            return None;
        }
        if let Some(known) = self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&(queue as usize)) {
            match &known.queue {
                State::Arbitrated(queue) => return Some(queue.clone()),
                State::OnDevice => return None,
                State::Unused => {}
            }
        }
        let described = self.describe(queue)?;
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let known = queues.entry(queue as usize).or_insert(Known { references: 0, queue: State::Unused });
        if matches!(known.queue, State::Unused) {
            known.queue = described.map_or(State::OnDevice, State::Arbitrated);
        }
        match &known.queue {
            State::Arbitrated(queue) => Some(queue.clone()),
            State::OnDevice | State::Unused => None,
        }
    }

    /// The stream of `queue`, if something was issued to it.
    pub fn known_queue(&self, queue: cl_command_queue) -> Option<Queue> {
        match &self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&(queue as usize))?.queue {
            State::Arbitrated(queue) => Some(queue.clone()),
            State::OnDevice | State::Unused => None,
        }
    }

    /// The program made `queue`. A driver may use an address again.
    pub fn add_queue(&self, queue: cl_command_queue) {
        let known = Known { references: 1, queue: State::Unused };
        let before = self.queues.write().unwrap_or_else(PoisonError::into_inner).insert(queue as usize, known);
        if let Some(Known { queue: State::Arbitrated(queue), .. }) = before {
            queue.stream.close();
        }
    }

    /// The program has one reference more.
    pub fn retain_queue(&self, queue: cl_command_queue) {
        if let Some(known) = self.queues.write().unwrap_or_else(PoisonError::into_inner).get_mut(&(queue as usize)) {
            known.references = known.references.saturating_add(u32::from(known.references > 0));
        }
    }

    /// The program is about to give up a reference. If it is the last one, the layer forgets the queue, and answers its
    /// stream if it is arbitrated.
    pub fn release_queue(&self, queue: cl_command_queue) -> Option<Queue> {
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let known = queues.get_mut(&(queue as usize))?;
        known.references = known.references.saturating_sub(1);
        let is_last = known.references == 0;
        if !is_last {
            return None;
        }
        match queues.remove(&(queue as usize))?.queue {
            State::Arbitrated(queue) => Some(queue),
            State::OnDevice | State::Unused => None,
        }
    }

    /// `event` stands for an operation.
    pub fn know(&self, event: cl_event, queue: &Queue, id: OperationId) {
        self.events().insert(event as usize, Issued { queue: queue.clone(), id });
    }

    /// The operation that `event` stands for, unless it is over.
    pub fn operation(&self, event: cl_event) -> Option<Issued> {
        let watched = self.events().get(&(event as usize)).cloned();
        watched.or_else(|| {
            let queue: usize = event_info(event, CL_EVENT_COMMAND_QUEUE)?;
            let queue = self.known_queue(queue as cl_command_queue)?;
            // A driver uses an address again when the operation is complete. This is the last one of its own queue that had it.
            let id = queue.stream.left_as(event as usize)?;
            Some(Issued { queue, id })
        })
    }

    /// The driver may use the address of `event` for another one from now on.
    pub fn forget(&self, event: cl_event) {
        self.events().remove(&(event as usize));
    }

    fn events(&self) -> MutexGuard<'_, BTreeMap<usize, Issued>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of `queue`: `Some(None)`, it is the device's own. `None`: it is no queue.
    fn describe(&self, queue: cl_command_queue) -> Option<Option<Queue>> {
        let properties: cl_bitfield = queue_info(queue, CL_QUEUE_PROPERTIES)?;
        let context: usize = queue_info(queue, CL_QUEUE_CONTEXT)?;
        let device: usize = queue_info(queue, CL_QUEUE_DEVICE)?;
        if properties & CL_QUEUE_ON_DEVICE != 0 {
            return Some(None);
        }
        let is_in_order = properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0;
        let order = if is_in_order { Order::InOrder } else { Order::OutOfOrder };
        let settings = &self.process.settings;
        let copy_engines = self.process.arbitration()?.config().copy_engines;
        let policy = Policy { engines: engines(settings, device as cl_device_id, copy_engines), ..settings.policy };
        let bears_gates = bears_gates(device as cl_device_id);
        let place = Place { queue, opens: bears_gates };
        let stream = LiveStream::new(&self.process, policy, order, settings.gpu, Some(place));
        Some(Some(Queue { stream, order, context: context as cl_context, bears_gates }))
    }
}

impl Issued {
    /// Whether what was issued before it may be complete later.
    pub fn is_alone(&self) -> bool {
        self.queue.order == Order::OutOfOrder
    }
}

impl Queue {
    /// Before a thread of the program waits in the driver for operations up to `until`, or for `only` that one. The
    /// answer is kept until the driver answers.
    pub fn before_wait(&self, until: OperationId, only: bool) -> Option<InDriver<'_, ClOperation>> {
        if self.bears_gates && Layer::get().process.settings.wait == Wait::Driver {
            return Some(self.stream.wait_in_driver());
        }
        self.stream.wait_until_open(until, only);
        None
    }
}

/// Platforms whose drivers have user events set in callbacks, as OpenCL allows it, and were seen to bear it. Nor does a thread
/// that waits in them behind a user event spin, as in others.
const BEAR_GATES: &[&[u8]] = &[b"Portable Computing Language"];

/// Whether the driver of a device is such a one. With others, the stream's own thread opens the gate after a callback, and
/// threads wait in the layer until what they wait for may run.
fn bears_gates(device: cl_device_id) -> bool {
    let platform: Option<usize> = device_info(device, CL_DEVICE_PLATFORM);
    let (Some(platform), Some(get)) = (platform, Layer::target().clGetPlatformInfo) else { return false };
    let (mut name, mut length) = ([0_u8; 64], 0);
    // SAFETY: the size is that of the name; the platform is the device's.
    let status =
        unsafe { get(platform as cl_platform_id, CL_PLATFORM_NAME, name.len(), name.as_mut_ptr().cast(), &mut length) };
    let name = name.get(..length.saturating_sub(1)).filter(|_| status == CL_SUCCESS);
    name.is_some_and(|name| BEAR_GATES.contains(&name))
}

/// What the settings say, or else: one engine where memory is the host's, separate ones elsewhere.
fn engines(settings: &Settings, device: cl_device_id, copy_engines: u8) -> EngineUse {
    match settings.engines {
        Some(EngineUse::Separate { .. }) => EngineUse::Separate { copy_engines },
        Some(EngineUse::One) => EngineUse::One,
        None => {
            let kind: Option<cl_bitfield> = device_info(device, CL_DEVICE_TYPE);
            let unified: Option<cl_bool> = device_info(device, CL_DEVICE_HOST_UNIFIED_MEMORY);
            let shares_memory = unified == Some(CL_TRUE) || kind.is_some_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0);
            if shares_memory { EngineUse::One } else { EngineUse::Separate { copy_engines } }
        }
    }
}

/// A plain value that `get` writes; `None`: it refuses.
fn info<T: Copy + Default>(get: impl FnOnce(usize, *mut c_void) -> cl_int) -> Option<T> {
    let mut value = T::default();
    (get(size_of::<T>(), (&raw mut value).cast()) == CL_SUCCESS).then_some(value)
}

/// What the driver says of a queue.
pub fn queue_info<T: Copy + Default>(queue: cl_command_queue, what: cl_uint) -> Option<T> {
    let get = Layer::target().clGetCommandQueueInfo?;
    // SAFETY: the size is that of the value; an invalid queue is the program's error, as in its own calls.
    info(|size, value| unsafe { get(queue, what, size, value, std::ptr::null_mut()) })
}

/// The bytes of a buffer; `None`: it is none.
pub fn buffer_size(buffer: cl_mem) -> Option<usize> {
    let get = Layer::target().clGetMemObjectInfo?;
    // SAFETY: as above.
    info(|size, value| unsafe { get(buffer, CL_MEM_SIZE, size, value, std::ptr::null_mut()) })
}

fn device_info<T: Copy + Default>(device: cl_device_id, what: cl_uint) -> Option<T> {
    let get = Layer::target().clGetDeviceInfo?;
    // SAFETY: as above.
    info(|size, value| unsafe { get(device, what, size, value, std::ptr::null_mut()) })
}

/// Whether what `event` stands for is complete, or failed. An event that is none counts as complete: the driver judges
/// the call that names it.
pub fn is_over(event: cl_event) -> bool {
    let status: Option<cl_int> = event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS);
    status.is_none_or(|status| status <= CL_COMPLETE)
}

/// What the driver says of an event; `None`: it is none.
fn event_info<T: Copy + Default>(event: cl_event, what: cl_uint) -> Option<T> {
    let get = Layer::target().clGetEventInfo.filter(|_| !event.is_null())?;
    // SAFETY: the size is that of the value; an invalid event is the program's error, as in its own calls.
    info(|size, value| unsafe { get(event, what, size, value, std::ptr::null_mut()) })
}

/// Counts a reference more.
pub fn retain(event: cl_event) {
    if let Some(retain) = Layer::target().clRetainEvent {
        // SAFETY: the caller has a reference.
        unsafe { retain(event) };
    }
}

/// Counts a reference less, which the caller had.
pub fn release(event: cl_event) {
    if let Some(release) = Layer::target().clReleaseEvent {
        // SAFETY: the reference was the caller's.
        unsafe { release(event) };
    }
}
