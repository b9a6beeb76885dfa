//! Mutexes in segments: exclusive, and inherited from holders that end.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::thread;

use laxity_sys::mutex::{Attempt, Mutex, SIZE};
use laxity_sys::segment::{Format, HEADER, Segment};

const FORMAT: Format = Format { magic: *b"lxt-mutx", version: 1 };

/// A mutex and a counter, in memory without a name.
fn segment() -> Segment {
    let segment = Segment::draft(Path::new("/dev/shm/unnamed"), FORMAT, 2 * SIZE).expect("enough memory");
    // SAFETY: a fresh draft, whose first bytes after the header are the mutex's.
    unsafe { segment.make_mutex(HEADER).expect("Linux offers robust mutexes") };
    segment
}

fn mutex(segment: &Segment) -> Mutex<'_> {
    // SAFETY: made in `segment`.
    unsafe { segment.mutex(HEADER) }
}

#[test]
fn one_thread_at_a_time_is_inside() {
    let segment = segment();
    let counter = segment.u64(HEADER + SIZE);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let _guard = mutex(&segment).lock().expect("not ours yet");
                    let value = counter.load(Ordering::Relaxed);
                    counter.store(value + 1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(counter.load(Ordering::Relaxed), 800);
}

#[test]
fn its_holder_is_refused_and_others_find_it_busy() {
    let segment = segment();
    let guard = mutex(&segment).lock().expect("free");
    assert!(!guard.is_inherited);
    assert!(mutex(&segment).lock().is_err(), "it would wait for itself");
    thread::scope(|scope| {
        let other = scope.spawn(|| matches!(mutex(&segment).try_lock(), Ok(Attempt::Busy)));
        assert!(other.join().expect("no panic"));
        assert!(scope.spawn(|| mutex(&segment).unlock().is_err()).join().expect("no panic"), "not theirs");
    });
    guard.keep();
    mutex(&segment).unlock().expect("ours");
}

#[test]
fn it_is_inherited_from_a_thread_that_ended_and_from_the_next_one_that_did() {
    let segment = segment();
    for is_inherited in [false, true, true] {
        thread::scope(|scope| {
            let inherited = scope.spawn(|| {
                let guard = mutex(&segment).lock().expect("its holder ended");
                let is_inherited = guard.is_inherited;
                guard.keep();
                is_inherited
            });
            assert_eq!(inherited.join().expect("no panic"), is_inherited);
        });
    }
    assert!(matches!(mutex(&segment).try_lock(), Ok(Attempt::Taken(guard)) if guard.is_inherited));
    assert!(matches!(mutex(&segment).try_lock(), Ok(Attempt::Taken(guard)) if !guard.is_inherited), "repaired");
}
