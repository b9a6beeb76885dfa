//! What a page is made of: proofs, simulations, runs, traces, and the machine.

use std::path::{Path, PathBuf};

use laxity_analysis::check::{self, Options, Report, check};
use laxity_model::{Instant, OverheadProfile, Workload};
use laxity_plan::Plan;
use laxity_sim::{Simulator, pace};
use laxity_trace::{Origin, Record, TraceHeader};

use super::bounded::unbounded;
use super::observed::Observed;
use super::{Arguments, Missing};
use crate::commands::trace::Source;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output;
use crate::overheads::Overheads;
use crate::progress::Progress;
use crate::quantity::short;

/// Where a page has its numbers from.
pub struct Evidence {
    /// Of the workload.
    pub name: String,
    /// The files, as they were named.
    pub files: Vec<String>,
    /// What was proven, where the page is about a workload.
    pub proof: Option<Report>,
    /// What was simulated and recorded; of one workload, or of several.
    pub observed: Vec<Observed>,
    /// Facts about the machine and the set-up: label and value.
    pub facts: Vec<(String, String)>,
    /// Parts that there are not.
    pub missing: Vec<Missing>,
    /// Traces that were not read to their ends, which is said last.
    pub damaged: Vec<CliError>,
}

/// Proves, simulates and runs the workload of `file`; or has what was recorded of it in `traces`.
pub fn of_workload(
    arguments: &Arguments,
    file: &Path,
    traces: &[PathBuf],
    interrupt: &Interrupt,
) -> Result<Evidence, CliError> {
    let name = input::name(file);
    let mut workload = input::workload(file)?;
    workload.scheduler = arguments.policy.unwrap_or(workload.scheduler);
    let scheduler = workload.scheduler;
    let measured = overheads(arguments, &mut workload, interrupt)?;
    if !arguments.quiet {
        for warning in workload.warnings() {
            output::warning(format_args!("{name}: {warning}"));
        }
    }
    for settled in check::settle(&mut workload, &scheduler) {
        if !arguments.quiet {
            output::note(format_args!("{name}: graph \"{}\" has {} replicas", settled.graph, settled.replicas));
        }
    }
    let duration = arguments.duration.unwrap_or_else(|| laxity_plan::default_duration(&workload));
    let mut evidence = Evidence {
        name: workload.name.clone(),
        files: vec![name.clone()],
        proof: Some(check(&workload, &scheduler, &Options::default())),
        observed: Vec::new(),
        facts: facts(&workload, measured),
        missing: Vec::new(),
        damaged: Vec::new(),
    };
    let mut proven = None;
    match Plan::new(&workload, &scheduler, arguments.seed) {
        Ok(plan) => {
            proven = Some(plan.header.clone());
            let records = simulate(&plan, duration, arguments.quiet, interrupt)?;
            let how = format!("simulated for {} under {scheduler}, seed {}", short(duration), arguments.seed);
            evidence.observe("simulated", how, plan.header.clone(), records)?;
        }
        Err(refusal) => evidence.leave_out("the simulation", refusal),
    }
    if traces.is_empty() {
        run_live(arguments, &name, &workload, duration, interrupt, &mut evidence)?;
    }
    for path in traces {
        evidence.add_trace(path)?;
        let seen = &evidence.observed.last().expect("it was added").header;
        if let Some(proven) = proven.as_ref().filter(|proven| names(proven) != names(seen)) {
            return Err(CliError::Argument { message: others(path, seen, &name, proven) });
        }
    }
    for observed in &mut evidence.observed {
        observed.unbounded = proven.as_ref().and_then(|proven| unbounded(proven, &observed.header));
    }
    Ok(evidence)
}

/// The tasks and nodes that have deadlines, in their order.
fn names(header: &TraceHeader) -> Vec<&str> {
    header.tasks.iter().filter(|task| task.kind.has_deadlines()).map(|task| task.name.as_str()).collect()
}

/// Why a trace does not belong to a workload.
fn others(path: &Path, seen: &TraceHeader, file: &str, proven: &TraceHeader) -> String {
    let [seen, proven] = [seen, proven].map(|header| names(header).join(", "));
    format!("{} has the tasks {seen}, and {file} the tasks {proven}; name traces of that workload", path.display())
}

#[cfg(target_os = "linux")]
fn run_live(
    arguments: &Arguments,
    file: &str,
    workload: &Workload,
    duration: laxity_model::Nanos,
    interrupt: &Interrupt,
    evidence: &mut Evidence,
) -> Result<(), CliError> {
    if arguments.no_run {
        evidence.leave_out("the live run", "--no-run was given");
        return Ok(());
    }
    match super::live::run(arguments, workload, duration, interrupt)? {
        Err(refused) => evidence.leave_out("the live run", refused),
        Ok(live) => {
            live.remarks
                .iter()
                .filter(|_| !arguments.quiet)
                .for_each(|note| output::note(format_args!("{file}: {note}")));
            evidence.facts.extend(live.facts);
            evidence.facts.extend(live.remarks.into_iter().map(|remark| ("beware".to_owned(), remark)));
            evidence.observe("live", live.how, live.header, live.records)?;
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn run_live(
    _: &Arguments,
    _: &str,
    _: &Workload,
    _: laxity_model::Nanos,
    _: &Interrupt,
    evidence: &mut Evidence,
) -> Result<(), CliError> {
    evidence.leave_out("the live run", "workloads run on Linux only");
    Ok(())
}

/// Takes the overheads that the command line asks for. Answers how they were measured, if they were now.
fn overheads(
    arguments: &Arguments,
    workload: &mut Workload,
    interrupt: &Interrupt,
) -> Result<Option<String>, CliError> {
    if let Some(named) = &arguments.overheads {
        workload.platform.overheads = Overheads::read(named)?.of(&workload.scheduler)?;
        return Ok(None);
    }
    #[cfg(target_os = "linux")]
    if let Some(duration) = arguments.measure {
        let measurement = super::live::measure(duration, arguments.quiet, interrupt)?;
        workload.platform.overheads = measurement.worst.clone();
        return Ok(Some(format!(
            "measured here for {} under {}, worst case {}",
            short(measurement.machine.duration),
            measurement.machine.scheduler,
            measurement.machine.worst
        )));
    }
    let _ = interrupt;
    Ok(None)
}

fn facts(workload: &Workload, measured: Option<String>) -> Vec<(String, String)> {
    let platform = &workload.platform;
    let mut facts = vec![
        ("scheduler".to_owned(), format!("{} ({})", workload.scheduler, crate::report::describe(&workload.scheduler))),
        ("CPUs".to_owned(), platform.cpus.to_string()),
    ];
    if !platform.gpus.is_empty() {
        let names: Vec<&str> = platform.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        let management = &workload.gpu_management;
        let value = format!(
            "{}; {}, interrupts by {}",
            names.join(", "),
            management.arbitration.name(),
            management.handling.name()
        );
        facts.push(("GPUs".to_owned(), value));
    }
    let OverheadProfile { name, .. } = &platform.overheads;
    facts.push(("overheads".to_owned(), measured.unwrap_or_else(|| name.clone())));
    facts
}

/// All records are in memory: some gigabytes, with what the page makes of them.
const RECORDS_MAX: u64 = 10_000_000;

/// Simulates in slices, so that it can be ended.
fn simulate(
    plan: &Plan,
    duration: laxity_model::Nanos,
    quiet: bool,
    interrupt: &Interrupt,
) -> Result<Vec<Record>, CliError> {
    let mut simulator = Simulator::new(plan, Vec::new());
    let progress = Progress::new("simulated  ".to_owned(), duration, quiet);
    pace::run(&mut simulator, Instant::ZERO.saturating_add(duration), |simulator| {
        let records = simulator.sink().len() as u64;
        progress.update(simulator.now(), records);
        if interrupt.is_requested() {
            return Err(CliError::Interrupted { reached: "while it simulated; there is no page".to_owned() });
        }
        if records > RECORDS_MAX {
            return Err(CliError::Argument {
                message: format!(
                    "a page explains a simulation of {RECORDS_MAX} events at most, and {} of {} have more; give it less with \
                     `--for`",
                    short(simulator.now().saturating_since(Instant::ZERO)),
                    short(duration)
                ),
            });
        }
        Ok(())
    })?;
    Ok(simulator.finish())
}

/// What the traces in `files` have.
pub fn of_traces(files: &[PathBuf]) -> Result<Evidence, CliError> {
    let mut evidence = Evidence {
        name: String::new(),
        files: files.iter().map(|file| input::name(file)).collect(),
        proof: None,
        observed: Vec::new(),
        facts: Vec::new(),
        missing: Vec::new(),
        damaged: Vec::new(),
    };
    for file in files {
        evidence.add_trace(file)?;
        if evidence.name.is_empty() {
            evidence.name = evidence.observed[0].header.workload.clone();
        }
    }
    Ok(evidence)
}

impl Evidence {
    /// What the trace `file` has, by the name of the file.
    fn add_trace(&mut self, file: &Path) -> Result<(), CliError> {
        let (header, records, ending) = Source::open(file)?.collect();
        let label = file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let how = match header.origin {
            Origin::Simulated => format!("simulated under {}, seed {}", header.scheduler, header.seed),
            Origin::Live => format!("recorded live, {}", header.scheduled_by()),
        };
        if let Err(error) = ending.whole() {
            self.damaged.push(error);
        }
        self.observe(&label, how, header, records)
    }

    fn observe(
        &mut self,
        label: &str,
        how: String,
        header: laxity_trace::TraceHeader,
        records: Vec<Record>,
    ) -> Result<(), CliError> {
        let observed = Observed::new(label, how, header, records)
            .map_err(|error| CliError::Convert { path: PathBuf::from(label), reason: error.to_string() })?;
        self.observed.push(observed);
        Ok(())
    }
}
