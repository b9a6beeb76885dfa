//! Which thread runs on which CPU, as Linux's ftrace tells it.

use std::io;

use laxity_model::{CpuId, Instant, PriorityRule, TaskId};

use super::messages::{FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWaking, TracePacket};
use super::writer::{PacketWriter, tid};
use crate::TraceHeader;

/// Events of a CPU collected into one packet.
const BUNDLE: usize = 256;
/// The priority that Linux shows of a thread of nice value 0.
const NICE_0: i32 = 120;

/// In what state a thread is switched out, as Linux numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It waits for its next job or the end of its suspension.
    Sleeping = 1,
    /// It could go on.
    Preempted = 256,
}

/// Writes `sched_switch` and `sched_waking` events.
pub struct Switches<'a> {
    header: &'a TraceHeader,
    cpus: Vec<Cpu>,
    /// CPUs that switched a thread out at `now` and nothing in yet.
    open: Vec<CpuId>,
    now: Instant,
}

#[derive(Default)]
struct Cpu {
    running: Option<TaskId>,
    /// The running thread was switched out in this state; what follows it is not known yet.
    leaving: Option<ThreadState>,
    events: Vec<FtraceEvent>,
}

impl<'a> Switches<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let cpus = (0..=u16::MAX).take(header.cpus).map(|_| Cpu::default()).collect();
        Switches { header, cpus, open: Vec::new(), now: Instant::ZERO }
    }

    /// Time goes on: whatever was switched out before and followed by nothing made room for the idle thread.
    pub fn advance<W: io::Write>(&mut self, now: Instant, packets: &mut PacketWriter<W>) -> io::Result<()> {
        if now > self.now {
            self.close(packets)?;
            self.now = now;
        }
        Ok(())
    }

    /// The thread on `cpu` leaves it.
    pub fn switch_out(&mut self, cpu: CpuId, task: TaskId, state: ThreadState) {
        let Some(slot) = self.cpus.get_mut(cpu.index()) else { return };
        if slot.running == Some(task) && slot.leaving.is_none() {
            slot.leaving = Some(state);
            self.open.push(cpu);
        }
    }

    /// A task's thread is switched in: in one switch with the one that left at the same time.
    pub fn switch_in<W: io::Write>(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        self.switch(cpu, Some(task), packets)
    }

    /// A task's thread becomes ready.
    pub fn wake<W: io::Write>(&mut self, cpu: CpuId, task: TaskId, packets: &mut PacketWriter<W>) -> io::Result<()> {
        // A thread that has just left must be asleep before it is woken.
        if self.open.iter().any(|&cpu| self.cpus[cpu.index()].running == Some(task)) {
            self.close(packets)?;
        }
        let (comm, pid, prio) = self.thread(Some(task));
        let waking = SchedWaking {
            comm: Some(comm),
            pid: Some(pid),
            prio: Some(prio),
            success: Some(1),
            target_cpu: Some(i32::from(cpu.0)),
        };
        let event = FtraceEvent { sched_waking: Some(waking), ..self.event(cpu) };
        self.push(cpu, event, packets)
    }

    /// Writes everything that is still held back.
    pub fn finish<W: io::Write>(mut self, packets: &mut PacketWriter<W>) -> io::Result<()> {
        self.close(packets)?;
        for cpu in (0..=u16::MAX).take(self.cpus.len()) {
            self.flush(CpuId(cpu), packets)?;
        }
        Ok(())
    }

    fn close<W: io::Write>(&mut self, packets: &mut PacketWriter<W>) -> io::Result<()> {
        for cpu in std::mem::take(&mut self.open) {
            if self.cpus[cpu.index()].leaving.is_some() {
                self.switch(cpu, None, packets)?;
            }
        }
        Ok(())
    }

    fn switch<W: io::Write>(
        &mut self,
        cpu: CpuId,
        next: Option<TaskId>,
        packets: &mut PacketWriter<W>,
    ) -> io::Result<()> {
        let Some(slot) = self.cpus.get_mut(cpu.index()) else { return Ok(()) };
        let state = slot.leaving.take();
        let previous = std::mem::replace(&mut slot.running, next);
        let prev_state = match previous {
            None => 0,
            Some(_) => state.unwrap_or(ThreadState::Preempted) as i64,
        };
        let (prev_comm, prev_pid, prev_prio) = self.thread(previous);
        let (next_comm, next_pid, next_prio) = self.thread(next);
        let switch = SchedSwitch {
            prev_comm: Some(prev_comm),
            prev_pid: Some(prev_pid),
            prev_prio: Some(prev_prio),
            prev_state: Some(prev_state),
            next_comm: Some(next_comm),
            next_pid: Some(next_pid),
            next_prio: Some(next_prio),
        };
        let pid = u32::try_from(prev_pid).ok();
        let event = FtraceEvent { pid, sched_switch: Some(switch), ..self.event(cpu) };
        self.push(cpu, event, packets)
    }

    /// An event of the thread that runs on `cpu`.
    fn event(&self, cpu: CpuId) -> FtraceEvent {
        let running = self.cpus.get(cpu.index()).and_then(|slot| slot.running);
        let pid = u32::try_from(running.map_or(0, tid)).ok();
        FtraceEvent { timestamp: Some(self.now.0), pid, ..FtraceEvent::default() }
    }

    fn push<W: io::Write>(&mut self, cpu: CpuId, event: FtraceEvent, packets: &mut PacketWriter<W>) -> io::Result<()> {
        let Some(slot) = self.cpus.get_mut(cpu.index()) else { return Ok(()) };
        slot.events.push(event);
        if slot.events.len() >= BUNDLE { self.flush(cpu, packets) } else { Ok(()) }
    }

    fn flush<W: io::Write>(&mut self, cpu: CpuId, packets: &mut PacketWriter<W>) -> io::Result<()> {
        let event = std::mem::take(&mut self.cpus[cpu.index()].events);
        if event.is_empty() {
            return Ok(());
        }
        let bundle = FtraceEventBundle { cpu: Some(u32::from(cpu.0)), event };
        packets.packet(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() })
    }

    /// Name, number and priority of a thread; `None` is the idle thread.
    ///
    /// Priorities are those Linux shows: -1 for a thread scheduled by deadline, its rank under fixed priorities, 120 in
    /// the fair class and for the idle thread.
    fn thread(&self, task: Option<TaskId>) -> (String, i32, i32) {
        let Some(task) = task else { return ("swapper".to_owned(), 0, NICE_0) };
        let info = self.header.tasks.get(task.index());
        let prio = match (self.header.scheduler.rule, info) {
            (PriorityRule::Edf, _) | (_, None) => -1,
            (PriorityRule::Fair, _) => NICE_0,
            (_, Some(info)) => i32::try_from(info.rank).unwrap_or(i32::MAX),
        };
        (info.map(|info| info.name.clone()).unwrap_or_default(), tid(task), prio)
    }
}
