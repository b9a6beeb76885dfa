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
        spread_interrupts(&mut task.body, options.interrupts);
    }
    workload
}

/// Has the operations of a job raise `interrupts` together, the later ones first to raise one more.
fn spread_interrupts(body: &mut [Step], interrupts: u32) {
    let operations: Vec<_> = body
        .iter_mut()
        .filter_map(|step| if let Step::Gpu(operation) = step { Some(operation) } else { None })
        .collect();
    let count = operations.len() as u32;
    for (from_end, operation) in (0..).zip(operations.into_iter().rev()) {
        operation.interrupts = interrupts / count + u32::from(from_end < interrupts % count);
    }
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
    fn interrupts_are_spread_with_the_last_operation_first() {
        for (interrupts, expected) in [(0, [0, 0, 0]), (1, [0, 0, 1]), (3, [1, 1, 1]), (5, [1, 2, 2])] {
            let options = RuntimeOptions { interrupts, ..RuntimeOptions::default() };
            let workload = table2(&System::ALL[0], 0, &options);
            let of = |step: &Step| if let Step::Gpu(operation) = step { Some(operation.interrupts) } else { None };
            assert_eq!(workload.tasks[0].body.iter().filter_map(of).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_repetition_begins_alike_on_all_systems_and_unlike_another() {
        let options = RuntimeOptions { phases: Phases::Random, ..RuntimeOptions::default() };
        let phases = |system: usize, repetition| {
            let workload = table2(&System::ALL[system], repetition, &options);
            workload.tasks.iter().map(|task| task.phase).collect::<Vec<_>>()
        };
        assert_eq!(phases(0, 1), phases(7, 1));
        assert_ne!(phases(0, 1), phases(0, 2));
        assert!(phases(0, 1).iter().all(|phase| *phase < Nanos::from_micros(20_100)));
    }
}
