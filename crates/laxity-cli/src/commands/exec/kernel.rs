//! A program as a task of the scheduler in the kernel, which enforces its budget.

use laxity_model::{Instant, Nanos};
use laxity_scx::{ClientError, Membership, ProgramTask, TaskRequest};
use laxity_sys::process;
use laxity_sys::signals::Signals;
use serde::Serialize;

use super::{Arguments, name};
use crate::commands::named::live;
use crate::commands::program::{self, ended, wait_for};
use crate::error::CliError;
use crate::output;

/// Runs the program to its end.
pub fn run(arguments: &Arguments, shown: &str, signals: &Signals) -> Result<(), CliError> {
    let request = request(arguments, shown)?;
    let scheduler = Membership::join().map_err(live)?;
    check(arguments, &scheduler)?;
    // What takes long, before the program is there.
    scheduler.prepare().map_err(live)?;
    let mut started = program::start(&mut program::command(&arguments.program), signals)?;
    let task = match scheduler.begin_program(started.pid(), &request) {
        Ok(task) => task,
        // It ended at once, so that there is nothing to schedule.
        Err(ClientError::Refused(_)) if started.has_ended() => {
            return ended(shown.to_owned(), program::status(&mut started)?);
        }
        Err(error) => return Err(live(error)),
    };
    while !started.has_ended() {
        wait_for(&mut started, signals, Instant::NEVER);
    }
    if arguments.report || arguments.json {
        // It keeps its number, and the time that it used, until it is waited for.
        let used = process::cpu_time(started.pid()).map_err(live)?;
        output::to_stderr(report(&task, used, &request.name, arguments.json));
    }
    ended(shown.to_owned(), program::status(&mut started)?)
}

fn request(arguments: &Arguments, shown: &str) -> Result<TaskRequest, CliError> {
    let Arguments { period, wcet, cluster, priority, .. } = *arguments;
    if wcet.is_zero() || wcet > period {
        let message = format!("--wcet {wcet}, and it must be more than 0 and no more than the period of {period}");
        return Err(CliError::Argument { message });
    }
    Ok(TaskRequest {
        budget: Some(wcet),
        priority: priority.unwrap_or(0).into(),
        cluster,
        ..TaskRequest::periodic(name(arguments, shown), period, wcet)
    })
}

/// Under given priorities none is more urgent than one that was forgotten.
fn check(arguments: &Arguments, scheduler: &Membership) -> Result<(), CliError> {
    let policy = scheduler.status().map_err(live)?.policy;
    let is_given = policy.split_once('-').is_some_and(|(_, rule)| rule.starts_with("FP"));
    if is_given && arguments.priority.is_none() {
        let message = format!("the scheduler in the kernel goes by given priorities ({policy}); say --priority");
        return Err(CliError::Argument { message });
    }
    Ok(())
}

/// What the program got, in words or as JSON.
fn report(task: &ProgramTask, cpu_time: Nanos, name: &str, is_json: bool) -> String {
    let (wake_ups, throttled, is_scheduled) = (task.jobs(), task.throttled(), task.is_scheduled());
    if is_json {
        let line = Report { task: name, wake_ups, throttled, cpu_time_ns: cpu_time.0, is_scheduled };
        return serde_json::to_string(&line).expect("numbers and texts are JSON");
    }
    let end = if is_scheduled { "" } else { "; the scheduler in the kernel ended before it, and Linux went on" };
    format!("{name}: {wake_ups} wake-ups, its budget used up {throttled} times; {cpu_time} of CPU time{end}")
}

/// The report as JSON.
#[derive(Serialize)]
struct Report<'a> {
    task: &'a str,
    wake_ups: u32,
    throttled: u64,
    cpu_time_ns: u64,
    is_scheduled: bool,
}
