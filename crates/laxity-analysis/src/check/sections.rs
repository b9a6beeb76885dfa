//! The time in which a job holds the bandwidth lock, as non-preemptive sections of its body.
//!
//! ```text
//!   body       cpu | kernel k | kernel l | cpu                     cpu | launch k | cpu | kernel l | cpu
//!   becomes    cpu | nonpreemptive R(k) + R(l) | cpu               cpu | nonpreemptive R(k) + cpu + R(l) | cpu
//! ```
//!
//! A job that unlocks and locks again at one instant is not preempted between, and neither is one that does before its CPU hears
//! of another job: an inter-processor interrupt takes its time, even from the CPU itself. So operations without CPU time between
//! that is longer are one section, with what cannot be preempted before them. Proof: `docs/decisions/0165-sections-of-the-bandwidth-lock-that-touch.md`.

use laxity_model::{ExecutionTime, GpuOperation, LockHeed, Nanos, Step, Task, Waiting};

use super::memory::{Memory, any_operation};
use crate::bwlock::{Aggressor, Begins, Regulation, protected};

/// The bodies of a task with sections instead of GPU operations.
pub(super) struct Sections<'a> {
    memory: &'a Memory<'a>,
    aggressors: &'a [Aggressor],
    call: u64,
    /// How long a job may go on after it unlocked, until its CPU hears of a more urgent one.
    notice: u64,
    regulation: Regulation,
}

/// A section of a body, as far as it is known.
#[derive(Clone, Copy)]
struct Section {
    length: u64,
    /// Whether the job may be preempted in it after all, as it has parts in which it does not hold the lock.
    has_gaps: bool,
}

impl<'a> Sections<'a> {
    pub fn new(memory: &'a Memory<'a>, task: &Task, aggressors: &'a [Aggressor]) -> Self {
        let lock = memory.workload.gpu_management.bandwidth_lock.expect("it is this lock that is analysed");
        let regulator = &memory.workload.platform.memory.regulator;
        let regulation = Regulation {
            period: regulator.period.0,
            budget: task.memory_budget.unwrap_or(lock.budget),
            latency: regulator.latency.0,
            waits_for_period: regulator.heed == LockHeed::Period,
        };
        let notice = memory.costs().ipi_latency.0;
        Sections { memory, aggressors, call: lock.call.0, notice, regulation }
    }

    pub fn of(&self, body: &[Step]) -> Result<Vec<Step>, &'static str> {
        let mut flat = Vec::new();
        flatten(body, &mut flat);
        let mut lowered = Vec::new();
        let mut section: Option<Section> = None;
        let mut ends_in_gaps = false;
        for step in flat {
            ends_in_gaps = false;
            match (step, &mut section) {
                (Step::Gpu(operation), open) => {
                    let begins = if open.is_none() { Begins::First } else { Begins::Later };
                    let mut held = match open.take() {
                        Some(held) => held,
                        None => self.begin(&mut lowered)?,
                    };
                    held.add(self.call);
                    held.add(self.protected(operation, begins));
                    match operation.waiting {
                        Waiting::Asynchronous => *open = Some(held),
                        Waiting::Synchronous => {
                            lowered.push(self.unlocked(held));
                            ends_in_gaps = held.has_gaps;
                        }
                    }
                }
                (Step::Cpu(time) | Step::NonPreemptive(time), Some(held)) => held.add(time.wcet.0),
                (Step::Suspend(_), Some(_)) => {
                    return Err(
                        "it suspends while it holds the bandwidth lock, so that others run and take it meanwhile; \
                                wait for the operation before, or simulate",
                    );
                }
                (Step::Critical { .. }, Some(_)) => {
                    return Err(
                        "it waits for a resource while it holds the bandwidth lock; wait for the operation before, \
                                or simulate",
                    );
                }
                (Step::Critical { body, .. }, None) if any_operation(body, &|_| true) => {
                    return Err(
                        "it uses a GPU within a critical section, which is not analysed under the bandwidth lock; \
                                move one out of the other, or simulate",
                    );
                }
                (Step::NonPreemptive(time), None) if self.notice > 0 => {
                    let first = self.adjacent(&lowered, 0).first;
                    if first == lowered.len() {
                        lowered.push(step.clone());
                        continue;
                    }
                    let mut held = Section::of(lowered.drain(first..));
                    held.add(time.wcet.0);
                    lowered.push(held.step());
                    ends_in_gaps = true;
                }
                (step, None) => lowered.push(step.clone()),
                (_, Some(_)) => unreachable!("sections of GPUs are flattened"),
            }
        }
        // A job ends only when its operations have.
        if let Some(held) = section {
            lowered.push(self.unlocked(held));
            ends_in_gaps = held.has_gaps;
        }
        if ends_in_gaps {
            // A body that ends with a non-preemptive step is one that nothing preempts from there on.
            lowered.push(Step::Cpu(ExecutionTime::constant(Nanos::ZERO)));
        }
        Ok(lowered)
    }

    /// The section of a job that locks after `lowered`, from whose end it takes what nothing need preempt before.
    fn begin(&self, lowered: &mut Vec<Step>) -> Result<Section, &'static str> {
        let Adjacent { first, is_behind_a_resource } = self.adjacent(lowered, self.call);
        if is_behind_a_resource {
            return Err(
                "it may take the bandwidth lock before another job has the CPU that waited for the resource which it unlocked, so \
                 that this one waits on, which is not analysed; let it execute in between, or simulate",
            );
        }
        // The call is CPU time before the lock is held.
        let has_gaps = first < lowered.len() || self.call > 0;
        Ok(Section { has_gaps, ..Section::of(lowered.drain(first..)) })
    }

    /// What of the end of `lowered` nothing need preempt, up to a section that begins `gap` of CPU time later.
    fn adjacent(&self, lowered: &[Step], mut gap: u64) -> Adjacent {
        let mut first = lowered.len();
        for (at, step) in lowered.iter().enumerate().rev() {
            if gap > self.notice {
                break;
            }
            match step {
                Step::NonPreemptive(time) => {
                    first = at;
                    // What follows a resource may be preempted before, if that is noticed at once.
                    let takes_time = time.actual.min(time.wcet) > Nanos::ZERO;
                    let is_plain = at.checked_sub(1).is_some_and(|at| matches!(lowered[at], Step::Critical { .. }));
                    if self.notice == 0 && takes_time && is_plain {
                        break;
                    }
                    gap = 0;
                }
                Step::Cpu(time) => gap = gap.saturating_add(time.actual.min(time.wcet).0),
                Step::Critical { .. } => return Adjacent { first, is_behind_a_resource: true },
                _ => break,
            }
        }
        Adjacent { first, is_behind_a_resource: false }
    }

    /// The step that `held` amounts to, with the call that unlocks, and until others have the CPU.
    fn unlocked(&self, mut held: Section) -> Step {
        held.add(self.call);
        held.add(self.notice);
        held.step()
    }

    fn protected(&self, operation: &GpuOperation, begins: Begins) -> u64 {
        let work = self.memory.length(operation).0;
        let contention = &self.memory.workload.platform.memory.contention;
        protected(work, operation.memory, contention, self.aggressors, &self.regulation, begins)
    }
}

/// The end of a body so far.
struct Adjacent {
    /// The first of the steps that nothing need preempt; all if there is none.
    first: usize,
    /// Whether the job may have unlocked a resource just before.
    is_behind_a_resource: bool,
}

impl Section {
    /// Of `steps` in which the job may be preempted, or not.
    fn of(steps: impl Iterator<Item = Step>) -> Section {
        let mut section = Section { length: 0, has_gaps: true };
        for step in steps {
            if let Step::NonPreemptive(time) | Step::Cpu(time) = step {
                section.add(time.wcet.0);
            }
        }
        section
    }

    fn step(self) -> Step {
        Step::NonPreemptive(ExecutionTime::constant(Nanos(self.length.min(Nanos::LONGEST.0))))
    }

    fn add(&mut self, length: u64) {
        self.length = self.length.saturating_add(length);
    }
}

/// Sections of GPUs mean nothing where the driver arbitrates.
fn flatten<'s>(body: &'s [Step], flat: &mut Vec<&'s Step>) {
    for step in body {
        match step {
            Step::GpuSection { body } => flatten(body, flat),
            other => flat.push(other),
        }
    }
}
