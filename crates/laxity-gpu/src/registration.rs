//! The registrations of this process's threads. One ends with its client, or with its thread if the client is forgotten.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::TaskId;

use crate::arbitration::Membership;
use crate::budget::State;
use crate::step;

thread_local! {
    static OF_THREAD: OfThread = const { OfThread(RefCell::new(Vec::new())) };
}

/// That the calling thread is the client `task`. It belongs to that thread, like the liveness lock.
#[derive(Debug)]
pub(crate) struct Registration {
    membership: Arc<Membership>,
    task: TaskId,
    budget: Arc<State>,
    /// Atomic for clients that are [mobile](crate::MobileClient): their home may end meanwhile.
    is_over: AtomicBool,
}

/// The registrations of one thread. Dropped when the thread ends, in whatever order with its other thread-local values.
struct OfThread(RefCell<Vec<Rc<Registration>>>);

impl Registration {
    /// The calling thread holds the liveness lock of `task`.
    pub fn begin(membership: Arc<Membership>, task: TaskId, budget: Arc<State>) -> Rc<Self> {
        let registration = Rc::new(Registration { membership, task, budget, is_over: AtomicBool::new(false) });
        // A thread that registers while it ends is noticed by others: Linux marks its liveness lock.
        let _ = OF_THREAD.try_with(|of_thread| of_thread.0.borrow_mut().push(registration.clone()));
        registration
    }

    /// Whether it has ended, so that the number of the client may be another thread's.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Whatever the thread holds goes to the next tasks.
    pub fn end(&self) {
        if self.is_over.swap(true, Ordering::AcqRel) || !self.membership.is_ours() {
            return;
        }
        self.budget.end();
        let shared = &self.membership.shared;
        let state = shared.lock_state();
        step::point();
        // An error means that the memory is damaged, so that no thread uses it any more.
        let _ = shared.liveness(self.task).unlock();
        step::point();
        if let Ok(mut state) = state {
            state.retire(self.task);
            state.publish();
        }
    }

    /// Its thread has ended unnoticed, so that others take what it held: there is nothing to give back.
    pub fn lose(&self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            self.budget.end();
        }
    }

    /// Ends it before its thread does.
    pub fn end_early(self: &Rc<Self>) {
        self.end();
        let _ = OF_THREAD.try_with(|of_thread| {
            of_thread.0.borrow_mut().retain(|registration| !Rc::ptr_eq(registration, self));
        });
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        self.0.get_mut().drain(..).for_each(|registration| registration.end());
    }
}

/// Forgets the registrations of the calling thread: it then ends like one that ends by the bare system call.
#[cfg(test)]
pub(crate) fn forget_those_of_this_thread() {
    OF_THREAD.with(|of_thread| std::mem::forget(of_thread.0.take()));
}
