//! `laxity gpu irq`: the interrupts of this machine's GPUs, and the threads that handle them.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::interrupts::{self, Found, Gpu, Interrupt, Thread};
use crate::commands::named::{live, pretty};
use crate::error::CliError;
use crate::output::Output;
use crate::style::{FAINT, RESET, STRONG};
use crate::table::{Cell, Table};

/// Find the GPUs of this machine, their interrupts and the threads that handle them, and say what can be done.
///
/// Where a thread handles a GPU's interrupts, its priority says whose work they may delay (paper 000: klmirqd). Whether there is one is for the driver and the kernel: a driver that serves an interrupt at once, in the hard interrupt, has none.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu irq
  laxity gpu irq --json | jq '.gpus[].interrupts[].threads[].pid'

Exit codes: 0 it worked, also if there is no GPU; 1 /sys or /proc cannot be read; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Read sys and proc below this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Prints a row for each interrupt of each GPU, and what follows.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let found = interrupts::find(&arguments.root).map_err(live)?;
    if arguments.json {
        return output.print(json(&found));
    }
    if found.gpus.is_empty() {
        output.line(format_args!("{FAINT}no GPU on this machine's PCI bus: there is nothing to handle{RESET}"))?;
        return output.finish();
    }
    output.print(table(&found).render(output.width()))?;
    output.line("")?;
    for gpu in &found.gpus {
        output.line(format_args!("{STRONG}{}{RESET}  {}", gpu.address, gpu.possible(&found.kernel).text()))?;
    }
    output.finish()
}

fn table(found: &Found) -> Table {
    let mut table = Table::of("GPU")
        .text("maker")
        .text("driver")
        .group("interrupt", &["number", "count"])
        .text("threads, priority");
    for gpu in &found.gpus {
        let head = || {
            let driver = gpu.driver.clone().unwrap_or_else(|| "none".to_owned());
            vec![Cell::from(gpu.address.clone()), gpu.maker().into(), driver.into()]
        };
        if gpu.interrupts.is_empty() {
            table.row(head());
        }
        for Interrupt { number, count, threads, .. } in &gpu.interrupts {
            let threads: Vec<String> = threads.iter().map(Thread::to_string).collect();
            let mut cells = head();
            cells.extend([number.to_string(), count.to_string(), threads.join(", ")].map(Cell::from));
            table.row(cells);
        }
    }
    table
}

fn json(found: &Found) -> String {
    #[derive(Serialize)]
    struct Entry<'a> {
        #[serde(flatten)]
        gpu: &'a Gpu,
        possible: &'static str,
    }
    #[derive(Serialize)]
    struct List<'a> {
        laxity: &'static str,
        kernel: &'a interrupts::Kernel,
        gpus: Vec<Entry<'a>>,
        helpers: &'a [Thread],
    }
    let entry = |gpu| Entry { gpu, possible: gpu.possible(&found.kernel).name() };
    let gpus = found.gpus.iter().map(entry).collect();
    pretty(&List { laxity: env!("CARGO_PKG_VERSION"), kernel: &found.kernel, gpus, helpers: &found.helpers })
}
