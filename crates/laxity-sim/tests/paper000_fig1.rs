//! Paper 000, Fig. 1: a bottom half that runs beside its owner costs a third job its CPU.

mod common;

use common::{draw, simulate};
use laxity_model::{
    CpuId, ExecutionTime, Factor, Gpu, GpuManagement, GpuOperation, GpuWork, Instant, InterruptHandling, Nanos,
    Platform, Step, Task, Waiting, Workload,
};
use laxity_trace::{Event, Record};

const MS: Nanos = Nanos::from_millis(1);

/// Two CPUs, T_H and T_L. T_H issues a GPU kernel, goes on, and is interrupted by it on P_1, where T_L runs.
fn figure_1(handling: InterruptHandling) -> Workload {
    let time = |ms| ExecutionTime::constant(Nanos::from_millis(ms));
    let kernel = GpuOperation {
        gpu: Some(0),
        work: GpuWork::Kernel(time(2)),
        waiting: Waiting::Asynchronous,
        interrupts: 1,
        memory: Factor::ZERO,
    };
    let high = Task {
        body: vec![Step::Cpu(time(1)), Step::Gpu(kernel), Step::Cpu(time(5))],
        ..Task::periodic("H", MS, Nanos::from_millis(20))
    };
    let low = Task::periodic("L", Nanos::from_millis(8), Nanos::from_millis(40));
    let mut platform = Platform::identical(2);
    platform.gpus = vec![Gpu {
        name: "gpu0".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: vec![CpuId(1)],
    }];
    Workload {
        gpu_management: GpuManagement { handling, bottom_half: Some(time(1)), ..GpuManagement::default() },
        ..Workload::new("paper 000, Fig. 1", platform, vec![high, low])
    }
}

fn schedule(handling: InterruptHandling) -> (String, Vec<Record>) {
    let records = simulate(&figure_1(handling), "G-EDF", Instant::from_millis(12));
    (draw(&records, 2, MS.0, 12), records)
}

/// The bottom halves that ran on a stack: where, from when to when, in ms.
fn on_stacks(records: &[Record]) -> Vec<(u16, u64, u64)> {
    let mut halves = Vec::new();
    for record in records {
        match record.event {
            Event::BottomHalfBegin { cpu, .. } => halves.push((cpu.0, record.at.0 / MS.0, 0)),
            Event::BottomHalfEnd { .. } => halves.last_mut().expect("it began").2 = record.at.0 / MS.0,
            _ => {}
        }
    }
    halves
}

/// The GPU interrupts P_1 at 3: the bottom half takes P_1 from T_L while its owner goes on on P_0.
#[test]
fn the_inversion_is_there_under_standard_linux() {
    let (drawing, records) = schedule(InterruptHandling::Linux);
    assert_eq!(on_stacks(&records), [(1, 3, 4)]);
    assert_eq!(drawing, "cpu0 000000......\ncpu1 111.11111...", "T_L stands still at 3 although two CPUs are there");
}

/// The bottom half has T_H's priority and so comes before T_L, the least urgent job that runs.
#[test]
fn the_inversion_is_there_under_process_aware_interrupts() {
    let (drawing, records) = schedule(InterruptHandling::ProcessAware);
    assert_eq!(on_stacks(&records), [(1, 3, 4)]);
    assert_eq!(drawing, "cpu0 000000......\ncpu1 111.11111...");
}

/// The thread (task 2) takes the CPU of its owner, which goes on afterwards; T_L is not disturbed.
#[test]
fn the_inversion_is_absent_under_klmirqd() {
    let (drawing, records) = schedule(InterruptHandling::Klmirqd { threads: None });
    assert_eq!(on_stacks(&records), []);
    assert_eq!(drawing, "cpu0 0002000.....\ncpu1 11111111....");
}
