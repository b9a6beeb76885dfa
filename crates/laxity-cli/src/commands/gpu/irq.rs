//! `laxity gpu irq`: the interrupts of this machine's GPUs, and the threads that handle them.

use std::path::PathBuf;

use clap::Args;
use laxity_gpu::Registry;
use serde::Serialize;

use super::follow::{self, Idle, Pair};
use super::interrupts::{self, Found, Gpu, Interrupt, Thread};
use crate::commands::named::{live, pretty};
use crate::error::CliError;
use crate::output::Output;
use crate::style::{FAINT, RESET, STRONG};
use crate::table::{Cell, Table};

/// Find the GPUs of this machine, their interrupts and the threads that handle them, and say what can be done.
///
/// Where a thread handles a GPU's interrupts, its priority says whose work they may delay (paper 000: klmirqd). Whether there is one is for the driver and the kernel: a driver that serves an interrupt at once, in the hard interrupt, has none.
///
/// With --follow these threads have the priority of the thread that holds the GPU's token, with what it inherits, from each change of the holder on, until Ctrl-C or until this process ends in whatever way: then they have their own again. It takes CAP_SYS_NICE.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu irq
  laxity gpu irq --json | jq '.gpus[].interrupts[].threads[].pid'
  laxity gpu irq --follow car                      the only GPU with a driver is GPU 0 of it
  laxity gpu irq --follow car --gpu 0=0000:41:00.0 --idle keep

Exit codes: 0 it worked, also if there is no GPU; 1 /sys or /proc cannot be read, or threads cannot be scheduled; 2 bad usage, or no such arbitration.")]
pub struct Arguments {
    /// Give the threads the priority of the holders of this arbitration's tokens, until Ctrl-C
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    follow: Option<String>,
    /// Which GPU of this machine is GPU N of the arbitration [default: by their addresses]
    #[arg(long = "gpu", value_name = "N=ADDRESS", requires = "follow")]
    gpus: Vec<Pair>,
    /// Their priority while no thread holds a token, or `keep` for the one they had
    #[arg(long, value_name = "PRIORITY", default_value = "1", requires = "follow")]
    idle: Idle,
    /// Give threads what lines of standard input say, at its end
    #[arg(long, hide = true)]
    restore: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Read sys and proc below this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Prints a row for each interrupt of each GPU, and what follows.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    if arguments.restore {
        return follow::restore();
    }
    let found = interrupts::find(&arguments.root).map_err(live)?;
    if let Some(name) = &arguments.follow {
        return follow::run(registry, name, &arguments.gpus, arguments.idle, &found, output);
    }
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
