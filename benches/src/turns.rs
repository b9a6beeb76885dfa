//! Two threads that take turns, and the raw futex by which others are measured.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use laxity_model::Instant;
use laxity_sys::clock::now;
use laxity_sys::{futex, scheduling};

/// The CPUs of the two threads.
pub type Cpus = [usize; 2];

/// Both on one.
pub const SAME: Cpus = [0, 0];
/// Each on its own.
pub const CROSS: Cpus = [0, 1];
/// Their priority, where they may have one.
pub const PRIORITY: u8 = 50;

/// One of two threads that take turns.
pub trait Side {
    /// Says that it is the other's turn.
    fn give(&mut self);
    /// Waits for its own turn.
    fn take(&mut self);
}

/// A side whose steps are functions that return, as are those of every library and C's `syscall`.
///
/// That matters: the rows "raw futex" and "raw futex, within the loop" differ in nothing else. Neither system calls nor
/// switches do; all of Linux is slower, probably because its guard for returns ("Safe RET", on AMD's processors) leaves
/// predictions that a `ret` in user mode gets wrong. A node's waits and completions return, too, and so do requests of
/// tokens, so that only this shows what these add to a futex.
pub struct Called<S>(pub S);

impl<S: Side> Side for Called<S> {
    #[inline(never)]
    fn give(&mut self) {
        self.0.give();
    }

    #[inline(never)]
    fn take(&mut self) {
        self.0.take();
    }
}

/// Time of a trip of two threads that take turns, of which `open` makes each its side.
pub fn turns<S: Side>(cpus: Cpus, trips: usize, open: impl Fn(usize) -> S + Sync) -> f64 {
    let are_open = Barrier::new(2);
    let begin = |index: usize| {
        let side = open(index);
        are_open.wait();
        settle(cpus[index]);
        side
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut side = begin(1);
            for _ in 0..=trips {
                side.take();
                side.give();
            }
            are_open.wait();
        });
        let first = scope.spawn(|| {
            let mut side = begin(0);
            let mut turns = Vec::with_capacity(trips + 1);
            for _ in 0..=trips {
                side.give();
                side.take();
                turns.push(now());
            }
            // Neither side may use up what the other side still needs open.
            are_open.wait();
            turns
        });
        trip(&first.join().expect("no panic")[1..])
    })
}

/// A side that has a word of its own, and the other's.
pub struct Futex<'a> {
    own: &'a AtomicU32,
    other: &'a AtomicU32,
}

impl<'a> Futex<'a> {
    /// This side.
    pub fn new(words: [&'a AtomicU32; 2], side: usize) -> Self {
        words[side].store(0, Ordering::SeqCst);
        Futex { own: words[side], other: words[1 - side] }
    }
}

impl Side for Futex<'_> {
    #[inline(always)]
    fn give(&mut self) {
        self.other.store(1, Ordering::SeqCst);
        futex::wake_one(self.other);
    }

    #[inline(always)]
    fn take(&mut self) {
        while self.own.swap(0, Ordering::SeqCst) == 0 {
            futex::wait(self.own, 0, Instant::NEVER);
        }
    }
}

/// Median time of a trip in microseconds, by when the first thread's `trips + 1` turns began.
pub fn trip(turns: &[Instant]) -> f64 {
    median(turns.windows(2).map(|turns| turns[1].saturating_since(turns[0]).0 as f64 / 1000.0).collect())
}

/// Keeps the thread on a CPU, under `SCHED_FIFO` if it may.
pub fn settle(cpu: usize) {
    scheduling::pin(cpu).expect("there are as many CPUs");
    // Told at the start where it may not.
    let _ = scheduling::set_fifo(PRIORITY);
}

/// The one in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
