//! The simulated run-time study of GPU interrupt handling: its runs, one at a time. `studies/` runs them all.

use std::sync::atomic::Ordering;

use arrow_array::{RecordBatch, StringArray, UInt32Array, UInt64Array};
use laxity_gen::GENERATOR_VERSION;
use laxity_model::Nanos;
use laxity_study::klmirqd_runtime::{
    CurvePoint, HANDLINGS, INVERSIONS_SECONDS, Measured, REPETITIONS, RESPONSES_SECONDS, RuntimeStudy, Stopped, System,
    TaskResponses, UTILIZATIONS,
};
use laxity_trace::metrics::InversionKind;
use pyo3::prelude::*;

use crate::arrow::{Columns, table};
use crate::errors::value_error;
use crate::study_chunks::StudyStop;

/// The run-time experiments of Elliott & Anderson 2012, simulated under given options.
#[pyclass(frozen, name = "RuntimeStudy", module = "laxity._native")]
pub struct PyRuntimeStudy {
    study: RuntimeStudy,
}

#[pymethods]
impl PyRuntimeStudy {
    /// Raises ValueError for an unknown option.
    #[new]
    #[pyo3(signature = (options=""))]
    fn new(options: &str) -> PyResult<Self> {
        Ok(PyRuntimeStudy { study: RuntimeStudy::new(options.parse().map_err(value_error)?) })
    }

    /// All its options, as one line that makes the same study.
    #[getter]
    fn options(&self) -> String {
        self.study.options().to_string()
    }

    /// Utilizations of the task sets of section V, in thousandths of a CPU.
    #[getter]
    fn utilizations(&self) -> Vec<u64> {
        UTILIZATIONS.to_vec()
    }

    /// Names of the ways to handle interrupts that section V compares.
    #[getter]
    fn handlings(&self) -> Vec<&'static str> {
        HANDLINGS.map(|(name, _)| name).to_vec()
    }

    /// Letter and name of each column of Table II.
    #[getter]
    fn systems(&self) -> Vec<(String, &'static str)> {
        System::ALL.map(|system| (system.column.to_string(), system.name)).to_vec()
    }

    /// Runs on each system of Table II.
    #[getter]
    fn repetitions(&self) -> u64 {
        REPETITIONS
    }

    /// Simulated seconds of a run of section V and of one of Table II.
    #[getter]
    fn seconds(&self) -> (u64, u64) {
        (INVERSIONS_SECONDS, RESPONSES_SECONDS)
    }

    /// Version of the generator that draws the task sets.
    #[getter]
    fn generator_version(&self) -> u32 {
        GENERATOR_VERSION
    }

    /// Runs the task set of that utilization for so many seconds under a handling, given by its place, on this thread
    /// and without the GIL: a `pyarrow.Table` of the curves of its priority inversions, or None if told to stop.
    ///
    /// Columns: rank, length_ns, cumulative_ns (a row a point, the first at 0); then, the same in every row, interrupts,
    /// and for each cause its number of inversions, as NAME, and their cumulative length, as NAME_ns. All uint64.
    #[pyo3(signature = (utilization, handling, seconds, stop=None))]
    fn inversions<'py>(
        &self,
        py: Python<'py>,
        utilization: u64,
        handling: usize,
        seconds: u64,
        stop: Option<Py<StudyStop>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (_, handling) =
            *HANDLINGS.get(handling).ok_or_else(|| value_error("there are three handlings, from 0 on"))?;
        let duration = duration(seconds)?;
        let run = || self.study.inversions(utilization, handling, duration, is_set(stop.as_ref()));
        finished(py.detach(run))?.map(|measured| table(py, curves(&measured)?)).transpose()
    }

    /// Runs the workload of Table II for so many seconds on a system, given by its place, on this thread and without the
    /// GIL: a `pyarrow.Table` of its tasks, or None if told to stop.
    ///
    /// Columns: task (uint32), kind (string: "CPU-only" or "GPU-using"), period_ns, jobs, missed, missed_from_arrival,
    /// missed_by_quantum, completed, response_sum_ns, response_max_ns (uint64).
    #[pyo3(signature = (system, repetition, seconds, stop=None))]
    fn responses<'py>(
        &self,
        py: Python<'py>,
        system: usize,
        repetition: u64,
        seconds: u64,
        stop: Option<Py<StudyStop>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let system = System::ALL.get(system).ok_or_else(|| value_error("there are eight systems, from 0 on"))?;
        let duration = duration(seconds)?;
        let run = || self.study.responses(system, repetition, duration, is_set(stop.as_ref()));
        finished(py.detach(run))?.map(|tasks| table(py, by_task(&tasks)?)).transpose()
    }
}

/// More simulated time than this is a mistake.
const SECONDS_MAX: u64 = 100_000;

fn duration(seconds: u64) -> PyResult<Nanos> {
    if seconds == 0 || seconds > SECONDS_MAX {
        return Err(value_error(format!("{seconds} s is no length of a run; write 1 to {SECONDS_MAX}")));
    }
    Ok(Nanos::from_secs(seconds))
}

fn is_set(stop: Option<&Py<StudyStop>>) -> impl Fn() -> bool {
    let flag = stop.map(|stop| &stop.get().flag);
    move || flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// The result; None if the run was stopped on request.
fn finished<T>(outcome: Result<T, Stopped>) -> PyResult<Option<T>> {
    match outcome {
        Ok(result) => Ok(Some(result)),
        Err(Stopped::OnRequest) => Ok(None),
        Err(Stopped::Error(error)) => Err(value_error(error)),
    }
}

fn curves(Measured { lengths, interrupts }: &Measured) -> PyResult<RecordBatch> {
    let mut points = vec![CurvePoint { rank: 0, length: 0, cumulative: 0 }];
    points.extend(lengths.curve());
    let mut columns = Columns::default();
    let mut push = |name: String, values: Vec<u64>| columns.push(name, UInt64Array::from(values), false);
    push("rank".to_owned(), points.iter().map(|point| point.rank).collect());
    push("length_ns".to_owned(), points.iter().map(|point| point.length).collect());
    push("cumulative_ns".to_owned(), points.iter().map(|point| point.cumulative).collect());
    push("interrupts".to_owned(), vec![*interrupts; points.len()]);
    for kind in InversionKind::ALL {
        let CurvePoint { rank, cumulative, .. } = lengths.of_kind(kind);
        push(kind.name().to_owned(), vec![rank; points.len()]);
        push(format!("{}_ns", kind.name()), vec![cumulative; points.len()]);
    }
    columns.batch(Default::default())
}

fn by_task(tasks: &[TaskResponses]) -> PyResult<RecordBatch> {
    let mut columns = Columns::default();
    columns.push("task", UInt32Array::from_iter_values(0..tasks.len() as u32), false);
    let kind = |task: &TaskResponses| if task.uses_gpu { "GPU-using" } else { "CPU-only" };
    columns.push("kind", StringArray::from_iter_values(tasks.iter().map(kind)), false);
    let mut push = |name: &str, value: fn(&TaskResponses) -> u64| {
        columns.push(name, UInt64Array::from_iter_values(tasks.iter().map(value)), false);
    };
    push("period_ns", |task| task.period);
    push("jobs", |task| task.jobs);
    push("missed", |task| task.missed);
    push("missed_from_arrival", |task| task.missed_from_arrival);
    push("missed_by_quantum", |task| task.missed_by_quantum);
    push("completed", |task| task.completed);
    push("response_sum_ns", |task| task.response_sum);
    push("response_max_ns", |task| task.response_max);
    columns.batch(Default::default())
}
