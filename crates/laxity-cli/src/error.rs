//! Why a command did not do what it was asked to, and with which exit code it says so.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use laxity_analysis::check::Criterion;
use laxity_gen::{GenerateError, ParseSpecError};
use laxity_model::{Instant, ParseNanosError, UnknownProfile, WorkloadErrors};
use laxity_plan::UnsupportedFeatures;
use laxity_trace::codec::ReadError;

/// A command failed.
#[derive(Debug)]
pub enum CliError {
    /// An input cannot be read.
    Read {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// An input that should be text is none.
    NotText {
        /// Its name.
        file: String,
        /// The first line that is none, counted from 1.
        line: usize,
    },
    /// A workload is wrong.
    Workload(WorkloadErrors),
    /// Several files are wrong; each was reported.
    Invalid {
        /// How many.
        wrong: usize,
        /// Of how many.
        files: usize,
    },
    /// No published overheads of that name.
    Profile(UnknownProfile),
    /// No generator of that description.
    Spec(ParseSpecError),
    /// An argument's value that only its use shows to be wrong.
    Argument {
        /// What is wrong with it, and the way out.
        message: String,
    },
    /// The simulator cannot run this workload.
    Refused {
        /// The workload's file.
        file: String,
        /// Each reason.
        refusal: UnsupportedFeatures,
    },
    /// A generator found no task set.
    Generate(GenerateError),
    /// An output cannot be written.
    Write {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Standard output cannot be written.
    Print(io::Error),
    /// A trace cannot be read at all.
    Trace {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: ReadError,
    },
    /// A trace was read up to some point; the results are of that part.
    Damaged {
        /// Its path.
        path: PathBuf,
        /// The last time read.
        reached: Instant,
        /// What is wrong after it.
        source: ReadError,
    },
    /// A trace cannot be drawn or converted as asked.
    Convert {
        /// Its path.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Jobs missed their deadlines, and the command line says that this is a failure.
    Missed {
        /// How many jobs, over all runs.
        missed: u64,
        /// Of how many released.
        released: u64,
    },
    /// What was to be proven is not, in some configurations.
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
    MalformedLines {
        /// How many.
        malformed: u64,
        /// Of how many.
        of: u64,
    },
    /// A trace does not show a proper schedule.
    Violations {
        /// Its path.
        path: PathBuf,
        /// How many were found.
        count: u64,
    },
    /// A live graph cannot be used as asked.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "live graphs are for Linux"))]
    Live {
        /// What is wrong, and the way out.
        message: String,
    },
    /// Ctrl-C or a request to terminate; what was done until then was printed.
    Interrupted {
        /// What was reached, in words.
        reached: String,
    },
}

impl CliError {
    /// 1: what was asked for failed; 2: bad usage or bad input; 130: interrupted.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            CliError::Read { .. }
            | CliError::NotText { .. }
            | CliError::Workload(_)
            | CliError::Invalid { .. }
            | CliError::Profile(_)
            | CliError::Spec(_)
            | CliError::Argument { .. }
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
            CliError::Interrupted { .. } => 130,
        })
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Read { file, source } => write!(f, "cannot read {file}: {}", plain(source)),
            CliError::NotText { file, line } => {
                write!(f, "{file}:{line}: not UTF-8 text; a workload is TOML or JSON in UTF-8")
            }
            CliError::Workload(errors) => errors.fmt(f),
            CliError::Invalid { wrong, files } => write!(f, "{wrong} of {files} files are wrong"),
            CliError::Profile(error) => error.fmt(f),
            CliError::Spec(error) => error.fmt(f),
            CliError::Argument { message } | CliError::Live { message } => f.write_str(message),
            CliError::Refused { file, refusal } => {
                for (number, reason) in refusal.reasons().iter().enumerate() {
                    let separator = if number == 0 { "" } else { "\n" };
                    write!(f, "{separator}{file}: {reason}")?;
                }
                Ok(())
            }
            CliError::Generate(error) => error.fmt(f),
            CliError::Write { path, source } => {
                write!(f, "cannot write {}: {}; {}", path.display(), plain(source), way_out(source))
            }
            CliError::Print(source) => write!(f, "cannot write to standard output: {}", plain(source)),
            CliError::Trace { path, source } => write!(f, "{}: {source}", path.display()),
            CliError::Damaged { path, reached, source } => {
                write!(f, "{}: {source}; the results are of what was read, up to {reached}", path.display())
            }
            CliError::Convert { path, reason } => write!(f, "{}: {reason}", path.display()),
            CliError::Missed { missed, released } => {
                write!(f, "{missed} of {released} jobs missed their deadlines (--fail-on-miss)")
            }
            CliError::NotProven { unproven, of, only, criterion } => {
                let what = match criterion {
                    Criterion::Hard => "that no deadline is missed",
                    Criterion::Soft => "that tardiness is bounded",
                };
                match only {
                    Some(scheduler) => write!(f, "not proven {what} under {scheduler}"),
                    None => write!(f, "not proven {what} in {unproven} of {of} configurations"),
                }
            }
            CliError::MalformedLines { malformed, of } => write!(f, "{malformed} of {of} lines are malformed"),
            CliError::Violations { path, count } => {
                let noun = if *count == 1 { "violation" } else { "violations" };
                write!(f, "{}: {count} {noun}", path.display())
            }
            CliError::Interrupted { reached } => write!(f, "interrupted {reached}"),
        }
    }
}

impl Error for CliError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CliError::Read { source, .. } | CliError::Write { source, .. } | CliError::Print(source) => Some(source),
            CliError::Trace { source, .. } | CliError::Damaged { source, .. } => Some(source),
            CliError::Workload(errors) => Some(errors),
            CliError::Profile(error) => Some(error),
            CliError::Spec(error) => Some(error),
            CliError::Generate(error) => Some(error),
            CliError::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }
}

impl From<WorkloadErrors> for CliError {
    fn from(errors: WorkloadErrors) -> Self {
        CliError::Workload(errors)
    }
}

impl From<UnknownProfile> for CliError {
    fn from(error: UnknownProfile) -> Self {
        CliError::Profile(error)
    }
}

impl From<ParseSpecError> for CliError {
    fn from(error: ParseSpecError) -> Self {
        CliError::Spec(error)
    }
}

impl From<GenerateError> for CliError {
    fn from(error: GenerateError) -> Self {
        CliError::Generate(error)
    }
}

impl From<ParseNanosError> for CliError {
    fn from(error: ParseNanosError) -> Self {
        CliError::Argument { message: error.to_string() }
    }
}

/// What the operating system says, without its number and in lower case: `no such file or directory`.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or choose another place; no file was left behind"
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
            "cannot write out.lxt: no space left on device; free some space or choose another place; no file was left \
             behind"
        );
    }
}
