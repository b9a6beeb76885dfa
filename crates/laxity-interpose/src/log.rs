//! What the streams of a program did, one JSON object a line, in a file for each process: `laxity gpu trace` makes a trace
//! of the files of all programs.
//!
//! A stream notes in memory, under a lock that it holds anyway; its home thread writes to the file. The last
//! milliseconds of a killed process are lost, and its operations end in the trace when another stream gets the engine.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use laxity_gpu::Config;
use laxity_model::{EngineOrder, GpuArbitration};
use serde::{Deserialize, Serialize};

/// A line. Times are nanoseconds of `CLOCK_MONOTONIC`; engines are numbered as in [`laxity_model::Engine::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// The first: a program, and the arbitration that it is under.
    Program {
        /// Its name.
        program: String,
        /// Its process.
        pid: u32,
        /// How it reaches the GPU. A program that does by two interfaces has a log of each.
        #[serde(default)]
        front: String,
        /// The arbitration.
        arbitration: Arbitration,
    },
    /// A stream, before anything else of it.
    Stream {
        /// Counted from 0 in the process.
        stream: u32,
        /// Its name as a client.
        name: String,
        /// Its GPU.
        gpu: u16,
        /// Its period; none: its jobs are sporadic.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period: Option<u64>,
    },
    /// A job began.
    Begins {
        /// When: its release.
        at: u64,
        /// Its stream.
        stream: u32,
        /// Its number.
        job: u32,
        /// Its absolute deadline.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<u64>,
        /// The level of its priority, as in `Priority` events of traces.
        level: u64,
    },
    /// A job ended.
    Ends {
        /// When.
        at: u64,
        /// Its stream.
        stream: u32,
        /// Its number.
        job: u32,
    },
    /// The stream is about to request an engine, and a token unless it has one.
    Requests {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
        /// For which job.
        job: u32,
        /// The engine.
        engine: usize,
    },
    /// It has both.
    Granted {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
        /// Which token.
        token: u16,
    },
    /// The driver may run the operation, and has its engine.
    Opens {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
        /// Its number in the stream.
        operation: u64,
        /// Its name, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// The operation is complete.
    Complete {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
        /// Its number in the stream.
        operation: u64,
    },
    /// The stream is about to unlock its engine.
    Unlocks {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
    },
    /// It is about to release its token.
    Releases {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
    },
    /// An operation kept its engine for longer than the policy allows, and lost it.
    Late {
        /// When.
        at: u64,
        /// Which stream.
        stream: u32,
        /// Its number in the stream.
        operation: u64,
    },
}

/// What a log says of the arbitration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arbitration {
    /// Its name.
    pub name: String,
    /// CPUs of its threads.
    pub cpus: u16,
    /// GPUs.
    pub gpus: u16,
    /// Copy engines of each.
    pub copy_engines: u8,
    /// Tokens of each.
    pub tokens: u32,
    /// Whether engines are granted by priority, not in the order of requests.
    pub by_priority: bool,
}

impl Arbitration {
    /// The one called `name`, configured so.
    pub fn new(name: &str, config: &Config) -> Self {
        let (tokens, order) = match config.arbitration {
            GpuArbitration::GpuSync(sync) => (sync.tokens, sync.engine_order),
            _ => (1, EngineOrder::Fifo),
        };
        Arbitration {
            name: name.to_owned(),
            cpus: config.cpus,
            gpus: config.gpus,
            copy_engines: config.copy_engines,
            tokens,
            by_priority: order == EngineOrder::Priority,
        }
    }
}

/// The log of a process.
#[derive(Debug)]
pub(crate) struct Log(BufWriter<File>);

impl Log {
    /// A new file in `folder`, named after the process; another one if it has one already: of another interface, or of the program
    /// in whose place this one runs.
    pub fn create(folder: &Path, program: &str, pid: u32) -> io::Result<Log> {
        let plain: String = program.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
        let first = path(folder, &plain, &pid.to_string());
        let others = (2..=LOGS_MAX).map(|number| path(folder, &plain, &format!("{pid}-{number}")));
        let mut result = Err(io::ErrorKind::AlreadyExists.into());
        for path in std::iter::once(first).chain(others) {
            result = File::create_new(path).map(|file| Log(BufWriter::new(file)));
            if !matches!(&result, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
                break;
            }
        }
        result
    }

    /// Appends `lines`, which reach the file before this returns.
    pub fn write(&mut self, lines: &[Line]) -> io::Result<()> {
        for line in lines {
            serde_json::to_writer(&mut self.0, line)?;
            self.0.write_all(b"\n")?;
        }
        self.0.flush()
    }
}

/// The most logs of one process.
const LOGS_MAX: u32 = 1000;

fn path(folder: &Path, program: &str, which: &str) -> PathBuf {
    folder.join(format!("{program}-{which}.jsonl"))
}

#[cfg(test)]
mod tests {
    use laxity_testing::Directory;

    use super::*;

    #[test]
    fn a_process_that_has_a_log_gets_another_one() {
        let folder = Directory::new("logs-of-one-process");
        for number in 0..3 {
            let line = Line::Unlocks { at: number, stream: 0 };
            Log::create(folder.path(), "a/b", 7).expect("made").write(&[line]).expect("written");
        }
        let mut names: Vec<_> = std::fs::read_dir(folder.path())
            .expect("there")
            .map(|entry| entry.expect("there").file_name().into_string().expect("plain"))
            .collect();
        names.sort();
        assert_eq!(names, ["a-b-7-2.jsonl", "a-b-7-3.jsonl", "a-b-7.jsonl"]);
        assert!(Log::create(&folder.path().join("none"), "p", 7).is_err());
    }
}
