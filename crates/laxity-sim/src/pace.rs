//! How far to simulate before looking at the outside world again.

use std::time::{Duration, Instant as Clock};

use laxity_model::{Instant, Nanos};
use laxity_trace::Sink;

use crate::Simulator;

/// Real time between two looks: short for a person that presses Ctrl-C, long for a simulator.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Simulates up to `end` in slices and asks `look` after each whether to go on; its error is where it ends.
///
/// The clock decides how long slices are, which does not affect the schedule: see [`Simulator::run_until`].
pub fn run<S: Sink, E>(
    simulator: &mut Simulator<S>,
    end: Instant,
    mut look: impl FnMut(&Simulator<S>) -> Result<(), E>,
) -> Result<(), E> {
    let mut slice = Nanos::from_millis(1);
    while simulator.now() < end {
        let before = Clock::now();
        simulator.run_until(simulator.now().saturating_add(slice).min(end));
        slice = next_slice(slice, before.elapsed());
        look(simulator)?;
    }
    Ok(())
}

/// The next slice after one that took `elapsed`: half or twice as long until it takes about [`BETWEEN_LOOKS`].
fn next_slice(slice: Nanos, elapsed: Duration) -> Nanos {
    if elapsed > BETWEEN_LOOKS {
        Nanos((slice.0 / 2).max(1))
    } else if elapsed < BETWEEN_LOOKS / 2 {
        Nanos(slice.0.saturating_mul(2))
    } else {
        slice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_approach_the_time_they_should_take() {
        let slice = Nanos::from_millis(8);
        assert_eq!(next_slice(slice, Duration::from_millis(100)), Nanos::from_millis(4));
        assert_eq!(next_slice(slice, Duration::from_micros(1)), Nanos::from_millis(16));
        assert_eq!(next_slice(slice, BETWEEN_LOOKS), slice);
        assert_eq!(next_slice(Nanos(1), Duration::from_secs(3_600)), Nanos(1));
        assert_eq!(next_slice(Nanos(u64::MAX), Duration::ZERO), Nanos(u64::MAX));
    }
}
