//! A page of shared memory, apart from the arbitration, in which holders say that they hold: at most one at a time.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::sync::atomic::{AtomicU64, Ordering};

use laxity_sys::segment::{Format, HEADER, Segment};

const FORMAT: Format = Format { magic: *b"lxt-seen", version: 1 };
const PLACES: usize = 64;
const WORKERS: usize = 8192;

pub struct Witness(Segment);

impl Witness {
    pub fn create(place: &crate::support::Place) -> Self {
        let path = place.directory().join("witness");
        let segment = Segment::draft(&path, FORMAT, 8 * (PLACES + 2 * WORKERS)).expect("enough memory");
        segment.publish().expect("the name is free");
        Witness(segment)
    }

    pub fn open(directory: &std::path::Path) -> Self {
        Witness(Segment::open(&directory.join("witness"), FORMAT).expect("it was created"))
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        self.0.u64(HEADER + 8 * index)
    }

    fn doom_of(&self, worker: u64) -> &AtomicU64 {
        self.word(PLACES + worker as usize % WORKERS)
    }

    /// The process that came last to the `at`-th place among the processes, by its number.
    pub fn number_word(&self, at: usize) -> &AtomicU64 {
        self.word(PLACES - 1 - at)
    }

    /// That number, if one is there.
    pub fn number(&self, at: usize) -> Option<u64> {
        Some(self.number_word(at).load(Ordering::SeqCst)).filter(|&number| number != 0)
    }

    /// Gives the calling process the next number, from 1.
    pub fn come(&self, at: usize) -> u64 {
        // No worker has the number 0.
        let number = self.progress(0).fetch_add(1, Ordering::SeqCst) + 1;
        self.number_word(at).store(number, Ordering::SeqCst);
        number
    }

    /// How many times `worker` held something.
    pub fn progress(&self, worker: u64) -> &AtomicU64 {
        self.word(PLACES + WORKERS + worker as usize % WORKERS)
    }

    /// `worker` is about to be killed, and what it does not count any more.
    pub fn doom(&self, worker: u64) {
        self.doom_of(worker).store(1, Ordering::SeqCst);
    }

    fn is_doomed(&self, worker: u64) -> bool {
        self.doom_of(worker).load(Ordering::SeqCst) != 0
    }

    /// `worker`, counted from 1, holds what has the number `place`; panics if another that lives does.
    pub fn enter(&self, place: usize, worker: u64) {
        let before = self.word(place).swap(worker, Ordering::SeqCst);
        assert!(before == 0 || self.is_doomed(before), "{place}: {before} and {worker} hold it at once");
    }

    /// It is about to let go.
    pub fn leave(&self, place: usize, worker: u64) {
        let left = self.word(place).compare_exchange(worker, 0, Ordering::SeqCst, Ordering::SeqCst);
        assert!(left.is_ok() || self.is_doomed(worker), "{place}: {left:?} held it beside {worker}");
    }
}
