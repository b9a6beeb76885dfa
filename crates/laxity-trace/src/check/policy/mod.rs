//! Does a schedule follow the scheduler its header names?

mod mapping;
mod quanta;

use laxity_model::{
    CpuId, Instant, InterruptHandling, Invocation, JobId, Nanos, OverheadCosts, OverheadKind, PriorityRule, Quanta,
};

use self::mapping::{LinkError, Mapping, Unlinked};
use self::quanta::Boundaries;
use super::{Act, Problem, Report, Violation};
use crate::{Event, Origin, Sink, TraceHeader};

/// Judges the links of a schedule: in every cluster of m CPUs, the linked jobs are the m most urgent ready ones
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
/// - Quantum-driven, else: the tick handler acts some time after the boundary, so the rule is judged at the end of each
///   quantum: a job that was ready before the quantum began and is still unlinked must not be more urgent than a linked
///   one, nor may a CPU have been without a link for all of the quantum. If ticks cost time, a job may become linked
///   only while a tick handler runs.
/// - The fair class ranks nobody: after the last record of every instant no CPU is without a link while a job of its
///   cluster waits.
/// - In a simulation without overheads, each CPU moreover runs what it is linked to.
///
/// Where a quantum decides for some time, it goes by the priorities of when it began.
///
/// The last instant of a trace, at which its writer stopped, is not judged. What is no legal schedule to begin with is
/// [`LegalityCheck`](super::LegalityCheck)'s business and ignored here.
///
/// Priorities are effective ones: a job has that of its own right until a `Priority` says otherwise. An interrupt thread
/// and the owner it serves are one entity under klmirqd: while one of them is linked the other does not wait for a CPU.
/// A CPU with a bottom half on its stack is not judged until that ends, and the job below it does not wait. What Linux
/// leaves to its daemon without real-time priority is outside the policy.
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
    mapping: Mapping,
    now: Instant,
    ended: bool,
    /// What was last found on each CPU: a violation that goes on is reported once.
    last_found: Vec<Option<(Option<JobId>, Problem)>>,
    report: Report,
}

/// When the links of a CPU must be right.
#[derive(Clone, Debug)]
enum Rule {
    Always,
    WorkConserving,
    AtBoundaries { quanta: Quanta, boundaries: Boundaries },
}

impl PolicyCheck {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        let rule = match (header.scheduler.rule, header.scheduler.invocation) {
            (PriorityRule::Fair, _) => Rule::WorkConserving,
            (_, Invocation::EventDriven) => Rule::Always,
            (_, Invocation::QuantumDriven) => {
                Rule::AtBoundaries { quanta: header.scheduler.quanta, boundaries: Boundaries::new(header) }
            }
        };
        let has_devices = !header.devices.is_empty() || !header.gpus.is_empty();
        let is_free = header.origin == Origin::Simulated && header.costs == OverheadCosts::default();
        PolicyCheck {
            rule,
            quantum: header.quantum,
            has_devices,
            is_klmirqd: matches!(header.handling, InterruptHandling::Klmirqd { .. }),
            // Where devices interrupt, a boundary may find the CPU busy though no overhead is charged.
            ideal: is_free && !(has_devices && header.scheduler.invocation == Invocation::QuantumDriven),
            mapping: Mapping::new(header),
            now: Instant::ZERO,
            ended: false,
            last_found: vec![None; header.cpus],
            report: Report::default(),
        }
    }

    /// What was found.
    pub fn finish(self) -> Report {
        self.report
    }

    /// The state after the records of `now` holds until `until`: judges it.
    fn judge_until(&mut self, until: Instant) {
        for cpu in 0..self.last_found.len() {
            let found = self.inversion(cpu, until).or_else(|| self.wrong_process(cpu, until));
            let key = found.map(|violation| (violation.job, violation.what));
            if let Some(violation) = found.filter(|_| key != self.last_found[cpu]) {
                self.report.push(violation);
            }
            self.last_found[cpu] = key;
        }
    }

    /// A more urgent job waits for `cpu` at some time from now to `until` at which that must not be.
    fn inversion(&self, cpu: usize, until: Instant) -> Option<Violation> {
        if self.mapping.cpu(cpu).in_bottom_half {
            return None;
        }
        let ready = self.mapping.unlinked_of(cpu)?;
        match &self.rule {
            Rule::WorkConserving if self.mapping.linked(cpu).is_some() => None,
            Rule::Always | Rule::WorkConserving => {
                let waiting = ready.values().find(|job| self.waits(job))?;
                // A CPU without a link may still be about to get one: its scheduler runs, or waits for the lock.
                let covered = self.mapping.cpu(cpu).covered_until;
                let idle = self.mapping.linked(cpu).is_none();
                let since = if idle { self.now.max(covered) } else { self.now };
                (since < until).then(|| self.yields(cpu, waiting, since, None)).flatten()
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
                [first, second].into_iter().flatten().filter(|&(_, end)| end <= until).find_map(|(begin, _)| {
                    // With staggered quanta another CPU may have displaced the job within this CPU's quantum.
                    let since = |job: &Unlinked| match quanta {
                        Quanta::Aligned => job.ready_since,
                        Quanta::Staggered => job.unlinked_since,
                    };
                    let is_known = |job: &Unlinked| since(job) < begin && job.key_change.at < begin;
                    let waiting = ready.values().find(|job| self.waits(job) && is_known(job))?;
                    self.yields(cpu, waiting, begin, Some(begin))
                })
            }
        }
    }

    /// Without overheads: a more urgent job waits for `cpu` at `boundary`, when the links of a quantum were decided.
    ///
    /// A job may be dispatched there and end at once (an empty step), unlock something or lose an inherited priority:
    /// what then becomes ready, the CPU that then falls idle, and what priorities then are, come too late.
    fn undecided(&self, cpu: usize, boundary: Instant) -> Option<Violation> {
        let state = self.mapping.cpu(cpu);
        let linked = self.mapping.linked(cpu);
        let is_late = state.free_late && state.free_since == boundary
            || linked.is_some_and(|linked| linked.key_change.is_unknown_at(boundary));
        if is_late {
            return None;
        }
        let is_new =
            |job: &Unlinked| job.ready_late && job.ready_since == boundary || job.key_change.is_unknown_at(boundary);
        let ready = self.mapping.unlinked_of(cpu)?;
        let waiting = ready.values().find(|job| self.waits(job) && !is_new(job))?;
        self.yields(cpu, waiting, boundary, None)
    }

    /// Whether a ready and unlinked job waits for a CPU and nothing else.
    fn waits(&self, job: &Unlinked) -> bool {
        !self.has_devices || !self.mapping.is_held_back(job.job)
    }

    /// The violation, if `cpu` should have gone to `waiting` at `at`. `decided`: when the decision was taken, if that
    /// is long ago; what was true then counts.
    fn yields(&self, cpu: usize, waiting: &Unlinked, at: Instant, decided: Option<Instant>) -> Option<Violation> {
        let job = self.mapping.linked(cpu);
        let state = self.mapping.cpu(cpu);
        let fell_idle_after = |decided| state.free_since > decided || state.free_late && state.free_since == decided;
        let waiting_urgency = self.mapping.urgency(waiting.key);
        let what = match job {
            None if decided.is_some_and(fell_idle_after) => return None,
            None => Problem::NotWorkConserving { waiting: waiting.job, waiting_urgency },
            Some(linked) if linked.key < waiting.key => return None,
            Some(linked) if linked.non_preemptive_until > decided.unwrap_or(self.now) => return None,
            Some(linked) if decided.is_some_and(|decided| linked.key_change.at >= decided) => return None,
            Some(linked) => {
                let urgency = self.mapping.urgency(linked.key);
                Problem::Inversion { urgency, waiting: waiting.job, waiting_urgency }
            }
        };
        Some(Violation { at, cpu: Some(CpuId(cpu as u16)), job: job.map(|linked| linked.job), what })
    }

    /// Without overheads, a CPU runs what it is linked to, unless a non-preemptive section goes on there, or an interrupt
    /// until `until`: top halves may take time where nothing else does.
    fn wrong_process(&self, cpu: usize, until: Instant) -> Option<Violation> {
        let running = self.mapping.cpu(cpu).running;
        let linked = self.mapping.linked(cpu).map(|linked| linked.job);
        if !self.ideal
            || self.mapping.cpu(cpu).in_bottom_half
            || self.mapping.cpu(cpu).covered_until >= until
            || running == linked
            || running.is_some_and(|job| self.mapping.is_non_preemptive(job))
        {
            return None;
        }
        let (job, what) = match running {
            Some(_) => (running, Problem::RunsUnlinked { linked }),
            None => (linked, Problem::LinkedButIdle),
        };
        Some(Violation { at: self.now, cpu: Some(CpuId(cpu as u16)), job, what })
    }

    fn link(&mut self, at: Instant, cpu: CpuId, job: JobId) {
        let may_link = match &self.rule {
            Rule::Always | Rule::WorkConserving => true,
            // A job whose process is still there (a non-preemptive section) can be linked nowhere else, whoever's
            // quantum begins; nothing is switched by that.
            Rule::AtBoundaries { boundaries, .. } => {
                let stays = self.mapping.has_cpu(cpu) && self.mapping.cpu(cpu.index()).running == Some(job);
                stays || boundaries.may_link(cpu, at, self.ideal)
            }
        };
        let act = Act::Link;
        let what = match self.mapping.link(at, cpu, job) {
            Ok(true) if !may_link => Problem::LinkedWithinQuantum { quantum: self.quantum },
            Ok(_) | Err(LinkError::Unknown) => return,
            Err(LinkError::Phase(phase)) => Problem::OutOfTurn { act, phase },
            Err(LinkError::Cluster(cluster)) => Problem::OutsideCluster { act, cluster },
        };
        self.report.push(Violation { at, cpu: Some(cpu), job: Some(job), what });
    }

    fn overhead(&mut self, at: Instant, cpu: CpuId, kind: Option<OverheadKind>, duration: Nanos) {
        let until = at.saturating_add(duration);
        self.mapping.cover(cpu, until);
        if let (Rule::AtBoundaries { boundaries, .. }, Some(OverheadKind::Tick)) = (&mut self.rule, kind) {
            boundaries.ticked(cpu.index(), at, until);
        }
    }
}

impl Sink for PolicyCheck {
    fn record(&mut self, at: Instant, event: Event) {
        if self.ended || at < self.now {
            return;
        }
        if at > self.now {
            self.judge_until(at);
            self.now = at;
        }
        match event {
            Event::Release { job, deadline } => self.mapping.release(job, deadline),
            Event::Ready { job, .. } | Event::Resume { job, .. } => self.mapping.ready(at, job),
            Event::Link { cpu, job: Some(job) } => self.link(at, cpu, job),
            Event::Link { cpu, job: None } => self.mapping.unlink(at, cpu),
            Event::Dispatch { cpu, job } => self.mapping.dispatch(at, cpu, job),
            Event::Preempt { cpu, .. } => self.mapping.set_running(cpu, None),
            Event::Suspend { cpu, job } => {
                self.mapping.set_running(cpu, None);
                self.mapping.leave(at, job);
            }
            Event::Complete { cpu, job } => {
                self.mapping.set_running(cpu, None);
                self.mapping.complete(at, job);
            }
            Event::NonPreemptiveBegin { job, .. } => self.mapping.set_non_preemptive_until(job, Instant::NEVER),
            Event::NonPreemptiveEnd { job, .. } => self.mapping.set_non_preemptive_until(job, at),
            Event::Overhead { cpu, kind, duration } => self.overhead(at, cpu, Some(kind), duration),
            Event::LockWait { cpu, duration } => self.overhead(at, cpu, None, duration),
            Event::CacheDelay { .. } | Event::Ipi { .. } => {}
            Event::Priority { job, level, of } => self.mapping.prioritize(at, job, level, of),
            Event::Serve { thread, job, .. } if self.is_klmirqd => self.mapping.serve(thread, job),
            Event::BottomHalfBegin { cpu, .. } => self.mapping.set_bottom_half(cpu, true),
            Event::BottomHalfEnd { cpu, .. } => self.mapping.set_bottom_half(cpu, false),
            Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::Interrupt { .. }
            | Event::Serve { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::SpinBegin { .. }
            | Event::SpinEnd { .. }
            | Event::Replenish { .. } => {}
            Event::End => self.ended = true,
        }
    }
}
