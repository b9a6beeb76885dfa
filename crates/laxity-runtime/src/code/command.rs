//! Programs that are started anew for each job.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs, io};

use laxity_model::{Instant, Nanos};
use laxity_sys::own_code::View;
use laxity_sys::program::{Image, Program};
use laxity_sys::scheduling::{self, Attributes};
use laxity_sys::{clock, process};

use super::{Account, Code, Edges, MakeCode};
use crate::linux::LinuxScheduler;

/// A program and its arguments.
#[derive(Clone)]
struct Started {
    image: Image,
}

/// Finds the program of `words`; answers with the field that is wrong, and why, if it cannot be started. `class` schedules
/// the thread that starts it, which hands down its priority and its CPUs.
pub(super) fn load(words: &[String], folder: &Path, class: LinuxScheduler) -> Result<MakeCode, (&'static str, String)> {
    let wrong = |message| ("command", message);
    let [program, arguments @ ..] = words else { return Err(wrong("it names no program".to_owned())) };
    if matches!(class, LinuxScheduler::Laxity | LinuxScheduler::Kernel | LinuxScheduler::Deadline) {
        return Err(wrong(format!(
            "a program that is started for each job is a thread of its own, which {class} does not schedule; take \
             --scheduler fifo with fixed priorities, as in --policy P-RM, or --scheduler other, or make it a library"
        )));
    }
    let program = find(program, folder, env::var_os("PATH")).map_err(wrong)?;
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() };
    let image = Image::new(&program, arguments, &folder).map_err(|error| wrong(error.to_string()))?;
    let started = Started { image };
    Ok(Arc::new(move |_: &str, _: &Edges| Ok(Box::new(started.clone()) as Box<dyn Code>)))
}

/// The file of `program`: with a slash from `folder`, without one from the folders of `path`.
fn find(program: &str, folder: &Path, path: Option<OsString>) -> Result<PathBuf, String> {
    let is_program =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        let file = std::path::absolute(folder.join(program)).map_err(|error| format!("{program}: {error}"))?;
        return match is_program(&file) {
            true => Ok(file),
            false if file.exists() => Err(format!("{} is no program; make it executable (chmod +x)", file.display())),
            false => Err(format!("there is no file {}; build the program, or correct the name", file.display())),
        };
    }
    let found = path.iter().flat_map(env::split_paths).map(|folder| folder.join(program)).find(is_program);
    found.ok_or_else(|| {
        format!("no folder of PATH has a program {program}; write ./{program} for one beside the workload file")
    })
}

impl Code for Started {
    fn call(&mut self, view: &mut View<'_>) -> Result<(), String> {
        self.call_charged(view, &mut Unlimited)
    }

    /// The job executes as long as the program does: its CPU time is the job's, as it has the thread's priority and CPUs.
    fn call_charged(&mut self, view: &mut View<'_>, account: &mut dyn Account) -> Result<(), String> {
        let name = self.image.path().display().to_string();
        // Before the program starts: one that does not sleep would not let this thread have the CPU to raise itself.
        let above = Above::this_priority();
        let started = self.image.start("LAXITY_JOB", &view.job().to_string(), above.before());
        let mut program = started.map_err(|error| format!("cannot start {name}: {error}"))?;
        account.begin_program(program.pid());
        let watched = watch(&program, account).map_err(|error| format!("cannot watch {name}: {error}"));
        if watched != Ok(true) {
            program.kill();
        }
        let was_ended = account.end_program();
        let status = program.wait().map_err(|error| format!("cannot wait for {name}: {error}"))?;
        if was_ended || !watched? {
            return Err(format!("{name} was ended with the run"));
        }
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok(()),
            (Some(code), _) => Err(format!("{name} ended with exit code {code}")),
            (None, Some(signal)) => Err(format!("{name} was ended by signal {signal}")),
            (None, None) => Err(format!("{name} did not end properly")),
        }
    }
}

/// While this is kept, the thread has the priority above its own under `SCHED_FIFO`: a program that it started, which has the same
/// one and does not sleep, would never let it have their CPU again, to charge it, to stop it, or to end with the process.
struct Above(Option<Attributes>);

impl Above {
    fn this_priority() -> Above {
        let own = scheduling::current_thread();
        let raise = || {
            let before = Attributes::of(own).ok()?;
            let above = before.fixed_priority()?.checked_add(1).filter(|&above| above <= 99)?;
            // Where the user may not, the budget is what suffers.
            before.at_least(above).give_to(own).ok().map(|()| before)
        };
        Above(raise())
    }

    /// The priority that it had, if it is above that.
    fn before(&self) -> Option<u8> {
        self.0.as_ref().and_then(Attributes::fixed_priority)
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        // It had them before, and a thread may always be less urgent.
        self.0.iter().for_each(|before| _ = before.give_to(scheduling::current_thread()));
    }
}

/// Waits until the program ends; with a budget charges it, and stops it while there is none. Answers whether it ended by itself, or
/// was killed with the run.
///
/// Its process alone is charged and stopped, not processes that it starts.
fn watch(program: &Program, account: &mut dyn Account) -> io::Result<bool> {
    let (pid, mut charged, mut least) = (program.pid(), Nanos::ZERO, CRUMB);
    while let Some(left) = account.left() {
        // One thread cannot use more in that time.
        let has_ended = program.has_ended_by(clock::now().saturating_add(left.max(least)))?;
        // Of one that has ended, too, as it was not waited for.
        let used = process::cpu_time(pid)?;
        let must_stop = account.charge(used.saturating_sub(charged));
        // One that sleeps is looked at ever more seldom.
        least = if used == charged { Nanos(2 * least.0).min(SELDOM) } else { CRUMB };
        charged = used;
        if has_ended {
            return Ok(true);
        }
        if must_stop {
            process::stop(pid)?;
            let goes_on = account.wait();
            // What it used between the charge and the stop is charged to this budget.
            process::go_on(pid)?;
            if !goes_on {
                return Ok(false);
            }
        }
    }
    program.has_ended_by(Instant::NEVER)
}

/// So little is not waited for any shorter; it is charged, too.
const CRUMB: Nanos = Nanos::from_micros(50);
/// How seldom a program is looked at that stands still, however little is left.
const SELDOM: Nanos = Nanos::from_millis(1);

/// Of a job without a budget.
struct Unlimited;

impl Account for Unlimited {
    fn left(&self) -> Option<Nanos> {
        None
    }

    fn charge(&mut self, _used: Nanos) -> bool {
        false
    }

    fn wait(&mut self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_a_slash_is_in_the_folder_and_one_without_in_path() {
        let folder = Path::new("/bin");
        assert_eq!(find("./sh", folder, None), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(find("sh", Path::new("/nowhere"), Some("/none:/bin".into())), Ok(PathBuf::from("/bin/sh")));
        let error = find("sh", folder, Some("/none".into())).expect_err("it is not in PATH");
        assert!(error.contains("write ./sh"), "{error}");
        let error = find("./no-program", folder, None).expect_err("it is not there");
        assert!(error.contains("there is no file /bin/no-program"), "{error}");
        let error = find("./version", Path::new("/proc"), None).expect_err("a file that is no program");
        assert!(error.contains("chmod +x"), "{error}");
    }
}
