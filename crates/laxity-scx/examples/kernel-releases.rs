//! How soon a released job begins while a less urgent one executes: `make bench-kernel`.
//!
//!     kernel-releases [laxity|deadline] [jobs=500]
//!
//! A thread with the later deadline executes without end on the first CPU; one with a period of 10 ms preempts it there. Under
//! `laxity` both are tasks of the scheduler in the kernel, under `deadline` of `SCHED_DEADLINE`. Only jobs that found the other
//! one executing count: `SCHED_DEADLINE` lets that use its budget, and no more.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_scx::{Membership, TaskRequest};
use laxity_sys::clock::{now, sleep_until};
use laxity_sys::scheduling::set_deadline;

const URGENT: Nanos = Nanos::from_millis(10);
const URGENT_WCET: Nanos = Nanos::from_millis(1);
const OTHER: Nanos = Nanos::from_millis(1_000);
const OTHER_WCET: Nanos = Nanos::from_millis(800);
/// Its one job under Laxity stays the less urgent one for all that time.
const ENDLESS: Nanos = Nanos::from_secs(1_000);
/// The less urgent thread was seen so shortly before the release: it executed then.
const RECENT: Nanos = Nanos::from_micros(20);

/// When the less urgent thread executed last, in ns on the monotonic clock, and whether it is to end.
static SEEN: AtomicU64 = AtomicU64::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

fn execute_until_the_end() {
    while !IS_OVER.load(Ordering::Relaxed) {
        SEEN.store(now().0, Ordering::Relaxed);
    }
}

fn request(name: &str, period: Nanos, wcet: Nanos, start: Instant) -> TaskRequest {
    let (priority, cluster, release) = (period.0, Some(0), Some(start));
    TaskRequest { priority, cluster, release, ..TaskRequest::periodic(name, period, wcet) }
}

/// The delays of `jobs` jobs, in ns.
fn measure(jobs: usize, mut next: impl FnMut() -> Instant) -> Vec<u64> {
    let mut delays = Vec::new();
    // The time for which it may last, if the other thread has no CPU for long.
    for _ in 0..20 * jobs {
        let release = next();
        let delay = now().saturating_since(release).0;
        if SEEN.load(Ordering::Relaxed).saturating_add(RECENT.0) >= release.0 {
            delays.push(delay);
        }
        if delays.len() == jobs {
            break;
        }
    }
    delays
}

fn under_laxity(jobs: usize) -> Result<Vec<u64>, String> {
    let scheduler = Arc::new(Membership::join().map_err(|error| error.to_string())?);
    let members = Arc::clone(&scheduler);
    // Both are tasks by then: on one CPU the loader, which makes them tasks, has no time while one executes.
    let start = now().saturating_add(Nanos::from_millis(500));
    let other = thread::spawn(move || {
        let mut task =
            members.begin(&request("other", ENDLESS, OTHER_WCET, start)).map_err(|error| error.to_string())?;
        task.next_job();
        execute_until_the_end();
        Ok::<_, String>(())
    });
    let mut task =
        scheduler.begin(&request("urgent", URGENT, URGENT_WCET, start)).map_err(|error| error.to_string())?;
    let delays = measure(jobs, || task.next_job().release);
    let is_scheduled = task.is_scheduled();
    IS_OVER.store(true, Ordering::Relaxed);
    drop(task);
    other.join().map_err(|_| "a thread panicked".to_owned())??;
    if is_scheduled { Ok(delays) } else { Err("the scheduler ended".to_owned()) }
}

fn under_deadline(jobs: usize) -> Result<Vec<u64>, String> {
    let refused = |error| format!("no right to SCHED_DEADLINE: {error}");
    let other = thread::spawn(move || {
        set_deadline(OTHER_WCET, OTHER, OTHER).map_err(refused)?;
        execute_until_the_end();
        Ok::<_, String>(())
    });
    set_deadline(URGENT_WCET, URGENT, URGENT).map_err(refused)?;
    let mut release = now();
    let delays = measure(jobs, || {
        release = release.saturating_add(URGENT);
        sleep_until(release);
        release
    });
    IS_OVER.store(true, Ordering::Relaxed);
    other.join().map_err(|_| "a thread panicked".to_owned())??;
    Ok(delays)
}

fn run() -> Result<(), String> {
    let (mut class, mut jobs) = ("laxity".to_owned(), 500);
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("jobs=") {
            Some(count) => jobs = count.parse().map_err(|error| format!("{argument}: {error}"))?,
            None => class = argument,
        }
    }
    let mut delays = match class.as_str() {
        "laxity" => under_laxity(jobs)?,
        "deadline" => under_deadline(jobs)?,
        _ => return Err(format!("{class}: laxity and deadline are known")),
    };
    delays.sort_unstable();
    let (Some(&median), Some(&longest)) = (delays.get(delays.len() / 2), delays.last()) else {
        return Err("no job found the less urgent thread executing".to_owned());
    };
    let us = |ns: u64| format!("{}.{}", ns / 1_000, ns % 1_000 / 100);
    println!("{class} jobs={} p50_us={} max_us={}", delays.len(), us(median), us(longest));
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
