//! `laxity bandwidth regulate`: best-effort programs on CPUs that have a budget while the bandwidth lock is held.

use clap::Args;
use laxity_bandwidth::{Counter, Options, Regulator, Report, Throttle};
use laxity_gpu::Registry;
use laxity_model::{LockHeed, Nanos};
use laxity_sys::signals::Signals;

use super::{CpuList, attach_or_create, json, not_regulated, parse_cpu_list, rate};
use crate::commands::named::live;
use crate::commands::program;
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::output::{self, Output};
use crate::quantity::{percent, short};

/// Run a best-effort program on CPUs that are regulated while the bandwidth lock is held.
///
/// Each CPU has a regulator under SCHED_FIFO. In each period it may have the budget of the lock; when that is exceeded, it is throttled until the period ends: by the regulator, which occupies it, by freezing the program's control group, or by Laxity's scheduler in the kernel, if that is loaded (`laxity sched start`; `--throttle kernel`): then no thread has the CPU that is no task. Traffic is counted by hardware, which is tried by a hog of known traffic first, or by programs that count it themselves (`--counter software`; LAXITY_BANDWIDTH names the arbitration to them). With --punishment the Throttle Fair Scheduler has throttled threads run less. While the lock is free nothing is counted and no CPU is woken. When this process ends, however that is, no CPU stays throttled.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth regulate car --cpus 3 -- ./log-compressor
  laxity bandwidth regulate car --cpus 2-3 --period 500us -- make -j2
  laxity bandwidth regulate car --cpus 3 --counter software --punishment 3 -- sh -c './mem & ./cpu'
  laxity bandwidth regulate car --cpus 3 --throttle kernel --punishment 1 -- make
  laxity bandwidth regulate car --cpus 3 --counter software -- laxity bandwidth hog --name car --for 10s

Exit codes: that of the program, 128 and the signal that ended it; 1 the CPUs cannot be regulated; 2 bad usage.")]
pub struct Arguments {
    /// The arbitration; created if it does not exist
    name: String,
    /// The best-effort CPUs, as in 2-3,5
    #[arg(long, value_name = "LIST", value_parser = parse_cpu_list)]
    cpus: CpuList,
    /// The length of a period
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1ms")]
    period: Nanos,
    /// How traffic is counted: auto (by hardware that passes its test), software or hardware
    #[arg(long, value_name = "HOW", default_value = "auto")]
    counter: Counter,
    /// How a CPU is throttled: auto (one of the next two), occupier (at most 95 % of the time), freezer or kernel
    #[arg(long, value_name = "HOW", default_value = "auto")]
    throttle: Throttle,
    /// Have throttled threads run less by the Throttle Fair Scheduler, with this factor
    #[arg(long, value_name = "FACTOR")]
    punishment: Option<f64>,
    /// Heed a lock from the next period on, as in the original, rather than at once
    #[arg(long)]
    heed_periods: bool,
    /// The regulators' priority under SCHED_FIFO
    #[arg(long, value_name = "PRIORITY", default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=97))]
    priority: u8,
    /// Print JSON in the end instead of a line for each CPU
    #[arg(long)]
    json: bool,
    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Regulates until the program ends.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    // Before any other thread: they are to keep the signals from this process, too.
    let signals = Signals::requests().map_err(live)?;
    let arbitration = attach_or_create(registry, &arguments.name)?;
    let options = Options {
        period: arguments.period,
        priority: arguments.priority,
        heed: if arguments.heed_periods { LockHeed::Period } else { LockHeed::AtOnce },
        counter: arguments.counter,
        throttle: arguments.throttle,
        punishment: arguments.punishment,
        ..Options::new(arguments.cpus.0.clone())
    };
    let regulator = Regulator::start(&arbitration, options).map_err(not_regulated)?;
    let mut command = program::command(&arguments.program);
    command.env("LAXITY_BANDWIDTH", &arguments.name).env("LAXITY_BANDWIDTH_FOLDER", registry.directory());
    regulator.place(&mut command).map_err(not_regulated)?;
    if arguments.counter == Counter::Software && !arguments.json {
        output::note("counted by software: programs that do not count their traffic are not throttled");
    }
    let mut is_told = false;
    let status = program::run_and(&mut command, &signals, || {
        for report in regulator.reports() {
            if let Some(failed) = report.failed.filter(|_| !is_told) {
                is_told = true;
                output::warning(failed);
            }
        }
    })?;
    let reports = regulator.reports();
    drop(regulator);
    if arguments.json {
        output.print(json::reports(&arguments.name, &reports, arguments.period))?;
    } else {
        print(&reports, output)?;
    }
    program::ended(program::shown(&command), status)
}

fn print(reports: &[Report], output: &mut Output) -> Result<(), CliError> {
    for report in reports {
        let sums = report.regulation;
        if sums.periods == 0 {
            output.line(format_args!("CPU {}: the lock was never held", report.cpu))?;
            continue;
        }
        let span = sums.periods.saturating_mul(sums.period.0).max(1);
        let per_second = |bytes: u64| rate((u128::from(bytes) * 1_000_000_000 / u128::from(span)) as u64);
        let mut stops: Vec<Nanos> = report.stops.clone();
        stops.sort_unstable();
        let stop = stops.get(stops.len() / 2).map(|&stop| format!(", stopped {} after its budget", short(stop)));
        output.line(format_args!(
            "CPU {}: {} of {} allowed in {} periods of {}; throttled for {} % of them{}",
            report.cpu,
            per_second(sums.bytes),
            per_second(sums.allowed),
            sums.periods,
            short(sums.period),
            percent(sums.throttled.0.into(), span.into()),
            stop.unwrap_or_default(),
        ))?;
        if report.let_run > 0 {
            output.finish()?;
            output::warning(format_args!(
                "CPU {}: {} periods exceeded their budgets, as the occupier may take at most 95 % of a second; allow the \
                 freezer (one CPU, cgroup v2), or raise the budget",
                report.cpu, report.let_run
            ));
        }
    }
    Ok(())
}
