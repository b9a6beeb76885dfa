//! `laxity bandwidth top`: the lock and the regulated CPUs of an arbitration, again and again.

use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_gpu::{Arbitration, Registry};
use laxity_model::Nanos;

use super::{json, rate};
use crate::commands::gpu::{only, refused};
use crate::commands::graph::display::Display;
use crate::commands::named::{live, parse_interval};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::quantity::{percent, short};
use crate::style::{RESET, STRONG};
use crate::table::{Cell, Table};

/// Watch which threads hold the bandwidth lock, and what regulated CPUs have of their budgets.
///
/// On a terminal a table is drawn again and again in its place; elsewhere a line goes to standard error every 5 s. Ctrl-C ends the watch, and the last table is printed.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth top
  laxity bandwidth top car --once
  laxity bandwidth top car --json --every 1s | jq -c '[.cpus[] | {cpu, throttled_ns}]'

Exit codes: 0 Ctrl-C, or --once; 1 the memory is damaged; 2 bad usage, or no such arbitration.")]
pub struct Arguments {
    /// The arbitration; if there is only one, that
    name: Option<String>,
    /// Print one table, or one line of JSON, and end
    #[arg(long)]
    once: bool,
    /// Look every DURATION [default: 250ms on a terminal, else 5s; 1s with --json]
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    every: Option<Nanos>,
    /// Print a line of JSON for each look
    #[arg(long)]
    json: bool,
}

/// How often to look whether it should end.
const LOOK: Duration = Duration::from_millis(20);

/// Shows it until Ctrl-C.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => only(registry)?,
    };
    let arbitration = registry.attach(&name).map_err(|error| refused(registry, error))?;
    if !arguments.once {
        follow(&name, &arbitration, arguments, output)?;
        if arguments.json {
            return Ok(());
        }
    }
    print(&name, &arbitration, arguments.json, output)
}

fn follow(name: &str, arbitration: &Arbitration, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let interrupt = Interrupt::watch();
    let every = arguments.every.or(arguments.json.then_some(Nanos::from_secs(1)));
    let mut display = Display::new(every.map(|every| Duration::from_nanos(every.0)), false);
    let mut is_first = true;
    while !interrupt.is_requested() && !output.is_closed() {
        if is_first || display.is_due() {
            is_first = false;
            if arguments.json {
                print(name, arbitration, true, output)?;
                display.wait_again();
            } else {
                let line = headline(name, arbitration)?;
                display.show(&line, |width| table(arbitration).render(width));
            }
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

fn print(name: &str, arbitration: &Arbitration, as_json: bool, output: &mut Output) -> Result<(), CliError> {
    if as_json {
        output.line(json::line(&json::State::of(name, arbitration).map_err(live)?))?;
        return output.finish();
    }
    output.line(headline(name, arbitration)?)?;
    output.print(table(arbitration).render(output.width()))
}

/// The lock and its holders, in a line.
pub fn headline(name: &str, arbitration: &Arbitration) -> Result<String, CliError> {
    let snapshot = arbitration.snapshot().map_err(live)?;
    let holder = |client: &laxity_gpu::ClientState| {
        client.bandwidth.map(|budget| format!("{} (process {}) with {}", client.name, client.pid, rate(budget)))
    };
    let holders: Vec<String> = snapshot.clients.iter().filter_map(holder).collect();
    let held = if holders.is_empty() { "free".to_owned() } else { format!("held by {}", holders.join(", ")) };
    Ok(format!("{STRONG}{name}{RESET}: the bandwidth lock is {held}"))
}

/// A row for each regulated CPU.
pub fn table(arbitration: &Arbitration) -> Table {
    let mut table = Table::of("CPU")
        .group("", &["period"])
        .group("now", &["budget"])
        .group("while regulated", &["rate", "allowed", "periods", "throttled, %"])
        .group("regulator", &["process"]);
    for (cpu, sums) in json::regulated(arbitration) {
        let span = sums.periods.saturating_mul(sums.period.0).max(1);
        let per_second = |bytes: u64| rate((u128::from(bytes) * 1_000_000_000 / u128::from(span)) as u64);
        let budget = if sums.budget == 0 { Cell::faint("free") } else { rate(sums.budget).into() };
        table.row(vec![
            cpu.to_string().into(),
            short(sums.period).into(),
            budget,
            per_second(sums.bytes).into(),
            per_second(sums.allowed).into(),
            sums.periods.to_string().into(),
            percent(sums.throttled.0.into(), span.into()).into(),
            sums.pid.to_string().into(),
        ]);
    }
    table
}
