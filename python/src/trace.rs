//! `laxity.Trace`.

use std::fmt::{self, Display};
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use laxity_model::{Instant, Nanos};
use laxity_trace::check;
use laxity_trace::codec::{ReadError, TraceWriter, read_all};
use laxity_trace::gantt::{self, Characters, Rows, SvgOptions, TextOptions, Window};
use laxity_trace::intervals::TrackError;
use laxity_trace::metrics::{Report, measure};
use laxity_trace::perfetto::{self, ExportError};
use laxity_trace::table;
use laxity_trace::table::arrow::{ArrowError, batch};
use laxity_trace::{Record, Sink, TraceHeader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow;
use crate::errors::{file_error, trace_error, value_error};
use crate::json;
use crate::violation::PyViolation;

/// Everything that happened, simulated or live, in the order in which it did. Immutable; can be pickled.
///
/// From `Result.trace` or `laxity.read_trace`. In a notebook it shows itself as a Gantt chart.
#[pyclass(frozen, module = "laxity", name = "Trace")]
pub struct PyTrace {
    pub header: Arc<TraceHeader>,
    pub records: Arc<Vec<Record>>,
    damage: Option<String>,
}

impl PyTrace {
    pub fn whole(header: Arc<TraceHeader>, records: Arc<Vec<Record>>) -> Self {
        PyTrace { header, records, damage: None }
    }

    /// The same, of which `damage` says why there is no more.
    pub fn damaged(self, damage: String) -> Self {
        PyTrace { damage: Some(damage), ..self }
    }

    fn end(&self) -> Instant {
        self.records.last().map_or(Instant::ZERO, |record| record.at)
    }

    fn encode(&self) -> std::io::Result<Vec<u8>> {
        let mut writer = TraceWriter::new(Vec::new(), &self.header)?;
        for record in &*self.records {
            writer.record(record.at, record.event);
        }
        writer.finish()
    }

    /// The table that `of` makes of the trace.
    fn table<'py>(
        &self,
        py: Python<'py>,
        of: impl FnOnce(&TraceHeader, &[Record]) -> Result<RecordBatch, TableError> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = py.detach(|| of(&self.header, &self.records));
        arrow::table(py, batch.map_err(|error| trace_error(py, &error))?)
    }
}

/// Decodes a trace. One that is damaged after its header is an error if `strict`, else what precedes the damage.
fn decode(py: Python<'_>, bytes: &[u8], strict: bool) -> PyResult<PyTrace> {
    let trace = py.detach(|| read_all(bytes)).map_err(|error| trace_error(py, &error))?;
    match trace.damage {
        Some(error) if strict => Err(trace_error(py, &error)),
        damage => Ok(PyTrace {
            header: Arc::new(trace.header),
            records: Arc::new(trace.records),
            damage: damage.map(|error: ReadError| error.to_string()),
        }),
    }
}

/// Reads a trace file, as written by `Trace.save` or by the `laxity` command with `--trace`.
///
/// Raises TraceError if it is not a trace or, with `strict`, if it is damaged or was cut off. Without `strict`, what
/// precedes the damage is read and `Trace.damage` says what is wrong.
#[pyfunction]
#[pyo3(signature = (path, *, strict=true))]
pub fn read_trace(py: Python<'_>, path: PathBuf, strict: bool) -> PyResult<PyTrace> {
    let bytes = fs::read(&path).map_err(|error| file_error(&path, error))?;
    decode(py, &bytes, strict)
}

/// What `Trace.__reduce__` names.
#[pyfunction]
pub fn _restore_trace(py: Python<'_>, bytes: &[u8]) -> PyResult<PyTrace> {
    decode(py, bytes, false)
}

#[pymethods]
impl PyTrace {
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

    /// What wrote it: "simulated" or "live".
    #[getter]
    fn origin(&self) -> &'static str {
        self.header.origin.name()
    }

    /// The seed of its random draws.
    #[getter]
    fn seed(&self) -> u64 {
        self.header.seed
    }

    /// Number of CPUs.
    #[getter]
    fn cpus(&self) -> usize {
        self.header.cpus
    }

    /// The names of the tasks, by number.
    #[getter]
    fn task_names(&self) -> Vec<String> {
        self.header.tasks.iter().map(|task| task.name.clone()).collect()
    }

    /// When it ends, in ns.
    #[getter]
    fn duration_ns(&self) -> u64 {
        self.end().as_nanos()
    }

    /// Why there are no more events, if the file it was read from is damaged; None if it is whole.
    #[getter]
    fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// Number of events.
    fn __len__(&self) -> usize {
        self.records.len()
    }

    /// The jobs as a `pyarrow.Table`, one row a job, ordered by release.
    ///
    /// Columns: task (uint32), task_name (dictionary of string), job (uint32, 0 first), release_ns, arrival_ns,
    /// deadline_ns (absolute), completion_ns, response_time_ns, lateness_ns, tardiness_ns (int64, null where not known:
    /// of an incomplete job the last four; of a best-effort job those about its deadline, as it has none), preemptions, migrations (uint32), executed_ns (int64), missed (bool),
    /// spinning_ns, awaiting_locks_ns, inheriting_ns, operations_ns (on engines of GPUs), bottom_halves_ns (on its
    /// behalf, on CPUs' stacks) (int64), owner (dictionary, `task.job`: the job that a job of an interrupt thread serves).
    fn jobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.table(py, |header, records| Ok(batch(header, &table::jobs(header, records)?)?))
    }

    /// The events as a `pyarrow.Table`, one row an event, in order.
    ///
    /// Columns, null where they do not apply: at_ns (int64), event (dictionary of string: release, ready, link,
    /// dispatch, preempt, suspend, resume, complete, non_preemptive_begin, non_preemptive_end, overhead, lock_wait,
    /// cache_delay, ipi, engine_begin, engine_end, interrupt, bottom_half_begin, bottom_half_end, serve, request, grant,
    /// unlock, withdraw, priority, produce, consume, spin_begin, spin_end, replenish, throttle, unthrottle, regulate,
    /// read, engine_rate, engine_operation, stolen, outside, outsider_name, outsider_thread, outsiders_lost, end), cpu,
    /// to_cpu (uint16), task (uint32), task_name (dictionary), job (uint32), deadline_ns (int64), kind (dictionary: which
    /// overhead; of an outsider: thread, interrupt, soft_interrupt), duration_ns (int64), gpu (uint16), engine
    /// (dictionary: EE, CE0, CE1), device, lock, replica (uint16), owner (dictionary, `task.job`: on whose behalf an
    /// interrupt is handled), edge, tokens (uint32), level (uint64: the effective priority; of outsiders_lost: records
    /// that Linux dropped), of_task (uint32: whose priority that is), operation (dictionary: its name, of a program's),
    /// outsider (dictionary: the name of the thread that is no task, or of the interrupt), thread (uint32: the number of
    /// that thread in Linux).
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.table(py, |header, records| Ok(batch(header, &table::events(header, records).collect::<Vec<_>>())?))
    }

    /// What filled the time of CPUs and jobs as a `pyarrow.Table`, one row an interval, ordered by beginning.
    ///
    /// Columns, null where they do not apply: from_ns, to_ns, duration_ns (int64), activity (dictionary of string:
    /// execution, suspension, non_preemptive, lock_wait (for the scheduler's lock), bottom_half, spinning, throttled,
    /// stolen (the CPU, from all threads), outside (the CPU has a thread that is no task, or an interrupt), operation,
    /// awaiting_lock, critical_section, inheritance, or the name of an overhead), cpu (uint16), task (uint32), task_name
    /// (dictionary), job (uint32), begin (dictionary: first, again, migrated, after_overhead, after_spinning), stop
    /// (dictionary: overhead, spinning, preempted, suspended, completed, trace_ended), migrated_from_cpu, gpu (uint16),
    /// engine (dictionary), device, lock, replica (uint16), owner (dictionary, `task.job`: on whose behalf an interrupt
    /// is handled), level (uint64), of_task (uint32), operation (dictionary: its name, of a program's), kind (dictionary,
    /// of outside: thread, interrupt, soft_interrupt), outsider (dictionary: the name of the thread or interrupt), thread
    /// (uint32: its number in Linux).
    fn intervals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.table(py, |header, records| Ok(batch(header, &table::intervals(header, records)?)?))
    }

    /// What is wrong with the schedule: whether it is legal (jobs are sequential, run on one CPU at a time and no longer
    /// than their worst case, ...) and whether it follows the scheduler that it names.
    ///
    /// A live trace is held against a scheduler only where that is Laxity's own: otherwise Linux scheduled it. A missed deadline is nothing illegal and
    /// listed only with `deadlines`. Of a hopeless trace each of the checkers lists its first 1,000 violations.
    #[pyo3(signature = (*, deadlines=false))]
    fn check(&self, py: Python<'_>, deadlines: bool) -> Vec<PyViolation> {
        let (header, records) = (&self.header, &self.records);
        let follows = header.follows_scheduler();
        let reports: [(&str, check::Report); 3] = py.detach(|| {
            [
                ("legality", check::legality(header, records, |_| None)),
                ("policy", if follows { check::policy(header, records) } else { check::Report::default() }),
                ("deadlines", if deadlines { check::deadlines(header, records) } else { check::Report::default() }),
            ]
        });
        let list = |(checker, report): (&'static str, check::Report)| {
            report.violations.into_iter().map(move |violation| PyViolation { checker, violation })
        };
        reports.into_iter().flat_map(list).collect()
    }

    /// Everything measured from it, as in `Result.summary`; a trace does not know the name of its overheads.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let summary = py.detach(|| measure(&self.header, &self.records, self.end()));
        json::to_python(py, &Report::new(&self.header, &summary, None, false))
    }

    /// The trace as it is stored: compact, about five bytes an event. The same schedule yields the same bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.encode())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Writes a file that `laxity.read_trace` and the `laxity` command read.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| fs::write(&path, self.encode()?));
        written.map_err(|error| file_error(&path, error))
    }

    /// Writes a file that opens in the Perfetto UI, <https://ui.perfetto.dev>.
    fn to_perfetto(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let file = File::create(&path).map_err(|error| file_error(&path, error))?;
        let written = py.detach(|| perfetto::export(&self.header, &self.records, file));
        written.map_err(|error| match error {
            ExportError::Track(error) => trace_error(py, &error),
            ExportError::Write(error) => file_error(&path, error),
        })
    }

    /// Writes one of its tables ("jobs", "events" or "intervals") as a Parquet file.
    #[pyo3(signature = (path, *, table="jobs"))]
    fn to_parquet(&self, py: Python<'_>, path: PathBuf, table: &str) -> PyResult<()> {
        let table = match table {
            "jobs" => self.jobs(py)?,
            "events" => self.events(py)?,
            "intervals" => self.intervals(py)?,
            _ => {
                let message = format!("table=\"{table}\" is unknown; write \"jobs\", \"events\" or \"intervals\"");
                return Err(value_error(message));
            }
        };
        let options = PyDict::new(py);
        options.set_item("compression", "zstd")?;
        py.import("pyarrow.parquet")?.call_method("write_table", (table, path), Some(&options))?;
        Ok(())
    }

    /// The schedule as an SVG drawing for papers and reports.
    ///
    /// Args:
    ///     start: left edge, with its unit.
    ///     end: right edge; None: the end of the trace.
    ///     rows: "cpus", "tasks" or "both".
    ///     width: in pixels, 320 to 20,000; the height follows from the rows.
    ///     caption: whether to name workload, scheduler, origin and seed.
    ///     legend: whether to explain the signs used.
    ///
    /// Raises ValueError if nothing lies between `start` and `end`.
    #[pyo3(signature = (*, start="0 ms", end=None, rows="both", width=1000, caption=true, legend=true))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn gantt_svg(
        &self,
        py: Python<'_>,
        start: &str,
        end: Option<&str>,
        rows: &str,
        width: u32,
        caption: bool,
        legend: bool,
    ) -> PyResult<String> {
        let options = SvgOptions { rows: parse_rows(rows)?, window: window(start, end)?, width, caption, legend };
        py.detach(|| gantt::svg(&self.header, &self.records, &options)).map_err(value_error)
    }

    /// The schedule as text for a terminal; at most `width` characters a line, only ASCII with `ascii`.
    ///
    /// Raises ValueError if nothing lies between `start` and `end`.
    #[pyo3(signature = (*, start="0 ms", end=None, rows="both", width=120, ascii=false))]
    fn gantt_text(
        &self,
        py: Python<'_>,
        start: &str,
        end: Option<&str>,
        rows: &str,
        width: usize,
        ascii: bool,
    ) -> PyResult<String> {
        let characters = if ascii { Characters::Ascii } else { Characters::Unicode };
        let options = TextOptions { rows: parse_rows(rows)?, window: window(start, end)?, width, characters };
        py.detach(|| gantt::text(&self.header, &self.records, &options)).map_err(value_error)
    }

    /// What a notebook shows: the whole trace as a drawing; nothing for an empty one.
    fn _repr_svg_(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| gantt::svg(&self.header, &self.records, &SvgOptions::default())).ok()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let restore = py.import("laxity._native")?.getattr("_restore_trace")?;
        Ok((restore, (self.to_bytes(py)?,)))
    }

    fn __repr__(&self) -> String {
        let header = &self.header;
        let damage = if self.damage.is_some() { ", damaged" } else { "" };
        format!(
            "<laxity.Trace \"{}\": {}, {} with seed {}, {} events in {}{damage}>",
            header.workload,
            header.scheduler,
            self.origin(),
            header.seed,
            self.records.len(),
            Nanos(self.end().as_nanos())
        )
    }
}

/// Why a trace has no table.
enum TableError {
    Track(TrackError),
    Arrow(ArrowError),
}

impl From<TrackError> for TableError {
    fn from(error: TrackError) -> Self {
        TableError::Track(error)
    }
}

impl From<ArrowError> for TableError {
    fn from(error: ArrowError) -> Self {
        TableError::Arrow(error)
    }
}

impl Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Track(error) => error.fmt(f),
            TableError::Arrow(error) => error.fmt(f),
        }
    }
}

fn parse_rows(rows: &str) -> PyResult<Rows> {
    match rows {
        "cpus" => Ok(Rows::Cpus),
        "tasks" => Ok(Rows::Tasks),
        "both" => Ok(Rows::Both),
        _ => Err(value_error(format!("rows=\"{rows}\" is unknown; write \"cpus\", \"tasks\" or \"both\""))),
    }
}

fn window(start: &str, end: Option<&str>) -> PyResult<Window> {
    let at = |text: &str| {
        let span: Nanos = text.parse().map_err(value_error)?;
        PyResult::Ok(Instant::ZERO.saturating_add(span))
    };
    Ok(Window { from: at(start)?, to: end.map(at).transpose()? })
}
