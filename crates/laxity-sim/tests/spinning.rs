//! Jobs that spin until the GPU is done with their operations.

mod common;

use common::simulate;
use laxity_model::{
    CpuId, ExecutionTime, Factor, Gpu, GpuArbitration, GpuManagement, GpuOperation, GpuWork, Instant, Nanos,
    OverheadCosts, OverheadProfile, Platform, Step, Task, Waiting, Workload,
};
use laxity_trace::Event;

const MS: Nanos = Nanos::from_millis(1);

fn time(ms: u64) -> ExecutionTime {
    ExecutionTime::constant(Nanos::from_millis(ms))
}

/// A kernel of so many milliseconds on the only GPU, which interrupts so often.
fn kernel(ms: u64, interrupts: u32) -> Step {
    Step::Gpu(GpuOperation {
        gpu: Some(0),
        work: GpuWork::Kernel(time(ms)),
        waiting: Waiting::Synchronous,
        interrupts,
        memory: Factor::ZERO,
    })
}

/// One CPU, and one GPU for which jobs spin.
fn spinning(costs: OverheadCosts, tasks: Vec<Task>) -> Workload {
    let mut platform = Platform::identical(1);
    platform.gpus = vec![Gpu {
        name: "gpu0".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: vec![CpuId(0)],
    }];
    platform.overheads = OverheadProfile::constant("costs", costs);
    Workload {
        gpu_management: GpuManagement { arbitration: GpuArbitration::DriverSpinning, ..GpuManagement::default() },
        ..Workload::new("spinning", platform, tasks)
    }
}

/// L spins from 1 to 4 for its GPU kernel, is preempted by H from 2 to 3, and has 1 left to execute. Its cache is cold
/// when the kernel ends, whether it had the CPU since or not: it completes at 5 plus the delay, as demanded.
#[test]
fn a_preempted_spinner_refills_its_cache_when_it_goes_on() {
    let high = Task { phase: Nanos::from_millis(2), ..Task::periodic("H", MS, Nanos::from_millis(10)) };
    let low = Task {
        body: vec![Step::Cpu(time(1)), kernel(3, 1), Step::Cpu(time(1))],
        ..Task::periodic("L", MS, Nanos::from_millis(20))
    };
    let delay = Nanos::from_micros(200);
    let costs = OverheadCosts { cache_preemption: delay, ..OverheadCosts::default() };
    let workload = spinning(costs, vec![high, low]);
    let records = simulate(&workload, "G-EDF", Instant::from_millis(9));
    let at = |is_meant: fn(&Event) -> bool| records.iter().find(|record| is_meant(&record.event)).map(|it| it.at);
    assert_eq!(at(|event| matches!(event, Event::CacheDelay { job, .. } if job.task.0 == 1)), Some(Instant(3 * MS.0)));
    let complete = at(|event| matches!(event, Event::Complete { job, .. } if job.task.0 == 1));
    assert_eq!(complete, Some(Instant(5 * MS.0) + delay));
}

/// First spins from 1 to 2 for its kernel, where a quantum begins, and has nothing left to execute. It is complete before
/// that tick decides, so that Second, which waits since 0.5, is linked there and not a quantum later.
#[test]
fn a_spinner_with_nothing_left_is_complete_before_a_quantum_begins() {
    let first =
        Task { body: vec![Step::Cpu(time(1)), kernel(1, 0)], ..Task::periodic("First", MS, Nanos::from_millis(10)) };
    let second = Task { phase: Nanos::from_micros(500), ..Task::periodic("Second", MS, Nanos::from_millis(20)) };
    let workload = spinning(OverheadCosts::default(), vec![first, second]);
    let records = simulate(&workload, "G-EDF/CQm", Instant::from_millis(4));
    let at = |is_meant: fn(&Event) -> bool| records.iter().find(|record| is_meant(&record.event)).map(|it| it.at);
    let complete = at(|event| matches!(event, Event::Complete { job, .. } if job.task.0 == 0));
    let linked = at(|event| matches!(event, Event::Link { job: Some(job), .. } if job.task.0 == 1));
    assert_eq!((complete, linked), (Some(Instant(2 * MS.0)), Some(Instant(2 * MS.0))));
}
