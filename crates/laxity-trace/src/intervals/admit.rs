//! What a record names must be in the header.

use laxity_model::{CpuId, Engine, Instant, JobId};

use crate::intervals::TrackError;
use crate::{Event, TraceHeader};

/// Refuses a record that names what the header does not have.
pub(super) fn admit(header: &TraceHeader, at: Instant, event: &Event) -> Result<(), TrackError> {
    let (cpus, tasks) = (header.cpus, header.tasks.len());
    if let Some(cpu) = named_cpus(event).into_iter().flatten().find(|cpu| cpu.index() >= cpus) {
        return Err(TrackError::UnknownCpu { at, cpu, cpus });
    }
    if let Some(job) = named_jobs(event).into_iter().flatten().find(|job| job.task.index() >= tasks) {
        return Err(TrackError::UnknownTask { at, job, tasks });
    }
    match named_others(header, event).into_iter().flatten().find(|&(_, index, count)| index >= count) {
        Some((what, index, count)) => Err(TrackError::Unknown { at, what, index, count }),
        None => Ok(()),
    }
}

fn named_cpus(event: &Event) -> [Option<CpuId>; 2] {
    match *event {
        Event::Link { cpu, .. }
        | Event::Ready { cpu, .. }
        | Event::Dispatch { cpu, .. }
        | Event::Preempt { cpu, .. }
        | Event::Suspend { cpu, .. }
        | Event::Resume { cpu, .. }
        | Event::Complete { cpu, .. }
        | Event::NonPreemptiveBegin { cpu, .. }
        | Event::NonPreemptiveEnd { cpu, .. }
        | Event::CacheDelay { cpu, .. }
        | Event::Overhead { cpu, .. }
        | Event::LockWait { cpu, .. }
        | Event::Interrupt { cpu, .. }
        | Event::BottomHalfBegin { cpu, .. }
        | Event::BottomHalfEnd { cpu, .. }
        | Event::SpinBegin { cpu, .. }
        | Event::SpinEnd { cpu, .. } => [Some(cpu), None],
        Event::Ipi { from, to, .. } => [Some(from), Some(to)],
        Event::Release { .. }
        | Event::EngineBegin { .. }
        | Event::EngineEnd { .. }
        | Event::Serve { .. }
        | Event::Request { .. }
        | Event::Grant { .. }
        | Event::Unlock { .. }
        | Event::Withdraw { .. }
        | Event::Priority { .. }
        | Event::Produce { .. }
        | Event::Consume { .. }
        | Event::Replenish { .. }
        | Event::End => [None, None],
    }
}

fn named_jobs(event: &Event) -> [Option<JobId>; 2] {
    match *event {
        Event::Release { job, .. }
        | Event::Ready { job, .. }
        | Event::Dispatch { job, .. }
        | Event::Preempt { job, .. }
        | Event::Suspend { job, .. }
        | Event::Resume { job, .. }
        | Event::Complete { job, .. }
        | Event::NonPreemptiveBegin { job, .. }
        | Event::NonPreemptiveEnd { job, .. }
        | Event::CacheDelay { job, .. }
        | Event::EngineBegin { job, .. }
        | Event::EngineEnd { job, .. }
        | Event::Request { job, .. }
        | Event::Grant { job, .. }
        | Event::Unlock { job, .. }
        | Event::Withdraw { job, .. }
        | Event::Priority { job, .. }
        | Event::Produce { job, .. }
        | Event::Consume { job, .. }
        | Event::SpinBegin { job, .. }
        | Event::SpinEnd { job, .. } => [Some(job), None],
        Event::Link { job, .. }
        | Event::Interrupt { job, .. }
        | Event::BottomHalfBegin { job, .. }
        | Event::BottomHalfEnd { job, .. } => [job, None],
        Event::Serve { thread, job, .. } => [Some(thread), job],
        Event::Overhead { .. } | Event::LockWait { .. } | Event::Ipi { .. } | Event::Replenish { .. } | Event::End => {
            [None, None]
        }
    }
}

/// What else an event names: what it is, its number, and how many the header has.
fn named_others(header: &TraceHeader, event: &Event) -> [Option<(&'static str, usize, usize)>; 2] {
    let of_lock = |index: usize| {
        let replicas = header.locks.get(index).map_or(0, |lock| usize::from(lock.replicas));
        (Some(("lock", index, header.locks.len())), replicas)
    };
    match *event {
        Event::EngineBegin { gpu, engine, .. } | Event::EngineEnd { gpu, engine, .. } => {
            let copy_engines = header.gpus.get(gpu.index()).map_or(0, |gpu| usize::from(gpu.copy_engines));
            let copy = match engine {
                Engine::Execution => None,
                Engine::Copy(number) => Some(("copy engine", usize::from(number), copy_engines)),
            };
            [Some(("GPU", gpu.index(), header.gpus.len())), copy]
        }
        Event::Interrupt { device, .. }
        | Event::BottomHalfBegin { device, .. }
        | Event::BottomHalfEnd { device, .. }
        | Event::Serve { device, .. } => [Some(("device", device.index(), header.devices.len())), None],
        Event::Request { lock, .. } | Event::Withdraw { lock, .. } => [of_lock(lock.index()).0, None],
        Event::Grant { lock, replica, .. } | Event::Unlock { lock, replica, .. } => {
            let (lock, replicas) = of_lock(lock.index());
            [lock, Some(("replica", replica.index(), replicas))]
        }
        Event::Produce { edge, .. } | Event::Consume { edge, .. } => {
            [Some(("edge", edge.index(), header.edges.len())), None]
        }
        Event::Priority { of: task, .. } | Event::Replenish { task, .. } => {
            [Some(("task", task.index(), header.tasks.len())), None]
        }
        _ => [None, None],
    }
}
