//! Measuring how a stream slows down with the traffic of a hog on another CPU.
//!
//! A machine changes while it is measured, and hosts move virtual CPUs about. So the victim alone and the victim beside
//! the hog take turns, in windows of a few milliseconds, and the median of the ratios of neighbours counts. Windows in
//! which Linux took the CPU from the victim or the hog are left out.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_sys::clock::{now, thread_cpu_time};
use laxity_sys::scheduling;

use super::curve::{Curve, CurvePoint};
use super::stream::{Pattern, Stream};

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Contention {
    /// Where the victim runs, and where the hog does.
    pub cpus: [usize; 2],
    /// What the victim does.
    pub victim: Pattern,
    /// What the hog does.
    pub hog: Pattern,
    /// The parts of its time, in thousandths, that the hog streams.
    pub duties: Vec<u64>,
    /// Turns for each of them.
    pub turns: usize,
    /// The length of a window: some periods of the hog.
    pub window: Nanos,
}

/// A hog beside a victim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interference {
    /// The hog's traffic, bytes a second.
    pub traffic: u64,
    /// The victim's time, relative to alone: the median of `turns`.
    pub slowdown: f64,
    /// What the victim had alone, bytes a second.
    pub solo: u64,
    /// Turns that were not disturbed.
    pub turns: usize,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum ContentionError {
    /// A thread cannot be on its CPU.
    #[error("CPU {cpu}: {error}; measure CPUs that this process may use")]
    Cpu {
        /// Its number.
        cpu: usize,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Victim and hog must not share a CPU.
    #[error("CPU {cpu} for victim and hog: they would take turns there; name two CPUs")]
    Same {
        /// Its number.
        cpu: usize,
    },
    /// Other programs used the CPUs all the time.
    #[error("other programs disturbed all of {turns} turns on CPUs {victim} and {hog}; stop them, or measure longer")]
    Disturbed {
        /// How many.
        turns: usize,
        /// The victim's CPU.
        victim: usize,
        /// The hog's.
        hog: usize,
    },
}

/// How long the hog streams and pauses, together.
const PERIOD: Nanos = Nanos::from_millis(1);
/// A window in which a thread had less than this of its CPU, in thousandths, was disturbed.
const UNDISTURBED: u64 = 985;

impl Contention {
    /// Reads beside writes at eight duties, the hog's first choice by the published setting; about `4 * turns` tenths of a
    /// second.
    pub fn new(cpus: [usize; 2]) -> Self {
        Contention {
            cpus,
            victim: Pattern::Copy,
            hog: Pattern::Write,
            duties: vec![30, 60, 125, 250, 375, 500, 750, 1_000],
            turns: 9,
            window: Nanos::from_millis(10),
        }
    }

    /// Measures every duty.
    ///
    /// # Errors
    /// [`ContentionError`].
    pub fn measure(&self) -> Result<Vec<Interference>, ContentionError> {
        self.measure_until(&|| false)
    }

    /// As [`Contention::measure`], until `is_over`, which is asked after each turn.
    ///
    /// # Errors
    /// [`ContentionError`].
    pub fn measure_until(&self, is_over: &(dyn Fn() -> bool + Sync)) -> Result<Vec<Interference>, ContentionError> {
        let [victim, hog] = self.cpus;
        if victim == hog {
            return Err(ContentionError::Same { cpu: hog });
        }
        let shared = Shared::default();
        thread::scope(|scope| {
            let hogs = scope.spawn(|| shared.hog(self.hog, hog));
            let victims = scope.spawn(|| {
                let measured = self.victim(&shared, is_over);
                shared.is_over.store(true, Ordering::SeqCst);
                measured
            });
            let measured = victims.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            hogs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            measured
        })
    }

    /// How much the victim slows down beside the unhindered hog.
    ///
    /// # Errors
    /// [`ContentionError`].
    pub fn interference(&self) -> Result<Interference, ContentionError> {
        let full = Contention { duties: vec![1_000], ..self.clone() };
        let measured = full.measure()?;
        measured.first().copied().ok_or(ContentionError::Disturbed {
            turns: self.turns,
            victim: self.cpus[0],
            hog: self.cpus[1],
        })
    }

    /// The curve through what was measured.
    pub fn curve(measured: &[Interference]) -> Curve {
        let point = |one: &Interference| CurvePoint { traffic: one.traffic, slowdown: one.slowdown };
        Curve::through(measured.iter().map(point))
    }

    fn victim(
        &self,
        shared: &Shared,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Interference>, ContentionError> {
        let [cpu, hog_cpu] = self.cpus;
        scheduling::pin(cpu).map_err(|error| ContentionError::Cpu { cpu, error })?;
        let mut stream = Stream::beyond_caches(self.victim, cpu);
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); self.duties.len()];
        // All duties in turn, so that a machine that changes does so for all.
        'turns: for _ in 0..self.turns {
            for (of_duty, &duty) in samples.iter_mut().zip(&self.duties) {
                if is_over() || shared.is_over.load(Ordering::SeqCst) {
                    break 'turns;
                }
                shared.set(0);
                let solo = self.window(&mut stream);
                shared.set(duty);
                // The hog sees it at its next period.
                self.pause(&mut stream);
                let (bytes, had) = (shared.bytes.load(Ordering::SeqCst), shared.had.load(Ordering::SeqCst));
                let beside = self.window(&mut stream);
                let bytes = shared.bytes.load(Ordering::SeqCst) - bytes;
                let had = shared.had.load(Ordering::SeqCst) - had;
                if let (Some(solo), Some(beside)) = (solo, beside)
                    && had * 1_000 >= beside.elapsed.0 * UNDISTURBED
                {
                    let traffic = bytes as f64 / beside.elapsed.0 as f64;
                    of_duty.push(Sample { ratio: solo.rate() / beside.rate(), traffic, solo: solo.rate() });
                }
            }
        }
        shared.set(0);
        let measured: Vec<Interference> = samples.iter().filter_map(|of_duty| Sample::median(of_duty)).collect();
        if measured.is_empty() {
            return Err(ContentionError::Disturbed { turns: self.turns, victim: cpu, hog: hog_cpu });
        }
        Ok(measured)
    }

    /// Streams for a window; `None` if other threads had the CPU meanwhile.
    fn window(&self, stream: &mut Stream) -> Option<Window> {
        let (begin, ran) = (now(), thread_cpu_time());
        let until = begin.saturating_add(self.window);
        let mut bytes = 0;
        while now() < until {
            bytes += stream.step();
        }
        let elapsed = now() - begin;
        let ran = Nanos(thread_cpu_time().0 - ran.0);
        (ran.0 * 1_000 >= elapsed.0 * UNDISTURBED).then_some(Window { bytes, elapsed })
    }

    fn pause(&self, stream: &mut Stream) {
        let until = now().saturating_add(Nanos(2 * PERIOD.0));
        while now() < until {
            stream.step();
        }
    }
}

/// What victim and hog share.
#[derive(Debug, Default)]
struct Shared {
    /// In thousandths.
    duty: AtomicU64,
    /// Bytes that the hog had.
    bytes: AtomicU64,
    /// For how many nanoseconds it has had its CPU, as it says itself all the time: a hog that has none says nothing.
    had: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    fn set(&self, duty: u64) {
        self.duty.store(duty, Ordering::SeqCst);
    }

    fn hog(&self, pattern: Pattern, cpu: usize) -> Result<(), ContentionError> {
        let end = || self.is_over.store(true, Ordering::SeqCst);
        scheduling::pin(cpu).map_err(|error| ContentionError::Cpu { cpu, error }).inspect_err(|_| end())?;
        let mut stream = Stream::beyond_caches(pattern, cpu);
        while !self.is_over.load(Ordering::SeqCst) {
            let duty = self.duty.load(Ordering::SeqCst);
            let end = Instant((now().0 / PERIOD.0 + 1) * PERIOD.0);
            let busy = Instant(end.0.saturating_sub(PERIOD.0) + PERIOD.0 * duty / 1_000);
            while now() < busy {
                self.bytes.fetch_add(stream.step(), Ordering::SeqCst);
                self.has_cpu();
            }
            while now() < end && (duty > 0 || !self.is_over.load(Ordering::SeqCst)) {
                std::hint::spin_loop();
                self.has_cpu();
            }
        }
        Ok(())
    }

    /// The hog has had its CPU until now.
    fn has_cpu(&self) {
        self.had.store(thread_cpu_time().0, Ordering::SeqCst);
    }
}

/// A window of the victim.
struct Window {
    bytes: u64,
    elapsed: Nanos,
}

impl Window {
    /// Bytes a nanosecond.
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.elapsed.0 as f64
    }
}

/// Two neighbouring windows; rates in bytes a nanosecond.
#[derive(Clone, Copy)]
struct Sample {
    ratio: f64,
    traffic: f64,
    solo: f64,
}

impl Sample {
    fn median(samples: &[Sample]) -> Option<Interference> {
        let median = |of: fn(&Sample) -> f64| {
            let mut values: Vec<f64> = samples.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied()
        };
        Some(Interference {
            traffic: (median(|sample| sample.traffic)? * 1e9) as u64,
            slowdown: median(|sample| sample.ratio)?,
            solo: (median(|sample| sample.solo)? * 1e9) as u64,
            turns: samples.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hog_at_a_quarter_of_its_time_has_about_a_quarter_of_its_traffic() {
        let usable = scheduling::usable_cpus().expect("Linux says which");
        let &[first, second, ..] = &usable[..] else { return laxity_testing::skip("one CPU has no interference") };
        let contention = Contention { duties: vec![250, 1_000], turns: 5, ..Contention::new([first, second]) };
        match contention.measure() {
            // Without a calm machine neither number means anything.
            Ok(measured) if measured.len() == 2 => {
                let [quarter, full] = [measured[0].traffic, measured[1].traffic];
                assert!(quarter * 2 < full, "{quarter} B/s at a quarter, {full} B/s at all");
                assert!(measured.iter().all(|one| one.solo > 0 && one.slowdown > 0.0));
            }
            Ok(_) | Err(ContentionError::Disturbed { .. }) => {
                laxity_testing::skip("other programs disturbed all turns")
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_hog_without_a_cpu_is_told_from_one_that_does_no_harm() {
        let usable = scheduling::usable_cpus().expect("Linux says which");
        let &[first, second, ..] = &usable[..] else { return laxity_testing::skip("one CPU has no interference") };
        let is_over = AtomicBool::new(false);
        let found = thread::scope(|scope| {
            let (is_over, said) = (&is_over, std::sync::mpsc::channel());
            scope.spawn(move || {
                let urgent =
                    scheduling::pin(second).and_then(|()| scheduling::Attributes::fifo_not_inherited(1).give_to(0));
                let is_urgent = urgent.is_ok();
                said.0.send(urgent).expect("it is waited for");
                while is_urgent && !is_over.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
            });
            let found =
                said.1.recv().expect("it says so").map(|()| {
                    Contention { duties: vec![1_000], turns: 5, ..Contention::new([first, second]) }.measure()
                });
            is_over.store(true, Ordering::SeqCst);
            found
        });
        match found {
            Err(error) => laxity_testing::skip(error),
            Ok(Err(ContentionError::Disturbed { .. })) => {}
            // Linux may let others have the CPU for a twentieth of each second.
            Ok(Ok(measured)) => assert!(measured.iter().all(|one| one.traffic > 0), "{measured:?}"),
            Ok(Err(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn one_cpu_has_no_interference_to_measure() {
        let error = Contention::new([0, 0]).measure().expect_err("they would take turns");
        assert_eq!(error.to_string(), "CPU 0 for victim and hog: they would take turns there; name two CPUs");
    }
}
