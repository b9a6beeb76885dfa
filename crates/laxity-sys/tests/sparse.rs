//! Memory that is taken page by page.

use std::os::fd::AsFd;

use laxity_sys::sparse::{Sparse, page};

#[test]
fn what_is_not_reserved_is_not_there_and_what_is_released_is_given_back() {
    let sparse = Sparse::new("test", 1 << 40).expect("a terabyte of nothing costs nothing");
    let reserved = || sparse.reserved().expect("Linux knows");
    assert_eq!(reserved(), 0);
    let range = 5 * page()..9 * page();
    sparse.reserve(range.clone()).expect("there is as much");
    assert_eq!(reserved(), 4 * page());
    sparse.release(6 * page()..7 * page()).expect("it is there");
    assert_eq!(reserved(), 3 * page());
    sparse.release(range).expect("what is not there is no matter");
    assert_eq!(reserved(), 0);
}

#[test]
fn handles_and_windows_show_the_same_bytes_and_what_comes_back_is_zero() {
    let ours = Sparse::new("test", 3).expect("a descriptor");
    let theirs = Sparse::adopt(ours.as_fd().try_clone_to_owned().expect("a descriptor")).expect("it is one");
    assert_eq!((ours.len(), theirs.len()), (page(), page()));
    ours.reserve(0..page()).expect("there is a page");
    let windows = [&ours, &theirs].map(|sparse| sparse.map(0..page()).expect("there is room"));
    // SAFETY: nothing else uses them now.
    unsafe { windows[0].bytes_mut(1, 2) }.copy_from_slice(&[7, 8]);
    // SAFETY: no thread writes them now.
    assert_eq!(unsafe { windows[1].bytes(0, 4) }, [0, 7, 8, 0]);
    drop(windows);
    ours.release(0..page()).expect("it is there");
    ours.reserve(0..page()).expect("there is a page");
    let again = theirs.map(0..page()).expect("there is room");
    // SAFETY: no thread writes them now.
    assert!(unsafe { again.bytes(0, page() as usize) }.iter().all(|byte| *byte == 0));
}

#[test]
fn memory_that_others_have_mapped_cannot_be_cut_off() {
    let sparse = Sparse::new("test", page()).expect("a descriptor");
    let file = std::fs::File::from(sparse.as_fd().try_clone_to_owned().expect("a descriptor"));
    file.set_len(0).expect_err("it is sealed");
    let other = std::fs::File::open("/dev/null").expect("it is there");
    Sparse::adopt(other.into()).expect_err("not sealed");
}
