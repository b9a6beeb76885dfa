//! `laxity gpu top`: the holders and waiters of each GPU, until the arbitration ends.

use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_gpu::{Registry, RegistryError, Snapshot};
use laxity_model::Nanos;
use laxity_sys::clock;

use super::{json, refused, view};
use crate::commands::graph::display::Display;
use crate::commands::named::{live, parse_interval};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::quantity::counted;
use crate::style::{RESET, STRONG};

/// Watch which clients hold and wait for each GPU and engine, until the arbitration ends.
///
/// On a terminal a table is drawn again and again in its place; elsewhere a line goes to standard error every 5 s. In the end the last table is printed. Ctrl-C ends the watch, and nothing else: looking delays no client. Waiting clients are listed in the order in which they will be granted. `a ← b` says that b, which finds all queues full, donates its priority to a; `20 → 50` that a holder of priority 20 inherits 50. `follows` is a thread that works on behalf of the GPU's holders, such as one that handles its interrupts, with its present priority. `operation` is what the holder of an engine runs or ran last, by the name that its program gives it; programs under `laxity gpu exec` say it while a watch looks. A client with `bandwidth` holds the bandwidth lock, with what it leaves to each regulated CPU; `program` is a stream of a program, with its operations, how long it waited altogether, and whether it waits now. `stopped` beside a process: it is stopped (SIGSTOP), and unlocks nothing until it goes on.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu top
  laxity gpu top car --once
  laxity gpu top car --json --every 1s | jq -c '[.gpus[].tokens[].holder]'

Exit codes: 0 it ended, or Ctrl-C; 1 its processes were killed; 2 bad usage, or no such arbitration.")]
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

/// How often to look whether it ended.
const LOOK: Duration = Duration::from_millis(20);

/// How long a single look waits for what clients say.
const ONCE: Duration = Duration::from_millis(50);

/// So long after the last look clients still say what they do.
const WATCH: Nanos = Nanos::from_secs(2);

/// How often lines of JSON come, unless the command line says.
const JSON_EVERY: Nanos = Nanos::from_secs(1);

/// What a look finds.
enum Found {
    /// Someone uses it.
    Used(Box<Snapshot>),
    /// All its processes were killed.
    LeftOver,
    /// The last process has left.
    Ended,
}

/// Shows one arbitration until it ends.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => only(registry)?,
    };
    let killed =
        || live(format_args!("arbitration {name}: all its processes were killed; remove it with `laxity gpu gc`"));
    let first = match look(registry, &name)? {
        Found::Used(first) => *first,
        Found::LeftOver => return Err(killed()),
        Found::Ended => return Err(refused(registry, RegistryError::NotFound { name })),
    };
    if arguments.once {
        // Clients say what they do from the first look on.
        let is_quiet = first.clients.is_empty();
        thread::sleep(if is_quiet { Duration::ZERO } else { ONCE });
        return match look(registry, &name)? {
            Found::Used(second) => print(&second, arguments.json, output),
            Found::LeftOver | Found::Ended => print(&first, arguments.json, output),
        };
    }
    let (last, was_killed) = follow(registry, first, arguments, output)?;
    if !arguments.json {
        print(&last, false, output)?;
    }
    if was_killed { Err(killed()) } else { Ok(()) }
}

/// The name of the only arbitration.
pub fn only(registry: &Registry) -> Result<String, CliError> {
    let mut names = registry.names().map_err(live)?;
    let message = match names.len() {
        1 => return Ok(names.remove(0)),
        0 => format!("no GPUs are shared in {}; create an arbitration first", registry.directory().display()),
        _ => format!("which arbitration? write one of {}", names.join(", ")),
    };
    Err(CliError::Argument { message })
}

fn look(registry: &Registry, name: &str) -> Result<Found, CliError> {
    // Names of operations are said while a watcher asks for them. If it cannot ask, looking fails, too.
    let _ = registry.watch(name, WATCH);
    // In this order: one whose last process leaves in between has ended and was not killed.
    let found = registry.look(name).and_then(|look| Ok((look, registry.is_in_use(name)?)));
    match found {
        Ok((look, true)) => Ok(Found::Used(Box::new(look))),
        Ok((_, false)) => Ok(Found::LeftOver),
        Err(RegistryError::NotFound { .. }) => Ok(Found::Ended),
        Err(error) => Err(refused(registry, error)),
    }
}

/// Until it ends, or Ctrl-C. Answers the last look, and whether its processes were killed.
fn follow(
    registry: &Registry,
    first: Snapshot,
    arguments: &Arguments,
    output: &mut Output,
) -> Result<(Snapshot, bool), CliError> {
    let interrupt = Interrupt::watch();
    let every = arguments.every.or(arguments.json.then_some(JSON_EVERY));
    let mut display = Display::new(every.map(|every| Duration::from_nanos(every.0)), false);
    let mut last = first;
    let mut is_first = true;
    loop {
        if is_first || display.is_due() {
            is_first = false;
            match arguments.json {
                true => {
                    print(&last, true, output)?;
                    display.wait_again();
                }
                false => show(&last, &mut display),
            }
        }
        if interrupt.is_requested() || output.is_closed() {
            return Ok((last, false));
        }
        thread::sleep(LOOK);
        last = match look(registry, &last.name)? {
            Found::Used(look) => *look,
            Found::LeftOver => return Ok((last, true)),
            Found::Ended => return Ok((last, false)),
        };
    }
}

fn show(look: &Snapshot, display: &mut Display) {
    let line = format!(
        "{STRONG}{}{RESET}: {}; {} of {} held, {}, {} waiting",
        look.name,
        counted(look.config.gpus.into(), "GPU"),
        view::held(look),
        counted(look.tokens.holders.len() as u64, "token"),
        counted(look.clients.len() as u64, "client"),
        view::waiting(look),
    );
    let rows = display.rows();
    display.show(&line, |width| view::table(look, clock::now(), rows).render(width));
}

fn print(look: &Snapshot, as_json: bool, output: &mut Output) -> Result<(), CliError> {
    if as_json {
        output.line(json::line(look, clock::now()))?;
        return output.finish();
    }
    output.print(view::table(look, clock::now(), usize::MAX).render(output.width()))
}
