//! Overheads of Laxity's own scheduler in the kernel, as `make measure-kernel` measured them in an emulated machine.

use laxity_model::{Measurement, OverheadKind, OverheadProfile, OverheadTable, Statistic};

/// What of waiting for the scheduler's locks is in the costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Nothing: on one CPU, or where CPUs take turns, none waits for another.
    Nothing,
    /// What each of the paper's 32 CPUs waits at most: 31 others hold the lock before it, each as long as it was held at worst, or
    /// on average.
    Longest,
}

macro_rules! measured {
    ($($name:literal),*) => {
        [$((
            $name,
            include_str!(concat!("../../../../studies/brandenburg2009gedf_kernel/lab/", $name, ".toml")),
            include_str!(concat!("../../../../studies/brandenburg2009gedf_kernel/lab/", $name, "-waiting-32.toml")),
        )),*]
    };
}

/// The realizations that were measured, each with its costs without and with waiting: those that the paper measured, and HE1,
/// from which HEm has its IPI latency.
const FILES: [(&str, &str, &str); 10] =
    measured!("CEm", "CE1", "FEm", "FE1", "HEm", "HE1", "CQm", "CQ1", "S-CQm", "S-CQ1");

/// What a realization costs. Panics if it was not measured.
///
/// The IPI latency is that of the fewest tasks that were measured, with a CPU dedicated to interrupts: without one there was a
/// single CPU, and CPUs of the emulated machine take turns, so that with more tasks a latency has more of what the sender still
/// carries out.
pub fn profile(realization: &str, statistic: Statistic, waiting: Waiting) -> OverheadProfile {
    let mut profile = read(realization, statistic, waiting);
    let two = read(&realization.replace('m', "1"), statistic, waiting);
    let latency = OverheadKind::IpiLatency as usize;
    profile.tables[latency] = OverheadTable::Constant(two.tables[latency].at(0));
    profile
}

fn read(realization: &str, statistic: Statistic, waiting: Waiting) -> OverheadProfile {
    let (_, nothing, longest) =
        FILES.iter().find(|(name, ..)| *name == realization).expect("a realization that was measured");
    let text = match waiting {
        Waiting::Nothing => nothing,
        Waiting::Longest => longest,
    };
    let measured = Measurement::from_text(text, realization).expect("a file that `laxity sched measure` wrote");
    measured.profile(statistic).clone()
}

#[cfg(test)]
mod tests {
    use laxity_model::Nanos;

    use super::*;

    #[test]
    fn each_realization_has_ten_numbers_of_tasks_and_no_mean_above_the_worst_case() {
        for (name, ..) in FILES {
            for (waiting, suffix) in [(Waiting::Nothing, ""), (Waiting::Longest, "-waiting-32")] {
                let [worst, average] =
                    [Statistic::Worst, Statistic::Average].map(|statistic| profile(name, statistic, waiting));
                assert_eq!(worst.name, format!("kernel-{name}{suffix}-worst"));
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

    #[test]
    fn waiting_adds_to_what_takes_locks_and_to_nothing_else() {
        for (name, ..) in FILES {
            for statistic in [Statistic::Worst, Statistic::Average] {
                let [nothing, longest] =
                    [Waiting::Nothing, Waiting::Longest].map(|waiting| profile(name, statistic, waiting).at(250));
                for kind in OverheadKind::ALL {
                    let [without, with] = [&nothing, &longest].map(|costs| costs.of(kind));
                    match kind {
                        OverheadKind::IpiLatency => assert_eq!(without, with, "{name}"),
                        OverheadKind::Scheduling => assert!(without < with, "{name}"),
                        _ => assert!(without <= with, "{name}, {}", kind.name()),
                    }
                }
            }
        }
    }
}
