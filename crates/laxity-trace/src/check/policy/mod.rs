//! Does a schedule follow the scheduler its header names?

mod dedicated;
mod links;
mod priorities;
mod quanta;
mod ticks;

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{
    CpuId, Instant, InterruptHandling, Invocation, JobId, Nanos, OverheadCosts, OverheadKind, PriorityRule, Quanta,
};

use self::dedicated::Dedicated;
use self::links::{Links, Ready};
use self::priorities::Priorities;
use self::quanta::Boundaries;
use self::ticks::Ticks;
use super::{Act, Phase, Problem, Report, Violation};
use crate::real_time::RealTimeView;
use crate::replay::{Replay, occupies_cpu};
use crate::{Event, Origin, Sink, TraceHeader};

/// Judges the links of a schedule. In every cluster of m CPUs, the linked jobs are the m most urgent ready ones
/// (paper 002, section 2: work-conserving global scheduling). Links are what counts, because a process is switched
/// only after its job was linked, by as much as overheads and inter-processor interrupts take.
///
/// `Ready` and `Resume` make a job ready; `Link` links it; a job whose CPU is linked to something else is ready again;
/// `Complete` and `Suspend` end its link at once. Jobs in non-preemptive sections keep their CPUs.
///
/// - Event-driven: the rule holds after the last record of every instant. A CPU in an overhead or a lock wait may be
///   without a link until that ends.
/// - Quantum-driven, in a simulation without overheads: the rule holds after the last record of every boundary (with
///   staggered quanta, for the CPU whose boundary it is), and no job becomes linked in between.
/// - Quantum-driven, recorded live: the rule holds after each recorded tick and the links that directly follow it (with staggered
///   quanta, for the CPU whose tick it is), and no job becomes linked elsewhere. How late a tick is is no matter of the policy,
///   but a job that waits a hundred quanta for one was forgotten.
/// - Quantum-driven, else: the tick handler acts some time after the boundary, so the rule is judged at the end of each
///   quantum: a job that was ready before the quantum began and is still unlinked must not be more urgent than a linked
///   one, nor may a CPU have been without a link for all of the quantum. A quantum does not count whose tick waited behind
///   other interrupts to its end. A job may become linked only while a tick handler runs that began at a boundary, or as
///   soon as what kept it from that was over; where ticks cost no time, at a boundary or after such a delay.
/// - The fair class ranks no job: after the last record of every instant no CPU is without a link while a job of its
///   cluster waits.
/// - In a simulation each CPU moreover runs what it is linked to, at all times at which no CPU is in an overhead or waits for a lock, and no
///   inter-processor interrupt is on its way: then no decision is still to be carried out.
/// - Where a CPU is dedicated to interrupts, no other one releases the jobs of timers, in simulations.
///
/// Where a quantum decides for some time, it goes by the priorities of when it began.
///
/// Best-effort jobs are hidden: a CPU that one has is there for all others.
///
/// The last instant of a trace, at which its writer stopped, is not judged; nor is every CPU of a hopeless trace, one with
/// more violations than a report lists. Schedules that are illegal under any policy are
/// left to [`LegalityCheck`](super::LegalityCheck) and ignored here.
///
/// Priorities are effective ones: a job has that of its own right until a `Priority` says otherwise. In simulations these
/// records are judged, too, when their instant is over: a job has its own priority, that of a job which waits for what it
/// holds, or a ceiling; a holder that inherits is as urgent as each job that waits for it; and a thread has the priority of
/// those that it serves. Live they are believed (`priorities/mod.rs` says why).
///
/// An interrupt thread and the owner it serves are one entity under klmirqd: while one of them is linked the other does not
/// wait for a CPU. A CPU with a bottom half on its stack is not judged until that ends, and the job below it does not wait.
/// What Linux leaves to its daemon without real-time priority is outside the policy.
#[derive(Clone, Debug)]
pub struct PolicyCheck {
    rule: Rule,
    quantum: Nanos,
    /// Whether there can be bottom halves.
    has_devices: bool,
    /// Whether an owner and its bottom half must not run at once.
    is_klmirqd: bool,
    /// A simulation without overheads: decisions and switches take no time.
    ideal: bool,
    /// Whether CPUs are to run what they are linked to.
    follows_links: bool,
    /// When all overheads, waits for locks and inter-processor interrupts that were recorded so far are over.
    settled_at: Instant,
    dedicated: Option<Dedicated>,
    priorities: Option<Priorities>,
    /// Best-effort jobs are below all others, and of no cluster.
    view: RealTimeView,
    replay: Replay,
    links: Links,
    /// The CPUs that do not run what they are linked to.
    mismatched: BTreeSet<CpuId>,
    /// When a device last interrupted, or a bottom half on a CPU's stack was done.
    interrupted_at: Option<Instant>,
    now: Instant,
    ended: bool,
    /// What was last found, by CPU: a violation that goes on is reported once.
    last_found: BTreeMap<CpuId, (Option<JobId>, Problem)>,
    /// Records seen and CPUs judged.
    records: u64,
    judged: u64,
    report: Report,
}

/// Of a trace with more violations than a report lists, so many CPUs are judged for each record on average.
const JUDGED_PER_RECORD: u64 = 16;

/// When the links of a CPU must be right.
#[derive(Clone, Debug)]
enum Rule {
    Always,
    WorkConserving,
    AtBoundaries { quanta: Quanta, boundaries: Boundaries },
    AtTicks(Ticks),
}

impl Rule {
    /// Whether links of the cluster may change by a tick at this moment.
    fn is_deciding(&self, cluster: usize) -> bool {
        matches!(self, Rule::AtTicks(ticks) if ticks.is_deciding(cluster))
    }
}

impl PolicyCheck {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        let rule = match (header.scheduler.rule, header.scheduler.invocation) {
            (PriorityRule::Fair, _) => Rule::WorkConserving,
            (_, Invocation::EventDriven) => Rule::Always,
            (_, Invocation::QuantumDriven) if header.origin == Origin::Live => Rule::AtTicks(Ticks::new(header)),
            (_, Invocation::QuantumDriven) => {
                Rule::AtBoundaries { quanta: header.scheduler.quanta, boundaries: Boundaries::new(header) }
            }
        };
        let has_devices = !header.devices.is_empty() || !header.gpus.is_empty();
        let is_simulated = header.origin == Origin::Simulated;
        // Where devices interrupt, a boundary may find the CPU busy though no overhead is charged.
        let is_prompt = is_simulated && !(has_devices && header.scheduler.invocation == Invocation::QuantumDriven);
        PolicyCheck {
            rule,
            quantum: header.quantum,
            has_devices,
            is_klmirqd: matches!(header.handling, InterruptHandling::Klmirqd { .. }),
            ideal: is_prompt && header.costs == OverheadCosts::default(),
            follows_links: is_prompt,
            settled_at: Instant::ZERO,
            dedicated: Dedicated::new(header),
            priorities: Priorities::new(header),
            view: RealTimeView::new(header),
            replay: Replay::new(header),
            links: Links::new(header),
            mismatched: BTreeSet::new(),
            interrupted_at: None,
            now: Instant::ZERO,
            ended: false,
            last_found: BTreeMap::new(),
            records: 0,
            judged: 0,
            report: Report::default(),
        }
    }

    /// What was found.
    pub fn finish(self) -> Report {
        self.report
    }

    /// The state after the records of `now` holds until `until`: judges it.
    fn judge_until(&mut self, until: Instant) {
        if !self.report.lists_all() && self.judged > JUDGED_PER_RECORD * self.records {
            return;
        }
        let suspects: BTreeSet<CpuId> = self.links.suspects().chain(self.mismatched.iter().copied()).collect();
        self.judged += suspects.len() as u64;
        let before = std::mem::take(&mut self.last_found);
        for cpu in suspects {
            let found = self.inversion(cpu, until).or_else(|| self.wrong_process(cpu, until));
            if let Some(violation) = found {
                let key = (violation.job, violation.what);
                if before.get(&cpu) != Some(&key) {
                    self.report.push(violation);
                }
                self.last_found.insert(cpu, key);
            }
        }
    }

    /// Whether a bottom half is on the stack of `cpu`.
    fn is_in_bottom_half(&self, cpu: CpuId) -> bool {
        self.replay.cpus()[cpu.index()].bottom_half().is_some()
    }

    /// A more urgent job waits for `cpu` at some time from now to `until` at which that must not be.
    fn inversion(&self, cpu: CpuId, until: Instant) -> Option<Violation> {
        if self.is_in_bottom_half(cpu) {
            return None;
        }
        let mut ready = self.links.unlinked_of(cpu)?;
        match &self.rule {
            Rule::WorkConserving if self.links.linked(cpu).is_some() => None,
            Rule::Always | Rule::WorkConserving => {
                let waiting = ready.find(|job| self.waits(job))?;
                // A CPU without a link may still be about to get one: its scheduler runs, or waits for the lock.
                let covered = self.replay.cpus()[cpu.index()].covered_until();
                let idle = self.links.linked(cpu).is_none();
                let since = if idle { self.now.max(covered) } else { self.now };
                (since < until).then(|| self.yields(cpu, waiting, since, None)).flatten()
            }
            Rule::AtTicks(ticks) => {
                let waiting = ready.find(|job| self.waits(job))?;
                let missing = ticks.missing_since(cpu, waiting.unlinked_since, until)?;
                self.yields(cpu, waiting, missing, None)
            }
            Rule::AtBoundaries { boundaries, .. } if self.ideal => {
                // If something happened too late for the decision of this very instant, the next one knows of it.
                let first = boundaries.first_from(cpu, self.now)?;
                let second = boundaries.after(first);
                [Some(first), second]
                    .into_iter()
                    .flatten()
                    .filter(|&boundary| boundary < until)
                    .find_map(|boundary| self.undecided(cpu, boundary))
            }
            Rule::AtBoundaries { quanta, boundaries } => {
                // The quantum that holds `now`, and the next: nothing changes after that.
                let end = boundaries.first_from(cpu, Instant(self.now.0.checked_add(1)?))?;
                let first = boundaries.before(end).map(|begin| (begin, end));
                let second = boundaries.after(end).map(|next| (end, next));
                let is_decided =
                    |&(begin, end): &(Instant, Instant)| end <= until && !boundaries.may_be_undecided(cpu, begin, end);
                [first, second].into_iter().flatten().filter(is_decided).find_map(|(begin, _)| {
                    // With staggered quanta another CPU may have displaced the job within this CPU's quantum.
                    let since = |job: &Ready| match quanta {
                        Quanta::Aligned => job.since,
                        Quanta::Staggered => job.unlinked_since,
                    };
                    let is_known = |job: &Ready| since(job) < begin && job.key_change.at < begin;
                    let mut ready = self.links.unlinked_of(cpu)?;
                    let waiting = ready.find(|job| self.waits(job) && is_known(job))?;
                    self.yields(cpu, waiting, begin, Some(begin))
                })
            }
        }
    }

    /// Judges what the last tick decided, once `event` is none of its links; and notes the next one.
    fn follow_ticks(&mut self, at: Instant, event: Event) {
        let Rule::AtTicks(ticks) = &mut self.rule else { return };
        let (decided_at, decided) = match event {
            Event::Link { .. } => return,
            Event::Overhead { cpu, kind: OverheadKind::Tick, .. } => ticks.begin(cpu, at),
            _ => ticks.end(),
        };
        for cpu in decided {
            let waiting = self.links.unlinked_of(cpu).and_then(|mut ready| ready.find(|job| self.waits(job)));
            let found = waiting.and_then(|waiting| self.yields(cpu, waiting, decided_at, None));
            found.into_iter().for_each(|violation| self.report.push(violation));
        }
    }

    /// Without overheads: a more urgent job waits for `cpu` at `boundary`, when the links of a quantum were decided.
    ///
    /// A job may be dispatched there and end at once (an empty step), unlock something or lose an inherited priority:
    /// what then becomes ready, the CPU that then falls idle, and what priorities then are, come too late.
    fn undecided(&self, cpu: CpuId, boundary: Instant) -> Option<Violation> {
        let state = self.links.cpu(cpu);
        let linked = self.links.linked(cpu);
        let is_late = state.free_late && state.free_since == boundary
            || linked.is_some_and(|linked| linked.key_change.is_unknown_at(boundary));
        if is_late {
            return None;
        }
        let is_new = |job: &Ready| job.is_late && job.since == boundary || job.key_change.is_unknown_at(boundary);
        let waiting = self.links.unlinked_of(cpu)?.find(|job| self.waits(job) && !is_new(job))?;
        self.yields(cpu, waiting, boundary, None)
    }

    /// Whether a ready and unlinked job waits for a CPU and nothing else.
    fn waits(&self, job: &Ready) -> bool {
        !self.has_devices || !self.links.is_held_back(job.job, self.is_klmirqd, &self.replay)
    }

    /// The violation, if `cpu` should have gone to `waiting` at `at`. `decided`: when the decision was taken, if that
    /// is long ago; what was true then counts.
    fn yields(&self, cpu: CpuId, waiting: &Ready, at: Instant, decided: Option<Instant>) -> Option<Violation> {
        let job = self.links.linked(cpu);
        let state = self.links.cpu(cpu);
        let fell_idle_after = |decided| state.free_since > decided || state.free_late && state.free_since == decided;
        let waiting_urgency = self.links.urgency(waiting.key);
        let what = match job {
            None if decided.is_some_and(fell_idle_after) => return None,
            None => Problem::NotWorkConserving { waiting: waiting.job, waiting_urgency },
            Some(linked) if linked.key < waiting.key => return None,
            Some(linked) if self.links.non_preemptive_until(linked.job.task) > decided.unwrap_or(self.now) => {
                return None;
            }
            Some(linked) if decided.is_some_and(|decided| linked.key_change.at >= decided) => return None,
            Some(linked) => {
                let urgency = self.links.urgency(linked.key);
                Problem::Inversion { urgency, waiting: waiting.job, waiting_urgency }
            }
        };
        Some(Violation { at, cpu: Some(cpu), job: job.map(|linked| linked.job), what })
    }

    /// Once all overheads are over, a CPU runs what it is linked to, unless a non-preemptive section goes on there, or an interrupt
    /// until `until`: top halves may take time where nothing else does.
    fn wrong_process(&self, cpu: CpuId, until: Instant) -> Option<Violation> {
        let state = &self.replay.cpus()[cpu.index()];
        let running = state.job();
        let linked = self.links.linked(cpu).map(|linked| linked.job);
        let queues = &self.replay.details().queues;
        let since = self.now.max(self.settled_at);
        if !self.follows_links
            || state.bottom_half().is_some()
            || since >= until
            || running == linked
            || running.is_some_and(|job| queues.is_ready(job) && queues.section(job).is_some())
        {
            return None;
        }
        let (job, what) = match running {
            Some(_) => (running, Problem::RunsUnlinked { linked }),
            None => (linked, Problem::LinkedButIdle),
        };
        Some(Violation { at: since, cpu: Some(cpu), job, what })
    }

    /// Judges a link before the replay takes it.
    fn judge_link(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        let queues = &self.replay.details().queues;
        let (Some(cluster), Some(state)) = (self.links.cluster_of(job.task), self.replay.cpu(cpu)) else { return };
        let act = Act::Link;
        let what = if !queues.is_ready(job) {
            Problem::OutOfTurn { act, phase: self.phase(job) }
        } else if queues.cluster_of(cpu) != Some(cluster) {
            Problem::OutsideCluster { act, cluster }
        } else if queues.link_of(job.task) == Some(cpu) || self.rule.is_deciding(cluster) {
            return;
        } else if let Rule::AtTicks(_) = self.rule {
            Problem::LinkedWithinQuantum { quantum: self.quantum }
        } else {
            let Rule::AtBoundaries { boundaries, .. } = &self.rule else { return };
            // A job whose process is still there (a non-preemptive section) can be linked to no other CPU, whichever
            // CPU's quantum begins; nothing is switched by that.
            let is_there = state.job() == Some(job) || boundaries.is_switched_in(cpu, job);
            if is_there || boundaries.may_link(cpu, at, self.ideal) {
                return;
            }
            Problem::LinkedWithinQuantum { quantum: self.quantum }
        };
        self.report.push(Violation { at, cpu: Some(cpu), job: Some(job), what });
    }

    /// The phase of a job that is not ready.
    fn phase(&self, job: JobId) -> Phase {
        let pending = self.replay.tasks()[job.task.index()].pending();
        match pending.oldest() {
            oldest if job.index < oldest => Phase::Complete,
            _ if pending.deadline(job.index).is_none() => Phase::Unreleased,
            _ => Phase::Released,
        }
    }

    /// Brings the links up to date after the replay took the event.
    fn observe(&mut self, at: Instant, event: Event) {
        let takes = match event {
            Event::Overhead { kind, duration, .. } if occupies_cpu(kind) => duration,
            Event::LockWait { duration, .. } | Event::Ipi { latency: duration, .. } => duration,
            _ => Nanos::ZERO,
        };
        self.settled_at = self.settled_at.max(at.saturating_add(takes));
        match event {
            Event::Ready { job, .. } | Event::Resume { job, .. } => self.links.update(at, job.task, &self.replay),
            Event::Suspend { job, .. } | Event::Complete { job, .. } => self.links.update(at, job.task, &self.replay),
            Event::Link { cpu, job } => {
                self.links.update_cpu(at, cpu, &self.replay);
                if let Some(job) = job {
                    self.links.update(at, job.task, &self.replay);
                }
            }
            Event::Dispatch { cpu, .. } => {
                self.links.note_dispatch(at, cpu);
                if let Rule::AtBoundaries { boundaries, .. } = &mut self.rule {
                    boundaries.dispatched(cpu);
                }
            }
            Event::Interrupt { .. } => self.interrupted_at = Some(at),
            Event::BottomHalfEnd { cpu, .. } => {
                self.interrupted_at = Some(at);
                self.links.note_handled(at, cpu);
            }
            // The job goes on after all handlers of that instant, that of a tick included.
            Event::SpinEnd { cpu, .. } if self.interrupted_at == Some(at) => self.links.note_dispatch(at, cpu),
            Event::Priority { job, .. } => self.links.note_priority(at, job, &self.replay),
            Event::NonPreemptiveBegin { job, .. } => self.links.set_non_preemptive_until(job, Instant::NEVER),
            Event::NonPreemptiveEnd { job, .. } => self.links.set_non_preemptive_until(job, at),
            Event::Overhead { cpu, kind, duration } if occupies_cpu(kind) => {
                if let Rule::AtBoundaries { boundaries, .. } = &mut self.rule {
                    let linked = self.replay.details().queues.linked(cpu);
                    boundaries.overhead(cpu, kind, (at, at.saturating_add(duration)), linked);
                }
            }
            Event::LockWait { cpu, duration } => {
                if let Rule::AtBoundaries { boundaries, .. } = &mut self.rule {
                    boundaries.covered(cpu, at, at.saturating_add(duration));
                }
            }
            _ => {}
        }
    }

    /// Compares what the CPU runs with what it is linked to.
    fn match_process(&mut self, cpu: CpuId) {
        let Some(state) = self.replay.cpu(cpu).filter(|_| self.follows_links) else { return };
        if state.job() == self.replay.details().queues.linked(cpu) {
            self.mismatched.remove(&cpu);
        } else {
            self.mismatched.insert(cpu);
        }
    }
}

impl Sink for PolicyCheck {
    fn record(&mut self, at: Instant, event: Event) {
        let Some(event) = self.view.of(event) else { return };
        if self.ended || at < self.now {
            return;
        }
        self.records += 1;
        if at > self.now {
            self.judge_until(at);
            if let Some(priorities) = &mut self.priorities {
                priorities.judge(self.now, &self.replay, &mut self.report);
            }
            self.now = at;
        }
        self.follow_ticks(at, event);
        let foreign = self.dedicated.as_mut().and_then(|dedicated| dedicated.judge(at, event));
        foreign.into_iter().for_each(|violation| self.report.push(violation));
        let mut linked_before = None;
        if let Event::Link { cpu, job: Some(job) } = event {
            self.judge_link(at, cpu, job);
            linked_before = self.replay.details().queues.link_of(job.task);
        }
        self.replay.apply(at, event);
        self.observe(at, event);
        if let Some(priorities) = &mut self.priorities {
            priorities.observe(at, event, &self.replay, &mut self.report);
        }
        event.cpus().into_iter().flatten().chain(linked_before).for_each(|cpu| self.match_process(cpu));
        self.ended = event == Event::End;
    }
}
