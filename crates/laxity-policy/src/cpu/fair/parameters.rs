//! The tunables of the fair class.

use laxity_model::Nanos;

/// What `/sys/kernel/debug/sched` (before 5.13 `/proc/sys/kernel/sched_*_ns`) offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// `sched_latency`: the time in which every runnable thread of a CPU has its turn, if they are few.
    pub latency: Nanos,
    /// `sched_min_granularity`: the shortest slice; more threads than fit into the latency make that longer.
    pub min_granularity: Nanos,
    /// `sched_wakeup_granularity`: by how much virtual time a thread that wakes must be behind the one that runs to
    /// preempt it.
    pub wakeup_granularity: Nanos,
}

impl Parameters {
    /// What Linux sets on a machine of `cpus` CPUs: 6 ms, 0.75 ms and 1 ms, each times 1 + log2 of the CPUs, of which no
    /// more than 8 count (`get_update_sysctl_factor`, `SCHED_TUNABLESCALING_LOG`). With six CPUs 18, 2.25 and 3 ms.
    pub fn of_linux(cpus: usize) -> Parameters {
        let factor = 1 + u64::from(cpus.clamp(1, 8).ilog2());
        Parameters {
            latency: Nanos::from_micros(6_000 * factor),
            min_granularity: Nanos::from_micros(750 * factor),
            wakeup_granularity: Nanos::from_micros(1_000 * factor),
        }
    }

    /// The time in which each of `runnable` threads has its turn (`__sched_period`).
    pub fn period(&self, runnable: usize) -> Nanos {
        let fits = self.latency.0 / self.min_granularity.0.max(1);
        let runnable = runnable as u64;
        if runnable > fits { Nanos(self.min_granularity.0.saturating_mul(runnable)) } else { self.latency }
    }

    /// What a thread of `weight` may execute before another's turn comes, where all `runnable` ones weigh `load`
    /// (`sched_slice`).
    pub fn slice(&self, weight: u64, load: u64, runnable: usize) -> Nanos {
        assert!(weight <= load && load > 0, "a runnable thread is part of the load");
        Nanos((u128::from(self.period(runnable).0) * u128::from(weight) / u128::from(load)) as u64)
    }

    /// How far behind its CPU's clock a thread may be when it wakes: half a latency (`GENTLE_FAIR_SLEEPERS`).
    pub fn sleeper_credit(&self) -> Nanos {
        Nanos(self.latency.0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_scales_its_tunables_by_the_logarithm_of_up_to_eight_cpus() {
        let latency = |cpus| Parameters::of_linux(cpus).latency;
        let ms = Nanos::from_millis;
        assert_eq!([1, 2, 4, 6, 8, 12, 64].map(latency), [6, 12, 18, 18, 24, 24, 24].map(ms));
        let six = Parameters::of_linux(6);
        assert_eq!((six.min_granularity, six.wakeup_granularity), (Nanos::from_micros(2_250), ms(3)));
    }

    #[test]
    fn runnable_threads_divide_the_latency_until_a_slice_would_be_too_short() {
        let one = Parameters::of_linux(1);
        assert_eq!(one.slice(1024, 3 * 1024, 3), Nanos::from_millis(2));
        assert_eq!(one.slice(1024, 8 * 1024, 8), Nanos::from_micros(750));
        assert_eq!(one.slice(1024, 20 * 1024, 20), Nanos::from_micros(750), "the period is 15 ms now");
        assert_eq!(one.slice(2048, 3 * 1024, 2), Nanos::from_millis(4), "twice the weight has twice the time");
    }
}
