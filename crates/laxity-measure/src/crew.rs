//! The threads of a probe: each on its CPU, with its priority, for one slice of time.

use std::cell::RefCell;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_sys::clock::now;
use laxity_sys::futex::{self, Ended};
use laxity_sys::scheduling;

use crate::options::MeasureError;
use crate::samples::{Samples, Tally};

/// The threads that a thread of a probe may preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// Keeps a CPU busy.
    Low = 60,
    /// Wakes, and lets go of locks.
    Middle = 70,
    /// Is woken, and measures.
    High = 80,
}

/// How probes are scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// By `SCHED_FIFO`, or else by `SCHED_OTHER`.
    pub is_real_time: bool,
}

/// One thread of a probe.
pub(crate) struct Part<'a> {
    pub cpu: usize,
    pub level: Level,
    pub work: &'a (dyn Fn(&Slice) -> Work + Sync),
}

/// What becomes of a thread's work.
pub(crate) type Work = Result<(), io::Error>;

/// The time of a thread, and what it samples.
pub(crate) struct Slice {
    until: Instant,
    tally: RefCell<Tally>,
}

impl Slice {
    /// Whether it is over. All loops end by the clock: no thread relies on another one's getting a CPU.
    pub fn is_over(&self) -> bool {
        now() >= self.until
    }

    /// Takes a sample.
    pub fn take(&self, span: Nanos) {
        self.tally.borrow_mut().take(span);
    }

    /// Computes until it is over.
    pub fn keep_busy(&self) -> Work {
        while !self.is_over() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Suspends this thread while `word` is `value`, unless the slice is over; answers whether it is not.
    pub fn wait_while(&self, word: &AtomicU32, value: u32) -> bool {
        while word.load(Ordering::Acquire) == value {
            if futex::wait(word, value, self.until) == Ended::TimedOut {
                return false;
            }
        }
        !self.is_over()
    }
}

/// When something was, written down by one thread for another.
#[derive(Debug, Default)]
pub(crate) struct Stamp(AtomicU64);

impl Stamp {
    /// It is now.
    pub fn mark(&self) {
        self.0.store(now().0, Ordering::Relaxed);
    }

    pub fn at(&self) -> Instant {
        Instant(self.0.load(Ordering::Relaxed))
    }

    /// What has passed since; nothing where clocks of two CPUs seem to differ.
    pub fn elapsed(&self) -> Nanos {
        Nanos(now().0.saturating_sub(self.at().0))
    }
}

/// Suspends this thread until `at`.
pub(crate) fn sleep_until(at: Instant) {
    let unused = AtomicU32::new(0);
    while futex::wait(&unused, 0, at) != Ended::TimedOut {}
}

/// Suspends this thread for `span`.
pub(crate) fn sleep(span: Nanos) {
    sleep_until(now().saturating_add(span));
}

/// Does all of `parts` at once, for `length`, and adds what they sampled to `samples`.
pub(crate) fn work_together(
    setting: Setting,
    length: Nanos,
    parts: &[Part<'_>],
    samples: &mut Samples,
) -> Result<(), MeasureError> {
    let (barrier, has_failed) = (Barrier::new(parts.len()), AtomicBool::new(false));
    let outcomes: Vec<Result<Option<Tally>, MeasureError>> = thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|part| {
                let (barrier, has_failed) = (&barrier, &has_failed);
                scope.spawn(move || {
                    let tally = RefCell::new(Tally::new());
                    let prepared = prepare(setting, part);
                    has_failed.fetch_or(prepared.is_err(), Ordering::Relaxed);
                    // All begin together, or none does.
                    barrier.wait();
                    prepared?;
                    if has_failed.load(Ordering::Relaxed) {
                        return Ok(None);
                    }
                    let slice = Slice { until: now().saturating_add(length), tally };
                    let failed =
                        |source| MeasureError::Thread { cpu: part.cpu, what: "do what is to be measured", source };
                    (part.work)(&slice).map_err(failed)?;
                    Ok(Some(slice.tally.into_inner()))
                })
            })
            .collect();
        let panicked = "a probe's asserts hold";
        threads.into_iter().map(|thread| thread.join().expect(panicked)).collect()
    });
    for outcome in outcomes {
        outcome?.into_iter().for_each(|tally| tally.fold_into(samples));
    }
    Ok(())
}

fn prepare(setting: Setting, part: &Part<'_>) -> Result<(), MeasureError> {
    let failed = |what| move |source| MeasureError::Thread { cpu: part.cpu, what, source };
    scheduling::pin(part.cpu).map_err(failed("be kept there"))?;
    // None are known, and a late timer is a sample as any other.
    let _ = scheduling::expire_on_time();
    if setting.is_real_time {
        scheduling::set_fifo(part.level as u8).map_err(failed("be scheduled by SCHED_FIFO"))?;
    }
    Ok(())
}

/// Whether this user may schedule by `SCHED_FIFO`.
pub(crate) fn may_be_real_time() -> bool {
    thread::spawn(|| scheduling::set_fifo(Level::High as u8).is_ok()).join().unwrap_or(false)
}
