//! Short words for traces written by hand; times in units.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, JobId, LockId, Nanos, OverheadKind, ReplicaId, TaskId};
use laxity_trace::{DeviceId, Event, Record};

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

pub fn engine_begin(gpu: u16, engine: Engine, job: JobId) -> Event {
    Event::EngineBegin { gpu: GpuId(gpu), engine, job }
}

pub fn engine_end(gpu: u16, engine: Engine, job: JobId) -> Event {
    Event::EngineEnd { gpu: GpuId(gpu), engine, job }
}

pub fn interrupt(cpu: u16, owner: JobId) -> Event {
    Event::Interrupt { cpu: CpuId(cpu), device: DeviceId(0), job: Some(owner) }
}

pub fn half_begin(cpu: u16, owner: JobId) -> Event {
    Event::BottomHalfBegin { cpu: CpuId(cpu), device: DeviceId(0), job: Some(owner) }
}

pub fn half_end(cpu: u16, owner: JobId) -> Event {
    Event::BottomHalfEnd { cpu: CpuId(cpu), device: DeviceId(0), job: Some(owner) }
}

pub fn serve(thread: JobId, owner: JobId) -> Event {
    Event::Serve { thread, device: DeviceId(0), job: Some(owner) }
}

pub fn request(job: JobId, lock: u16) -> Event {
    Event::Request { job, lock: LockId(lock) }
}

pub fn grant(job: JobId, lock: u16, replica: u16) -> Event {
    Event::Grant { job, lock: LockId(lock), replica: ReplicaId(replica) }
}

pub fn unlock(job: JobId, lock: u16, replica: u16) -> Event {
    Event::Unlock { job, lock: LockId(lock), replica: ReplicaId(replica) }
}

pub fn withdraw(job: JobId, lock: u16) -> Event {
    Event::Withdraw { job, lock: LockId(lock) }
}

/// `job` has the deadline of `of`, in units.
pub fn priority(job: JobId, deadline: u64, of: u32) -> Event {
    Event::Priority { job, level: at(deadline).0, of: TaskId(of) }
}

pub fn produce(job: JobId, edge: u32, tokens: u32) -> Event {
    Event::Produce { job, edge: EdgeId(edge), tokens }
}

pub fn consume(job: JobId, edge: u32, tokens: u32) -> Event {
    Event::Consume { job, edge: EdgeId(edge), tokens }
}

pub fn spin_begin(cpu: u16, job: JobId) -> Event {
    Event::SpinBegin { cpu: CpuId(cpu), job }
}

pub fn spin_end(cpu: u16, job: JobId) -> Event {
    Event::SpinEnd { cpu: CpuId(cpu), job }
}
