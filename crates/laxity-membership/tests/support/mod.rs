//! A kind of memory that keeps nothing but how many of its members were reaped.

use std::sync::atomic::{AtomicU64, Ordering};

use laxity_membership::{CONTENTS, Cause, Home, Kind, Membership, NameTable, Reaped, RegistryError};
use laxity_model::{ErrorCode, ErrorDetails};
use laxity_sys::segment::{Format, HEADER, Segment};
use laxity_testing::Directory;

/// Whose guardian reaps the dead itself, or has a reaper do so.
pub struct Memory<const HAS_REAPER: bool>(pub Segment);

pub type Plain = Memory<false>;

pub const FORMAT: Format = Format { magic: *b"lxt-memb", version: 1 };

/// As many reaped members mean that this process cannot take part.
pub const ELSEWHERE: u64 = u64::MAX;

impl<const HAS_REAPER: bool> Memory<HAS_REAPER> {
    pub fn draft(names: &NameTable) -> Self {
        let path = names.path::<Self>("m").expect("a name");
        Memory(Segment::draft(&path, FORMAT, CONTENTS + 8 - HEADER).expect("enough memory"))
    }

    pub fn create(names: &NameTable) -> Membership<Self> {
        names.publish("m", Self::draft(names)).expect("the name is free").0
    }

    /// How many members were reaped.
    pub fn reaped(&self) -> &AtomicU64 {
        self.0.u64(CONTENTS)
    }
}

impl<const HAS_REAPER: bool> Kind for Memory<HAS_REAPER> {
    const PREFIX: &'static str = "laxity-memory.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = HAS_REAPER;
    const HOME: Option<Home> = None;
    type Cause = Unfit;
    type Tools = ();

    fn open(segment: Segment, name: &str) -> Result<Self, RegistryError<Unfit>> {
        let is_whole = segment.len() == CONTENTS + 8;
        let damaged = || RegistryError::Damaged { name: name.to_owned(), reason: None };
        is_whole.then(|| Memory(segment)).ok_or_else(damaged)
    }

    fn admit(&self, _name: &str) -> Result<(), RegistryError<Unfit>> {
        let is_ours = self.reaped().load(Ordering::SeqCst) != ELSEWHERE;
        is_ours.then_some(()).ok_or(RegistryError::Other(Unfit))
    }

    fn segment(&self) -> &Segment {
        &self.0
    }

    fn join(&self, _slot: usize) -> Result<(), RegistryError<Unfit>> {
        Ok(())
    }

    fn reap(&self) -> Result<Reaped, Unfit> {
        let mut reaped = Reaped::Done;
        for dead in self.members().dead() {
            if dead.has_ended() {
                self.reaped().fetch_add(1, Ordering::SeqCst);
                dead.forget();
            } else {
                reaped = Reaped::Pending;
            }
        }
        Ok(reaped)
    }
}

/// This process cannot take part.
#[derive(Debug, thiserror::Error)]
#[error("unfit")]
pub struct Unfit;

impl ErrorDetails for Unfit {
    fn code(&self) -> ErrorCode {
        ErrorCode::Foreign
    }
}

impl Cause for Unfit {
    const NOT_FOUND: ErrorCode = ErrorCode::NoGraph;
    const NOUN: &'static str = "memory";
    const DESCRIPTION: &'static str = "purpose";
}

/// A directory of its own, and the names in it.
pub fn scene(test: &str) -> (Directory, NameTable) {
    let directory = Directory::new(test);
    let names = NameTable::at(directory.path());
    (directory, names)
}
