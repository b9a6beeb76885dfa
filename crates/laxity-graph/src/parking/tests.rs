//! Every interleaving of the protocol, by loom.

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::*;

/// A futex of loom's parts: Linux compares the word and queues the waiter in one step, under a lock that wakers take.
struct Futex {
    word: AtomicU32,
    /// How often it was woken.
    wakes: Mutex<u32>,
    woken: Condvar,
}

impl Futex {
    fn new() -> Self {
        Futex { word: AtomicU32::new(RUNNING), wakes: Mutex::new(0), woken: Condvar::new() }
    }
}

impl Word for Futex {
    fn load(&self) -> u32 {
        self.word.load(Ordering::Relaxed)
    }

    fn store(&self, value: u32) {
        self.word.store(value, Ordering::Relaxed);
    }

    fn exchange(&self, current: u32, new: u32) -> bool {
        self.word.compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn wait(&self, value: u32, _: Instant) -> Ended {
        let mut wakes = self.wakes.lock().expect("no panic");
        let before = *wakes;
        if self.word.load(Ordering::Relaxed) == value {
            while *wakes == before {
                wakes = self.woken.wait(wakes).expect("no panic");
            }
        }
        Ended::LookAgain
    }

    fn wake(&self) {
        *self.wakes.lock().expect("no panic") += 1;
        self.woken.notify_all();
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Every interleaving with at most this many preemptions; a lost wake-up needs two.
const PREEMPTIONS: usize = 3;

fn check(threads: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(threads);
}

/// Loom reports a deadlock if a wake-up is lost.
fn producers_wake_one_consumer(producers: usize, jobs: u64) {
    check(move || {
        let parked = Arc::new(Futex::new());
        let completed: Arc<Vec<AtomicU64>> = Arc::new((0..producers).map(|_| AtomicU64::new(0)).collect());
        let is_ready =
            |completed: &[AtomicU64], job: u64| completed.iter().all(|done| done.load(Ordering::Acquire) > job);
        let threads: Vec<_> = (0..producers)
            .map(|producer| {
                let (parked, completed) = (parked.clone(), completed.clone());
                thread::spawn(move || {
                    for job in 0..jobs {
                        completed[producer].store(job + 1, Ordering::Release);
                        published::<Futex>();
                        // Whichever job the consumer waits for: that of the last producer to arrive makes it ready.
                        wake_if(&*parked, || is_ready(&completed, job));
                    }
                })
            })
            .collect();
        for job in 0..jobs {
            wait_until(&*parked, Instant::NEVER, || is_ready(&completed, job).then_some(()));
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

#[test]
fn one_producer_never_loses_a_wake_up() {
    producers_wake_one_consumer(1, 2);
}

#[test]
fn of_two_producers_the_last_one_wakes() {
    producers_wake_one_consumer(2, 1);
}

/// A waker that died after it had claimed the wake-up, before it made it.
#[test]
fn a_rouse_repeats_what_a_dead_waker_left_undone() {
    check(|| {
        let parked = Arc::new(Futex::new());
        let done = Arc::new(AtomicU64::new(0));
        let waker = {
            let (parked, done) = (parked.clone(), done.clone());
            thread::spawn(move || {
                done.store(1, Ordering::Release);
                published::<Futex>();
                let _died_here = parked.exchange(PARKED, RUNNING);
                rouse(&*parked);
            })
        };
        wait_until(&*parked, Instant::NEVER, || (done.load(Ordering::Acquire) == 1).then_some(()));
        waker.join().expect("no panic");
    });
}
