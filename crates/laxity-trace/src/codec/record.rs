//! One record as bytes.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, Instant, JobId, LockId, Nanos, OverheadKind, ReplicaId, TaskId};

use super::context::{Context, Role};
use super::kinds::{extended, kind};
use super::room::Room;
use super::varint;
use crate::{DeviceId, Event, Record};

/// Flag: the time is the same as the last record's.
const SAME_TIME: u8 = 0x20;
/// Flag: the job's index is the one to be expected.
const EXPECTED_INDEX: u8 = 0x40;
/// Flag: the deadline is the time plus the task's relative deadline.
const EXPECTED_DEADLINE: u8 = 0x80;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// They end within the record, or a value does not fit its type.
    Value,
    /// A kind this version does not know.
    Kind(u8),
}

/// Writes `at` and `event`.
#[inline]
pub(super) fn encode(context: &mut Context, at: Instant, event: Event, out: &mut Room) {
    out.put(0);
    // A live recording may step back in time; the wrapped difference then takes ten bytes but survives.
    let delta = at.0.wrapping_sub(context.at.0);
    let mut flags = SAME_TIME;
    if delta != 0 {
        flags = 0;
        varint::write(out, delta);
        context.at = at;
    }
    let mut encoder = Encoder { context, flags, out };
    let kind = encoder.fields(at, event);
    let tag = kind | encoder.flags;
    out.set_first(tag);
}

pub(super) struct Encoder<'a, 'b> {
    context: &'a mut Context,
    flags: u8,
    pub(super) out: &'a mut Room<'b>,
}

impl Encoder<'_, '_> {
    /// Writes all of `event` but its tag; returns its kind.
    #[inline]
    fn fields(&mut self, at: Instant, event: Event) -> u8 {
        match event {
            Event::Release { job, deadline } => {
                self.job(job, Role::Release);
                self.deadline(job, at, deadline);
                kind::RELEASE
            }
            Event::Ready { job, cpu } => self.job_on(kind::READY, job, cpu),
            Event::Link { cpu, job: Some(job) } => self.job_on(kind::LINK, job, cpu),
            Event::Link { cpu, job: None } => {
                self.cpu(cpu);
                kind::UNLINK
            }
            Event::Dispatch { cpu, job } => self.job_on(kind::DISPATCH, job, cpu),
            Event::Preempt { cpu, job } => self.job_on(kind::PREEMPT, job, cpu),
            Event::Suspend { cpu, job } => self.job_on(kind::SUSPEND, job, cpu),
            Event::Resume { cpu, job } => self.job_on(kind::RESUME, job, cpu),
            Event::Complete { cpu, job } => {
                self.cpu(cpu);
                self.job(job, Role::Completion);
                kind::COMPLETE
            }
            Event::NonPreemptiveBegin { cpu, job } => self.job_on(kind::NON_PREEMPTIVE_BEGIN, job, cpu),
            Event::NonPreemptiveEnd { cpu, job } => self.job_on(kind::NON_PREEMPTIVE_END, job, cpu),
            Event::Overhead { cpu, kind, duration } => {
                self.cpu(cpu);
                self.out.put(kind as u8);
                varint::write(self.out, duration.0);
                kind::OVERHEAD
            }
            Event::LockWait { cpu, duration } => {
                self.cpu(cpu);
                varint::write(self.out, duration.0);
                kind::LOCK_WAIT
            }
            Event::CacheDelay { cpu, job, kind, duration } => {
                self.job_on(kind::CACHE_DELAY, job, cpu);
                self.out.put(kind as u8);
                varint::write(self.out, duration.0);
                kind::CACHE_DELAY
            }
            Event::Ipi { from, to, latency } => {
                self.cpu(from);
                self.cpu(to);
                varint::write(self.out, latency.0);
                kind::IPI
            }
            Event::EngineBegin { gpu, engine, job } => self.engine(kind::ENGINE_BEGIN, gpu, engine, job),
            Event::EngineEnd { gpu, engine, job } => self.engine(kind::ENGINE_END, gpu, engine, job),
            Event::Interrupt { cpu, device, job } => self.device(kind::INTERRUPT, cpu, device, job),
            Event::BottomHalfBegin { cpu, device, job } => self.device(kind::BOTTOM_HALF_BEGIN, cpu, device, job),
            Event::BottomHalfEnd { cpu, device, job } => self.device(kind::BOTTOM_HALF_END, cpu, device, job),
            Event::Serve { thread, device, job } => {
                self.number(device.0);
                self.job(thread, Role::Between);
                self.owner(job);
                kind::SERVE
            }
            Event::Request { job, lock } => self.lock(kind::REQUEST, job, lock),
            Event::Grant { job, lock, replica } => {
                self.number(replica.0);
                self.lock(kind::GRANT, job, lock)
            }
            Event::Unlock { job, lock, replica } => {
                self.number(replica.0);
                self.lock(kind::UNLOCK, job, lock)
            }
            Event::Withdraw { job, lock } => self.lock(kind::WITHDRAW, job, lock),
            Event::Priority { job, level, of } => {
                self.job(job, Role::Between);
                varint::write(self.out, level);
                varint::write(self.out, u64::from(of.0));
                kind::PRIORITY
            }
            Event::Produce { job, edge, tokens } => self.tokens(kind::PRODUCE, job, edge, tokens),
            Event::Consume { job, edge, tokens } => self.tokens(kind::CONSUME, job, edge, tokens),
            Event::SpinBegin { cpu, job } => self.job_on(kind::SPIN_BEGIN, job, cpu),
            Event::SpinEnd { cpu, job } => self.job_on(kind::SPIN_END, job, cpu),
            Event::Replenish { task, budget, deadline } => {
                self.out.put(extended::REPLENISH);
                varint::write(self.out, u64::from(task.0));
                varint::write(self.out, budget.0);
                varint::write(self.out, deadline.0);
                kind::EXTENDED
            }
            Event::Throttle { cpu, task } => {
                self.out.put(extended::THROTTLE);
                self.cpu(cpu);
                self.option(task.map(|task| u64::from(task.0)));
                kind::EXTENDED
            }
            Event::Unthrottle { cpu, task, lost } => {
                self.out.put(extended::UNTHROTTLE);
                self.cpu(cpu);
                self.option(task.map(|task| u64::from(task.0)));
                varint::write(self.out, lost.0);
                kind::EXTENDED
            }
            Event::Regulate { cpu, budget } => {
                self.out.put(extended::REGULATE);
                self.cpu(cpu);
                self.option(budget);
                kind::EXTENDED
            }
            Event::EngineRate { gpu, engine, rate } => {
                self.out.put(extended::ENGINE_RATE);
                self.number(gpu.0);
                self.out.put(engine.index() as u8);
                varint::write(self.out, rate);
                kind::EXTENDED
            }
            Event::Read { job, edge, value } => {
                self.out.put(extended::READ);
                self.option(value.map(u64::from));
                self.tokens(kind::EXTENDED, job, edge, 0)
            }
            Event::Stolen { cpu, duration } => {
                self.out.put(extended::STOLEN);
                self.cpu(cpu);
                varint::write(self.out, duration.0);
                kind::EXTENDED
            }
            Event::EngineOperation { gpu, engine, name } => {
                self.out.put(extended::ENGINE_OPERATION);
                self.number(gpu.0);
                self.out.put(engine.index() as u8);
                varint::write(self.out, name.into());
                kind::EXTENDED
            }
            Event::Outside { .. }
            | Event::OutsiderName { .. }
            | Event::OutsiderThread { .. }
            | Event::OutsidersLost { .. } => self.outside(event),
            Event::End => kind::END,
        }
    }

    fn engine(&mut self, kind: u8, gpu: GpuId, engine: Engine, job: JobId) -> u8 {
        self.number(gpu.0);
        self.out.put(engine.index() as u8);
        self.job(job, Role::Between);
        kind
    }

    fn device(&mut self, kind: u8, cpu: CpuId, device: DeviceId, owner: Option<JobId>) -> u8 {
        self.cpu(cpu);
        self.number(device.0);
        self.owner(owner);
        kind
    }

    /// 0 and nothing more for none; else 1 and the job, whose index is written in full: the tag has one flag only, and
    /// it may be another job's.
    fn owner(&mut self, owner: Option<JobId>) {
        match owner {
            None => self.out.put(0),
            Some(job) => {
                self.out.put(1);
                varint::write(self.out, u64::from(job.task.0));
                varint::write(self.out, u64::from(job.index));
            }
        }
    }

    fn lock(&mut self, kind: u8, job: JobId, lock: LockId) -> u8 {
        self.number(lock.0);
        self.job(job, Role::Between);
        kind
    }

    fn tokens(&mut self, kind: u8, job: JobId, edge: EdgeId, tokens: u32) -> u8 {
        varint::write(self.out, u64::from(edge.0));
        varint::write(self.out, u64::from(tokens));
        self.job(job, Role::Between);
        kind
    }

    /// 0 for none, else 1 and the number.
    fn option(&mut self, number: Option<u64>) {
        self.out.put(u8::from(number.is_some()));
        if let Some(number) = number {
            varint::write(self.out, number);
        }
    }

    pub(super) fn number(&mut self, number: u16) {
        varint::write(self.out, u64::from(number));
    }

    #[inline]
    fn job_on(&mut self, kind: u8, job: JobId, cpu: CpuId) -> u8 {
        self.cpu(cpu);
        self.job(job, Role::Between);
        kind
    }

    #[inline]
    pub(super) fn cpu(&mut self, cpu: CpuId) {
        varint::write(self.out, u64::from(cpu.0));
    }

    #[inline]
    fn job(&mut self, job: JobId, role: Role) {
        varint::write(self.out, u64::from(job.task.0));
        if job.index == self.context.guess_index(job.task.index(), role) {
            self.flags |= EXPECTED_INDEX;
        } else {
            varint::write(self.out, u64::from(job.index));
        }
        self.context.saw(job, role);
    }

    #[inline]
    fn deadline(&mut self, job: JobId, at: Instant, deadline: Instant) {
        if deadline == self.context.guess_deadline(job.task.index(), at) {
            self.flags |= EXPECTED_DEADLINE;
        } else {
            varint::write(self.out, deadline.0);
        }
    }
}

/// Takes a record off the front of `bytes`, which must not be empty.
pub(super) fn decode(context: &mut Context, bytes: &mut &[u8]) -> Result<Record, Malformed> {
    let tag = take_byte(bytes)?;
    if tag & SAME_TIME == 0 {
        let delta = varint::read(bytes).ok_or(Malformed::Value)?;
        context.at = Instant(context.at.0.wrapping_add(delta));
    }
    let at = context.at;
    let event = Decoder { context, flags: tag, bytes }.fields(at, tag & kind::MASK)?;
    Ok(Record { at, event })
}

pub(super) struct Decoder<'a, 'b> {
    context: &'a mut Context,
    flags: u8,
    pub(super) bytes: &'a mut &'b [u8],
}

impl Decoder<'_, '_> {
    fn fields(&mut self, at: Instant, kind: u8) -> Result<Event, Malformed> {
        if kind == kind::RELEASE {
            let job = self.job(Role::Release)?;
            return Ok(Event::Release { job, deadline: self.deadline(job, at)? });
        }
        if kind == kind::END {
            return Ok(Event::End);
        }
        if let Some(event) = self.without_cpu(kind)? {
            return Ok(event);
        }
        // Every other kind begins with a CPU.
        let cpu = self.cpu()?;
        Ok(match kind {
            kind::READY => Event::Ready { job: self.job(Role::Between)?, cpu },
            kind::LINK => Event::Link { cpu, job: Some(self.job(Role::Between)?) },
            kind::UNLINK => Event::Link { cpu, job: None },
            kind::DISPATCH => Event::Dispatch { cpu, job: self.job(Role::Between)? },
            kind::PREEMPT => Event::Preempt { cpu, job: self.job(Role::Between)? },
            kind::SUSPEND => Event::Suspend { cpu, job: self.job(Role::Between)? },
            kind::RESUME => Event::Resume { cpu, job: self.job(Role::Between)? },
            kind::COMPLETE => Event::Complete { cpu, job: self.job(Role::Completion)? },
            kind::NON_PREEMPTIVE_BEGIN => Event::NonPreemptiveBegin { cpu, job: self.job(Role::Between)? },
            kind::NON_PREEMPTIVE_END => Event::NonPreemptiveEnd { cpu, job: self.job(Role::Between)? },
            kind::OVERHEAD => Event::Overhead { cpu, kind: self.overhead()?, duration: self.span()? },
            kind::LOCK_WAIT => Event::LockWait { cpu, duration: self.span()? },
            kind::CACHE_DELAY => {
                Event::CacheDelay { cpu, job: self.job(Role::Between)?, kind: self.overhead()?, duration: self.span()? }
            }
            kind::IPI => Event::Ipi { from: cpu, to: self.cpu()?, latency: self.span()? },
            kind::INTERRUPT => Event::Interrupt { cpu, device: self.device()?, job: self.owner()? },
            kind::BOTTOM_HALF_BEGIN => Event::BottomHalfBegin { cpu, device: self.device()?, job: self.owner()? },
            kind::BOTTOM_HALF_END => Event::BottomHalfEnd { cpu, device: self.device()?, job: self.owner()? },
            kind::SPIN_BEGIN => Event::SpinBegin { cpu, job: self.job(Role::Between)? },
            kind::SPIN_END => Event::SpinEnd { cpu, job: self.job(Role::Between)? },
            _ => return Err(Malformed::Kind(kind)),
        })
    }

    /// The kinds that name no CPU, or not first.
    fn without_cpu(&mut self, kind: u8) -> Result<Option<Event>, Malformed> {
        Ok(Some(match kind {
            kind::ENGINE_BEGIN | kind::ENGINE_END => {
                let (gpu, engine, job) = (GpuId(self.u16()?), self.engine()?, self.job(Role::Between)?);
                match kind {
                    kind::ENGINE_BEGIN => Event::EngineBegin { gpu, engine, job },
                    _ => Event::EngineEnd { gpu, engine, job },
                }
            }
            kind::SERVE => {
                let (device, thread) = (self.device()?, self.job(Role::Between)?);
                Event::Serve { thread, device, job: self.owner()? }
            }
            kind::REQUEST => Event::Request { lock: LockId(self.u16()?), job: self.job(Role::Between)? },
            kind::WITHDRAW => Event::Withdraw { lock: LockId(self.u16()?), job: self.job(Role::Between)? },
            kind::GRANT | kind::UNLOCK => {
                let (replica, lock) = (ReplicaId(self.u16()?), LockId(self.u16()?));
                let job = self.job(Role::Between)?;
                match kind {
                    kind::GRANT => Event::Grant { job, lock, replica },
                    _ => Event::Unlock { job, lock, replica },
                }
            }
            kind::PRIORITY => {
                let (job, level) = (self.job(Role::Between)?, varint::read(self.bytes).ok_or(Malformed::Value)?);
                Event::Priority { job, level, of: TaskId(self.u32()?) }
            }
            kind::PRODUCE | kind::CONSUME => {
                let (edge, tokens) = (EdgeId(self.u32()?), self.u32()?);
                let job = self.job(Role::Between)?;
                match kind {
                    kind::PRODUCE => Event::Produce { job, edge, tokens },
                    _ => Event::Consume { job, edge, tokens },
                }
            }
            kind::EXTENDED => match take_byte(self.bytes)? {
                extended::REPLENISH => {
                    let (task, budget) = (TaskId(self.u32()?), self.span()?);
                    Event::Replenish { task, budget, deadline: Instant(self.span()?.0) }
                }
                extended::THROTTLE => Event::Throttle { cpu: self.cpu()?, task: self.task()? },
                extended::UNTHROTTLE => Event::Unthrottle { cpu: self.cpu()?, task: self.task()?, lost: self.span()? },
                extended::REGULATE => Event::Regulate { cpu: self.cpu()?, budget: self.option()? },
                extended::ENGINE_RATE => {
                    let (gpu, engine) = (GpuId(self.u16()?), self.engine()?);
                    Event::EngineRate { gpu, engine, rate: self.span()?.0 }
                }
                extended::STOLEN => Event::Stolen { cpu: self.cpu()?, duration: self.span()? },
                extended::ENGINE_OPERATION => {
                    let (gpu, engine) = (GpuId(self.u16()?), self.engine()?);
                    Event::EngineOperation { gpu, engine, name: self.u32()? }
                }
                extended::READ => {
                    let (value, edge, _) = (self.task()?.map(|index| index.0), EdgeId(self.u32()?), self.u32()?);
                    Event::Read { job: self.job(Role::Between)?, edge, value }
                }
                other => self.outside(other)?.ok_or(Malformed::Kind(other))?,
            },
            _ => return Ok(None),
        }))
    }

    fn option(&mut self) -> Result<Option<u64>, Malformed> {
        match take_byte(self.bytes)? {
            0 => Ok(None),
            1 => varint::read(self.bytes).map(Some).ok_or(Malformed::Value),
            _ => Err(Malformed::Value),
        }
    }

    fn task(&mut self) -> Result<Option<TaskId>, Malformed> {
        self.option()?.map(|task| u32::try_from(task).map(TaskId).map_err(|_| Malformed::Value)).transpose()
    }

    fn engine(&mut self) -> Result<Engine, Malformed> {
        let index = take_byte(self.bytes)?;
        Engine::ALL.get(usize::from(index)).copied().ok_or(Malformed::Value)
    }

    fn device(&mut self) -> Result<DeviceId, Malformed> {
        self.u16().map(DeviceId)
    }

    fn owner(&mut self) -> Result<Option<JobId>, Malformed> {
        match take_byte(self.bytes)? {
            0 => Ok(None),
            1 => Ok(Some(JobId { task: TaskId(self.u32()?), index: self.u32()? })),
            _ => Err(Malformed::Value),
        }
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        let value = varint::read(self.bytes).ok_or(Malformed::Value)?;
        u16::try_from(value).map_err(|_| Malformed::Value)
    }

    pub(super) fn cpu(&mut self) -> Result<CpuId, Malformed> {
        let cpu = varint::read(self.bytes).ok_or(Malformed::Value)?;
        u16::try_from(cpu).map(CpuId).map_err(|_| Malformed::Value)
    }

    fn job(&mut self, role: Role) -> Result<JobId, Malformed> {
        let task = TaskId(self.u32()?);
        let index = match self.flags & EXPECTED_INDEX {
            0 => self.u32()?,
            _ => self.context.guess_index(task.index(), role),
        };
        let job = JobId { task, index };
        self.context.saw(job, role);
        Ok(job)
    }

    fn deadline(&mut self, job: JobId, at: Instant) -> Result<Instant, Malformed> {
        match self.flags & EXPECTED_DEADLINE {
            0 => varint::read(self.bytes).map(Instant).ok_or(Malformed::Value),
            _ => Ok(self.context.guess_deadline(job.task.index(), at)),
        }
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let value = varint::read(self.bytes).ok_or(Malformed::Value)?;
        u32::try_from(value).map_err(|_| Malformed::Value)
    }

    pub(super) fn span(&mut self) -> Result<Nanos, Malformed> {
        varint::read(self.bytes).map(Nanos).ok_or(Malformed::Value)
    }

    fn overhead(&mut self) -> Result<OverheadKind, Malformed> {
        let index = take_byte(self.bytes)?;
        OverheadKind::ALL.get(usize::from(index)).copied().ok_or(Malformed::Value)
    }
}

pub(super) fn take_byte(bytes: &mut &[u8]) -> Result<u8, Malformed> {
    let (&byte, rest) = bytes.split_first().ok_or(Malformed::Value)?;
    *bytes = rest;
    Ok(byte)
}
