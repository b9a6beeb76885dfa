//! Loads Laxity's scheduler into the kernel, keeps it there, and ends it. `laxity sched start` starts this program; its
//! argument is JSON of `laxity_scx::Settings`.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, path::Path};

use laxity_scx::kernel::{Outcome, Server};
use laxity_scx::{Settings, probe};

fn main() -> ExitCode {
    match run() {
        Ok(outcome) => {
            let Outcome { tasks, completed, late, lost } = outcome;
            println!("ended: {tasks} tasks, {completed} jobs, {late} of them late; Linux schedules all threads");
            match lost {
                Some((lost, left_out)) if lost > 0 || left_out > 0 => {
                    println!("the trace is cut off: {lost} records were lost, and {left_out} came after a lost one");
                }
                _ => {}
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Outcome, String> {
    let usage = "usage: laxity-scheduler JSON; `laxity sched start --help` says more";
    let settings = env::args().nth(1).ok_or(usage)?;
    let settings: Settings = serde_json::from_str(&settings).map_err(|error| format!("{usage}: {error}"))?;
    let report = probe(Path::new("/"));
    if let Some(check) = report.checks.iter().find(|check| !check.holds) {
        let remedy = check.remedy.unwrap_or_default();
        return Err(format!("{}: {}; {remedy} (`laxity sched doctor` says all)", check.name, check.found));
    }
    let is_requested = Arc::new(AtomicBool::new(false));
    let request = Arc::clone(&is_requested);
    ctrlc::set_handler(move || request.store(true, Ordering::Relaxed)).map_err(|error| error.to_string())?;
    let program = env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let (policy, cpus) = (settings.policy.clone(), settings.cpus.clone());
    let server = Server::start(settings, &program).map_err(|error| error.to_string())?;
    println!("scheduling by {policy} on CPUs {cpus:?}; Ctrl-C or `laxity sched stop` ends it");
    server.run(&is_requested).map_err(|error| error.to_string())
}
