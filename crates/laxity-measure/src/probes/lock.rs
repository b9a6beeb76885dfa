//! Locks whose holders inherit priorities, as `laxity run` has them.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Nanos;
use laxity_sys::clock::now;
use laxity_sys::futex;
use laxity_sys::pi_lock::PiLock;

use super::Place;
use crate::crew::{Level, Part, Slice, Stamp, Work, sleep};
use crate::options::MeasureError;
use crate::probe::Probe;
use crate::samples::Samples;

/// How often a lock is taken for one sample: once is hardly longer than looking at the clock.
const BATCH: u64 = 32;
/// Until the other thread waits, as a rule.
const GAP: Nanos = Nanos::from_micros(100);

pub(super) fn uncontended(place: &Place<'_>, probe: Probe, samples: &mut Samples) -> Result<(), MeasureError> {
    place.alone(probe, samples, &|slice| {
        let lock = PiLock::default();
        while !slice.is_over() {
            let begin = now();
            for _ in 0..BATCH {
                if !lock.try_lock() {
                    lock.lock()?;
                }
                lock.unlock()?;
            }
            slice.take(Nanos((now() - begin).0.div_ceil(BATCH)));
        }
        Ok(())
    })
}

/// ```text
/// holder   lock, turn = 1, wake   sleep ............   note the time, unlock
/// waiter   ..... waits while turn is 0, asks for the lock ............... -> sample, turn = 0, unlock
/// ```
pub(super) fn handover(place: &Place<'_>, probe: Probe, samples: &mut Samples) -> Result<(), MeasureError> {
    let (lock, turn, unlocked) = (&PiLock::default(), &AtomicU32::new(0), &Stamp::default());
    let take = || if lock.try_lock() { Ok(()) } else { lock.lock() };
    let holder = |slice: &Slice| -> Work {
        while !slice.is_over() {
            if turn.load(Ordering::Acquire) == 0 {
                take()?;
                turn.store(1, Ordering::Release);
                futex::wake_one(turn);
                sleep(GAP);
                unlocked.mark();
                lock.unlock()?;
            }
            sleep(GAP);
        }
        Ok(())
    };
    let waiter = |slice: &Slice| -> Work {
        while slice.wait_while(turn, 0) {
            let asked = now();
            take()?;
            let passed = unlocked.elapsed();
            // A thread that comes when it is free already was not handed it.
            if unlocked.at() > asked {
                slice.take(passed);
            }
            turn.store(0, Ordering::Release);
            lock.unlock()?;
        }
        Ok(())
    };
    let holder = Part { cpu: place.other, level: Level::Middle, work: &holder };
    let waiter = Part { cpu: place.cpu, level: Level::High, work: &waiter };
    place.together(probe, &[holder, waiter], samples)
}
