//! Published schedulability studies: what they consist of, and the evaluation of chunks. `studies/` runs them.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use laxity_gen::GENERATOR_VERSION;
use laxity_model::{OverheadKind, OverheadProfile, OverheadTable};
use laxity_study::gedf::{GedfStudy, Waiting};
use laxity_study::klmirqd::KlmirqdStudy;
use laxity_study::{Chunk, Counts, Row, Study, StudyError};
use pyo3::prelude::*;

use crate::arrow::{Columns, table};
use crate::errors::value_error;

/// Task sets between two looks at whether to stop.
const BETWEEN_LOOKS: u64 = 10;

/// Tells evaluations in other threads to stop.
#[pyclass(frozen, name = "StudyStop", module = "laxity._native")]
#[derive(Default)]
pub struct StudyStop {
    pub(crate) flag: AtomicBool,
}

impl StudyStop {
    /// Whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl StudyStop {
    #[new]
    fn new() -> Self {
        StudyStop::default()
    }

    /// From now on evaluations with this flag return None, soon.
    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// A published study under given options.
#[pyclass(frozen, name = "Study", module = "laxity._native")]
pub struct PyStudy {
    study: Box<dyn Study + Send>,
}

#[pymethods]
impl PyStudy {
    /// The study of this name. Raises ValueError for an unknown name or option.
    #[new]
    #[pyo3(signature = (name, options=""))]
    fn new(name: &str, options: &str) -> PyResult<Self> {
        let study: Box<dyn Study + Send> = match name {
            "brandenburg2009gedf" => Box::new(GedfStudy::new(options.parse().map_err(value_error)?)),
            "brandenburg2009gedf_kernel" => {
                Box::new(GedfStudy::in_kernel(options.parse().map_err(value_error)?, Waiting::Nothing))
            }
            "brandenburg2009gedf_kernel_waiting" => {
                Box::new(GedfStudy::in_kernel(options.parse().map_err(value_error)?, Waiting::Longest))
            }
            "elliott2012klmirqd" => Box::new(KlmirqdStudy::new(options.parse().map_err(value_error)?)),
            _ => {
                let message = format!(
                    "unknown study \"{name}\"; write brandenburg2009gedf, brandenburg2009gedf_kernel, \
                     brandenburg2009gedf_kernel_waiting or elliott2012klmirqd"
                );
                return Err(value_error(message));
            }
        };
        Ok(PyStudy { study })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &'static str {
        self.study.name()
    }

    /// All its options, as one line that makes the same study.
    #[getter]
    fn options(&self) -> String {
        self.study.options()
    }

    /// Names of the scenarios.
    #[getter]
    fn scenarios(&self) -> Vec<String> {
        self.study.scenarios()
    }

    /// Graph and name of each curve.
    #[getter]
    fn curves(&self) -> Vec<(String, String)> {
        self.study.curves().into_iter().map(|curve| (curve.graph, curve.name)).collect()
    }

    /// Points of a full run, in thousandths of a CPU.
    #[getter]
    fn points(&self) -> Vec<u64> {
        self.study.points()
    }

    /// Task sets a point of a full run.
    #[getter]
    fn replicates(&self) -> u64 {
        self.study.replicates()
    }

    /// Version of the generator that draws the task sets.
    #[getter]
    fn generator_version(&self) -> u32 {
        GENERATOR_VERSION
    }

    /// Evaluates a chunk on this thread, without the GIL: a `pyarrow.Table` of its counts, or None if told to stop.
    ///
    /// Columns: scenario, curve (uint32, places in `scenarios` and `curves`), x (thousandths of a CPU), sets, accepted,
    /// undecided, weight, weight_accepted (uint64).
    #[pyo3(signature = (scenario, point, first, count, stop=None))]
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        scenario: u32,
        point: u64,
        first: u64,
        count: u64,
        stop: Option<Py<StudyStop>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let chunk = Chunk { scenario, point, first, count };
        let stop = stop.as_ref().map(|stop| &stop.get().flag);
        let counts = py.detach(|| evaluate(self.study.as_ref(), &chunk, stop)).map_err(value_error)?;
        counts.map(|counts| table(py, batch(&counts)?)).transpose()
    }
}

/// The measured points `(tasks, picoseconds)` of a published overhead profile's source, such as "tick"; one at 0 tasks
/// for a constant. Raises ValueError for an unknown profile or source.
#[pyfunction]
pub fn _overhead_points(profile: &str, source: &str) -> PyResult<Vec<(u32, u64)>> {
    let kind = OverheadKind::ALL.into_iter().find(|kind| kind.name() == source);
    let kind = kind.ok_or_else(|| value_error(format!("unknown source of overhead \"{source}\"; write \"tick\"")))?;
    let mut profile = OverheadProfile::published(profile).map_err(value_error)?;
    Ok(match &mut profile.tables[kind as usize] {
        OverheadTable::Constant(cost) => vec![(0, cost.0.saturating_mul(1_000))],
        OverheadTable::Points(points) => std::mem::take(points),
    })
}

fn evaluate(study: &dyn Study, chunk: &Chunk, stop: Option<&AtomicBool>) -> Result<Option<Counts>, StudyError> {
    let mut counts = Counts::default();
    let mut done = 0;
    while done < chunk.count {
        if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Ok(None);
        }
        let part = Chunk { first: chunk.first + done, count: BETWEEN_LOOKS.min(chunk.count - done), ..*chunk };
        counts.merge(&study.evaluate(&part)?);
        done += part.count;
    }
    Ok(Some(counts))
}

fn batch(counts: &Counts) -> PyResult<RecordBatch> {
    let rows: Vec<Row> = counts.rows().collect();
    let mut columns = Columns::default();
    columns.push("scenario", UInt32Array::from_iter_values(rows.iter().map(|row| row.scenario)), false);
    columns.push("curve", UInt32Array::from_iter_values(rows.iter().map(|row| row.curve)), false);
    let mut push = |name: &str, value: fn(&Row) -> u64| {
        columns.push(name, UInt64Array::from_iter_values(rows.iter().map(value)), false);
    };
    push("x", |row| row.x);
    push("sets", |row| row.tally.sets);
    push("accepted", |row| row.tally.accepted);
    push("undecided", |row| row.tally.undecided);
    push("weight", |row| row.tally.weight);
    push("weight_accepted", |row| row.tally.weight_accepted);
    columns.batch(Default::default())
}
