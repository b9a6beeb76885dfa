//! Copying memory, which is what copies of the soft GPU are made of.

use std::hint::black_box;

use laxity_sys::clock::now;

use super::Place;
use crate::options::MeasureError;
use crate::probe::{Bytes, Probe};
use crate::samples::Samples;

/// From one buffer to another, again and again: what fits into caches is there.
pub(super) fn copy(
    place: &Place<'_>,
    probe: Probe,
    Bytes(bytes): Bytes,
    samples: &mut Samples,
) -> Result<(), MeasureError> {
    place.alone(probe, samples, &|slice| {
        // Written, so that there is memory behind them.
        let (from, mut to) = (vec![1u8; bytes as usize], vec![2u8; bytes as usize]);
        // Once at least, however long it took to get the memory.
        loop {
            let begin = now();
            black_box(&mut to).copy_from_slice(black_box(&from));
            slice.take(now() - begin);
            if slice.is_over() {
                return Ok(());
            }
        }
    })
}
