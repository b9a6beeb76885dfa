//! Jobs that spin until the GPU is done with their operations.

mod common;

use common::simulate;
use laxity_model::{
    CpuId, ExecutionTime, Factor, Gpu, GpuArbitration, GpuManagement, GpuOperation, GpuWork, Instant, Nanos,
    OverheadCosts, OverheadProfile, Platform, Step, Task, Waiting, Workload,
};
use laxity_trace::Event;

const MS: Nanos = Nanos::from_millis(1);

/// L spins from 1 to 4 for its GPU kernel, is preempted by H from 2 to 3, and has 1 left to execute. Its cache is cold
/// when the kernel ends, whether it had the CPU since or not: it completes at 5 plus the delay, as demanded.
#[test]
fn a_preempted_spinner_refills_its_cache_when_it_goes_on() {
    let time = |ms| ExecutionTime::constant(Nanos::from_millis(ms));
    let kernel = GpuOperation {
        gpu: Some(0),
        work: GpuWork::Kernel(time(3)),
        waiting: Waiting::Synchronous,
        interrupts: 1,
        memory: Factor::ZERO,
    };
    let high = Task { phase: Nanos::from_millis(2), ..Task::periodic("H", MS, Nanos::from_millis(10)) };
    let low = Task {
        body: vec![Step::Cpu(time(1)), Step::Gpu(kernel), Step::Cpu(time(1))],
        ..Task::periodic("L", MS, Nanos::from_millis(20))
    };
    let mut platform = Platform::identical(1);
    platform.gpus = vec![Gpu {
        name: "gpu0".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: vec![CpuId(0)],
    }];
    let delay = Nanos::from_micros(200);
    let costs = OverheadCosts { cache_preemption: delay, ..OverheadCosts::default() };
    platform.overheads = OverheadProfile::constant("caches", costs);
    let workload = Workload {
        gpu_management: GpuManagement { arbitration: GpuArbitration::DriverSpinning, ..GpuManagement::default() },
        ..Workload::new("spinning", platform, vec![high, low])
    };
    let records = simulate(&workload, "G-EDF", Instant::from_millis(9));
    let at = |is_meant: fn(&Event) -> bool| records.iter().find(|record| is_meant(&record.event)).map(|it| it.at);
    assert_eq!(at(|event| matches!(event, Event::CacheDelay { job, .. } if job.task.0 == 1)), Some(Instant(3 * MS.0)));
    let complete = at(|event| matches!(event, Event::Complete { job, .. } if job.task.0 == 1));
    assert_eq!(complete, Some(Instant(5 * MS.0) + delay));
}
