//! Traces with GPUs, interrupts, locks and graphs, written by hand. Times are in tenths of a millisecond.
#![allow(dead_code, reason = "every test binary uses some of them")]

use laxity_model::{CpuId, EdgeId, Engine, GpuId, InterruptHandling, JobId, LockId, OverheadKind, ReplicaId, TaskId};
use laxity_trace::{
    DeviceId, DeviceInfo, EdgeInfo, EdgeKind, Event, GpuInfo, GraphInfo, LockInfo, LockKind, Record, TaskKind,
    TraceHeader,
};

use super::fixtures::*;

pub const EE: Engine = Engine::Execution;
pub const CE0: Engine = Engine::Copy(0);

/// Adds a GPU that is a device.
pub fn add_gpu(header: &mut TraceHeader, name: &str, copy_engines: u8) {
    header.gpus.push(GpuInfo { name: name.to_owned(), cluster: 0, copy_engines });
    header.devices.push(DeviceInfo { name: name.to_owned() });
}

pub fn add_lock(header: &mut TraceHeader, name: &str, kind: LockKind, replicas: u16) {
    header.locks.push(LockInfo { name: name.to_owned(), kind, replicas });
}

/// An operation on an engine of GPU 0 from `from` to `to`.
pub fn operation(from: u64, to: u64, engine: Engine, job: JobId) -> [Record; 2] {
    let gpu = GpuId(0);
    [record(from, Event::EngineBegin { gpu, engine, job }), record(to, Event::EngineEnd { gpu, engine, job })]
}

pub fn interrupt(tenths: u64, cpu: u16, job: Option<JobId>) -> Record {
    record(tenths, Event::Interrupt { cpu: CpuId(cpu), device: DeviceId(0), job })
}

pub fn bottom_half(from: u64, to: u64, cpu: u16, job: Option<JobId>) -> [Record; 2] {
    let (cpu, device) = (CpuId(cpu), DeviceId(0));
    [record(from, Event::BottomHalfBegin { cpu, device, job }), record(to, Event::BottomHalfEnd { cpu, device, job })]
}

pub fn serve(tenths: u64, thread: JobId, job: Option<JobId>) -> Record {
    record(tenths, Event::Serve { thread, device: DeviceId(0), job })
}

pub fn request(tenths: u64, job: JobId, lock: u16) -> Record {
    record(tenths, Event::Request { job, lock: LockId(lock) })
}

pub fn grant(tenths: u64, job: JobId, lock: u16, replica: u16) -> Record {
    record(tenths, Event::Grant { job, lock: LockId(lock), replica: ReplicaId(replica) })
}

pub fn unlock(tenths: u64, job: JobId, lock: u16, replica: u16) -> Record {
    record(tenths, Event::Unlock { job, lock: LockId(lock), replica: ReplicaId(replica) })
}

/// The priority of `of`, due at `deadline`.
pub fn priority(tenths: u64, job: JobId, of: u32, deadline: u64) -> Record {
    record(tenths, Event::Priority { job, level: at(deadline).0, of: TaskId(of) })
}

pub fn spin(from: u64, to: u64, cpu: u16, job: JobId) -> [Record; 2] {
    let cpu = CpuId(cpu);
    [record(from, Event::SpinBegin { cpu, job }), record(to, Event::SpinEnd { cpu, job })]
}

pub fn produce(tenths: u64, job: JobId, edge: u32, tokens: u32) -> Record {
    record(tenths, Event::Produce { job, edge: EdgeId(edge), tokens })
}

pub fn consume(tenths: u64, job: JobId, edge: u32, tokens: u32) -> Record {
    record(tenths, Event::Consume { job, edge: EdgeId(edge), tokens })
}

/// Puts records into the order of time; equals stay in the order given.
pub fn by_time(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_key(|record| record.at);
    records
}

/// Paper 000, Fig. 1: tasks H, which has the higher priority, and L on two CPUs; H uses the GPU asynchronously.
fn inversion_header(name: &str, handling: InterruptHandling) -> TraceHeader {
    let mut header = header(name, 2, &[("H", 70, 120), ("L", 90, 150)]);
    add_gpu(&mut header, "gpu0", 1);
    header.handling = handling;
    header
}

/// The situation of paper 000, Fig. 1, under standard Linux: at t0 = 4 ms an interrupt for H arrives on P1 (cpu0),
/// where L runs. Its bottom half runs there at once, on L's stack, while H itself runs on P2 (cpu1): L should be
/// scheduled and is not, a priority inversion of 1.5 ms.
pub fn inversion_slih() -> (TraceHeader, Vec<Record>) {
    let header = inversion_header("inversion under standard Linux", InterruptHandling::Linux);
    let (h, l) = (job(0, 0), job(1, 0));
    let mut records = vec![
        release(0, h, 120),
        ready(0, 1, h),
        dispatch(0, 1, h),
        release(5, l, 155),
        ready(5, 0, l),
        dispatch(5, 0, l),
        interrupt(40, 0, Some(h)),
        overhead(40, 0, OverheadKind::TopHalf, 3),
    ];
    records.extend(operation(10, 16, CE0, h));
    records.extend(operation(16, 40, EE, h));
    records.extend(bottom_half(43, 58, 0, Some(h)));
    records.extend([complete(70, 1, h), complete(113, 0, l), end(150)]);
    (header, by_time(records))
}

/// The same situation under klmirqd: the bottom half is a job of a thread with H's priority, which is never
/// co-scheduled with H. It waits until H suspends itself for the result at 6 ms, and L loses the top half only.
pub fn inversion_klmirqd() -> (TraceHeader, Vec<Record>) {
    let handling = InterruptHandling::Klmirqd { threads: None };
    let mut header = inversion_header("inversion avoided by klmirqd", handling);
    let mut thread = header.tasks[0].clone();
    (thread.name, thread.rank, thread.kind) = ("klmirqd0".to_owned(), 2, TaskKind::Thread);
    header.tasks.push(thread);
    let (h, l, thread) = (job(0, 0), job(1, 0), job(2, 0));
    let mut records = vec![
        release(0, h, 120),
        ready(0, 1, h),
        dispatch(0, 1, h),
        release(5, l, 155),
        ready(5, 0, l),
        dispatch(5, 0, l),
        interrupt(40, 0, Some(h)),
        overhead(40, 0, OverheadKind::TopHalf, 3),
        overhead(43, 0, OverheadKind::ThreadRelease, 1),
        release(44, thread, 120),
        serve(44, thread, Some(h)),
        priority(44, thread, 0, 120),
        ready(44, 0, thread),
        suspend(60, 1, h),
        dispatch(60, 1, thread),
        complete(75, 1, thread),
        resume(75, 1, h),
        dispatch(75, 1, h),
    ];
    records.extend(operation(10, 16, CE0, h));
    records.extend(operation(16, 40, EE, h));
    records.extend([complete(85, 1, h), complete(99, 0, l), end(150)]);
    (header, by_time(records))
}

/// Everything locks and graphs can show, on two CPUs and a GPU:
///
/// - `camera` produces a token for `detector` when it completes (0.5 ms), and another one at 13.5 ms;
/// - `detector` holds a token of the GPU from 1 to 11 ms and meanwhile the engines' locks, spins for its copy, and
///   inherits the priority of `lidar`, which is due earlier and waits for the GPU from 4 to 11 ms;
/// - `lidar` spins for its operation, which ends without a bottom half of its own; an anonymous one runs at 14 ms.
pub fn pipeline() -> (TraceHeader, Vec<Record>) {
    let mut header = header("locks and tokens", 2, &[("camera", 5, 130), ("detector", 60, 180), ("lidar", 30, 140)]);
    add_gpu(&mut header, "gpu0", 2);
    let pool = vec![GpuId(0)];
    add_lock(&mut header, "gpus", LockKind::Tokens { gpus: pool }, 2);
    for (name, engine) in [("gpu0 EE", EE), ("gpu0 CE0", CE0)] {
        let order = Default::default();
        add_lock(&mut header, name, LockKind::Engine { gpu: GpuId(0), engine, order }, 1);
    }
    header.graphs.push(GraphInfo { name: "vision".to_owned(), nodes: vec![TaskId(0), TaskId(1)] });
    header.edges.push(EdgeInfo {
        producer: TaskId(0),
        consumer: TaskId(1),
        produce: 2,
        consume: 2,
        threshold: 2,
        initial: 1,
        kind: EdgeKind::Token,
    });
    let (camera, detector, lidar) = (job(0, 0), job(1, 0), job(2, 0));
    let mut records = vec![
        release(0, camera, 130),
        dispatch(0, 0, camera),
        produce(5, camera, 0, 2),
        complete(5, 0, camera),
        release(5, detector, 185),
        consume(5, detector, 0, 2),
        dispatch(5, 0, detector),
        request(10, detector, 0),
        grant(10, detector, 0, 1),
        request(10, detector, 2),
        grant(10, detector, 2, 0),
    ];
    records.extend(operation(10, 20, CE0, detector));
    records.extend(spin(10, 20, 0, detector));
    records.extend([
        unlock(20, detector, 2, 0),
        request(30, detector, 1),
        grant(30, detector, 1, 0),
        suspend(30, 0, detector),
        release(35, lidar, 175),
        dispatch(35, 1, lidar),
        request(40, lidar, 1),
        suspend(40, 1, lidar),
        priority(40, detector, 2, 175),
    ]);
    records.extend(operation(30, 80, EE, detector));
    records.extend([
        interrupt(80, 0, Some(detector)),
        overhead(80, 0, OverheadKind::TopHalf, 2),
        resume(90, 0, detector),
        dispatch(90, 0, detector),
        unlock(110, detector, 1, 0),
        priority(110, detector, 1, 185),
        grant(110, lidar, 1, 0),
        unlock(110, detector, 0, 1),
        resume(110, 1, lidar),
        dispatch(110, 1, lidar),
        complete(130, 0, detector),
        unlock(130, lidar, 1, 0),
        complete(140, 1, lidar),
        release(130, job(0, 1), 260),
        dispatch(130, 0, job(0, 1)),
        produce(135, job(0, 1), 0, 2),
        complete(135, 0, job(0, 1)),
        release(135, job(1, 1), 315),
        consume(135, job(1, 1), 0, 2),
        dispatch(135, 0, job(1, 1)),
        interrupt(142, 1, None),
        overhead(142, 1, OverheadKind::TopHalf, 2),
    ]);
    records.extend(bottom_half(82, 90, 0, Some(detector)));
    records.extend(operation(112, 128, EE, lidar));
    records.extend(spin(112, 128, 1, lidar));
    records.extend(bottom_half(144, 155, 1, None));
    records.push(end(170));
    (header, by_time(records))
}
