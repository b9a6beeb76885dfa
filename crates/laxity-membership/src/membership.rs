//! This process as a member.

use std::sync::Arc;

use laxity_sys::process;

use crate::error::RegistryError;
use crate::guardian::Guardian;
use crate::kind::Kind;
use crate::members::MemberId;

/// That this process is attached to a memory, until this is dropped. The last member to leave takes the memory's name
/// with it.
///
/// A child made by `fork` is no member, though it has a copy of this.
#[derive(Debug)]
pub struct Membership<K: Kind> {
    memory: Arc<K>,
    id: MemberId,
    guardian: Guardian<K>,
    /// As [`process::forks`] said when it attached.
    forks: u32,
}

/// A membership and what the member has beside the memory, or why there is none.
pub type Joined<K> = Result<(Membership<K>, <K as Kind>::Tools), RegistryError<<K as Kind>::Cause>>;

impl<K: Kind> Membership<K> {
    /// Makes this process a member of `memory`, whose segment's lock is held.
    pub(crate) fn join(memory: &Arc<K>, name: &str) -> Joined<K> {
        let id = memory.members().take_slot().ok_or_else(|| RegistryError::Full { name: name.to_owned() })?;
        let tools = memory.join(id.slot)?;
        let forks = process::forks();
        let guardian = Guardian::start(memory, id.slot)
            .map_err(|error| RegistryError::System { action: "start the thread that watches for deaths", error })?;
        Ok((Membership { memory: memory.clone(), id, guardian, forks }, tools))
    }

    /// What it is a member of.
    pub fn memory(&self) -> &Arc<K> {
        &self.memory
    }

    /// Which member it is.
    pub fn id(&self) -> MemberId {
        self.id
    }

    /// Whether this is the process that attached, not one forked from it.
    #[inline]
    pub fn is_ours(&self) -> bool {
        process::forks() == self.forks
    }

    /// Whether no other process that lives is attached.
    pub fn is_alone(&self) -> bool {
        !self.memory.members().any_lives(Some(self.id.slot))
    }

    /// Whether Linux lets this process make threads real-time.
    pub fn may_raise(&self) -> bool {
        self.guardian.may_raise
    }
}

impl<K: Kind> Drop for Membership<K> {
    fn drop(&mut self) {
        if !self.is_ours() {
            return self.guardian.abandon();
        }
        // If the lock cannot be had, the memory is left over, for the next one out or for who collects it.
        let Ok(locked) = self.memory.segment().lock() else { return };
        self.guardian.end();
        if !self.memory.members().any_lives(None) {
            self.memory.remove();
            let _ = locked.unlink();
        }
    }
}
