//! What kinds of memory with members there are.

use laxity_model::Nanos;
use laxity_sys::segment::{Format, Segment};

use crate::error::{Cause, RegistryError};
use crate::home::Home;
use crate::members::Members;

/// A kind of memory that has a name and members. A value is one that this process has open, whether or not as a member.
pub trait Kind: Send + Sync + Sized + 'static {
    /// What the names of its files begin with.
    const PREFIX: &'static str;
    /// What its segments are.
    const FORMAT: Format;
    /// Whether [`Kind::reap`] takes robust mutexes of the C library, which the thread that holds a member's word must
    /// not ([`laxity_sys::robust`]): another thread reaps then.
    const REAPS_WITH_MUTEXES: bool;
    /// How often [`Kind::look`] is called, by the thread that reaps with mutexes; never if `None`.
    const LOOKS: Option<Nanos> = None;
    /// Where it says what its threads' numbers and mutexes mean, if it has any.
    const HOME: Option<Home>;
    /// What else can be wrong with it.
    type Cause: Cause;
    /// What a member has beside the memory.
    type Tools;

    /// What is in `segment`, which is of this kind's format and is called `name`. No member yet, and perhaps none ever.
    ///
    /// # Errors
    /// [`RegistryError::Damaged`], and whatever else makes it unreadable.
    fn open(segment: Segment, name: &str) -> Result<Self, RegistryError<Self::Cause>>;

    /// Whether this process can take part at all. Without that it neither becomes a member nor reaps any, and
    /// [`NameTable::open`](crate::NameTable::open) keeps the memory to itself; only leftovers are removed.
    ///
    /// # Errors
    /// Why not.
    fn admit(&self, name: &str) -> Result<(), RegistryError<Self::Cause>> {
        Self::HOME.map_or(Ok(()), |home| home.admit(self, name))
    }

    /// Where it is.
    fn segment(&self) -> &Segment;

    /// Its members.
    fn members(&self) -> Members<'_> {
        Members::of(self.segment())
    }

    /// Makes what this process needs to be the member at `slot`, which counts as one only after this. Under the
    /// segment's lock.
    ///
    /// # Errors
    /// Why it cannot be one; whatever was made goes with the name, by [`Kind::remove`].
    fn join(&self, slot: usize) -> Result<Self::Tools, RegistryError<Self::Cause>>;

    /// Sees to what members that died left ([`Members::dead`]), and frees the slots of those that have ended. Several
    /// processes may do it at once, and one that dies while doing it leaves the rest to the next: the slot is freed last
    /// ([`forget`](crate::Dead::forget)).
    ///
    /// # Errors
    /// If the memory is damaged, so that no member can go on.
    fn reap(&self) -> Result<Reaped, Self::Cause>;

    /// Sees to what no death and no thread tells of. Errors are for those that use the memory next.
    fn look(&self) {}

    /// Removes what has names of its own, before the memory loses its name. Under the segment's lock.
    fn remove(&self) {}
}

/// What is left to do about the dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// Nothing.
    Done,
    /// A process died and has threads that have not ended.
    Pending,
}
