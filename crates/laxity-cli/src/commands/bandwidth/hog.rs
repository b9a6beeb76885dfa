//! `laxity bandwidth hog`: a program of known memory traffic, which counts it.

use std::time::Duration;

use clap::Args;
use laxity_gpu::Registry;
use laxity_measure::memory::{Pattern, Stream};
use laxity_model::{Nanos, parse_size};
use laxity_sys::{clock, scheduling};

use super::rate;
use crate::commands::gpu::refused;
use crate::commands::simulate::parse_duration;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Stream through memory as fast as possible, or through a few KiB without any traffic.
///
/// What interferes, and what a regulator is tried with: it counts its traffic in the arbitration, so that it can be regulated by software where the machine shows no counters. In the end it prints what it had.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth hog --for 5s
  laxity bandwidth hog --pattern read --name car
  laxity bandwidth hog --pattern copy --bytes '2 GB'      the same work each time, however long it takes
  laxity bandwidth regulate car --cpus 1 --counter software -- laxity bandwidth hog --name car --for 10s

Exit codes: 0 done, or Ctrl-C; 1 the arbitration cannot be used; 2 bad usage, or no such arbitration.")]
pub struct Arguments {
    /// Count the traffic in this arbitration [default: LAXITY_BANDWIDTH of the environment, else nowhere]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What is done to the memory: write, read or copy
    #[arg(long, value_name = "HOW", default_value = "write")]
    pattern: Pattern,
    /// Compute within 8 KiB instead: a program that is not throttled
    #[arg(long, conflicts_with = "pattern")]
    compute: bool,
    /// End after DURATION [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// End after SIZE of traffic
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "compute")]
    bytes: Option<u64>,
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// How often to look at the clock: after so many chunks.
const CHUNKS: u32 = 16;

/// Streams until it is over.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let interrupt = Interrupt::watch();
    let environment = || std::env::var("LAXITY_BANDWIDTH").ok();
    let name = arguments.name.clone().or_else(environment);
    let registry = match std::env::var_os("LAXITY_BANDWIDTH_FOLDER") {
        Some(folder) if arguments.name.is_none() => Registry::at(folder),
        _ => registry.clone(),
    };
    let arbitration = name.map(|name| registry.attach(&name)).transpose().map_err(|error| refused(&registry, error))?;
    // Its memory is touched before its time begins.
    let memory = || Stream::beyond_caches(arguments.pattern, scheduling::current_cpu());
    let mut stream = (!arguments.compute).then(memory);
    // In this order, and at the end in the other: a thread has a CPU for no longer than it takes.
    let begin = clock::now();
    let used = clock::thread_cpu_time();
    let until = arguments.duration.map(|duration| begin.saturating_add(duration));
    let is_over = || interrupt.is_requested() || until.is_some_and(|until| clock::now() >= until);
    let mut bytes = 0;
    let enough = arguments.bytes.unwrap_or(u64::MAX);
    while let Some(stream) = stream.as_mut().filter(|_| bytes < enough && !is_over()) {
        for _ in 0..CHUNKS {
            let chunk = stream.step();
            bytes += chunk;
            if let Some(arbitration) = &arbitration {
                arbitration.count_traffic(chunk);
            }
        }
    }
    if arguments.compute {
        compute(&is_over);
    }
    let used = clock::thread_cpu_time().0.saturating_sub(used.0);
    let elapsed = clock::now().saturating_since(begin);
    let per_second = (u128::from(bytes) * 1_000_000_000 / u128::from(elapsed.0.max(1))) as u64;
    let seconds = Duration::from_nanos(elapsed.0).as_secs_f64();
    let cpu = Duration::from_nanos(used).as_secs_f64();
    output.line(format_args!("{} in {seconds:.3} s, {cpu:.3} s of them on a CPU", rate(per_second)))
}

fn compute(is_over: &dyn Fn() -> bool) {
    let mut numbers = [1u64; 1024];
    while !is_over() {
        for _ in 0..100 {
            for number in &mut numbers {
                *number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
            std::hint::black_box(&mut numbers);
        }
    }
}
