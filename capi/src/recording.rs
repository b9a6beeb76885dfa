//! Recording what happens in a graph as a trace file.

use std::ffi::c_char;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ::laxity_graph::{Collected, Collector, Graph};
use laxity_trace::codec::TraceWriter;

use crate::error::{CallError, Error, answer, laxity_result};
use crate::graph::laxity_graph;
use crate::handle::{self, Handle, out, text};

/// A trace file that is being written. Threads may share it.
pub struct laxity_recording {
    _opaque: (),
}

impl Handle for laxity_recording {
    type Value = Mutex<Recording>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-reco");
    const NAME: &'static str = "recording";
}

/// The progress of a recording.
#[repr(C)]
pub struct laxity_collected {
    /// Records written.
    records: u64,
    /// Jobs that were over and forgotten before the recording began.
    missed: u64,
    /// Jobs that were forgotten since, before they were collected: collect more often, or make the recorder deeper. The
    /// trace then counts as cut off.
    lost: u64,
    /// Beginnings and completions that were written down so late that they have the time of later ones.
    late: u64,
}

impl From<Collected> for laxity_collected {
    fn from(Collected { records, missed, lost, late }: Collected) -> Self {
        laxity_collected { records, missed, lost, late }
    }
}

/// The value of a recording's handle.
pub(crate) struct Recording {
    collector: Collector,
    trace: TraceWriter<File>,
    path: PathBuf,
}

impl Recording {
    fn new(graph: &Graph, path: &Path) -> Result<Self, Error> {
        let collector = Collector::new(graph)?;
        let trace = File::create(path).and_then(|file| TraceWriter::new(file, collector.header()));
        let trace = trace.map_err(|error| at(path, error))?;
        Ok(Recording { collector, trace, path: path.to_owned() })
    }

    fn finish(mut self) -> Result<Collected, Error> {
        let collected = self.collector.finish(&mut self.trace);
        self.trace.finish().map_err(|error| at(&self.path, error))?;
        Ok(collected)
    }
}

fn at(path: &Path, error: io::Error) -> Error {
    CallError::File { path: path.to_owned(), error }.into()
}

/// Begins to record the graph in the trace file `path`, which is replaced, from the oldest jobs that the graph
/// remembers. Collect and finish it afterwards. LAXITY_ERROR_NO_RECORDER if the graph remembers no jobs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_graph_record(
    graph: *const laxity_graph,
    path: *const c_char,
    recording: *mut *mut laxity_recording,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `recording` can be written.
        let recording = unsafe { out(recording, "recording") }?;
        *recording = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `path` ends with NUL.
        let (graph, path) = unsafe { (handle::get(graph)?, text(path, "path")?) };
        *recording = handle::make(Mutex::new(Recording::new(graph, Path::new(path))?));
        Ok(())
    })
}

/// Writes what happened since the last call, except in the last millisecond. Call it again before any node has had as
/// many jobs as the graph remembers. `collected`, which may be NULL, is about the whole recording.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_recording_collect(
    recording: *mut laxity_recording,
    collected: *mut laxity_collected,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let recording = unsafe { handle::get(recording.cast_const()) }?;
        // A collection that panics leaves whole records.
        let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
        let Recording { collector, trace, .. } = &mut *recording;
        let now = collector.collect(trace);
        // SAFETY: the caller promises that `collected` can be written unless it is null.
        if let Some(collected) = unsafe { collected.as_mut() } {
            *collected = now.into();
        }
        Ok(())
    })
}

/// Writes all that happened up to now, closes the file and releases the recording. `*recording` is NULL then, also if
/// the file could not be written (LAXITY_ERROR_FILE); if it is already, nothing happens. `collected` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_recording_finish(
    recording: *mut *mut laxity_recording,
    collected: *mut laxity_collected,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not used any more.
        let Some(recording) = (unsafe { handle::take(recording) })? else { return Ok(()) };
        let now = recording.into_inner().unwrap_or_else(PoisonError::into_inner).finish()?;
        // SAFETY: the caller promises that `collected` can be written unless it is null.
        if let Some(collected) = unsafe { collected.as_mut() } {
            *collected = now.into();
        }
        Ok(())
    })
}
