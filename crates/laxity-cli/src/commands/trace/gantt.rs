//! `laxity trace FILE gantt`: the schedule as a picture.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use laxity_model::{Instant, Nanos};
use laxity_trace::gantt::{self, Characters, Rows, SvgOptions, TextOptions, Window};

use super::read::Source;
use crate::error::CliError;
use crate::output::Output;
use crate::output_file::OutputFile;
use crate::output_name;

/// Lines are this wide where there is no terminal.
const WIDTH: usize = 120;

/// Draw a trace, as text for the terminal or as SVG for a paper.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity trace car.lxt gantt --to 50ms
  laxity trace car.lxt gantt --from 1s --to \"1050 ms\" --by cpu
  laxity trace car.lxt gantt --to 50ms --svg fig1.svg")]
pub struct Arguments {
    /// Left edge
    #[arg(long, value_name = "TIME", default_value = "0 s", hide_default_value = true)]
    from: Nanos,
    /// Right edge [default: the end of the trace]
    #[arg(long, value_name = "TIME")]
    to: Option<Nanos>,
    /// What has a row
    #[arg(long, value_name = "WHAT", default_value = "both")]
    by: By,
    /// Write an SVG file instead of text
    #[arg(long, value_name = "OUT", value_parser = output_name::svg())]
    svg: Option<PathBuf>,
    /// Width in characters, or of an SVG in pixels [default: the terminal's; 1000 pixels]
    #[arg(long, value_name = "NUMBER")]
    width: Option<u32>,
    /// Draw with ASCII characters only
    #[arg(long, conflicts_with = "svg")]
    ascii: bool,
}

/// What has a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Each CPU.
    Cpu,
    /// Each task.
    Task,
    /// Each CPU, and below them each task.
    Both,
}

/// Prints the chart or writes it.
pub fn run(file: &Path, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    if let Some(to) = arguments.to.filter(|&to| to <= arguments.from) {
        let from = arguments.from;
        let message = format!("--from {from} --to {to} shows no time; choose a right edge later than {from}");
        return Err(CliError::Argument { message });
    }
    let (header, records, ending) = Source::open(file)?.collect();
    let rows = match arguments.by {
        By::Cpu => Rows::Cpus,
        By::Task => Rows::Tasks,
        By::Both => Rows::Both,
    };
    let instant = |span: Nanos| Instant::ZERO.saturating_add(span);
    let window = Window { from: instant(arguments.from), to: arguments.to.map(instant) };
    if let Some(path) = &arguments.svg {
        let default = SvgOptions::default();
        let options = SvgOptions { rows, window, width: arguments.width.unwrap_or(default.width), ..default };
        let drawing = match gantt::svg(&header, &records, &options) {
            Ok(drawing) => drawing,
            Err(error) => return Err(ending.fail(&error.to_string(), "")),
        };
        OutputFile::write(path, drawing.as_bytes())?;
        return ending.whole();
    }
    let characters = if arguments.ascii { Characters::Ascii } else { Characters::Unicode };
    let width = arguments.width.map(|width| width as usize).or(output.width()).unwrap_or(WIDTH);
    match gantt::text(&header, &records, &TextOptions { rows, window, width, characters }) {
        Ok(chart) => output.print(chart)?,
        Err(error) => return Err(ending.fail(&error.to_string(), "")),
    }
    ending.whole()
}
