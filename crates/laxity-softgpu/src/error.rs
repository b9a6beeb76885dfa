//! Why a soft GPU cannot be had, or does not do what it was asked for.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Config, ConfigError, NAME_MAX};

/// Why there is no soft GPU.
#[derive(Debug)]
pub enum OpenError {
    /// Its name is empty or too long.
    Name(String),
    /// There cannot be such a one.
    Config(ConfigError),
    /// It is there, and another one.
    Different {
        /// The name.
        name: String,
        /// What it is.
        found: Config,
        /// What was asked for.
        asked: Config,
    },
    /// Its server cannot be started.
    Start {
        /// The program.
        server: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Its server was started and said why it does not run.
    Refused {
        /// The program.
        server: PathBuf,
        /// What it said.
        reason: String,
    },
    /// Servers came and went, or speak another language.
    NoServer {
        /// The name.
        name: String,
    },
    /// Its device memory cannot be used.
    Memory(io::Error),
    /// Linux refuses.
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// Why a soft GPU does not do what it was asked for.
#[derive(Clone, Debug)]
pub enum GpuError {
    /// Its server ended, or was killed. Nothing of what was pending happens any more, and device memory is lost. Open
    /// the soft GPU again: that starts another server.
    Gone {
        /// Its name.
        name: String,
    },
    /// There is not enough device memory in one piece.
    Memory {
        /// Bytes asked for.
        asked: u64,
        /// The most there is.
        largest: u64,
    },
    /// There is enough device memory, but this machine has not as much left for it.
    Shortage {
        /// Bytes asked for.
        asked: u64,
        /// The most there is.
        left: u64,
    },
    /// The process cannot have it mapped.
    Map {
        /// Bytes asked for.
        asked: u64,
        /// Why not.
        error: Arc<io::Error>,
    },
    /// What is not within a buffer.
    Range {
        /// Where it begins.
        start: usize,
        /// Where it ends.
        end: usize,
        /// Bytes of the buffer.
        length: usize,
    },
    /// The buffer is another soft GPU's.
    Foreign,
    /// A stream's name is too long.
    Name(String),
    /// Two operations use the same bytes at the same time, and one writes: no order is between their streams.
    Race {
        /// Where the bytes begin.
        start: usize,
        /// Where they end.
        end: usize,
    },
    /// An operation of the stream failed.
    Failed {
        /// The stream.
        stream: String,
        /// Which operation it is of it, from 0.
        index: u64,
        /// Why, as the operation says.
        reason: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A kernel or a callback asks for what would have it wait for itself.
    Inside,
}

/// A kernel panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    /// What it said.
    pub message: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Name(name) => write!(
                f,
                "soft GPU {name:?}: the name has {} bytes; give it 1 to {NAME_MAX} and no zero byte",
                name.len()
            ),
            OpenError::Config(error) => write!(f, "soft GPU: {error}"),
            OpenError::Different { name, found, asked } => write!(
                f,
                "soft GPU {name}: is there with {found}, and was asked for with {asked}; agree on one, or take another \
                 name"
            ),
            OpenError::Start { server, error } => write!(
                f,
                "soft GPU: cannot start {}: {error}; install it beside this program, or say where it is in {}",
                server.display(),
                crate::SERVER_VARIABLE
            ),
            OpenError::Refused { server, reason } => write!(f, "soft GPU: {} does not run: {reason}", server.display()),
            OpenError::NoServer { name } => write!(
                f,
                "soft GPU {name}: no server made this process welcome; use one version of Laxity, and one user"
            ),
            OpenError::Memory(error) => write!(f, "soft GPU: no device memory: {error}"),
            OpenError::System { action, error } => write!(f, "soft GPU: cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuError::Gone { name } => {
                write!(f, "soft GPU {name}: its server is gone and device memory lost; open it again to start another")
            }
            GpuError::Memory { asked, largest } => write!(
                f,
                "{asked} bytes of soft GPU memory asked for and {largest} bytes there in one piece; drop buffers, or \
                 open a soft GPU with more"
            ),
            GpuError::Shortage { asked, left } => write!(
                f,
                "{asked} bytes of soft GPU memory asked for and {left} bytes of this machine's memory left for it; drop \
                 buffers, end what takes memory, or ask for less"
            ),
            GpuError::Map { asked, error } => write!(
                f,
                "{asked} bytes of soft GPU memory cannot be mapped: {error}; drop buffers, or raise vm.max_map_count"
            ),
            GpuError::Range { start, end, length } => {
                write!(f, "bytes {start} to {end} of a buffer of {length} bytes; stay within it, or allocate more")
            }
            GpuError::Foreign => write!(f, "the buffer belongs to another soft GPU; allocate it from this one"),
            GpuError::Name(name) => {
                write!(f, "stream {name:?}: the name has {} bytes; give it at most {NAME_MAX}", name.len())
            }
            GpuError::Race { start, end } => write!(
                f,
                "bytes {start} to {end} of a buffer are in use by another operation at the same time; put both into \
                 one stream, or synchronize in between"
            ),
            GpuError::Failed { stream, index, reason } => write!(f, "stream {stream}, operation {index}: {reason}"),
            GpuError::Inside => {
                write!(f, "kernels and callbacks cannot issue or wait, as they would for themselves; do it elsewhere")
            }
        }
    }
}

impl std::error::Error for GpuError {}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the GPU kernel panicked: {}", self.message)
    }
}

impl std::error::Error for Panicked {}
