//! Waking a thread that waits on a futex.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Nanos;
use laxity_sys::futex;

use super::Place;
use crate::crew::{Level, Part, Slice, Stamp, Work, sleep};
use crate::options::MeasureError;
use crate::probe::Probe;
use crate::samples::Samples;

/// Between two wake-ups: the waiter is suspended again by then, as a rule.
const GAP: Nanos = Nanos::from_micros(100);

/// ```text
/// waker    note the time, turn = 1, wake    sleep .......   note the time ...
/// waiter   ...... waits while turn is 0 ->  sample, turn = 0, wait
/// ```
pub(super) fn measure(
    place: &Place<'_>,
    probe: Probe,
    waker_cpu: usize,
    is_busy: bool,
    samples: &mut Samples,
) -> Result<(), MeasureError> {
    let (turn, woken) = (&AtomicU32::new(0), &Stamp::default());
    let waker = |slice: &Slice| -> Work {
        while !slice.is_over() {
            sleep(GAP);
            if turn.load(Ordering::Acquire) == 0 {
                woken.mark();
                turn.store(1, Ordering::Release);
                futex::wake_one(turn);
            }
        }
        Ok(())
    };
    let waiter = |slice: &Slice| -> Work {
        while slice.wait_while(turn, 0) {
            slice.take(woken.elapsed());
            turn.store(0, Ordering::Release);
        }
        Ok(())
    };
    let busy = |slice: &Slice| slice.keep_busy();
    let waker = Part { cpu: waker_cpu, level: Level::Middle, work: &waker };
    let waiter = Part { cpu: place.cpu, level: Level::High, work: &waiter };
    let busy = Part { cpu: place.cpu, level: Level::Low, work: &busy };
    if is_busy {
        place.together(probe, &[waker, waiter, busy], samples)
    } else {
        place.together(probe, &[waker, waiter], samples)
    }
}
