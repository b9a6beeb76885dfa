//! Switching from one thread to another that is ready.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use laxity_model::Nanos;
use laxity_sys::clock::now;

use super::Place;
use crate::crew::{Level, Part, Slice, Work};
use crate::options::MeasureError;
use crate::probe::Probe;
use crate::samples::Samples;

/// Two threads of one priority yield to each other. Before it yields, each thread notes the time; the thread that runs next and
/// finds the other's note was switched to meanwhile. A thread ends without a note, so that its end is part of no sample.
pub(super) fn measure(place: &Place<'_>, probe: Probe, samples: &mut Samples) -> Result<(), MeasureError> {
    let note = &AtomicU64::new(0);
    let of = |side: u64| {
        move |slice: &Slice| -> Work {
            while !slice.is_over() {
                note.store(now().0 << 1 | side, Ordering::Relaxed);
                thread::yield_now();
                let arrived = now();
                let last = note.load(Ordering::Relaxed);
                if last & 1 != side && last > 1 {
                    slice.take(Nanos(arrived.0.saturating_sub(last >> 1)));
                }
            }
            Ok(())
        }
    };
    let (first, second) = (of(0), of(1));
    let part = |work| Part { cpu: place.cpu, level: Level::High, work };
    place.together(probe, &[part(&first), part(&second)], samples)
}
