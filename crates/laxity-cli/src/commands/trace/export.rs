//! `laxity trace FILE export`: the trace for other programs.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use laxity_model::Instant;
use laxity_model::text::printable_lines;
use laxity_trace::perfetto::{ExportError, Exporter};
use laxity_trace::table::arrow::{ArrowRow, batch, ipc};
use laxity_trace::{Event, Record, Sink, TraceHeader, table};

use super::read::Source;
use crate::error::CliError;
use crate::output::{Output, must_be_open};
use crate::output_file::OutputFile;

/// Convert a trace for other programs.
///
/// Perfetto traces open in <https://ui.perfetto.dev>: the CPUs' schedules, the tasks' jobs, deadlines and misses.
/// Tables have a row for each job, event or interval; times are in ns and their names end in _ns.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity trace car.lxt export -o car.pftrace                     for ui.perfetto.dev
  laxity trace car.lxt export -o jobs.parquet                    one row a job
  laxity trace car.lxt export --table events -o events.csv
  laxity trace car.lxt export --format csv -o - | head           to standard output

Extensions: .perfetto .pftrace .perfetto-trace, .parquet, .arrow .arrows, .csv, .json")]
pub struct Arguments {
    /// Where it goes; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The format [default: what OUT's extension says]
    #[arg(long)]
    format: Option<Format>,
    /// Which table [default: jobs]
    #[arg(long)]
    table: Option<Table>,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For the Perfetto UI.
    Perfetto,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC stream.
    Arrow,
    /// Comma-separated values with a line of column names.
    Csv,
    /// A list of objects, one on each line.
    Json,
}

/// What a table has rows for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Table {
    /// Each job: release, deadline, completion, response time, lateness and more.
    Jobs,
    /// Each event, as it was recorded.
    Events,
    /// Each span of execution, overhead, waiting or suspension.
    Intervals,
}

/// Converts the trace, or the part of it that can be read.
pub fn run(file: &Path, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let format = format(arguments)?;
    if format == Format::Perfetto && arguments.table.is_some() {
        let message =
            "a Perfetto trace is no table; leave --table out, or choose parquet, arrow, csv or json".to_owned();
        return Err(CliError::Argument { message });
    }
    let source = Source::open(file)?;
    let header = source.header().clone();
    output.finish()?;
    let mut destination = Destination::open(&arguments.output)?;
    let written = match format {
        Format::Perfetto => {
            let mut sink = PerfettoSink::new(&header, &mut destination);
            let ending = source.stream(&mut sink);
            sink.finish().map(|()| ending)
        }
        _ => {
            let (header, records, ending) = source.collect();
            let table = arguments.table.unwrap_or(Table::Jobs);
            write_table(table, format, &header, &records, &mut destination).map(|()| ending)
        }
    };
    let ending = match (written, destination.error.take()) {
        (_, Some(source)) if destination.file.is_none() => return Err(CliError::Print(source)),
        (_, Some(source)) => return Err(CliError::Write { path: arguments.output.clone(), source }),
        (Err(reason), None) => return Err(CliError::Convert { path: file.to_owned(), reason }),
        (Ok(ending), None) => ending,
    };
    destination.commit()?;
    ending.whole()
}

/// The format asked for, or the one that the extension names.
fn format(arguments: &Arguments) -> Result<Format, CliError> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let extension = arguments.output.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("perfetto" | "pftrace" | "perfetto-trace") => Ok(Format::Perfetto),
        Some("parquet") => Ok(Format::Parquet),
        Some("arrow" | "arrows") => Ok(Format::Arrow),
        Some("csv") => Ok(Format::Csv),
        Some("json") => Ok(Format::Json),
        _ => {
            let output = arguments.output.display();
            let message = format!(
                "cannot tell the format from `{output}`; name it with --format: perfetto, parquet, arrow, csv or json"
            );
            Err(CliError::Argument { message })
        }
    }
}

/// Writes a Perfetto trace as records come, in memory that does not depend on their number.
struct PerfettoSink<'a, W: Write> {
    /// Until something fails.
    exporter: Result<Exporter<'a, W>, ExportError>,
}

impl<'a, W: Write> PerfettoSink<'a, W> {
    fn new(header: &'a TraceHeader, writer: W) -> Self {
        PerfettoSink { exporter: Exporter::new(header, writer) }
    }

    fn finish(self) -> Result<(), String> {
        let finished = self.exporter.and_then(Exporter::finish);
        finished.map(|_| ()).map_err(|error| error.to_string())
    }
}

impl<W: Write> Sink for PerfettoSink<'_, W> {
    fn record(&mut self, at: Instant, event: Event) {
        if let Ok(exporter) = &mut self.exporter
            && let Err(error) = exporter.record(&Record { at, event })
        {
            self.exporter = Err(error);
        }
    }
}

fn write_table(
    which: Table,
    format: Format,
    header: &TraceHeader,
    records: &[Record],
    out: &mut Destination,
) -> Result<(), String> {
    match which {
        Table::Jobs => write_rows(format, header, table::jobs(header, records).map_err(in_words)?, out),
        Table::Events => write_rows(format, header, table::events(header, records).collect(), out),
        Table::Intervals => write_rows(format, header, table::intervals(header, records).map_err(in_words)?, out),
    }
}

fn write_rows<R: ArrowRow>(
    format: Format,
    header: &TraceHeader,
    rows: Vec<R>,
    out: &mut Destination,
) -> Result<(), String> {
    let arrow = || batch(header, &rows).map_err(in_words);
    match format {
        Format::Csv => table::csv(rows, out).map_err(in_words),
        Format::Json => write_json(&rows, out).map_err(in_words),
        Format::Arrow => out.write_all(&ipc(&arrow()?).map_err(in_words)?).map_err(in_words),
        Format::Parquet => table::parquet(&arrow()?, out).map_err(in_words),
        Format::Perfetto => unreachable!("a Perfetto trace is no table"),
    }
}

/// A list of objects, one on each line: a JSON document that tools for lines can cut, too.
fn write_json<R: table::Row>(rows: &[R], out: &mut Destination) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    for (number, row) in rows.iter().enumerate() {
        out.write_all(if number == 0 { b"[\n" } else { b",\n" })?;
        serde_json::to_writer(&mut out, row)?;
    }
    out.write_all(if rows.is_empty() { b"[]\n" } else { b"\n]\n" })?;
    out.flush()
}

fn in_words(error: impl std::error::Error) -> String {
    error.to_string()
}

/// Where an export goes. Keeps the first failure of the operating system: exporters report it in words of their own.
struct Destination {
    file: Option<OutputFile>,
    error: Option<io::Error>,
}

impl Destination {
    /// A file, or standard output for `-`.
    fn open(path: &Path) -> Result<Self, CliError> {
        let file = if path.as_os_str() == "-" { None } else { Some(OutputFile::create(path)?) };
        if file.is_none() {
            must_be_open()?;
        }
        Ok(Destination { file, error: None })
    }

    fn commit(self) -> Result<(), CliError> {
        self.file.map_or(Ok(()), OutputFile::commit)
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.file {
            Some(file) => file.write(bytes),
            // A program gets the bytes as they are; a terminal gets no control sequences.
            None if io::stdout().is_terminal() => {
                let shown = printable_lines(&String::from_utf8_lossy(bytes)).into_owned();
                io::stdout().write_all(shown.as_bytes()).map(|()| bytes.len())
            }
            None => match io::stdout().write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
                written => written,
            },
        };
        written.inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                let copy = error.raw_os_error().map_or(error.kind().into(), io::Error::from_raw_os_error);
                self.error.get_or_insert(copy);
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => match io::stdout().flush() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                flushed => flushed,
            },
        }
    }
}
