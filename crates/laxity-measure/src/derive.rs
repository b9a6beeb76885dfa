//! Overheads from what was measured.

use laxity_model::{MeasuredQuantity, Nanos, OverheadCosts, OverheadProfile};

use crate::options::Worst;
use crate::probe::{Bytes, Probe};

/// A profile for the worst case and one for the average, from `quantities` of [`Probe`]s by name.
///
/// The sources of paper 002, section 2, happen inside of Linux; a process sees sums of them, from which parts are taken
/// off that are charged beside:
///
/// | Source | Is | Less the medians of |
/// | --- | --- | --- |
/// | scheduling | `yield` | |
/// | context switch | `yield_switch` | `yield` |
/// | release | `timer_latency_idle` or `_busy`, whichever is more | `yield_switch` |
/// | IPI latency | `wakeup_cross_cpu` or `_busy`, whichever is more | `yield_switch` |
/// | tick | `interruption` | |
/// | timer re-arming | `timer_arm` | |
/// | cache | `cache_preemption`, `cache_migration` of the working set | |
///
/// As parts are charged with no less than their medians, what is charged for a release (release, scheduling, switch) is
/// no less than the timer latency that was seen; so with the others. The average takes means. Costs not measured are
/// zero: with one CPU no interrupt is sent to another, and no thread migrates. None depends on the number of tasks, as
/// queues of `SCHED_FIFO` do not.
pub fn profiles(quantities: &[MeasuredQuantity], working_set: u64, worst: Worst) -> (OverheadProfile, OverheadProfile) {
    let worst_case = costs(quantities, working_set, |quantity| worst.of(quantity));
    let average = costs(quantities, working_set, |quantity| quantity.mean);
    (OverheadProfile::constant("measured-worst", worst_case), OverheadProfile::constant("measured-average", average))
}

fn costs(
    quantities: &[MeasuredQuantity],
    working_set: u64,
    statistic: impl Fn(&MeasuredQuantity) -> Nanos,
) -> OverheadCosts {
    let find = |probe: Probe| quantities.iter().find(|quantity| quantity.name == probe.to_string());
    let whole = |probe| find(probe).map_or(Nanos::ZERO, &statistic);
    let part = |probe| find(probe).map_or(Nanos::ZERO, |quantity| quantity.median);
    let less = |whole: Nanos, part: Nanos| Nanos(whole.0.saturating_sub(part.0));
    let (decision, pair) = (part(Probe::Yield), part(Probe::YieldSwitch));
    OverheadCosts {
        release: less(whole(Probe::TimerLatencyIdle).max(whole(Probe::TimerLatencyBusy)), pair),
        scheduling: whole(Probe::Yield),
        context_switch: less(whole(Probe::YieldSwitch), decision),
        ipi_latency: less(whole(Probe::WakeupCross).max(whole(Probe::WakeupCrossBusy)), pair),
        tick: whole(Probe::Interruption),
        timer_rearming: whole(Probe::TimerArm),
        cache_preemption: whole(Probe::CachePreemption(Bytes(working_set))),
        cache_migration: whole(Probe::CacheMigration(Bytes(working_set))),
        ..OverheadCosts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 100 samples, 98 are `usual`.
    fn quantity(probe: Probe, usual: u64, p99: u64, max: u64) -> MeasuredQuantity {
        let (usual, p99, max) = (Nanos(usual), Nanos(p99), Nanos(max));
        let mean = Nanos((98 * usual.0 + p99.0 + max.0) / 100);
        MeasuredQuantity { name: probe.to_string(), count: 100, min: usual, median: usual, mean, p99, p999: max, max }
    }

    #[test]
    fn parts_that_are_charged_beside_are_taken_off_and_never_too_much() {
        let set = Bytes(4_096);
        let quantities = [
            quantity(Probe::TimerLatencyIdle, 5_000, 7_000, 20_000),
            quantity(Probe::TimerLatencyBusy, 4_000, 9_000, 15_000),
            quantity(Probe::Yield, 300, 400, 1_000),
            quantity(Probe::YieldSwitch, 800, 1_000, 3_000),
            quantity(Probe::Interruption, 2_000, 3_000, 4_000),
            quantity(Probe::CachePreemption(set), 10, 20, 30),
            quantity(Probe::CachePreemption(Bytes(8_192)), 100, 200, 300),
        ];
        let (worst, average) = profiles(&quantities, set.0, Worst::Max);
        let (worst, average) = (worst.at(1), average.at(1_000));
        assert_eq!(worst.release, Nanos(20_000 - 800));
        assert_eq!([worst.scheduling, worst.context_switch], [Nanos(1_000), Nanos(3_000 - 300)]);
        assert!(worst.release + worst.scheduling + worst.context_switch >= Nanos(20_000), "what was seen is charged");
        assert_eq!([worst.tick, worst.cache_preemption], [Nanos(4_000), Nanos(30)]);
        assert_eq!([worst.ipi_latency, worst.cache_migration, worst.top_half], [Nanos::ZERO; 3], "not measured");
        assert_eq!(average.release, Nanos((98 * 5_000 + 27_000) / 100 - 800));
        let (p99, _) = profiles(&quantities, set.0, Worst::P99);
        assert_eq!(p99.at(1).release, Nanos(9_000 - 800), "of the busy CPU");
        // A switch that seems to take less than deciding alone costs nothing more.
        let odd = [quantity(Probe::Yield, 900, 900, 900), quantity(Probe::YieldSwitch, 800, 800, 800)];
        assert_eq!(profiles(&odd, set.0, Worst::Max).0.at(1).context_switch, Nanos::ZERO);
    }
}
