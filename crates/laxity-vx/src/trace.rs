//! The trace of a graph that Laxity's scheduler schedules, written while it runs.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_device::{Device, HandlingRecorder, HandlingRecording};
use laxity_graph::Spec;
use laxity_model::Instant;
use laxity_runtime::{CutOff, GraphRecording, NodeLog, RecordedGpus, ServiceLog};
use laxity_sched::Watch;
use laxity_trace::codec::TraceWriter;

use crate::error::SpawnError;
use crate::options::SpawnOptions;
use crate::shared::Shared;

/// How often what nodes noted is collected.
const LOOK: Duration = Duration::from_millis(5);

/// A trace whose nodes have not begun.
pub(crate) struct Trace {
    recording: GraphRecording,
    /// Of the threads that handle interrupts.
    handling: Option<HandlingRecording>,
    writer: TraceWriter<BufWriter<File>>,
    /// The system's name.
    system: String,
    path: PathBuf,
}

/// A trace that is being written.
#[derive(Debug)]
pub(crate) struct Tracing(Option<JoinHandle<Result<(), TraceError>>>);

/// Why there is no whole trace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TraceError {
    /// It cannot be written.
    #[error("{}: cannot be written: {error}; choose another path", path.display())]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// Nodes did more than could be collected in time.
    #[error("{}: nodes did more than could be collected, so that the trace is cut off; lengthen the period", path.display())]
    CutOff { path: PathBuf },
    /// It would not show what a task of the system does that is none of the graph's.
    #[error(
        "{}: task {task} of system {system} is none of the graph's, so that the trace lacks what it does; give the graph a \
         system of its own",
        path.display()
    )]
    Stranger { path: PathBuf, task: String, system: String },
}

/// Notes what a thread does that handles interrupts.
#[derive(Debug)]
struct Recorder(ServiceLog);

impl HandlingRecorder for Recorder {
    fn serves(&mut self, serve: &mut dyn FnMut(&mut dyn Watch)) {
        self.0.serves(serve);
    }

    fn completes(&mut self, complete: &mut dyn FnMut(&mut dyn Watch)) {
        self.0.completes(complete);
    }
}

/// The GPUs of `device` as a trace shows them.
fn recorded(device: &Device) -> RecordedGpus {
    let scheduling = device.scheduling();
    RecordedGpus {
        gpus: device.gpus().to_vec(),
        are_locked: scheduling.is_some_and(|scheduling| scheduling.management.is_some()),
        handlers: device.handlers(),
    }
}

impl Trace {
    /// That of `options`, if one is wanted, and the log of each node.
    ///
    /// # Errors
    /// [`SpawnError::Trace`].
    pub fn begin(options: &SpawnOptions, spec: &Spec) -> Result<(Option<Trace>, Vec<NodeLog>), SpawnError> {
        let Some((path, system)) = options.trace.as_ref().zip(options.system.as_ref()) else {
            return Ok((None, Vec::new()));
        };
        let refused = |reason| SpawnError::Trace { reason };
        let gpus = options.gpu.as_ref().map(recorded).unwrap_or_default();
        let begun = GraphRecording::new(spec, system, options.frames(), gpus).map_err(refused)?;
        let (recording, logs, services) = begun;
        let file = |error| refused(TraceError::File { path: path.clone(), error }.to_string());
        let writer = BufWriter::new(File::create(partial(path)).map_err(file)?);
        let writer = TraceWriter::new(writer, recording.header()).map_err(file)?;
        let recorders = services.into_iter().map(|log| Box::new(Recorder(log)) as Box<dyn HandlingRecorder>).collect();
        let handling = options.gpu.as_ref().map(|device| device.record_handling(recorders));
        let (system, path) = (system.name().to_owned(), path.clone());
        Ok((Some(Trace { recording, handling, writer, system, path }), logs))
    }

    /// Its time 0.
    pub fn start(&mut self, start: Instant) {
        self.recording.begin(start);
    }

    /// Writes it on a thread of its own, until the graph of `shared` has ended.
    ///
    /// # Errors
    /// That there is no thread.
    pub fn write(self, shared: Arc<Shared>) -> io::Result<Tracing> {
        let write = move || self.write_until_end(&shared);
        Ok(Tracing(Some(thread::Builder::new().name("trace".to_owned()).spawn(write)?)))
    }

    fn write_until_end(mut self, shared: &Shared) -> Result<(), TraceError> {
        loop {
            // In this order: what is collected of a graph that has ended is all there is.
            let has_ended = shared.frames.have_ended();
            self.recording.collect(&mut self.writer);
            if has_ended {
                break;
            }
            thread::sleep(LOOK);
        }
        let Trace { recording, handling, mut writer, system, path } = self;
        drop(handling);
        let finished = recording.finish(&mut writer);
        let file = |error| TraceError::File { path: path.clone(), error };
        let inner = writer.finish().map_err(file)?;
        inner.into_inner().map_err(|error| file(error.into_error()))?;
        fs::rename(partial(&path), &path).map_err(file)?;
        finished.map_err(|why| match why {
            CutOff::Full => TraceError::CutOff { path },
            CutOff::Stranger(task) => TraceError::Stranger { path, task, system },
        })
    }
}

impl Tracing {
    /// Waits until all is written; the graph has ended.
    pub fn end(&mut self) -> Result<(), TraceError> {
        let Some(thread) = self.0.take() else { return Ok(()) };
        thread.join().expect("the thread that writes a trace does not panic")
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // An error was for those that waited for the graph.
        let _ = self.end();
    }
}

/// Beside `path`: a trace is there when it is whole.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}
