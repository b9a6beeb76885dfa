//! When jobs are released and due, and how their threads are scheduled.

use ::laxity_graph::Releasing;
use ::laxity_graph::hooks::{Deadline, Fifo};
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;

use crate::error::{CallError, answer, laxity_result};
use crate::graph::laxity_graph;
use crate::handle::{self, out};
use crate::node::{laxity_job, laxity_node, lock};

/// Whether a job may run before its release.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_releasing {
    /// It may, with the same deadline. The default.
    LAXITY_RELEASING_EARLY = 0,
    /// It may not: a wait ends at the release at the earliest.
    LAXITY_RELEASING_ON_TIME = 1,
}

/// Settles that job 0 of each source arrives at `start_ns` (of CLOCK_MONOTONIC; 0 is now) plus its phase, and job j so
/// many periods later. The first call, of all processes, settles it; `settled_ns`, which may be NULL, is what it
/// settled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_start(
    graph: *const laxity_graph,
    start_ns: u64,
    settled_ns: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let graph = unsafe { handle::get(graph) }?;
        let settled = graph.start(if start_ns == 0 { clock::now() } else { Instant(start_ns) });
        // SAFETY: the caller promises that `settled_ns` can be written unless it is null.
        if let Some(settled_ns) = unsafe { settled_ns.as_mut() } {
            *settled_ns = settled.0;
        }
        Ok(())
    })
}

/// Sets when jobs are released from now on: one of enum laxity_releasing. The first source with
/// LAXITY_RELEASING_ON_TIME starts the graph now, if it has no start yet. LAXITY_ERROR_NO_RECORDER if the graph has no
/// releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_set_releasing(node: *mut laxity_node, releasing: u32) -> laxity_result {
    answer(|| {
        const MODES: [(laxity_releasing, Releasing); 2] = [
            (laxity_releasing::LAXITY_RELEASING_EARLY, Releasing::Early),
            (laxity_releasing::LAXITY_RELEASING_ON_TIME, Releasing::OnTime),
        ];
        let unknown = || CallError::Value { argument: "releasing", value: releasing, of: "enum laxity_releasing" };
        let mode = MODES.iter().find(|(number, _)| *number as u32 == releasing).map(|(_, mode)| *mode);
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = lock(unsafe { handle::get(node.cast_const()) }?.state())?;
        Ok(state.node()?.set_releasing(mode.ok_or_else(unknown)?)?)
    })
}

/// The calling thread runs the node under SCHED_FIFO from now on. A source has the priority `base`; the deeper a node
/// is in the graph, the higher its priority, at most 97. While the node wakes several consumers it has the highest of
/// their priorities. The thread keeps its priority when it releases the node.
///
/// LAXITY_ERROR_SCHEDULE if Linux refuses, and the thread runs as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_schedule_fifo(node: *mut laxity_node, base: u8) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = lock(unsafe { handle::get(node.cast_const()) }?.state())?;
        let graph = state.graph().clone();
        let node = state.node()?;
        let fifo = Fifo::of(graph.spec(), node.position(), base)?;
        Ok(node.schedule_by(fifo)?)
    })
}

/// The calling thread runs the node under SCHED_DEADLINE from now on. Linux gives it `runtime_ns` in each period of the
/// node, within its relative deadline, and more if others leave some of theirs. The thread keeps these parameters when
/// it releases the node.
///
/// LAXITY_ERROR_SCHEDULE if Linux refuses, and the thread runs as before: without CAP_SYS_NICE, with a runtime beyond
/// the deadline, or if the CPUs are promised to others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_node_schedule_deadline(node: *mut laxity_node, runtime_ns: u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let mut state = lock(unsafe { handle::get(node.cast_const()) }?.state())?;
        let graph = state.graph().clone();
        let node = state.node()?;
        let deadline = Deadline::of(graph.spec(), node.position(), Nanos::from_nanos(runtime_ns));
        Ok(node.schedule_by(deadline)?)
    })
}

/// The release and the deadline of a job on CLOCK_MONOTONIC; either pointer may be NULL. LAXITY_ERROR_NO_RECORDER if
/// the graph has no releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_job_times(
    job: *const laxity_job,
    release_ns: *mut u64,
    deadline_ns: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the node is not released meanwhile.
        let mut state = lock(unsafe { handle::get(job) }?)?;
        let job = state.job()?;
        let times = (job.release(), job.deadline());
        let (Some(release), Some(deadline)) = times else { return Err(state.no_recorder()) };
        for (place, time) in [(release_ns, release), (deadline_ns, deadline)] {
            if !place.is_null() {
                // SAFETY: not null, and the caller promises that it can be written.
                *unsafe { out(place, "time") }? = time.0;
            }
        }
        Ok(())
    })
}
