//! Memory with members by name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laxity_model::Instant;
use laxity_sys::directory::Watch;
use laxity_sys::segment::{Segment, SegmentError};

use crate::error::RegistryError;
use crate::kind::Kind;
use crate::membership::{Joined, Membership};

/// Where memory of any kind has its names: a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTable {
    directory: PathBuf,
}

/// The longest name, in bytes; with what kinds add it must fit into a file's name.
pub const NAME_MAX: usize = 200;

impl Default for NameTable {
    /// In memory, where every process finds them.
    fn default() -> Self {
        NameTable::at("/dev/shm")
    }
}

impl NameTable {
    /// NameTable in `directory`, which must exist.
    pub fn at(directory: impl Into<PathBuf>) -> NameTable {
        NameTable { directory: directory.into() }
    }

    /// Where the names are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of the memory called `name`: what a draft is to be published as.
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn path<K: Kind>(&self, name: &str) -> Result<PathBuf, RegistryError<K::Cause>> {
        let is_fit = !name.is_empty() && name.len() <= NAME_MAX && !name.contains(['/', '\0']);
        let error = || RegistryError::Name { name: name.to_owned() };
        is_fit.then(|| self.directory.join(format!("{}{name}", K::PREFIX))).ok_or_else(error)
    }

    /// Gives `draft` its name and makes this process its first member. No process sees it before it is whole. Memory of
    /// this name whose members are all gone is replaced.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn publish<K: Kind>(&self, name: &str, draft: K) -> Joined<K> {
        let memory = Arc::new(draft);
        // A process that finds it waits for this lock, and then for nothing else.
        let locked = memory.segment().lock()?;
        loop {
            match memory.segment().publish() {
                Ok(()) => break,
                Err(SegmentError::Exists { .. }) if self.remove_if_unused::<K>(name)? => {}
                Err(SegmentError::Exists { .. }) => return Err(RegistryError::Exists { name: name.to_owned() }),
                Err(error) => return Err(error.into()),
            }
        }
        Membership::join(&memory, name).inspect_err(|_| {
            memory.remove();
            drop(locked.unlink());
        })
    }

    /// Makes this process a member of the memory called `name`, exactly.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn attach<K: Kind>(&self, name: &str) -> Joined<K> {
        loop {
            let memory = Arc::new(self.open::<K>(name)?);
            let locked = memory.segment().lock()?;
            // If the last member left in between, there may be a new memory of this name by now.
            if locked.is_named() {
                // Frees the places of the dead.
                memory.reap().map_err(RegistryError::Other)?;
                return Membership::join(&memory, name);
            }
        }
    }

    /// As [`NameTable::attach`]; until `deadline` it may still have to be created.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::NotFound`] if it was not.
    pub fn attach_until<K: Kind>(&self, name: &str, deadline: Instant) -> Joined<K> {
        let watch = Watch::new(&self.directory)
            .map_err(|error| RegistryError::System { action: "watch for a name that is awaited", error })?;
        loop {
            match self.attach(name) {
                Err(RegistryError::NotFound { .. }) if watch.wait(deadline) => {}
                result => return result,
            }
        }
    }

    /// Publishes a `draft`, or attaches to what has the name already, if it `is_it`.
    ///
    /// # Errors
    /// [`RegistryError`]; [`RegistryError::Different`] if it is not.
    pub fn publish_or_attach<K: Kind>(
        &self,
        name: &str,
        is_it: impl Fn(&K) -> bool,
        draft: impl Fn() -> Result<K, RegistryError<K::Cause>>,
    ) -> Joined<K> {
        loop {
            match self.attach::<K>(name) {
                Ok(joined) if is_it(joined.0.memory()) => return Ok(joined),
                Ok(_) => return Err(RegistryError::Different { name: name.to_owned() }),
                Err(RegistryError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.publish(name, draft()?) {
                Err(RegistryError::Exists { .. }) => {}
                result => return result,
            }
        }
    }

    /// All names of one kind, in order, used or left over.
    ///
    /// # Errors
    /// [`RegistryError::List`].
    pub fn list<K: Kind>(&self) -> Result<Vec<String>, RegistryError<K::Cause>> {
        let failed = |error| RegistryError::List { folder: self.directory.clone(), error };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            if let Some(name) = file.to_str().and_then(|file| file.strip_prefix(K::PREFIX)) {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Removes what is not in use any more, and answers with the names: memory all of whose members were killed, or that a
    /// power cut left on a disk.
    ///
    /// # Errors
    /// [`RegistryError`]; memory of other versions and of other users and files of other programs are left alone and are
    /// no error.
    pub fn gc<K: Kind>(&self) -> Result<Vec<String>, RegistryError<K::Cause>> {
        let mut removed = Vec::new();
        for name in self.list::<K>()? {
            match self.remove_if_unused::<K>(&name) {
                Ok(true) => removed.push(name),
                Ok(false) => {}
                Err(RegistryError::Segment(
                    SegmentError::Foreign { .. } | SegmentError::Owner { .. } | SegmentError::Version { .. },
                )) => {}
                Err(RegistryError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Takes the name away, used or not: it is not found any more, attached processes go on, and the memory goes with the
    /// last of them, however that ends. For a creator that cannot wait.
    ///
    /// # Errors
    /// [`RegistryError`]; that nothing has the name is none.
    pub fn unlink<K: Kind>(&self, name: &str) -> Result<(), RegistryError<K::Cause>> {
        self.remove_if::<K>(name, |_| true).map(|_| ())
    }

    /// Whether a process that lives is attached to the memory called `name`. Looking changes nothing, whereas a process
    /// that attaches to what is left over removes it when it leaves.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn is_in_use<K: Kind>(&self, name: &str) -> Result<bool, RegistryError<K::Cause>> {
        Ok(self.open::<K>(name)?.members().any_lives(None))
    }

    /// The memory called `name`, in which this process could take part, without becoming a member.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn open<K: Kind>(&self, name: &str) -> Result<K, RegistryError<K::Cause>> {
        let memory = self.read::<K>(name)?;
        memory.admit(name).map(|()| memory)
    }

    /// The memory called `name`, wherever its members are.
    fn read<K: Kind>(&self, name: &str) -> Result<K, RegistryError<K::Cause>> {
        let segment = Segment::open(&self.path::<K>(name)?, K::FORMAT).map_err(|error| match error {
            SegmentError::NotFound { .. } => RegistryError::NotFound { name: name.to_owned() },
            error => error.into(),
        })?;
        if segment.len() < crate::CONTENTS {
            return Err(RegistryError::Damaged { name: name.to_owned(), reason: None });
        }
        K::open(segment, name)
    }

    /// Whether the name is free now, or was found free.
    fn remove_if_unused<K: Kind>(&self, name: &str) -> Result<bool, RegistryError<K::Cause>> {
        self.remove_if(name, |memory: &K| !memory.members().any_lives(None))
    }

    /// Whether the name is free now, or was found free: it is taken away if `may` says so, under the segment's lock.
    fn remove_if<K: Kind>(&self, name: &str, may: impl Fn(&K) -> bool) -> Result<bool, RegistryError<K::Cause>> {
        let memory = match self.read::<K>(name) {
            Ok(memory) => memory,
            Err(RegistryError::NotFound { .. }) => return Ok(true),
            Err(error) => return Err(error),
        };
        let locked = memory.segment().lock()?;
        if !may(&memory) {
            return Ok(false);
        }
        memory.remove();
        locked.unlink()?;
        Ok(true)
    }
}
