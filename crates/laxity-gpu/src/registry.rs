//! Arbitrations by name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use laxity_membership::{Cause, NameTable};
use laxity_model::{ErrorCode, Instant, Nanos};
use laxity_sys::clock;
use laxity_sys::segment::{HEADER, Segment};

use crate::arbitration::Arbitration;
use crate::config::{Config, ConfigError};
use crate::layout::{CONFIG, FORMAT, HOME, STATE_MUTEX};
use crate::memory::Memory;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::state_lock::StateError;

/// Where arbitrations have their names: a directory in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    names: NameTable,
}

/// Why an arbitration cannot be created or attached to, or leftovers not be removed.
pub type RegistryError = laxity_membership::RegistryError<ArbitrationError>;

/// What can be wrong with arbitrations only.
#[derive(Debug, thiserror::Error)]
pub enum ArbitrationError {
    /// Creating: the configuration cannot be.
    #[error("{0}")]
    Config(#[source] ConfigError),
    /// Its state.
    #[error("{0}")]
    State(#[source] StateError),
}

impl Registry {
    /// Names in `directory`, which must exist and be in memory.
    pub fn at(directory: impl Into<PathBuf>) -> Registry {
        Registry { names: NameTable::at(directory) }
    }

    /// Creates the arbitration called `name`. It appears whole. One of that name whose processes have all ended is replaced.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn create(&self, name: &str, config: &Config) -> Result<Arbitration, RegistryError> {
        self.names.publish(name, self.draft(name, config)?).map(Arbitration::new)
    }

    /// The arbitration called `name`, exactly. One that is left over from before the machine was started is not found.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn attach(&self, name: &str) -> Result<Arbitration, RegistryError> {
        self.names.attach(name).map(Arbitration::new)
    }

    /// Creates the arbitration called `name`, or attaches to it if it is there already: for processes that all know its
    /// configuration and start in any order.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::Different`] if it is configured in another way.
    pub fn create_or_attach(&self, name: &str, config: &Config) -> Result<Arbitration, RegistryError> {
        let is_it = |shared: &Shared| shared.config == *config;
        self.names.publish_or_attach(name, is_it, || self.draft(name, config)).map(Arbitration::new)
    }

    /// The names of all arbitrations, in order, used or left over.
    ///
    /// # Errors
    /// [`RegistryError::List`].
    pub fn names(&self) -> Result<Vec<String>, RegistryError> {
        self.names.list::<Shared>()
    }

    /// The holders and waiters of all locks of the arbitration called `name`, now. Looking changes nothing and delays no
    /// thread.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn look(&self, name: &str) -> Result<Snapshot, RegistryError> {
        let state = |error| RegistryError::Other(ArbitrationError::State(error));
        Snapshot::of(&self.names.open(name)?).map_err(state)
    }

    /// Clients of the arbitration called `name` are to say what they do, for so long: a watcher looks. 0 ends that.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn watch(&self, name: &str, span: Nanos) -> Result<(), RegistryError> {
        let until = if span == Nanos::ZERO { Instant::ZERO } else { clock::now().saturating_add(span) };
        let shared: Shared = self.names.open(name)?;
        shared.watch(until);
        Ok(())
    }

    /// Whether a process that lives is attached to the arbitration called `name`.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn is_in_use(&self, name: &str) -> Result<bool, RegistryError> {
        self.names.is_in_use::<Shared>(name)
    }

    /// Removes arbitrations all of whose processes were killed, and answers with their names.
    ///
    /// # Errors
    /// [`RegistryError`]; those of other versions and files of other programs are left alone and are no error.
    pub fn gc(&self) -> Result<Vec<String>, RegistryError> {
        self.names.gc::<Shared>()
    }

    /// Takes the name of the arbitration called `name` away, used or not: it is not found any more, attached processes go on, and
    /// its memory goes with the last of them, however that ends. For a creator that cannot wait.
    ///
    /// # Errors
    /// [`RegistryError`]; that there is none is no error.
    pub fn unlink(&self, name: &str) -> Result<(), RegistryError> {
        self.names.unlink::<Shared>(name)
    }

    /// Where the names are.
    pub fn directory(&self) -> &Path {
        self.names.directory()
    }

    /// The memory of an arbitration in its initial state, without a name.
    fn draft(&self, name: &str, config: &Config) -> Result<Shared, RegistryError> {
        config.validate().map_err(|error| RegistryError::Other(ArbitrationError::Config(error)))?;
        let path = self.names.path::<Shared>(name)?;
        let (_, layout) = Memory::arbiter_and_layout(config);
        let segment = Segment::draft(&path, FORMAT, layout.total - HEADER)?;
        for (word, value) in config.to_words().into_iter().enumerate() {
            segment.u64(CONFIG + 8 * word).store(value, Ordering::Relaxed);
        }
        let shared = Shared::new(segment, name.to_owned(), *config);
        HOME.write(&shared.segment)?;
        make_mutexes(&shared)
            .map_err(|error| RegistryError::System { action: "make a mutex that survives its holder", error })?;
        shared.cache.lock().expect("no thread panicked here before").write_first(&shared);
        Ok(shared)
    }
}

impl From<PathBuf> for Registry {
    fn from(directory: PathBuf) -> Self {
        Registry::at(directory)
    }
}

/// What `segment` says of itself.
pub(crate) fn describe(segment: Segment, name: &str) -> Result<Shared, RegistryError> {
    let damaged = || RegistryError::Damaged { name: name.to_owned(), reason: None };
    if segment.len() < STATE_MUTEX {
        return Err(damaged());
    }
    let words = std::array::from_fn(|word| segment.u64(CONFIG + 8 * word).load(Ordering::Relaxed));
    let config = Config::from_words(words).ok_or_else(damaged)?;
    let shared = Shared::new(segment, name.to_owned(), config);
    if shared.segment.len() == shared.layout.total { Ok(shared) } else { Err(damaged()) }
}

/// Of a draft.
#[expect(unsafe_code, reason = "no other process has a draft")]
fn make_mutexes(shared: &Shared) -> io::Result<()> {
    let liveness = shared.tasks().map(|task| shared.client(task).liveness);
    for offset in [STATE_MUTEX].into_iter().chain(liveness) {
        // SAFETY: a fresh draft is zero and no other thread has it, and the layout keeps these bytes for the mutex.
        unsafe { shared.segment.make_mutex(offset)? };
    }
    Ok(())
}

impl Cause for ArbitrationError {
    const NOUN: &'static str = "arbitration";
    const DESCRIPTION: &'static str = "configuration";
    const NOT_FOUND: ErrorCode = ErrorCode::NoArbitration;
}
