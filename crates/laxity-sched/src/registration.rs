//! The tasks of this process's threads. One ends with its handle, or with its thread if the handle is forgotten.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::TaskId;

use crate::config::Carry;
use crate::step;
use crate::system::Membership;

thread_local! {
    static OF_THREAD: OfThread = const { OfThread(RefCell::new(Vec::new())) };
}

/// That the calling thread is the task `task`. It belongs to that thread, like the liveness lock.
#[derive(Debug)]
pub(crate) struct Registration {
    membership: Arc<Membership>,
    task: TaskId,
    name: String,
    cluster: usize,
    is_over: Cell<bool>,
}

/// The registrations of one thread. Dropped when the thread ends.
struct OfThread(RefCell<Vec<Rc<Registration>>>);

impl Registration {
    /// The calling thread holds the liveness lock of `task`.
    pub fn begin(membership: Arc<Membership>, task: TaskId, name: String, cluster: usize) -> Rc<Self> {
        let registration = Rc::new(Registration { membership, task, name, cluster, is_over: Cell::new(false) });
        // A thread that registers while it ends is noticed by others: Linux marks its liveness lock.
        let _ = OF_THREAD.try_with(|of_thread| of_thread.0.borrow_mut().push(registration.clone()));
        registration
    }

    /// The task that Laxity places the calling thread as, if it is one, and its system.
    pub fn of_this_thread() -> Option<(String, String)> {
        let places = |it: &&Rc<Registration>| {
            let shared = &it.membership.shared;
            // A thread that acts for a program is not placed itself.
            let is_placed = shared.config.carry != Carry::Nothing && shared.program(it.task).is_none();
            !it.is_over() && it.membership.is_ours() && is_placed
        };
        let of_thread = |all: &OfThread| {
            let all = all.0.borrow();
            all.iter().find(places).map(|it| (it.name.clone(), it.membership.shared.name.clone()))
        };
        OF_THREAD.try_with(of_thread).ok().flatten()
    }

    /// Whether it has ended, so that the number of the task may be another thread's.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// The task's job ends, and Linux schedules the thread as before.
    pub fn end(&self) {
        if self.is_over.replace(true) || !self.membership.is_ours() {
            return;
        }
        let shared = &self.membership.shared;
        let _ = shared.unlock_all_of(self.task);
        // The state first: no thread places this one after that.
        let state = shared.lock(self.cluster);
        step::point();
        // An error means that the memory is damaged, so that no thread uses it any more.
        let _ = shared.liveness(self.task).unlock();
        step::point();
        if let Ok(mut state) = state {
            state.retire(self.task);
            state.publish(None);
        }
        shared.own_threads[self.task.index()].store(0, Ordering::Relaxed);
        match shared.program(self.task) {
            None => shared.restore(self.task, 0),
            Some(_) => shared.restore_program(self.task),
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
