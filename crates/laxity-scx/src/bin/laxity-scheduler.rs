//! Loads Laxity's scheduler into the kernel, keeps it there, and ends it. `laxity sched start` starts this program; its
//! argument is JSON of `laxity_scx::Settings`. With the argument `functions` it prints JSON of `laxity_scx::Functions`
//! instead, of this machine's kernel or of a file that describes another one, as `laxity sched doctor` asks.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_scx::kernel::{KERNEL_TYPES, Outcome, RESTORE, Server, ServerError, functions};
use laxity_scx::{Settings, probe};
use laxity_sys::restorer;

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let done = match arguments.next() {
        Some(word) if word == "functions" => describe(arguments.next()),
        Some(word) if word == RESTORE => restore(),
        settings => run(settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for the end of the loader, and gives threads of the kernel what they had before it.
fn restore() -> Result<(), String> {
    // A request to end is one to the loader, whose end this process waits for.
    ctrlc::set_handler(|| ()).map_err(|error| error.to_string())?;
    restorer::restore(std::io::stdin().lock())
}

/// Has the end of standard input be a request to end: the program that measures holds its other end, and takes it along however
/// it ends.
fn end_with_input(is_requested: &Arc<AtomicBool>) {
    let request = Arc::clone(is_requested);
    std::thread::spawn(move || {
        // An error is an end, too.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        request.store(true, Ordering::Relaxed);
    });
}

fn describe(kernel: Option<String>) -> Result<(), String> {
    let kernel = kernel.unwrap_or_else(|| KERNEL_TYPES.to_owned());
    let found = functions(&beside(None)?, Path::new(&kernel))?;
    println!("{}", serde_json::to_string(&found).expect("it is plain"));
    Ok(())
}

/// The object of the settings, or the one beside this program.
fn beside(object: Option<PathBuf>) -> Result<PathBuf, String> {
    let program = || env::current_exe().map_err(|error| format!("this program cannot be found: {error}"));
    object.map_or_else(|| Ok(program()?.with_extension("bpf.o")), Ok)
}

fn run(settings: Option<String>) -> Result<(), String> {
    let usage = "usage: laxity-scheduler JSON; `laxity sched start --help` says more";
    let settings: Settings =
        serde_json::from_str(&settings.ok_or(usage)?).map_err(|error| format!("{usage}: {error}"))?;
    let object = beside(settings.object.clone())?;
    let mut checks = probe(Path::new("/")).checks;
    if checks.iter().all(|check| check.holds) {
        checks.push(functions(&object, Path::new(KERNEL_TYPES))?.check());
    }
    if let Some(check) = checks.iter().find(|check| !check.holds) {
        let remedy = check.remedy.unwrap_or_default();
        return Err(format!("{}: {}; {remedy} (`laxity sched doctor` says all)", check.name, check.found));
    }
    let is_requested = Arc::new(AtomicBool::new(false));
    let request = Arc::clone(&is_requested);
    ctrlc::set_handler(move || request.store(true, Ordering::Relaxed)).map_err(|error| error.to_string())?;
    if settings.overheads && settings.trace.is_none() {
        end_with_input(&is_requested);
    }
    let cpus = settings.cpus.clone();
    let server = Server::start(settings, &object).map_err(|error| error.to_string())?;
    println!("scheduling by {} on CPUs {cpus:?}; Ctrl-C or `laxity sched stop` ends it", server.scheduler());
    let outcome = server.run(&is_requested).map_err(|error| {
        if let ServerError::Ended { dump, .. } = &error {
            // The reason comes last.
            eprint!("{dump}");
        }
        error.to_string()
    });
    let Outcome { tasks, completed, late, lost, measured, unmeasured } = outcome?;
    println!("ended: {tasks} tasks, {completed} jobs, {late} of them late; Linux schedules all threads");
    match lost {
        Some((0, 1..)) => println!("the trace ends before the rest: jobs were pending when their tasks ended"),
        Some((lost @ 1.., left_out)) => {
            println!("the trace is cut off: {lost} records were lost, and {left_out} came after a lost one");
        }
        _ => {}
    }
    if unmeasured > 0 {
        println!("{unmeasured} times that the scheduler took were lost");
    }
    if let Some(measured) = measured {
        // One line, for the program that asked for it.
        println!("{}", serde_json::to_string(&measured).expect("it is plain"));
    }
    Ok(())
}
