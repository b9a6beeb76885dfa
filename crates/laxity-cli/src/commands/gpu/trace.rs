//! `laxity gpu trace`: a trace of what programs under an arbitration logged.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use laxity_interpose::trace::{LogError, Logs};
use laxity_trace::Sink;
use laxity_trace::codec::TraceWriter;

use crate::commands::named::live;
use crate::error::CliError;
use crate::input;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::quantity::counted;

/// Make a trace of the logs of programs that ran under one arbitration.
///
/// Each stream of a program is a task, each of its jobs what it did until it waited (or in a period). The trace has launches, copies, requests, grants and unlocks, for `laxity trace`: check judges it, gantt draws it, metrics measures it.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu exec --log run -- ./detector
  laxity gpu trace run -o run.lxt && laxity trace run.lxt check

Exit codes: 0 it worked; 1 a log is damaged, or there is none; 2 bad usage.")]
pub struct Arguments {
    /// The folder that programs logged to
    folder: PathBuf,
    /// The trace
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Reads the logs and writes the trace.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    for log in fs::read_dir(&arguments.folder).into_iter().flatten().flatten() {
        if let Ok(metadata) = log.metadata() {
            input::remember(&metadata, &input::name(&log.path()));
        }
    }
    let logs = Logs::read(&arguments.folder).map_err(|error: LogError| live(error))?;
    for log in logs.cut_off() {
        output::warning(format_args!(
            "{}: it ends within a line, as its program was killed or had no room on its disk; the trace lacks what it did then",
            log.display()
        ));
    }
    let records = logs.records();
    let write = |source| CliError::Write { path: arguments.output.clone(), source };
    let file = OutputFile::create(&arguments.output)?;
    let mut writer = TraceWriter::new(file, &logs.header()).map_err(write)?;
    for record in &records {
        writer.record(record.at, record.event);
    }
    writer.finish().map_err(write)?.commit()?;
    let (streams, records) = (counted(logs.streams() as u64, "stream"), counted(records.len() as u64, "record"));
    output.line(format_args!("{}: {records} of {streams}", arguments.output.display()))
}
