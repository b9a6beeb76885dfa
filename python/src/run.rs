//! `laxity.run`: a workload live, on threads of this process.

use std::ffi::CString;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::abort;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use laxity_analysis::check::settle;
use laxity_model::{Nanos, Workload};
use laxity_plan::default_duration;
use laxity_runtime::code::of_python;
use laxity_runtime::{Ended, LinuxScheduler, LivePlan, Next, Options, Run, StartOptions};
use laxity_trace::Record;
use laxity_trace::metrics::Metrics;
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

use crate::errors::{run_error, value_error};
use crate::overheads::Overheads;
use crate::result::SimulationResult;
use crate::simulate::Outcome;
use crate::workload::{PyWorkload, configured, manage};

/// A task or node, the function that its jobs call as `module:function`, and whether to call it before time 0, too.
type Body = (String, String, bool);

/// Runs a workload, as `laxity._run` describes.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn _run(
    py: Python<'_>,
    workload: &PyWorkload,
    bodies: Vec<Body>,
    folder: Option<PathBuf>,
    policy: Option<&str>,
    scheduler: Option<&str>,
    duration: Option<&str>,
    seed: u64,
    trace: bool,
    arbitration: Option<&str>,
) -> PyResult<SimulationResult> {
    let linux = scheduler.map(|name| name.parse::<LinuxScheduler>()).transpose();
    let linux = linux.map_err(|text| value_error(format!("scheduler={text}")))?;
    let mut workload = configured(py, &workload.workload, policy, None::<&Overheads>)?;
    manage(&mut workload, arbitration, None)?;
    let own = workload.scheduler;
    settle(&mut workload, &own);
    let duration = match duration {
        Some(text) => text.parse::<Nanos>().map_err(value_error)?,
        None => default_duration(&workload),
    };
    let options = Options { scheduler: own, linux, seed, duration };
    // Without the interpreter's lock: the threads of the run take it.
    let planned = py.detach(|| plan(&workload, &options, bodies, folder));
    let plan = planned.map_err(|text| run_error(py, &text, None))?;
    if let Some(note) = plan.replaced() {
        let text = CString::new(note).expect("names of schedulers have no NUL");
        // `laxity.run`, and the line that calls it.
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 2)?;
    }
    let (outcome, interrupted, failed) =
        py.detach(|| carry_out(&plan, trace)).map_err(|text| run_error(py, &text, None))?;
    laxity_sys::crash::let_exit_go_on();
    let result = SimulationResult::new(outcome, "none".to_owned());
    match (interrupted, failed) {
        (Some(error), _) => Err(error),
        (None, Some(text)) => Err(run_error(py, &text, Some(result))),
        (None, None) => Ok(result),
    }
}

fn plan(
    workload: &Workload,
    options: &Options,
    bodies: Vec<Body>,
    folder: Option<PathBuf>,
) -> Result<LivePlan, String> {
    let mut plan = LivePlan::new(workload, options).map_err(|refusal| refusal.to_string())?;
    for (name, function, warm) in bodies {
        let code = of_python(&function).map_err(|text| format!("task \"{name}\": {text}"))?;
        plan.bind(&name, code, warm).map_err(|error| error.to_string())?;
    }
    let loaded = folder.map_or(Ok(()), |folder| plan.load_code(&folder));
    let lines = |errors: Vec<_>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    loaded.map_err(|errors: Vec<laxity_runtime::code::CodeError>| lines(errors))?;
    Ok(plan)
}

/// What was measured, what a signal handler raised meanwhile, and why the run could not go on, if so.
///
/// ```text
///   this thread      waits, and runs handlers of signals, which takes the interpreter's lock
///   another          conducts the run, which takes none; if this one never gets it again, ends the process
/// ```
fn carry_out(plan: &LivePlan, trace: bool) -> Result<(Outcome, Option<PyErr>, Option<String>), String> {
    let header = plan.header().clone();
    let mut sink = (Metrics::new(&header), trace.then(Vec::<Record>::new));
    let (is_interrupted, mut interrupted) = (AtomicBool::new(false), None);
    let (over, is_over) = channel();
    let (goes_on, may_end) = channel::<()>();
    let ended = thread::scope(|scope| {
        let (sink, is_interrupted) = (&mut sink, &is_interrupted);
        let conductor = scope.spawn(move || {
            let look = |_: &Run, _: &mut _, _: Vec<String>| Next::stop_if(is_interrupted.load(Ordering::Relaxed));
            let ended = plan.carry_out(StartOptions::default(), sink, look);
            // The other thread receives it, sooner or later.
            let _ = over.send(());
            if let Ok(Ended { has_crashed: true, failed: Err(text), .. }) = &ended
                && may_end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout)
            {
                end_process(text);
            }
            ended
        });
        while is_over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
            if interrupted.is_none() {
                interrupted = Python::attach(|py| py.check_signals()).err();
                is_interrupted.store(interrupted.is_some(), Ordering::Relaxed);
            }
        }
        Python::attach(|_| ());
        drop(goes_on);
        conductor.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    let (metrics, records) = sink;
    let summary = metrics.finish(ended.outcome.reached);
    Ok((Outcome { header, summary, records, completions: None }, interrupted, ended.failed.err()))
}

/// How often handlers of signals are run.
const LOOK: Duration = Duration::from_millis(20);
/// How long a program may take to go on after a crash: other threads may have the interpreter's lock.
const PATIENCE: Duration = Duration::from_secs(2);

/// Ends the process, as a thread that crashed has the interpreter's lock for good: nothing of Python can go on. The shared memory
/// of the run has lost its names by then.
fn end_process(text: &str) -> ! {
    eprintln!(
        "laxity.run: {text}\nIt crashed with the interpreter's lock (GIL), without which this program cannot go on: it ends here. \
         `python -X faulthandler` shows where the code was."
    );
    abort()
}
