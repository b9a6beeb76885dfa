//! The k-FMLP: `b_i <= sum of l_q / k` (equation 1), `b_i <= l_max floor((n - 1) / k)` (equation 2).

use laxity_analysis::Rational;
use laxity_analysis::klmirqd::{Blocking, blocking};
use laxity_model::GpuArbitration;
use laxity_model::rng::SplitMix64;

use crate::system::{Section, Shape, System};
use crate::waits::{Wait, waits};

/// Simulates `systems` systems and compares what `measure` takes from each wait; with as many CPUs as can be used, or
/// with fewer. Says how often a bound was attained.
fn compare(systems: u64, is_crowded: bool, measure: fn(&Wait) -> u64) -> u64 {
    let mut attained = 0;
    for seed in 0..systems {
        let mut rng = SplitMix64::new(seed);
        let length_aware = rng.below(2) == 0;
        let (tasks, gpus) = (rng.between(2, 8) as usize, rng.between(1, 3) as usize);
        // Threads have the CPU whenever they want it, so they would take that of a job if there were no more CPUs.
        let bottom_half = if is_crowded { 0 } else { rng.below(2) * rng.between(1, 3) };
        let cpus = if is_crowded { rng.between(gpus as u64, tasks.max(gpus) as u64) as usize } else { tasks + gpus };
        let arbitration = GpuArbitration::KFmlp { length_aware };
        let shape = Shape { tasks, cpus, gpus, arbitration, bottom_half, is_uniform: rng.below(4) == 0 };
        let system = System::random(&mut rng, &shape);
        let lengths: Vec<u64> = system.sections.iter().map(Section::length).collect();
        let kind = if length_aware { Blocking::Aware } else { Blocking::ObliviousInteger };
        let bounds = blocking(&lengths, gpus as u32, kind, 0);
        let (header, records) = system.run(seed);
        for wait in waits(&header, &records) {
            let (measured, bound) =
                (Rational::from_integer(measure(&wait).into()), &bounds[wait.job.task.index()].bound);
            assert!(measured <= *bound, "seed {seed}: {shape:?}: {wait:?}, not {bound}");
            attained += u64::from(measured == *bound && measure(&wait) > 0);
        }
    }
    attained
}

/// A CPU for each job and each interrupt thread, so that holders always run. A length includes bottom halves.
#[test]
fn no_wait_is_longer_than_equations_1_and_2_say() {
    let attained = compare(3_000, false, |wait| wait.whole);
    assert!(attained > 100, "bounds that are hardly attained are hardly tested: {attained}");
}

/// k to n CPUs: a job may wait for longer than the bound, while m jobs of higher priority are pending.
#[test]
fn no_pi_blocking_is_longer_than_equations_1_and_2_say() {
    let attained = compare(2_000, true, |wait| wait.blocked);
    assert!(attained > 10, "bounds that are hardly attained are hardly tested: {attained}");
}
