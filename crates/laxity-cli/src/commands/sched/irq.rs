//! `laxity sched irq`: threads of the kernel that handle interrupts for tasks of the scheduler in the kernel.

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use laxity_model::text::printable;
use laxity_scx::{InterruptRequest, Membership, Share};

use super::status;
use crate::commands::gpu::interrupts;
use crate::commands::named::live;
use crate::error::CliError;
use crate::output::Output;

/// Have threads of the kernel handle interrupts at the priority of the job that they work for (paper 000: klmirqd).
///
/// A task says before it waits for its device that the thread works for it (laxity_scx::Task::expect). The thread then goes before that job, at its priority, and never executes beside it. While it works for no task it has a share of a CPU, and ranks by the end of that under EDF. It gets its own class back when the scheduler ends, in whatever way.
///
/// Without a device or thread it shows those that do so.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched irq 0000:41:00.0                    the threads of that PCI device's interrupts
  laxity sched irq $(pgrep irq/16-) --cluster 1    that thread, for tasks of that cluster
  laxity sched irq

Exit codes: 0 they do; 1 there is no scheduler or no such thread, or Linux refuses; 2 bad usage.")]
pub struct Arguments {
    /// Addresses of PCI devices, and numbers of threads
    #[arg(value_name = "DEVICE|THREAD")]
    which: Vec<Which>,
    /// The cluster of the tasks that they work for [default: that of the CPU of each]
    #[arg(long, value_name = "N", requires = "which")]
    cluster: Option<usize>,
    /// What each has while it works for no task: a budget in each period
    #[arg(long, value_name = "BUDGET/PERIOD", default_value = "1ms/10ms")]
    server: Share,
    /// Their priority then, under FP; the smaller first [default: below all tasks]
    #[arg(long, value_name = "PRIORITY", requires = "which")]
    priority: Option<u64>,
}

#[derive(Clone, Debug)]
enum Which {
    Device(String),
    Thread(u32),
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Which, String> {
        match text.parse() {
            Ok(thread) => Ok(Which::Thread(thread)),
            Err(_) if text.contains(':') => Ok(Which::Device(text.to_owned())),
            Err(_) => {
                Err("write the address of a PCI device, as in 0000:41:00.0, or the number of a thread".to_owned())
            }
        }
    }
}

/// Asks the loader, and prints a row for each of them.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let scheduler = Membership::join().map_err(live)?;
    for thread in threads(&arguments.which)? {
        let Arguments { cluster, server, .. } = *arguments;
        let standard = InterruptRequest::of(thread);
        let priority = arguments.priority.unwrap_or(standard.priority);
        let request = InterruptRequest { cluster, server, priority, ..standard };
        scheduler.handle(&request).map_err(live)?;
    }
    let status = scheduler.status().map_err(live)?;
    status::print_interrupts(&status.interrupts, output)?;
    output.finish()
}

fn threads(which: &[Which]) -> Result<Vec<u32>, CliError> {
    let mut threads = Vec::new();
    for one in which {
        let address = match one {
            Which::Thread(thread) => {
                threads.push(*thread);
                continue;
            }
            Which::Device(address) => address,
        };
        let name = printable(address);
        let found = interrupts::threads_of(Path::new("/"), address);
        let found = found.map_err(|error| live(format_args!("PCI device {name}: {error}")))?;
        if found.is_empty() {
            return Err(live(format_args!(
                "PCI device {name}: no thread handles its interrupts, which come before every task; start the kernel with threadirqs"
            )));
        }
        threads.extend(found.iter().map(|thread| thread.pid));
    }
    threads.sort_unstable();
    threads.dedup();
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_an_address_and_a_thread_a_number() {
        assert!(matches!("188".parse(), Ok(Which::Thread(188))));
        assert!(matches!("0000:41:00.0".parse(), Ok(Which::Device(address)) if address == "0000:41:00.0"));
        assert!("nvidia".parse::<Which>().is_err());
    }
}
