//! What live tests share.

#![allow(dead_code, reason = "each test program uses a part")]

use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laxity_model::{Instant, Nanos};
use laxity_sched::{BeginError, Config, Job, Parameters, Registry, Rule, System, Task};
use laxity_sys::clock::{now, thread_cpu_time};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{current_thread, keep_on};
use laxity_testing::{Alone, TestRegistry, skip};

/// The CPUs that this process may use.
pub fn usable() -> Vec<u16> {
    let mask = CpuMask::of_thread(current_thread()).expect("it is this one");
    mask.cpus().map(|cpu| cpu as u16).collect()
}

/// A system on one CPU, in a directory of its own; nothing if this user may not have real-time threads.
pub fn one_cpu(test: &str) -> Option<(Place, System)> {
    on(test, Config::new(Rule::Edf, vec![vec![*usable().last().expect("it runs somewhere")]]))
}

/// Where a test's system has its name. Systems of two tests would starve each other on one CPU, so that one test has a
/// system at a time, of all test programs on this machine.
pub struct Place {
    registry: TestRegistry<Registry>,
    _alone: Alone,
}

impl Deref for Place {
    type Target = TestRegistry<Registry>;

    fn deref(&self) -> &TestRegistry<Registry> {
        &self.registry
    }
}

impl AsRef<Path> for Place {
    fn as_ref(&self) -> &Path {
        self.registry.as_ref()
    }
}

/// A system in a directory of its own; nothing if this user may not have real-time threads.
pub fn on(test: &str, config: Config) -> Option<(Place, System)> {
    let alone = Alone::with_the_scheduler();
    let registry = Place { registry: TestRegistry::new(test), _alone: alone };
    let system = registry.create("s", &config).expect("a new name");
    match system.begin(Parameters::periodic("permission", Nanos::from_secs(1))) {
        Ok(task) => drop(task),
        Err(error @ BeginError::Refused { .. }) => {
            skip(format_args!("{error}"));
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some((registry, system))
}

/// The thread becomes a task of that name and relative deadline.
pub fn task(system: &System, name: &str, deadline_ms: u64) -> Task {
    system.begin(Parameters::periodic(name, Nanos::from_millis(deadline_ms))).expect("there is room")
}

/// Releases job `index` now, due after the task's relative deadline.
pub fn release(task: &Task, index: u64) -> Job {
    let release = now();
    let job = Job { index, release, deadline: release.saturating_add(task.parameters().deadline) };
    task.release(job).expect("no job is pending");
    job
}

/// Executes for that long.
pub fn execute(span: Nanos) {
    let end = thread_cpu_time() + span;
    while thread_cpu_time() < end {
        std::hint::spin_loop();
    }
}

/// Keeps this thread off the CPU that [`one_cpu`] takes, whose jobs it would not see while they are there; no if there is no other.
pub fn keep_off_its_cpu() -> bool {
    let mut others = usable();
    others.pop();
    let others: Vec<usize> = others.into_iter().map(usize::from).collect();
    !others.is_empty() && keep_on(&others).is_ok()
}

/// Tells threads to stop when it goes, however that is: a scope waits for them, also at the end of a panic.
pub struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Counts until told to stop.
pub fn count_until(stop: &AtomicBool, counter: &AtomicU64) {
    let end = thread_cpu_time() + Nanos::from_secs(20);
    while !stop.load(Ordering::Relaxed) {
        if counter.fetch_add(1, Ordering::Relaxed).is_multiple_of(1 << 16) {
            assert!(thread_cpu_time() < end, "never told to stop");
        }
    }
}

/// Waits without sleeping: the thread keeps its CPU.
pub fn spin_until(is_so: impl Fn() -> bool) {
    let end: Instant = laxity_testing::soon();
    while !is_so() {
        assert!(now() < end, "waited too long");
        std::hint::spin_loop();
    }
}
