//! What an interposer has once in a process: its settings, the arbitration, the log and the report.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use laxity_gpu::{Arbitration, Registry};
use laxity_model::text::printable_lines;
use laxity_policy::program::TokenRule;
use laxity_sys::process::forks;
use serde::{Deserialize, Serialize};

use crate::log::{self, Line, Log};
use crate::settings::Settings;

/// An interposer in its process.
#[derive(Debug)]
pub struct Process {
    /// The front: `OpenCL`, for example.
    front: &'static str,
    /// The program's name.
    pub program: String,
    /// What the environment says.
    pub settings: Settings,
    arbitration: Option<Arbitration>,
    log: Mutex<Option<Log>>,
    streams: Mutex<Vec<Weak<dyn Leave>>>,
    /// The job that was announced last, unless it is over. Held while streams hear of it: one that begins meanwhile does, too.
    announced: Mutex<Option<Announced>>,
    next_stream: AtomicU32,
    /// How many streams wait for a grant.
    waiting: AtomicU32,
    is_exiting: AtomicBool,
    forks: u32,
}

/// A line of a report: one file a process, in the folder of [`Settings::report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The front.
    pub front: String,
    /// The program.
    pub program: String,
    /// Its process.
    pub pid: u32,
    /// What it says.
    pub state: ReportState,
    /// More about it, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// What a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportState {
    /// A loader loaded the interposer, which has not been used.
    Loaded,
    /// The interposer is in the process, and attached to the arbitration.
    Attached,
    /// It is in the process and does nothing: no arbitration was asked for.
    Idle,
    /// It is in the process and cannot arbitrate.
    Refused,
    /// Something that the user should know.
    Notice,
}

/// A stream, at the end of the process.
pub(crate) trait Leave: Send + Sync + std::fmt::Debug {
    /// Its number in the process.
    fn number(&self) -> u32;
    /// Opens no gate any more.
    fn exit(&self);
    /// Whether it holds and requests nothing.
    fn is_quiet(&self) -> bool;
    /// Writes what it noted to the log.
    fn write(&self);
    /// The program waits: an idle stream keeps no token.
    fn rest(&self);
    /// Another stream of the program is a client, too.
    fn has_company(&self);
    /// A job of the program begins, or ends.
    fn announce(&self, job: Announced);
    /// Ends its thread.
    fn stop(&self);
}

/// What a program, or its scheduler, says of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// A job begins, due at that time if it has a deadline.
    Begins(Option<laxity_model::Instant>),
    /// It is over.
    Ends,
}

/// The environment variable of [`Settings::report`], which counts even where other settings are wrong.
const REPORT: &str = "LAXITY_GPU_REPORT";

/// How long an exit waits for operations that hold an engine.
const EXIT_WAIT: Duration = Duration::from_millis(200);

impl Process {
    /// For the calling process, whose interposer is `front`. An error is reported and said on standard error; the
    /// program then runs without arbitration.
    pub fn start(front: &'static str) -> Process {
        let program = program_name();
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let settings = Settings::read(&program, environment);
        let (settings, refusal) = match settings {
            Ok(settings) => (settings, None),
            Err(error) => {
                let report = std::env::var_os(REPORT).map(Into::into);
                (Settings { report, ..Settings::default() }, Some(error.to_string()))
            }
        };
        let attach = |name: &String| Registry::at(&settings.folder).attach(name).map_err(|error| error.to_string());
        let attached = match refusal {
            Some(refusal) => Some(Err(refusal)),
            None => settings.arbitration.as_ref().map(attach),
        };
        let checked = attached.map(|attached| attached.and_then(|arbitration| check(&settings, arbitration)));
        let mut process = Process {
            front,
            program,
            settings,
            arbitration: None,
            log: Mutex::new(None),
            streams: Mutex::default(),
            announced: Mutex::default(),
            next_stream: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            is_exiting: AtomicBool::new(false),
            forks: forks(),
        };
        match checked {
            None => process.report(ReportState::Idle, ""),
            Some(Ok(arbitration)) => {
                process.open_log(&arbitration);
                process.arbitration = Some(arbitration);
                process.report(ReportState::Attached, process.settings.arbitration.as_deref().unwrap_or_default());
            }
            Some(Err(reason)) => {
                process.report(ReportState::Refused, &reason);
                process.say(format_args!("not arbitrated: {reason}"));
            }
        }
        process
    }

    /// Reports that a loader has loaded the interposer `front`: without a report a launcher knows that the program runs
    /// without it.
    pub fn loaded(front: &str) {
        if let Some(folder) = std::env::var_os(REPORT) {
            report(Path::new(&folder), front, &program_name(), ReportState::Loaded, "");
        }
    }

    /// The arbitration, unless there is none, or this process was forked from the one that attached.
    pub fn arbitration(&self) -> Option<&Arbitration> {
        self.arbitration.as_ref().filter(|_| forks() == self.forks)
    }

    /// Whether operations are arbitrated.
    pub fn is_arbitrating(&self) -> bool {
        self.arbitration().is_some() && !self.is_exiting()
    }

    /// The size of chunks of copies.
    pub fn chunk(&self) -> Option<u64> {
        self.settings.chunk.unwrap_or_else(|| self.arbitration.as_ref()?.config().chunk())
    }

    /// Whether the program is exiting.
    pub fn is_exiting(&self) -> bool {
        self.is_exiting.load(Ordering::Acquire)
    }

    /// Says something on standard error. The name of a program, or of a file, may hold what a terminal would obey.
    fn say(&self, text: impl Display) {
        eprintln!("{}", printable_lines(&format!("laxity: {}: {text}", self.program)));
    }

    /// Says something to the user: on standard error, and in the report.
    pub fn notice(&self, text: impl Display) {
        self.say(&text);
        self.report(ReportState::Notice, &text.to_string());
    }

    /// A thread of the program is about to wait: streams that are idle keep no token.
    pub fn rest(&self) {
        if self.settings.policy.token == TokenRule::Job {
            self.each_stream(|stream| stream.rest());
        }
    }

    /// Whether another stream of this process holds or requests something.
    pub(crate) fn do_others_hold(&self, number: u32) -> bool {
        let mut is_any = false;
        self.each_stream(|stream| is_any |= stream.number() != number && !stream.is_quiet());
        is_any
    }

    /// Whether a stream of this process waits for a grant: one that is idle keeps no token then, also in the middle of a job.
    pub(crate) fn is_any_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// `wait` is a stream's wait for a grant. Streams that are idle keep no token meanwhile, also those that become idle.
    pub(crate) fn while_waiting<T>(&self, number: u32, wait: impl FnOnce() -> T) -> T {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.rest_others(number);
        let result = wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    /// A stream is a client from now on.
    pub(crate) fn has_client(&self, number: u32) {
        self.each_stream(|stream| {
            if stream.number() != number {
                stream.has_company();
            }
        });
    }

    /// A stream is about to wait for a token: those others that are idle keep none.
    pub(crate) fn rest_others(&self, number: u32) {
        if self.settings.policy.token == TokenRule::Job {
            self.each_stream(|stream| {
                if stream.number() != number {
                    stream.rest();
                }
            });
        }
    }

    /// The program, or its scheduler, announces a job: to all streams, also to those that begin in the job.
    pub fn announce(&self, job: Announced) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        *announced = Some(job).filter(|&job| job != Announced::Ends);
        self.each_stream(|stream| stream.announce(job));
    }

    /// The program exits: opens no gate any more, and waits a short time for the operations that hold an engine, so that
    /// they end before their engine is another program's. The log has all that the streams noted when this returns, however
    /// late Linux runs their threads.
    pub fn exit(&self) {
        if self.is_exiting.swap(true, Ordering::AcqRel) || forks() != self.forks {
            return;
        }
        self.each_stream(|stream| stream.exit());
        let end = Instant::now() + EXIT_WAIT;
        let is_quiet = || {
            let mut is_quiet = true;
            self.each_stream(|stream| is_quiet &= stream.is_quiet());
            is_quiet
        };
        while !is_quiet() && Instant::now() < end {
            thread::sleep(Duration::from_micros(200));
        }
        self.each_stream(|stream| stream.write());
    }

    /// As [`Process::exit`], and ends all threads: the interposer is about to be unloaded.
    pub fn unload(&self) {
        self.exit();
        self.each_stream(|stream| stream.stop());
    }

    pub(crate) fn add(&self, stream: Weak<dyn Leave>) {
        let announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.retain(|stream| stream.strong_count() > 0);
            streams.push(stream.clone());
        }
        if let (Some(job), Some(stream)) = (*announced, stream.upgrade()) {
            stream.announce(job);
        }
    }

    pub(crate) fn next_stream(&self) -> u32 {
        self.next_stream.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn is_logging(&self) -> bool {
        self.settings.log.is_some()
    }

    /// Appends what `take` answers to the log. No other thread writes meanwhile: what is taken later is behind it. A log
    /// that cannot be written ends.
    pub(crate) fn log(&self, take: impl FnOnce() -> Vec<Line>) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = take();
        if let Some(Err(error)) = log.as_mut().map(|log| log.write(&lines)) {
            *log = None;
            drop(log);
            self.notice(format_args!("the log ends here: {error}"));
        }
    }

    fn each_stream(&self, mut act: impl FnMut(&Arc<dyn Leave>)) {
        let streams: Vec<_> = {
            let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            streams.iter().filter_map(Weak::upgrade).collect()
        };
        streams.iter().for_each(&mut act);
    }

    fn open_log(&self, arbitration: &Arbitration) {
        let Some(folder) = &self.settings.log else { return };
        let pid = std::process::id();
        let name = self.settings.arbitration.as_deref().unwrap_or_default();
        let arbitration = log::Arbitration::new(name, arbitration.config());
        match Log::create(folder, &self.program, pid) {
            Ok(log) => *self.log.lock().unwrap_or_else(PoisonError::into_inner) = Some(log),
            Err(error) => return self.notice(format_args!("no log in {}: {error}", folder.display())),
        }
        self.log(|| {
            vec![Line::Program { program: self.program.clone(), pid, front: self.front.to_owned(), arbitration }]
        });
    }

    fn report(&self, state: ReportState, text: &str) {
        if let Some(folder) = &self.settings.report {
            report(folder, self.front, &self.program, state, text);
        }
    }
}

fn report(folder: &Path, front: &str, program: &str, state: ReportState, text: &str) {
    let pid = std::process::id();
    let report = Report { front: front.to_owned(), program: program.to_owned(), pid, state, text: text.to_owned() };
    let line = serde_json::to_string(&report).expect("a report is plain") + "\n";
    let file = OpenOptions::new().create(true).append(true).open(folder.join(format!("{pid}.report")));
    // A launcher that is gone reads no report.
    let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
}

fn check(settings: &Settings, arbitration: Arbitration) -> Result<Arbitration, String> {
    let gpus = arbitration.config().gpus;
    if settings.gpu < gpus {
        return Ok(arbitration);
    }
    Err(format!("GPU {}: the arbitration has {gpus}, counted from 0; set LAXITY_GPU_GPU to one of them", settings.gpu))
}

/// The name of the program: that of its script or module, if Python runs one.
fn program_name() -> String {
    name_of(std::env::args_os().map(|word| word.to_string_lossy().into_owned()))
}

fn name_of(mut words: impl Iterator<Item = String>) -> String {
    let base = |word: String| Path::new(&word).file_name().map(|name| name.to_string_lossy().into_owned());
    let own = words.next().and_then(base).unwrap_or_else(|| "program".to_owned());
    let script = if own.starts_with("python") { script_of(words) } else { None };
    script.and_then(base).unwrap_or(own)
}

/// The script or module that Python is to run with these arguments (its manual, "Command line").
fn script_of(mut words: impl Iterator<Item = String>) -> Option<String> {
    loop {
        let word = words.next()?;
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return Some(word).filter(|word| word != "-");
        };
        if let Some(long) = letters.strip_prefix('-') {
            // The one long option that takes a word of its own.
            if long == "check-hash-based-pycs" {
                words.next();
            }
            continue;
        }
        // Letters may share a dash. One that takes a word is the last of them, or has the word behind it.
        let Some(at) = letters.find(['c', 'm', 'W', 'X']) else { continue };
        let (which, rest) = (&letters[at..=at], &letters[at + 1..]);
        let value = if rest.is_empty() { words.next()? } else { rest.to_owned() };
        match which {
            "c" => return None,
            "m" => return Some(value),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_python_runs_is_called_by_its_script_or_module() {
        let named = [
            ("./camera --fast", "camera"),
            ("/usr/bin/python3 drive/det.py -c x", "det.py"),
            ("python3.11 -u det.py", "det.py"),
            ("python3 -X dev -Wignore -W once -Bu det.py", "det.py"),
            ("python3 --check-hash-based-pycs always det.py", "det.py"),
            ("python3 -m det", "det"),
            ("python3 -um det", "det"),
            ("python3 -c pass det.py", "python3"),
            ("python3 -u -", "python3"),
            ("python3", "python3"),
            ("", "program"),
        ];
        for (line, name) in named {
            assert_eq!(name_of(line.split_whitespace().map(str::to_owned)), name, "{line}");
        }
    }
}
