//! Programs that a verb starts: signals reach them as they would without the verb, and the verb ends as they do.

use std::process::Command;

use laxity_sys::scheduling;
use laxity_testing::{Alone, Directory, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::laxity;
use crate::terminal::Terminal;

/// A program that takes its time to save its work at Ctrl-C, and does not when it is told to end.
const SAVING: &str = "trap 'sleep 0.3; echo saved; exit 7' INT; trap 'echo told to end; exit 8' TERM; trap 'exit 5' HUP
echo ready; while :; do sleep 0.01; done";

/// A file that can stand for a layer where no loader loads it: the command itself, which is a shared object by its header.
const NO_LAYER: &str = "/proc/self/exe";

/// The words of each verb that starts a program, but for the program.
fn verbs(place: &Directory) -> Vec<Vec<String>> {
    let folder = place.path().to_str().expect("UTF-8");
    let cpu = scheduling::usable_cpus().expect("Linux says which").last().expect("one").to_string();
    let verbs: [&[&str]; 4] = [
        &["exec", "--folder", folder, "--system", "s", "--period", "10ms", "--wcet", "8ms"],
        &["gpu", "--folder", folder, "exec", "--layer", NO_LAYER, "--optional"],
        &["bandwidth", "lock", "car", "--budget", "1 GB/s", "--folder", folder],
        &["bandwidth", "regulate", "car", "--cpus", &cpu, "--counter", "software", "--folder", folder],
    ];
    verbs.into_iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
}

/// `words` in a terminal of its own, once its program is ready; nothing where Linux permits no real-time threads.
fn started(words: &[String]) -> Option<Terminal> {
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(laxity().get_program()).args(words).args(["--", "sh", "-c", SAVING]);
    let probe = laxity().args(words).args(["--", "true"]).output().expect("the binary starts");
    let err = String::from_utf8_lossy(&probe.stderr);
    if !probe.status.success() && err.contains("SCHED_FIFO") {
        skip(err);
        return None;
    }
    assert!(probe.status.success(), "{words:?}: {err}");
    let mut terminal = Terminal::start(command);
    terminal.read_until("ready");
    Some(terminal)
}

#[test]
fn ctrl_c_lets_a_program_save_its_work_and_its_exit_code_is_passed_on() {
    let _alone = Alone::with_the_scheduler();
    let place = Directory::new("programs-ctrl-c");
    for words in verbs(&place) {
        let Some(mut terminal) = started(&words) else { continue };
        terminal.press('\x03');
        let (said, status) = terminal.ended();
        assert!(said.contains("saved") && !said.contains("told to end"), "{words:?}: {said}");
        assert_eq!(status.code(), Some(7), "{words:?}: {said}");
    }
    assert!(place.is_empty(), "{:?}", place.files());
}

#[test]
fn a_signal_to_the_verb_alone_is_passed_on_as_it_came() {
    let _alone = Alone::with_the_scheduler();
    let place = Directory::new("programs-signal");
    for (signal, code) in [(Signal::SIGHUP, 5), (Signal::SIGTERM, 8), (Signal::SIGINT, 7)] {
        for words in verbs(&place) {
            let Some(terminal) = started(&words) else { continue };
            kill(Pid::from_raw(terminal.id().cast_signed()), signal).expect("it lives");
            let (said, status) = terminal.ended();
            assert_eq!(status.code(), Some(code), "{signal} of {words:?}: {said}");
        }
    }
}
