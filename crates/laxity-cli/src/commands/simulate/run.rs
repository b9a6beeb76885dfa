//! One simulation, in slices between which it can be watched and ended.

use std::path::Path;

use laxity_model::{Instant, Nanos};
use laxity_plan::Plan;
use laxity_sim::{Simulator, pace};
use laxity_trace::codec::TraceWriter;
use laxity_trace::metrics::Metrics;
use laxity_trace::{Event, Sink};

use super::simulations::Simulation;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output_file::{Failed, OutputFile};
use crate::progress::Progress;
use crate::report::Report;

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
    // It ends where it is told to, with what it reached.
    let _ = pace::run(&mut simulator, end, |simulator| {
        progress.update(simulator.now(), simulator.sink().0.0);
        if interrupt.is_requested() || failed.get() { Err(()) } else { Ok(()) }
    });
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
