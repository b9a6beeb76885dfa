//! What is arbitrated, and by which rules.

use laxity_model::{
    CopyDirection, Engine, EngineOrder, GpuArbitration, GpuSync, LockId, MigrationPath, Nanos, TokenHold,
};
use laxity_policy::gpu::copy_engine;
use laxity_policy::lock;

use crate::owner_word::OWNERS_MAX;

/// The GPUs of one cluster, and how they are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// CPUs that the cluster's threads run on (m).
    pub cpus: u16,
    /// GPUs (g), at most [`GPUS_MAX`].
    pub gpus: u16,
    /// Of each GPU: 1, which takes copies in both directions, or 2.
    pub copy_engines: u8,
    /// The rules by which GPUs and engines are granted: the k-FMLP or GPUSync.
    pub arbitration: GpuArbitration,
    /// The most threads that may be registered at a time.
    pub clients: u16,
}

/// The most GPUs of a cluster.
pub const GPUS_MAX: u16 = 64;
/// The most tokens of all GPUs together.
pub const TOKENS_MAX: u32 = 256;
/// The most threads that may be registered at a time.
pub const CLIENTS_MAX: u16 = OWNERS_MAX as u16;

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number is outside its range.
    #[error("{what}: {value} is outside {min} to {max}; choose one within")]
    Range {
        /// Which.
        what: &'static str,
        /// The number.
        value: u64,
        /// The least that can be.
        min: u64,
        /// The most that can be.
        max: u64,
    },
    /// This arbitration needs no library: the driver's own, or one that only the simulator knows.
    #[error("arbitration {name} cannot be done live; choose k_fmlp or gpusync")]
    Arbitration {
        /// Its name in files.
        name: &'static str,
    },
}

/// The lock of the GPUs' tokens.
pub(crate) const TOKEN: LockId = LockId(0);

impl Config {
    /// `gpus` GPUs with one execution engine and two copy engines each, shared by the threads of `cpus` CPUs: one token
    /// a GPU, engines first come first served, 64 threads.
    pub const fn new(cpus: u16, gpus: u16) -> Self {
        let arbitration = GpuArbitration::GpuSync(GpuSync::DEFAULT);
        Config { cpus, gpus, copy_engines: 2, arbitration, clients: 64 }
    }

    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let range = |what, value: u64, min: u64, max: u64| {
            if (min..=max).contains(&value) { Ok(()) } else { Err(ConfigError::Range { what, value, min, max }) }
        };
        range("CPUs", self.cpus.into(), 1, u16::MAX.into())?;
        range("GPUs", self.gpus.into(), 1, GPUS_MAX.into())?;
        range("copy engines", self.copy_engines.into(), 1, 2)?;
        range("clients", self.clients.into(), 1, CLIENTS_MAX.into())?;
        let sync = match self.arbitration {
            GpuArbitration::KFmlp { .. } => return Ok(()),
            GpuArbitration::GpuSync(sync) => sync,
            other => return Err(ConfigError::Arbitration { name: other.name() }),
        };
        range("tokens of a GPU", sync.tokens.into(), 1, u64::from(TOKENS_MAX) / u64::from(self.gpus))?;
        range("longest FIFO queue", sync.fifo_length.unwrap_or(1).into(), 1, u16::MAX.into())?;
        range("requests in FIFO queues", sync.fifo_requests.unwrap_or(1).into(), 1, u16::MAX.into())?;
        range("bytes of a chunk", sync.chunk.unwrap_or(1), 1, u64::MAX)
    }

    /// The locks, as the arbiter knows them: that of the tokens, then for each GPU those of its engines.
    pub(crate) fn locks(&self) -> Vec<lock::Config> {
        let tokens = match self.arbitration {
            GpuArbitration::GpuSync(sync) => lock::Config::tokens(&sync, self.gpus, self.cpus.into()),
            GpuArbitration::KFmlp { length_aware } => lock::Config::KFmlp { replicas: self.gpus, length_aware },
            other => unreachable!("{} is not valid", other.name()),
        };
        let engines = usize::from(self.gpus) * self.engines().len();
        let engine = lock::Config::engine(self.engine_order());
        [tokens].into_iter().chain(std::iter::repeat_n(engine, engines)).collect()
    }

    /// Whether how long requests would wait is predicted, from how long GPUs were held.
    pub(crate) fn predicts(&self) -> bool {
        matches!(self.arbitration, GpuArbitration::GpuSync(GpuSync { migration: Some(_), .. }))
    }

    /// Whether the lock is granted without the arbiter while nothing waits for it. Not where holds are observed, nor where
    /// a token may be free and yet must not be granted.
    pub(crate) fn may_open(lock: &lock::Config) -> bool {
        match *lock {
            lock::Config::Tokens { migration, fifo_requests, .. } => {
                migration.is_none() && fifo_requests >= lock.replicas()
            }
            lock::Config::Queue { .. } | lock::Config::KFmlp { .. } => true,
        }
    }

    /// The engines of each GPU.
    pub fn engines(&self) -> &'static [Engine] {
        &Engine::ALL[..1 + usize::from(self.copy_engines)]
    }

    /// The engine that copies in `direction`.
    pub fn copy_engine(&self, direction: CopyDirection) -> Engine {
        copy_engine(self.copy_engines, direction)
    }

    pub(crate) fn engine_lock(&self, gpu: u16, engine: Engine) -> LockId {
        LockId(1 + gpu * self.engines().len() as u16 + engine.index() as u16)
    }

    pub(crate) fn engine_order(&self) -> EngineOrder {
        match self.arbitration {
            GpuArbitration::GpuSync(sync) => sync.engine_order,
            _ => EngineOrder::Fifo,
        }
    }

    /// Copies are broken into chunks of at most this many bytes; `None`: they are not.
    pub fn chunk(&self) -> Option<u64> {
        match self.arbitration {
            GpuArbitration::GpuSync(sync) => sync.chunk,
            _ => None,
        }
    }
}

/// How many words a configuration is in shared memory.
pub(crate) const WORDS: usize = 13;

/// Nothing, or a number and one more than it.
fn optional(number: Option<u64>) -> u64 {
    number.map_or(0, |number| number.saturating_add(1))
}

impl Config {
    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        words[..4].copy_from_slice(&[
            self.cpus.into(),
            self.gpus.into(),
            self.copy_engines.into(),
            self.clients.into(),
        ]);
        match self.arbitration {
            GpuArbitration::KFmlp { length_aware } => words[4..6].copy_from_slice(&[1, length_aware.into()]),
            GpuArbitration::GpuSync(sync) => words[4..].copy_from_slice(&[
                2,
                sync.tokens.into(),
                optional(sync.fifo_length.map(u64::from)),
                optional(sync.fifo_requests.map(u64::from)),
                (sync.engine_order == EngineOrder::Priority).into(),
                optional(sync.chunk),
                (sync.hold == TokenHold::Section).into(),
                optional(sync.migration.map(Nanos::as_nanos)),
                (sync.migration_path == MigrationPath::Host).into(),
            ]),
            other => unreachable!("{} is not valid", other.name()),
        }
        words
    }

    /// `None` if `words` are no valid configuration.
    pub(crate) fn from_words(words: [u64; WORDS]) -> Option<Config> {
        let narrow = |word: u64| u32::try_from(word).ok();
        let optional = |word: u64| word.checked_sub(1);
        let optional_narrow = |word: u64| optional(word).map(narrow).map_or(Some(None), |number| number.map(Some));
        let arbitration = match words[4] {
            1 => GpuArbitration::KFmlp { length_aware: words[5] == 1 },
            2 => GpuArbitration::GpuSync(GpuSync {
                tokens: narrow(words[5])?,
                fifo_length: optional_narrow(words[6])?,
                fifo_requests: optional_narrow(words[7])?,
                engine_order: if words[8] == 1 { EngineOrder::Priority } else { EngineOrder::Fifo },
                chunk: optional(words[9]),
                hold: if words[10] == 1 { TokenHold::Section } else { TokenHold::Job },
                migration: optional(words[11]).map(Nanos),
                migration_path: if words[12] == 1 { MigrationPath::Host } else { MigrationPath::Peer },
            }),
            _ => return None,
        };
        let config = Config {
            cpus: words[0].try_into().ok()?,
            gpus: words[1].try_into().ok()?,
            copy_engines: words[2].try_into().ok()?,
            clients: words[3].try_into().ok()?,
            arbitration,
        };
        config.validate().ok().map(|()| config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_survives_as_words() {
        let sync = GpuSync {
            tokens: 3,
            fifo_length: Some(2),
            fifo_requests: None,
            engine_order: EngineOrder::Priority,
            chunk: Some(1 << 20),
            hold: TokenHold::Section,
            migration: Some(Nanos(7)),
            migration_path: MigrationPath::Host,
        };
        for arbitration in [GpuArbitration::KFmlp { length_aware: true }, GpuArbitration::GpuSync(sync)] {
            let config = Config { arbitration, clients: 9, ..Config::new(6, 2) };
            assert_eq!(Config::from_words(config.to_words()), Some(config));
        }
        assert_eq!(Config::from_words([0; WORDS]), None);
        assert_eq!(Config::from_words([u64::MAX; WORDS]), None);
    }

    #[test]
    fn what_cannot_be_is_refused_with_both_numbers() {
        let text = |config: Config| config.validate().expect_err("cannot be").to_string();
        assert_eq!(text(Config::new(2, 0)), "GPUs: 0 is outside 1 to 64; choose one within");
        let sync = GpuSync { tokens: 200, ..GpuSync::DEFAULT };
        let many = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 2) };
        assert_eq!(text(many), "tokens of a GPU: 200 is outside 1 to 128; choose one within");
        let driver = Config { arbitration: GpuArbitration::Driver, ..Config::new(2, 2) };
        assert_eq!(text(driver), "arbitration driver cannot be done live; choose k_fmlp or gpusync");
    }
}
