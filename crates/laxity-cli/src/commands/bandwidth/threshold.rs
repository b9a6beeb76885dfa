//! `laxity bandwidth threshold`: the largest budget of best-effort CPUs that protects a program.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_bandwidth::{Counter, Options, Regulator, Search, Throttle, Trial, first_guess};
use laxity_gpu::{Arbitration, Base, Client, Config, Registry};
use laxity_measure::memory::{Pattern, Stream};
use laxity_model::Nanos;
use laxity_sys::{clock, scheduling};

use super::{CpuList, json, not_regulated, parse_budget, parse_cpu_list, picture, rate};
use crate::commands::gpu::refused;
use crate::commands::named::live;
use crate::commands::program;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_name;
use crate::table::{Cell, Table};

/// Find the largest budget at which a program is slowed down by no more than it may.
///
/// The program is run alone and beside hogs that write memory on the best-effort CPUs, in turn; ratios of neighbouring runs are taken, and their median. From one comparison with unhindered hogs the first budget follows, and bisection narrows it down; every budget that was tried is shown. The program should run for some hundreds of milliseconds, do the same each time, and succeed. For what it protects, this process holds the bandwidth lock.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth threshold -- ./detect frames/
  laxity bandwidth threshold --cpus 2-3 --slowdown 5 --repeat 5 --plot curve.svg -- ./detect frames/
  laxity bandwidth threshold --json -- laxity bandwidth hog --pattern copy --bytes '2 GB'

Exit codes: 0 a budget was found, or none is needed; 1 none protects the program, or it failed; 2 bad usage; 130 interrupted.")]
pub struct Arguments {
    /// The best-effort CPUs, as in 2-3 [default: the last that this process may use]
    #[arg(long, value_name = "LIST", value_parser = parse_cpu_list)]
    cpus: Option<CpuList>,
    /// By how many per cent the program may slow down
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = parse_percent)]
    slowdown: f64,
    /// Compare so many pairs of runs for each budget
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeat: u32,
    /// Try no smaller budget
    #[arg(long, value_name = "RATE", default_value = "16 MB/s", value_parser = parse_budget)]
    smallest: u64,
    /// Draw the curve into FILE (.svg)
    #[arg(long, value_name = "FILE", value_parser = output_name::svg())]
    plot: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// The program to protect, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Budgets to try at most.
const TRIALS_MAX: usize = 12;
/// From overflow to standstill, in seconds: what the occupier takes as a rule.
const LATENCY: f64 = 5e-6;
/// As little slower is noise.
const INTERFERENCE_MIN: f64 = 1.2;

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (0.1..=1_000.0).contains(&percent) { Ok(percent) } else { Err("write a number from 0.1 to 1000".to_owned()) }
}

/// Searches.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let interrupt = Interrupt::watch();
    let usable = scheduling::usable_cpus().map_err(live)?;
    let hogs = match &arguments.cpus {
        Some(list) => list.0.clone(),
        None => usable.last().copied().into_iter().collect(),
    };
    let others: Vec<usize> = usable.into_iter().filter(|cpu| !hogs.contains(cpu)).collect();
    if others.is_empty() {
        let message = "no CPU is left for the program: name fewer best-effort CPUs with --cpus".to_owned();
        return Err(CliError::Argument { message });
    }
    let name = format!("laxity-threshold-{}", std::process::id());
    let config = Config::new(u16::try_from(scheduling::cpus()).unwrap_or(u16::MAX), 1);
    let arbitration = registry.create(&name, &config).map_err(|error| refused(registry, error))?;
    let options = Options { counter: Counter::Software, throttle: Throttle::Auto, ..Options::new(hogs.clone()) };
    let period = options.period;
    let regulator = Regulator::start(&arbitration, options).map_err(not_regulated)?;
    let client = arbitration.register("laxity bandwidth threshold", Base::Background).map_err(live)?;
    let shared = Shared::default();
    let found = thread::scope(|scope| {
        for &cpu in &hogs {
            let (shared, arbitration) = (&shared, &arbitration);
            scope.spawn(move || shared.hog(arbitration, cpu));
        }
        let bench = Bench { arguments, cpus: &others, client: &client, shared: &shared, interrupt: &interrupt };
        let found = bench.search(hogs.len(), period);
        shared.is_over.store(true, Ordering::SeqCst);
        found
    })?;
    drop(regulator);
    show(arguments, &found, output)
}

/// What was found.
struct Found {
    unprotected: f64,
    /// Bytes a second of one hog.
    hog_rate: u64,
    search: Option<Search>,
}

/// The hogs' switches, and what they had.
#[derive(Default)]
struct Shared {
    streams: AtomicBool,
    is_over: AtomicBool,
    bytes: AtomicU64,
}

impl Shared {
    fn hog(&self, arbitration: &Arbitration, cpu: usize) {
        // The regulator of the CPU was started, so that this process may use it.
        let _ = scheduling::pin(cpu);
        let Some(traffic) = arbitration.traffic(cpu) else { return };
        let mut stream = Stream::beyond_caches(Pattern::Write, cpu);
        while !self.is_over.load(Ordering::SeqCst) {
            if !self.streams.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_micros(200));
                continue;
            }
            let bytes = stream.step();
            self.bytes.fetch_add(bytes, Ordering::SeqCst);
            traffic.count(bytes);
        }
    }
}

/// How runs are compared.
struct Bench<'a> {
    arguments: &'a Arguments,
    cpus: &'a [usize],
    client: &'a Client,
    shared: &'a Shared,
    interrupt: &'a Interrupt,
}

impl Bench<'_> {
    fn search(&self, hogs: usize, period: Nanos) -> Result<Found, CliError> {
        let slowdown_max = 1.0 + self.arguments.slowdown / 100.0;
        // Once for caches and files.
        self.time()?;
        let bytes = self.shared.bytes.load(Ordering::SeqCst);
        let (unprotected, beside) = self.compare(None)?;
        let bytes = self.shared.bytes.load(Ordering::SeqCst) - bytes;
        let hog_rate = (u128::from(bytes) * 1_000_000_000 / u128::from(beside.0.max(1)) / hogs as u128) as u64;
        let seconds = period.0 as f64 / 1e9;
        let first = first_guess(slowdown_max, unprotected, hog_rate as f64, seconds, LATENCY);
        let Some(first) = first else { return Ok(Found { unprotected, hog_rate, search: None }) };
        let mut search = Search::new(slowdown_max, first, self.arguments.smallest, TRIALS_MAX);
        while let Some(budget) = search.next().filter(|&budget| budget < hog_rate) {
            let (slowdown, _) = self.compare(Some(budget))?;
            if !self.arguments.json {
                output::note(format_args!("{}: {:.1} % slower", rate(budget), (slowdown - 1.0) * 100.0));
            }
            search.tried(budget, slowdown);
        }
        Ok(Found { unprotected, hog_rate, search: Some(search) })
    }

    /// The program's time beside hogs, relative to alone, and for how long they streamed.
    fn compare(&self, budget: Option<u64>) -> Result<(f64, Nanos), CliError> {
        let mut ratios = Vec::new();
        let mut streamed = Nanos::ZERO;
        for _ in 0..self.arguments.repeat {
            let alone = self.time()?;
            let section = budget.map(|budget| self.client.lock_bandwidth(budget)).transpose().map_err(live)?;
            let began = clock::now();
            self.shared.streams.store(true, Ordering::SeqCst);
            let beside = self.time();
            self.shared.streams.store(false, Ordering::SeqCst);
            streamed = Nanos(streamed.0 + clock::now().saturating_since(began).0);
            drop(section);
            ratios.push(beside?.0 as f64 / alone.0.max(1) as f64);
        }
        ratios.sort_by(f64::total_cmp);
        Ok((ratios[ratios.len() / 2], streamed))
    }

    /// How long a run of the program takes.
    fn time(&self) -> Result<Nanos, CliError> {
        let words = &self.arguments.program;
        let mut command = program::command(words);
        command.stdout(std::process::Stdio::null());
        laxity_sys::start::in_place(&mut command, self.cpus, None);
        let began = clock::now();
        let status = command.status().map_err(|error| {
            live(format_args!("cannot run {}: {error}; check that it exists and may be executed", words[0]))
        })?;
        let took = clock::now().saturating_since(began);
        if self.interrupt.is_requested() {
            return Err(CliError::Interrupted { reached: "before a budget was found".to_owned() });
        }
        if !status.success() {
            return Err(live(format_args!("{} ended with {status}", words[0])));
        }
        Ok(took)
    }
}

fn show(arguments: &Arguments, found: &Found, output: &mut Output) -> Result<(), CliError> {
    let slowdown_max = 1.0 + arguments.slowdown / 100.0;
    let trials = found.search.as_ref().map(Search::trials).unwrap_or_default();
    let threshold = found.search.as_ref().and_then(Search::threshold);
    if let Some(path) = &arguments.plot {
        let unprotected = Trial { budget: found.hog_rate, slowdown: found.unprotected };
        picture::write(path, &trials, unprotected, slowdown_max, threshold)?;
    }
    if arguments.json {
        let text =
            json::threshold(&arguments.program, threshold, found.unprotected, slowdown_max, found.hog_rate, &trials);
        output.print(text)?;
    } else {
        let mut table = Table::of("budget of each CPU").group("the program", &["slower by, %"]);
        for trial in &trials {
            let slower = format!("{:.1}", (trial.slowdown - 1.0) * 100.0);
            let cell = if trial.slowdown <= slowdown_max { Cell::good(slower) } else { Cell::bad(slower) };
            table.row(vec![rate(trial.budget).into(), cell]);
        }
        let unhindered = format!("unhindered: {}", rate(found.hog_rate));
        table.row(vec![unhindered.into(), format!("{:.1}", (found.unprotected - 1.0) * 100.0).into()]);
        output.print(table.render(output.width()))?;
    }
    output.finish()?;
    if found.unprotected < INTERFERENCE_MIN {
        output::note(format_args!(
            "beside unhindered hogs the program was slower by {:.1} % only: it needs little memory, or these CPUs do not \
             interfere now",
            (found.unprotected - 1.0) * 100.0
        ));
    }
    match (&found.search, threshold) {
        (None, _) => {
            output::note("no budget is needed");
            Ok(())
        }
        (Some(_), Some(budget)) => {
            if !arguments.json {
                output.line(format_args!("the largest budget that protects it: {}", rate(budget)))?;
            }
            Ok(())
        }
        (Some(_), None) => Err(live(format_args!(
            "no budget from {} on keeps the program within {} %; allow smaller ones with --smallest, or a larger slowdown",
            rate(arguments.smallest),
            arguments.slowdown
        ))),
    }
}
