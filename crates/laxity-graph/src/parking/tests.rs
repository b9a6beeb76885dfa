//! Every interleaving of the protocol, by loom. Fences stand for sequentially consistent accesses here, as loom
//! models such loads and stores as weaker than they are.

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
                        assert!(!wake_if(&*parked, || is_ready(&completed, job)), "no owner polls");
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

/// Two producers and a consumer that polls, first armed and then, when it was told, armed again.
#[test]
fn of_two_producers_the_last_one_rings() {
    check(|| {
        let parked = Arc::new(Futex::new());
        let bell = Arc::new((Mutex::new(false), Condvar::new()));
        let done = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let is_ready = |done: &[AtomicU64]| done.iter().all(|done| done.load(Ordering::Acquire) == 1);
        let threads: Vec<_> = (0..2)
            .map(|producer| {
                let (parked, bell, done) = (parked.clone(), bell.clone(), done.clone());
                thread::spawn(move || {
                    done[producer].store(1, Ordering::Release);
                    published::<Futex>();
                    if wake_if(&*parked, || is_ready(&*done)) {
                        *bell.0.lock().expect("no panic") = true;
                        bell.1.notify_all();
                    }
                })
            })
            .collect();
        // Loom reports a deadlock if it is not rung.
        while arm(&*parked, || is_ready(&*done).then_some(())).is_none() {
            let mut is_rung = bell.0.lock().expect("no panic");
            while !*is_rung {
                is_rung = bell.1.wait(is_rung).expect("no panic");
            }
            *is_rung = false;
        }
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}
