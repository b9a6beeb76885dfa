//! `laxity.live.Recording`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_graph::{Collected, Collector, Graph};
use laxity_model::{Instant, Nanos};
use laxity_trace::codec::TraceWriter;
use laxity_trace::{Event, Record, Sink, TraceHeader};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::errors::{live_error, misuse};
use crate::errors::file_error;
use crate::trace::{PyTrace, read_trace};

/// What happens in a graph, written down as a trace while it does. A context manager: at the end of `with` it is
/// finished.
///
/// From `Graph.record`.
#[pyclass(frozen, module = "laxity.live", name = "Recording")]
pub struct PyRecording {
    header: Arc<TraceHeader>,
    origin: Instant,
    pid: u32,
    shared: Arc<Shared>,
    /// Collects, until the recording is finished.
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    is_over: Condvar,
}

enum State {
    Running { collector: Box<Collector>, output: Output, collected: Collected },
    Finished { collected: Collected, kept: Kept },
}

/// Where records go.
enum Output {
    Memory(Vec<Record>),
    File(TraceWriter<File>, PathBuf),
}

/// Where they are in the end.
enum Kept {
    Memory(Arc<Vec<Record>>),
    File(PathBuf),
    /// Nowhere: it was dropped, or the file could not be written.
    Nowhere,
}

impl Sink for Output {
    fn record(&mut self, at: Instant, event: Event) {
        match self {
            Output::Memory(records) => records.record(at, event),
            Output::File(writer, _) => writer.record(at, event),
        }
    }
}

impl State {
    /// Writes what happened since the last time.
    fn collect(&mut self) {
        if let State::Running { collector, output, collected } = self {
            *collected = collector.collect(output);
        }
    }

    /// What was done so far.
    fn collected(&self) -> Collected {
        match self {
            State::Running { collected, .. } | State::Finished { collected, .. } => *collected,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A collection that panics leaves whole records.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects every `span` until the recording is over.
    fn collect_every(&self, span: Nanos) {
        let mut state = self.state();
        while let State::Running { .. } = *state {
            state.collect();
            let waited = self.is_over.wait_timeout(state, Duration::from_nanos(span.0));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the recording as it is. Returns the collector and its output, unless it was over before.
    fn end(&self, state: &mut State) -> Option<(Box<Collector>, Output)> {
        let State::Running { collected, .. } = *state else { return None };
        let ended = std::mem::replace(state, State::Finished { collected, kept: Kept::Nowhere });
        self.is_over.notify_all();
        match ended {
            State::Running { collector, output, .. } => Some((collector, output)),
            State::Finished { .. } => None,
        }
    }

    /// Writes all that happened up to now, and ends the recording; what was done.
    fn finish(&self) -> Result<Collected, (PathBuf, std::io::Error)> {
        let mut state = self.state();
        if let Some((collector, mut output)) = self.end(&mut state) {
            let collected = collector.finish(&mut output);
            let kept = match output {
                Output::Memory(records) => Kept::Memory(Arc::new(records)),
                Output::File(writer, path) => match writer.finish() {
                    Ok(_) => Kept::File(path),
                    Err(error) => return Err((path, error)),
                },
            };
            *state = State::Finished { collected, kept };
        }
        Ok(state.collected())
    }
}

impl PyRecording {
    pub fn new(py: Python<'_>, graph: &Graph, path: Option<&Path>, every: Option<Nanos>) -> PyResult<Self> {
        let collector = Collector::new(graph).map_err(|error| live_error(py, &error))?;
        let (header, origin) = (Arc::new(collector.header().clone()), collector.origin());
        let output = match path {
            None => Output::Memory(Vec::new()),
            Some(path) => {
                let writer = File::create(path).and_then(|file| TraceWriter::new(file, &header));
                Output::File(writer.map_err(|error| file_error(path, error))?, path.to_owned())
            }
        };
        let state =
            Mutex::new(State::Running { collector: Box::new(collector), output, collected: Collected::default() });
        let shared = Arc::new(Shared { state, is_over: Condvar::new() });
        let thread = every.map(|every| {
            let shared = shared.clone();
            let named = thread::Builder::new().name("laxity-recorder".to_owned());
            named.spawn(move || shared.collect_every(every))
        });
        let thread = Mutex::new(thread.transpose()?);
        Ok(PyRecording { header, origin, pid: std::process::id(), shared, thread })
    }

    fn shared(&self, py: Python<'_>) -> PyResult<&Shared> {
        if std::process::id() != self.pid {
            return Err(misuse(py, "this process was forked from the one that records; record here"));
        }
        Ok(&self.shared)
    }
}

#[pymethods]
impl PyRecording {
    /// When time 0 of the trace is, in ns of `time.monotonic_ns`.
    #[getter]
    fn origin_ns(&self) -> u64 {
        self.origin.0
    }

    /// What was done so far: a `Collected`.
    #[getter]
    fn collected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.shared(py)?;
        let collected = py.detach(|| shared.state().collected());
        describe(py, collected)
    }

    /// Writes down what happened since the last time, but for the last millisecond, and answers with what was done so
    /// far: a `Collected`.
    ///
    /// To be called before any node has as many jobs as the graph remembers, if no thread does that.
    fn collect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.shared(py)?;
        py.detach(|| shared.state().collect());
        self.collected(py)
    }

    /// Writes down all that happened up to now, and ends the recording. Answers with what was done: a `Collected`.
    ///
    /// Raises OSError if the file could not be written.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shared = self.shared(py)?;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let collected = py.detach(|| {
            let finished = shared.finish();
            thread.map(JoinHandle::join);
            finished
        });
        describe(py, collected.map_err(|(path, error)| file_error(&path, error))?)
    }

    /// The trace, once the recording is finished; read from its file if there is one. If jobs were lost its `damage`
    /// says that it was cut off.
    ///
    /// Raises UseError before, OSError, TraceError if the file is none.
    #[getter]
    fn trace(&self, py: Python<'_>) -> PyResult<PyTrace> {
        let path = match &*self.shared(py)?.state() {
            State::Running { .. } => {
                return Err(misuse(py, "the recording goes on; finish it, or leave `with`, to have its trace"));
            }
            State::Finished { kept: Kept::Nowhere, .. } => {
                return Err(misuse(py, "the recording could not be written; record again"));
            }
            State::Finished { kept: Kept::Memory(records), collected } => {
                let trace = PyTrace::whole(self.header.clone(), records.clone());
                let lost = collected.lost;
                let text = format!("{lost} jobs were forgotten before they were collected: the recording was cut off");
                return Ok(if lost == 0 { trace } else { trace.damaged(text) });
            }
            State::Finished { kept: Kept::File(path), .. } => path.clone(),
        };
        read_trace(py, path, false)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.finish(py).map(drop)
    }

    fn __repr__(&self) -> String {
        format!("<laxity.live.Recording of graph \"{}\">", self.header.workload)
    }
}

impl Drop for PyRecording {
    fn drop(&mut self) {
        if std::process::id() == self.pid {
            // An unfinished recording is cut off. The thread needs no GIL to end.
            drop(self.shared.end(&mut self.shared.state()));
            let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
            thread.map(JoinHandle::join);
        }
    }
}

fn describe(py: Python<'_>, collected: Collected) -> PyResult<Bound<'_, PyAny>> {
    let Collected { records, missed, lost, late } = collected;
    let fields = PyDict::new(py);
    for (name, number) in [("records", records), ("missed", missed), ("lost", lost), ("late", late)] {
        fields.set_item(name, number)?;
    }
    py.import("laxity.live._describe")?.getattr("Collected")?.call((), Some(&fields))
}
