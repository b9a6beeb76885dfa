//! What a soft GPU is like.

use std::fmt;

use laxity_model::Nanos;

/// The longest name of a soft GPU or a stream, in bytes.
pub const NAME_MAX: usize = 64;
/// The most device memory that one may have.
pub const MEMORY_MAX: u64 = 1 << 40;

/// What a soft GPU is like. All processes that share one say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// 1, for both directions, or 2, the second for copies out of device memory.
    pub copy_engines: u8,
    /// Bytes of device memory, of which whole pages are used. It takes this machine's only where it is allocated.
    pub memory: u64,
    /// How fast a copy engine copies: a copy takes at least its bytes divided by this. `None`: as fast as this machine
    /// copies them.
    pub copy_rate: Option<u64>,
    /// How long the server stays when nobody uses it.
    pub linger: Nanos,
}

impl Default for Config {
    /// One copy engine, 64 MiB, copies as fast as they are, 1 s.
    fn default() -> Self {
        Config { copy_engines: 1, memory: 64 << 20, copy_rate: None, linger: Nanos::from_secs(1) }
    }
}

/// There cannot be such a soft GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Neither one copy engine nor two.
    CopyEngines(u8),
    /// No device memory, or too much.
    Memory(u64),
    /// Copies never end.
    CopyRate,
}

impl Config {
    /// Whether there can be one.
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

    /// How long a copy of `bytes` takes at least.
    pub fn copy_time(&self, bytes: usize) -> Nanos {
        let Some(rate) = self.copy_rate else { return Nanos::ZERO };
        // 2^40 bytes at 1 byte/s are 2^70 ns: more than there is, but not more than a u128 holds.
        let nanos = (bytes as u128 * 1_000_000_000).div_ceil(u128::from(rate));
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// As numbers, for another process.
    pub(crate) fn to_words(self) -> [u64; 4] {
        [self.copy_engines.into(), self.memory, self.copy_rate.unwrap_or(0), self.linger.0]
    }

    /// What [`Config::to_words`] made numbers of; nothing of what it never makes.
    pub(crate) fn from_words(words: [u64; 4]) -> Option<Config> {
        let [copy_engines, memory, copy_rate, linger] = words;
        let copy_engines = u8::try_from(copy_engines).ok()?;
        let copy_rate = (copy_rate > 0).then_some(copy_rate);
        let config = Config { copy_engines, memory, copy_rate, linger: Nanos(linger) };
        config.check().is_ok().then_some(config)
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

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::CopyEngines(count) => {
                write!(f, "{count} copy engines; a soft GPU has 1 or 2, so ask for these")
            }
            ConfigError::Memory(bytes) => {
                write!(f, "{bytes} bytes of device memory; ask for 1 byte to {MEMORY_MAX} bytes")
            }
            ConfigError::CopyRate => write!(f, "copies at 0 bytes/s never end; leave the rate out or raise it"),
        }
    }
}

impl std::error::Error for ConfigError {}
