//! Is it a schedule at all?

use std::collections::BTreeSet;
use std::fmt;

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, TaskId};

use super::parts::Parts;
use super::{Act, Phase, Problem, Report, Violation};
use crate::replay::{Change, Replay, Running};
use crate::{Event, Origin, Sink, TaskInfo, TaskKind, TraceHeader};

/// Finds what no scheduler may do, whatever its policy:
///
/// - records out of order in time, or after the trace's end;
/// - jobs released out of order, before their arrival, or less than a period apart (a node of a graph that is no source
///   may be released as soon as its tokens exist, before its arrival: paper 003, section 5.2; so may a live source, whose
///   program says when it runs; an interrupt thread has no period);
/// - a job that skips a phase of its life, does two things at once, or begins before its predecessor completed;
/// - a CPU with two jobs, a job on two CPUs or outside its cluster, two overheads at once; in a simulation an overhead that takes longer
///   than the header says, and a job that executes while it waits for a lock;
/// - a job that leaves its CPU within a non-preemptive section (its completion ends the section), but for an interrupt thread,
///   which live is above all jobs, and after which the job has that CPU again, or where Linux schedules any other: it moves the
///   job, at once, or where several such threads take CPUs in turn within 200 us; and, under Laxity's scheduler, for a job
///   that leaves that CPU at the same instant: its thread was above all jobs while the scheduler took note that the job completed,
///   say;
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
/// Links are no part of it: what a scheduler intends is [`PolicyCheck`](super::PolicyCheck)'s business. Each record is
/// judged by what is true before it, and then believed. Memory depends on the numbers of tasks and CPUs and on what is
/// pending.
pub struct LegalityCheck<'a> {
    header: &'a TraceHeader,
    cost: Box<dyn Fn(JobId) -> Option<Nanos> + 'a>,
    /// Whether the trace begins with the first job of every task.
    has_all_jobs: bool,
    replay: Replay,
    tasks: Vec<TaskState>,
    parts: Parts<'a>,
    /// Jobs that lost their CPUs within non-preemptive sections.
    displaced: Vec<Displaced>,
    /// The jobs of a simulation that wait for locks, but for those that were found to execute meanwhile.
    waiting: BTreeSet<JobId>,
    /// For how long such a job may be without a CPU though no interrupt thread has it, where Linux schedules.
    lag: Option<Nanos>,
    now: Instant,
    ended: bool,
    report: Report,
}

/// How long Linux may take until a job in a non-preemptive section has a CPU again that several interrupt threads took in turn.
const LAG: Nanos = Nanos::from_micros(200);

/// A job that lost its CPU within a non-preemptive section, in a live trace.
#[derive(Clone, Copy, Debug)]
struct Displaced {
    at: Instant,
    cpu: CpuId,
    job: JobId,
    /// By which job, whose dispatch follows.
    by: Option<JobId>,
}

/// What is known of a task besides the replay.
#[derive(Clone, Copy, Debug, Default)]
struct TaskState {
    /// Of the current job.
    executed: Nanos,
    cache_delay: Nanos,
    last_deadline: Option<Instant>,
}

impl<'a> LegalityCheck<'a> {
    /// Nothing seen yet, no job's cost known.
    pub fn new(header: &'a TraceHeader) -> Self {
        LegalityCheck {
            header,
            cost: Box::new(|_| None),
            has_all_jobs: header.origin == Origin::Simulated,
            replay: Replay::new(header),
            tasks: vec![TaskState::default(); header.tasks.len()],
            parts: Parts::new(header),
            displaced: Vec::new(),
            waiting: BTreeSet::new(),
            lag: header.linux_class.map(|_| if has_threads(header) { LAG } else { Nanos::ZERO }),
            now: Instant::ZERO,
            ended: false,
            report: Report::default(),
        }
    }

    /// Takes a live recording for one that begins with the first job of every task, as a simulated trace does, and
    /// lacks none: tokens are counted from those at the start.
    pub fn with_all_jobs(mut self) -> Self {
        self.has_all_jobs = true;
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

    /// What the header says of the job's task.
    fn info(&self, job: JobId) -> Option<&'a TaskInfo> {
        self.header.tasks.get(job.task.index())
    }

    /// Reports what the header does not know; whether that was nothing.
    fn knows_names(&mut self, event: Event) -> bool {
        // The CPUs of bottom halves are judged with the stacks.
        let is_on_stack = matches!(event, Event::BottomHalfBegin { .. } | Event::BottomHalfEnd { .. });
        let mut cpus = event.cpus().into_iter().flatten().filter(|_| !is_on_stack);
        if let Some(cpu) = cpus.find(|cpu| cpu.index() >= self.header.cpus) {
            self.found(Some(cpu), None, Problem::UnknownCpu);
            return false;
        }
        if let Some(job) = event.jobs().into_iter().flatten().find(|&job| self.info(job).is_none()) {
            self.found(event.cpus()[0], Some(job), Problem::UnknownTask);
            return false;
        }
        let (devices, operations) = (self.header.devices.len(), self.header.operations.len());
        let unknown = match event {
            Event::Priority { of: task, .. }
            | Event::Replenish { task, .. }
            | Event::Throttle { task: Some(task), .. }
            | Event::Unthrottle { task: Some(task), .. } => {
                let job = JobId { task, index: 0 };
                self.info(job).is_none().then_some((Some(job), Problem::UnknownTask))
            }
            Event::Interrupt { device, .. }
            | Event::BottomHalfBegin { device, .. }
            | Event::BottomHalfEnd { device, .. }
            | Event::Serve { device, .. }
                if device.index() >= devices =>
            {
                Some((None, Problem::UnknownDevice { device }))
            }
            Event::EngineOperation { name, .. } if name as usize >= operations => {
                Some((None, Problem::UnknownOperation { name }))
            }
            _ => None,
        };
        if let Some((job, what)) = unknown {
            self.found(event.cpus()[0], job, what);
        }
        unknown.is_none()
    }

    fn judge_release(&mut self, at: Instant, job: JobId, deadline: Instant, info: &TaskInfo) {
        let first = if self.has_all_jobs { 0 } else { job.index };
        let expected = self.replay.tasks()[job.task.index()].pending().next().unwrap_or(first);
        if job.index != expected {
            return self.found(None, Some(job), Problem::ReleasedOutOfOrder { expected });
        }
        let arrival = Instant(deadline.0.saturating_sub(info.deadline.0));
        let is_live_node = self.header.origin == Origin::Live && matches!(info.kind, TaskKind::Node { .. });
        let early = is_live_node
            || matches!(
                info.kind,
                TaskKind::Thread | TaskKind::Callback | TaskKind::Event | TaskKind::Node { source: false, .. }
            );
        if at < arrival && !early {
            self.found(None, Some(job), Problem::ReleasedBeforeArrival { arrival });
        }
        let last = self.tasks[job.task.index()].last_deadline.replace(deadline);
        if let Some(last) = last.filter(|_| !info.kind.is_thread()) {
            // Deadlines are as far apart as arrivals.
            let separation = deadline.signed_since(last);
            if i128::from(separation.0) < i128::from(info.period.0) {
                self.found(None, Some(job), Problem::ArrivalsTooClose { separation, period: info.period });
            }
        }
    }

    /// The phase that `job` is in, and the CPU that it has in the phases `Running` and `NonPreemptive`.
    fn phase(&self, job: JobId) -> (Phase, Option<CpuId>) {
        let queues = &self.replay.details().queues;
        let pending = self.replay.tasks()[job.task.index()].pending();
        let cpu = self.replay.cpu_of(job);
        let phase = match () {
            () if pending.next().is_none_or(|next| job.index >= next) => Phase::Unreleased,
            () if job.index < pending.oldest() => Phase::Complete,
            () if cpu.is_some() && queues.section(job).is_some() => Phase::NonPreemptive,
            () if cpu.is_some() => Phase::Running,
            () if queues.suspended(job).is_some() => Phase::Suspended,
            () if queues.is_ready(job) => Phase::Ready,
            () => Phase::Released,
        };
        (phase, cpu)
    }

    /// Judges what `job` does on `cpu` by the phase of its life.
    fn judge_act(&mut self, act: Act, cpu: CpuId, job: JobId) {
        let (phase, has) = self.phase(job);
        let found = match (act, phase) {
            (_, Phase::Unreleased | Phase::Complete) => Some(Problem::OutOfTurn { act, phase }),
            _ if job.index > self.replay.tasks()[job.task.index()].pending().oldest() => {
                Some(Problem::BeforePredecessor { act, predecessor: JobId { index: job.index - 1, ..job } })
            }
            (Act::Ready, Phase::Released) | (Act::Resume, Phase::Suspended) => None,
            (Act::Ready | Act::Resume, _) => Some(Problem::OutOfTurn { act, phase }),
            (Act::Dispatch, _) => match has {
                Some(on) => Some(Problem::Elsewhere { act, on }),
                None => return self.judge_dispatch(cpu, job, phase),
            },
            _ => match has {
                None => Some(Problem::OutOfTurn { act, phase }),
                Some(on) if on != cpu => Some(Problem::Elsewhere { act, on }),
                Some(_) => match (act, phase) {
                    (Act::Preempt, Phase::NonPreemptive) if self.may_be_displaced() => {
                        return self.displaced.push(Displaced { at: self.now, cpu, job, by: None });
                    }
                    (Act::Preempt | Act::Suspend, Phase::NonPreemptive) => Some(Problem::LeftNonPreemptive { act }),
                    (Act::NonPreemptiveBegin, Phase::NonPreemptive) | (Act::NonPreemptiveEnd, Phase::Running) => {
                        Some(Problem::OutOfTurn { act, phase })
                    }
                    _ => None,
                },
            },
        };
        if let Some(what) = found {
            self.found(Some(cpu), Some(job), what);
        }
    }

    /// Whether a job in a non-preemptive section may lose its CPU: to an interrupt thread, or for no time.
    fn may_be_displaced(&self) -> bool {
        let is_live = self.header.origin == Origin::Live;
        is_live && (self.header.is_linked || self.lag.is_some() || has_threads(self.header))
    }

    /// `job` is dispatched on `cpu`: judges what that says of jobs that were displaced from there, and of `job` if it was.
    fn judge_displaced(&mut self, cpu: CpuId, job: JobId) {
        let mut at = 0;
        while let Some(displaced) = self.displaced.get_mut(at) {
            if displaced.job == job {
                let displaced = self.displaced.swap_remove(at);
                if !self.is_excused(displaced) {
                    self.left(displaced);
                } else if displaced.cpu != cpu && self.lag.is_none() {
                    self.found(Some(cpu), Some(job), Problem::LeftNonPreemptive { act: Act::Dispatch });
                }
                continue;
            }
            if displaced.cpu == cpu {
                displaced.by.get_or_insert(job);
            }
            let displaced = *displaced;
            if displaced.by.is_some() && !self.is_excused(displaced) {
                self.displaced.swap_remove(at);
                self.left(displaced);
            } else {
                at += 1;
            }
        }
    }

    /// Whether the job may have been without a CPU until now: an interrupt thread displaced it, or it was for no time that counts.
    fn is_excused(&self, displaced: Displaced) -> bool {
        let Displaced { at, by, .. } = displaced;
        by.is_some_and(|by| self.header.is_thread(by.task)) || self.is_short(at, by.is_some())
    }

    /// Whether it is short to be without a CPU since then, and because of another job if it `is_known`.
    fn is_short(&self, since: Instant, is_known: bool) -> bool {
        match self.lag {
            Some(lag) => self.now.saturating_since(since) <= lag,
            None => self.header.is_linked && is_known && since == self.now,
        }
    }

    /// The job was displaced by something else than an interrupt thread.
    fn left(&mut self, displaced: Displaced) {
        let Displaced { at, cpu, job, .. } = displaced;
        let what = Problem::LeftNonPreemptive { act: Act::Preempt };
        self.report.push(Violation { at, cpu: Some(cpu), job: Some(job), what });
    }

    /// Judges the dispatch of a job that has no CPU.
    fn judge_dispatch(&mut self, cpu: CpuId, job: JobId, phase: Phase) {
        let act = Act::Dispatch;
        if phase != Phase::Ready {
            self.found(Some(cpu), Some(job), Problem::OutOfTurn { act, phase });
        }
        let cluster = self.info(job).map_or(0, |info| info.cluster);
        // A thread of a dedicated interrupt CPU is of no cluster, and a best-effort task may be on any CPU.
        let is_thread = self.header.is_thread(job.task) && cluster >= self.header.clusters.len();
        let is_free = is_thread || self.header.is_best_effort(job.task);
        if !is_free && self.replay.details().queues.cluster_of(cpu) != Some(cluster) {
            self.found(Some(cpu), Some(job), Problem::OutsideCluster { act, cluster });
        }
        if let Some(by) = self.replay.cpus()[cpu.index()].job() {
            // The CPU goes on with the new job; the old one is judged as if it had been preempted.
            self.found(Some(cpu), Some(job), Problem::CpuOccupied { by });
        }
    }

    fn judge(&mut self, at: Instant, event: Event) {
        if !self.knows_names(event) {
            return;
        }
        match event {
            Event::Release { job, deadline } => {
                if let Some(info) = self.info(job) {
                    self.judge_release(at, job, deadline, info);
                }
            }
            Event::Overhead { cpu, duration, .. } | Event::LockWait { cpu, duration } => {
                let until = self.replay.cpus()[cpu.index()].covered_until();
                if at < until && !duration.is_zero() {
                    self.found(Some(cpu), None, Problem::OverheadsOverlap { until });
                }
                if let Event::Overhead { kind, .. } = event {
                    self.judge_cost(cpu, None, kind, duration);
                }
            }
            Event::CacheDelay { cpu, job, kind, duration } => {
                self.judge_cost(cpu, Some(job), kind, duration);
                self.judge_act(Act::CacheDelay, cpu, job);
            }
            Event::Ipi { from, latency, .. } => self.judge_cost(from, None, OverheadKind::IpiLatency, latency),
            Event::Request { job, .. } if self.header.origin == Origin::Simulated => {
                self.waiting.insert(job);
            }
            Event::Grant { job, .. } | Event::Withdraw { job, .. } => {
                self.waiting.remove(&job);
            }
            Event::End => {
                for displaced in std::mem::take(&mut self.displaced) {
                    // A recording may end between the two records.
                    if !self.is_excused(displaced) && displaced.at < at {
                        self.left(displaced);
                    }
                }
            }
            _ => {
                if let Some((act, cpu, job)) = acts(event) {
                    if act == Act::Dispatch && !self.displaced.is_empty() {
                        self.judge_displaced(cpu, job);
                    }
                    self.judge_act(act, cpu, job);
                }
            }
        }
    }

    /// In a simulation what is not of a device takes no longer than the header says that it costs.
    fn judge_cost(&mut self, cpu: CpuId, job: Option<JobId>, kind: OverheadKind, duration: Nanos) {
        // The interrupts of a memory regulator are recorded as ticks.
        let is_of_device = matches!(kind, OverheadKind::TopHalf | OverheadKind::BottomHalf)
            || kind == OverheadKind::Tick && self.header.memory.is_some();
        let cost = self.header.costs.of(kind);
        if self.header.origin == Origin::Simulated && !is_of_device && duration > cost {
            self.found(Some(cpu), job, Problem::ExceededCost { kind, duration, cost });
        }
    }

    /// A job that waits for a lock does not execute, up to `until`.
    fn judge_waiting(&mut self, until: Instant) {
        let executes = |&&job: &&JobId| {
            let cpu = self.replay.cpu_of(job).and_then(|cpu| self.replay.cpu(cpu));
            cpu.is_some_and(|cpu| matches!(cpu.running(), (Running::Job(runs), since) if runs == job && since < until))
        };
        let executing: Vec<JobId> = self.waiting.iter().filter(executes).copied().collect();
        for job in executing {
            self.waiting.remove(&job);
            if let Some(request) = self.replay.details().locks.request(job) {
                let what = Problem::ExecutesWaiting { lock: request.lock };
                self.found(self.replay.cpu_of(job), Some(job), what);
            }
        }
    }

    /// Accounts for what the record did, and judges the execution of a job that completed on its CPU in its turn.
    fn account(&mut self, event: Event, change: Change) {
        match (event, change) {
            (Event::CacheDelay { job, duration, .. }, _) if self.replay.cpu_of(job).is_some() => {
                let delay = &mut self.tasks[job.task.index()].cache_delay;
                *delay = Nanos(delay.0.saturating_add(duration.0));
            }
            (Event::Preempt { job, .. } | Event::Suspend { job, .. }, Change::Stopped { executed }) => {
                let sum = &mut self.tasks[job.task.index()].executed;
                *sum = Nanos(sum.0.saturating_add(executed.0));
            }
            (Event::Complete { cpu, job }, Change::Completed { executed: Some(executed), job: Some(_) }) => {
                let state = &mut self.tasks[job.task.index()];
                let executed = Nanos(state.executed.0.saturating_add(executed.0));
                let cache_delay = state.cache_delay;
                *state = TaskState { last_deadline: state.last_deadline, ..TaskState::default() };
                self.judge_execution(cpu, job, executed, cache_delay);
            }
            _ => {}
        }
    }

    fn judge_execution(&mut self, cpu: CpuId, job: JobId, executed: Nanos, cache_delay: Nanos) {
        let with_delay = |span: Nanos| Nanos(span.0.saturating_add(cache_delay.0));
        let has_worst_case = self.header.origin == Origin::Simulated && !self.header.lacks_deadlines(job.task);
        if let Some(demand) = (self.cost)(job).map(with_delay) {
            if executed != demand {
                self.found(Some(cpu), Some(job), Problem::WrongExecution { executed, demand });
            }
        } else if let Some(info) = self.info(job).filter(|_| has_worst_case) {
            let limit = with_delay(info.wcet);
            if executed > limit {
                self.found(Some(cpu), Some(job), Problem::ExceededWcet { executed, limit });
            }
        }
    }
}

/// Whether interrupts are handled by threads.
fn has_threads(header: &TraceHeader) -> bool {
    (0..header.tasks.len()).any(|at| header.is_thread(TaskId(at as u32)))
}

/// What a job does on a CPU in a phase of its life.
fn acts(event: Event) -> Option<(Act, CpuId, JobId)> {
    match event {
        Event::Ready { cpu, job } => Some((Act::Ready, cpu, job)),
        Event::Resume { cpu, job } => Some((Act::Resume, cpu, job)),
        Event::Dispatch { cpu, job } => Some((Act::Dispatch, cpu, job)),
        Event::Preempt { cpu, job } => Some((Act::Preempt, cpu, job)),
        Event::Suspend { cpu, job } => Some((Act::Suspend, cpu, job)),
        Event::Complete { cpu, job } => Some((Act::Complete, cpu, job)),
        Event::NonPreemptiveBegin { cpu, job } => Some((Act::NonPreemptiveBegin, cpu, job)),
        Event::NonPreemptiveEnd { cpu, job } => Some((Act::NonPreemptiveEnd, cpu, job)),
        _ => None,
    }
}

impl Sink for LegalityCheck<'_> {
    fn record(&mut self, at: Instant, event: Event) {
        if at < self.now {
            let what = Problem::TimeWentBack { latest: self.now };
            self.report.push(Violation { at, cpu: None, job: None, what });
        }
        if at > self.now && !self.waiting.is_empty() {
            self.judge_waiting(at);
        }
        self.now = self.now.max(at);
        if self.ended {
            return self.found(None, None, Problem::AfterEnd);
        }
        self.parts.record(self.now, event, &self.replay, &mut self.report);
        self.judge(at, event);
        let change = self.replay.apply(at, event);
        self.account(event, change);
        self.ended = event == Event::End;
    }
}

impl fmt::Debug for LegalityCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LegalityCheck").field("now", &self.now).field("report", &self.report).finish_non_exhaustive()
    }
}
