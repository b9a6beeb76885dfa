//! `laxity gpu irq --follow`: the threads of a GPU's interrupts are as urgent as the thread that holds its token: klmirqd, on
//! hardware.
//!
//! ```text
//!  laxity gpu irq --follow        a holder changes  ->  reads the holders' priorities  ->  gives them to irq/NN-*
//!        |  its standard input stays open as long as that one lives
//!  laxity gpu irq --restore       input has ended, in whatever way  ->  gives the threads what they had
//! ```

use std::fmt;
use std::io;
use std::process::Command;
use std::str::FromStr;

use laxity_gpu::{HolderWatch, Registry, TokenHolder};
use laxity_model::text::printable;
use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use laxity_sys::restorer::{self, Restorer};
use laxity_sys::scheduling::{self, Attributes};

use super::interrupts::{Found, Gpu, Possible};
use super::refused;
use crate::commands::named::live;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};

/// Above every holder, as the threads are that see to members that die.
const OWN_PRIORITY: u8 = 98;
/// A change that a program makes by itself, and Ctrl-C, are seen after this time at the latest.
const LOOK: Nanos = Nanos::from_millis(100);

/// The priority of the threads while no thread holds a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// The one that they had.
    Keep,
    /// This one, 1 to 99.
    At(u8),
}

/// Which GPU of the machine is one of the arbitration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    number: u16,
    address: String,
}

impl FromStr for Idle {
    type Err = String;

    fn from_str(text: &str) -> Result<Idle, String> {
        match text.parse() {
            Ok(priority @ 1..=99) => Ok(Idle::At(priority)),
            _ if text == "keep" => Ok(Idle::Keep),
            _ => Err("write a priority of 1 to 99, or keep".to_owned()),
        }
    }
}

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Pair, String> {
        let parts = text.split_once('=').and_then(|(number, address)| Some((number.parse().ok()?, address)));
        let (number, address) = parts.ok_or("write NUMBER=ADDRESS, as in 0=0000:41:00.0")?;
        Ok(Pair { number, address: address.to_owned() })
    }
}

/// A thread of the kernel that handles an interrupt.
#[derive(Clone, Debug)]
struct Handler {
    /// The GPU of the arbitration.
    gpu: u16,
    pid: u32,
    name: String,
    /// How Linux scheduled it at first, and does now.
    own: Attributes,
    now: Attributes,
}

/// Follows the holders of arbitration `name` until Ctrl-C.
pub fn run(
    registry: &Registry,
    name: &str,
    pairs: &[Pair],
    idle: Idle,
    found: &Found,
    output: &mut Output,
) -> Result<(), CliError> {
    let interrupt = Interrupt::watch();
    let arbitration = registry.attach(name).map_err(|error| refused(registry, error))?;
    let gpus = matched(name, arbitration.config().gpus, pairs, found)?;
    let mut handlers = Vec::new();
    for (number, gpu) in (0..).zip(gpus) {
        handlers.extend(handlers_of(number, gpu, found)?);
    }
    if let Err(error) = scheduling::set_fifo(OWN_PRIORITY) {
        return Err(live(format_args!(
            "Linux refuses SCHED_FIFO at {OWN_PRIORITY}, above all holders ({error}); {PERMISSION}"
        )));
    }
    let restorer = restorer(&handlers)?;
    let result = follow(&mut arbitration.watch_holders(), &mut handlers, idle, &interrupt, output);
    if !restorer.end().map_err(live)? {
        return Err(live("not all threads have their own priorities again"));
    }
    let changes = result?;
    output.line(format_args!("{changes} changes of priority; all threads are as they were"))?;
    output.finish()
}

/// What it takes, for errors.
const PERMISSION: &str =
    "it takes CAP_SYS_NICE: run it as root, or as the arbitration's user with that capability (setpriv)";

/// The GPU of the machine for each of the arbitration's.
fn matched<'a>(name: &str, gpus: u16, pairs: &[Pair], found: &'a Found) -> Result<Vec<&'a Gpu>, CliError> {
    let all = || found.gpus.iter().map(|gpu| gpu.address.as_str()).collect::<Vec<_>>().join(", ");
    let usage = |message| CliError::Argument { message };
    if let Some(pair) = pairs.iter().find(|pair| pair.number >= gpus) {
        return Err(usage(format!("--gpu {}: arbitration {name} has {gpus}, counted from 0", pair.number)));
    }
    if pairs.is_empty() {
        let used: Vec<&Gpu> = found.gpus.iter().filter(|gpu| gpu.driver.is_some()).collect();
        if used.len() == usize::from(gpus) {
            return Ok(used);
        }
        let message = format!(
            "arbitration {name} has {gpus} GPUs, and {} of this machine have a driver ({}); say which are which: --gpu 0=ADDRESS",
            used.len(),
            all()
        );
        return Err(usage(message));
    }
    let of = |number| {
        let Some(pair) = pairs.iter().find(|pair| pair.number == number) else {
            let message =
                format!("--gpu says nothing of GPU {number} of arbitration {name}; add --gpu {number}=ADDRESS");
            return Err(usage(message));
        };
        let gpu = found.gpus.iter().find(|gpu| gpu.address == pair.address);
        gpu.ok_or_else(|| {
            let address = printable(&pair.address);
            usage(format!("--gpu {number}={address}: this machine has no GPU there; it has {}", all()))
        })
    };
    (0..gpus).map(of).collect()
}

/// The threads that handle the interrupts of a GPU.
fn handlers_of(number: u16, gpu: &Gpu, found: &Found) -> Result<Vec<Handler>, CliError> {
    let possible = gpu.possible(&found.kernel);
    match possible {
        Possible::Threads => {}
        Possible::ThreadsAfterHard => output::note(format_args!("{}: {}", gpu.address, possible.text())),
        Possible::NoDriver | Possible::HardOnly => {
            return Err(live(format_args!("{}: {}", gpu.address, possible.text())));
        }
    }
    let threads = gpu.interrupts.iter().flat_map(|interrupt| &interrupt.threads);
    let handler = |thread: &super::interrupts::Thread| {
        let own = Attributes::of(thread.pid)
            .map_err(|error| live(format_args!("thread {} {}: {error}", thread.pid, thread.name)))?;
        // What it is now, given again: Linux says at once whether this user may.
        own.give_to(thread.pid).map_err(|error| {
            live(format_args!(
                "Linux refuses to schedule thread {} {} ({error}); {PERMISSION}",
                thread.pid, thread.name
            ))
        })?;
        Ok(Handler { gpu: number, pid: thread.pid, name: thread.name.clone(), own, now: own })
    };
    threads.map(handler).collect()
}

/// Until Ctrl-C. Answers how often a thread was given another priority.
fn follow(
    watch: &mut HolderWatch,
    handlers: &mut Vec<Handler>,
    idle: Idle,
    interrupt: &Interrupt,
    output: &mut Output,
) -> Result<u64, CliError> {
    let (mut changes, mut is_first) = (0, true);
    while !interrupt.is_requested() {
        let holders = watch.holders().map_err(live)?;
        for handler in &mut *handlers {
            let wanted = wanted(handler, &holders, idle);
            if wanted != handler.now {
                wanted.give_to(handler.pid).map_err(|error| live(format_args!("{handler}: {error}")))?;
                handler.now = wanted;
                changes += 1;
            }
        }
        if is_first {
            is_first = false;
            for handler in &*handlers {
                output.line(format_args!("{handler} has the priority of the holders of GPU {}", handler.gpu))?;
            }
            output.line("until Ctrl-C")?;
            output.finish()?;
        }
        watch.wait(Instant(clock::now().0 + LOOK.0));
    }
    Ok(changes)
}

/// The highest priority among the holders of its GPU.
fn wanted(handler: &Handler, holders: &[TokenHolder], idle: Idle) -> Attributes {
    let mut own = holders.iter().filter(|holder| holder.gpu == handler.gpu);
    let highest = own.by_ref().map(|holder| holder.priority).max();
    let priority = match (highest, idle) {
        (None, Idle::Keep) => return handler.own,
        (None, Idle::At(priority)) => priority,
        // A holder without a real-time priority: before ordinary threads, behind all others.
        (Some(priority), _) => priority.unwrap_or(1),
    };
    handler.own.fixed(priority).unwrap_or(handler.own)
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} {}", self.pid, printable(&self.name))
    }
}

/// A process that gives these threads their own scheduling back as soon as this one is gone.
fn restorer(handlers: &[Handler]) -> Result<Restorer, CliError> {
    let start = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["gpu", "irq", "--restore"]);
        let mut restorer = Restorer::start(command)?;
        for Handler { pid, own, name, .. } in handlers {
            restorer.keep(*pid, name, *own, None)?;
        }
        Ok(restorer)
    };
    start().map_err(|error: io::Error| {
        live(format_args!("cannot start the process that gives the threads their priorities back: {error}"))
    })
}

/// Waits for the end of standard input, each line of which is a thread and what it had, and gives them that.
pub fn restore() -> Result<(), CliError> {
    // The only signal that ends it is SIGKILL: its parent's end is what it waits for.
    let _interrupt = Interrupt::watch_patiently();
    restorer::restore(io::stdin().lock()).map_err(|failed| live(printable(&failed)))
}
