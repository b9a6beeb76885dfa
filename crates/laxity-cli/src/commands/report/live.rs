//! The live part of a report.

use laxity_measure::{Options as MeasureOptions, Session};
use laxity_model::{Instant, Measurement, Nanos, Workload};
use laxity_runtime::{Ended, LinuxScheduler, LivePlan, Machine, Next, Options, StartOptions};
use laxity_trace::{Record, TraceHeader};

use super::Arguments;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::quantity::short;

/// What a run left.
pub struct Live {
    pub how: String,
    pub header: TraceHeader,
    pub records: Vec<Record>,
    /// What weakens what was measured.
    pub remarks: Vec<String>,
    /// About the machine: label and value.
    pub facts: Vec<(String, String)>,
}

/// Runs the workload; or says why it cannot be run here.
pub fn run(
    arguments: &Arguments,
    workload: &Workload,
    duration: Nanos,
    interrupt: &Interrupt,
) -> Result<Result<Live, String>, CliError> {
    let options = Options { scheduler: workload.scheduler, linux: arguments.scheduler, seed: arguments.seed, duration };
    let cpus = arguments.cpus.map_or(usize::MAX, usize::from);
    let plan = match LivePlan::folded(workload, cpus, &options) {
        Ok(plan) => plan,
        Err(refusal) => {
            let reasons: Vec<String> = refusal.reasons().iter().map(ToString::to_string).collect();
            return Ok(Err(reasons.join("; ")));
        }
    };
    let records = match record(&plan, duration, arguments.quiet, interrupt)? {
        Ok(records) => records,
        Err(reason) => return Ok(Err(reason)),
    };
    let by = match plan.linux() {
        LinuxScheduler::Laxity => format!("Laxity's scheduler by {}", workload.scheduler),
        class => format!("Linux's {class}"),
    };
    let mut header = plan.header().clone();
    records.iter().for_each(|record| header.learn(&record.event));
    let mut remarks = plan.notes().to_vec();
    remarks.extend(Machine::look().remarks(plan.linux()));
    Ok(Ok(Live {
        how: format!("run live for {} under {by}, seed {}", short(duration), arguments.seed),
        header,
        records,
        remarks,
        facts: machine(),
    }))
}

fn record(
    plan: &LivePlan,
    duration: Nanos,
    quiet: bool,
    interrupt: &Interrupt,
) -> Result<Result<Vec<Record>, String>, CliError> {
    let start = StartOptions {
        locks_memory: true,
        watches_cpus: matches!(plan.linux(), LinuxScheduler::Fifo | LinuxScheduler::Laxity),
        watches_threads: laxity_runtime::threads_refused().is_none(),
        ..StartOptions::default()
    };
    let mut records = Vec::new();
    let progress = Progress::new("live  ".to_owned(), duration, quiet);
    let mut is_first = true;
    let ended = plan.carry_out(start, &mut records, |run, _, _| {
        if std::mem::replace(&mut is_first, false) {
            interrupt.end_with_graphs_of(plan);
        }
        progress.update(run.seen().min(Instant::ZERO + duration), run.completed());
        Next::stop_if(interrupt.is_requested())
    });
    interrupt.end_with(|| {});
    let Ended { outcome, failed, .. } = match ended {
        Ok(ended) => ended,
        Err(reason) => return Ok(Err(reason)),
    };
    let was_interrupted = interrupt.is_requested();
    progress.finish();
    match (was_interrupted, failed) {
        (true, _) => Err(CliError::Interrupted { reached: "while it ran; there is no page".to_owned() }),
        (false, Err(reason)) => Ok(Err(reason)),
        (false, Ok(())) if !outcome.is_whole => {
            Ok(Err(format!("what happened after {} could not be collected in time", short(Nanos(outcome.reached.0)))))
        }
        (false, Ok(())) => Ok(Ok(records)),
    }
}

/// Measures what scheduling costs here.
pub fn measure(duration: Nanos, quiet: bool, interrupt: &Interrupt) -> Result<Measurement, CliError> {
    let refused = |error: laxity_measure::MeasureError| CliError::Live { message: error.to_string() };
    let options = MeasureOptions { duration, ..MeasureOptions::new().map_err(refused)? };
    let mut session = Session::new(options).map_err(refused)?;
    let progress = Progress::new("measured  ".to_owned(), duration, quiet);
    while !session.is_over() {
        if interrupt.is_requested() {
            return Err(CliError::Interrupted { reached: "while it measured; there is no page".to_owned() });
        }
        progress.doing((Instant::ZERO + session.elapsed()).min(Instant::ZERO + duration), session.next());
        session.step().map_err(refused)?;
    }
    Ok(session.finish())
}

/// What Linux says of this machine.
fn machine() -> Vec<(String, String)> {
    let host = laxity_measure::Host::look();
    let look = Machine::look();
    let mut facts = vec![
        ("processor".to_owned(), host.processor),
        ("kernel".to_owned(), format!("Linux {}", host.kernel)),
        ("usable CPUs".to_owned(), look.governors.len().to_string()),
    ];
    if !host.governor.is_empty() {
        facts.push(("frequency governor".to_owned(), host.governor));
    }
    if let Some(load) = look.load {
        facts.push(("load when it ended".to_owned(), format!("{}.{:02} threads", load / 100, load % 100)));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}
