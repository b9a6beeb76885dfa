//! The task sets of section V.

use laxity_analysis::partition::{Fit, Order, Overflow, partition};
use laxity_analysis::{Rational, rational};
use laxity_gen::{
    Decimal, GeneratedSet, GeneratorSpec, GpuUse, Utilization, generate, klmirqd_halves, klmirqd_platform, mix,
    task_set_seed,
};
use laxity_model::{
    ExecutionTime, GpuManagement, GpuWork, InterruptHandling, Nanos, OverheadProfile, Platform, Step, Task, Workload,
};

use super::systems::{K_FMLP, clustered_edf};
use super::{Halves, RuntimeOptions, Waiting};
use crate::StudyError;
use crate::klmirqd::{CLUSTER_CPUS, CLUSTERS};

/// Total utilizations of the task sets, in thousandths of a CPU: 7.5, 7.6 ... 11.5.
pub const UTILIZATIONS: [u64; 41] = {
    let mut points = [0; 41];
    let mut index = 0;
    while index < points.len() {
        points[index] = 7_500 + 100 * index as u64;
        index += 1;
    }
    points
};

/// First word of the seeds of task sets.
const EXPERIMENT: u64 = 2012_0500;

/// How far below its nominal utilization a task set may be: the distance of two points.
const STEP: u64 = 100;

/// How many sets are drawn at most before one is close enough. One in eight is.
const ATTEMPTS_MAX: u64 = 1_000;

/// A task set of total utilization between `point - 100` and `point` thousandths of a CPU under `handling`.
///
/// The generator stops before its cap, by up to a whole task. The paper's sets differ by 0.1, so the first set drawn
/// is taken whose utilization is that close.
pub(super) fn task_set(
    point: u64,
    handling: InterruptHandling,
    options: &RuntimeOptions,
) -> Result<Workload, StudyError> {
    let drawn = draw(point, options)?;
    let mut tasks = drawn.tasks;
    if options.waiting == Waiting::Poll {
        tasks.iter_mut().for_each(poll);
    }
    let clusters = clusters(&drawn.utilizations, &uses_gpu(&tasks));
    for (task, cluster) in tasks.iter_mut().zip(clusters) {
        task.cluster = Some(cluster);
    }
    let gpu_management = management(handling, options);
    let name = format!("section-v-{point}");
    Ok(Workload { scheduler: clustered_edf(), gpu_management, ..Workload::new(name, platform(), tasks) })
}

/// Has the job execute while the operations that it does not wait for take their time.
fn poll(task: &mut Task) {
    let mut in_background = Nanos::ZERO;
    for step in &mut task.body {
        match step {
            Step::Gpu(operation) if operation.waiting == laxity_model::Waiting::Asynchronous => {
                in_background += match &operation.work {
                    GpuWork::Kernel(time) | GpuWork::Copy { time: Some(time), .. } => time.wcet,
                    GpuWork::Copy { time: None, .. } => Nanos::ZERO,
                };
            }
            // The step beside them, which is the first after they were issued.
            Step::Cpu(time) => *time = ExecutionTime::constant(time.wcet + std::mem::take(&mut in_background)),
            _ => {}
        }
    }
}

fn draw(point: u64, options: &RuntimeOptions) -> Result<GeneratedSet, StudyError> {
    let gpu = GpuUse {
        overlap: Decimal::from_thousandths(options.overlap),
        interrupts: options.interrupts,
        ..GpuUse::RUNTIME
    };
    let cap = Decimal::from_thousandths(point);
    let spec = GeneratorSpec { gpu: Some(gpu), ..GeneratorSpec::klmirqd_runtime(cap) };
    let least = Decimal::from_thousandths(point.saturating_sub(STEP)).utilization().units();
    for attempt in 0..ATTEMPTS_MAX {
        let drawn = generate(&spec, task_set_seed(EXPERIMENT, point, attempt))?;
        // Cannot overflow: at most `cap` together.
        let total: u64 = drawn.utilizations.iter().map(|utilization| utilization.units()).sum();
        if total > least {
            return Ok(drawn);
        }
    }
    Err(StudyError::NoTaskSet { point, attempts: ATTEMPTS_MAX })
}

/// The machine with its overheads.
fn platform() -> Platform {
    let overheads = OverheadProfile::published("elliott2012-klmirqd").expect("the profile of this very paper");
    Platform { overheads, ..klmirqd_platform() }
}

fn management(handling: InterruptHandling, options: &RuntimeOptions) -> GpuManagement {
    let mut management = GpuManagement { arbitration: K_FMLP, handling, ..GpuManagement::default() };
    set_halves(&mut management, options.halves);
    management
}

/// Has the halves of interrupts take as long as the options say.
pub(super) fn set_halves(management: &mut GpuManagement, halves: Halves) {
    let (top_half, bottom_half) = match halves {
        Halves::LongTail => {
            let (top_half, bottom_half) = klmirqd_halves();
            (Some(top_half), Some(bottom_half))
        }
        Halves::Mean => (None, None),
    };
    management.top_half = top_half;
    management.bottom_half = bottom_half;
}

/// Which tasks use a GPU.
pub(super) fn uses_gpu(tasks: &[Task]) -> Vec<bool> {
    tasks.iter().map(|task| task.body.iter().any(|step| matches!(step, Step::Gpu(_)))).collect()
}

/// The cluster of each task: two passes of worst fit, GPU-using tasks first.
fn clusters(utilizations: &[Utilization], on_gpu: &[bool]) -> Vec<usize> {
    let exact = |utilization: &Utilization| rational(utilization.units(), Utilization::ONE.units());
    let utilizations: Vec<Rational> = utilizations.iter().map(exact).collect();
    let passes: Vec<u32> = on_gpu.iter().map(|&on_gpu| u32::from(!on_gpu)).collect();
    let capacities = [CLUSTER_CPUS; CLUSTERS];
    let packed = partition(&utilizations, &passes, &capacities, Fit::Worst, Order::Input, Overflow::Allow);
    packed.expect("a task that fits nowhere goes to the least loaded cluster").clusters
}

/// The seed of a simulation: of halves and of the CPUs that interrupts are routed to.
pub(super) fn simulation_seed(point: u64) -> u64 {
    mix(&[EXPERIMENT, point])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> impl Iterator<Item = (u64, Workload)> {
        let handling = InterruptHandling::Linux;
        let options = RuntimeOptions::default();
        UTILIZATIONS.into_iter().map(move |point| (point, task_set(point, handling, &options).expect("a task set")))
    }

    #[test]
    fn every_set_has_the_utilization_it_is_named_after() {
        for (point, workload) in sets() {
            let drawn = draw(point, &RuntimeOptions::default()).expect("a task set");
            let total: u64 = drawn.utilizations.iter().map(|utilization| utilization.units()).sum();
            let total = Utilization::from_units(total);
            assert!(total <= Decimal::from_thousandths(point).utilization(), "{point}");
            assert!(total > Decimal::from_thousandths(point - 100).utilization(), "{point}");
            assert_eq!(workload.validate(), Ok(()));
        }
    }

    /// ```text
    ///   suspend   before | issue | beside . . . . . . . . | copy out | after
    ///   poll      before | issue | beside, copy in + kernel | copy out | after
    /// ```
    #[test]
    fn a_polling_job_executes_as_long_as_the_operations_in_the_background_take() {
        let cpu = |waiting| {
            let options = RuntimeOptions { waiting, ..RuntimeOptions::default() };
            let workload = task_set(11_200, InterruptHandling::Linux, &options).expect("a task set");
            workload.tasks.iter().map(Task::wcet).collect::<Vec<_>>()
        };
        let workload = task_set(11_200, InterruptHandling::Linux, &RuntimeOptions::default()).expect("a task set");
        let on_gpu = uses_gpu(&workload.tasks);
        for (index, (suspending, polling)) in cpu(Waiting::Suspend).into_iter().zip(cpu(Waiting::Poll)).enumerate() {
            // 80 % of the execution is on the GPU, a tenth of that is the copy out: 72 % are polled beside 20 %.
            let expected = if on_gpu[index] { suspending.0 * 92 / 20 } else { suspending.0 };
            assert!(polling.0.abs_diff(expected) < 20, "task {index}: {polling:?}, expected {expected} ns");
        }
    }

    /// "Between 20% and 30% of tasks", "evenly distribute GPU-using tasks between clusters".
    #[test]
    fn gpu_using_tasks_are_spread_over_the_clusters() {
        for (point, workload) in sets() {
            let on_gpu = uses_gpu(&workload.tasks);
            let (count, all) = (on_gpu.iter().filter(|on_gpu| **on_gpu).count(), on_gpu.len());
            // Rounded to the nearest number of tasks.
            assert!(10 * count + 5 >= 2 * all && 10 * count <= 3 * all + 5, "{count} of {all} at {point}");
            let of = |cluster| {
                workload.tasks.iter().zip(&on_gpu).filter(|(task, on)| **on && task.cluster == Some(cluster)).count()
            };
            assert!(of(0) > 0 && of(1) > 0, "{point}");
        }
    }
}
