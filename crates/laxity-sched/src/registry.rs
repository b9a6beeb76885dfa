//! Systems by name.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use laxity_membership::{Cause, Kind, NameTable};
use laxity_model::ErrorCode;
use laxity_sys::segment::{HEADER, Segment};

use crate::config::{Config, ConfigError};
use crate::layout::{CONFIG, CONFIG_LENGTH, CONFIG_MAX, FORMAT, HOME};
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::state_lock::StateError;
use crate::system::System;

/// Where systems have their names: a directory in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    names: NameTable,
}

/// Why a system cannot be created or attached to, or leftovers not be removed.
pub type RegistryError = laxity_membership::RegistryError<SystemError>;

/// What can be wrong with systems only.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// Creating: the configuration cannot be.
    #[error("{0}")]
    Config(#[source] ConfigError),
    /// Creating or attaching: tasks of two systems on one CPU would starve each other, as neither knows of the other's.
    #[error(
        "system {name}: {} also belong{} to system {other}, whose processes live; take other CPUs, join system {other}, \
         or end its processes (`laxity sched list` names them; `laxity sched gc` removes what killed ones left)",
        numbered(.cpus), if .cpus.len() == 1 { "s" } else { "" }
    )]
    Overlap {
        /// The name.
        name: String,
        /// The system that has the CPUs.
        other: String,
        /// The CPUs that both have, as Linux numbers them.
        cpus: Vec<u16>,
    },
    /// Its state.
    #[error("{0}")]
    State(#[source] StateError),
}

impl Registry {
    /// Names in `directory`, which must exist and be in memory.
    pub fn at(directory: impl Into<PathBuf>) -> Registry {
        Registry { names: NameTable::at(directory) }
    }

    /// Creates the system called `name`. It appears whole. One of that name whose processes have all ended is replaced.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn create(&self, name: &str, config: &Config) -> Result<System, RegistryError> {
        self.names.publish(name, self.draft(name, config)?).and_then(|joined| self.alone(joined))
    }

    /// The system called `name`, exactly. One that is left over from before the machine was started is not found.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn attach(&self, name: &str) -> Result<System, RegistryError> {
        self.names.attach(name).and_then(|joined| self.alone(joined))
    }

    /// Creates the system called `name`, or attaches to it if it is there already: for processes that all know its
    /// configuration and start in any order.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::Different`] if it is configured in another way.
    pub fn create_or_attach(&self, name: &str, config: &Config) -> Result<System, RegistryError> {
        let is_it = |shared: &Shared| shared.config == *config;
        let joined = self.names.publish_or_attach(name, is_it, || self.draft(name, config));
        joined.and_then(|joined| self.alone(joined))
    }

    /// The system that this process just joined, unless another one that lives has some of its CPUs; then it leaves.
    ///
    /// It looks after it joined, so of two processes that join two such systems at once, at least one sees the other: they
    /// never both go on, and it may be that neither does. Systems of other users are not seen.
    fn alone(&self, joined: (laxity_membership::Membership<Shared>, ())) -> Result<System, RegistryError> {
        let system = System::new(joined);
        for other in self.names.list::<Shared>()?.into_iter().filter(|other| other != system.name()) {
            let Ok(shared) = self.names.open::<Shared>(&other) else { continue };
            let cpus = system.config().shared_cpus(&shared.config);
            if !cpus.is_empty() && shared.members().any_lives(None) {
                return Err(RegistryError::Other(SystemError::Overlap { name: system.name().to_owned(), other, cpus }));
            }
        }
        Ok(system)
    }

    /// The names of all systems, in order, used or left over.
    ///
    /// # Errors
    /// [`RegistryError::List`].
    pub fn names(&self) -> Result<Vec<String>, RegistryError> {
        self.names.list::<Shared>()
    }

    /// The tasks of the system called `name`, now. Looking changes nothing and delays no thread.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn look(&self, name: &str) -> Result<Snapshot, RegistryError> {
        let state = |error| RegistryError::Other(SystemError::State(error));
        Snapshot::of(&self.names.open(name)?).map_err(state)
    }

    /// Whether a process that lives is attached to the system called `name`.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn is_in_use(&self, name: &str) -> Result<bool, RegistryError> {
        self.names.is_in_use::<Shared>(name)
    }

    /// Removes systems all of whose processes were killed, and answers with their names.
    ///
    /// # Errors
    /// [`RegistryError`]; those of other versions and files of other programs are left alone and are no error.
    pub fn gc(&self) -> Result<Vec<String>, RegistryError> {
        self.names.gc::<Shared>()
    }

    /// Takes the name of the system called `name` away, used or not: it is not found any more, attached processes go on, and
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

    /// The memory of a system without tasks, without a name.
    fn draft(&self, name: &str, config: &Config) -> Result<Shared, RegistryError> {
        let refused = |error| RegistryError::Other(SystemError::Config(error));
        config.validate().and_then(|()| config.find_cpus()).map_err(refused)?;
        let path = self.names.path::<Shared>(name)?;
        let layout = Shared::layout(config);
        let segment = Segment::draft(&path, FORMAT, layout.total - HEADER)?;
        let text = postcard::to_allocvec(config).expect("a configuration has no part that cannot be written");
        assert!(text.len() <= CONFIG_MAX, "a valid configuration is short");
        segment.u64(CONFIG_LENGTH).store(text.len() as u64, Ordering::Relaxed);
        segment.store_bytes(CONFIG, &text);
        let shared = Shared::new(segment, name.to_owned(), config.clone(), layout);
        HOME.write(&shared.segment)?;
        make_mutexes(&shared)
            .map_err(|error| RegistryError::System { action: "make a mutex that survives its holder", error })?;
        for cluster in shared.clusters() {
            shared.caches[cluster].lock().expect("no thread panicked here before").write(&shared, cluster, 0);
        }
        shared.locks.lock().expect("no thread panicked here before").write(&shared, 0);
        Ok(shared)
    }
}

impl From<PathBuf> for Registry {
    fn from(directory: PathBuf) -> Self {
        Registry::at(directory)
    }
}

/// As in "CPU 1" and "CPUs 0 1".
fn numbered(cpus: &[u16]) -> String {
    let numbers: Vec<String> = cpus.iter().map(u16::to_string).collect();
    format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, numbers.join(" "))
}

/// What `segment` says of itself.
pub(crate) fn describe(segment: Segment, name: &str) -> Result<Shared, RegistryError> {
    let damaged = |reason| RegistryError::Damaged { name: name.to_owned(), reason };
    if segment.len() < CONFIG + CONFIG_MAX {
        return Err(damaged(None));
    }
    let length = segment.u64(CONFIG_LENGTH).load(Ordering::Relaxed).min(CONFIG_MAX as u64) as usize;
    let text = segment.load_bytes(CONFIG..CONFIG + length);
    let config: Config = postcard::from_bytes(&text).map_err(|error| damaged(Some(Box::new(error))))?;
    config.validate().map_err(|error| damaged(Some(Box::new(error))))?;
    let layout = Shared::layout(&config);
    if segment.len() != layout.total {
        return Err(damaged(None));
    }
    Ok(Shared::new(segment, name.to_owned(), config, layout))
}

/// Of a draft.
#[expect(unsafe_code, reason = "no other process has a draft")]
fn make_mutexes(shared: &Shared) -> io::Result<()> {
    let liveness = shared.tasks().map(|task| shared.task(task).liveness);
    let states = (0..=shared.locks_index()).map(|state| shared.cluster_words(state).mutex);
    for offset in states.chain(liveness) {
        // SAFETY: a fresh draft is zero and no other thread has it, and the layout keeps these bytes for the mutex.
        unsafe { shared.segment.make_mutex(offset)? };
    }
    Ok(())
}

impl Cause for SystemError {
    const NOUN: &'static str = "system";
    const DESCRIPTION: &'static str = "configuration";
    const NOT_FOUND: ErrorCode = ErrorCode::NoSystem;
}
