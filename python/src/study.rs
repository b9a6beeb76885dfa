//! `laxity.simulate_many`: many simulations on all CPUs.

use std::sync::atomic::AtomicBool;

use laxity_analysis::check::settle;
use laxity_model::{Instant, Workload};
use laxity_plan::Plan;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::argument::choice;
use crate::arrow::table;
use crate::errors::{refusal, value_error};
use crate::overheads::Overheads;
use crate::parallel::{self, Stopped};
use crate::simulate::{Keep, end_of, run};
use crate::tables::{self, Run};
use crate::workload::{PyWorkload, configured};

/// One simulation to be done.
struct Job {
    workload: usize,
    overheads: String,
    plan: Plan,
    end: Instant,
}

choice! {
    /// A policy or several; None is the workload's own.
    pub enum Policies: "the name of a policy, or a list of names" {
        One(String),
        Many(Vec<String>),
    }
}

/// Simulates many workloads under one or several policies, on all CPUs at once.
///
/// Each workload is simulated under each policy. The rows, in the order of workloads and then of policies, do not
/// depend on the number of threads. Other Python threads go on meanwhile, and Ctrl-C raises KeyboardInterrupt.
///
/// Args:
///     workloads: what to simulate.
///     policy: one or several, as `laxity.simulate` takes them; None: each workload's own.
///     duration: simulated time of each, with its unit; None: ten periods of each task after its phase, at
///         least 1 s.
///     seed: of every simulation: two policies see the same jobs.
///     overheads: as in `laxity.simulate`.
///     per: "workload" for a row a simulation, "task" for a row a task of each.
///     threads: how many to use; None: one a CPU.
///
/// Returns a `pyarrow.Table`. Columns: workload (uint32, its place among `workloads`), workload_name, scheduler,
/// overheads (string), seed (uint64), duration_ns (int64); task (uint32) and task_name where a row is a task; the
/// columns of `Result.tasks` from released on; and where a row is a simulation those of `Result.cpus`, of all CPUs
/// together.
///
/// Raises what `laxity.simulate` does, before anything is simulated.
#[pyfunction]
#[pyo3(signature = (workloads, policy=None, *, duration=None, seed=0, overheads=None, per="workload", threads=None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn simulate_many<'py>(
    py: Python<'py>,
    workloads: Vec<PyRef<'py, PyWorkload>>,
    policy: Option<Policies>,
    duration: Option<&str>,
    seed: u64,
    overheads: Option<Overheads>,
    per: &str,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows: fn(&[Run]) -> PyResult<_> = match per {
        "workload" => tables::runs,
        "task" => tables::tasks_of_runs,
        _ => return Err(value_error(format!("per=\"{per}\" is unknown; write \"workload\" or \"task\""))),
    };
    let policies: Vec<Option<String>> = match policy {
        None => vec![None],
        Some(Policies::One(name)) => vec![Some(name)],
        Some(Policies::Many(names)) => names.into_iter().map(Some).collect(),
    };
    let mut jobs = Vec::with_capacity(workloads.len() * policies.len());
    for (index, workload) in workloads.iter().enumerate() {
        let end = end_of(duration, &workload.workload)?;
        for policy in &policies {
            let workload = configured(py, &workload.workload, policy.as_deref(), overheads.as_ref())?;
            jobs.push(prepare(py, index, workload, seed, end)?);
        }
    }
    let runs = parallel::interruptible(py, threads, |stop| simulate_all(jobs, stop))?;
    table(py, rows(&runs)?)
}

fn prepare(py: Python<'_>, index: usize, mut workload: Workload, seed: u64, end: Instant) -> PyResult<Job> {
    let scheduler = workload.scheduler;
    settle(&mut workload, &scheduler);
    let plan = Plan::new(&workload, &workload.scheduler, seed)
        .map_err(|error| refusal(py, &error, Some(&format!("{index} \"{}\"", workload.name))))?;
    Ok(Job { workload: index, overheads: workload.platform.overheads.name, plan, end })
}

/// The runs in the order of the jobs.
fn simulate_all(jobs: Vec<Job>, stop: &AtomicBool) -> Result<Vec<Run>, Stopped> {
    jobs.into_par_iter()
        .map(|Job { workload, overheads, plan, end }| {
            let outcome = run(&plan, end, Keep::default(), || Stopped::check(stop))?;
            Ok(Run { workload, overheads, outcome })
        })
        .collect()
}
