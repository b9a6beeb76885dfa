//! Why a command did not do what it was asked to, and with which exit code it says so.

use std::io;
use std::path::PathBuf;

use laxity_analysis::check::Criterion;
use laxity_gen::{GenerateError, ParseSpecError};
use laxity_model::{Instant, ParseNanosError, UnknownProfile, WorkloadErrors};
use laxity_plan::UnsupportedFeatures;
use laxity_trace::codec::ReadError;

/// A command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// An input cannot be read.
    #[error("cannot read {file}: {}", plain(.source))]
    Read {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// An input that should be text is none.
    #[error("{file}:{line}: not UTF-8 text; a workload is TOML or JSON in UTF-8")]
    NotText {
        /// Its name.
        file: String,
        /// The first line that is none, counted from 1.
        line: usize,
    },
    /// A workload is wrong.
    #[error(transparent)]
    Workload(#[from] WorkloadErrors),
    /// Code that a workload names cannot be called.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "live runs are for Linux"))]
    #[error("{message}")]
    Code {
        /// A line for each, with its place in the file.
        message: String,
    },
    /// Several files are wrong; each was reported.
    #[error("{wrong} of {files} files are wrong")]
    Invalid {
        /// How many.
        wrong: usize,
        /// Of how many.
        files: usize,
    },
    /// No published overheads of that name.
    #[error(transparent)]
    Profile(#[from] UnknownProfile),
    /// No generator of that description.
    #[error(transparent)]
    Spec(#[from] ParseSpecError),
    /// An argument's value that only its use shows to be wrong.
    #[error("{message}")]
    Argument {
        /// What is wrong with it, and the way out.
        message: String,
    },
    /// The simulator cannot run this workload.
    #[error("{}", refused(.file, .refusal))]
    Refused {
        /// The workload's file.
        file: String,
        /// Each reason.
        #[source]
        refusal: UnsupportedFeatures,
    },
    /// A generator found no task set.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// An output cannot be written.
    #[error("cannot write {}: {}; {}", .path.display(), plain(.source), way_out(.source))]
    Write {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An output would replace what it is made of.
    #[error("{} is {}, which this command reads, and would be lost; name another file", .path.display(), if .path.as_os_str() == .input.as_str() { "an input" } else { .input })]
    Overwrite {
        /// The output.
        path: PathBuf,
        /// What the same file was called as an input.
        input: String,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output: {}", plain(.0))]
    Print(#[source] io::Error),
    /// A trace cannot be read at all.
    #[error("{}: {source}", .path.display())]
    Trace {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// A trace was read up to some point; the results are of that part.
    #[error("{}: {source}; the results are of what was read, up to {reached}", .path.display())]
    Damaged {
        /// Its path.
        path: PathBuf,
        /// The last time read.
        reached: Instant,
        /// What is wrong after it.
        source: ReadError,
    },
    /// A trace cannot be drawn or converted as asked.
    #[error("{}: {reason}", .path.display())]
    Convert {
        /// Its path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Jobs missed their deadlines, and the command line says that this is a failure.
    #[error("{missed} of {released} jobs{} missed their deadlines (--fail-on-miss)", and_outputs(*.outputs))]
    Missed {
        /// How many outputs of chains did, over all runs.
        outputs: u64,
        /// How many jobs, over all runs.
        missed: u64,
        /// Of how many released.
        released: u64,
    },
    /// Some configurations could not be proven.
    #[error("{}", not_proven(*.unproven, *.of, .only.as_deref(), *.criterion))]
    NotProven {
        /// In how many.
        unproven: usize,
        /// Of how many.
        of: usize,
        /// Under which scheduler, if only one was asked about.
        only: Option<String>,
        /// What was to be proven.
        criterion: Criterion,
    },
    /// Some lines of the input are no task sets; each was answered with what is wrong.
    #[error("{malformed} of {of} lines are malformed")]
    MalformedLines {
        /// How many.
        malformed: u64,
        /// Of how many.
        of: u64,
    },
    /// A trace does not show a proper schedule.
    #[error("{}: {count} {}", .path.display(), if *.count == 1 { "violation" } else { "violations" })]
    Violations {
        /// Its path.
        path: PathBuf,
        /// How many were found.
        count: u64,
    },
    /// A live graph cannot be used as asked.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "live graphs are for Linux"))]
    #[error("{message}")]
    Live {
        /// What is wrong, and the way out.
        message: String,
    },
    /// A program that was started ended with a failure, which this process passes on.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "interposers are for Linux"))]
    #[error("{program} {}", ended(*.code, *.signal))]
    Program {
        /// Which.
        program: String,
        /// Its exit code.
        code: Option<i32>,
        /// Or the signal that ended it.
        signal: Option<i32>,
    },
    /// Ctrl-C or a request to terminate; what was done until then was printed.
    #[error("interrupted {reached}")]
    Interrupted {
        /// What was reached, in words.
        reached: String,
    },
}

impl CliError {
    /// 1: what was asked for failed; 2: bad usage or bad input; 130: interrupted.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Read { .. }
            | CliError::NotText { .. }
            | CliError::Workload(_)
            | CliError::Code { .. }
            | CliError::Invalid { .. }
            | CliError::Profile(_)
            | CliError::Spec(_)
            | CliError::Argument { .. }
            | CliError::Overwrite { .. }
            | CliError::Trace { .. } => 2,
            CliError::Refused { .. }
            | CliError::Generate(_)
            | CliError::Write { .. }
            | CliError::Print(_)
            | CliError::Damaged { .. }
            | CliError::Convert { .. }
            | CliError::Missed { .. }
            | CliError::NotProven { .. }
            | CliError::MalformedLines { .. }
            | CliError::Violations { .. }
            | CliError::Live { .. } => 1,
            CliError::Program { code, signal, .. } => {
                // As shells do.
                code.or(signal.map(|signal| 128 + signal)).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
            }
            CliError::Interrupted { .. } => 130,
        }
    }
}

impl From<ParseNanosError> for CliError {
    fn from(error: ParseNanosError) -> Self {
        CliError::Argument { message: error.to_string() }
    }
}

/// A line for each reason.
fn refused(file: &str, refusal: &UnsupportedFeatures) -> String {
    let lines: Vec<String> = refusal.reasons().iter().map(|reason| format!("{file}: {reason}")).collect();
    lines.join("\n")
}

fn and_outputs(outputs: u64) -> String {
    if outputs == 0 { String::new() } else { format!(" and {outputs} outputs of chains") }
}

fn not_proven(unproven: usize, of: usize, only: Option<&str>, criterion: Criterion) -> String {
    let what = match criterion {
        Criterion::Hard => "that no deadline is missed",
        Criterion::Soft => "that tardiness is bounded",
    };
    match only {
        Some(scheduler) => format!("not proven {what} under {scheduler}"),
        None => format!("not proven {what} in {unproven} of {of} configurations"),
    }
}

/// What the operating system says, without its number and in lower case: `no such file or directory`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

fn ended(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "did not end properly".to_owned(),
    }
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or choose another place; no part of this file was left behind"
        }
        io::ErrorKind::NotFound => "create the folder first",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "choose a place you may write to",
        io::ErrorKind::IsADirectory => "name a file in it",
        _ => "choose another place",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operating_systems_words_are_put_in_house_style() {
        let error = io::Error::from_raw_os_error(28);
        assert_eq!(plain(&error), "no space left on device");
        let write = CliError::Write { path: "out.lxt".into(), source: error };
        assert_eq!(
            write.to_string(),
            "cannot write out.lxt: no space left on device; free some space or choose another place; no part of \
             this file was left behind"
        );
    }
}
