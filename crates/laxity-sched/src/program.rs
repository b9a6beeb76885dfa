//! A program that knows nothing of Laxity as a task of a system: its keeper, the process that started it, has a job released
//! for it in each period, and stops it when the job's budget is used up.
//!
//! ```text
//!             release: a budget, SIGCONT           linked: first thread has the CPU
//! (stopped) ----------------------------> (ready) <--------------------------------> (runs)
//!     ^                                      |                                         |
//!     '------- budget used up: SIGSTOP ------'-----------------------------------------'
//! ```
//!
//! The budget is CPU time of the whole process. Linux counts that of a running thread only when its CPU is taken from it, so the
//! keeper looks from there: it sleeps on the CPU of the program's first thread, and takes it when it wakes up. Decision 88 has
//! the reasons.

use std::io;

use laxity_model::{Instant, Nanos};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{self, Attributes};
use laxity_sys::{clock, process};

use crate::placement::Class;
use crate::system::{BeginError, System};
use crate::task::{Job, Parameters, Task, TaskError};

/// A program as a task. Dropped, the program is scheduled as before and goes on. If the keeper's thread ends without that,
/// other members of the system do the same.
#[derive(Debug)]
pub struct Program {
    task: Task,
    pid: u32,
    budget: Budget,
    has_job: bool,
    /// The next release, and the number of its job.
    next: Instant,
    index: u64,
    stops: u64,
    /// Its CPU time when it became a task, and when it was last looked at.
    used: [Nanos; 2],
    /// After the task: the keeper is urgent while it ends that.
    keeper: Keeper,
}

/// What a program did as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramReport {
    /// Jobs that were released, but for those whose budgets were owed.
    pub jobs: u64,
    /// Those of them that are complete.
    pub completed: u64,
    /// Those that were complete after their deadlines.
    pub late: u64,
    /// The latest by how much.
    pub tardiness_max: Nanos,
    /// How often it was stopped because its budget was used up.
    pub stops: u64,
    /// The CPU time that all its threads used.
    pub cpu_time: Nanos,
}

/// The calling thread is urgent while this lives, and where the program is.
#[derive(Debug)]
struct Keeper {
    /// How it was scheduled.
    own: Attributes,
    /// Where it could run.
    cpus: Option<CpuMask>,
    /// The CPU that it keeps itself on, if any.
    on: Option<usize>,
}

/// The state of a program at a look.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// The CPU time of all its threads.
    used: Nanos,
    /// How many CPUs they had.
    cpus: u64,
}

/// What the program may use, in CPU time that it used since it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Budget {
    /// Of each job.
    length: Nanos,
    /// Where the present one ends.
    end: Nanos,
    /// Whether it was found to be used up.
    is_used_up: bool,
}

/// Why a program cannot be kept any longer.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The state of the task.
    #[error("{0}")]
    Task(#[from] TaskError),
    /// Linux refuses to stop the program, or to let it go on.
    #[error("task {task}: cannot {action} the program, process {pid}: {error}; run it as the user of `laxity exec`")]
    Refused {
        /// The task.
        task: String,
        /// What was tried.
        action: &'static str,
        /// The process.
        pid: u32,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// So little of a budget is not waited for: waking up for it would take as long. The next budget is longer by it.
const CRUMB: Nanos = Nanos::from_micros(50);

impl Budget {
    fn left(&self, used: Nanos) -> Nanos {
        self.end.saturating_sub(used)
    }

    /// Whether it is used up after `used`, or nearly so.
    fn look(&mut self, used: Nanos) -> bool {
        self.is_used_up |= self.left(used) <= CRUMB;
        self.is_used_up
    }

    /// Another one. It is shorter by the time that the program had too much, because it was stopped late, and longer by the
    /// rest of the one before, if it was stopped early. A rest that the program did not want is lost.
    fn replenish(&mut self, used: Nanos) {
        let from = if self.look(used) { self.end } else { used };
        *self = Budget { end: sum(from, self.length), is_used_up: false, ..*self };
    }
}

/// CPU times do not overflow: 584 years.
const fn sum(a: Nanos, b: Nanos) -> Nanos {
    Nanos(a.0.saturating_add(b.0))
}

impl Program {
    /// The process `pid`, a child of this process that the caller does not wait for before this is dropped, is a task of
    /// `system` from now on: each of its jobs may use `wcet` of CPU time, and the first is released at the first
    /// [`Program::look`]. The calling thread becomes as urgent as threads of the system that wait for their jobs.
    ///
    /// # Errors
    /// [`BeginError`]; among others if the budget is zero.
    pub fn begin(system: &System, parameters: Parameters, pid: u32) -> Result<Program, BeginError> {
        let name = || parameters.name.clone();
        if parameters.wcet <= CRUMB {
            return Err(BeginError::Short { task: name(), wcet: parameters.wcet, least: CRUMB });
        }
        let Parameters { wcet, deadline, period, .. } = parameters;
        if wcet > deadline || deadline > period {
            return Err(BeginError::Deadline { task: name(), wcet, deadline, period });
        }
        let refused = |action| move |error| BeginError::Refused { task: name(), action, error };
        let used = process::cpu_time(pid).map_err(refused("read the CPU time of its program"))?;
        let own = Attributes::of(scheduling::current_thread()).map_err(refused("read its scheduling class"))?;
        let urgent = system.shared().attributes(Class::Urgent);
        urgent.give_to(0).map_err(refused("have its priority"))?;
        let keeper = Keeper { own, cpus: CpuMask::of_thread(scheduling::current_thread()).ok(), on: None };
        let task = system.begin_for(parameters, pid)?;
        let budget = Budget { length: wcet, end: sum(used, wcet), is_used_up: false };
        let (has_job, next, index, stops) = (false, clock::now(), 0, 0);
        Ok(Program { task, pid, budget, has_job, next, index, stops, used: [used; 2], keeper })
    }

    /// Does what is due now: has a job released, or stops the program because its budget is used up. Answers when to look
    /// again, at the latest; never, if the program has ended.
    ///
    /// # Errors
    /// [`ProgramError`].
    pub fn look(&mut self) -> Result<Instant, ProgramError> {
        loop {
            let Ok(Found { used, cpus }) = self.keeper.look(self.pid) else { return Ok(Instant::NEVER) };
            let now = clock::now();
            self.used[1] = used;
            if now < self.next {
                if self.has_job && self.budget.look(used) {
                    self.signal("stop", process::stop)?;
                    self.stops += 1;
                    self.end_job(true)?;
                }
                // Threads on several CPUs use it up together. One more that wakes up meanwhile uses too much, which the
                // next budgets pay back.
                let left =
                    if self.has_job { Nanos(self.budget.left(used).0 / cpus).max(CRUMB) } else { Nanos(u64::MAX) };
                return Ok(self.next.min(now.saturating_add(left)));
            }
            self.begin_job(now, used)?;
        }
    }

    /// What it did until now; once it has ended, and until it is waited for, that is all.
    pub fn report(&self) -> ProgramReport {
        let (shared, words) = (self.task.shared(), self.task.shared().task(self.task.id()));
        let [begin, last] = self.used;
        ProgramReport {
            jobs: self.index,
            completed: shared.long(words.completed),
            late: shared.long(words.late),
            tardiness_max: Nanos(shared.long(words.tardiness)),
            stops: self.stops,
            cpu_time: process::cpu_time(self.pid).unwrap_or(last).saturating_sub(begin),
        }
    }

    /// The next release has come.
    fn begin_job(&mut self, now: Instant, used: Nanos) -> Result<(), ProgramError> {
        if self.has_job {
            // It had its chance if it waited for something else than a CPU.
            self.end_job(process::is_ready(self.pid))?;
        }
        self.budget.replenish(used);
        let release = self.next;
        let period = self.task.parameters().period;
        // Releases that this process slept through are lost.
        let missed = now.saturating_since(release).0 / period.0;
        self.next = release.saturating_add(Nanos(period.0.saturating_mul(missed + 1)));
        let release = release.saturating_add(Nanos(period.0.saturating_mul(missed)));
        let deadline = release.saturating_add(self.task.parameters().deadline);
        let job = Job { index: self.index, release, deadline };
        self.index += 1;
        if self.budget.look(used) {
            // It owes more than a budget, as if another process had let it go on.
            return self.signal("stop", process::stop);
        }
        self.task.release(job)?;
        self.has_job = true;
        self.signal("continue", process::go_on)
    }

    /// The present job is over: it used its budget, or has no time left for it. Unless it wanted more, it is complete at
    /// its deadline at the latest.
    fn end_job(&mut self, wanted_all: bool) -> Result<(), ProgramError> {
        self.has_job = false;
        let decision = self.task.end_pending(&mut ())?;
        let deadline = self.task.job().deadline;
        let at = if wanted_all { decision.at } else { decision.at.min(deadline) };
        self.task.shared().end_job(self.task.id(), at);
        Ok(())
    }

    fn signal(&self, action: &'static str, send: fn(u32) -> io::Result<()>) -> Result<(), ProgramError> {
        let task = || self.task.parameters().name.clone();
        send(self.pid).map_err(|error| ProgramError::Refused { task: task(), action, pid: self.pid, error })
    }
}

impl Keeper {
    /// Looks at the process `pid` from each CPU on which it has a thread, so that the time they used there is counted, and
    /// stays on that of its first one. Where this thread may not go to, the time is short by up to a tick: the budget after
    /// pays that back.
    fn look(&mut self, pid: u32) -> io::Result<Found> {
        let cpus = process::cpus_of_ready(pid);
        for &cpu in &cpus {
            if self.on != Some(cpu) && scheduling::pin(cpu).is_ok() {
                self.on = Some(cpu);
            }
        }
        Ok(Found { used: process::cpu_time(pid)?, cpus: cpus.len().max(1) as u64 })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let (Some(cpus), Some(_)) = (self.cpus, self.on) {
            // They may be gone: then Linux gives it others.
            let _ = cpus.give_to(scheduling::current_thread());
        }
        // An ordinary user cannot take back that what the thread starts is scheduled as usual.
        let _ = self.own.give_to(0).or_else(|_| self.own.not_inherited().give_to(0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn over_many_periods_a_busy_program_gets_its_budget_exactly_however_late_it_is_stopped() {
        let mut budget = Budget { length: ms(2), end: ms(2), is_used_up: false };
        assert!(!budget.look(ms(1)));
        // Stopped 0.7 ms late, which the next budget pays back.
        assert!(budget.look(Nanos::from_micros(2_700)));
        budget.replenish(Nanos::from_micros(2_700));
        assert_eq!(budget.left(Nanos::from_micros(2_700)), Nanos::from_micros(1_300));
        // Stopped 0.03 ms early, which the next budget has in addition.
        assert!(budget.look(Nanos::from_micros(3_970)));
        budget.replenish(Nanos::from_micros(3_970));
        assert_eq!(budget.left(Nanos::from_micros(3_970)), Nanos::from_micros(2_030));
    }

    #[test]
    fn what_a_program_does_not_want_is_lost_and_what_it_owes_is_paid_by_several_budgets() {
        let mut budget = Budget { length: ms(2), end: ms(2), is_used_up: false };
        budget.replenish(ms(1));
        assert_eq!(budget.left(ms(1)), ms(2), "no more than one");
        assert!(budget.look(ms(8)));
        budget.replenish(ms(8));
        assert!(budget.look(ms(8)), "it owes 3 ms");
        budget.replenish(ms(8));
        assert!(budget.look(ms(8)), "it owes 1 ms");
        budget.replenish(ms(8));
        assert!(!budget.look(ms(8)));
        assert_eq!(budget.left(ms(8)), ms(1));
    }
}
