//! The budget of a job whose thread computes and does not come back: a thread beside that of the task looks when the budget
//! may be used up, and has the scheduler throttle or postpone the job.
//!
//! ```text
//!            lend               used up, and the next one is to come: throttle
//!  (own) ------------> (lent) -------------------------------------------------> (throttled)
//!    ^                 |    ^ '-- used up, and there is another one: postpone         |
//!    '--- take back ---'    '--------------------- budget again ---------------------'
//! ```
//!
//! The budget belongs to the thread of the task, but while that computes; a word says whose turn it is. Decision 126 has the
//! reasons.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use laxity_model::{Instant, Nanos};
use laxity_policy::server::Budget;
use laxity_sys::clock::{self, ThreadClock};
use laxity_sys::futex;
use laxity_sys::timer::Timer;

use crate::decision::Watch;
use crate::delegate::Delegate;
use crate::task::{Task, TaskError};

/// Supervises the budget of a task, and tells a ledger all that it does.
#[derive(Debug)]
pub struct Supervisor<L> {
    desk: Arc<Desk<L>>,
    thread: Option<JoinHandle<()>>,
}

/// Hears of what a supervisor does, on the thread of the supervisor.
pub trait Ledger: Send + 'static {
    /// The server was given a budget, to use by `deadline`.
    fn replenished(&mut self, job: u64, budget: Nanos, deadline: Instant);

    /// Hears of a decision on `job` that is about to be made, which throttling leads to; else another rank does.
    fn decisions(&mut self, job: u64, why: Option<Throttling>) -> impl Watch;
}

/// What happens to a job that has no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// It is suspended.
    Begins,
    /// It has a budget again, and goes on.
    Ends,
}

/// Hears nothing.
impl Ledger for () {
    fn replenished(&mut self, _job: u64, _budget: Nanos, _deadline: Instant) {}

    fn decisions(&mut self, _job: u64, _why: Option<Throttling>) -> impl Watch {}
}

/// A budget that is back.
#[derive(Debug)]
pub struct Returned {
    /// The budget.
    pub budget: Budget,
    /// The CPU time of the task's thread up to which it is charged.
    pub charged: Nanos,
    /// Whether the scheduler did as it was told.
    pub outcome: Result<(), TaskError>,
}

/// What the two threads share.
#[derive(Debug)]
struct Desk<L> {
    /// Whose turn it is: one of the constants below. The thread of the task waits on it.
    turn: AtomicU32,
    is_over: AtomicBool,
    /// When the supervisor is to look.
    timer: Timer,
    /// The CPU time of the task's thread.
    clock: ThreadClock,
    delegate: Delegate,
    /// Only the thread locks it whose turn it is, so neither waits.
    lent: Mutex<Lent<L>>,
}

/// The thread of the task has the budget.
const OWN: u32 = 0;
/// It computes. Either thread takes the turn: the supervisor to look, the other one to end this.
const LENT: u32 = 1;
/// The supervisor looks after the budget.
const ACTS: u32 = 2;
/// The job is suspended until it has a budget.
const THROTTLED: u32 = 3;

#[derive(Debug)]
struct Lent<L> {
    budget: Option<Budget>,
    /// The CPU time of the task's thread up to which the budget is charged.
    charged: Nanos,
    /// Its CPU time at the last look, and the least time until the next one.
    seen: Nanos,
    least: Nanos,
    job: u64,
    is_throttled: bool,
    ledger: L,
    /// Whether the scheduler did as it was told.
    outcome: Result<(), TaskError>,
}

/// So little is not waited for any shorter; it is charged, too.
const CRUMB: Nanos = Nanos::from_micros(20);
/// Until a job is looked at again that has no budget left and no CPU that it could lose, or whose code stands still.
const RETRY: Nanos = Nanos::from_micros(500);
/// Until a thread that waits for its budget asks whether it is to go on waiting.
const LOOK: Nanos = Nanos::from_millis(10);
/// Bytes: it calls nothing deep.
const STACK: usize = 256 << 10;

impl<L: Ledger> Supervisor<L> {
    /// For `task`, that of the calling thread.
    ///
    /// # Errors
    /// If Linux gives no thread, timer or clock.
    pub fn start(task: &Task, ledger: L) -> io::Result<Supervisor<L>> {
        let lent = Lent {
            budget: None,
            charged: Nanos::ZERO,
            seen: Nanos::ZERO,
            least: CRUMB,
            job: 0,
            is_throttled: false,
            ledger,
            outcome: Ok(()),
        };
        let desk = Arc::new(Desk {
            turn: AtomicU32::new(OWN),
            is_over: AtomicBool::new(false),
            timer: Timer::new()?,
            clock: ThreadClock::of_this_thread()?,
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
        let thread = Builder::new().name("budget".to_owned()).stack_size(STACK).spawn(life)?;
        let supervisor = Supervisor { desk, thread: Some(thread) };
        told.recv().unwrap_or_else(|_| Err(io::Error::other("its thread ended")))?;
        Ok(supervisor)
    }

    /// `job` computes from now on, with this budget, which is charged up to the CPU time `charged` of its thread.
    pub fn lend(&self, budget: Budget, charged: Nanos, job: u64) {
        let look = clock::now().saturating_add(budget.left());
        {
            let mut lent = self.desk.lent();
            (lent.budget, lent.charged, lent.job) = (Some(budget), charged, job);
        }
        self.desk.turn.store(LENT, Ordering::SeqCst);
        // Only now: a supervisor that finds nothing lent sleeps until it is woken.
        self.desk.look_at(look);
    }

    /// The budget that was lent. Waits until the job has one, while `go_on` says so; `None` if it does not.
    ///
    /// # Panics
    /// If none was lent.
    pub fn take_back(&self, go_on: impl Fn() -> bool) -> Option<Returned> {
        let turn = &self.desk.turn;
        let take = |from| turn.compare_exchange(from, OWN, Ordering::SeqCst, Ordering::SeqCst);
        while let Err(seen) = take(LENT) {
            assert_ne!(seen, OWN, "a budget is lent before it is taken back");
            if seen == THROTTLED && !go_on() && take(THROTTLED).is_ok() {
                return None;
            }
            futex::wait(turn, seen, clock::now().saturating_add(LOOK));
        }
        let mut lent = self.desk.lent();
        let outcome = std::mem::replace(&mut lent.outcome, Ok(()));
        let budget = lent.budget.take().expect("what is lent is there");
        Some(Returned { budget, charged: lent.charged, outcome })
    }
}

impl<L> Drop for Supervisor<L> {
    fn drop(&mut self) {
        // A process that was forked from this one has no such thread.
        if !self.desk.delegate.is_ours() {
            return;
        }
        self.desk.is_over.store(true, Ordering::SeqCst);
        self.desk.look_at(clock::now());
        self.thread.take().into_iter().for_each(|thread| _ = thread.join());
    }
}

impl<L> Desk<L> {
    fn look_at(&self, instant: Instant) {
        self.timer.arm(instant).expect("Linux sets any timer to any time");
    }

    fn lent(&self) -> MutexGuard<'_, Lent<L>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L: Ledger> Desk<L> {
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
}

impl<L: Ledger> Lent<L> {
    /// Does what is due: charges the budget, has the job throttled or postponed if it is used up, or go on. Answers when to
    /// look again.
    fn look(&mut self, desk: &Desk<L>) -> Result<Instant, TaskError> {
        let Lent { budget: Some(budget), charged, seen, least, job, is_throttled, ledger, .. } = self else {
            return Ok(Instant::NEVER);
        };
        let (delegate, job) = (&desk.delegate, *job);
        loop {
            // A clock that cannot be read is that of a thread that has ended, which is no task any more.
            let (now, cpu_time) = (clock::now(), desk.clock.read().map_err(|_| delegate.no_task())?);
            let Some(until) = budget.throttled() else {
                let used = cpu_time.saturating_sub(*charged);
                if used < budget.left() {
                    // Code that sleeps, or has no CPU, is looked at ever more seldom.
                    let stands_still = std::mem::replace(seen, cpu_time) == cpu_time;
                    *least = if stands_still { Nanos(2 * least.0).min(RETRY) } else { CRUMB };
                    return Ok(now.saturating_add((budget.left() - used).max(*least)));
                }
                budget.charge(used, now);
                *charged = cpu_time;
                budget.take_replenished().for_each(|(amount, deadline)| ledger.replenished(job, amount, deadline));
                if budget.throttled().is_none()
                    && let Some(deadline) = budget.take_postponed()
                {
                    delegate.postpone(deadline, &mut ledger.decisions(job, None))?;
                }
                continue;
            };
            if now < until {
                if !*is_throttled {
                    *is_throttled = delegate.throttle(&mut ledger.decisions(job, Some(Throttling::Begins)))?;
                }
                return Ok(if *is_throttled { until } else { until.min(now.saturating_add(RETRY)) });
            }
            // What it used meanwhile it took from no other job.
            *charged = cpu_time;
            budget.replenish(until);
            budget.take_replenished().for_each(|(amount, deadline)| ledger.replenished(job, amount, deadline));
            if let Some(deadline) = budget.take_postponed() {
                delegate.postpone(deadline, &mut ledger.decisions(job, None))?;
            }
            if std::mem::take(is_throttled) {
                delegate.resume(&mut ledger.decisions(job, Some(Throttling::Ends)))?;
            }
        }
    }
}
