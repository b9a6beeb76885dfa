//! The trace of a live graph, written while the graph runs.

use std::path::{Path, PathBuf};

use laxity_graph::{Collected, Collector, Graph};
use laxity_trace::codec::TraceWriter;

use super::live;
use crate::error::CliError;
use crate::output_file::{Failed, OutputFile};
use crate::quantity::counted;

/// A trace that is being written. Its file is in its place when it has [ended](Recording::end).
pub struct Recording {
    path: PathBuf,
    collector: Collector,
    writer: TraceWriter<OutputFile>,
    failed: Failed,
}

impl Recording {
    /// Begins the trace of `graph` with the oldest jobs that its nodes remember.
    ///
    /// # Errors
    /// That they remember none, or that `path` cannot be written.
    pub fn begin(graph: &Graph, path: &Path) -> Result<Recording, CliError> {
        let collector = Collector::new(graph).map_err(live)?;
        let file = OutputFile::create(path)?;
        let failed = file.failed();
        let writer = TraceWriter::new(file, collector.header())
            .map_err(|source| CliError::Write { path: path.to_owned(), source })?;
        Ok(Recording { path: path.to_owned(), collector, writer, failed })
    }

    /// Writes what happened since the last time. To be called often: nodes remember a limited number of jobs.
    pub fn go_on(&mut self) -> Collected {
        self.collector.collect(&mut self.writer)
    }

    /// Whether something could not be written; [`Recording::end`] says what.
    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Writes the rest and puts the file in its place.
    ///
    /// # Errors
    /// That it cannot be written.
    pub fn end(mut self) -> Result<Collected, CliError> {
        let collected = self.collector.finish(&mut self.writer);
        let file = self.writer.finish().map_err(|source| CliError::Write { path: self.path, source })?;
        file.commit()?;
        Ok(collected)
    }
}

/// What is missing from the trace at `path`, and `way_out`; nothing if it is whole.
pub fn flaw(path: &Path, collected: Collected, way_out: &str) -> Option<String> {
    let (path, jobs) = (path.display(), counted(collected.lost, "job"));
    let flaw = || format!("{path}: {jobs} forgotten before they were read, so that the trace is cut off; {way_out}");
    (collected.lost > 0).then(flaw)
}
