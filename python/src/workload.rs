//! `laxity.Workload`.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, Int64Array, StringArray, UInt32Array};
use laxity_model::{Arrival, GpuArbitration, InterruptHandling, OverheadProfile, Scheduler, Task, Workload};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::arrow::{Columns, table};
use crate::errors::{file_error, value_error, workload_error};
use crate::overheads::Overheads;

/// A platform, the tasks on it and the scheduler: everything one workload file says. Immutable.
///
/// Made by `laxity.load`, `laxity.workload`, `laxity.generate`, or one of the class methods. Workloads compare by
/// value, whatever drew them, and can be pickled.
#[pyclass(frozen, eq, module = "laxity", name = "Workload")]
pub struct PyWorkload {
    pub workload: Arc<Workload>,
    /// What drew it. Files do not have it.
    pub provenance: Option<String>,
}

impl PartialEq for PyWorkload {
    fn eq(&self, other: &Self) -> bool {
        self.workload == other.workload
    }
}

impl PyWorkload {
    pub fn new(workload: Workload) -> Self {
        PyWorkload { workload: Arc::new(workload), provenance: None }
    }

    /// The same with other contents.
    fn with(&self, workload: Workload) -> Self {
        PyWorkload { workload: Arc::new(workload), provenance: self.provenance.clone() }
    }
}

/// What pickle calls, and with which arguments.
type Restored<'py, 'a> = (Bound<'py, PyAny>, (String, Option<&'a str>));

/// The workload under the scheduler called `policy`, if one is, and with `overheads`, if some are. A profile that depends
/// on the scheduler is that of `policy`.
pub fn configured(
    py: Python<'_>,
    workload: &Workload,
    policy: Option<&str>,
    overheads: Option<&Overheads>,
) -> PyResult<Workload> {
    let mut workload = workload.clone();
    if let Some(policy) = policy {
        workload.scheduler = policy.parse().map_err(value_error)?;
    }
    if let Some(overheads) = overheads {
        workload.platform.overheads = overheads.of(&workload.scheduler)?;
    }
    workload.validate().map_err(|errors| workload_error(py, errors, false))?;
    Ok(workload)
}

#[pymethods]
impl PyWorkload {
    /// Reads and validates a workload in TOML. `file` names it in errors.
    #[classmethod]
    #[pyo3(signature = (text, file=None))]
    fn from_toml(_: &Bound<'_, PyType>, py: Python<'_>, text: &str, file: Option<&str>) -> PyResult<Self> {
        let read = Workload::from_toml(text, file.unwrap_or("<toml>"));
        read.map(PyWorkload::new).map_err(|errors| workload_error(py, errors, true))
    }

    /// Reads and validates a workload in JSON, which has the structure of the TOML one.
    ///
    /// `file` names it in errors; without it, errors name fields but no lines.
    #[classmethod]
    #[pyo3(signature = (text, file=None))]
    fn from_json(_: &Bound<'_, PyType>, py: Python<'_>, text: &str, file: Option<&str>) -> PyResult<Self> {
        let read = Workload::from_json(text, file.unwrap_or("<json>"));
        read.map(PyWorkload::new).map_err(|errors| workload_error(py, errors, file.is_some()))
    }

    /// The workload as TOML; `Workload.from_toml` reads it back exactly, without its `provenance`.
    fn to_toml(&self) -> String {
        self.workload.to_toml()
    }

    /// The workload as JSON; `Workload.from_json` reads it back exactly, without its `provenance`.
    fn to_json(&self) -> String {
        self.workload.to_json()
    }

    /// Writes a `.toml` or `.json` file, whichever the extension of `path` says. It has all but the `provenance`.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => self.to_toml(),
            Some("json") => self.to_json(),
            _ => {
                let message = "cannot tell TOML from JSON; give the file the extension `.toml` or `.json`";
                return Err(value_error(format!("{}: {message}", path.display())));
            }
        };
        fs::write(&path, text).map_err(|error| file_error(&path, error))
    }

    /// Its name, for tables and plots.
    #[getter]
    fn name(&self) -> &str {
        &self.workload.name
    }

    /// Number of CPUs.
    #[getter]
    fn cpus(&self) -> usize {
        self.workload.platform.cpus
    }

    /// The scheduler, as ALGORITHM/REALIZATION: "G-EDF/CEm".
    #[getter]
    fn scheduler(&self) -> String {
        self.workload.scheduler.to_string()
    }

    /// The name of its overhead profile; "none" if scheduling costs nothing.
    #[getter]
    fn overheads(&self) -> &str {
        &self.workload.platform.overheads.name
    }

    /// Sum of the tasks' worst-case CPU time over period, in CPUs.
    #[getter]
    fn utilization(&self) -> f64 {
        utilization(&self.workload)
    }

    /// What drew it, for a generated one: the generator, its parameters, the seed and the version; None otherwise, also when it
    /// was read from a file. Store it with results.
    #[getter]
    fn provenance(&self) -> Option<&str> {
        self.provenance.as_deref()
    }

    /// What is allowed but probably not meant, such as more work than the CPUs can do.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.workload.warnings().iter().map(ToString::to_string).collect()
    }

    /// The real-time tasks as a `pyarrow.Table`, one row a task.
    ///
    /// Columns: task (uint32, 0 first), name (string), sporadic (bool), period_ns, deadline_ns (relative), phase_ns,
    /// jitter_ns, wcet_ns (all int64), utilization (float64, in CPUs), priority, cluster (uint32, null where not given).
    #[getter]
    fn tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tasks = &self.workload.tasks;
        let nanos = |of: fn(&Task) -> u64| tasks.iter().map(|task| of(task) as i64).collect::<Int64Array>();
        let mut columns = Columns::default();
        columns.push("task", UInt32Array::from_iter_values(0..tasks.len() as u32), false);
        columns.push("name", StringArray::from_iter_values(tasks.iter().map(|task| &task.name)), false);
        let sporadic = tasks.iter().map(|task| Some(matches!(task.arrival, Arrival::Sporadic { .. })));
        columns.push("sporadic", sporadic.collect::<BooleanArray>(), false);
        columns.push("period_ns", nanos(|task| task.period.0), false);
        columns.push("deadline_ns", nanos(|task| task.deadline.0), false);
        columns.push("phase_ns", nanos(|task| task.phase.0), false);
        columns.push("jitter_ns", nanos(|task| task.jitter.0), false);
        columns.push("wcet_ns", nanos(|task| task.wcet().0), false);
        let utilization = tasks.iter().map(Task::utilization_f64);
        columns.push("utilization", Float64Array::from_iter_values(utilization), false);
        columns.push("priority", tasks.iter().map(|task| task.priority).collect::<UInt32Array>(), true);
        let cluster = tasks.iter().map(|task| task.cluster.map(|cluster| cluster as u32));
        columns.push("cluster", cluster.collect::<UInt32Array>(), true);
        let metadata = [("workload", self.workload.name.as_str()), ("origin", "model")];
        let metadata: HashMap<_, _> = metadata.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        table(py, columns.batch(metadata)?)
    }

    /// The same workload under another scheduler, such as "G-EDF", "C-RM", "CQ1" or "P-DM/FEm".
    ///
    /// Overheads stay as they are. Raises ValueError for an unknown name and WorkloadError where the tasks do not
    /// suit the scheduler.
    fn with_scheduler(&self, py: Python<'_>, policy: &str) -> PyResult<Self> {
        configured(py, &self.workload, Some(policy), None).map(|workload| self.with(workload))
    }

    /// The same workload with other overheads: published ones, such as "brandenburg2009-worst" (those of its scheduler),
    /// "elliott2012-klmirqd" or "none", or the path of a file that `laxity measure` wrote, as in `laxity.simulate`.
    ///
    /// Raises ValueError for an unknown name, OSError and WorkloadError for a file that cannot be read.
    fn with_overheads(&self, py: Python<'_>, overheads: Overheads) -> PyResult<Self> {
        configured(py, &self.workload, None, Some(&overheads)).map(|workload| self.with(workload))
    }

    /// How GPUs are shared: "driver", "driver_spinning", "semaphore", "k_fmlp" or "gpusync".
    #[getter]
    fn arbitration(&self) -> &'static str {
        self.workload.gpu_management.arbitration.name()
    }

    /// Where bottom halves of interrupts run: "linux", "preempt_rt_low", "preempt_rt_high", "pai" or "klmirqd".
    #[getter]
    fn handling(&self) -> &'static str {
        self.workload.gpu_management.handling.name()
    }

    /// The same workload with another way to share GPUs, to handle interrupts, or both; named as in files. Parameters
    /// stay where the name stays, else they are the defaults.
    ///
    /// Raises ValueError for an unknown name.
    #[pyo3(signature = (*, arbitration=None, handling=None))]
    fn with_gpu_management(&self, arbitration: Option<&str>, handling: Option<&str>) -> PyResult<Self> {
        let mut workload = Workload::clone(&self.workload);
        manage(&mut workload, arbitration, handling)?;
        Ok(self.with(workload))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Restored<'py, '_>> {
        let restore = py.import("laxity._native")?.getattr("_restore_workload")?;
        Ok((restore, (self.workload.to_json(), self.provenance.as_deref())))
    }

    fn __repr__(&self) -> String {
        let Workload { name, platform, scheduler, tasks, .. } = &*self.workload;
        let (cpus, tasks, utilization) = (platform.cpus, tasks.len(), utilization(&self.workload));
        format!(
            "<laxity.Workload \"{name}\": {tasks} tasks on {cpus} CPUs, utilization {utilization:.2}, {scheduler}, \
             overheads {}>",
            platform.overheads.name
        )
    }
}

/// That of `workload`. A sum of nothing is -0.0 in Rust, which people would wonder about.
fn utilization(workload: &Workload) -> f64 {
    workload.utilization_f64() + 0.0
}

/// Manages the GPUs of `workload` as named.
pub fn manage(workload: &mut Workload, arbitration: Option<&str>, handling: Option<&str>) -> PyResult<()> {
    let management = &mut workload.gpu_management;
    if let Some(name) = arbitration {
        management.arbitration = GpuArbitration::named(name, management.arbitration)
            .ok_or_else(|| unknown("arbitration", name, &GpuArbitration::ALL.map(GpuArbitration::name)))?;
    }
    if let Some(name) = handling {
        management.handling = InterruptHandling::named(name, management.handling)
            .ok_or_else(|| unknown("handling", name, &InterruptHandling::ALL.map(InterruptHandling::name)))?;
    }
    Ok(())
}

fn unknown(what: &str, name: &str, known: &[&str]) -> PyErr {
    value_error(format!("there is no {what} \"{name}\"; there are {}", known.join(", ")))
}

/// Reads a workload file, `.toml` or `.json`.
///
/// Raises WorkloadError with every mistake in it, OSError where it cannot be read.
#[pyfunction]
pub fn load(py: Python<'_>, path: PathBuf) -> PyResult<PyWorkload> {
    let text = fs::read_to_string(&path).map_err(|error| file_error(&path, error))?;
    let read = Workload::from_text(&text, &path.to_string_lossy());
    read.map(PyWorkload::new).map_err(|errors| workload_error(py, errors, true))
}

/// What `Workload.__reduce__` names.
#[pyfunction]
#[pyo3(signature = (json, provenance))]
pub fn _restore_workload(py: Python<'_>, json: &str, provenance: Option<String>) -> PyResult<PyWorkload> {
    let workload = Workload::from_json(json, "<pickle>").map_err(|errors| workload_error(py, errors, true))?;
    Ok(PyWorkload { workload: Arc::new(workload), provenance })
}

/// The names of all published overhead profiles.
#[pyfunction]
pub fn overhead_profiles() -> Vec<String> {
    OverheadProfile::published_names()
}

/// The realizations of global EDF that were measured by Brandenburg & Anderson (RTSS 2009): "CEm" ... "S-CQ1".
#[pyfunction]
pub fn measured_realizations() -> Vec<&'static str> {
    Scheduler::MEASURED.to_vec()
}
