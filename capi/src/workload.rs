//! Workload files, run in the program's own process.

use std::ffi::{c_char, c_void};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use laxity_analysis::check::settle;
use laxity_model::{Nanos, Workload};
use laxity_runtime::code::{Function, of_function};
use laxity_runtime::{LinuxScheduler, LivePlan, Next, Options, StartOptions};
use laxity_trace::codec::TraceWriter;
use laxity_trace::metrics::{Metrics, Summary, TaskSummary};

use crate::error::{CallError, Error, answer, c_string, laxity_result};
use crate::handle::{self, Handle, out, text};

/// A workload file. Threads may share it; one at a time runs it.
pub struct laxity_workload {
    _opaque: (),
}

/// What a function of jobs is given: see laxity/code.h.
pub struct laxity_code_call {
    _opaque: (),
}

/// A function that jobs call: see laxity/code.h.
pub type laxity_code_pointer = Option<unsafe extern "C" fn(*mut laxity_code_call) -> i32>;

/// What schedules the threads of a run.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum laxity_live_scheduler {
    /// The strongest that is permitted and does what the file's policy says.
    LAXITY_SCHEDULER_STRONGEST = 0,
    /// Laxity's own scheduler.
    LAXITY_SCHEDULER_LAXITY = 1,
    /// SCHED_FIFO, for fixed priorities.
    LAXITY_SCHEDULER_FIFO = 2,
    /// SCHED_DEADLINE, for global EDF.
    LAXITY_SCHEDULER_DEADLINE = 3,
    /// SCHED_OTHER, without guarantees.
    LAXITY_SCHEDULER_OTHER = 4,
}

/// How to run a workload. All zero but for the duration is good.
#[repr(C)]
pub struct laxity_run_options {
    /// Jobs that are released within it are run.
    duration_ns: u64,
    /// Decides random execution times, gaps and jitter of tasks that run no code.
    seed: u64,
    /// One of laxity_live_scheduler.
    scheduler: u32,
    /// The trace file to write, which is replaced; NULL for none.
    trace: *const c_char,
}

/// What the jobs of one task did in the last run. Times are 0 if no job completed.
#[repr(C)]
pub struct laxity_task_result {
    /// Jobs that were released, that completed, and that missed their deadlines.
    released: u64,
    completed: u64,
    missed: u64,
    /// Completion minus arrival.
    response_mean_ns: u64,
    response_max_ns: u64,
    /// How late the latest job was.
    tardiness_max_ns: u64,
    /// The least time that a job had to spare; negative if one was late.
    laxity_min_ns: i64,
}

impl Handle for laxity_workload {
    type Value = Loaded;
    const TAG: u64 = u64::from_le_bytes(*b"lax-work");
    const NAME: &'static str = "workload";
}

/// The value of a workload's handle.
pub(crate) struct Loaded {
    state: Mutex<State>,
    is_stopped: AtomicBool,
    /// The names of tasks and nodes, for C.
    names: Vec<std::ffi::CString>,
}

struct State {
    workload: Workload,
    folder: PathBuf,
    bound: Vec<(String, Function, bool)>,
    summary: Option<Summary>,
}

impl Loaded {
    fn new(path: &Path) -> Result<Loaded, Error> {
        let unread = |error| CallError::Workload { text: format!("cannot read {}: {error}", path.display()) };
        let text = fs::read_to_string(path).map_err(unread)?;
        let wrong = |error: laxity_model::WorkloadErrors| CallError::Workload { text: error.to_string() };
        let mut workload = Workload::from_text(&text, &path.display().to_string()).map_err(wrong)?;
        let scheduler = workload.scheduler;
        settle(&mut workload, &scheduler);
        let nodes = workload
            .graphs
            .iter()
            .flat_map(|graph| graph.nodes.iter().map(|node| format!("{}/{}", graph.name, node.name)));
        let names = workload.tasks.iter().map(|task| task.name.clone()).chain(nodes).map(|name| c_string(&name));
        let names = names.collect();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let state = State { workload, folder, bound: Vec::new(), summary: None };
        Ok(Loaded { state: Mutex::new(state), is_stopped: AtomicBool::new(false), names })
    }

    fn lock(&self) -> Result<MutexGuard<'_, State>, Error> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(error)) => Ok(error.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let (what, way_out) = ("the workload runs", "wait until its run has ended, or stop it");
                Err(CallError::Busy { what, way_out }.into())
            }
        }
    }
}

impl State {
    /// Runs it to the end of `duration`, or until it is stopped; the summary is there then, also if code failed.
    fn run(&mut self, options: &Options, trace: Option<&Path>, is_stopped: &AtomicBool) -> Result<(), Error> {
        let failed = |text: String| CallError::Workload { text };
        let plan = self.plan(options)?;
        let at = |error| match trace {
            Some(path) => CallError::File { path: path.to_owned(), error },
            None => CallError::Workload { text: error.to_string() },
        };
        let writer = trace.map(|path| File::create(path).and_then(|file| TraceWriter::new(file, plan.header())));
        let mut sink = (Metrics::new(plan.header()), writer.transpose().map_err(at)?);
        let look = |_: &_, _: &mut _, _| Next::stop_if(is_stopped.load(Ordering::Relaxed));
        let ended = plan.carry_out(StartOptions::default(), &mut sink, look).map_err(failed)?;
        let (metrics, writer) = sink;
        self.summary = Some(metrics.finish(ended.outcome.reached));
        writer.map_or(Ok(()), |writer| writer.finish().map(drop)).map_err(at)?;
        Ok(ended.failed.map_err(|text| CallError::Code { text })?)
    }

    fn plan(&self, options: &Options) -> Result<LivePlan, Error> {
        let refused = |text: String| CallError::Workload { text };
        let mut plan = LivePlan::new(&self.workload, options).map_err(|error| refused(error.to_string()))?;
        for (name, function, warm) in &self.bound {
            let bound = plan.bind(name, of_function(function.clone(), name), *warm);
            bound.map_err(|error| CallError::NoTask { text: error.to_string() })?;
        }
        let loaded = plan.load_code(&self.folder);
        loaded.map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            refused(lines.join("\n"))
        })?;
        Ok(plan)
    }
}

/// Reads and validates the workload file `path`, TOML or JSON by its extension. LAXITY_ERROR_WORKLOAD if it is wrong: the
/// message has a line for each mistake.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_load(
    path: *const c_char,
    workload: *mut *mut laxity_workload,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `workload` can be written.
        let workload = unsafe { out(workload, "workload") }?;
        *workload = std::ptr::null_mut();
        // SAFETY: the caller promises that `path` ends with NUL.
        *workload = handle::make(Loaded::new(Path::new(unsafe { text(path, "path") }?))?);
        Ok(())
    })
}

/// Releases a workload. Sets `*workload` to NULL; does nothing if it is NULL already. LAXITY_ERROR_BUSY while it runs, also in its
/// functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_release(workload: *mut *mut laxity_workload) -> laxity_result {
    let is_at_rest = |loaded: &Loaded| loaded.lock().map(drop);
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take_if(workload, is_at_rest) }.map(drop))
}

/// Has the jobs of the task called `name`, or of the node called GRAPH/NODE, call `function` with `user` as state, whatever
/// the file names; if `warm`, once before time 0, too. Tasks that are bound to no function run the code that the file names,
/// or else use up CPU time. LAXITY_ERROR_NO_TASK if there is no such task.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_bind(
    workload: *mut laxity_workload,
    name: *const c_char,
    function: laxity_code_pointer,
    user: *mut c_void,
    warm: bool,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (loaded, name) = unsafe { (handle::get(workload.cast_const())?, text(name, "name")?) };
        let function = function.ok_or(CallError::Null { argument: "function" })?;
        if !loaded.names.iter().any(|known| known.to_bytes() == name.as_bytes()) {
            let known: Vec<_> = loaded.names.iter().map(|name| name.to_string_lossy()).collect();
            let text = format!("there is no task or node \"{name}\"; write one of {}", known.join(", "));
            return Err(CallError::NoTask { text }.into());
        }
        // SAFETY: the caller promises that it is a function of laxity/code.h that threads may call, with `user`.
        let function = unsafe { Function::of_process(function as *const c_void, user) };
        let mut state = loaded.lock()?;
        state.bound.retain(|(known, ..)| known != name);
        state.bound.push((name.to_owned(), function, warm));
        Ok(())
    })
}

/// Runs the workload on threads of this process, and returns when all its jobs are done. The results of its tasks are there
/// then, also if it failed. LAXITY_ERROR_WORKLOAD if it cannot be run here, LAXITY_ERROR_CODE if a function failed or
/// crashed: the message names task and job. After a crash the process should end: the thread stays where it crashed. A function
/// that calls exit ends the run so, and then the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_run(
    workload: *mut laxity_workload,
    options: *const laxity_run_options,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let loaded = unsafe { handle::get(workload.cast_const()) }?;
        // SAFETY: the caller promises that `options` can be read unless it is null.
        let given = unsafe { options.as_ref() }.ok_or(CallError::Null { argument: "options" })?;
        let trace = match given.trace.is_null() {
            true => None,
            // SAFETY: the caller promises that it ends with NUL.
            false => Some(Path::new(unsafe { text(given.trace, "trace") }?)),
        };
        let linux = linux(given.scheduler)?;
        let mut state = loaded.lock()?;
        let duration = Nanos(given.duration_ns);
        let options = Options { scheduler: state.workload.scheduler, linux, seed: given.seed, duration };
        let outcome = state.run(&options, trace, &loaded.is_stopped);
        // The thread that stops the run may come before it, and is heard then, too.
        loaded.is_stopped.store(false, Ordering::Relaxed);
        laxity_sys::crash::let_exit_go_on();
        outcome
    })
}

/// Ends the run of the workload where it is, from another thread. If it does not run, the next run ends as soon as it has
/// begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_stop(workload: *const laxity_workload) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        unsafe { handle::get(workload) }?.is_stopped.store(true, Ordering::Relaxed);
        Ok(())
    })
}

/// The number of tasks and nodes: tasks come first, then the nodes of each graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_tasks(workload: *const laxity_workload, count: *mut u32) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `count` can be written.
        let (loaded, count) = unsafe { (handle::get(workload)?, out(count, "count")?) };
        *count = loaded.names.len() as u32;
        Ok(())
    })
}

/// The name of task `number`, or GRAPH/NODE; it belongs to the workload.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_name(
    workload: *const laxity_workload,
    number: u32,
    name: *mut *const c_char,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` can be written.
        let (loaded, name) = unsafe { (handle::get(workload)?, out(name, "name")?) };
        *name = loaded.names.get(number as usize).ok_or_else(|| no_number(loaded, number))?.as_ptr();
        Ok(())
    })
}

/// What the jobs of task `number` did in the last run; all zero before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_workload_result(
    workload: *const laxity_workload,
    number: u32,
    result: *mut laxity_task_result,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `result` can be written.
        let (loaded, result) = unsafe { (handle::get(workload)?, out(result, "result")?) };
        if number as usize >= loaded.names.len() {
            return Err(no_number(loaded, number).into());
        }
        let state = loaded.lock()?;
        let found = state.summary.as_ref().and_then(|summary| summary.tasks.get(number as usize));
        *result = found.into();
        Ok(())
    })
}

/// What `number` of laxity_live_scheduler stands for; `None` for the strongest.
fn linux(number: u32) -> Result<Option<LinuxScheduler>, CallError> {
    use laxity_live_scheduler::*;
    const KNOWN: [(laxity_live_scheduler, Option<LinuxScheduler>); 5] = [
        (LAXITY_SCHEDULER_STRONGEST, None),
        (LAXITY_SCHEDULER_LAXITY, Some(LinuxScheduler::Laxity)),
        (LAXITY_SCHEDULER_FIFO, Some(LinuxScheduler::Fifo)),
        (LAXITY_SCHEDULER_DEADLINE, Some(LinuxScheduler::Deadline)),
        (LAXITY_SCHEDULER_OTHER, Some(LinuxScheduler::Other)),
    ];
    let found = KNOWN.into_iter().find(|(known, _)| *known as u32 == number).map(|(_, linux)| linux);
    let of = "enum laxity_live_scheduler";
    found.ok_or(CallError::Value { argument: "the scheduler", value: number, of })
}

fn no_number(loaded: &Loaded, number: u32) -> CallError {
    CallError::NoTask { text: format!("there is no task {number}: there are {}, numbered from 0", loaded.names.len()) }
}

impl From<Option<&TaskSummary>> for laxity_task_result {
    fn from(task: Option<&TaskSummary>) -> Self {
        let jobs = task.map(|task| task.jobs.clone()).unwrap_or_default();
        laxity_task_result {
            released: jobs.released,
            completed: jobs.completed,
            missed: jobs.missed,
            response_mean_ns: jobs.response_time.map_or(0, |response| response.mean.0),
            response_max_ns: jobs.response_time.map_or(0, |response| response.max.0),
            tardiness_max_ns: jobs.tardiness.map_or(0, |tardiness| tardiness.max.0),
            laxity_min_ns: jobs.laxity_min.map_or(0, |laxity| laxity.0),
        }
    }
}
