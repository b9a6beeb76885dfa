//! Short words for traces written by hand; times in units.

use laxity_model::{CpuId, JobId, Nanos, OverheadKind, TaskId};
use laxity_trace::{Event, Record};

use super::{UNIT, at};

/// The trace of `(time, event)`, in units.
pub fn trace(events: &[(u64, Event)]) -> Vec<Record> {
    events.iter().map(|&(time, event)| Record { at: at(time), event }).collect()
}

pub const fn job(task: u32, index: u32) -> JobId {
    JobId { task: TaskId(task), index }
}

pub fn release(job: JobId, deadline: u64) -> Event {
    Event::Release { job, deadline: at(deadline) }
}

pub fn ready(job: JobId) -> Event {
    Event::Ready { job, cpu: CpuId(0) }
}

pub fn link(cpu: u16, job: JobId) -> Event {
    Event::Link { cpu: CpuId(cpu), job: Some(job) }
}

pub fn unlink(cpu: u16) -> Event {
    Event::Link { cpu: CpuId(cpu), job: None }
}

pub fn dispatch(cpu: u16, job: JobId) -> Event {
    Event::Dispatch { cpu: CpuId(cpu), job }
}

pub fn preempt(cpu: u16, job: JobId) -> Event {
    Event::Preempt { cpu: CpuId(cpu), job }
}

pub fn suspend(cpu: u16, job: JobId) -> Event {
    Event::Suspend { cpu: CpuId(cpu), job }
}

pub fn resume(job: JobId) -> Event {
    Event::Resume { cpu: CpuId(0), job }
}

pub fn complete(cpu: u16, job: JobId) -> Event {
    Event::Complete { cpu: CpuId(cpu), job }
}

pub fn section_begin(cpu: u16, job: JobId) -> Event {
    Event::NonPreemptiveBegin { cpu: CpuId(cpu), job }
}

pub fn section_end(cpu: u16, job: JobId) -> Event {
    Event::NonPreemptiveEnd { cpu: CpuId(cpu), job }
}

pub fn overhead(cpu: u16, kind: OverheadKind, units: u64) -> Event {
    Event::Overhead { cpu: CpuId(cpu), kind, duration: Nanos(units * UNIT.0) }
}

pub fn lock_wait(cpu: u16, units: u64) -> Event {
    Event::LockWait { cpu: CpuId(cpu), duration: Nanos(units * UNIT.0) }
}

pub fn cache_delay(cpu: u16, job: JobId, kind: OverheadKind, units: u64) -> Event {
    Event::CacheDelay { cpu: CpuId(cpu), job, kind, duration: Nanos(units * UNIT.0) }
}
