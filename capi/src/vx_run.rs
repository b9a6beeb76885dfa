//! Executing vision graphs.

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::Mutex;

use ::laxity_vx::{Budgets, Policy, Run, RunHandle, SpawnOptions};
use laxity_model::{Instant, Nanos};

use crate::device::laxity_device;
use crate::error::{CallError, Error, answer, laxity_result};
use crate::graph::laxity_graph;
use crate::handle::{self, Handle, out, text};
use crate::system::laxity_system;
use crate::vx::{VisionError, laxity_vx_verified};

/// A vision graph that is executed. Threads share it.
pub struct laxity_vx_run {
    _opaque: (),
}

/// How the threads of nodes are scheduled.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_vx_policy {
    /// SCHED_OTHER: as other programs.
    LAXITY_VX_OTHER = 0,
    /// SCHED_FIFO: `base_priority`, and the length of the longest path to the node.
    LAXITY_VX_FIFO = 1,
    /// SCHED_DEADLINE: the node's budget in each period.
    LAXITY_VX_DEADLINE = 2,
    /// SCHED_DEADLINE with budgets that are measured: after `measured_frames` frames under SCHED_OTHER, for nodes that
    /// do not say theirs.
    LAXITY_VX_DEADLINE_MEASURED = 3,
    /// Laxity's own scheduler: each node is a task of `system`, in its cluster `cluster`. Jobs have the deadlines that follow
    /// from the graph. With a GPU, the device is one of the same system.
    LAXITY_VX_LAXITY = 4,
}

/// How a graph is executed. All zeros but for `period_ns`: for ever, under SCHED_OTHER.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_vx_options {
    /// The time between releases of frames.
    period_ns: u64,
    /// One of enum laxity_vx_policy.
    policy: u32,
    /// For LAXITY_VX_FIFO: the priority of the input callback, 1 to 97.
    base_priority: u8,
    /// For LAXITY_VX_DEADLINE: the budget of nodes that state none; 0: they are refused.
    default_budget_ns: u64,
    /// For LAXITY_VX_DEADLINE_MEASURED: how many frames, at least 1, and how much is added, in hundredths.
    measured_frames: u32,
    margin_percent: u32,
    /// Replicas of each object: how many frames can be worked on at the same time; 0: the graph's depth.
    replicas: u32,
    /// When time 0 is, on CLOCK_MONOTONIC; 0: when all threads are ready.
    start_ns: u64,
    /// The first frame is released so long after time 0.
    phase_ns: u64,
    /// The graph ends after so many frames; 0: it does not.
    frames: u64,
    /// No frame is released so long after the first, or later; 0: they are.
    duration_ns: u64,
    /// The CPUs that threads keep to; NULL: all.
    cpus: *const u32,
    cpus_count: usize,
    /// The device that kernels use through laxity_vx_job_gpu, or NULL; the run keeps it.
    gpu: *const laxity_device,
    /// Whether all memory of the process is kept in RAM.
    lock_memory: bool,
    /// How many of its last jobs each node remembers, for traces; 0: 256.
    recorder: u32,
    /// For LAXITY_VX_LAXITY: which of the system's clusters the nodes are in, numbered from 0.
    cluster: u32,
    /// For LAXITY_VX_LAXITY: the system whose tasks the nodes are, which the run keeps. NULL otherwise.
    system: *const laxity_system,
    /// For LAXITY_VX_LAXITY, of a graph that has a system of one cluster to itself, with the locks of its GPUs: where its trace is written,
    /// with the links of the policy. It is there when the run is released. NULL: nowhere.
    trace: *const c_char,
}

/// One frame, in ns of CLOCK_MONOTONIC.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_vx_frame {
    /// Its number, from 0.
    index: u64,
    /// When it was due: by the timer, not when a thread came to it.
    release_ns: u64,
    /// When the output callback had completed it.
    completion_ns: u64,
}

/// The value of a run's handle.
pub(crate) struct Spawned {
    /// For other threads while one waits.
    handle: RunHandle,
    _run: Mutex<Run>,
}

impl Handle for laxity_vx_run {
    type Value = Spawned;
    const TAG: u64 = u64::from_le_bytes(*b"lax-vxru");
    const NAME: &'static str = "run";
}

impl laxity_vx_options {
    /// # Safety
    /// `cpus_count` CPUs can be read, the device and the system are not released meanwhile, and `trace` is null or ends with
    /// NUL.
    unsafe fn options(&self) -> Result<SpawnOptions, Error> {
        let or = |number: u64| (number != 0).then_some(number);
        let mut options = SpawnOptions::every(Nanos(self.period_ns));
        options.policy = self.policy()?;
        options.replicas = or(self.replicas.into()).map(|_| self.replicas);
        options.start = or(self.start_ns).map(Instant);
        options.phase = Nanos(self.phase_ns);
        options.frames = or(self.frames);
        options.duration = or(self.duration_ns).map(Nanos);
        if !self.cpus.is_null() && self.cpus_count > 0 {
            // SAFETY: as the caller promises.
            let cpus = unsafe { handle::slice(self.cpus, self.cpus_count, "options->cpus") }?;
            options.cpus = cpus.iter().map(|&cpu| cpu as usize).collect();
        }
        if !self.gpu.is_null() {
            // SAFETY: as the caller promises.
            options.gpu = Some(unsafe { handle::get(self.gpu) }?.clone());
        }
        if !self.system.is_null() {
            // SAFETY: as the caller promises.
            options.system = Some(unsafe { handle::get(self.system) }?.clone());
        }
        if !self.trace.is_null() {
            // SAFETY: not null, and otherwise as the caller promises.
            options.trace = Some(PathBuf::from(unsafe { text(self.trace, "options->trace") }?));
        }
        options.lock_memory = self.lock_memory;
        if self.recorder != 0 {
            options.recorder = self.recorder;
        }
        Ok(options)
    }

    fn policy(&self) -> Result<Policy, Error> {
        const POLICIES: [laxity_vx_policy; 5] = [
            laxity_vx_policy::LAXITY_VX_OTHER,
            laxity_vx_policy::LAXITY_VX_FIFO,
            laxity_vx_policy::LAXITY_VX_DEADLINE,
            laxity_vx_policy::LAXITY_VX_DEADLINE_MEASURED,
            laxity_vx_policy::LAXITY_VX_LAXITY,
        ];
        let unknown = || CallError::Value { argument: "policy", value: self.policy, of: "enum laxity_vx_policy" };
        let found = POLICIES.into_iter().find(|policy| *policy as u32 == self.policy).ok_or_else(unknown)?;
        let default = (self.default_budget_ns != 0).then_some(Nanos(self.default_budget_ns));
        Ok(match found {
            laxity_vx_policy::LAXITY_VX_OTHER => Policy::Other,
            laxity_vx_policy::LAXITY_VX_FIFO => Policy::Fifo { base: self.base_priority },
            laxity_vx_policy::LAXITY_VX_DEADLINE => Policy::Deadline { budgets: Budgets::Given { default } },
            laxity_vx_policy::LAXITY_VX_DEADLINE_MEASURED => Policy::Deadline {
                budgets: Budgets::Measured { frames: self.measured_frames, margin_percent: self.margin_percent },
            },
            laxity_vx_policy::LAXITY_VX_LAXITY => Policy::Laxity { cluster: self.cluster as usize },
        })
    }
}

/// Executes the graph periodically: a thread a node, consecutive frames at the same time. Returns when all threads are
/// ready and the first release is settled. If it fails no thread is left, and it can be tried again with other options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_spawn(
    verified: *const laxity_vx_verified,
    options: *const laxity_vx_options,
    run: *mut *mut laxity_vx_run,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `run` can be written.
        let place = unsafe { out(run, "run") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that `options` can be read unless it is null.
        let options = unsafe { options.as_ref() }.ok_or(CallError::Null { argument: "options" })?;
        // SAFETY: the caller promises that CPUs can be read, that handles are not released meanwhile, and that texts end with
        // NUL.
        let (options, checked) = unsafe { (options.options()?, handle::get(verified)?) };
        let run = checked.verified.spawn(&options).map_err(|error| VisionError { status: error.status(), error })?;
        *place = handle::make(Spawned { handle: run.handle(), _run: Mutex::new(run) });
        Ok(())
    })
}

/// Releases no more frames. Those that were begun are completed; before the first release the graph just ends. Does not wait
/// for that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_stop(run: *mut laxity_vx_run) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        unsafe { handle::get(run.cast_const()) }?.handle.stop();
        Ok(())
    })
}

/// Ends the graph as soon as its kernels return. Frames that were begun are dropped. Does not wait for that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_terminate(run: *mut laxity_vx_run) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        unsafe { handle::get(run.cast_const()) }?.handle.terminate();
        Ok(())
    })
}

/// Waits until the graph has ended, `timeout_ns` at most (LAXITY_TIMED_OUT), or for ever with LAXITY_FOREVER.
/// LAXITY_ERROR_FAILED says which node has failed, and how, if one did; LAXITY_ERROR_INSIDE that a kernel of the run waits,
/// with a time-out that is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_wait(run: *const laxity_vx_run, timeout_ns: u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let run = &unsafe { handle::get(run) }?.handle;
        run_waits(run, timeout_ns)?;
        run.wait_for_frames(u64::MAX, until(timeout_ns));
        match run.failure() {
            _ if !run.has_ended() => Err(CallError::NotEnded.into()),
            Some(failure) => Err(VisionError { status: failure.status(), error: failure }.into()),
            None => Ok(()),
        }
    })
}

/// Waits until `frames` frames are completed, or the graph has ended, `timeout_ns` at most, or for ever with
/// LAXITY_FOREVER. `completed` is how many are, whatever came first. LAXITY_ERROR_INSIDE as for laxity_vx_run_wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_wait_for_frames(
    run: *const laxity_vx_run,
    frames: u64,
    timeout_ns: u64,
    completed: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `completed` can be written.
        let (run, completed) = unsafe { (handle::get(run)?, out(completed, "completed")?) };
        run_waits(&run.handle, timeout_ns)?;
        *completed = run.handle.wait_for_frames(frames, until(timeout_ns));
        Ok(())
    })
}

/// How many frames were begun, and how many are completed; either may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_counts(
    run: *const laxity_vx_run,
    begun: *mut u64,
    completed: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let counts = unsafe { handle::get(run) }?.handle.counts();
        for (place, count) in [(begun, counts.0), (completed, counts.1)] {
            // SAFETY: the caller promises that it can be written unless it is null.
            if let Some(place) = unsafe { place.as_mut() } {
                *place = count;
            }
        }
        Ok(())
    })
}

/// Writes the last completed frames to `frames`, the oldest first, as many as there are or, if that is less,
/// `capacity`; `count` is how many. The graph remembers 2^20, or as many as it was to execute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_frames(
    run: *const laxity_vx_run,
    frames: *mut laxity_vx_frame,
    capacity: usize,
    count: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `count` can be written.
        let (run, count) = unsafe { (handle::get(run)?, out(count, "count")?) };
        *count = 0;
        if frames.is_null() && capacity > 0 {
            return Err(CallError::Null { argument: "frames" }.into());
        }
        let times = run.handle.times();
        let last = &times.frames[times.frames.len().saturating_sub(capacity)..];
        for (position, frame) in last.iter().enumerate() {
            let (index, release_ns, completion_ns) = (frame.index, frame.release.0, frame.completion.0);
            // SAFETY: not null (checked above), and the caller promises that `capacity` frames can be written there.
            unsafe { frames.add(position).write(laxity_vx_frame { index, release_ns, completion_ns }) };
        }
        *count = last.len();
        Ok(())
    })
}

/// The graph as other processes see it, to record it or to read the state of nodes. It keeps the graph's memory and
/// name until it is released with laxity_graph_release.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_graph(
    run: *const laxity_vx_run,
    graph: *mut *mut laxity_graph,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `graph` can be written.
        let place = unsafe { out(graph, "graph") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile.
        *place = handle::make(unsafe { handle::get(run) }?.handle.graph().clone());
        Ok(())
    })
}

/// Terminates a run that has not ended, and releases it: its threads have ended then. `*run` is NULL then; if it is
/// already, nothing happens. LAXITY_ERROR_INSIDE in a kernel of the run, which goes on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_run_release(run: *mut *mut laxity_vx_run) -> laxity_result {
    let may = |run: &Spawned| match run.handle.is_of_this_thread() {
        true => Err(CallError::Inside { verb: "release it" }.into()),
        false => Ok(()),
    };
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take_if(run, may) }.map(drop))
}

/// Refuses a wait of the run's own kernels, unless it is a look.
fn run_waits(run: &RunHandle, timeout_ns: u64) -> Result<(), Error> {
    match run.is_of_this_thread() && timeout_ns > 0 {
        true => Err(CallError::Inside { verb: "wait for it" }.into()),
        false => Ok(()),
    }
}

/// The end of a wait of `timeout_ns`.
fn until(timeout_ns: u64) -> Instant {
    match timeout_ns {
        u64::MAX => Instant::NEVER,
        _ => laxity_sys::clock::now().saturating_add(Nanos(timeout_ns)),
    }
}
