//! `laxity.Result`.

use std::sync::Arc;

use laxity_trace::metrics::{Report, Summary};
use laxity_trace::{Origin, Record, TraceHeader};
use pyo3::prelude::*;

use crate::arrow::table;
use crate::completions::Completions;
use crate::errors::no_trace;
use crate::json;
use crate::simulate::Outcome;
use crate::tables;
use crate::trace::PyTrace;

/// What a simulation or a live run yields: measurements, and the trace if it was kept.
#[pyclass(frozen, module = "laxity", name = "Result")]
pub struct SimulationResult {
    header: Arc<TraceHeader>,
    overheads: String,
    summary: Summary,
    records: Option<Arc<Vec<Record>>>,
    completions: Option<Completions>,
}

impl SimulationResult {
    pub fn new(outcome: Outcome, overheads: String) -> Self {
        SimulationResult {
            header: Arc::new(outcome.header),
            overheads,
            summary: outcome.summary,
            records: outcome.records.map(Arc::new),
            completions: outcome.completions,
        }
    }

    /// The profile that a simulation charged; a live run pays what the machine asks.
    fn charged(&self) -> Option<&str> {
        (self.header.origin != Origin::Live).then_some(self.overheads.as_str())
    }
}

#[pymethods]
impl SimulationResult {
    /// The workload's name.
    #[getter]
    fn workload(&self) -> &str {
        &self.header.workload
    }

    /// The scheduler, as ALGORITHM/REALIZATION: "G-EDF/CEm".
    #[getter]
    fn scheduler(&self) -> String {
        self.header.scheduler.to_string()
    }

    /// The name of the overhead profile in force; "none" for a live run.
    #[getter]
    fn overheads(&self) -> &str {
        &self.overheads
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.header.seed
    }

    /// Time that was simulated or run, in ns.
    #[getter]
    fn duration_ns(&self) -> u64 {
        self.summary.duration.0
    }

    /// Everything measured, as nested dicts and lists: what `laxity simulate --json` prints and
    /// docs/reference/json.md describes.
    ///
    /// Keys: laxity (version), workload, scheduler, origin, overheads, seed, simulated_ns, interrupted, tasks (a list),
    /// total, cpus (a list), machine. Times are ints in ns and their names end in `_ns`.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &Report::new(&self.header, &self.summary, self.charged(), false))
    }

    /// All jobs together: released, completed, missed, preemptions, migrations, response_time_ns ... as a dict.
    #[getter]
    fn total<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.summary.total)
    }

    /// The tasks as a `pyarrow.Table`, one row a task.
    ///
    /// Columns: task (uint32), name (string), released, completed, missed, missed_incomplete, preemptions, migrations,
    /// suspensions (int64 counts), then int64 times in ns, null where no job completed: response_time_min_ns,
    /// response_time_mean_ns, response_time_p50_ns, _p90_ns, _p99_ns, response_time_max_ns, lateness_min_ns,
    /// lateness_mean_ns, lateness_max_ns, tardiness_mean_ns, tardiness_max_ns, laxity_min_ns; execution_ns,
    /// cache_delay_ns.
    #[getter]
    fn tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::tasks(&self.header, &self.summary)?)
    }

    /// The CPUs as a `pyarrow.Table`, one row a CPU.
    ///
    /// Columns: cpu (uint16), busy_ns (executing jobs and best-effort tasks), best_effort_ns (the latter's part),
    /// lock_wait_ns, spin_ns, idle_ns, overhead_ns (int64), utilization (float64, 0 to 1), and for each source of
    /// overhead SOURCE_count and SOURCE_ns (int64).
    #[getter]
    fn cpus<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::cpus(&self.header, &self.summary)?)
    }

    /// How GPUs were shared, as in workload files; "driver" where there are none.
    #[getter]
    fn arbitration(&self) -> &str {
        &self.header.arbitration
    }

    /// Where bottom halves of interrupts ran, as in workload files; "linux" where there are none.
    #[getter]
    fn handling(&self) -> &'static str {
        self.header.handling.name()
    }

    /// The priority inversions that bottom halves caused, as a `pyarrow.Table`: a row for all of them and one for each
    /// kind; no rows without devices.
    ///
    /// Columns: kind ("all", "waiting_bottom_half", "blocked_stack", "overtaken", "co_scheduled"), count (int64), and
    /// lengths (int64 ns, null where there were none): total_ns, mean_ns, stddev_ns, p50_ns, p90_ns, p99_ns, p999_ns,
    /// max_ns.
    #[getter]
    fn inversions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::inversions(&self.header, &self.summary)?)
    }

    /// What jobs waited for, as a `pyarrow.Table`: a row a task and cause; only causes that occurred.
    ///
    /// Columns: task (uint32), task_name, cause ("resource", "semaphore", "k_fmlp", "token", "engine", "gpu_operation",
    /// "suspension", "budget"), count, total_ns, max_ns (int64).
    #[getter]
    fn waits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::waits(&self.header, &self.summary)?)
    }

    /// The engines of GPUs as a `pyarrow.Table`, one row an engine.
    ///
    /// Columns: gpu (uint16), gpu_name, engine ("EE": GPU kernels; "CE0", "CE1": copies), operations, busy_ns (int64),
    /// utilization (float64, 0 to 1).
    #[getter]
    fn engines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::engines(&self.header, &self.summary)?)
    }

    /// The interrupt threads as a `pyarrow.Table`, one row a thread, with the columns of `tasks`; a job is a bottom half.
    #[getter]
    fn threads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::threads(&self.header, &self.summary)?)
    }

    /// Latencies of graphs from end to end, as a `pyarrow.Table`, one row a graph.
    ///
    /// Columns: graph (uint32), name, count (int64: runs that completed), and latencies (int64 ns, null where none did)
    /// from the arrival at the source to the completion at the sink: total_ns, mean_ns, stddev_ns, p50_ns, p90_ns,
    /// p99_ns, p999_ns, max_ns.
    #[getter]
    fn graphs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::graphs(&self.header, &self.summary)?)
    }

    /// Data age and reaction time of chains, as a `pyarrow.Table`, four rows a chain.
    ///
    /// Columns: chain (its name), measure, outputs and missed (int64: completed jobs of its last node that used data of its first,
    /// and those that exceeded a deadline of the chain), deadline_ns (int64, null without one), count (int64), and times (int64
    /// ns, null where there are none): total_ns, mean_ns, stddev_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns. Measures: "data_age" (of each output;
    /// the longest is last-to-last), "data_age_first" (last-to-first), "reaction_time" (first-to-first) and
    /// "reaction_time_last" (first-to-last).
    #[getter]
    fn chains<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        table(py, tables::chains(&self.header, &self.summary)?)
    }

    /// When jobs were complete, as a `pyarrow.Table`, one row a completion, in the order in which they occurred: of the
    /// tasks that `completions` of `laxity.simulate` named.
    ///
    /// Columns: task_name, job (uint32, counted from 0), completion_ns (int64).
    #[getter]
    fn completions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let metadata = tables::metadata(&self.header, &self.summary);
        match &self.completions {
            Some(completions) => table(py, completions.table(&self.header, metadata)?),
            None => table(py, Completions::of(&[], &self.header)?.table(&self.header, metadata)?),
        }
    }

    /// The trace. Raises LaxityError if the simulation was not asked to keep it.
    #[getter]
    fn trace(&self, py: Python<'_>) -> PyResult<PyTrace> {
        match &self.records {
            Some(records) => Ok(PyTrace::whole(self.header.clone(), records.clone())),
            None => Err(no_trace(py)),
        }
    }

    fn __repr__(&self) -> String {
        let (header, total) = (&self.header, &self.summary.total);
        format!(
            "<laxity.Result \"{}\": {}, {} {} with seed {}: {} jobs released, {} completed, {} missed>",
            header.workload,
            header.scheduler,
            if header.origin == Origin::Live { "live for" } else { "simulated" },
            self.summary.duration,
            header.seed,
            total.released,
            total.completed,
            total.missed
        )
    }
}
