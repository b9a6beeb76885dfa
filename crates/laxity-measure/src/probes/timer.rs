//! Timers: how late their threads run, and what arming one takes.

use laxity_model::Nanos;
use laxity_sys::clock::now;
use laxity_sys::timer::Timer;

use super::Place;
use crate::crew::{Level, Part, Slice, Work, sleep_until};
use crate::options::MeasureError;
use crate::probe::Probe;
use crate::samples::Samples;

/// Between two releases. The remainders of a prime are added, so that they keep no step with ticks.
const GAP: Nanos = Nanos::from_micros(150);
const GAP_STEP: u64 = 37;
const GAP_STEPS: u64 = 101;

/// A thread sleeps until absolute times by the timer that `laxity run` uses, a futex's.
pub(super) fn latency(
    place: &Place<'_>,
    probe: Probe,
    is_busy: bool,
    samples: &mut Samples,
) -> Result<(), MeasureError> {
    let sleeper = |slice: &Slice| -> Work {
        let mut number = 0;
        while !slice.is_over() {
            number += 1;
            let extra = Nanos::from_micros(number * GAP_STEP % GAP_STEPS);
            let due = now().saturating_add(GAP).saturating_add(extra);
            sleep_until(due);
            slice.take(now() - due);
        }
        Ok(())
    };
    let busy = |slice: &Slice| slice.keep_busy();
    let sleeper = Part { cpu: place.cpu, level: Level::High, work: &sleeper };
    let busy = Part { cpu: place.cpu, level: Level::Low, work: &busy };
    if is_busy { place.together(probe, &[sleeper, busy], samples) } else { place.together(probe, &[sleeper], samples) }
}

/// The timer moves between two times that are far away: it never expires.
pub(super) fn arm(place: &Place<'_>, probe: Probe, samples: &mut Samples) -> Result<(), MeasureError> {
    place.alone(probe, samples, &|slice| {
        let timer = Timer::new()?;
        let mut far = now().saturating_add(Nanos::from_secs(3_600));
        while !slice.is_over() {
            far = far.saturating_add(Nanos::from_micros(1));
            let begin = now();
            timer.arm(far)?;
            slice.take(now() - begin);
        }
        Ok(())
    })
}
