//! A simulation with looks at the outside world in between.

use laxity_model::Instant;
use laxity_trace::Sink;

use crate::Simulator;

/// Instants between two looks: some milliseconds, so that Ctrl-C feels immediate, and looks cost nothing.
const BETWEEN_LOOKS: u32 = 5_000;

/// Simulates up to `end`, and asks `look` now and then whether to go on; its error is where it ends. How often it is asked does
/// not change the schedule.
pub fn run<S: Sink, E>(
    simulator: &mut Simulator<S>,
    end: Instant,
    mut look: impl FnMut(&Simulator<S>) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let is_there = simulator.run_instants(end, BETWEEN_LOOKS);
        look(simulator)?;
        if is_there {
            return Ok(());
        }
    }
}
