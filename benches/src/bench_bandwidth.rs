//! `make bench-bandwidth`: what the bandwidth lock costs, how soon and how exactly a hog is stopped, and what that does for
//! a stream on another CPU.
//!
//! Its last line has the numbers that matter; `-` for what this machine cannot show, with the reason above. The original
//! takes 1,840 ns for a system call that locks (paper 004, section VI-F).

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use laxity_bandwidth::{Counter, Options, Regulator, Search, Throttle, first_guess};
use laxity_gpu::{Arbitration, Base, Client, Config, Registry};
use laxity_measure::memory::{Pattern, Stream};
use laxity_model::{Instant, Nanos, write_rate};
use laxity_sys::clock::{now, thread_cpu_time};
use laxity_sys::{futex, scheduling};

/// Locks and unlocks in a batch, and batches.
const LOCKS: u64 = 100_000;
const BATCHES: usize = 21;
/// For how long a hog is regulated.
const REGULATED: Duration = Duration::from_secs(1);
/// A window of the victim, and turns for each budget.
const WINDOW: Nanos = Nanos::from_millis(20);
const TURNS: usize = 15;
/// Wake-ups without Laxity, the priority of what is woken up, and the chunks that are streamed before each.
const WAKE_UPS: u32 = 500;
const BASE_FIFO: u8 = 50;
const CHUNKS: usize = 200;
/// The slowdown that a threshold allows.
const SLOWDOWN_MAX: f64 = 1.10;
/// Without this much there is nothing to protect from.
const INTERFERENCE_MIN: f64 = 1.2;

fn main() {
    if let Err(error) = run() {
        eprintln!("bench-bandwidth: {error}");
        std::process::exit(1);
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let name = format!("bench-bandwidth-{}", std::process::id());
    let arbitration = Registry::default().create(&name, &Config::new(2, 1))?;
    let client = arbitration.register("bench", Base::Background)?;
    let lock_ns = lock(&client)?;
    println!("lock and unlock, uncontended: {lock_ns:.1} ns (median of {BATCHES} batches of {LOCKS})");
    let usable = scheduling::usable_cpus()?;
    let &[victim, .., hog] = &usable[..] else {
        println!("one CPU: nothing interferes");
        println!(
            "bandwidth lock_ns={lock_ns:.1} stop_us=- regulated_error_percent=- protected_slowdown_percent=- \
             unprotected_slowdown_percent=-"
        );
        return Ok(());
    };
    match bare_wake_up(hog) {
        Ok(bare) => println!(
            "a thread of SCHED_FIFO, woken up by one that streams on its CPU, which is what stopping takes at least: {bare:.1} us \
             (median of {WAKE_UPS})"
        ),
        Err(error) => println!("no bare wake-up to compare with: {error}"),
    }
    let shared = Shared::default();
    let measured = thread::scope(|scope| {
        scope.spawn(|| shared.hog(&arbitration, hog));
        let measured = measure(&arbitration, &client, &shared, victim, hog);
        shared.is_over.store(true, Ordering::SeqCst);
        measured
    })?;
    let text = |number: Option<f64>| number.map_or("-".to_owned(), |number| format!("{number:.1}"));
    println!(
        "bandwidth lock_ns={lock_ns:.1} stop_us={:.1} regulated_error_percent={:.1} protected_slowdown_percent={} \
         unprotected_slowdown_percent={}",
        measured.stop_us,
        measured.error,
        text(measured.protected),
        text(measured.unprotected)
    );
    Ok(())
}

/// Nanoseconds of a section that no other thread wants.
fn lock(client: &Client) -> Result<f64, Box<dyn std::error::Error>> {
    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        // CPU time: what other programs take of this CPU is no cost of the lock.
        let began = thread_cpu_time();
        for _ in 0..LOCKS {
            drop(client.lock_bandwidth(64_000_000)?);
        }
        batches.push((thread_cpu_time().0 - began.0) as f64 / LOCKS as f64);
    }
    Ok(median(batches))
}

/// Microseconds from the call that wakes a thread of `SCHED_FIFO` up to its first instruction, where the caller has the same
/// CPU and has filled its caches with a stream, as a hog does. Nothing of Laxity is on that path.
fn bare_wake_up(cpu: usize) -> io::Result<f64> {
    let (word, woken) = (AtomicU32::new(0), AtomicU64::new(0));
    let mut spans = Vec::new();
    let (tell, is_ready) = mpsc::channel();
    thread::scope(|scope| {
        let (word, woken) = (&word, &woken);
        let sleeper = scope.spawn(move || {
            scheduling::pin(cpu)?;
            scheduling::set_fifo(BASE_FIFO)?;
            let _ = tell.send(());
            for turn in 0..WAKE_UPS {
                while word.load(Ordering::SeqCst) <= turn {
                    futex::wait(word, turn, Instant::NEVER);
                }
                woken.store(now().0, Ordering::SeqCst);
            }
            io::Result::Ok(())
        });
        let spans = &mut spans;
        let waker = scope.spawn(move || {
            scheduling::pin(cpu)?;
            // If it was refused, it says why.
            let Ok(()) = is_ready.recv() else { return Ok(()) };
            let mut stream = Stream::beyond_caches(Pattern::Write, cpu);
            for turn in 1..=WAKE_UPS {
                (0..CHUNKS).for_each(|_| _ = stream.step());
                let called = now();
                word.store(turn, Ordering::SeqCst);
                futex::wake_all(word);
                // More urgent and on the same CPU, it has run before this goes on.
                let at = woken.load(Ordering::SeqCst);
                spans.push(at.saturating_sub(called.0) as f64 / 1e3);
            }
            io::Result::Ok(())
        });
        let waker = waker.join().expect("it does not panic");
        waker.and(sleeper.join().expect("it does not panic"))
    })?;
    if spans.is_empty() { Err(io::Error::other("nothing was woken up")) } else { Ok(median(spans)) }
}

struct Measured {
    stop_us: f64,
    /// Of the budget, in per cent.
    error: f64,
    /// In per cent; nothing if no budget protects.
    protected: Option<f64>,
    /// In per cent; nothing if other programs disturbed all of it.
    unprotected: Option<f64>,
}

fn measure(
    arbitration: &Arbitration,
    client: &Client,
    shared: &Shared,
    victim: usize,
    hog: usize,
) -> Result<Measured, Box<dyn std::error::Error>> {
    let options = Options { counter: Counter::Software, throttle: Throttle::Occupier, ..Options::new([hog]) };
    let period = options.period.0 as f64 / 1e9;
    let regulator = Regulator::start(arbitration, options)?;
    scheduling::pin(victim)?;
    let full = shared.rate(Duration::from_millis(300));
    println!("hog on CPU {hog}, unhindered: {}", write_rate(rounded(full)));
    // A quarter of it, so that it is throttled in each period.
    let budget = rounded(full / 4);
    shared.streams.store(true, Ordering::SeqCst);
    let section = client.lock_bandwidth(budget)?;
    thread::sleep(REGULATED);
    drop(section);
    shared.streams.store(false, Ordering::SeqCst);
    let report = regulator.reports().remove(0);
    let sums = report.regulation;
    let achieved = sums.bytes as f64 / sums.allowed.max(1) as f64;
    let mut stops: Vec<Nanos> = report.stops.clone();
    stops.sort_unstable();
    let stop = |percent: usize| stops.get(stops.len() * percent / 100).map_or(0.0, |stop| stop.0 as f64 / 1e3);
    println!(
        "regulated to {}: {:.1} % of it in {} periods; stopped after {:.1} us (p50), {:.1} us (p99)",
        write_rate(budget),
        100.0 * achieved,
        sums.periods,
        stop(50),
        stop(99)
    );
    let mut stream = Stream::beyond_caches(Pattern::Copy, victim);
    let error = (100.0 * (achieved - 1.0)).abs();
    let Some((unprotected, hog_rate)) = compare(shared, &mut stream, None, client)? else {
        println!("other programs used the victim's CPU all the time: stop them to see what protection does");
        return Ok(Measured { stop_us: stop(50), error, protected: None, unprotected: None });
    };
    println!("copy on CPU {victim} beside the unhindered hog: {:.1} % slower", percent(unprotected));
    let mut protected = None;
    if unprotected < INTERFERENCE_MIN {
        println!("no interference now: {:.2} is below {INTERFERENCE_MIN}, so that no budget is searched", unprotected);
    } else if let Some(first) = first_guess(SLOWDOWN_MAX, unprotected, hog_rate, period, stop(50) / 1e6) {
        // Less than that the occupier cannot allow: it takes 95 % of the time at most.
        let smallest = (full as f64 * 0.08) as u64;
        let mut search = Search::new(SLOWDOWN_MAX, first, smallest, 8);
        while let Some(budget) = search.next() {
            let Some((slowdown, rate)) = compare(shared, &mut stream, Some(budget), client)? else { break };
            println!(
                "  {}: {:.1} % slower; the hog had {}",
                write_rate(rounded(budget)),
                percent(slowdown),
                write_rate(rounded(rate as u64))
            );
            search.tried(budget, slowdown);
        }
        let best = search.threshold();
        protected =
            search.trials().iter().find(|trial| Some(trial.budget) == best).map(|trial| percent(trial.slowdown));
        if let Some(best) = best {
            println!("threshold for 10 %: {}", write_rate(rounded(best)));
        }
    }
    Ok(Measured { stop_us: stop(50), error, protected, unprotected: Some(percent(unprotected)) })
}

/// The victim's time beside the hog relative to alone, and what the hog had in bytes a second: medians of turns in which
/// the victim had its CPU; nothing if there was none.
fn compare(
    shared: &Shared,
    stream: &mut Stream,
    budget: Option<u64>,
    client: &Client,
) -> Result<Option<(f64, f64)>, Box<dyn std::error::Error>> {
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..4 * TURNS {
        let Some(solo) = window(stream) else { continue };
        let section = budget.map(|budget| client.lock_bandwidth(budget)).transpose()?;
        shared.streams.store(true, Ordering::SeqCst);
        let settled = now().saturating_add(Nanos::from_millis(2));
        while now() < settled {
            stream.step();
        }
        let (bytes, began) = (shared.bytes.load(Ordering::SeqCst), now());
        let beside = window(stream);
        let bytes = shared.bytes.load(Ordering::SeqCst) - bytes;
        let elapsed = (now() - began).0.max(1);
        shared.streams.store(false, Ordering::SeqCst);
        drop(section);
        if let Some(beside) = beside {
            ratios.push(solo / beside);
            rates.push(bytes as f64 * 1e9 / elapsed as f64);
        }
        if ratios.len() >= TURNS {
            break;
        }
    }
    Ok((!ratios.is_empty()).then(|| (median(ratios), median(rates))))
}

/// Bytes a nanosecond of the victim; nothing if other threads had its CPU for more than 1.5 % of the window.
fn window(stream: &mut Stream) -> Option<f64> {
    let (began, ran) = (now(), thread_cpu_time());
    let until = began.saturating_add(WINDOW);
    let mut bytes = 0;
    while now() < until {
        bytes += stream.step();
    }
    let elapsed = (now() - began).0;
    let ran = thread_cpu_time().0 - ran.0;
    (ran * 1_000 >= elapsed * 985).then(|| bytes as f64 / elapsed as f64)
}

/// The hog's switches, and what it had.
#[derive(Default)]
struct Shared {
    streams: AtomicBool,
    is_over: AtomicBool,
    bytes: AtomicU64,
    /// Its CPU time in nanoseconds, now and then.
    ran: AtomicU64,
}

impl Shared {
    fn hog(&self, arbitration: &Arbitration, cpu: usize) {
        let _ = scheduling::pin(cpu);
        let Some(traffic) = arbitration.traffic(cpu) else { return };
        let mut stream = Stream::beyond_caches(Pattern::Write, cpu);
        while !self.is_over.load(Ordering::SeqCst) {
            if !self.streams.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_micros(100));
                continue;
            }
            for _ in 0..8 {
                let bytes = stream.step();
                self.bytes.fetch_add(bytes, Ordering::SeqCst);
                traffic.count(bytes);
            }
            self.ran.store(thread_cpu_time().0, Ordering::SeqCst);
        }
    }

    /// What it has in a second on a CPU of its own: whatever else runs on that takes time, and no traffic.
    fn rate(&self, span: Duration) -> u64 {
        self.streams.store(true, Ordering::SeqCst);
        let had = || (self.bytes.load(Ordering::SeqCst), self.ran.load(Ordering::SeqCst));
        let (bytes, ran) = had();
        thread::sleep(span);
        let (now, ran_now) = had();
        self.streams.store(false, Ordering::SeqCst);
        (u128::from(now - bytes) * 1_000_000_000 / u128::from((ran_now - ran).max(1))) as u64
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// To whole MB/s.
fn rounded(bytes: u64) -> u64 {
    (bytes / 1_000_000).max(1) * 1_000_000
}
