//! This process as a member.

use std::sync::Arc;
#[cfg(debug_assertions)]
use std::sync::atomic::Ordering;

use laxity_sys::process;
use laxity_sys::segment::SegmentError;

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
        let members = memory.members();
        let slot = members.take_slot(std::process::id())?;
        let id = slot.ok_or_else(|| RegistryError::Full { name: name.to_owned() })?;
        let forks = process::forks();
        let joined = memory.join(id.slot).and_then(|tools| {
            let guardian = Guardian::start(memory, id.slot)
                .map_err(|error| RegistryError::System { action: "start the thread that watches for deaths", error })?;
            Ok((Membership { memory: memory.clone(), id, guardian, forks }, tools))
        });
        joined.inspect_err(|_| members.leave(id.slot))
    }

    /// Makes this process a member once more for a simulation, with no thread that stands for it: the test says when it
    /// dies, by its word, and when it has ended. `None`: there is no free slot.
    ///
    /// # Errors
    /// [`SegmentError`].
    #[cfg(debug_assertions)]
    pub fn simulated(memory: &Arc<K>) -> Result<Option<Membership<K>>, SegmentError> {
        let Some(id) = memory.members().take_slot(std::process::id())? else { return Ok(None) };
        // As a thread's number would be there.
        memory.members().word(id.slot).store(id.slot as u32 + 1, Ordering::SeqCst);
        let guardian = Guardian::none(memory);
        Ok(Some(Membership { memory: memory.clone(), id, guardian, forks: process::forks() }))
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

    /// Takes the memory's name away, if it has it: it is not found any more, and members go on.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn unlink(&self) -> Result<(), SegmentError> {
        let locked = self.memory.segment().lock()?;
        self.memory.remove();
        locked.unlink()
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
        let members = self.memory.members();
        // Without the lock the memory may be left over: the next member to leave removes it, or a collection of leftovers.
        let locked = self.memory.segment().lock();
        self.guardian.end();
        members.leave(self.id.slot);
        let Ok(locked) = locked else { return };
        if !members.any_lives(None) {
            self.memory.remove();
            let _ = locked.unlink();
        }
    }
}
