//! Programs that a workload names end with the run, however that ends.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use laxity_testing::{skip, until};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::{folder, run, stderr};

/// It spins, so that under SCHED_FIFO nothing of its priority or below has the CPU any more; beside it is one that it started, which
/// after SIGKILL stays, and must not keep the pipe of this test.
const SPINS: &str = "sleep 60 2>/dev/null & echo $$ >pid; while :; do :; done";

/// A workload of programs, each of which a shell interprets, in a folder of its own.
fn workload(programs: &[(&str, &str)]) -> (TempDir, String) {
    let folder = folder();
    let mut text = "laxity = 1\nname = \"own\"\nscheduler = \"P-RM\"\nplatform.cpus = 1\n".to_owned();
    for (name, script) in programs {
        text += &format!("[[task]]\nname = \"{name}\"\nperiod = \"400 ms\"\nwcet = \"1 ms\"\n");
        text += &format!("run = {{ command = [\"sh\", \"-c\", \"{script}\"] }}\n");
    }
    let file = folder.path().join("own.toml");
    fs::write(&file, text).expect("a folder");
    let file = file.display().to_string();
    (folder, file)
}

/// Has `tell` end a run of a program that spins. Answers its exit code and error, once the program is gone.
fn ended_by(scheduler: &str, tell: impl Fn(Pid)) -> Option<(Option<i32>, String)> {
    let (folder, file) = workload(&[("spins", SPINS)]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_laxity"));
    command.args(["run", &file, "--for", "60s", "--scheduler", scheduler, "--quiet"]).process_group(0);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let own = Pid::from_raw(child.id().cast_signed());
    until("the program writes", || program(folder.path()).is_some() || is_gone(child.id()));
    let Some(program) = program(folder.path()) else {
        skip(stderr(&child.wait_with_output().expect("ours")).trim());
        return None;
    };
    tell(own);
    let output = child.wait_with_output().expect("it ends");
    until("the program is gone", || is_gone(program));
    Some((output.status.code(), stderr(&output)))
}

/// The number of the program that wrote it into the folder.
fn program(folder: &Path) -> Option<u32> {
    fs::read_to_string(folder.join("pid")).ok()?.strip_suffix('\n')?.parse().ok()
}

/// Whether it is no process, or one that is only not waited for.
fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    stat.is_none_or(|stat| stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z')))
}

/// A terminal sends SIGINT to all processes of its foreground group, `timeout` SIGTERM to one process; nothing can be done at
/// SIGKILL.
#[test]
fn a_program_ends_with_its_run_and_ctrl_c_is_no_failure_of_it() {
    for scheduler in ["other", "fifo"] {
        let Some((code, err)) = ended_by(scheduler, |own| killpg(own, Signal::SIGINT).expect("it lives")) else {
            return;
        };
        assert!(code == Some(130) && err.contains("interrupted"), "{scheduler}: {code:?}: {err}");
        for signal in [Signal::SIGINT, Signal::SIGTERM] {
            let Some((code, err)) = ended_by(scheduler, |own| kill(own, signal).expect("it lives")) else { return };
            assert!(code == Some(130) && err.contains("interrupted"), "{scheduler}, {signal}: {code:?}: {err}");
        }
        let ended = ended_by(scheduler, |own| kill(own, Signal::SIGKILL).expect("it lives"));
        assert_eq!(ended.map(|(code, _)| code), Some(None), "{scheduler}");
    }
}

#[test]
fn a_program_that_fails_ends_those_of_other_tasks_and_the_error_names_it() {
    let (folder, file) = workload(&[("sleeps", "echo $$ >pid; sleep 600"), ("fails", "[ -f pid ] || sleep 1; exit 3")]);
    let (code, _, err) = run(["run", &file, "--for", "60s", "--scheduler", "other"]);
    assert!(code == 1 && err.contains("task \"fails\": job 0: ") && err.contains("exit code 3"), "{code}: {err}");
    assert!(program(folder.path()).is_none_or(is_gone), "the other program was left");
}
