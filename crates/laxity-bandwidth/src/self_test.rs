//! Whether counting and throttling work on a CPU: a hog of known traffic must be stopped at its budget.
//!
//! On the original's platform regulation has no effect on some cores, and virtual machines may show counters that count
//! nothing. Regulation is refused by name then, before any program relies on it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use laxity_gpu::Arbitration;
use laxity_measure::memory::{Pattern, Stream};
use laxity_model::{LockHeed, Nanos};
use laxity_sys::{clock, scheduling};

use crate::counting::{self, Counting};
use crate::cpu::Cpu;
use crate::error::BandwidthError;
use crate::fair::Lost;
use crate::options::{Options, Throttle};
use crate::regulator::{Report, lock};
use crate::source::Always;
use crate::throttling::{InKernel, Throttling};

/// For how long the hog runs unhindered.
const UNHINDERED: Duration = Duration::from_millis(10);
/// And regulated, at least: as many whole periods, since it may have the budget of one in any part of that.
const REGULATED: Duration = Duration::from_millis(40);
/// The hog may have this more than its budget: what it has until the regulator runs.
const EXCESS_MAX: f64 = 1.25;
/// How often it is tried.
const ATTEMPTS: usize = 4;
/// Memory that the hog goes through: more than the caches of one core, and soon touched.
const MEMORY: usize = 8 << 20;

/// Tries the counter and the throttling of `options` on `cpu`.
///
/// # Errors
/// [`BandwidthError::SelfTest`], and what keeps it from being tried.
pub(crate) fn run(
    arbitration: &Arbitration,
    options: &Options,
    cpu: usize,
    in_kernel: Option<&InKernel>,
) -> Result<(), BandwidthError> {
    let traffic = counting::traffic(arbitration, cpu)?;
    let (own, ran) = (AtomicU64::new(0), AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let hog = scope.spawn(|| {
            scheduling::pin(cpu).inspect_err(|_| is_over.store(true, Ordering::SeqCst))?;
            let mut stream = Stream::new(Pattern::Write, MEMORY);
            while !is_over.load(Ordering::SeqCst) {
                for _ in 0..8 {
                    let bytes = stream.step();
                    own.fetch_add(bytes, Ordering::SeqCst);
                    traffic.count(bytes);
                }
                ran.store(clock::thread_cpu_time().0, Ordering::SeqCst);
            }
            Ok::<(), std::io::Error>(())
        });
        // Other programs may take the CPU from the hog for a while.
        let measure = || measure(arbitration, options, cpu, (&own, &ran), &is_over, in_kernel.map(InKernel::lenient));
        let mut tested = measure();
        for _ in 1..ATTEMPTS {
            if let Err(BandwidthError::SelfTest { .. }) = tested {
                tested = measure();
            }
        }
        is_over.store(true, Ordering::SeqCst);
        let pinned = hog.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        pinned.map_err(|error| BandwidthError::Cpu { cpu, reason: error.to_string() })?;
        tested
    })
}

fn measure(
    arbitration: &Arbitration,
    options: &Options,
    cpu: usize,
    (own, ran): (&AtomicU64, &AtomicU64),
    has_ended: &AtomicBool,
    in_kernel: Option<InKernel>,
) -> Result<(), BandwidthError> {
    let rate = |span: Duration| {
        let (bytes, begin) = (own.load(Ordering::SeqCst), clock::now());
        thread::sleep(span);
        let elapsed = clock::now().saturating_since(begin).0.max(1);
        ((own.load(Ordering::SeqCst) - bytes) as f64 * 1e9 / elapsed as f64) as u64
    };
    // Its memory is touched first.
    while own.load(Ordering::SeqCst) == 0 {
        if has_ended.load(Ordering::SeqCst) {
            // It could not be kept on its CPU, which its end tells.
            return Ok(());
        }
        thread::sleep(Duration::from_micros(100));
    }
    // A quarter of what it has on a CPU, whatever else runs there, so that it is throttled for most of each period and the
    // occupier suffices.
    let had = || (own.load(Ordering::SeqCst), ran.load(Ordering::SeqCst));
    let (bytes, before) = had();
    while ran.load(Ordering::SeqCst) < before + UNHINDERED.as_nanos() as u64 {
        thread::sleep(Duration::from_micros(500));
    }
    let (now, after) = had();
    let allowed = ((now - bytes) as f64 * 1e9 / (after - before) as f64) as u64 / 4;
    let throttle = if in_kernel.is_some() { "the scheduler in the kernel" } else { "the occupier" };
    let counting = Counting::open(options.counter, cpu)?;
    let name = counting.name();
    let report = Arc::new(Mutex::new(Report { cpu, ..Report::default() }));
    let is_over = Arc::new(AtomicBool::new(false));
    let period = options.period.max(Nanos::from_millis(1));
    let regulator = Cpu {
        arbitration: arbitration.clone(),
        source: Arc::new(Always(allowed)),
        number: cpu,
        period,
        heed: LockHeed::AtOnce,
        counting,
        // The hog is a thread of this process, which must not be frozen.
        throttling: Throttling::new(Throttle::Occupier, None, in_kernel),
        is_over: is_over.clone(),
        report: report.clone(),
        lost: Arc::new(Lost::default()),
        observer: Arc::new(()),
    };
    let thread = regulator.start(options.priority)?;
    let periods = |count: u64| Duration::from_nanos(count * period.0);
    thread::sleep(periods(2));
    let achieved = rate(periods((REGULATED.as_nanos() as u64).div_ceil(period.0)));
    is_over.store(true, Ordering::SeqCst);
    let _ = thread.join();
    let periods = lock(&report).regulation.throttled_periods;
    if periods == 0 || achieved as f64 > allowed as f64 * EXCESS_MAX {
        return Err(BandwidthError::SelfTest { cpu, allowed, achieved, counter: name, throttle });
    }
    Ok(())
}
