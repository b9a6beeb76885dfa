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
    /// A new file in `folder`, named after the process.
    pub fn create(folder: &Path, program: &str, pid: u32) -> io::Result<Log> {
        let plain: String = program.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '-' }).collect();
        Ok(Log(BufWriter::new(File::create_new(path(folder, &plain, pid))?)))
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

fn path(folder: &Path, program: &str, pid: u32) -> PathBuf {
    folder.join(format!("{program}-{pid}.jsonl"))
}
