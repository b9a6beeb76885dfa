//! When frames were released, and when they were done.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_model::{Instant, Nanos};
use laxity_sys::futex;

/// When frames were released, and when they were done, as far as this is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTimes {
    /// What the graph was spawned with.
    pub period: Nanos,
    /// When frame 0 was due to be released.
    pub first_release: Instant,
    /// Frames that were begun: the input callback was done with them.
    pub begun: u64,
    /// Frames that were completed.
    pub completed: u64,
    /// The last of the completed ones, the oldest first.
    pub frames: Vec<Frame>,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number, from 0.
    pub index: u64,
    /// When it was due: by the timer, not when a thread came to it.
    pub release: Instant,
    /// When the output callback was done with it.
    pub completion: Instant,
}

impl Frame {
    /// From the release to the completion.
    pub fn latency(&self) -> Nanos {
        self.completion.saturating_since(self.release)
    }
}

impl FrameTimes {
    /// From each completion to the next (paper 003, section 5.5.3.1).
    pub fn completion_delays(&self) -> Vec<Nanos> {
        let pairs = self.frames.windows(2);
        pairs.map(|pair| pair[1].completion.saturating_since(pair[0].completion)).collect()
    }

    /// The frames that there should be within `span` of the first release.
    pub fn expected(&self, span: Nanos) -> u64 {
        span.0.div_ceil(self.period.0)
    }

    /// The frames that there should be within `span`, less those that were completed in it (paper 003, section 5.5.3.1).
    /// Counts on the frames that are remembered.
    pub fn dropped(&self, span: Nanos) -> u64 {
        let end = self.first_release.saturating_add(span);
        let late = self.frames.iter().filter(|frame| frame.completion > end).count() as u64;
        self.expected(span).saturating_sub(self.completed - late)
    }
}

/// The log of frames.
#[derive(Debug)]
pub(crate) struct Frames {
    period: Nanos,
    first_release: AtomicU64,
    begun: AtomicU64,
    completed: AtomicU64,
    /// When frame j was done, at j modulo their number.
    completions: Box<[AtomicU64]>,
    /// Changes with each completion, and at the end.
    news: AtomicU32,
    /// Threads that have not ended.
    alive: AtomicU32,
}

/// The most frames that are remembered: nine hours of 30 a second, in 8 MiB.
const REMEMBERED_MAX: u64 = 1 << 20;

impl Frames {
    /// Of a graph of so many threads and, if it is known, frames.
    pub fn new(period: Nanos, threads: usize, frames: Option<u64>) -> Frames {
        let remembered = frames.unwrap_or(REMEMBERED_MAX).clamp(1, REMEMBERED_MAX);
        Frames {
            period,
            first_release: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            completions: (0..remembered).map(|_| AtomicU64::new(0)).collect(),
            news: AtomicU32::new(0),
            alive: AtomicU32::new(threads as u32),
        }
    }

    /// Frame 0 is due then.
    pub fn start(&self, first_release: Instant) {
        self.first_release.store(first_release.0, Ordering::SeqCst);
    }

    /// When a frame is due.
    pub fn release(&self, frame: u64) -> Instant {
        let span = Nanos(self.period.0.saturating_mul(frame));
        Instant(self.first_release.load(Ordering::SeqCst)).saturating_add(span)
    }

    /// The input callback is done with one more frame.
    pub fn begin(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
    }

    /// The output callback was done with the next frame at `completion`. Called by one thread.
    pub fn complete(&self, completion: Instant) {
        let frame = self.completed.load(Ordering::SeqCst);
        self.place(frame).store(completion.0, Ordering::SeqCst);
        self.completed.store(frame + 1, Ordering::SeqCst);
        self.tell();
    }

    /// One more thread has ended.
    pub fn leave(&self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
        self.tell();
    }

    /// Waits until so many frames are completed, or all threads have ended, or `deadline`. Answers with how many are.
    pub fn wait_for(&self, frames: u64, deadline: Instant) -> u64 {
        loop {
            let news = self.news.load(Ordering::SeqCst);
            let completed = self.completed.load(Ordering::SeqCst);
            let is_over = completed >= frames || self.alive.load(Ordering::SeqCst) == 0;
            if is_over || futex::wait(&self.news, news, deadline) == futex::Ended::TimedOut {
                return completed;
            }
        }
    }

    /// Whether all threads have ended.
    pub fn have_ended(&self) -> bool {
        self.alive.load(Ordering::SeqCst) == 0
    }

    /// Frames that were begun, and those that are completed.
    pub fn counts(&self) -> (u64, u64) {
        // In this order none is completed that was not begun.
        let completed = self.completed.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst), completed)
    }

    /// The frames so far.
    pub fn times(&self) -> FrameTimes {
        let completed = self.completed.load(Ordering::SeqCst);
        let remembered = self.completions.len() as u64;
        let frame = |index: u64| Frame {
            index,
            release: self.release(index),
            completion: Instant(self.place(index).load(Ordering::SeqCst)),
        };
        let mut frames: Vec<Frame> = (completed.saturating_sub(remembered)..completed).map(frame).collect();
        // The oldest may have been overwritten meanwhile, also by the one that is being written.
        let meanwhile = self.completed.load(Ordering::SeqCst) + u64::from(!self.have_ended());
        let oldest = meanwhile.saturating_sub(remembered);
        frames.retain(|frame| frame.index >= oldest);
        let (period, first_release, (begun, _)) = (self.period, self.release(0), self.counts());
        FrameTimes { period, first_release, begun, completed, frames }
    }

    fn place(&self, frame: u64) -> &AtomicU64 {
        &self.completions[(frame % self.completions.len() as u64) as usize]
    }

    fn tell(&self) {
        self.news.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.news);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(remembered: u64, completions: &[u64]) -> FrameTimes {
        let frames = Frames::new(Nanos(10), 1, Some(remembered));
        frames.start(Instant(100));
        for &completion in completions {
            frames.begin();
            frames.complete(Instant(completion));
        }
        frames.leave();
        frames.times()
    }

    #[test]
    fn delays_are_between_completions_and_latencies_from_releases() {
        let times = run(4, &[105, 125, 126]);
        assert_eq!(times.completion_delays(), [Nanos(20), Nanos(1)]);
        assert_eq!(times.frames.iter().map(Frame::latency).collect::<Vec<_>>(), [5, 15, 6].map(Nanos));
    }

    #[test]
    fn what_is_not_completed_in_the_time_is_dropped() {
        let times = run(4, &[105, 125, 126]);
        assert_eq!(times.expected(Nanos(30)), 3);
        assert_eq!(times.dropped(Nanos(30)), 0);
        assert_eq!(times.dropped(Nanos(25)), 1, "the last frame was late");
        assert_eq!(times.dropped(Nanos(50)), 2);
    }

    #[test]
    fn the_last_frames_are_remembered() {
        let times = run(2, &[105, 115, 125]);
        assert_eq!(times.completed, 3);
        assert_eq!(times.frames.iter().map(|frame| frame.index).collect::<Vec<_>>(), [1, 2]);
    }
}
