//! The errors of soft GPUs.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::config::{Config, ConfigError, NAME_MAX};

/// Why a soft GPU cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Its name is empty or too long.
    #[error("soft GPU {0:?}: the name has {len} bytes; give it 1 to {NAME_MAX} and no zero byte", len = .0.len())]
    Name(String),
    /// There cannot be such a soft GPU.
    #[error("soft GPU: {0}")]
    Config(ConfigError),
    /// The name belongs to a soft GPU with another configuration.
    #[error(
        "soft GPU {name}: is there with {found}, and was asked for with {asked}; agree on one, or take another name"
    )]
    Different {
        /// The name.
        name: String,
        /// What it is like.
        found: Config,
        /// What was asked for.
        asked: Config,
    },
    /// Its server cannot be started.
    #[error(
        "soft GPU: cannot start {}: {error}; install it beside this program, or say where it is in {}",
        server.display(),
        crate::SERVER_VARIABLE
    )]
    Start {
        /// The program.
        server: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Its server was started and does not run.
    #[error("soft GPU: {} does not run: {reason}", server.display())]
    Refused {
        /// The program.
        server: PathBuf,
        /// Why not, as the program says.
        reason: String,
    },
    /// Servers came and went, or have another version of the protocol.
    #[error("soft GPU {name}: no server made this process welcome; use one version of Laxity, and one user")]
    NoServer {
        /// The name.
        name: String,
    },
    /// Its device memory cannot be used.
    #[error("soft GPU: no device memory: {0}")]
    Memory(io::Error),
    /// Linux refuses a call.
    #[error("soft GPU: cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// Why a soft GPU does not do what it was asked for.
#[derive(Clone, Debug, Error)]
pub enum GpuError {
    /// Its server ended, or was killed. Pending operations do not happen, and device memory is lost. Opening the soft
    /// GPU again starts another server.
    #[error("soft GPU {name}: its server is gone and device memory lost; open it again to start another")]
    Gone {
        /// Its name.
        name: String,
    },
    /// There is not enough device memory in one piece.
    #[error(
        "{asked} bytes of soft GPU memory asked for and {largest} bytes there in one piece; drop buffers, or open a soft \
         GPU with more"
    )]
    Memory {
        /// Bytes asked for.
        asked: u64,
        /// Bytes of the largest free piece.
        largest: u64,
    },
    /// There is enough device memory, but this machine has too little left for it.
    #[error(
        "{asked} bytes of soft GPU memory asked for and {left} bytes of this machine's memory left for it; drop buffers, \
         end what takes memory, or ask for less"
    )]
    Shortage {
        /// Bytes asked for.
        asked: u64,
        /// Bytes left.
        left: u64,
    },
    /// The process cannot map the memory.
    #[error("{asked} bytes of soft GPU memory cannot be mapped: {error}; drop buffers, or raise vm.max_map_count")]
    Map {
        /// Bytes asked for.
        asked: u64,
        /// Why not.
        error: Arc<io::Error>,
    },
    /// Bytes outside a buffer.
    #[error("bytes {start} to {end} of a buffer of {length} bytes; stay within it, or allocate more")]
    Range {
        /// Where they begin.
        start: usize,
        /// Where they end.
        end: usize,
        /// Bytes of the buffer.
        length: usize,
    },
    /// The buffer belongs to another soft GPU.
    #[error("the buffer belongs to another soft GPU; allocate it from this one")]
    Foreign,
    /// A stream's name is too long.
    #[error("stream {0:?}: the name has {len} bytes; give it at most {NAME_MAX}", len = .0.len())]
    Name(String),
    /// Two operations use the same bytes at the same time, and one writes: their streams have no order.
    #[error(
        "bytes {start} to {end} of a buffer are in use by another operation at the same time; put both into one stream, \
         or synchronize in between"
    )]
    Race {
        /// Where the bytes begin.
        start: usize,
        /// Where they end.
        end: usize,
    },
    /// An operation of the stream failed.
    #[error("stream {stream}, operation {index}: {reason}")]
    Failed {
        /// The stream.
        stream: String,
        /// The number of the operation in its stream, from 0.
        index: u64,
        /// Why, as the operation says.
        reason: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A kernel or a callback made a call that would wait for itself.
    #[error("kernels and callbacks cannot issue or wait, as they would for themselves; do it elsewhere")]
    Inside,
    /// This process was forked from the one that opened the soft GPU, which alone has it.
    #[error("this process was forked from the one that opened the soft GPU; open it here")]
    Forked,
}

/// A kernel panicked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the GPU kernel panicked: {message}")]
pub struct Panicked {
    /// The text of the panic.
    pub message: String,
}
