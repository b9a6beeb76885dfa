//! `laxity.run`: a workload live, on threads of this process.

use std::path::PathBuf;

use laxity_analysis::check::settle;
use laxity_model::{Nanos, Workload};
use laxity_plan::default_duration;
use laxity_runtime::code::of_python;
use laxity_runtime::{LinuxScheduler, LivePlan, Next, Options, StartOptions};
use laxity_trace::Record;
use laxity_trace::metrics::Metrics;
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
fn carry_out(plan: &LivePlan, trace: bool) -> Result<(Outcome, Option<PyErr>, Option<String>), String> {
    let header = plan.header().clone();
    let mut sink = (Metrics::new(&header), trace.then(Vec::<Record>::new));
    let mut interrupted = None;
    let ended = plan.carry_out(StartOptions::default(), &mut sink, |_, _, _| {
        if interrupted.is_none() {
            interrupted = Python::attach(|py| py.check_signals()).err();
        }
        Next::stop_if(interrupted.is_some())
    })?;
    let (metrics, records) = sink;
    let summary = metrics.finish(ended.outcome.reached);
    Ok((Outcome { header, summary, records, completions: None }, interrupted, ended.failed.err()))
}
