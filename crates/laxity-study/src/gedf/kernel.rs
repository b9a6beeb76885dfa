//! Overheads of Laxity's own scheduler in the kernel, as `make measure-kernel` measured them in an emulated machine.

use laxity_model::{Measurement, OverheadKind, OverheadProfile, OverheadTable, Statistic};

macro_rules! measured {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../../studies/brandenburg2009gedf_kernel/lab/", $name, ".toml")))
    };
}

/// The realizations that were measured: those with a coarse queue.
const FILES: [(&str, &str); 6] =
    [measured!("CEm"), measured!("CE1"), measured!("CQm"), measured!("CQ1"), measured!("S-CQm"), measured!("S-CQ1")];

/// What a realization costs. Panics if it is none of the six.
///
/// The IPI latency is that of the fewest tasks that were measured, with a CPU dedicated to interrupts: without one there was a
/// single CPU, and CPUs of the emulated machine take turns, so that with more tasks a latency has more of what the sender still
/// carries out.
pub fn profile(realization: &str, statistic: Statistic) -> OverheadProfile {
    let mut profile = read(realization, statistic);
    let two = read(&realization.replace('m', "1"), statistic);
    let latency = OverheadKind::IpiLatency as usize;
    profile.tables[latency] = OverheadTable::Constant(two.tables[latency].at(0));
    profile
}

fn read(realization: &str, statistic: Statistic) -> OverheadProfile {
    let (_, text) = FILES.iter().find(|(name, _)| *name == realization).expect("a realization that the kernel has");
    let measured = Measurement::from_text(text, realization).expect("a file that `laxity sched measure` wrote");
    measured.profile(statistic).clone()
}

#[cfg(test)]
mod tests {
    use laxity_model::Nanos;

    use super::*;

    #[test]
    fn each_realization_has_ten_numbers_of_tasks_and_no_mean_above_the_worst_case() {
        for (name, _) in FILES {
            let [worst, average] = [Statistic::Worst, Statistic::Average].map(|statistic| profile(name, statistic));
            assert_eq!(worst.name, format!("kernel-{name}-worst"));
            let OverheadTable::Points(points) = &worst.tables[OverheadKind::Scheduling as usize] else {
                panic!("{name} has one cost whatever the number of tasks");
            };
            assert_eq!(points.len(), 10, "{name}");
            for &(tasks, _) in points {
                let [worst, average] = [&worst, &average].map(|profile| profile.at(tasks as usize));
                for kind in OverheadKind::ALL {
                    assert!(average.of(kind) <= worst.of(kind), "{name}, {tasks} tasks, {}", kind.name());
                }
                for cost in [worst.release, worst.scheduling, worst.context_switch, worst.tick] {
                    assert!(cost > Nanos::ZERO, "{name}, {tasks} tasks");
                }
            }
        }
    }
}
