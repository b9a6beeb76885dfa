//! `laxity bandwidth status`: what this machine offers, which threads hold the lock, and which CPUs are regulated.

use clap::Args;
use laxity_bandwidth::Machine;
use laxity_gpu::Registry;

use super::{json, top};
use crate::commands::gpu::refused;
use crate::commands::named::{live, readable};
use crate::error::CliError;
use crate::output::Output;
use crate::style::{FAINT, RESET};

/// Show what this machine offers for regulation, which threads hold the bandwidth lock, and which CPUs are regulated.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth status
  laxity bandwidth status car
  laxity bandwidth status --json | jq '.machine.hardware_counter'

Exit codes: 0 it worked; 1 the folder cannot be read; 2 bad usage, or no such arbitration.")]
pub struct Arguments {
    /// This arbitration only
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints it.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let names = match &arguments.name {
        Some(name) => vec![name.clone()],
        None => registry.names().map_err(live)?,
    };
    if let [name] = &names[..]
        && arguments.name.is_some()
    {
        registry.look(name).map_err(|error| refused(registry, error))?;
    }
    // Those that are left over have neither holders nor regulators.
    let used = readable(names, |name| Ok::<_, laxity_gpu::RegistryError>(registry.is_in_use(&name)?.then_some(name)));
    let arbitrations = readable(used, |name| registry.attach(&name).map(|arbitration| Some((name, arbitration))));
    let machine = Machine::look();
    if arguments.json {
        let states = arbitrations.iter().map(|(name, arbitration)| json::State::of(name, arbitration));
        return output.print(json::status(&machine, states.collect::<Result<_, _>>().map_err(live)?));
    }
    let cpus: Vec<String> = machine.cpus.iter().map(usize::to_string).collect();
    output.line(format_args!("CPUs              {}", cpus.join(", ")))?;
    let parts = [
        ("real time         ", &machine.real_time, "regulators may be SCHED_FIFO; the occupier works"),
        ("freezer           ", &machine.freezer, "control groups can be frozen"),
        ("hardware counter  ", &machine.hardware_counter, "last-level cache misses, to be tried by a hog"),
    ];
    for (what, offered, good) in parts {
        output.line(format_args!("{what}{}", offered.as_ref().map_or_else(String::as_str, |()| good)))?;
    }
    output.line("software counter  programs that count their traffic can always be regulated")?;
    if arbitrations.is_empty() {
        output.line(format_args!("{FAINT}no shared GPUs in {}{RESET}", registry.directory().display()))?;
    }
    for (name, arbitration) in &arbitrations {
        output.line("")?;
        output.line(top::headline(name, arbitration)?)?;
        let table = top::table(arbitration);
        if table.height() > 0 {
            output.print(table.render(output.width()))?;
        }
    }
    Ok(())
}
