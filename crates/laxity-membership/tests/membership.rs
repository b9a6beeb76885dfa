//! The rules of membership, with a kind of memory that keeps nothing but how many of its members were reaped.
//!
//! Other processes are this test program, started again for the test `child`.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use laxity_membership::{CONTENTS, Cause, Kind, Membership, NameTable, Reaped, RegistryError};
use laxity_model::{ErrorCode, ErrorDetails, Instant};
use laxity_sys::process::{self, Process as Identity, Standing};
use laxity_sys::robust::Holder;
use laxity_sys::segment::{Format, HEADER, Segment, SegmentError};
use laxity_testing::{Directory, Process, role, until};

/// Whose guardian reaps the dead itself, or has an heir do so.
struct Memory<const HAS_HEIR: bool>(Segment);

type Plain = Memory<false>;

const FORMAT: Format = Format { magic: *b"lxt-memb", version: 1 };

/// As many reaped members mean that this process cannot take part.
const ELSEWHERE: u64 = u64::MAX;

impl<const HAS_HEIR: bool> Memory<HAS_HEIR> {
    fn draft(names: &NameTable) -> Self {
        let path = names.path::<Self>("m").expect("a name");
        Memory(Segment::draft(&path, FORMAT, CONTENTS + 8 - HEADER).expect("enough memory"))
    }

    fn create(names: &NameTable) -> Membership<Self> {
        names.publish("m", Self::draft(names)).expect("the name is free").0
    }

    /// How many members were reaped.
    fn reaped(&self) -> &AtomicU64 {
        self.0.u64(CONTENTS)
    }
}

impl<const HAS_HEIR: bool> Kind for Memory<HAS_HEIR> {
    const PREFIX: &'static str = "laxity-memory.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = HAS_HEIR;
    type Cause = Nothing;
    type Tools = ();

    fn open(segment: Segment, name: &str) -> Result<Self, RegistryError<Nothing>> {
        let is_whole = segment.len() == CONTENTS + 8;
        let damaged = || RegistryError::Damaged { name: name.to_owned(), reason: None };
        is_whole.then(|| Memory(segment)).ok_or_else(damaged)
    }

    fn admit(&self, _name: &str) -> Result<(), RegistryError<Nothing>> {
        let is_ours = self.reaped().load(Ordering::SeqCst) != ELSEWHERE;
        is_ours.then_some(()).ok_or(RegistryError::Other(Nothing))
    }

    fn segment(&self) -> &Segment {
        &self.0
    }

    fn join(&self, _place: usize) -> Result<(), RegistryError<Nothing>> {
        Ok(())
    }

    fn reap(&self) -> Result<Reaped, Nothing> {
        let mut reaped = Reaped::Done;
        for dead in self.members().dead() {
            if dead.standing() == Standing::Alive {
                reaped = Reaped::Pending;
            } else {
                self.reaped().fetch_add(1, Ordering::SeqCst);
                dead.forget();
            }
        }
        Ok(reaped)
    }
}

/// That is wrong.
#[derive(Debug)]
struct Nothing;

impl ErrorDetails for Nothing {
    fn code(&self) -> ErrorCode {
        ErrorCode::Foreign
    }
}

impl Cause for Nothing {
    const NOT_FOUND: ErrorCode = ErrorCode::NoGraph;
    const NOUN: &'static str = "memory";
    const DESCRIPTION: &'static str = "purpose";
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing")
    }
}

impl Error for Nothing {}

/// Not a test by itself: what the processes do that tests start, until they are killed.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let names = NameTable::at(place);
    let _member = names.attach::<Plain>("m").expect("it was created");
    assert_eq!(role, "hold");
    loop {
        thread::park();
    }
}

fn scene(test: &str) -> (Directory, NameTable) {
    let directory = Directory::new(test);
    let names = NameTable::at(directory.path());
    (directory, names)
}

/// A process that is attached.
fn another<const HAS_HEIR: bool>(directory: &Directory, member: &Membership<Memory<HAS_HEIR>>) -> Process {
    let process = Process::start(directory.path(), "hold");
    until("it is attached", || !member.is_alone());
    process
}

#[test]
fn a_draft_is_seen_by_nobody_and_gone_with_its_maker() {
    let (directory, names) = scene("draft");
    let draft = Plain::draft(&names);
    assert!(matches!(names.attach::<Plain>("m"), Err(RegistryError::NotFound { .. })));
    assert_eq!((names.list::<Plain>().expect("readable"), directory.files()), (vec![], vec![]));
    drop(draft);
    let member = names.publish("m", Plain::draft(&names)).expect("the name is free");
    assert_eq!(names.list::<Plain>().expect("readable"), ["m"]);
    drop(member);
}

#[test]
fn the_last_one_out_takes_the_name_with_it_and_no_other() {
    let (directory, names) = scene("last");
    let first = Plain::create(&names);
    let (second, ()) = names.attach::<Plain>("m").expect("it is there");
    assert_eq!((first.id().slot, second.id().slot), (0, 1));
    drop(first);
    assert_eq!(directory.files(), ["laxity-memory.m"], "one is left");
    drop(second);
    assert!(directory.files().is_empty());
}

fn a_member_that_is_killed_is_found<const HAS_HEIR: bool>(test: &str) {
    let (directory, names) = scene(test);
    let member = Memory::<HAS_HEIR>::create(&names);
    let mut process = another(&directory, &member);
    let members = member.memory().members();
    assert_eq!(members.process(1).pid, process.id());
    assert_eq!(member.memory().reaped().load(Ordering::SeqCst), 0);
    process.kill();
    // Nobody does anything here: the guardian was woken, and saw to it.
    until("its place is free", || members.holder(1) == Holder::Free);
    assert!(member.memory().reaped().load(Ordering::SeqCst) >= 1);
    assert!(member.is_alone());
    let (next, ()) = names.attach::<Memory<HAS_HEIR>>("m").expect("it is there");
    assert_eq!((next.id().slot, next.id().generation), (1, 2), "another one at the same place");
}

#[test]
fn a_member_that_is_killed_is_found_by_the_guardians_of_the_others() {
    a_member_that_is_killed_is_found::<false>("killed");
}

#[test]
fn a_member_that_is_killed_is_found_by_the_heirs_of_the_others() {
    a_member_that_is_killed_is_found::<true>("killed-heir");
}

#[test]
fn what_all_left_by_being_killed_is_collected_or_replaced_or_continued() {
    let (directory, names) = scene("left");
    let leave = || {
        let member = Plain::create(&names);
        let mut process = another(&directory, &member);
        drop(member);
        assert!(names.is_in_use::<Plain>("m").expect("whole"));
        assert_eq!(names.gc::<Plain>().expect("readable"), Vec::<String>::new(), "it is in use");
        assert!(matches!(names.publish("m", Plain::draft(&names)), Err(RegistryError::Exists { .. })));
        process.kill();
        assert!(!names.is_in_use::<Plain>("m").expect("whole"));
        assert_eq!(directory.files().len(), 1);
    };
    leave();
    assert_eq!(names.gc::<Plain>().expect("readable"), ["m"]);
    assert!(directory.files().is_empty());
    leave();
    leave();
    let (member, ()) = names.attach::<Plain>("m").expect("it is there");
    assert_eq!(member.memory().reaped().load(Ordering::SeqCst), 1, "before we became a member");
    drop(member);
    assert!(directory.files().is_empty());
}

/// The words of members that lived when the machine lost its power say that they still do.
#[test]
fn what_another_boot_left_is_in_nobodys_use_whatever_its_words_say() {
    let (directory, names) = scene("boot");
    let leave = || {
        let draft = Plain::draft(&names);
        let Identity { pid, started, namespace, boot } = Identity::current();
        let word = draft.members().word(0);
        // Where places are (64 bytes each, after 64 of others) and what is in them, the module `members` says.
        let identity = HEADER + 64 + 8;
        for (number, value) in [pid.into(), started, namespace, boot ^ 1].into_iter().enumerate() {
            draft.0.u64(identity + 8 * number).store(value, Ordering::Relaxed);
        }
        word.store(pid, Ordering::Relaxed);
        assert_eq!((draft.members().process(0).boot, draft.members().holder(0)), (process::boot() ^ 1, Holder::Alive));
        draft.0.publish().expect("the name is free");
    };
    leave();
    assert!(!names.is_in_use::<Plain>("m").expect("whole"));
    assert_eq!(names.gc::<Plain>().expect("readable"), ["m"]);
    leave();
    drop(Plain::create(&names));
    leave();
    let (member, ()) = names.attach::<Plain>("m").expect("it can be continued");
    assert_eq!(member.memory().reaped().load(Ordering::SeqCst), 1);
    drop(member);
    assert!(directory.files().is_empty());
}

#[test]
fn what_is_not_of_the_kind_is_refused_and_left_alone() {
    let (directory, names) = scene("foreign");
    std::fs::write(directory.path().join("laxity-memory.text"), "something else").expect("writable");
    let segment = |name: &str, length: usize| {
        let path = names.path::<Plain>(name).expect("a name");
        Segment::draft(&path, FORMAT, length).expect("enough memory").publish().expect("the name is free");
    };
    segment("empty", 0);
    segment("long", CONTENTS);
    assert!(matches!(names.attach::<Plain>("text"), Err(RegistryError::Segment(SegmentError::Foreign { .. }))));
    for name in ["empty", "long"] {
        let error = names.attach::<Plain>(name).map(drop).expect_err("damaged");
        assert_eq!(error.to_string(), format!("memory {name}: its memory describes none; remove it"));
    }
    assert_eq!(names.gc::<Plain>().expect("readable"), Vec::<String>::new());
    assert_eq!(directory.files().len(), 3);
    for name in ["", "a/b", "a\0b", &"x".repeat(201)] {
        assert!(matches!(names.path::<Plain>(name), Err(RegistryError::Name { .. })), "{name:?}");
    }
}

#[test]
fn who_is_not_admitted_is_refused_and_removes_only_what_nobody_uses() {
    let (directory, names) = scene("elsewhere");
    let member = Plain::create(&names);
    member.memory().reaped().store(ELSEWHERE, Ordering::SeqCst);
    assert!(matches!(names.attach::<Plain>("m"), Err(RegistryError::Other(Nothing))));
    assert!(matches!(names.open::<Plain>("m"), Err(RegistryError::Other(Nothing))));
    assert_eq!(names.gc::<Plain>().expect("readable"), Vec::<String>::new());
    assert!(matches!(names.publish("m", Plain::draft(&names)), Err(RegistryError::Exists { .. })));
    drop(member);
    let draft = Plain::draft(&names);
    draft.reaped().store(ELSEWHERE, Ordering::SeqCst);
    draft.0.publish().expect("the name is free");
    assert_eq!(names.gc::<Plain>().expect("readable"), ["m"]);
    assert!(directory.files().is_empty());
}

#[test]
fn whoever_comes_first_publishes_and_who_wants_another_is_told() {
    let (directory, names) = scene("first");
    let come = |is_it: bool| names.publish_or_attach("m", |_: &Plain| is_it, || Ok(Plain::draft(&names)));
    let (first, ()) = come(true).expect("published");
    let (second, ()) = come(true).expect("attached");
    assert!(!first.is_alone() && !second.is_alone());
    let error = come(false).map(drop).expect_err("it is another");
    assert_eq!(error.to_string(), "memory m: exists but is another memory; use one purpose in all processes");
    names.unlink::<Plain>("m").expect("it has it");
    assert!(directory.files().is_empty(), "though it is used");
    assert!(names.attach_until::<Plain>("m", Instant::ZERO).is_err());
    names.unlink::<Plain>("m").expect("nothing to do");
    assert_eq!(PathBuf::from(names.directory()), Path::new(directory.path()));
}
