//! A budget of a job that runs the user's code, which does not come back when the budget is used up: a thread beside that of
//! the task looks when that may be, and has the scheduler throttle or postpone the job.
//!
//! ```text
//!            lend               used up, and the next one is to come: throttle
//!  (own) ------------> (lent) -------------------------------------------------> (throttled)
//!    ^                 |    ^ '-- used up, and there is another one: postpone         |
//!    '--- take back ---'    '--------------------- budget again ---------------------'
//! ```
//!
//! The budget belongs to the thread of the task, but while that is in the user's code; a word says whose turn it is.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use laxity_model::{Instant, Nanos};
use laxity_plan::ServerLevel;
use laxity_sched::{Delegate, Task, TaskError};
use laxity_sys::clock::{self, ThreadClock};
use laxity_sys::futex;
use laxity_sys::timer::Timer;

use super::budget::Budget;
use super::{Cut, JobError, Jobs};
use crate::log::{JobStep, Writer};
use crate::stop::StopSignal;
use crate::worker::Interrupted;

/// Supervises the budget of a task.
#[derive(Debug)]
pub(super) struct Supervisor {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// What the two threads share.
#[derive(Debug)]
struct Desk {
    /// Whose turn it is: one of the constants below. The thread of the task waits on it.
    turn: AtomicU32,
    is_over: AtomicBool,
    /// When the supervisor is to look.
    timer: Timer,
    /// The CPU time of the task's thread.
    clock: ThreadClock,
    delegate: Delegate,
    /// Only the thread locks it whose turn it is, so neither waits.
    lent: Mutex<Lent>,
}

/// The thread of the task has the budget.
const OWN: u32 = 0;
/// It is in the user's code. Either thread takes the turn: the supervisor to look, the other one to end this.
const LENT: u32 = 1;
/// The supervisor looks after the budget.
const ACTS: u32 = 2;
/// The job is suspended until it has a budget.
const THROTTLED: u32 = 3;

#[derive(Debug)]
struct Lent {
    budget: Option<Budget>,
    /// The CPU time of the task's thread up to which the budget is charged.
    charged: Nanos,
    /// Its CPU time at the last look, and the least time until the next one.
    seen: Nanos,
    least: Nanos,
    index: u32,
    is_throttled: bool,
    log: Writer,
    /// Why the scheduler did not do as it was told.
    outcome: Result<(), JobError>,
}

/// What comes back of it.
struct Returned {
    budget: Option<Budget>,
    charged: Nanos,
    outcome: Result<(), JobError>,
}

/// So little is not waited for any shorter; it is charged, too.
const CRUMB: Nanos = Nanos::from_micros(20);
/// Until a job is looked at again that has no budget left and no CPU that it could lose, or whose code stands still.
const RETRY: Nanos = Nanos::from_micros(500);
/// Until a thread that waits for its budget looks whether the run is over.
const LOOK: Nanos = Nanos::from_millis(10);
/// Bytes: it calls nothing deep.
const STACK: usize = 256 << 10;

impl Supervisor {
    /// For `task`, that of the calling thread, whose log is `log`.
    ///
    /// # Errors
    /// Why there can be none, in words.
    pub fn start(task: &Task, log: &Writer) -> Result<Supervisor, String> {
        let failed = |error| format!("its budget cannot be supervised: {error}");
        let lent = Lent {
            budget: None,
            charged: Nanos::ZERO,
            seen: Nanos::ZERO,
            least: CRUMB,
            index: 0,
            is_throttled: false,
            log: log.in_turns(),
            outcome: Ok(()),
        };
        let desk = Arc::new(Desk {
            turn: AtomicU32::new(OWN),
            is_over: AtomicBool::new(false),
            timer: Timer::new().map_err(failed)?,
            clock: ThreadClock::of_this_thread().map_err(failed)?,
            delegate: task.delegate(),
            lent: Mutex::new(lent),
        });
        let (tell, told) = mpsc::channel();
        let of_thread = Arc::clone(&desk);
        let life = move || {
            let risen = of_thread.delegate.rise();
            let is_risen = risen.is_ok();
            // The thread that waits for this is there.
            let _ = tell.send(risen);
            if is_risen {
                of_thread.supervise();
            }
        };
        let thread = Builder::new().name("budget".to_owned()).stack_size(STACK).spawn(life).map_err(failed)?;
        let supervisor = Supervisor { desk, thread: Some(thread) };
        match told.recv() {
            Ok(risen) => risen.map_err(failed)?,
            Err(_) => return Err("its budget cannot be supervised: the thread ended".to_owned()),
        }
        Ok(supervisor)
    }

    /// The job `index` goes into the user's code, with this budget, which is charged up to the CPU time `charged`.
    fn lend(&self, budget: Budget, charged: Nanos, index: u32) {
        let look = clock::now().saturating_add(budget.left);
        {
            let mut lent = self.desk.lent();
            (lent.budget, lent.charged, lent.index) = (Some(budget), charged, index);
        }
        self.desk.turn.store(LENT, Ordering::SeqCst);
        // Only now: a supervisor that finds nothing lent sleeps until it is woken.
        self.desk.look_at(look);
    }

    /// The job is back, as soon as it has a budget; `None` if it is not to go on.
    fn take_back(&self, stop: &StopSignal) -> Option<Returned> {
        let turn = &self.desk.turn;
        let take = |from| turn.compare_exchange(from, OWN, Ordering::SeqCst, Ordering::SeqCst);
        while let Err(seen) = take(LENT) {
            if seen == THROTTLED && stop.is_stopped() && take(THROTTLED).is_ok() {
                return None;
            }
            futex::wait(turn, seen, clock::now().saturating_add(LOOK));
        }
        let mut lent = self.desk.lent();
        let outcome = std::mem::replace(&mut lent.outcome, Ok(()));
        Some(Returned { budget: lent.budget.take(), charged: lent.charged, outcome })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.desk.is_over.store(true, Ordering::SeqCst);
        self.desk.look_at(clock::now());
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

impl Desk {
    fn supervise(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            self.timer.wait();
            let turn = self.turn.load(Ordering::SeqCst);
            let is_taken = || self.turn.compare_exchange(turn, ACTS, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if self.is_over.load(Ordering::SeqCst) || turn == OWN || !is_taken() {
                // It is back. When it leaves again, the timer is set anew.
                continue;
            }
            let mut lent = self.lent();
            let look = lent.look(self).unwrap_or_else(|error| {
                (lent.outcome, lent.is_throttled) = (Err(error), false);
                Instant::NEVER
            });
            let turn = if lent.is_throttled { THROTTLED } else { LENT };
            drop(lent);
            // Before the thread of the task can set it for a later job.
            self.look_at(look);
            self.turn.store(turn, Ordering::SeqCst);
            futex::wake_all(&self.turn);
        }
    }

    fn look_at(&self, instant: Instant) {
        self.timer.arm(instant).expect("Linux sets any timer to any time");
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent {
    /// Does what is due: charges the budget, has the job throttled or postponed if it is used up, or go on. Answers when to
    /// look again.
    fn look(&mut self, desk: &Desk) -> Result<Instant, JobError> {
        let Lent { budget: Some(budget), charged, seen, least, index, is_throttled, log, .. } = self else {
            return Ok(Instant::NEVER);
        };
        loop {
            let (now, cpu_time) = (clock::now(), desk.clock.read().map_err(|_| ended(desk))?);
            let Some(until) = budget.throttled else {
                let used = cpu_time.saturating_sub(*charged);
                if used < budget.left {
                    // Code that sleeps, or has no CPU, is looked at ever more seldom.
                    let stands_still = std::mem::replace(seen, cpu_time) == cpu_time;
                    *least = if stands_still { Nanos(2 * least.0).min(RETRY) } else { CRUMB };
                    return Ok(now.saturating_add((budget.left - used).max(*least)));
                }
                budget.charge(used, now);
                *charged = cpu_time;
                budget.note_to(log, *index);
                if budget.throttled.is_none() && std::mem::take(&mut budget.is_postponed) {
                    postpone(budget, desk, log, *index)?;
                }
                continue;
            };
            if now < until {
                if !*is_throttled {
                    let mut watch = log.decisions(*index, Some(JobStep::Throttled));
                    *is_throttled = desk.delegate.throttle(&mut watch)?;
                }
                return Ok(if *is_throttled { until } else { until.min(now.saturating_add(RETRY)) });
            }
            // What it used meanwhile it took from no other job.
            *charged = cpu_time;
            budget.replenish(until);
            budget.note_to(log, *index);
            budget.is_postponed = false;
            postpone(budget, desk, log, *index)?;
            if std::mem::take(is_throttled) {
                desk.delegate.resume(&mut log.decisions(*index, Some(JobStep::Resumed)))?;
            }
        }
    }
}

/// The job is ranked by the deadline of its budget.
fn postpone(budget: &Budget, desk: &Desk, log: &mut Writer, index: u32) -> Result<(), TaskError> {
    match budget.level {
        ServerLevel::Deadline { .. } => {
            desk.delegate.postpone(budget.ranked(Instant::NEVER), &mut log.decisions(index, None))
        }
        ServerLevel::Fixed(_) => Ok(()),
    }
}

/// The thread of the task has ended, which is no task any more.
fn ended(desk: &Desk) -> JobError {
    JobError::from(desk.delegate.no_task())
}

impl Jobs {
    /// The job goes into the user's code. Its budget is supervised from here on, unless it is in a section, which is not
    /// interrupted. Answers the thread's CPU time.
    pub(super) fn lend_budget(&mut self) -> Nanos {
        let before = clock::thread_cpu_time();
        let is_in_section = self.sections > 0 || !self.held.is_empty();
        if let Some(supervisor) = self.supervisor.as_ref().filter(|_| !is_in_section)
            && let Some(budget) = self.budget.take_if(|budget| budget.throttled.is_none())
        {
            supervisor.lend(budget, before, self.index);
        }
        before
    }

    /// It is back, and charged for what it used since its CPU time was `before`.
    pub(super) fn take_budget_back(&mut self, before: Nanos) -> Result<(), Cut> {
        match &self.supervisor {
            Some(supervisor) if self.budget.is_none() => {
                let returned = supervisor.take_back(&self.stop).ok_or(Interrupted::Stopped)?;
                let Returned { budget, charged, outcome } = returned;
                self.budget = budget;
                outcome?;
                self.charge_since(charged);
            }
            _ => self.charge_since(before),
        }
        Ok(())
    }
}
