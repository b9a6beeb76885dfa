//! Vision graphs in OpenVX's terms: describing and verifying them.
//!
//! ```text
//! laxity_vx_graph -- object, array, node, input, output --> _verify --> laxity_vx_verified -- _spawn --> laxity_vx_run
//! ```

use std::ffi::{CString, c_char, c_void};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::laxity_vx::{Action, Context, Delay, Format, Graph, Item, KernelError, Node, Parameter, Status, Verified};
use laxity_model::{Details, ErrorCode, ErrorDetails, Nanos};
use thiserror::Error as DeriveError;

use crate::error::{CallError, Error, answer, c_string, laxity_result};
use crate::handle::{self, Handle, out, text};
use crate::registry::laxity_registry;
use crate::vx_job::{self, laxity_vx_job};

/// The description of a vision graph. Verifying it derives which node waits for which, from their use of objects.
pub struct laxity_vx_graph {
    _opaque: (),
}

/// A vision graph that can be spawned, and again when its run has ended and is released. Threads share it.
pub struct laxity_vx_verified {
    _opaque: (),
}

/// The kernel of a node: a function of this process that runs once a frame on the node's own thread, with the node's
/// `argument` and its job. It returns 0, or a number of its own that says what went wrong: then the graph stops. It
/// must not throw. The input callback may also return LAXITY_VX_END.
pub type laxity_vx_kernel = Option<unsafe extern "C" fn(argument: *mut c_void, job: *mut laxity_vx_job) -> i32>;

/// A parameter of a node: an input reads an object, an output writes all of it, and what does both changes it in place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_vx_parameter {
    /// The object: the number that it was given. Those of other graphs are refused.
    object: u32,
    /// Whether the node reads it.
    reads: bool,
    /// Whether the node writes it.
    writes: bool,
    /// For an input: reads the slot of so many jobs ago.
    ago: u32,
}

impl Handle for laxity_vx_graph {
    type Value = Mutex<Described>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-vxgr");
    const NAME: &'static str = "graph";
    const IS_DESCRIPTION: bool = true;
}

impl Handle for laxity_vx_verified {
    type Value = Checked;
    const TAG: u64 = u64::from_le_bytes(*b"lax-vxve");
    const NAME: &'static str = "verified graph";
    const IS_DESCRIPTION: bool = true;
}

/// The value of a graph's handle.
pub(crate) struct Described {
    graph: Graph,
    /// In the upper bits of the numbers of its objects: so those of other graphs are known.
    number: u32,
    /// By number; an object is a delay of one slot.
    objects: Vec<Delay<Format>>,
}

/// The value of a verified graph's handle.
pub(crate) struct Checked {
    pub verified: Verified,
    dot: CString,
}

/// Bits of an object's number that count the objects of its graph. No graph can have more: see `laxity_graph::COUNT_MAX`.
const OBJECT_BITS: u32 = 16;

/// The input callback returns this after the last frame.
pub const LAXITY_VX_END: i32 = -1;

/// Where the items of an array begin; its first 8 bytes are a `uint64_t` that says how many there are.
pub const LAXITY_VX_ARRAY_ITEMS: usize = 64;

const _: () = assert!(LAXITY_VX_ARRAY_ITEMS == ::laxity_vx::ARRAY_ITEMS, "C and Rust see the same arrays");

/// An error of a vision graph, whose text ends with OpenVX's number.
#[derive(Debug, DeriveError)]
#[error("{error} ({status})")]
pub(crate) struct VisionError<E: ErrorDetails> {
    pub error: E,
    pub status: Status,
}

impl<E: ErrorDetails> ErrorDetails for VisionError<E> {
    fn code(&self) -> ErrorCode {
        self.error.code()
    }

    fn details(&self) -> Details<'_> {
        self.error.details()
    }
}

/// A kernel in C, and its argument.
struct Kernel {
    function: unsafe extern "C" fn(argument: *mut c_void, job: *mut laxity_vx_job) -> i32,
    argument: *mut c_void,
    objects: Vec<(u32, Delay<Format>)>,
}

// SAFETY: the program that adds a kernel promises that it may be called, with its argument, on another thread.
unsafe impl Send for Kernel {}

/// A kernel that did not return 0.
#[derive(Debug, DeriveError)]
#[error("its kernel returned {0}")]
struct Unsuccessful(i32);

impl Kernel {
    fn run(&self, job: &mut ::laxity_vx::Job<'_>) -> Result<Action, KernelError> {
        let (number, text) = vx_job::with(job, &self.objects, |job| {
            // SAFETY: the program that added it promises that it can be called with this argument, and the job is valid
            // until it returns.
            unsafe { (self.function)(self.argument, job) }
        });
        match (number, text) {
            (0, _) => Ok(Action::Continue),
            (_, Some(text)) => Err(text.into()),
            (number, None) => Err(Box::new(Unsuccessful(number))),
        }
    }
}

/// Begins the description of a graph, which is called `name` in `registry` while it runs; in the default registry if
/// that is NULL. While it runs no other graph of this name can run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_new(
    registry: *const laxity_registry,
    name: *const c_char,
    graph: *mut *mut laxity_vx_graph,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `graph` can be written.
        let graph = unsafe { out(graph, "graph") }?;
        *graph = std::ptr::null_mut();
        let context = if registry.is_null() {
            Context::new()
        } else {
            // SAFETY: the caller promises that the handle is not released meanwhile.
            Context::at(unsafe { handle::get(registry) }?.directory())
        };
        // SAFETY: the caller promises that `name` ends with NUL.
        let described = Described::new(context.graph(unsafe { text(name, "name") }?));
        *graph = handle::make(Mutex::new(described));
        Ok(())
    })
}

/// Adds an object of `bytes` bytes, or, if `slots` is not 1, a delay of so many: slot 0 is written in this job, slot k
/// was k jobs ago, up to `slots` - 1. Slots that no job wrote hold `initial`, which is as long, or zeros if it is NULL.
/// `object` is its number, which no object of another graph has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_object(
    graph: *mut laxity_vx_graph,
    name: *const c_char,
    bytes: usize,
    slots: u32,
    initial: *const c_void,
    object: *mut u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that `name` ends with NUL, and that
        // `object` can be written.
        let (graph, name, object) =
            unsafe { (handle::get(graph.cast_const())?, text(name, "name")?, out(object, "object")?) };
        let format = Format::Bytes { size: bytes };
        // SAFETY: the caller promises that `initial` is null, or as long as an object.
        *object = unsafe { lock(graph).add(name, format, slots, initial) };
        Ok(())
    })
}

/// As laxity_vx_graph_object, for an array of up to `capacity` items of `item_bytes` bytes: how many there are is in
/// its first 8 bytes, and the items begin at LAXITY_VX_ARRAY_ITEMS. An array that a node gets to write is empty at
/// first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_array(
    graph: *mut laxity_vx_graph,
    name: *const c_char,
    item_bytes: usize,
    capacity: usize,
    slots: u32,
    initial: *const c_void,
    object: *mut u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that `name` ends with NUL, and that
        // `object` can be written.
        let (graph, name, object) =
            unsafe { (handle::get(graph.cast_const())?, text(name, "name")?, out(object, "object")?) };
        let format = Format::Array { item: Item { name: "item", size: item_bytes }, capacity };
        // SAFETY: the caller promises that `initial` is null, or as long as an object.
        *object = unsafe { lock(graph).add(name, format, slots, initial) };
        Ok(())
    })
}

/// Adds a node with its `count` parameters, which may be NULL if there are none. Nodes that use one object do so in the
/// order in which they are added, the one that writes it first. `budget_ns` is the CPU time that a job needs at most,
/// for LAXITY_VX_DEADLINE; 0 says nothing. `kernel` and `argument` are used until the graph, verified, is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_node(
    graph: *mut laxity_vx_graph,
    name: *const c_char,
    parameters: *const laxity_vx_parameter,
    count: usize,
    kernel: laxity_vx_kernel,
    argument: *mut c_void,
    budget_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (graph, name) = unsafe { (handle::get(graph.cast_const())?, text(name, "name")?) };
        let mut described = lock(graph);
        // SAFETY: the caller promises that `count` parameters can be read.
        let (parameters, kernel) = unsafe { described.bind(name, parameters, count, kernel, argument) }?;
        let node = described.graph.node(name, parameters, move |job| kernel.run(job).map(|_| ()));
        with_budget(node, budget_ns);
        Ok(())
    })
}

/// Sets the input callback, which is called at the release of each frame, before all nodes. It may write the graph's
/// input objects, and returns LAXITY_VX_END after the last frame. Otherwise as laxity_vx_graph_node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_input(
    graph: *mut laxity_vx_graph,
    parameters: *const laxity_vx_parameter,
    count: usize,
    kernel: laxity_vx_kernel,
    argument: *mut c_void,
    budget_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut described = lock(unsafe { handle::get(graph.cast_const()) }?);
        // SAFETY: the caller promises that `count` parameters can be read.
        let (parameters, kernel) =
            unsafe { described.bind(::laxity_vx::INPUT_CALLBACK, parameters, count, kernel, argument) }?;
        let node = described.graph.input(parameters, move |job| match kernel.run(job) {
            Err(error) if is_end(&error) => Ok(Action::End),
            result => result,
        });
        with_budget(node, budget_ns);
        Ok(())
    })
}

/// Sets the output callback, which is called when all nodes have completed a frame. It may read the graph's output
/// objects. Otherwise as laxity_vx_graph_node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_output(
    graph: *mut laxity_vx_graph,
    parameters: *const laxity_vx_parameter,
    count: usize,
    kernel: laxity_vx_kernel,
    argument: *mut c_void,
    budget_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut described = lock(unsafe { handle::get(graph.cast_const()) }?);
        // SAFETY: the caller promises that `count` parameters can be read.
        let (parameters, kernel) =
            unsafe { described.bind(::laxity_vx::OUTPUT_CALLBACK, parameters, count, kernel, argument) }?;
        with_budget(described.graph.output(parameters, move |job| kernel.run(job).map(|_| ())), budget_ns);
        Ok(())
    })
}

/// Derives which node waits for which. Releases the description and sets `*graph` to NULL, also if the graph cannot be
/// executed (LAXITY_ERROR_VERIFY, with the name of OpenVX's status in the message).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_verify(
    graph: *mut *mut laxity_vx_graph,
    verified: *mut *mut laxity_vx_verified,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `verified` can be written.
        let place = unsafe { out(verified, "verified") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not used any more.
        let described = unsafe { handle::take(graph) }?.ok_or(CallError::Null { argument: "graph" })?;
        let described = described.into_inner().unwrap_or_else(PoisonError::into_inner);
        let verified = described.graph.verify().map_err(|error| VisionError { status: error.status(), error })?;
        let dot = c_string(&verified.dot());
        *place = handle::make(Checked { verified, dot });
        Ok(())
    })
}

/// Releases a description. Sets `*graph` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_graph_release(graph: *mut *mut laxity_vx_graph) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(graph) }.map(drop))
}

/// The number of nodes on the longest path: by rule of thumb the number of replicas.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_verified_depth(
    verified: *const laxity_vx_verified,
    depth: *mut u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `depth` can be written.
        let (checked, depth) = unsafe { (handle::get(verified)?, out(depth, "depth")?) };
        *depth = checked.verified.depth();
        Ok(())
    })
}

/// The graph in the language of Graphviz, back-edges dashed; the text is there as long as the verified graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_verified_dot(
    verified: *const laxity_vx_verified,
    dot: *mut *const c_char,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `dot` can be written.
        let (checked, dot) = unsafe { (handle::get(verified)?, out(dot, "dot")?) };
        *dot = checked.dot.as_ptr();
        Ok(())
    })
}

/// Releases a verified graph; runs of it go on, and so the arguments of its kernels are used until these are released,
/// too. Sets `*verified` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_verified_release(verified: *mut *mut laxity_vx_verified) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(verified) }.map(drop))
}

impl Described {
    fn new(graph: Graph) -> Described {
        static GRAPHS: AtomicU32 = AtomicU32::new(0);
        // Never 0, so that variables that were not set name no object. A number comes again after 65535 graphs.
        let number = GRAPHS.fetch_add(1, Ordering::Relaxed) % u32::from(u16::MAX) + 1;
        Described { graph, number, objects: Vec::new() }
    }

    /// Adds an object and answers with its number.
    ///
    /// # Safety
    /// `initial` is null, or as many bytes as an object can be read there and do not change.
    unsafe fn add(&mut self, name: &str, format: Format, slots: u32, initial: *const c_void) -> u32 {
        self.objects.push(if initial.is_null() {
            self.graph.delay(name, format, slots)
        } else {
            self.graph.delay_from(name, format, slots, |place: &mut [u8]| {
                // SAFETY: not null, and otherwise as the caller promises.
                place.copy_from_slice(unsafe { slice::from_raw_parts(initial.cast::<u8>(), place.len()) });
            })
        });
        // A graph with more cannot be verified, whichever number they have.
        let index = (self.objects.len() - 1) as u32 % (1 << OBJECT_BITS);
        self.number << OBJECT_BITS | index
    }

    /// The parameters of the node called `node`, and its kernel, which reaches what they say.
    ///
    /// # Safety
    /// `count` parameters can be read.
    unsafe fn bind(
        &self,
        node: &str,
        parameters: *const laxity_vx_parameter,
        count: usize,
        kernel: laxity_vx_kernel,
        argument: *mut c_void,
    ) -> Result<(Vec<Parameter>, Kernel), Error> {
        let function = kernel.ok_or(CallError::Null { argument: "kernel" })?;
        // SAFETY: as the caller promises.
        let given = unsafe { handle::slice(parameters, count, "parameters") }?;
        let object = |number: u32| -> Result<Delay<Format>, Error> {
            let (graph, index) = (number >> OBJECT_BITS, number % (1 << OBJECT_BITS));
            let node = || node.to_owned();
            if graph != self.number && graph != 0 {
                return Err(CallError::Scope { node: node(), object: number }.into());
            }
            let found = self.objects.get(index as usize).filter(|_| graph != 0);
            found.copied().ok_or_else(|| CallError::NoObject { node: node(), object: number }.into())
        };
        let parameter = |given: &laxity_vx_parameter| {
            let object = object(given.object)?;
            match (given.reads, given.writes, given.ago) {
                (true, false, ago) => Ok(Parameter::input(object.ago(ago))),
                (false, true, 0) => Ok(Parameter::output(object)),
                (true, true, 0) => Ok(Parameter::inout(object)),
                _ => Err(CallError::Parameter { node: node.to_owned(), object: given.object.to_string() }.into()),
            }
        };
        let parameters = given.iter().map(parameter).collect::<Result<Vec<_>, Error>>()?;
        let objects = given.iter().map(|given| Ok((given.object, object(given.object)?)));
        let objects = objects.collect::<Result<Vec<_>, Error>>()?;
        Ok((parameters, Kernel { function, argument, objects }))
    }
}

fn is_end(error: &KernelError) -> bool {
    matches!(error.downcast_ref(), Some(Unsuccessful(LAXITY_VX_END)))
}

fn with_budget(node: Node<'_>, budget_ns: u64) {
    if budget_ns != 0 {
        node.budget(Nanos::from_nanos(budget_ns));
    }
}

fn lock(graph: &Mutex<Described>) -> MutexGuard<'_, Described> {
    // Each change is complete or did not happen.
    graph.lock().unwrap_or_else(PoisonError::into_inner)
}
