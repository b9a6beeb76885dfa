//! The thread that regulates one CPU.
//!
//! ```text
//!            a thread takes the lock              budget of a period         exceeded
//! (asleep) --------------------------> (period) ---------------------> (waits) -------> (throttles)
//!     ^                                   ^                               |                  |
//!     |  the lock is free                 |          the period ends      |                  |
//!     +-----------------------------------+<------------------------------+------------------+
//! ```

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use laxity_gpu::{Arbitration, Exceeded, Traffic};
use laxity_model::{Instant, LockHeed, Nanos};
use laxity_sys::clock;
use laxity_sys::timer::Timer;

use crate::counting::{self, Counting};
use crate::error::BandwidthError;
use crate::fair::Lost;
use crate::observer::Observer;
use crate::regulator::{Report, SAMPLES_MAX, lock, start_on};
use crate::source::Source;
use crate::throttling::{Outcome, Throttling, sleep_until};

/// How long the regulator sleeps at most while the lock is free: a wake-up is never lost, so that this is for memory that
/// another process damages.
const LOOK: Nanos = Nanos::from_millis(200);

/// How long before a period's end a timer expires that wakes up nothing, see [`Cpu::wait`].
const AHEAD: Nanos = Nanos(1_000);

/// All that the thread has.
pub(crate) struct Cpu {
    pub arbitration: Arbitration,
    pub source: Arc<dyn Source>,
    pub number: usize,
    pub period: Nanos,
    pub heed: LockHeed,
    pub counting: Counting,
    pub throttling: Throttling,
    pub is_over: Arc<AtomicBool>,
    pub report: Arc<Mutex<Report>>,
    pub lost: Arc<Lost>,
    pub observer: Arc<dyn Observer>,
}

/// A regulated period.
#[derive(Clone, Copy)]
struct Period {
    number: u64,
    /// Bytes that it may have, by the budget of the lock.
    allowed: u64,
    /// What was counted when it began.
    counted: u64,
    /// What was counted when the lock was taken in it, again if that is not the first time, and what it may have from then
    /// on.
    from: u64,
    left: u64,
    is_first: bool,
    /// For [`Counting::wait`].
    seen: u32,
    end: Instant,
}

impl Cpu {
    /// Starts the thread, which claims the CPU.
    pub fn start(self, priority: u8) -> Result<JoinHandle<()>, BandwidthError> {
        let cpu = self.number;
        let (claimed, is_claimed) = std::sync::mpsc::sync_channel(1);
        let thread = start_on(cpu, priority, move || {
            let arbitration = self.arbitration.clone();
            let Ok(traffic) = counting::traffic(&arbitration, cpu) else {
                let _ = claimed.send(Err(BandwidthError::no_such(cpu)));
                return;
            };
            let claim = traffic.claim().map_err(|pid| BandwidthError::Claimed { cpu, pid });
            let is_ours = claim.is_ok();
            let _ = claimed.send(claim);
            if is_ours {
                self.run(traffic);
                traffic.unclaim();
            }
        })?;
        let ended =
            || Err(BandwidthError::Ended { cpu, error: io::Error::other("it ended before it claimed its CPU") });
        match is_claimed.recv().unwrap_or_else(|_| ended()) {
            Ok(()) => Ok(thread),
            Err(error) => {
                let _ = thread.join();
                Err(error)
            }
        }
    }

    fn run(mut self, traffic: Traffic<'_>) {
        if let Err(error) = self.regulate(traffic) {
            let mut report = lock(&self.report);
            let error = BandwidthError::Ended { cpu: self.number, error };
            report.failed = Some(error.to_string());
        }
        self.counting.lift(traffic);
    }

    fn regulate(&mut self, traffic: Traffic<'_>) -> io::Result<()> {
        let mut last: Option<Period> = None;
        let mut is_free = true;
        let ahead = Timer::new()?;
        while !self.is_over.load(Ordering::SeqCst) {
            let Some(budget) = self.source.budget() else {
                if !is_free {
                    self.counting.lift(traffic);
                    self.free(traffic);
                    is_free = true;
                }
                self.source.wait(clock::now().saturating_add(LOOK));
                continue;
            };
            let now = clock::now();
            let number = now.0 / self.period.0;
            let end = Instant((number + 1) * self.period.0);
            if is_free && self.heed == LockHeed::Period {
                sleep_until(end);
                is_free = false;
                continue;
            }
            is_free = false;
            let period = match last.filter(|last| last.number == number) {
                // The lock was free in between: what was allowed then is not allowed again.
                Some(last) => self.resume(traffic, last, budget)?,
                None => self.begin(traffic, number, budget, end)?,
            };
            last = Some(period);
            let outcome = self.wait(traffic, period, &ahead)?;
            self.account(traffic, period, budget, outcome)?;
        }
        Ok(())
    }

    fn begin(&mut self, traffic: Traffic<'_>, number: u64, budget: u64, end: Instant) -> io::Result<Period> {
        // u128: both factors may have 64 bits. A budget below a byte allows none.
        let allowed = u128::from(budget) * u128::from(self.period.0) / 1_000_000_000;
        let allowed = u64::try_from(allowed).unwrap_or(u64::MAX);
        let counted = self.counting.counted(traffic)?;
        let seen = self.counting.allow(traffic, allowed)?;
        self.observer.regulate(self.number, Some(budget));
        Ok(Period { number, allowed, counted, from: counted, left: allowed, is_first: true, seen, end })
    }

    /// The rest of a period that was regulated before.
    fn resume(&mut self, traffic: Traffic<'_>, last: Period, budget: u64) -> io::Result<Period> {
        let again = self.begin(traffic, last.number, budget, last.end)?;
        let had = again.counted.saturating_sub(last.counted);
        let left = again.allowed.saturating_sub(had);
        let seen = self.counting.allow(traffic, left)?;
        Ok(Period { seen, counted: last.counted, left, is_first: false, ..again })
    }

    /// Until the period ends. The time for which the CPU was throttled, and whether it could be.
    ///
    /// A thread that is woken up cancels the timer of its wait. Were that the CPU's next one, Linux would set the CPU's
    /// clock anew before the thread runs, which costs a virtual machine 6 us: so another timer, `ahead`, is the next one.
    fn wait(&mut self, traffic: Traffic<'_>, period: Period, ahead: &Timer) -> io::Result<Option<(Outcome, Nanos)>> {
        ahead.arm(Instant(period.end.0.saturating_sub(AHEAD.0)))?;
        let Some(Exceeded { thread, at }) = self.counting.wait(traffic, period.seen, period.end)? else {
            return Ok(None);
        };
        let now = clock::now();
        let (cpu, observer) = (self.number, &self.observer);
        // No thread has this number.
        let culprit = thread.unwrap_or(0);
        let outcome = self.throttling.throttle((cpu, culprit), now, period.end, || observer.throttle(cpu, culprit))?;
        let ended = clock::now();
        if outcome == Outcome::LetRun {
            // It has had its share of this period: no second look at the same overflow.
            sleep_until(period.end);
            return Ok(Some((outcome, Nanos::ZERO)));
        }
        let span = ended.saturating_since(now);
        self.observer.unthrottle(cpu, culprit, span);
        if let Some(thread) = thread {
            self.lost.add(thread, span);
        }
        let mut report = lock(&self.report);
        if report.stops.len() < SAMPLES_MAX {
            report.stops.push(now.saturating_since(at));
        }
        Ok(Some((outcome, span)))
    }

    fn account(
        &mut self,
        traffic: Traffic<'_>,
        period: Period,
        budget: u64,
        outcome: Option<(Outcome, Nanos)>,
    ) -> io::Result<()> {
        let bytes = self.counting.counted(traffic)?.saturating_sub(period.from);
        let mut report = lock(&self.report);
        let sums = &mut report.regulation;
        sums.pid = std::process::id();
        sums.thread = laxity_sys::scheduling::current_thread();
        sums.period = self.period;
        sums.budget = budget;
        sums.periods += u64::from(period.is_first);
        sums.bytes += bytes;
        sums.allowed = sums.allowed.saturating_add(if period.is_first { period.allowed } else { 0 });
        if let Some((outcome, span)) = outcome {
            sums.throttled_periods += u64::from(outcome == Outcome::Throttled);
            sums.throttled = Nanos(sums.throttled.0 + span.0);
        }
        traffic.publish(sums);
        report.let_run += u64::from(matches!(outcome, Some((Outcome::LetRun, _))));
        report.excess = report.excess.max(bytes.saturating_sub(period.left));
        Ok(())
    }

    /// The CPU is not regulated now.
    fn free(&self, traffic: Traffic<'_>) {
        self.observer.regulate(self.number, None);
        let mut report = lock(&self.report);
        report.regulation.budget = 0;
        traffic.publish(&report.regulation);
    }
}
