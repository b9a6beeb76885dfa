//! Live GPU arbitration: the cost of an uncontended lock, a hand-over against a raw futex, how soon the token of
//! a killed process is granted, and what all of it costs a program that is alone.
//!
//! All are measured in turn in every round, and ratios are taken within a round, so that a machine that is busy at
//! times slows them all. Threads are kept on their CPUs, under `SCHED_FIFO` where this user may.

mod deaths;
mod interval;
mod stabilizer;
mod turns;

use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use clap::Parser;
use deaths::Death;
use indicatif::{ProgressBar, ProgressStyle};
use interval::Interval;
use laxity_gpu::{Arbitration, Base, Client, Config, Registry};
use laxity_model::{GpuArbitration, GpuSync};
use laxity_sys::clock::now;
use laxity_sys::scheduling;
use laxity_sys::segment::{Format, HEADER, Segment};
use stabilizer::Pace;
use turns::{CROSS, Called, Cpus, Futex, PRIORITY, SAME, median, settle, trip, turns};

/// Measures locks of GPUs: uncontended, and handed over between two threads.
#[derive(Parser)]
struct Arguments {
    /// Rounds.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Round trips of each kind in a round.
    #[arg(long, default_value_t = 1000)]
    trips: u32,
    /// Uncontended locks of each kind in a round.
    #[arg(long, default_value_t = 200_000)]
    locks: u32,
    /// Kills of processes that hold a token, in a round
    #[arg(long, default_value_t = 5)]
    kills: u32,
    /// Only take the token of this arbitration, and keep it
    #[arg(long = deaths::HOLD, hide = true)]
    hold: Option<String>,
    #[command(flatten)]
    program: stabilizer::Program,
}

/// Threads as many as those of two dozen programs.
const OTHERS: u16 = 256;

const FORMAT: Format = Format { magic: *b"laxbench", version: 1 };

/// One round: uncontended in nanoseconds, round trips in microseconds, on the same and on another core.
struct Round {
    token: f64,
    engine: f64,
    futex: [f64; 2],
    /// The same, the system calls being in the loop itself; see [`Called`].
    in_loop: [f64; 2],
    arbitration: [f64; 2],
    /// On the same core, with [`OTHERS`] that are registered and do nothing.
    crowded: f64,
    /// One of two tokens, as the other is held all the time: so that the arbiter decides which client is next.
    arbitrated: [f64; 2],
    deaths: Vec<Death>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let registry = Registry::default();
    if let Some(name) = &arguments.hold {
        return deaths::hold(&registry, name);
    }
    if thread::available_parallelism()?.get() < 2 {
        return Err("needs two CPUs to measure across them".into());
    }
    let may = thread::spawn(|| scheduling::set_fifo(PRIORITY)).join().expect("no panic");
    println!("scheduling: {}", if may.is_ok() { "SCHED_FIFO" } else { "SCHED_OTHER, as this user may not use FIFO" });
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        rounds.push(round(&registry, &arguments)?);
    }
    if let Some(reason) = arguments.program.is_missing() {
        println!("{reason}");
        report(&rounds, None);
        return Ok(());
    }
    let periodic = overhead_percent(&registry, &arguments.program, Pace::Periodic)?;
    let full = overhead_percent(&registry, &arguments.program, Pace::Full)?;
    report(&rounds, Some([periodic, full]));
    Ok(())
}

/// What arbitration adds to the CPU time of a whole program, in hundredths of it.
fn overhead_percent(
    registry: &Registry,
    program: &stabilizer::Program,
    pace: Pace,
) -> Result<Interval, Box<dyn Error>> {
    let style = ProgressStyle::with_template("{msg}: {pos} of {len} rounds, {eta} left").expect("a template");
    let bar = ProgressBar::new(program.repeats as u64).with_style(style).with_message(pace.name());
    let ratios = bar.wrap_iter(0..program.repeats).map(|round| program.ratio(registry, pace, round));
    let ratios = Interval::of(ratios.collect::<Result<_, _>>()?);
    bar.finish_and_clear();
    Ok(ratios.map(|ratio| 100.0 * (ratio - 1.0)))
}

fn round(registry: &Registry, arguments: &Arguments) -> Result<Round, Box<dyn Error>> {
    // Two GPUs with three tokens each, as GPUSync is used, and one token only, to be handed over.
    let sync = GpuSync { tokens: 3, ..GpuSync::DEFAULT };
    let many = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(6, 2) };
    let (token, engine) = uncontended(registry, &many, arguments.locks)?;
    let memory = Segment::draft(&registry.directory().join("words"), FORMAT, 4096)?;
    let trips = arguments.trips as usize;
    let words = [memory.u32(HEADER), memory.u32(HEADER + 1024)];
    Ok(Round {
        token,
        engine,
        futex: [SAME, CROSS].map(|cpus| turns(cpus, trips, |side| Called(Futex::new(words, side)))),
        in_loop: [SAME, CROSS].map(|cpus| turns(cpus, trips, |side| Futex::new(words, side))),
        arbitration: [
            arbitration_trip(registry, SAME, arguments.trips, 1, 0)?,
            arbitration_trip(registry, CROSS, arguments.trips, 1, 0)?,
        ],
        crowded: arbitration_trip(registry, SAME, arguments.trips, 1, OTHERS)?,
        arbitrated: [
            arbitration_trip(registry, SAME, arguments.trips, 2, 0)?,
            arbitration_trip(registry, CROSS, arguments.trips, 2, 0)?,
        ],
        deaths: (0..arguments.kills).map(|_| deaths::kill(registry, &name())).collect::<Result<_, _>>()?,
    })
}

/// `overheads`: of a program in real time, and as fast as it can.
fn report(rounds: &[Round], overheads: Option<[Interval; 2]>) {
    let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    println!("uncontended lock and unlock, median ns: token {:.0}, engine {:.0}", of(&|round| round.token), {
        of(&|round| round.engine)
    });
    println!("round trips, median us        same core   other core");
    let row = |name: &str, value: &dyn Fn(&Round) -> [f64; 2]| {
        println!("{name:<28} {:>10.2} {:>12.2}", of(&|round| value(round)[0]), of(&|round| value(round)[1]));
    };
    row("raw futex", &|round| round.futex);
    row("raw futex, within the loop", &|round| round.in_loop);
    row("token, between processes", &|round| round.arbitration);
    println!("{:<28} {:>10.2}", format!("  {OTHERS} more registered"), of(&|round| round.crowded));
    row("one of two, by the arbiter", &|round| round.arbitrated);
    let ratio = |index: usize| of(&|round: &Round| round.arbitration[index] / round.futex[index]);
    let arbitrated = |index: usize| of(&|round: &Round| round.arbitrated[index] / round.futex[index]);
    println!("hand-over against raw futex: same core {:.2}, other core {:.2}", ratio(0), ratio(1));
    println!("  by the arbiter:            same core {:.2}, other core {:.2}", arbitrated(0), arbitrated(1));
    report_deaths(rounds.iter().flat_map(|round| &round.deaths));
    let overhead = overheads.map(|[periodic, full]| {
        println!("CPU time of the stabilizer, alone, with arbitration, median and where it lies with 95 % confidence:");
        for (pace, Interval { median, low, high }) in [(Pace::Periodic, periodic), (Pace::Full, full)] {
            println!("{:<28} {median:+.1} %, {low:+.1} % to {high:+.1} %", pace.name());
        }
        let [periodic, full] = [periodic, full].map(|interval| interval.median);
        format!(" run_overhead_percent={periodic:.1} full_speed_overhead_percent={full:.1}")
    });
    println!(
        "gpu uncontended_ns={:.0} handoff_ratio={:.2}{} handoff_loop_ratio={:.2} crowd_ratio={:.2} \
         arbiter_ratio={:.2}",
        of(&|round| round.token).max(of(&|round| round.engine)),
        ratio(0).max(ratio(1)),
        overhead.unwrap_or_default(),
        of(&|round| round.arbitration[0] / round.in_loop[0]),
        of(&|round| round.crowded / round.arbitration[0]),
        arbitrated(0).max(arbitrated(1)),
    );
}

fn report_deaths<'a>(deaths: impl Iterator<Item = &'a Death> + Clone) {
    let granted: Vec<f64> = deaths.clone().map(|death| death.granted).collect();
    if granted.is_empty() {
        return;
    }
    println!(
        "after a kill of its holder a token is granted in {:.0} us (median; at most {:.0} us), {:.2} of what Linux takes \
         to tell the parent, of {} kills",
        median(granted.clone()),
        granted.iter().copied().fold(0.0, f64::max),
        median(deaths.map(|death| death.granted / death.ended).collect()),
        granted.len(),
    );
}

fn name() -> String {
    format!("bench-{}", std::process::id())
}

/// Time of locking and unlocking a token, and an engine, in nanoseconds.
fn uncontended(registry: &Registry, config: &Config, locks: u32) -> Result<(f64, f64), Box<dyn Error>> {
    let arbitration = registry.create(&name(), config)?;
    thread::scope(|scope| {
        let measure = || {
            settle(0);
            let client = arbitration.register("bench", Base::Fixed(PRIORITY)).expect("there is room");
            let each = |what: &dyn Fn()| {
                let start = now();
                (0..locks).for_each(|_| what());
                now().saturating_since(start).0 as f64 / f64::from(locks)
            };
            let token = each(&|| drop(black_box(client.token().expect("it is free"))));
            let held = client.token().expect("it is free");
            let engine = each(&|| drop(black_box(held.execute_engine().expect("it is free"))));
            (token, engine)
        };
        Ok(scope.spawn(measure).join().expect("no panic"))
    })
}

/// Two threads hand the last of so many tokens over, of which others keep the rest; each attached for itself, as a process
/// of its own would. A client that lets go while the other waits and asks again waits itself, so that they take turns; one that lets go
/// before the other asks may have it several times, which counts as one turn. Meanwhile `others` are registered and ask
/// for nothing.
fn arbitration_trip(
    registry: &Registry,
    cpus: Cpus,
    trips: u32,
    tokens: u32,
    others: u16,
) -> Result<f64, Box<dyn Error>> {
    let arbitration = GpuArbitration::GpuSync(GpuSync { tokens, ..GpuSync::DEFAULT });
    let config = Config { arbitration, ..Config::new(2, 1) };
    let first = registry.create(&name(), &Config { clients: config.clients + others, ..config })?;
    let second = registry.attach(&name())?;
    let (last, is_over) = (AtomicU32::new(0), AtomicBool::new(false));
    let register = |arbitration: &Arbitration| arbitration.register("bench", Base::Fixed(PRIORITY));
    // When a thread is handed the token by the other.
    let turn = |client: &Client, side: u32| {
        let _token = client.token().expect("the other lets go");
        (last.swap(side, Ordering::Relaxed) != side).then(now)
    };
    Ok(thread::scope(|scope| {
        let measured = scope.spawn(|| {
            settle(cpus[0]);
            let client = register(&first).expect("there is room");
            let _others: Vec<Client> = (0..others).map(|_| register(&first).expect("there is room")).collect();
            let keepers: Vec<Client> = (1..tokens).map(|_| register(&first).expect("there is room")).collect();
            let _kept: Vec<_> = keepers.iter().map(|keeper| keeper.token().expect("it is free")).collect();
            let token = client.token().expect("it is free");
            scope.spawn(|| {
                settle(cpus[1]);
                let client = register(&second).expect("there is room");
                while !is_over.load(Ordering::Relaxed) {
                    turn(&client, 1);
                }
            });
            while first.snapshot().expect("whole").tokens.waiting.is_empty() {
                thread::sleep(Duration::from_micros(100));
            }
            drop(token);
            let turns =
                std::iter::repeat_with(|| turn(&client, 2)).flatten().take(trips as usize + 1).collect::<Vec<_>>();
            is_over.store(true, Ordering::Relaxed);
            trip(&turns)
        });
        measured.join().expect("no panic")
    }))
}
