//! What a soft GPU is like.

use std::fmt;

use laxity_model::Nanos;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest name of a soft GPU or a stream, in bytes.
pub const NAME_MAX: usize = 64;
/// The most device memory of one soft GPU, in bytes.
pub const MEMORY_MAX: u64 = 1 << 40;

/// What a soft GPU is like. All processes that share one state the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// 1, for both directions, or 2, the second for copies out of device memory.
    pub copy_engines: u8,
    /// Bytes of device memory. Whole pages of it are used. Only allocated pages take memory of this machine.
    pub memory: u64,
    /// Bytes that a copy engine copies in a second at most. `None`: as fast as this machine copies them.
    pub copy_rate: Option<u64>,
    /// How long the server stays after the last process has left.
    pub linger: Nanos,
}

impl Default for Config {
    /// One copy engine, 64 MiB, copies as fast as this machine makes them, 1 s.
    fn default() -> Self {
        Config { copy_engines: 1, memory: 64 << 20, copy_rate: None, linger: Nanos::from_secs(1) }
    }
}

/// Why there cannot be such a soft GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Neither one copy engine nor two.
    #[error("{0} copy engines; a soft GPU has 1 or 2, so ask for these")]
    CopyEngines(u8),
    /// No device memory, or too much.
    #[error("{0} bytes of device memory; ask for 1 byte to {MEMORY_MAX} bytes")]
    Memory(u64),
    /// Copies never end.
    #[error("copies at 0 bytes/s never end; leave the rate out or raise it")]
    CopyRate,
}

impl Config {
    /// Whether there can be such a soft GPU.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Config { copy_engines, .. } if !(1..=2).contains(copy_engines) => {
                Err(ConfigError::CopyEngines(*copy_engines))
            }
            Config { memory, .. } if !(1..=MEMORY_MAX).contains(memory) => Err(ConfigError::Memory(*memory)),
            Config { copy_rate: Some(0), .. } => Err(ConfigError::CopyRate),
            _ => Ok(()),
        }
    }

    /// The least time that a copy of `bytes` takes.
    pub fn copy_time(&self, bytes: usize) -> Nanos {
        let Some(rate) = self.copy_rate else { return Nanos::ZERO };
        // 2^40 bytes at 1 byte/s are 2^70 ns: beyond a `Nanos`, but not beyond a u128.
        let nanos = (bytes as u128 * 1_000_000_000).div_ceil(u128::from(rate));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Config { copy_engines, memory, copy_rate, linger } = self;
        let plural = if *copy_engines == 1 { "" } else { "s" };
        write!(f, "{copy_engines} copy engine{plural}, {memory} bytes, ")?;
        match copy_rate {
            Some(rate) => write!(f, "copies at {rate} bytes/s, ")?,
            None => write!(f, "copies as fast as they are, ")?,
        }
        write!(f, "gone after {} ns", linger.0)
    }
}
