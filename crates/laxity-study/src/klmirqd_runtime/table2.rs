//! The workload of Table II.

use laxity_gen::{klmirqd_table2, mix};
use laxity_model::rng::SplitMix64;
use laxity_model::{Nanos, Step, Workload};

use super::task_sets::set_halves;
use super::{Phases, RuntimeOptions, System};

/// First word of the seeds.
const EXPERIMENT: u64 = 2012_0600;

/// The 50 tasks as they run on `system` in that repetition: begun at other times than in another repetition.
pub(super) fn table2(system: &System, repetition: u64, options: &RuntimeOptions) -> Workload {
    let mut workload = klmirqd_table2();
    workload.scheduler = system.scheduler();
    workload.gpu_management.arbitration = system.arbitration();
    workload.gpu_management.handling = system.handling();
    set_halves(&mut workload.gpu_management, options.halves);
    let seed = simulation_seed(repetition);
    for (index, task) in workload.tasks.iter_mut().enumerate() {
        task.phase = match options.phases {
            Phases::Synchronous => Nanos::ZERO,
            Phases::Random => Nanos(SplitMix64::new(mix(&[seed, index as u64])).below(task.period.0)),
        };
        for step in &mut task.body {
            if let Step::Gpu(operation) = step {
                operation.interrupts = options.interrupts;
            }
        }
    }
    workload
}

/// The seed of a repetition, the same on all systems.
pub(super) fn simulation_seed(repetition: u64) -> u64 {
    mix(&[EXPERIMENT, repetition])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_can_run_it() {
        for system in System::ALL {
            let workload = table2(&system, 3, &RuntimeOptions::default());
            assert_eq!(workload.validate(), Ok(()));
            assert_eq!(workload.scheduler.algorithm().to_string(), if system.column < 'g' { "C-RM" } else { "C-EDF" });
        }
    }

    #[test]
    fn a_repetition_begins_alike_on_all_systems_and_unlike_another() {
        let phases = |system: usize, repetition| {
            let workload = table2(&System::ALL[system], repetition, &RuntimeOptions::default());
            workload.tasks.iter().map(|task| task.phase).collect::<Vec<_>>()
        };
        assert_eq!(phases(0, 1), phases(7, 1));
        assert_ne!(phases(0, 1), phases(0, 2));
        assert!(phases(0, 1).iter().all(|phase| *phase < Nanos::from_micros(20_100)));
    }
}
