//! Hogs of known traffic, and regulators that this machine may not permit.

#![allow(dead_code, reason = "each test program uses a part")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use laxity_bandwidth::{BandwidthError, Options, Regulator};
use laxity_gpu::{Arbitration, Config, Registry};
use laxity_measure::memory::{Pattern, Stream};
use laxity_sys::scheduling;

/// Arbitrations in a directory of shared memory that goes with it.
pub type Place = laxity_testing::TestRegistry<Registry>;

/// Tests that regulate the same CPU take turns.
pub fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes.
pub const MB: u64 = 1_000_000;

pub fn create(place: &Place) -> Arbitration {
    place.create("g", &Config::new(2, 1)).expect("the name is free")
}

/// The last of the CPUs that this process may use.
pub fn last_cpu() -> usize {
    *scheduling::usable_cpus().expect("Linux says which").last().expect("it runs on one")
}

/// A thread that writes memory, and counts what it does.
pub struct Hog {
    pub bytes: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    pub fn start(arbitration: &Arbitration, cpu: usize) -> Hog {
        let (bytes, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (own, over, arbitration) = (bytes.clone(), is_over.clone(), arbitration.clone());
        let thread = thread::spawn(move || {
            scheduling::pin(cpu).expect("this process may use it");
            let traffic = arbitration.traffic(cpu).expect("it is counted");
            let mut stream = Stream::new(Pattern::Write, 8 << 20);
            while !over.load(Ordering::SeqCst) {
                let bytes = stream.step();
                own.fetch_add(bytes, Ordering::SeqCst);
                traffic.count(bytes);
            }
        });
        let hog = Hog { bytes, is_over, thread: Some(thread) };
        laxity_testing::until("the hog streams", || hog.count() > 0);
        hog
    }

    pub fn count(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the hog did not panic");
        }
    }
}

/// A regulator; nothing, and the test is noted as skipped, where Linux does not permit one.
///
/// The self-test compares what a hog has unhindered with what it has regulated. If the host takes or gives time between the
/// two, as hosts of virtual machines do, it refuses a CPU that can be regulated, so it is done once more, and no more.
#[track_caller]
pub fn regulator(arbitration: &Arbitration, options: Options) -> Option<Regulator> {
    let start = || Regulator::start(arbitration, options.clone());
    let started = match start() {
        Err(BandwidthError::SelfTest { .. }) => start(),
        started => started,
    };
    match started {
        Ok(regulator) => Some(regulator),
        Err(error @ (BandwidthError::RealTime { .. } | BandwidthError::NoGroups | BandwidthError::Group { .. })) => {
            laxity_testing::skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}
