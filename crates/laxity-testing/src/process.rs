//! Processes to kill.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Signal, set_parent_process_death_signal};

const ROLE: &str = "LAXITY_TEST_ROLE";
const PLACE: &str = "LAXITY_TEST_PLACE";

/// A process that is killed when the test is over, however that ends: this test program, started again for its test
/// `child`, which asks for its [`role`].
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts one that does what `role` says, at `place`.
    pub fn start(place: impl AsRef<Path>, role: &str) -> Process {
        Process::start_with(place, role, &[])
    }

    /// Starts one that finds these variables in its environment, too.
    pub fn start_with(place: impl AsRef<Path>, role: &str, variables: &[(&str, &OsStr)]) -> Process {
        let mut command = Process::command(place, role, &[]);
        Process::spawn(command.envs(variables.iter().copied()))
    }

    /// What starts one, by way of `wrapper`: a program that executes its last arguments, or none.
    pub fn command(place: impl AsRef<Path>, role: &str, wrapper: &[&str]) -> Command {
        let program = std::env::current_exe().expect("this test");
        let mut words: Vec<OsString> = wrapper.iter().map(OsString::from).collect();
        words.push(program.into());
        words.extend(["--exact", "child", "--nocapture", "--test-threads=1"].map(OsString::from));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdout(Stdio::null()).env(ROLE, role).env(PLACE, place.as_ref());
        command
    }

    /// Starts what [`Process::command`] made.
    pub fn spawn(command: &mut Command) -> Process {
        loop {
            match command.spawn() {
                // A test that runs beside this one was starting a process while the program was copied: that process has
                // the copy open for writing until it executes its own program.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                started => return Process(started.expect("another process")),
            }
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_none()
    }

    /// How it ended, once it has.
    pub fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("it is ours")
    }

    /// Kills it; panics if it had ended by itself, which it does if it saw something wrong.
    pub fn kill(&mut self) {
        self.0.kill().expect("it is ours");
        assert_eq!(self.wait().code(), None, "it was killed and did not fail");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What this process is to do, and where; nothing in the process that runs the tests.
///
/// It does not outlive the thread that started it, however that ends: a process that works for ever would disturb all later
/// tests.
pub fn role() -> Option<(String, PathBuf)> {
    let role = (std::env::var(ROLE).ok()?, std::env::var_os(PLACE)?.into());
    set_parent_process_death_signal(Some(Signal::KILL)).expect("any process may");
    Some(role)
}
