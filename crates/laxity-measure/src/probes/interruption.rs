//! Ticks and other interrupts, as a thread sees them that nothing else can stop: as gaps in its time.

use laxity_model::Nanos;
use laxity_sys::clock::now;

use super::Place;
use crate::options::MeasureError;
use crate::probe::Probe;
use crate::samples::Samples;

/// A gap is what is longer than so many times what lies between two looks at the clock as a rule: about half a
/// microsecond, which no interrupt is shorter than, as entering and leaving Linux takes that much. Shorter gaps are
/// memory accesses and the like, which jobs pay for, too.
const FACTOR: u64 = 25;
/// From so many looks it is known what the rule is.
const LOOKS: usize = 1_000;

/// Each gap is a sample. Where nothing interrupts there is none.
pub(super) fn measure(place: &Place<'_>, probe: Probe, samples: &mut Samples) -> Result<(), MeasureError> {
    place.alone(probe, samples, &|slice| {
        let shortest_gap = Nanos(usual_step().0.saturating_mul(FACTOR));
        let mut last = now();
        while !slice.is_over() {
            let next = now();
            if next - last > shortest_gap {
                slice.take(next - last);
                // What taking it took is no gap.
                last = now();
            } else {
                last = next;
            }
        }
        Ok(())
    })
}

/// The median of what lies between two looks at the clock.
fn usual_step() -> Nanos {
    let mut steps: Vec<Nanos> = (0..LOOKS)
        .map(|_| {
            let begin = now();
            now() - begin
        })
        .collect();
    steps.sort_unstable();
    steps[LOOKS / 2].max(Nanos(1))
}
