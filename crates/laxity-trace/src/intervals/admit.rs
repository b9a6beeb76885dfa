//! What a record names must be in the header.

use laxity_model::{Engine, Instant};

use crate::intervals::TrackError;
use crate::{Event, TraceHeader};

/// Refuses a record that names what the header does not have.
pub(crate) fn admit(header: &TraceHeader, at: Instant, event: &Event) -> Result<(), TrackError> {
    let (cpus, tasks) = (header.cpus, header.tasks.len());
    if let Some(cpu) = event.cpus().into_iter().flatten().find(|cpu| cpu.index() >= cpus) {
        return Err(TrackError::UnknownCpu { at, cpu, cpus });
    }
    if let Some(job) = event.jobs().into_iter().flatten().find(|job| job.task.index() >= tasks) {
        return Err(TrackError::UnknownTask { at, job, tasks });
    }
    match named_others(header, event).into_iter().flatten().find(|&(_, index, count)| index >= count) {
        Some((what, index, count)) => Err(TrackError::Unknown { at, what, index, count }),
        None => Ok(()),
    }
}

/// What else an event names: what it is, its number, and how many the header has.
fn named_others(header: &TraceHeader, event: &Event) -> [Option<(&'static str, usize, usize)>; 2] {
    let of_lock = |index: usize| {
        let replicas = header.locks.get(index).map_or(0, |lock| usize::from(lock.replicas));
        (Some(("lock", index, header.locks.len())), replicas)
    };
    match *event {
        Event::EngineBegin { gpu, engine, .. }
        | Event::EngineEnd { gpu, engine, .. }
        | Event::EngineRate { gpu, engine, .. } => {
            let copy_engines = header.gpus.get(gpu.index()).map_or(0, |gpu| usize::from(gpu.copy_engines));
            let copy = match engine {
                Engine::Execution => None,
                Engine::Copy(number) => Some(("copy engine", usize::from(number), copy_engines)),
            };
            [Some(("GPU", gpu.index(), header.gpus.len())), copy]
        }
        Event::EngineOperation { gpu, name, .. } => {
            [Some(("GPU", gpu.index(), header.gpus.len())), Some(("operation", name as usize, header.operations.len()))]
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
        Event::Read { edge, .. } => [Some(("edge", edge.index(), header.edges.len() + header.latest.len())), None],
        Event::Priority { of: task, .. }
        | Event::Replenish { task, .. }
        | Event::Throttle { task: Some(task), .. }
        | Event::Unthrottle { task: Some(task), .. } => [Some(("task", task.index(), header.tasks.len())), None],
        _ => [None, None],
    }
}
