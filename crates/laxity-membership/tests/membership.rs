//! The rules of membership.
//!
//! Other processes are this test program, started again for the test `child`.

mod support;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;

use laxity_membership::{CONTENTS, Kind, Membership, NameTable, RegistryError, Standing};
use laxity_model::Instant;
use laxity_sys::robust::Holder;
use laxity_sys::segment::{HEADER, Segment, SegmentError};
use laxity_testing::{Directory, Process, role, until};
use support::{ELSEWHERE, FORMAT, Memory, Plain, scene};

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

/// A process that is attached.
fn another<const HAS_REAPER: bool>(directory: &Directory, member: &Membership<Memory<HAS_REAPER>>) -> Process {
    let process = Process::start(directory.path(), "hold");
    until("it is attached", || !member.is_alone());
    process
}

#[test]
fn a_draft_is_not_seen_and_goes_with_its_maker() {
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

fn a_member_that_is_killed_is_found<const HAS_REAPER: bool>(test: &str) {
    let (directory, names) = scene(test);
    let member = Memory::<HAS_REAPER>::create(&names);
    let mut process = another(&directory, &member);
    let members = member.memory().members();
    assert_eq!(members.pid(1), process.id());
    assert_eq!(member.memory().reaped().load(Ordering::SeqCst), 0);
    process.kill();
    // This thread only looks: the guardian was woken and reaped it.
    until("its place is free", || members.holder(1) == Holder::Free);
    assert!(member.memory().reaped().load(Ordering::SeqCst) >= 1);
    assert!(member.is_alone());
    let (next, ()) = names.attach::<Memory<HAS_REAPER>>("m").expect("it is there");
    assert_eq!((next.id().slot, next.id().generation), (1, 2), "another one in the same slot");
}

#[test]
fn a_member_that_is_killed_is_found_by_the_guardians_of_the_others() {
    a_member_that_is_killed_is_found::<false>("killed");
}

#[test]
fn a_member_that_is_killed_is_found_by_the_reapers_of_the_others() {
    a_member_that_is_killed_is_found::<true>("killed-reaper");
}

/// Threads of a killed process do not end at once: one that goes on for a moment after its guardian must not take its own
/// process for one that has ended, and give away what another of its threads still has.
#[test]
fn a_process_whose_guardian_has_ended_does_not_take_itself_for_ended() {
    let (_directory, names) = scene("itself");
    let member = Plain::create(&names);
    let memory = std::sync::Arc::new(names.open::<Plain>("m").expect("it is there"));
    let dying = Membership::simulated(&memory).expect("Linux lets it").expect("there is a slot");
    let (members, slot) = (memory.members(), dying.id().slot);
    members.word(slot).fetch_or(0x4000_0000, Ordering::SeqCst);
    assert_eq!(member.memory().members().standing(slot), Standing::Ending, "as another process sees it");
    assert_eq!(members.standing(slot), Standing::Ending, "as it sees itself");
    members.simulate_end(slot);
    assert_eq!(members.standing(slot), Standing::Ended);
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
fn what_another_boot_left_is_not_in_use_whatever_its_words_say() {
    let (directory, names) = scene("boot");
    let leave = || {
        let draft = Plain::draft(&names);
        let word = draft.members().word(0);
        // Where slots are (64 bytes each, after 64 of others) and what is in them, the module `members` says.
        let boot = HEADER + 64 + 16;
        draft.0.u64(boot).store(draft.0.boot() ^ 1, Ordering::Relaxed);
        word.store(std::process::id(), Ordering::Relaxed);
        assert_eq!((draft.members().holder(0), draft.members().standing(0)), (Holder::Alive, Standing::Ended));
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
fn a_process_that_is_not_admitted_is_refused_and_removes_only_leftovers() {
    let (directory, names) = scene("elsewhere");
    let member = Plain::create(&names);
    member.memory().reaped().store(ELSEWHERE, Ordering::SeqCst);
    assert!(matches!(names.attach::<Plain>("m"), Err(RegistryError::Other(_))));
    assert!(matches!(names.open::<Plain>("m"), Err(RegistryError::Other(_))));
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
fn the_first_process_publishes_and_one_that_wants_another_memory_is_told() {
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
