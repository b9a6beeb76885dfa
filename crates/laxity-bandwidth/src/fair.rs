//! The Throttle Fair Scheduler in user space (paper 004, section IV-C): threads that were throttled get less of the CPU.
//!
//! Linux's fair class gives each thread time by its niceness. This thread looks every 50 ms at how long each of the
//! regulated threads ran, adds the punishment times what the CPU lost by throttling because of it (equation 2), and makes
//! those nicer that had more than the others. [`Feedback`] decides; the rest asks Linux.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_model::Nanos;
use laxity_sys::fairness::{self, Usage};
use laxity_sys::scheduling;

use crate::error::BandwidthError;
use crate::feedback::{Feedback, Sample};
use crate::members::Members;
use crate::regulator::lock;

/// How often niceness is set.
const INTERVAL: Duration = Duration::from_millis(50);
/// Above what it regulates and below the regulators, so that it decides in time.
const PRIORITY: u8 = 40;

/// What the CPUs lost by throttling because of each thread.
#[derive(Debug, Default)]
pub(crate) struct Lost(Mutex<BTreeMap<u32, Nanos>>);

impl Lost {
    /// A CPU was throttled for `span` because of `thread`.
    pub fn add(&self, thread: u32, span: Nanos) {
        let mut lost = lock(&self.0);
        let sum = lost.entry(thread).or_default();
        *sum = Nanos(sum.0 + span.0);
    }

    /// What was lost because of `thread` until now.
    fn of(&self, thread: u32) -> Nanos {
        lock(&self.0).get(&thread).copied().unwrap_or_default()
    }
}

/// The thread. Niceness is as before when it ends.
#[derive(Debug)]
pub(crate) struct FairThread {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FairThread {
    /// For the threads of `members`, below regulators of `priority`.
    pub fn start(
        members: Members,
        lost: Arc<Lost>,
        punishment: f64,
        priority: u8,
    ) -> Result<FairThread, BandwidthError> {
        fairness::usage(scheduling::current_thread()).map_err(|error| BandwidthError::NoTimes { error })?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        let builder = thread::Builder::new().name("laxity-fair".to_owned());
        let thread = scheduling::spawn(builder, move || {
            // Without the priority it decides when the regulated threads let it.
            let _ = scheduling::set_fifo(PRIORITY.min(priority));
            let mut fair = Fair { members, lost, feedback: Feedback::new(punishment), before: BTreeMap::new() };
            while !over.load(Ordering::SeqCst) {
                thread::park_timeout(INTERVAL);
                fair.adjust();
            }
            fair.restore();
        })
        .map_err(|error| BandwidthError::Start { what: "the thread for fairness".to_owned(), error })?;
        Ok(FairThread { is_over, thread: Some(thread) })
    }
}

impl Drop for FairThread {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

struct Fair {
    members: Members,
    lost: Arc<Lost>,
    feedback: Feedback,
    /// The niceness of each thread when it was first seen.
    before: BTreeMap<u32, i32>,
}

impl Fair {
    fn adjust(&mut self) {
        let samples: Vec<Sample> = self
            .members
            .threads()
            .into_iter()
            .filter_map(|of| {
                let Usage { ran, waited } = fairness::usage(of.thread).ok()?;
                let lost = self.lost.of(of.thread);
                Some(Sample { of, ran, waited, lost })
            })
            .collect();
        for (thread, nicer) in self.feedback.step(&samples) {
            let Ok(now) = fairness::niceness(thread) else { continue };
            let own = *self.before.entry(thread).or_insert(now);
            let wanted = (own + nicer).clamp(-20, 19);
            if wanted != now {
                // Refused for lack of permission: what can be had is had.
                let _ = fairness::set_niceness(thread, wanted);
            }
        }
    }

    fn restore(&self) {
        for (&thread, &own) in &self.before {
            let _ = fairness::set_niceness(thread, own);
        }
    }
}
