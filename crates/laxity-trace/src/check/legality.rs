//! Is it a schedule at all?

use std::fmt;

use laxity_model::{CpuId, Instant, JobId, Nanos};

use super::parts::Parts;
use super::{Act, Phase, Problem, Report, Violation};
use crate::metrics::occupancy::Occupancy;
use crate::{Event, Origin, Sink, TaskInfo, TaskKind, TraceHeader};

/// Finds what no scheduler may do, whatever its policy:
///
/// - records out of order in time, or after the trace's end;
/// - jobs released out of order, before their arrival, or less than a period apart (a node of a graph that is no source
///   may be released as soon as its tokens exist, before its arrival: paper 003, section 5.2; so may a live source, whose
///   program says when it runs; an interrupt thread has no period);
/// - a job that skips a phase of its life, does two things at once, or begins before its predecessor completed;
/// - a CPU with two jobs, a job on two CPUs or outside its cluster, two overheads at once;
/// - a job that leaves its CPU within a non-preemptive section (its completion ends the section);
/// - a job that completes after more or less execution than it demands: its cost where that is known, else, in a
///   simulated trace, at most its task's worst case; cache-related delays in addition. Bottom halves on its stack and
///   spinning are no execution; of an interrupt thread no worst case is known;
/// - two holders of a lock's replica, grants out of order, a job that completes holding a lock; two operations on an
///   engine, or two of a job at once; a bottom half within another; under klmirqd, a thread beside the owner whose
///   bottom half it runs; tokens that appear or vanish, a job that starts without its tokens, a replica of a data object
///   overwritten while it is read. The files in `parts` say exactly what.
///
/// ```text
///               Release            Ready           Dispatch                  Complete
///   Unreleased ---------> Released ------> Ready ------------> Running ------------------> Complete
///                                            ^ ^----Preempt-----' |   '--NonPreemptiveBegin--> NonPreemptive
///                                            '---Resume--- Suspended      (and back with NonPreemptiveEnd)
/// ```
///
/// Links are no part of it: what a scheduler intends is [`PolicyCheck`](super::PolicyCheck)'s business. Memory depends
/// on the numbers of tasks and CPUs only.
pub struct LegalityCheck<'a> {
    header: &'a TraceHeader,
    cost: Box<dyn Fn(JobId) -> Option<Nanos> + 'a>,
    tasks: Vec<TaskState>,
    cpus: Vec<Occupancy>,
    parts: Parts<'a>,
    now: Instant,
    ended: bool,
    report: Report,
}

#[derive(Clone, Copy, Debug)]
struct TaskState {
    /// The index to be released next; `None` before the first, which in a live recording may be any.
    next: Option<u32>,
    /// The oldest job that is not complete, or the next to be released, and the phase it is in.
    current: u32,
    phase: Phase,
    /// The CPU it has, in the phases `Running` and `NonPreemptive`.
    cpu: CpuId,
    executed: Nanos,
    cache_delay: Nanos,
    /// Whether the current job waits by spinning whenever it has a CPU.
    spins: bool,
    last_deadline: Option<Instant>,
}

impl<'a> LegalityCheck<'a> {
    /// Nothing seen yet, no job's cost known.
    pub fn new(header: &'a TraceHeader) -> Self {
        let simulated = header.origin == Origin::Simulated;
        let task = TaskState {
            next: simulated.then_some(0),
            current: 0,
            phase: Phase::Unreleased,
            cpu: CpuId(0),
            executed: Nanos::ZERO,
            cache_delay: Nanos::ZERO,
            spins: false,
            last_deadline: None,
        };
        LegalityCheck {
            header,
            cost: Box::new(|_| None),
            tasks: vec![task; header.tasks.len()],
            cpus: vec![Occupancy::default(); header.cpus],
            parts: Parts::new(header),
            now: Instant::ZERO,
            ended: false,
            report: Report::default(),
        }
    }

    /// Takes a live recording for one that begins with the first job of every task, as a simulated trace does, and
    /// lacks none: tokens are counted from those at the start.
    pub fn with_all_jobs(mut self) -> Self {
        self.tasks.iter_mut().for_each(|task| task.next = Some(0));
        self.parts.expect_all_jobs();
        self
    }

    /// Knows what jobs need; `None`: not of this job.
    pub fn with_costs(self, cost: impl Fn(JobId) -> Option<Nanos> + 'a) -> Self {
        LegalityCheck { cost: Box::new(cost), ..self }
    }

    /// What was found.
    pub fn finish(self) -> Report {
        self.report
    }

    fn found(&mut self, cpu: Option<CpuId>, job: Option<JobId>, what: Problem) {
        self.report.push(Violation { at: self.now, cpu, job, what });
    }

    fn knows_cpu(&mut self, cpu: CpuId) -> bool {
        let known = cpu.index() < self.cpus.len();
        if !known {
            self.found(Some(cpu), None, Problem::UnknownCpu);
        }
        known
    }

    /// What the header says of the job's task.
    fn info(&self, job: JobId) -> Option<&'a TaskInfo> {
        self.header.tasks.get(job.task.index())
    }

    fn release(&mut self, at: Instant, job: JobId, deadline: Instant) {
        let Some(info) = self.info(job) else { return self.found(None, Some(job), Problem::UnknownTask) };
        let state = self.tasks[job.task.index()];
        let expected = state.next.unwrap_or(job.index);
        if job.index != expected {
            return self.found(None, Some(job), Problem::ReleasedOutOfOrder { expected });
        }
        let arrival = Instant(deadline.0.saturating_sub(info.deadline.0));
        let is_live_node = self.header.origin == Origin::Live && matches!(info.kind, TaskKind::Node { .. });
        let early = is_live_node
            || matches!(info.kind, TaskKind::Thread | TaskKind::Callback | TaskKind::Node { source: false, .. });
        if at < arrival && !early {
            self.found(None, Some(job), Problem::ReleasedBeforeArrival { arrival });
        }
        if let Some(last) = state.last_deadline.filter(|_| !info.kind.is_thread()) {
            // Deadlines are as far apart as arrivals.
            let separation = deadline.signed_since(last);
            if i128::from(separation.0) < i128::from(info.period.0) {
                self.found(None, Some(job), Problem::ArrivalsTooClose { separation, period: info.period });
            }
        }
        let state = &mut self.tasks[job.task.index()];
        if state.next.is_none() {
            state.current = job.index;
        }
        state.next = Some(job.index.saturating_add(1));
        state.last_deadline = Some(deadline);
        if job.index == state.current {
            state.phase = Phase::Released;
        }
    }

    /// The state of `job`'s task if `job` is its current job and may `act` on `cpu` as far as that can be said of all
    /// acts; otherwise a violation is reported.
    fn begin(&mut self, act: Act, cpu: CpuId, job: JobId) -> Option<TaskState> {
        if !self.knows_cpu(cpu) {
            return None;
        }
        let Some(&state) = self.tasks.get(job.task.index()) else {
            self.found(Some(cpu), Some(job), Problem::UnknownTask);
            return None;
        };
        let released = state.next.is_some_and(|next| job.index < next);
        let phase = match job.index {
            index if index < state.current => Phase::Complete,
            _ if !released => Phase::Unreleased,
            index if index > state.current => {
                let predecessor = JobId { index: job.index - 1, ..job };
                self.found(Some(cpu), Some(job), Problem::BeforePredecessor { act, predecessor });
                return None;
            }
            _ => return Some(state),
        };
        self.found(Some(cpu), Some(job), Problem::OutOfTurn { act, phase });
        None
    }

    /// A job becomes ready from phase `from`. What follows is judged as if it had been in that phase.
    fn ready(&mut self, act: Act, from: Phase, cpu: CpuId, job: JobId) {
        let Some(state) = self.begin(act, cpu, job) else { return };
        if state.phase != from {
            self.found(Some(cpu), Some(job), Problem::OutOfTurn { act, phase: state.phase });
        }
        if !matches!(state.phase, Phase::Running | Phase::NonPreemptive) {
            self.tasks[job.task.index()].phase = Phase::Ready;
        }
    }

    fn dispatch(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        let act = Act::Dispatch;
        let Some(state) = self.begin(act, cpu, job) else { return };
        if self.is_running(state) {
            let what = Problem::Elsewhere { act, on: state.cpu };
            return self.found(Some(cpu), Some(job), what);
        }
        if state.phase != Phase::Ready {
            self.found(Some(cpu), Some(job), Problem::OutOfTurn { act, phase: state.phase });
        }
        let cluster = self.info(job).map_or(0, |info| info.cluster);
        // A thread of a dedicated interrupt CPU is of no cluster.
        let is_free = self.is_thread(job) && cluster >= self.header.clusters.len();
        if !is_free && !self.header.clusters.get(cluster).is_some_and(|cpus| cpus.contains(&cpu)) {
            self.found(Some(cpu), Some(job), Problem::OutsideCluster { act, cluster });
        }
        if let Some(by) = self.cpus[cpu.index()].running() {
            // The CPU goes on with the new job; the old one is judged as if it had been preempted.
            self.found(Some(cpu), Some(job), Problem::CpuOccupied { by });
            self.take_off(at, cpu, by);
            self.tasks[by.task.index()].phase = Phase::Ready;
        }
        self.cpus[cpu.index()].dispatch(at, job);
        if state.spins {
            self.cpus[cpu.index()].begin_spinning(at, job);
        }
        let state = &mut self.tasks[job.task.index()];
        state.phase = Phase::Running;
        state.cpu = cpu;
    }

    fn is_running(&self, state: TaskState) -> bool {
        matches!(state.phase, Phase::Running | Phase::NonPreemptive)
    }

    /// Whether `job`, in `state`, has `cpu`; a violation is reported if not.
    fn has_cpu(&mut self, act: Act, cpu: CpuId, job: JobId, state: TaskState) -> bool {
        let what = match self.is_running(state) {
            false => Problem::OutOfTurn { act, phase: state.phase },
            true if state.cpu != cpu => Problem::Elsewhere { act, on: state.cpu },
            true => return true,
        };
        self.found(Some(cpu), Some(job), what);
        false
    }

    /// A running job leaves its CPU for phase `to`.
    fn leave(&mut self, act: Act, to: Phase, at: Instant, cpu: CpuId, job: JobId) {
        let Some(state) = self.begin(act, cpu, job) else { return };
        if !self.has_cpu(act, cpu, job, state) {
            return;
        }
        if state.phase == Phase::NonPreemptive && act != Act::Complete {
            self.found(Some(cpu), Some(job), Problem::LeftNonPreemptive { act });
        }
        self.take_off(at, cpu, job);
        self.tasks[job.task.index()].phase = to;
    }

    fn take_off(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        let executed = self.cpus[cpu.index()].stop(at, job).unwrap_or_default();
        let state = &mut self.tasks[job.task.index()];
        state.executed = Nanos(state.executed.0.saturating_add(executed.0));
    }

    fn complete(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        self.leave(Act::Complete, Phase::Complete, at, cpu, job);
        let state = self.tasks.get(job.task.index()).copied();
        let Some(state) = state.filter(|state| state.phase == Phase::Complete && state.current == job.index) else {
            return;
        };
        self.judge_execution(cpu, job, state);
        let state = &mut self.tasks[job.task.index()];
        state.current = state.current.saturating_add(1);
        let pending = state.next.is_some_and(|next| state.current < next);
        state.phase = if pending { Phase::Released } else { Phase::Unreleased };
        state.executed = Nanos::ZERO;
        state.cache_delay = Nanos::ZERO;
        state.spins = false;
    }

    fn judge_execution(&mut self, cpu: CpuId, job: JobId, state: TaskState) {
        let executed = state.executed;
        let with_delay = |span: Nanos| Nanos(span.0.saturating_add(state.cache_delay.0));
        if let Some(demand) = (self.cost)(job).map(with_delay) {
            if executed != demand {
                self.found(Some(cpu), Some(job), Problem::WrongExecution { executed, demand });
            }
        } else if let Some(info) = self.info(job).filter(|_| self.has_worst_case(job)) {
            let limit = with_delay(info.wcet);
            if executed > limit {
                self.found(Some(cpu), Some(job), Problem::ExceededWcet { executed, limit });
            }
        }
    }

    fn has_worst_case(&self, job: JobId) -> bool {
        self.header.origin == Origin::Simulated && !self.is_thread(job)
    }

    fn is_thread(&self, job: JobId) -> bool {
        self.info(job).is_some_and(|info| info.kind.is_thread())
    }

    /// The job begins or ends to wait by spinning; it may have been preempted since.
    fn spin(&mut self, at: Instant, cpu: CpuId, job: JobId, spins: bool) {
        if !self.knows_cpu(cpu) {
            return;
        }
        let Some(state) = self.tasks.get_mut(job.task.index()) else {
            return self.found(Some(cpu), Some(job), Problem::UnknownTask);
        };
        state.spins = spins;
        match spins {
            true => self.cpus[cpu.index()].begin_spinning(at, job),
            false => self.cpus[cpu.index()].end_spinning(at, job),
        }
    }

    fn section(&mut self, act: Act, from: Phase, to: Phase, cpu: CpuId, job: JobId) {
        let Some(state) = self.begin(act, cpu, job) else { return };
        if !self.has_cpu(act, cpu, job, state) {
            return;
        }
        if state.phase != from {
            self.found(Some(cpu), Some(job), Problem::OutOfTurn { act, phase: state.phase });
        }
        self.tasks[job.task.index()].phase = to;
    }

    fn cache_delay(&mut self, cpu: CpuId, job: JobId, duration: Nanos) {
        let act = Act::CacheDelay;
        let Some(state) = self.begin(act, cpu, job) else { return };
        if self.has_cpu(act, cpu, job, state) {
            let delay = &mut self.tasks[job.task.index()].cache_delay;
            *delay = Nanos(delay.0.saturating_add(duration.0));
        }
    }

    fn cover(&mut self, at: Instant, cpu: CpuId, duration: Nanos) {
        if !self.knows_cpu(cpu) {
            return;
        }
        let until = self.cpus[cpu.index()].covered_until();
        if at < until && !duration.is_zero() {
            self.found(Some(cpu), None, Problem::OverheadsOverlap { until });
        }
        self.cpus[cpu.index()].cover(at, duration);
    }
}

impl Sink for LegalityCheck<'_> {
    fn record(&mut self, at: Instant, event: Event) {
        if at < self.now {
            let what = Problem::TimeWentBack { latest: self.now };
            self.report.push(Violation { at, cpu: None, job: None, what });
        }
        self.now = self.now.max(at);
        if self.ended {
            return self.found(None, None, Problem::AfterEnd);
        }
        self.parts.record(self.now, event, &mut self.report);
        match event {
            Event::Release { job, deadline } => self.release(at, job, deadline),
            Event::Ready { job, cpu } => self.ready(Act::Ready, Phase::Released, cpu, job),
            Event::Resume { cpu, job } => self.ready(Act::Resume, Phase::Suspended, cpu, job),
            Event::Dispatch { cpu, job } => self.dispatch(at, cpu, job),
            Event::Preempt { cpu, job } => self.leave(Act::Preempt, Phase::Ready, at, cpu, job),
            Event::Suspend { cpu, job } => self.leave(Act::Suspend, Phase::Suspended, at, cpu, job),
            Event::Complete { cpu, job } => self.complete(at, cpu, job),
            Event::NonPreemptiveBegin { cpu, job } => {
                self.section(Act::NonPreemptiveBegin, Phase::Running, Phase::NonPreemptive, cpu, job);
            }
            Event::NonPreemptiveEnd { cpu, job } => {
                self.section(Act::NonPreemptiveEnd, Phase::NonPreemptive, Phase::Running, cpu, job);
            }
            Event::Overhead { cpu, duration, .. } | Event::LockWait { cpu, duration } => self.cover(at, cpu, duration),
            Event::CacheDelay { cpu, job, duration, .. } => self.cache_delay(cpu, job, duration),
            Event::Ipi { from, to, .. } => {
                self.knows_cpu(from);
                self.knows_cpu(to);
            }
            Event::Link { cpu, .. } => {
                self.knows_cpu(cpu);
            }
            Event::BottomHalfBegin { cpu, .. } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.begin_bottom_half(at);
                }
            }
            Event::BottomHalfEnd { cpu, .. } => {
                if let Some(cpu) = self.cpus.get_mut(cpu.index()) {
                    cpu.end_bottom_half(at);
                }
            }
            Event::SpinBegin { cpu, job } => self.spin(at, cpu, job, true),
            Event::SpinEnd { cpu, job } => self.spin(at, cpu, job, false),
            Event::Interrupt { cpu, .. } => {
                self.knows_cpu(cpu);
            }
            Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::Serve { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Priority { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::Replenish { .. } => {}
            Event::End => self.ended = true,
        }
    }
}

impl fmt::Debug for LegalityCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegalityCheck").field("now", &self.now).field("report", &self.report).finish_non_exhaustive()
    }
}
