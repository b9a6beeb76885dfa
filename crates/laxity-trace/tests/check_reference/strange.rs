//! Records of every kind, with any values.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, Instant, JobId, LockId, Nanos, OverheadKind, ReplicaId, TaskId};
use laxity_trace::{DeviceId, Event, Outsider, OutsiderKind, Record, ShortName};
use proptest::prelude::*;

fn any_job() -> impl Strategy<Value = JobId> {
    // Mostly known tasks and small indices, so that guesses come true and fail; sometimes anything.
    let task = prop_oneof![9 => 0..4u32, 1 => any::<u32>()];
    let index = prop_oneof![9 => 0..3u32, 1 => any::<u32>()];
    (task, index).prop_map(|(task, index)| JobId { task: TaskId(task), index })
}

fn any_event() -> impl Strategy<Value = Event> {
    let cpu = || prop_oneof![9 => 0..4u16, 1 => any::<u16>()].prop_map(CpuId);
    let kind = || (0..OverheadKind::ALL.len()).prop_map(|index| OverheadKind::ALL[index]);
    let span = || (any::<u64>(), 0..64u32).prop_map(|(span, shift)| Nanos(span >> shift));
    prop_oneof![
        (any_job(), any::<u64>()).prop_map(|(job, d)| Event::Release { job, deadline: Instant(d) }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Ready { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Link { job: Some(job), cpu }),
        cpu().prop_map(|cpu| Event::Link { job: None, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Dispatch { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Preempt { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Suspend { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Resume { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::Complete { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::NonPreemptiveBegin { job, cpu }),
        (any_job(), cpu()).prop_map(|(job, cpu)| Event::NonPreemptiveEnd { job, cpu }),
        (cpu(), kind(), span()).prop_map(|(cpu, kind, duration)| Event::Overhead { cpu, kind, duration }),
        (cpu(), span()).prop_map(|(cpu, duration)| Event::LockWait { cpu, duration }),
        (any_job(), cpu(), kind(), span()).prop_map(|(job, cpu, kind, duration)| Event::CacheDelay {
            job,
            cpu,
            kind,
            duration
        }),
        (cpu(), cpu(), span()).prop_map(|(from, to, latency)| Event::Ipi { from, to, latency }),
        any_device_event(),
        any_lock_event(),
        any_token_event(),
        any_memory_event(),
        any_outside_event(),
        Just(Event::End),
    ]
}

/// Mostly what a small header lists, sometimes anything.
fn any_number() -> impl Strategy<Value = u16> {
    prop_oneof![9 => 0..4u16, 1 => any::<u16>()]
}

fn any_device_event() -> impl Strategy<Value = Event> {
    let cpu = || any_number().prop_map(CpuId);
    let device = || any_number().prop_map(DeviceId);
    let owner = || prop::option::weighted(0.8, any_job());
    let engine = || prop_oneof![Just(Engine::Execution), (0..2u8).prop_map(Engine::Copy)];
    let gpu = || any_number().prop_map(GpuId);
    prop_oneof![
        (gpu(), engine(), any_job()).prop_map(|(gpu, engine, job)| Event::EngineBegin { gpu, engine, job }),
        (gpu(), engine(), any_job()).prop_map(|(gpu, engine, job)| Event::EngineEnd { gpu, engine, job }),
        (cpu(), device(), owner()).prop_map(|(cpu, device, job)| Event::Interrupt { cpu, device, job }),
        (cpu(), device(), owner()).prop_map(|(cpu, device, job)| Event::BottomHalfBegin { cpu, device, job }),
        (cpu(), device(), owner()).prop_map(|(cpu, device, job)| Event::BottomHalfEnd { cpu, device, job }),
        (any_job(), device(), owner()).prop_map(|(thread, device, job)| Event::Serve { thread, device, job }),
        (cpu(), any_job()).prop_map(|(cpu, job)| Event::SpinBegin { cpu, job }),
        (cpu(), any_job()).prop_map(|(cpu, job)| Event::SpinEnd { cpu, job }),
    ]
}

fn any_lock_event() -> impl Strategy<Value = Event> {
    let lock = || any_number().prop_map(LockId);
    let replica = || any_number().prop_map(ReplicaId);
    let task = || any_number().prop_map(|task| TaskId(task.into()));
    prop_oneof![
        (any_job(), lock()).prop_map(|(job, lock)| Event::Request { job, lock }),
        (any_job(), lock(), replica()).prop_map(|(job, lock, replica)| Event::Grant { job, lock, replica }),
        (any_job(), lock(), replica()).prop_map(|(job, lock, replica)| Event::Unlock { job, lock, replica }),
        (any_job(), lock()).prop_map(|(job, lock)| Event::Withdraw { job, lock }),
        (any_job(), any::<u64>(), task()).prop_map(|(job, level, of)| Event::Priority { job, level, of }),
        (task(), any::<u64>()).prop_map(|(task, deadline)| Event::Replenish {
            task,
            budget: Nanos(deadline),
            deadline: Instant(deadline)
        }),
    ]
}

fn any_memory_event() -> impl Strategy<Value = Event> {
    let cpu = || any_number().prop_map(CpuId);
    let task = || prop::option::of(any_number().prop_map(|task| TaskId(task.into())));
    let engine = || prop_oneof![Just(Engine::Execution), (0..2u8).prop_map(Engine::Copy)];
    prop_oneof![
        (cpu(), task()).prop_map(|(cpu, task)| Event::Throttle { cpu, task }),
        (cpu(), task(), any::<u64>()).prop_map(|(cpu, task, lost)| Event::Unthrottle { cpu, task, lost: Nanos(lost) }),
        (any_number().prop_map(GpuId), engine(), any::<u32>()).prop_map(|(gpu, engine, name)| Event::EngineOperation {
            gpu,
            engine,
            name,
        }),
        (cpu(), any::<u64>()).prop_map(|(cpu, duration)| Event::Stolen { cpu, duration: Nanos(duration) }),
        (cpu(), prop::option::of(any::<u64>())).prop_map(|(cpu, budget)| Event::Regulate { cpu, budget }),
        (any_number().prop_map(GpuId), engine(), any::<u64>()).prop_map(|(gpu, engine, rate)| Event::EngineRate {
            gpu,
            engine,
            rate
        }),
    ]
}

fn any_outside_event() -> impl Strategy<Value = Event> {
    let cpu = || any_number().prop_map(CpuId);
    let kind = || (0..OutsiderKind::ALL.len()).prop_map(|index| OutsiderKind::ALL[index]);
    let outsider = move || (kind(), any_number()).prop_map(|(kind, number)| Outsider { kind, number });
    let name = "[a-zé/:0-9]{0,15}".prop_map(|name| ShortName::pieces(&name)[0]);
    prop_oneof![
        2 => (cpu(), prop::option::of(outsider())).prop_map(|(cpu, by)| Event::Outside { cpu, by }),
        1 => (outsider(), any::<u8>(), name).prop_map(|(outsider, piece, name)| Event::OutsiderName { outsider, piece, name }),
        1 => (outsider(), any::<u32>()).prop_map(|(outsider, thread)| Event::OutsiderThread { outsider, thread }),
        1 => (cpu(), any::<u64>()).prop_map(|(cpu, records)| Event::OutsidersLost { cpu, records }),
    ]
}

fn any_token_event() -> impl Strategy<Value = Event> {
    let edge = || any_number().prop_map(|edge| EdgeId(edge.into()));
    let tokens = || prop_oneof![9 => 0..4u32, 1 => any::<u32>()];
    prop_oneof![
        (any_job(), edge(), tokens()).prop_map(|(job, edge, tokens)| Event::Produce { job, edge, tokens }),
        (any_job(), edge(), tokens()).prop_map(|(job, edge, tokens)| Event::Consume { job, edge, tokens }),
    ]
}

/// Records that no scheduler would write.
pub fn any_records() -> impl Strategy<Value = Vec<Record>> {
    let time = prop_oneof![3 => 0..3u64, 1 => any::<u64>()];
    prop::collection::vec((time, any_event()).prop_map(|(at, event)| Record { at: Instant(at), event }), 0..60)
}
