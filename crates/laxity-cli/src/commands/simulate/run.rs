//! One simulation, in slices between which it can be watched and ended.

use std::path::Path;
use std::time::{Duration, Instant as WallInstant};

use laxity_model::{Instant, Nanos};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::codec::TraceWriter;
use laxity_trace::metrics::Metrics;
use laxity_trace::{Event, Sink};

use super::simulations::Simulation;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output_file::{Failed, OutputFile};
use crate::progress::Progress;
use crate::report::Report;

/// How long a slice should take: short enough for Ctrl-C to feel immediate.
const SLICE_WALL: Duration = Duration::from_millis(50);

/// Counts completions, for the rate.
#[derive(Default)]
struct Completions(u64);

impl Sink for Completions {
    #[inline]
    fn record(&mut self, _at: Instant, event: Event) {
        self.0 += u64::from(matches!(event, Event::Complete { .. }));
    }
}

/// Where the records go, if anywhere.
struct Trace {
    writer: TraceWriter<OutputFile>,
    /// Whether a write failed. The writer tells only when it is finished, but a simulation whose trace is lost must not
    /// go on for hours.
    failed: Failed,
}

impl Sink for Trace {
    #[inline]
    fn record(&mut self, at: Instant, event: Event) {
        self.writer.record(at, event);
    }
}

/// Runs `simulation` for `duration`, or until interrupted. Its trace is in its place when this returns.
pub fn simulate(
    simulation: &Simulation,
    duration: Nanos,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> Result<Report, CliError> {
    let header = &simulation.plan.header;
    let trace = simulation.trace.as_deref().map(|path| open_trace(path, &simulation.plan)).transpose()?;
    let failed = trace.as_ref().map(|trace| trace.failed.clone()).unwrap_or_default();
    let end = Instant::ZERO.saturating_add(duration);
    let mut simulator = Simulator::new(&simulation.plan, (Completions::default(), (Metrics::new(header), trace)));
    let mut slice = Nanos::from_millis(1);
    while simulator.now() < end && !interrupt.is_requested() && !failed.get() {
        let started = WallInstant::now();
        simulator.run_until(simulator.now().saturating_add(slice).min(end));
        slice = next_slice(slice, started.elapsed());
        progress.update(simulator.now(), simulator.sink().0.0);
    }
    let reached = simulator.now();
    let (_, (metrics, trace)) = simulator.finish();
    if let (Some(trace), Some(path)) = (trace, &simulation.trace) {
        let file = trace.writer.finish().map_err(|source| CliError::Write { path: path.clone(), source })?;
        file.commit()?;
    }
    Ok(Report {
        header: header.clone(),
        overheads: Some(simulation.overheads.clone()),
        summary: metrics.finish(reached),
        cut_short: (reached < end).then_some(duration),
    })
}

fn open_trace(path: &Path, plan: &Plan) -> Result<Trace, CliError> {
    let file = OutputFile::create(path)?;
    let failed = file.failed();
    let writer =
        TraceWriter::new(file, &plan.header).map_err(|source| CliError::Write { path: path.to_owned(), source })?;
    Ok(Trace { writer, failed })
}

/// A slice that should take [`SLICE_WALL`], given that `slice` took `elapsed`; at most doubled or divided by eight, as
/// one slice says little about the next. How a simulation is sliced does not change its schedule.
fn next_slice(slice: Nanos, elapsed: Duration) -> Nanos {
    let wanted = u128::from(slice.0) * SLICE_WALL.as_nanos() / elapsed.as_nanos().max(1);
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    Nanos(wanted.clamp((slice.0 / 8).max(1), slice.0.saturating_mul(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_approach_the_time_they_should_take() {
        let slice = Nanos::from_millis(8);
        assert_eq!(next_slice(slice, Duration::from_millis(100)), Nanos::from_millis(4));
        assert_eq!(next_slice(slice, Duration::from_micros(1)), Nanos::from_millis(16));
        assert_eq!(next_slice(slice, Duration::from_secs(3_600)), Nanos::from_millis(1));
        assert_eq!(next_slice(Nanos(1), Duration::from_secs(3_600)), Nanos(1));
        assert_eq!(next_slice(Nanos(u64::MAX), Duration::ZERO), Nanos(u64::MAX));
    }
}
