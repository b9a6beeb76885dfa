//! A job that was begun can be let go of and found again.

mod support;

use support::{Place, edge, ringed};

#[test]
fn a_job_is_found_again_as_it_was_until_it_is_complete() {
    let place = Place::new("begun");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 1)).expect("the name is free");
    let mut a = graph.claim("a").expect("free");
    assert!(a.job().is_none(), "it has not waited");
    a.wait().expect("there is room").messages().1.write(0, 0, b"hello").expect("it fits");
    let job = a.job().expect("it is begun");
    assert_eq!(job.index(), 0);
    job.complete();
    assert!(a.job().is_none(), "it is complete");
    assert!(a.try_wait().is_err(), "there is no room");
    assert!(a.job().is_none(), "none was begun");
    let mut b = graph.claim("b").expect("free");
    let mut job = b.wait().expect("a message");
    assert_eq!(job.input(0, 0).expect("one message"), b"hello", "finding the job again wrote nothing");
}

/// A job that a former owner began comes from a wait first: only that makes its messages ready.
#[test]
fn a_job_that_a_former_owner_had_begun_is_not_found_before_a_wait() {
    let place = Place::new("not-ours");
    let graph = place.create(&ringed(&["a", "b"], vec![edge(0, 1)], 8, 1)).expect("the name is free");
    assert_eq!(graph.claim("a").expect("free").wait().expect("there is room").index(), 0);
    let mut a = graph.claim("a").expect("it was let go of");
    assert_eq!(a.interrupted(), Some(0));
    assert!(a.job().is_none());
    assert_eq!(a.wait().expect("the same job").index(), 0);
    assert_eq!(a.job().map(|job| job.index()), Some(0));
}
