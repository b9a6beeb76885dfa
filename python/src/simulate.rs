//! `laxity.simulate`: one workload, once.

use laxity_analysis::check::settle;
use laxity_model::{Instant, Nanos, Workload};
use laxity_plan::{Plan, default_duration};
use laxity_sim::{Simulator, pace};
use laxity_trace::metrics::{Metrics, Summary};
use laxity_trace::{Record, TraceHeader};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::completions::Completions;
use crate::errors::{refusal, value_error};
use crate::overheads::Overheads;
use crate::result::SimulationResult;
use crate::study_chunks::StudyStop;
use crate::workload::{PyWorkload, configured, manage};

/// What a simulation yields.
pub struct Outcome {
    pub header: TraceHeader,
    pub summary: Summary,
    /// The records, if they were asked for.
    pub records: Option<Vec<Record>>,
    /// The completions, if they were asked for.
    pub completions: Option<Completions>,
}

/// What to keep of a simulation besides its measurements: nothing.
#[derive(Default)]
pub struct Keep {
    /// Every event.
    pub trace: bool,
    /// Completions of some tasks.
    pub completions: Option<Completions>,
}

/// Simulates up to `end`, unless `look`, called now and then, has an error.
pub fn run<E>(plan: &Plan, end: Instant, keep: Keep, mut look: impl FnMut() -> Result<(), E>) -> Result<Outcome, E> {
    let header = plan.header.clone();
    let kept = (keep.trace.then(Vec::new), keep.completions);
    let mut simulator = Simulator::new(plan, (Metrics::new(&header), kept));
    pace::run(&mut simulator, end, |_| look())?;
    let (metrics, (records, completions)) = simulator.finish();
    Ok(Outcome { summary: metrics.finish(end), header, records, completions })
}

/// The time at which a simulation of `duration` ends; without one, as the command does.
pub fn end_of(duration: Option<&str>, workload: &Workload) -> PyResult<Instant> {
    let duration: Nanos = match duration {
        Some(duration) => duration.parse().map_err(value_error)?,
        None => default_duration(workload),
    };
    Ok(Instant::ZERO.saturating_add(duration))
}

/// Simulates a workload.
///
/// Graphs that leave the number of replicas to the analysis get as many as it takes that no job waits for one, or, where
/// response times have no bound, as many as they are deep.
///
/// Deterministic: the same workload, policy, duration, seed and version yield the same schedule. Other Python threads
/// go on meanwhile, and Ctrl-C raises KeyboardInterrupt.
///
/// Args:
///     workload: what to simulate.
///     policy: "G-EDF", "C-RM", "P-DM", "G-FP", a realization such as "CE1" or "S-CQm", or both as "C-RM/FEm";
///         None: the workload's own.
///     duration: simulated time with its unit, such as "60 s" or "250 ms"; None: ten periods of each task
///         after its phase, at least 1 s.
///     seed: decides random execution times, gaps between arrivals and jitter; 0 to 2**64 - 1.
///     trace: whether to keep every event. Takes about 40 bytes of memory an event, some ten events a job.
///     overheads: a published profile such as "brandenburg2009-worst" (that of the policy) or "none"; the path of a
///         file that `laxity measure` wrote, which as text has a dot or a slash and may end with ":average" instead of
///         the worst case; None: the workload's own.
///     arbitration: how GPUs are shared: "driver", "driver_spinning", "semaphore", "k_fmlp" or "gpusync"; None: the
///         workload's own.
///     handling: where bottom halves of interrupts run: "linux", "preempt_rt_low", "preempt_rt_high", "pai" or
///         "klmirqd"; None: the workload's own.
///     completions: names of the tasks whose completions are kept as `Result.completions`; a node is "GRAPH/NODE".
///     stop: set from another thread, it ends the simulation with KeyboardInterrupt. Python tells only its main thread
///         of Ctrl-C, so that simulations in others need it.
///
/// Raises ValueError for an unknown policy, profile, arbitration, handling or task, OSError and WorkloadError for a
/// profile that cannot be read, SimulationError for what cannot be simulated yet.
#[pyfunction]
#[pyo3(signature = (
    workload, policy=None, *, duration=None, seed=0, trace=false, overheads=None, arbitration=None, handling=None,
    completions=vec![], stop=None
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn simulate(
    py: Python<'_>,
    workload: &PyWorkload,
    policy: Option<&str>,
    duration: Option<&str>,
    seed: u64,
    trace: bool,
    overheads: Option<Overheads>,
    arbitration: Option<&str>,
    handling: Option<&str>,
    completions: Vec<String>,
    stop: Option<Py<StudyStop>>,
) -> PyResult<SimulationResult> {
    let end = end_of(duration, &workload.workload)?;
    let mut workload = configured(py, &workload.workload, policy, overheads.as_ref())?;
    manage(&mut workload, arbitration, handling)?;
    let plan = prepare(py, &mut workload, seed)?;
    let completions = Some(Completions::of(&completions, &plan.header)?);
    // Ctrl-C: the handler that Python runs for it raises KeyboardInterrupt.
    let look = || match &stop {
        Some(stop) if stop.get().is_set() => Err(PyKeyboardInterrupt::new_err("told to stop")),
        _ => Python::attach(|py| py.check_signals()),
    };
    let outcome = py.detach(|| run(&plan, end, Keep { trace, completions }, look))?;
    Ok(SimulationResult::new(outcome, workload.platform.overheads.name))
}

fn prepare(py: Python<'_>, workload: &mut Workload, seed: u64) -> PyResult<Plan> {
    let scheduler = workload.scheduler;
    settle(workload, &scheduler);
    Plan::new(workload, &workload.scheduler, seed).map_err(|error| refusal(py, &error, None))
}
