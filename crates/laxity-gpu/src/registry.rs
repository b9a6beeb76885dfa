//! Arbitrations by name.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_sys::mutex;
use laxity_sys::process::Process;
use laxity_sys::segment::{HEADER, Segment, SegmentError};

use crate::arbitration::Arbitration;
use crate::config::{self, Config, ConfigError};
use crate::gate::StateError;
use crate::guardian::Guardian;
use crate::layout::{BOOT, CONFIG, FORMAT, GATE, MEMBERS_MAX, MUTEX_LAYOUT, NAMESPACE};
use crate::shared::Shared;
use crate::snapshot::Snapshot;

/// Where arbitrations have their names: a directory in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    directory: PathBuf,
}

/// Why an arbitration cannot be created or attached to, or leftovers not be removed.
#[derive(Debug)]
pub enum RegistryError {
    /// The name cannot be one.
    Name {
        /// The name.
        name: String,
    },
    /// Creating: the configuration cannot be.
    Config(ConfigError),
    /// Creating: an arbitration that is in use has the name.
    Exists {
        /// The name.
        name: String,
    },
    /// Attaching: there is no such arbitration, or it is left over from before the machine was started.
    NotFound {
        /// The name.
        name: String,
    },
    /// Attaching: the arbitration that has the name is configured in another way.
    Different {
        /// The name.
        name: String,
    },
    /// Attaching: what has the name is no arbitration.
    Damaged {
        /// The name.
        name: String,
    },
    /// Attaching: its processes are in another PID namespace, or have another C library. Neither a thread's number nor
    /// a mutex means the same there.
    Elsewhere {
        /// The name.
        name: String,
        /// What differs.
        what: &'static str,
    },
    /// As many processes as can be are attached.
    Full {
        /// The name.
        name: String,
    },
    /// Its state.
    State(StateError),
    /// Its memory.
    Segment(SegmentError),
    /// Linux refuses something else.
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// The longest name of an arbitration, in bytes; with what we add it must fit into a file's name.
pub const ARBITRATION_NAME_MAX: usize = 200;

const PREFIX: &str = "laxity-gpu.";

impl Default for Registry {
    fn default() -> Self {
        Registry::at("/dev/shm")
    }
}

impl Registry {
    /// Names in `directory`, which must exist and be in memory.
    pub fn at(directory: impl Into<PathBuf>) -> Registry {
        Registry { directory: directory.into() }
    }

    /// Creates the arbitration called `name`. Nobody sees it before it is whole. If nobody lives any more who used one
    /// of this name, that is replaced.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn create(&self, name: &str, config: &Config) -> Result<Arbitration, RegistryError> {
        config.validate().map_err(RegistryError::Config)?;
        let shared = Arc::new(self.draft(name, config)?);
        // Whoever finds it waits for this lock, and then for nothing else.
        let locked = shared.segment.lock().map_err(RegistryError::Segment)?;
        loop {
            match shared.segment.publish() {
                Ok(()) => break,
                Err(SegmentError::Exists { .. }) if self.remove_if_unused(name)? => {}
                Err(SegmentError::Exists { .. }) => return Err(RegistryError::Exists { name: name.to_owned() }),
                Err(error) => return Err(RegistryError::Segment(error)),
            }
        }
        join(&shared).inspect_err(|_| drop(locked.unlink()))
    }

    /// The arbitration called `name`, exactly.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn attach(&self, name: &str) -> Result<Arbitration, RegistryError> {
        loop {
            let shared = Arc::new(self.open(name)?);
            let locked = shared.segment.lock().map_err(RegistryError::Segment)?;
            // If the last one out was faster there may be a new one by now.
            if locked.is_named() {
                // Frees the places of the dead.
                shared.bury().map_err(RegistryError::State)?;
                return join(&shared);
            }
        }
    }

    /// Creates the arbitration called `name`, or attaches to it if it is there already: for processes that all know its
    /// configuration and start in any order.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::Different`] if it is configured in another way.
    pub fn create_or_attach(&self, name: &str, config: &Config) -> Result<Arbitration, RegistryError> {
        loop {
            match self.attach(name) {
                Ok(arbitration) if arbitration.config() == config => return Ok(arbitration),
                Ok(_) => return Err(RegistryError::Different { name: name.to_owned() }),
                Err(RegistryError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.create(name, config) {
                Err(RegistryError::Exists { .. }) => {}
                result => return result,
            }
        }
    }

    /// The names of all arbitrations, in order, used or left over.
    ///
    /// # Errors
    /// [`RegistryError::System`].
    pub fn names(&self) -> Result<Vec<String>, RegistryError> {
        let system = |error| RegistryError::System { action: "list the arbitrations", error };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(system)? {
            let file = entry.map_err(system)?.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_prefix(PREFIX)) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Who holds and waits for what in the arbitration called `name`, now. Looking changes nothing and delays nobody.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn look(&self, name: &str) -> Result<Snapshot, RegistryError> {
        Snapshot::of(&self.open(name)?).map_err(RegistryError::State)
    }

    /// Whether a process that lives is attached to the arbitration called `name`.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn is_in_use(&self, name: &str) -> Result<bool, RegistryError> {
        Ok(self.open(name)?.is_in_use())
    }

    /// Removes what nobody uses any more, and answers with the names: arbitrations all of whose processes were killed.
    ///
    /// # Errors
    /// [`RegistryError`]; those of other versions and files of other programs are left alone and are no error.
    pub fn gc(&self) -> Result<Vec<String>, RegistryError> {
        let mut removed = Vec::new();
        for name in self.names()? {
            match self.remove_if_unused(&name) {
                Ok(true) => removed.push(name),
                Ok(false) => {}
                Err(RegistryError::Segment(SegmentError::Foreign { .. } | SegmentError::Version { .. })) => {}
                Err(RegistryError::Damaged { .. } | RegistryError::Elsewhere { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Where the names are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the name is free now, or was found free.
    fn remove_if_unused(&self, name: &str) -> Result<bool, RegistryError> {
        let shared = match self.read(name) {
            Ok((shared, _)) => shared,
            Err(RegistryError::NotFound { .. }) => return Ok(true),
            Err(error) => return Err(error),
        };
        let locked = shared.segment.lock().map_err(RegistryError::Segment)?;
        if shared.is_in_use() {
            return Ok(false);
        }
        locked.unlink().map_err(RegistryError::Segment)?;
        Ok(true)
    }

    /// The memory of the arbitration called `name`, without becoming a member.
    fn open(&self, name: &str) -> Result<Shared, RegistryError> {
        let (shared, boot) = self.read(name)?;
        if boot != shared.boot {
            return Err(RegistryError::NotFound { name: name.to_owned() });
        }
        let word = |offset| shared.segment.u64(offset).load(Ordering::Relaxed);
        let elsewhere = |what| RegistryError::Elsewhere { name: name.to_owned(), what };
        match (word(MUTEX_LAYOUT) == mutex::LAYOUT, word(NAMESPACE) == Process::current().namespace) {
            (false, _) => Err(elsewhere("C library")),
            (true, false) => Err(elsewhere("PID namespace")),
            (true, true) => Ok(shared),
        }
    }

    /// What has the name, and the boot that it is from.
    fn read(&self, name: &str) -> Result<(Shared, u64), RegistryError> {
        let segment = Segment::open(&self.path(name)?, FORMAT).map_err(|error| match error {
            SegmentError::NotFound { .. } => RegistryError::NotFound { name: name.to_owned() },
            error => RegistryError::Segment(error),
        })?;
        let damaged = || RegistryError::Damaged { name: name.to_owned() };
        if segment.len() < GATE {
            return Err(damaged());
        }
        let words = std::array::from_fn(|word| segment.u64(CONFIG + 8 * word).load(Ordering::Relaxed));
        let boot = segment.u64(BOOT).load(Ordering::Relaxed);
        let config = Config::from_words(words).ok_or_else(damaged)?;
        let shared = Shared::new(segment, name.to_owned(), config);
        if shared.segment.len() != shared.layout.total {
            return Err(damaged());
        }
        Ok((shared, boot))
    }

    /// The memory of an arbitration in its initial state, without a name.
    fn draft(&self, name: &str, config: &Config) -> Result<Shared, RegistryError> {
        let path = self.path(name)?;
        let length = Shared::layout_of(config).total - HEADER;
        let segment = Segment::draft(&path, FORMAT, length).map_err(RegistryError::Segment)?;
        for (word, value) in config.to_words().into_iter().enumerate() {
            segment.u64(CONFIG + 8 * word).store(value, Ordering::Relaxed);
        }
        let shared = Shared::new(segment, name.to_owned(), *config);
        let Process { namespace, boot, .. } = Process::current();
        for (offset, value) in [(MUTEX_LAYOUT, mutex::LAYOUT), (NAMESPACE, namespace), (BOOT, boot)] {
            shared.segment.u64(offset).store(value, Ordering::Relaxed);
        }
        make_mutexes(&shared)
            .map_err(|error| RegistryError::System { action: "make a mutex that survives its holder", error })?;
        shared.desk.lock().expect("nobody panicked here before").write_first(&shared);
        Ok(shared)
    }

    fn path(&self, name: &str) -> Result<PathBuf, RegistryError> {
        let is_fit = !name.is_empty() && name.len() <= ARBITRATION_NAME_MAX && !name.contains(['/', '\0']);
        let error = || RegistryError::Name { name: name.to_owned() };
        is_fit.then(|| self.directory.join(format!("{PREFIX}{name}"))).ok_or_else(error)
    }
}

/// Of a draft.
#[expect(unsafe_code, reason = "a draft is nobody else's")]
fn make_mutexes(shared: &Shared) -> io::Result<()> {
    let lives = shared.tasks().map(|task| shared.client(task).life);
    for offset in [GATE].into_iter().chain(lives) {
        // SAFETY: a fresh draft is zero and nobody knows of it, and the layout keeps these bytes for the mutex.
        unsafe { shared.segment.make_mutex(offset)? };
    }
    Ok(())
}

/// Makes this process a member, under the segment's lock.
fn join(shared: &Arc<Shared>) -> Result<Arbitration, RegistryError> {
    let place = shared.take_place().ok_or_else(|| RegistryError::Full { name: shared.name.clone() })?;
    let guardian = Guardian::start(shared, place)
        .map_err(|error| RegistryError::System { action: "start the threads that watch for deaths", error })?;
    Ok(Arbitration::new(shared.clone(), place, guardian))
}

const _: () = assert!(CONFIG + 8 * config::WORDS <= MUTEX_LAYOUT);

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Name { name } => write!(
                f,
                "arbitration name {name:?} has {} bytes; use 1 to {ARBITRATION_NAME_MAX} without slash and NUL",
                name.len()
            ),
            RegistryError::Config(error) => write!(f, "{error}"),
            RegistryError::Exists { name } => write!(f, "arbitration {name}: exists and is in use; attach to it"),
            RegistryError::NotFound { name } => write!(f, "arbitration {name}: does not exist; create it first"),
            RegistryError::Different { name } => write!(
                f,
                "arbitration {name}: exists but is configured otherwise; use one configuration in all processes"
            ),
            RegistryError::Damaged { name } => {
                write!(f, "arbitration {name}: its memory describes none; remove it")
            }
            RegistryError::Elsewhere { name, what } => {
                write!(f, "arbitration {name}: its processes have another {what}; run all of them with the same one")
            }
            RegistryError::Full { name } => {
                write!(f, "arbitration {name}: {MEMBERS_MAX} processes are attached, which is all it takes")
            }
            RegistryError::State(error) => write!(f, "{error}"),
            RegistryError::Segment(error) => write!(f, "{error}"),
            RegistryError::System { action, error } => write!(f, "cannot {action}: {error}"),
        }
    }
}

impl std::error::Error for RegistryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RegistryError::Config(error) => Some(error),
            RegistryError::State(error) => Some(error),
            RegistryError::Segment(error) => Some(error),
            RegistryError::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
