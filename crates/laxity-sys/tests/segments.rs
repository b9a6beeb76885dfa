//! Segments: whole or not there, found by exact name, and gone when their name is taken away.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use laxity_sys::segment::{Format, HEADER, Segment, SegmentError};

const FORMAT: Format = Format { magic: *b"lxt-test", version: 3 };

/// A directory of its own in shared memory, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = PathBuf::from(format!("/dev/shm/laxity-test-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("/dev/shm is writable");
        Directory(path)
    }

    fn entries(&self) -> usize {
        fs::read_dir(&self.0).expect("it exists").count()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn named(path: &Path) -> Segment {
    let segment = Segment::draft(path, FORMAT, 64).expect("enough memory");
    segment.publish().expect("the name is free");
    segment
}

#[test]
fn what_one_mapping_stores_another_loads() {
    let directory = Directory::new("shared");
    let path = directory.0.join("a");
    let one = Segment::draft(&path, FORMAT, 4096).expect("enough memory");
    one.store_bytes(HEADER, b"described once");
    one.publish().expect("the name is free");
    let other = Segment::open(&path, FORMAT).expect("it is there");
    assert_eq!(other.load_bytes(HEADER..HEADER + 14), b"described once");
    one.u64(HEADER + 64).store(42, Ordering::SeqCst);
    assert_eq!(other.u64(HEADER + 64).load(Ordering::SeqCst), 42);
    // SAFETY: this test is the only user.
    unsafe { one.bytes_mut(HEADER + 128, 3).copy_from_slice(b"abc") };
    // SAFETY: as above.
    assert_eq!(unsafe { other.bytes(HEADER + 128, 3) }, b"abc");
}

#[test]
fn a_draft_has_no_name_and_leaves_nothing() {
    let directory = Directory::new("draft");
    let path = directory.0.join("a");
    let draft = Segment::draft(&path, FORMAT, 4096).expect("enough memory");
    assert!(matches!(Segment::open(&path, FORMAT), Err(SegmentError::NotFound { .. })));
    assert_eq!(directory.entries(), 0, "a creator that dies now leaves nothing");
    drop(draft);
    assert_eq!(directory.entries(), 0);
}

#[test]
fn a_name_is_given_once() {
    let directory = Directory::new("once");
    let path = directory.0.join("a");
    let first = named(&path);
    first.u32(HEADER).store(7, Ordering::SeqCst);
    let second = Segment::draft(&path, FORMAT, 64).expect("enough memory");
    assert!(matches!(second.publish(), Err(SegmentError::Exists { .. })));
    let found = Segment::open(&path, FORMAT).expect("the first one");
    assert_eq!(found.u32(HEADER).load(Ordering::SeqCst), 7);
}

#[test]
fn a_process_that_opened_too_late_can_tell() {
    let directory = Directory::new("late");
    let path = directory.0.join("a");
    let first = named(&path);
    let late = Segment::open(&path, FORMAT).expect("still there");
    first.lock().expect("a lock").unlink().expect("it has its name");
    assert!(!late.lock().expect("a lock").is_named());
    let second = named(&path);
    late.lock().expect("a lock").unlink().expect("nothing to do");
    assert!(second.lock().expect("a lock").is_named(), "another segment's name is not ours to remove");
}

#[test]
fn other_files_are_refused() {
    let directory = Directory::new("foreign");
    let path = directory.0.join("a");
    let open = |format| Segment::open(&path, format).expect_err("not a segment of ours");
    for contents in [&b""[..], b"short", &[0; 4096]] {
        fs::write(&path, contents).expect("writable");
        assert!(matches!(open(FORMAT), SegmentError::Foreign { .. }));
    }
    fs::remove_file(&path).expect("it is there");
    let segment = named(&path);
    assert!(matches!(open(Format { version: 4, ..FORMAT }), SegmentError::Version { found: 3, expected: 4, .. }));
    assert!(matches!(open(Format { magic: *b"lxt-tesu", ..FORMAT }), SegmentError::Foreign { .. }));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).expect("ours");
    assert!(matches!(open(FORMAT), SegmentError::Foreign { reason: "other users may write to it", .. }));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("ours");
    fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(100)).expect("writable");
    assert!(matches!(open(FORMAT), SegmentError::Foreign { .. }));
    drop(segment);
}

/// Without a reservation, the first write beyond what is left would end in SIGBUS.
#[test]
fn too_little_memory_is_an_error_of_the_creator() {
    let directory = Directory::new("memory");
    for length in [1 << 50, usize::MAX - 10, usize::MAX] {
        let error = Segment::draft(&directory.0.join("a"), FORMAT, length).expect_err("a petabyte is too much");
        assert!(matches!(error, SegmentError::Memory { .. }), "{error}");
    }
}

#[test]
#[should_panic(expected = "beyond the 128 bytes")]
fn a_word_beyond_the_end_is_not_given_out() {
    let directory = Directory::new("beyond");
    let draft = Segment::draft(&directory.0.join("a"), FORMAT, 64).expect("enough memory");
    draft.u64(124 - 4);
    draft.u64(128);
}
