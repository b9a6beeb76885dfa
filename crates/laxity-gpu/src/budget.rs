//! What becomes of a client's request and token when the budget of its job is exhausted (GPUSync's rules).
//!
//! ```text
//!                exhausted                            replenished
//! holds nothing  ---------> asks for nothing          -----------> asks for a token as before
//! waits          ---------> its request is withdrawn  -----------> its request is made again, as if new
//! holds a token  ---------> the next waiter is admitted as if the token were free, and has it when it is
//! ```
//!
//! Another thread watches the budget, as the client's own may wait or run. The rules are those of
//! `laxity_policy::lock::budget`, which the simulator uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::TaskId;
use laxity_policy::lock::Event;

use crate::arbitration::Membership;
use crate::client::Client;
use crate::config::TOKEN;
use crate::state_lock::{StateError, StateGuard};

/// The budget of a client's jobs, for the thread that watches it: any thread of the process. The process stays attached to
/// the arbitration while there is one.
#[derive(Clone, Debug)]
pub struct Budget {
    membership: Arc<Membership>,
    task: TaskId,
    state: Arc<State>,
}

/// Changed under the state lock only.
#[derive(Debug)]
pub(crate) struct State {
    /// Which of all registrations with the client's number is the client's.
    registration: u64,
    is_exhausted: AtomicBool,
    /// The client is dropped, and its number may be another's. A thread that ends by the bare system call never says so.
    is_over: AtomicBool,
}

impl State {
    pub fn of(registration: u64) -> Self {
        State { registration, is_exhausted: AtomicBool::new(false), is_over: AtomicBool::new(false) }
    }

    #[inline]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted.load(Ordering::Relaxed)
    }

    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

impl Client {
    /// The handle to report that a job of this client has exhausted its budget.
    pub fn budget(&self) -> Budget {
        Budget { membership: self.membership().clone(), task: self.id(), state: self.budget_state().clone() }
    }

    /// Whether the budget of its job is exhausted. If it holds a token, it should release it.
    pub fn is_exhausted(&self) -> bool {
        self.budget_state().is_exhausted()
    }
}

impl Budget {
    /// The job has no budget any more: its request is withdrawn, though its thread goes on waiting; if it holds a token,
    /// the next in the queue is admitted in its place. Nothing happens if that was reported before.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn exhaust(&self) -> Result<(), StateError> {
        self.change(true, |state| {
            state.arbitrate_wait(self.task);
            if state.owned(self.task, TOKEN).is_some() {
                state.arbitrate(TOKEN);
            }
            // Until then its thread could release the token without the state lock.
            if state.granted(self.task, TOKEN).is_some() {
                state.handle(Event::Overrun { task: self.task, lock: TOKEN });
            } else if let Some(lock) = state.cache.arbiter.waits_for(self.task) {
                state.handle(Event::Withdraw { task: self.task, lock });
            }
        })
    }

    /// The job has budget again: its request is made again, behind those made meanwhile. If it still holds a token, it does
    /// not get its place in the queue back. Nothing happens if that was reported before.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn replenish(&self) -> Result<(), StateError> {
        self.change(false, |state| {
            let (shared, task) = (state.shared(), self.task);
            state.arbitrate_wait(task);
            let is_waiting = shared.is_waiting(task);
            if !is_waiting || state.cache.arbiter.waits_for(task).is_some() {
                return;
            }
            if let Some(lock) = shared.wanted(task) {
                let (length, only) = shared.published_request(task, lock);
                state.arbitrate(lock);
                state.handle(Event::Request { task, lock, length, only });
            }
        })
    }

    fn change(&self, is_exhausted: bool, change: impl FnOnce(&mut StateGuard<'_>)) -> Result<(), StateError> {
        if !self.membership.is_ours() {
            return Ok(());
        }
        let mut state = self.membership.shared.lock_state()?;
        // A client that is dropped sets this before it waits for the state lock.
        let is_over = self.state.is_over.load(Ordering::SeqCst) || !self.is_registered(&state);
        if self.state.is_exhausted() != is_exhausted && !is_over {
            self.state.is_exhausted.store(is_exhausted, Ordering::Relaxed);
            change(&mut state);
            state.publish();
        }
        Ok(())
    }

    /// Whether the thread of the client lives, and no other one has its number in the arbitration.
    fn is_registered(&self, state: &StateGuard<'_>) -> bool {
        let (shared, task) = (state.shared(), self.task);
        shared.registrations(task).load(Ordering::Relaxed) == self.state.registration
            && state.cache.is_registered(task)
            && !shared.has_ended(task)
    }
}
