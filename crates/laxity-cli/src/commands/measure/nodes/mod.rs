//! `laxity measure --nodes`: how long the code of a workload takes, alone and beside the rest, for its `wcet` and `actual`.

mod alone;
mod settle;

use std::io::Write;
use std::path::Path;

use laxity_model::{Instant, Nanos, Workload};
use laxity_runtime::code::CallTimes;
use laxity_runtime::{LivePlan, Next, Options, StartOptions};
use laxity_trace::NoTrace;
use serde_json::json;

use self::settle::{Measured, measured};
use super::Arguments;
use crate::commands::run::own_code;
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::quantity::{TimeUnit, short};
use crate::table::Table;

/// Measures, then writes, then prints.
pub fn run(arguments: &Arguments, file: &Path, output: &mut Output) -> Result<(), CliError> {
    let quiet = arguments.quiet || arguments.json;
    let workload = input::workload(file)?;
    let parts = alone::parts(&workload);
    if parts.is_empty() {
        let message = format!(
            "{}: no task names code to measure; write `run = {{ library = ..., symbol = ... }}` at a task or node",
            input::name(file)
        );
        return Err(CliError::Argument { message });
    }
    let interrupt = Interrupt::watch();
    // Half of the time for all parts alone, the other for the whole.
    let each = Nanos(arguments.duration.0 / 2 / parts.len() as u64);
    let progress = Progress::new(String::new(), arguments.duration, quiet);
    let mut times = Vec::new();
    let mut passed = Nanos::ZERO;
    for part in &parts {
        progress.doing(Instant::ZERO + passed, format!("{} alone", part.name));
        times.push(carry_out(&part.workload, file, part.duration(each), &interrupt)?);
        passed = Nanos(passed.0 + each.0);
    }
    progress.doing(Instant::ZERO + passed, "all together");
    let together = carry_out(&workload, file, Nanos(arguments.duration.0 / 2), &interrupt)?;
    drop(progress);
    let measured = measured(&workload, &times, &together, arguments.margin);
    let settled = settle::settled(&workload, &measured);
    if let Some(out) = &arguments.out {
        write(out, file, &settled, arguments)?;
    }
    print(arguments, &measured, output)?;
    if let Err(errors) = settled.validate() {
        output::warning(format_args!("with these times the workload is wrong: {errors}"));
    }
    match &arguments.out {
        Some(out) if !quiet => {
            let out = out.to_string_lossy();
            let named = output::word(&out);
            output::note(format_args!("written to {out}; prove it with `laxity check {named}`"));
        }
        None if !quiet => {
            output::note("nothing was written; name a file with --out to have a workload with these times")
        }
        _ => {}
    }
    Ok(())
}

/// Runs `workload`, which is (a part of) what `file` says, for `duration`; answers how long its code took.
fn carry_out(workload: &Workload, file: &Path, duration: Nanos, interrupt: &Interrupt) -> Result<CallTimes, CliError> {
    let refused = |message: String| CliError::Live { message };
    let mut workload = workload.clone();
    let scheduler = workload.scheduler;
    laxity_analysis::check::settle(&mut workload, &scheduler);
    let options = Options { scheduler, linux: None, seed: 0, duration };
    let mut plan = LivePlan::new(&workload, &options).map_err(|error| refused(error.to_string()))?;
    own_code::load(&mut plan, &workload, file)?;
    let times = plan.time_calls();
    let start = StartOptions { locks_memory: true, ..StartOptions::default() };
    // Nothing needs the records: the times are those of calls.
    let ended = plan.carry_out(start, &mut NoTrace, |_, _, _| Next::stop_if(interrupt.is_requested()));
    ended.and_then(|ended| ended.failed).map_err(refused)?;
    if interrupt.is_requested() {
        return Err(CliError::Interrupted { reached: "before all was measured; nothing was written".to_owned() });
    }
    Ok(times)
}

fn write(out: &Path, file: &Path, settled: &Workload, arguments: &Arguments) -> Result<(), CliError> {
    let mut profile = super::open(out)?;
    let text = if profile.is_json {
        settled.to_json()
    } else {
        format!(
            "# {} with execution times measured by laxity measure {}: wcet is the longest that was seen, alone or beside the \
             rest,\n# and {} % more; actual is what was seen beside the rest.\n{}",
            input::name(file),
            env!("CARGO_PKG_VERSION"),
            arguments.margin,
            settled.to_toml()
        )
    };
    let failed = |source| CliError::Write { path: out.to_owned(), source };
    profile.file.write_all(text.as_bytes()).map_err(failed)?;
    profile.file.commit()?;
    if !arguments.quiet {
        input::warn_of_moved_code(settled, file, out);
    }
    Ok(())
}

fn print(arguments: &Arguments, measured: &[Measured], output: &mut Output) -> Result<(), CliError> {
    if arguments.json {
        let steps: Vec<_> = measured.iter().map(Measured::json).collect();
        let text = serde_json::to_string_pretty(&json!({ "margin_percent": arguments.margin, "steps": steps }));
        return output.print(text.expect("numbers and texts are JSON") + "\n");
    }
    if arguments.quiet {
        return Ok(());
    }
    let unit = TimeUnit::for_longest(measured.iter().map(|step| step.wcet).max().unwrap_or_default());
    let name = |what: &str| format!("{what}, {}", unit.name);
    let columns = ["jobs", "p50", "p99", "max"];
    let mut table = Table::of("task").group("", &["step"]).group(&name("alone"), &columns);
    table = table.group(&name("beside the rest"), &columns).group(&name("wcet"), &["given", "measured"]);
    for step in measured {
        let mut row = vec![step.task.as_str().into(), step.step.to_string().into()];
        for seen in [&step.alone, &step.together] {
            row.push(seen.len().to_string().into());
            row.extend([50, 99, 100].map(|percent| match settle::quantile(seen, percent) {
                Some(time) => unit.show(time).into(),
                None => crate::table::Cell::faint("-"),
            }));
        }
        row.extend([unit.show(step.given).into(), unit.show(step.wcet).into()]);
        table.row(row);
    }
    output.print(table.render(output.width()))?;
    output.line("")?;
    let line =
        format!("wcet: the longest that was seen, and {} % more; no proof that nothing takes longer", arguments.margin);
    output.line(line)?;
    output.line(format!("measured for {}", short(arguments.duration)))?;
    output.finish()
}
