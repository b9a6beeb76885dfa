//! Who has a CPU: the dispatched job, a bottom half on its stack, or overhead.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind};

use super::interrupts::Interrupts;
use super::{Tracker, push};
use crate::intervals::{Activity, Begin, Interval, Source, Stop};

#[derive(Clone, Debug, Default)]
pub(super) struct Cpu {
    /// Overhead lasts until then.
    busy_until: Instant,
    running: Option<Running>,
    /// A bottom half on the stack, and where its current piece began or will begin.
    bottom_half: Option<(Source, Instant)>,
    interrupts: Interrupts,
}

/// A dispatched job.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: JobId,
    /// The current piece began here, or begins when the CPU's overhead is over; never, while a bottom half is on the
    /// stack.
    since: Instant,
    begin: Begin,
    /// The piece before, which overhead interrupted.
    held: Option<Interval>,
}

impl Cpu {
    /// When the job on this CPU can go on, as far as is known.
    fn free_from(&self, now: Instant) -> Instant {
        if self.bottom_half.is_some() { Instant::NEVER } else { now.max(self.busy_until) }
    }
}

impl Tracker<'_> {
    pub(super) fn dispatch(&mut self, cpu: CpuId, job: JobId, intervals: &mut Vec<Interval>) {
        // A CPU that is dispatched to without a switch-out first: no legal schedule, but it stays drawable.
        self.stop(cpu, None, Stop::Preempted, intervals);
        let history = &mut self.live(job).history;
        let begin = match history.last_cpu {
            None => Begin::First,
            Some(last) if last == cpu => Begin::Again,
            Some(from) => {
                history.migrations = history.migrations.saturating_add(1);
                Begin::Migrated { from }
            }
        };
        history.last_cpu = Some(cpu);
        let since = self.cpus[cpu.index()].free_from(self.now);
        self.cpus[cpu.index()].running = Some(Running { job, since, begin, held: None });
    }

    /// Overhead takes `cpu`: the current piece ends, the next begins when the CPU is free again.
    pub(super) fn overhead(&mut self, cpu: CpuId, kind: OverheadKind, duration: Nanos, intervals: &mut Vec<Interval>) {
        let source = self.cpus[cpu.index()].interrupts.handle(kind);
        self.interrupt(cpu, duration, Activity::Overhead { cpu, kind, source }, intervals);
    }

    /// `activity` takes `cpu` for `duration`.
    pub(super) fn interrupt(&mut self, cpu: CpuId, duration: Nanos, activity: Activity, intervals: &mut Vec<Interval>) {
        let now = self.now;
        let until = now.saturating_add(duration);
        if !duration.is_zero() {
            self.pause(cpu, intervals);
        }
        let state = &mut self.cpus[cpu.index()];
        state.busy_until = state.busy_until.max(until);
        if let Some(running) = &mut state.running {
            running.since = running.since.max(until);
        }
        if let Some((_, since)) = &mut state.bottom_half {
            *since = (*since).max(until);
        }
        push(intervals, now, until, activity);
    }

    /// A device raised an interrupt that is routed to `cpu`.
    pub(super) fn raise(&mut self, cpu: CpuId, source: Source) {
        self.cpus[cpu.index()].interrupts.raise(source);
    }

    /// A bottom half begins on the stack of whatever is on `cpu`.
    pub(super) fn begin_bottom_half(&mut self, cpu: CpuId, source: Source, intervals: &mut Vec<Interval>) {
        // A bottom half on top of another: no legal schedule, but it stays drawable.
        self.end_bottom_half(cpu, intervals);
        self.pause(cpu, intervals);
        self.settle(source);
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        state.bottom_half = Some((source, state.free_from(now)));
        if let Some(running) = &mut state.running {
            running.since = Instant::NEVER;
        }
    }

    /// The bottom half of an interrupt was queued or begins, not always on the CPU that the interrupt was routed to.
    pub(super) fn settle(&mut self, source: Source) {
        for cpu in &mut self.cpus {
            cpu.interrupts.settle(source);
        }
    }

    /// The bottom half on the stack of `cpu` is done; the job there goes on.
    pub(super) fn end_bottom_half(&mut self, cpu: CpuId, intervals: &mut Vec<Interval>) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        let Some((source, since)) = state.bottom_half.take() else { return };
        push(intervals, since, now, Activity::BottomHalf { cpu, source });
        let since = state.free_from(now);
        if let Some(running) = &mut state.running {
            running.since = since;
        }
    }

    /// From now on the job waits by spinning where it has the CPU.
    pub(super) fn begin_spinning(&mut self, cpu: CpuId, job: JobId, intervals: &mut Vec<Interval>) {
        if let Some(mut running) = self.cpus[cpu.index()].running.filter(|running| running.job == job) {
            self.close_piece(cpu, &mut running, intervals);
            release(running.held.take(), Stop::Spinning, intervals);
            self.cpus[cpu.index()].running = Some(running);
        }
        self.live(job).spins = true;
    }

    /// The job need not spin any longer.
    pub(super) fn end_spinning(&mut self, cpu: CpuId, job: JobId, intervals: &mut Vec<Interval>) {
        if let Some(mut running) = self.cpus[cpu.index()].running.filter(|running| running.job == job) {
            self.close_piece(cpu, &mut running, intervals);
            if running.begin == Begin::AfterOverhead {
                running.begin = Begin::AfterSpinning;
            }
            self.cpus[cpu.index()].running = Some(running);
        }
        // A job that is complete spins no longer either, and must not become pending again.
        if let Some(live) = self.jobs.get_mut(&job) {
            live.spins = false;
        }
    }

    /// The job on `cpu` stops executing; does nothing if `job` is given and is not the one.
    pub(super) fn stop(&mut self, cpu: CpuId, job: Option<JobId>, why: Stop, intervals: &mut Vec<Interval>) {
        let Some(mut running) = self.cpus[cpu.index()].running else { return };
        if job.is_some_and(|job| job != running.job) {
            return;
        }
        self.cpus[cpu.index()].running = None;
        self.close_piece(cpu, &mut running, intervals);
        release(running.held, why, intervals);
    }

    /// Ends the pieces under way on `cpu` now: that of the bottom half, or else that of the job.
    fn pause(&mut self, cpu: CpuId, intervals: &mut Vec<Interval>) {
        let now = self.now;
        if let Some((source, since)) = self.cpus[cpu.index()].bottom_half {
            push(intervals, since, now, Activity::BottomHalf { cpu, source });
            self.cpus[cpu.index()].bottom_half = Some((source, since.max(now)));
        }
        if let Some(mut running) = self.cpus[cpu.index()].running {
            self.close_piece(cpu, &mut running, intervals);
            self.cpus[cpu.index()].running = Some(running);
        }
    }

    /// Ends the current piece now and holds it back; the one held before is thereby known to have been interrupted.
    /// A piece that was spun away is known in full.
    fn close_piece(&mut self, cpu: CpuId, running: &mut Running, intervals: &mut Vec<Interval>) {
        let (from, to) = (running.since, self.now);
        if from >= to {
            return;
        }
        running.since = to;
        let job = running.job;
        if self.live(job).spins {
            push(intervals, from, to, Activity::Spinning { cpu, job });
            return;
        }
        let activity = Activity::Execution { cpu, job, begin: running.begin, end: Stop::Overhead };
        intervals.extend(running.held.replace(Interval { from, to, activity }));
        running.begin = Begin::AfterOverhead;
        let history = &mut self.live(job).history;
        history.executed = Nanos(history.executed.0.saturating_add(to.0 - from.0));
    }
}

/// Pushes the piece that was held back, now that it is known why it stopped.
fn release(held: Option<Interval>, why: Stop, intervals: &mut Vec<Interval>) {
    if let Some(mut piece) = held {
        if let Activity::Execution { end, .. } = &mut piece.activity {
            *end = why;
        }
        intervals.push(piece);
    }
}
