//! Describing a graph by what its nodes do with data objects.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::laxity_graph::{Parameter, Pipeline};
use laxity_analysis::pgm;
use laxity_model::Nanos;

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};
use crate::spec::{self, laxity_edge, laxity_spec};

/// A graph described by what its nodes do with data objects: memory that nodes share, of which consecutive runs of the
/// graph have replicas. Edges follow: the graph computes what a loop computes that calls one node after the other. An
/// object is written by one node, which goes first; those that read or change it follow in the order in which they are
/// added.
pub struct laxity_pipeline {
    _opaque: (),
}

impl Handle for laxity_pipeline {
    type Value = Mutex<Pipeline>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-pipe");
    const NAME: &'static str = "pipeline";
    const IS_DESCRIPTION: bool = true;
}

/// A node's use of an object: an input reads it, an output writes all of it, and an input that is also an output
/// changes it in place.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_parameter {
    /// The name of the object.
    object: *const c_char,
    /// Whether the node reads it.
    reads: bool,
    /// Whether the node writes it.
    writes: bool,
    /// For an input: reads the value of so many jobs ago, up to the depth of the delay.
    ago: u32,
}

/// Begins the description of a graph called `name` that runs once in `period_ns`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_new(
    name: *const c_char,
    period_ns: u64,
    pipeline: *mut *mut laxity_pipeline,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `pipeline` can be written.
        let pipeline = unsafe { out(pipeline, "pipeline") }?;
        *pipeline = std::ptr::null_mut();
        // SAFETY: the caller promises that `name` ends with NUL.
        let name = unsafe { text(name, "name") }?;
        *pipeline = handle::make(Mutex::new(Pipeline::new(name, Nanos::from_nanos(period_ns))));
        Ok(())
    })
}

/// Adds an object of `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_object(
    pipeline: *mut laxity_pipeline,
    name: *const c_char,
    bytes: usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (pipeline, name) = unsafe { (handle::get(pipeline)?, text(name, "name")?) };
        add(pipeline, |pipeline| pipeline.object(name, bytes));
        Ok(())
    })
}

/// Adds a delay: an object of `bytes` bytes of which the values of the last `depth` jobs can be read, too. Those of
/// jobs before the first are `initial`, which is as long as one value, or zeros if it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_delay(
    pipeline: *mut laxity_pipeline,
    name: *const c_char,
    bytes: usize,
    depth: u32,
    initial: *const c_void,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (pipeline, name) = unsafe { (handle::get(pipeline)?, text(name, "name")?) };
        if initial.is_null() {
            add(pipeline, |pipeline| pipeline.delay(name, bytes, depth));
        } else {
            // SAFETY: the caller promises that `bytes` bytes can be read there and do not change.
            let initial = unsafe { handle::slice(initial.cast::<u8>(), bytes, "initial") }?;
            add(pipeline, |pipeline| pipeline.delay_from(name, depth, initial));
        }
        Ok(())
    })
}

/// Adds a node with its `count` parameters, which may be NULL if there are none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_node(
    pipeline: *mut laxity_pipeline,
    name: *const c_char,
    parameters: *const laxity_parameter,
    count: usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (pipeline, name) = unsafe { (handle::get(pipeline)?, text(name, "name")?) };
        // SAFETY: the caller promises that `count` parameters can be read there.
        let given = unsafe { handle::slice(parameters, count, "parameters") }?;
        // SAFETY: the caller promises that the names of objects end with NUL.
        let parameters = given.iter().map(|given| unsafe { parameter(name, given) });
        let parameters = parameters.collect::<Result<Vec<_>, _>>()?;
        add(pipeline, |pipeline| pipeline.node(name, parameters));
        Ok(())
    })
}

/// # Safety
/// The object's name is null, or ends with NUL.
unsafe fn parameter(node: &str, given: &laxity_parameter) -> Result<Parameter, Error> {
    // SAFETY: as the caller promises.
    let object = unsafe { text(given.object, "object") }?;
    match (given.reads, given.writes, given.ago) {
        (true, false, ago) => Ok(Parameter::past(object, ago)),
        (false, true, 0) => Ok(Parameter::output(object)),
        (true, true, 0) => Ok(Parameter::inout(object)),
        _ => Err(CallError::Parameter { node: node.to_owned(), object: object.to_owned() }.into()),
    }
}

/// Adds an edge beyond those that follow from objects: job j of the node `to` waits for job j of the node `from`, and
/// gets a message if `edge` says so, of whose fields those about messages count; all others are 0. `edge` may be NULL,
/// which is as if all of it were zero. These are the first edges of the graph, in this order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_edge(
    pipeline: *mut laxity_pipeline,
    from: *const c_char,
    to: *const c_char,
    edge: *const laxity_edge,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that the names end with NUL, and that
        // `edge` can be read unless it is null.
        let (pipeline, from, to, edge) = unsafe {
            (handle::get(pipeline)?, text(from, "from")?, text(to, "to")?, edge.as_ref().copied().unwrap_or_default())
        };
        if !edge.is_plain() {
            return Err(CallError::Tokens { from: from.to_owned(), to: to.to_owned() }.into());
        }
        // SAFETY: the caller promises that the address is NULL or ends with NUL.
        let channel = unsafe { spec::channel(&edge) }?;
        add(pipeline, |pipeline| pipeline.edge(from, to, channel));
        Ok(())
    })
}

/// The number of nodes on the longest path: a rule of thumb for the number of replicas.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_depth(pipeline: *const laxity_pipeline, depth: *mut u32) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `depth` can be written.
        let (pipeline, depth) = unsafe { (handle::get(pipeline)?, out(depth, "depth")?) };
        *depth = lock(pipeline).depth()?;
        Ok(())
    })
}

/// The least number of replicas with which no job waits for one. `response_times_ns` has for each of the `count` nodes,
/// in the order in which they were added, a bound on its response time, from its release on.
///
/// LAXITY_ERROR_VALUE if there are more or fewer nodes; LAXITY_ERROR_SPEC says why there is no graph, or no such
/// number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_replicas_needed(
    pipeline: *const laxity_pipeline,
    response_times_ns: *const u64,
    count: usize,
    replicas: *mut u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `replicas` can be written.
        let (pipeline, replicas) = unsafe { (handle::get(pipeline)?, out(replicas, "replicas")?) };
        if response_times_ns.is_null() {
            return Err(CallError::Null { argument: "response_times_ns" }.into());
        }
        // SAFETY: the caller promises that `count` numbers can be read there.
        let given = unsafe { handle::slice(response_times_ns, count, "response_times_ns") }?;
        let graph = lock(pipeline).graph()?;
        let bounds: Vec<Nanos> = given.iter().copied().map(Nanos::from_nanos).collect();
        *replicas = pgm::replicas_needed(&graph, &bounds)?;
        Ok(())
    })
}

/// Derives the graph with `replicas` of every object, at least 1, and writes its description to `spec`, to which no
/// node or edge can be added. Any number of replicas computes the same; more let more runs of the graph overlap.
/// LAXITY_ERROR_SPEC says why it cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_build(
    pipeline: *const laxity_pipeline,
    replicas: u32,
    spec: *mut *mut laxity_spec,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `spec` can be written.
        let spec = unsafe { out(spec, "spec") }?;
        *spec = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let pipeline = unsafe { handle::get(pipeline) }?;
        *spec = spec::derived(lock(pipeline).build(replicas)?);
        Ok(())
    })
}

/// Releases a pipeline; descriptions and graphs that were made of it stay. `*pipeline` is NULL then; if it is already,
/// nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_pipeline_release(pipeline: *mut *mut laxity_pipeline) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(pipeline) }.map(drop))
}

fn add(pipeline: &Mutex<Pipeline>, change: impl FnOnce(Pipeline) -> Pipeline) {
    let mut pipeline = lock(pipeline);
    *pipeline = change(pipeline.clone());
}

fn lock(pipeline: &Mutex<Pipeline>) -> MutexGuard<'_, Pipeline> {
    // It is replaced as a whole, so that a panic leaves nothing half-added.
    pipeline.lock().unwrap_or_else(PoisonError::into_inner)
}
