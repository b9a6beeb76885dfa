//! What is measured, by name.

use std::fmt;

use laxity_model::Nanos;

/// A quantity that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// Looking at the clock, which every other sample includes once.
    Clock,
    /// From when a timer is due until the thread that sleeps until then runs, its CPU being idle.
    TimerLatencyIdle,
    /// The same, its CPU being taken from a thread of lower priority.
    TimerLatencyBusy,
    /// `sched_yield` with no other thread to yield to.
    Yield,
    /// `sched_yield` until another thread of the same CPU runs.
    YieldSwitch,
    /// From before a futex is woken until its waiter runs on the same CPU.
    WakeupSame,
    /// The same across CPUs, the waiter's being idle.
    WakeupCross,
    /// The same across CPUs, the waiter's being taken from a thread of lower priority.
    WakeupCrossBusy,
    /// How long a thread of high priority is interrupted when it is: ticks, and whatever else there is.
    Interruption,
    /// Arming a timer.
    TimerArm,
    /// Taking and letting go of a lock that no other thread wants.
    LockUncontended,
    /// From before a lock is let go of until its waiter holds it, on another CPU if there is one.
    LockHandover,
    /// Copying so many bytes of memory.
    Copy(Bytes),
    /// What a working set takes longer to go through after others used the caches of the CPU.
    CachePreemption(Bytes),
    /// What a working set takes longer to go through after another CPU wrote it.
    CacheMigration(Bytes),
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Probe {
    /// All that can be measured with so many CPUs, in the order of measuring. Cache-related delays are measured for
    /// `working_set` and for others, the smaller ones first.
    pub fn all(cpus: usize, working_set: u64) -> Vec<Probe> {
        let mut probes = vec![
            Probe::Clock,
            Probe::TimerLatencyIdle,
            Probe::TimerLatencyBusy,
            Probe::Yield,
            Probe::YieldSwitch,
            Probe::WakeupSame,
            Probe::WakeupCross,
            Probe::WakeupCrossBusy,
            Probe::Interruption,
            Probe::TimerArm,
            Probe::LockUncontended,
            Probe::LockHandover,
        ];
        probes.extend([64 << 10, 1 << 20, 16 << 20].map(|bytes| Probe::Copy(Bytes(bytes))));
        let mut sets = vec![16 << 10, 64 << 10, 256 << 10, 1 << 20, working_set];
        sets.sort_unstable();
        sets.dedup();
        probes.extend(sets.iter().map(|&bytes| Probe::CachePreemption(Bytes(bytes))));
        probes.extend(sets.iter().map(|&bytes| Probe::CacheMigration(Bytes(bytes))));
        probes.retain(|probe| cpus > 1 || !probe.takes_two());
        probes
    }

    /// Whether it takes two CPUs.
    pub fn takes_two(self) -> bool {
        matches!(self, Probe::WakeupCross | Probe::WakeupCrossBusy | Probe::CacheMigration(_))
    }

    /// For how long it is measured in each round.
    pub(crate) fn slice(self) -> Nanos {
        Nanos::from_millis(match self {
            // Ticks come every few milliseconds.
            Probe::Interruption => 40,
            Probe::Clock | Probe::Yield | Probe::TimerArm | Probe::LockUncontended => 5,
            _ => 15,
        })
    }
}

impl fmt::Display for Bytes {
    /// As names need it: `64KiB`, `1MiB`, `100B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => write!(f, "{}MiB", bytes >> 20),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => write!(f, "{}KiB", bytes >> 10),
            bytes => write!(f, "{bytes}B"),
        }
    }
}

impl fmt::Display for Probe {
    /// Its name in files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Probe::Clock => f.write_str("clock"),
            Probe::TimerLatencyIdle => f.write_str("timer_latency_idle"),
            Probe::TimerLatencyBusy => f.write_str("timer_latency_busy"),
            Probe::Yield => f.write_str("yield"),
            Probe::YieldSwitch => f.write_str("yield_switch"),
            Probe::WakeupSame => f.write_str("wakeup_same_cpu"),
            Probe::WakeupCross => f.write_str("wakeup_cross_cpu"),
            Probe::WakeupCrossBusy => f.write_str("wakeup_cross_cpu_busy"),
            Probe::Interruption => f.write_str("interruption"),
            Probe::TimerArm => f.write_str("timer_arm"),
            Probe::LockUncontended => f.write_str("lock_uncontended"),
            Probe::LockHandover => f.write_str("lock_handover"),
            Probe::Copy(bytes) => write!(f, "copy_{bytes}"),
            Probe::CachePreemption(bytes) => write!(f, "cache_preemption_{bytes}"),
            Probe::CacheMigration(bytes) => write!(f, "cache_migration_{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_measures_what_takes_one_and_every_name_is_there_once() {
        let one = Probe::all(1, 64 << 10);
        assert!(one.iter().all(|probe| !probe.takes_two()));
        let two = Probe::all(2, 100_000);
        assert!(two.contains(&Probe::CacheMigration(Bytes(100_000))) && two.contains(&Probe::WakeupCross));
        let mut names: Vec<String> = two.iter().map(Probe::to_string).collect();
        assert!(names.contains(&"cache_preemption_1MiB".to_owned()) && names.contains(&"copy_16MiB".to_owned()));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), two.len());
    }
}
