//! The programs that a measurement starts: the loader, and the processes that have the tasks. All of them end when their standard
//! input does, and so with this process, however that ends.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use laxity_scx::Settings;
use laxity_scx::intervals::Interval;
use serde::de::DeserializeOwned;

use super::worker::{Plan, READY, Seen};

/// A program that was started.
struct Program {
    name: &'static str,
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Program {
    fn start(name: &'static str, command: &mut Command) -> Result<Program, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
        let said = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok(Program { name, child, said })
    }

    /// Reads lines until one begins with `word`.
    fn wait_for(&mut self, word: &str) -> Result<(), String> {
        let mut line = String::new();
        loop {
            line.clear();
            match self.said.read_line(&mut line) {
                Ok(1..) if line.starts_with(word) => return Ok(()),
                Ok(1..) => {}
                _ => return Err(self.reason()),
            }
        }
    }

    /// Has it end, and reads what its last line says.
    fn finish<T: DeserializeOwned>(mut self) -> Result<T, String> {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        let read = self.said.read_to_string(&mut rest);
        let is_fine = self.child.wait().is_ok_and(|status| status.success());
        if read.is_err() || !is_fine {
            return Err(self.reason());
        }
        let last = rest.lines().last().unwrap_or_default();
        serde_json::from_str(last).map_err(|error| format!("{}: its last line says nothing: {error}", self.name))
    }

    /// Why it ended early: its last words.
    fn reason(&mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        if let Some(mut words) = self.child.stderr.take() {
            // What cannot be read cannot be told.
            let _ = words.read_to_string(&mut text);
        }
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it ended, and did not say why");
        format!("{}: {}", self.name, last.trim_start_matches("error: "))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends with its input; what it still says goes nowhere, and must not keep it.
        let _ = std::io::copy(&mut self.said, &mut std::io::sink());
        let _ = self.child.wait();
    }
}

/// The scheduler in the kernel, as long as this exists.
pub struct Loader(Program);

impl Loader {
    /// Loads it, which takes the verifier some seconds.
    ///
    /// # Errors
    /// The loader's reason.
    pub fn start(program: &Path, settings: &Settings) -> Result<Loader, String> {
        let settings = serde_json::to_string(settings).expect("settings have no maps");
        let mut loader = Program::start("the scheduler", Command::new(program).arg(settings))?;
        loader.wait_for("scheduling")?;
        Ok(Loader(loader))
    }

    /// Ends it. Returns what it measured.
    ///
    /// # Errors
    /// The loader's reason.
    pub fn finish(self) -> Result<Vec<Interval>, String> {
        self.0.finish()
    }
}

/// A process with tasks.
pub struct Worker(Program);

impl Worker {
    /// Starts it, and waits until its threads are tasks.
    ///
    /// # Errors
    /// Its reason.
    pub fn start(plan: &Plan) -> Result<Worker, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let plan = serde_json::to_string(plan).expect("a plan has no maps");
        let mut worker = Program::start(
            "a process with tasks",
            Command::new(program).args(["sched", "measure", "--worker"]).arg(plan),
        )?;
        worker.wait_for(READY)?;
        Ok(Worker(worker))
    }

    /// Ends it. Returns what its tasks saw.
    ///
    /// # Errors
    /// Its reason.
    pub fn finish(self) -> Result<Seen, String> {
        self.0.finish()
    }
}
