//! A task with what its job holds. It stays in its thread, as tasks of systems do.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::LocalKey;

use laxity_model::Instant;
use laxity_scx::{InterruptThread, Job, Lock, Releases, Task};
use laxity_sys::clock;
use pyo3::prelude::*;

use crate::sched::errors::{misuse, wrong_order};
use crate::sched::own::{Own, Place, Tasks};

thread_local! {
    static TASKS: Tasks<KernelTask> = const { RefCell::new(BTreeMap::new()) };
}

/// A task of the scheduler in the kernel, in its thread.
pub struct KernelTask {
    task: RefCell<Task>,
    releases: Releases,
    /// What its job holds.
    locks: RefCell<Vec<Arc<Lock>>>,
    is_in_section: Cell<bool>,
    awaits_event: Cell<bool>,
    /// The present or last job.
    job: Cell<Option<Job>>,
}

/// Why a task does not do what it is told.
pub enum Fault {
    /// Asked for in the wrong order.
    Order(&'static str),
    /// By a handler of a signal, amid a wait.
    Waits,
    /// A handler of a signal raised this.
    Raised(PyErr),
}

impl Fault {
    /// The exception for task `name`.
    pub fn raise(self, py: Python<'_>, name: &str) -> PyErr {
        match self {
            Fault::Order(text) => wrong_order(py, format!("task {name}: {text}")),
            Fault::Waits => misuse(py, format!("task {name}: it waits; a signal's handler cannot use it")),
            Fault::Raised(error) => error,
        }
    }
}

impl Own for KernelTask {
    const BEGIN: &'static str = "Scheduler.task";

    fn tasks() -> &'static LocalKey<Tasks<KernelTask>> {
        &TASKS
    }
}

impl Place<KernelTask> {
    /// Tells the task something.
    ///
    /// Raises UseError in other threads and processes and once it is released, and what fits the fault.
    pub fn say<T>(&self, py: Python<'_>, say: impl FnOnce(&KernelTask) -> Result<T, Fault>) -> PyResult<T> {
        self.read(py, say)?.map_err(|fault| fault.raise(py, self.name()))
    }

    /// The same without the GIL.
    pub fn say_without_gil<T: Send>(
        &self,
        py: Python<'_>,
        say: impl FnOnce(&KernelTask) -> Result<T, Fault> + Send,
    ) -> PyResult<T> {
        self.without_gil(py, say)?.map_err(|fault| fault.raise(py, self.name()))
    }
}

/// Suspends this thread until then, without the GIL. `Err`: what a handler of a signal raised meanwhile.
fn sleep_until(instant: Instant) -> Result<(), PyErr> {
    while !clock::sleep_until_signal(instant) {
        Python::attach(|py| py.check_signals())?;
    }
    Ok(())
}

impl KernelTask {
    pub fn new(task: Task, releases: Releases) -> KernelTask {
        KernelTask {
            task: RefCell::new(task),
            releases,
            locks: RefCell::default(),
            is_in_section: Cell::new(false),
            awaits_event: Cell::new(false),
            job: Cell::new(None),
        }
    }

    fn task(&self) -> Result<Ref<'_, Task>, Fault> {
        self.task.try_borrow().map_err(|_| Fault::Waits)
    }

    fn task_mut(&self) -> Result<RefMut<'_, Task>, Fault> {
        self.task.try_borrow_mut().map_err(|_| Fault::Waits)
    }

    /// The present or last job.
    pub fn job(&self) -> Option<Job> {
        self.job.get()
    }

    pub fn is_scheduled(&self) -> Result<bool, Fault> {
        Ok(self.task()?.is_scheduled())
    }

    /// That there is a job.
    fn expect_job(&self) -> Result<(), Fault> {
        if self.awaits_event.get() || self.task()?.awaits_job() {
            return Err(Fault::Order("there is no job; wait for one first"));
        }
        Ok(())
    }

    /// That its job, if there is one, can be complete.
    pub fn expect_end(&self) -> Result<(), Fault> {
        if !self.locks.borrow().is_empty() || self.is_in_section.get() {
            return Err(Fault::Order("the job holds a lock, or is in a section; let it end before the job does"));
        }
        if self.awaits_event.get() {
            return Err(Fault::Order("it waits for an event; let that `with` end first"));
        }
        Ok(())
    }

    /// Completes the job and waits for the next one, which is released and due then where the thread says that. To be called
    /// without the GIL.
    pub fn wait(&self, told: Option<(Instant, Instant)>) -> Result<Job, Fault> {
        let mut task = self.task_mut()?;
        self.expect_end()?;
        match (self.releases, told) {
            (Releases::Periodic, None) | (Releases::Told { .. }, Some(_)) => {}
            (Releases::Periodic, Some(_)) => {
                return Err(Fault::Order("its jobs are released once a period; use wait_for_next_job"));
            }
            (Releases::Told { .. }, None) => {
                return Err(Fault::Order("its thread says when jobs are released; use wait_for_job_at"));
            }
            (Releases::Events | Releases::Tokens { .. }, _) => {
                return Err(Fault::Order("events release its jobs; use `with task.event():` around the wait for one"));
            }
        }
        self.go_on_waiting(&mut task, told)
    }

    fn go_on_waiting(&self, task: &mut Task, told: Option<(Instant, Instant)>) -> Result<Job, Fault> {
        let mut raised = None;
        let sleep = |until| sleep_until(until).map_err(|error| raised = Some(error)).is_ok();
        let job = match told {
            None => task.next_job_by(sleep),
            Some((release, due)) => task.next_job_at(release, due, sleep),
        };
        let job = job.ok_or_else(|| Fault::Raised(raised.expect("nothing else ends a wait")))?;
        self.job.set(Some(job));
        Ok(job)
    }

    /// Waits for the first job of a task with events, unless that was there. To be called without the GIL.
    pub fn await_first(&self) -> Result<(), Fault> {
        let mut task = self.task_mut()?;
        self.expect_end()?;
        if self.releases != Releases::Events {
            return Err(Fault::Order("its jobs are not released by events; become a task with releases=\"events\""));
        }
        if task.awaits_job() {
            self.go_on_waiting(&mut task, None)?;
        }
        Ok(())
    }

    /// From now on the first sleep completes the job, and the wake-up releases the next one. The GIL stays where it is: to give it
    /// up may be a sleep.
    pub fn begin_event(&self) -> Result<(), Fault> {
        self.task_mut()?.begin_event();
        self.awaits_event.set(true);
        Ok(())
    }

    /// The event is there. To be called without the GIL.
    pub fn end_event(&self) -> Result<(), Fault> {
        let mut task = self.task_mut()?;
        if self.awaits_event.replace(false) {
            self.job.set(Some(task.end_event()));
        }
        Ok(())
    }

    pub fn enter_section(&self) -> Result<(), Fault> {
        self.expect_job()?;
        if self.is_in_section.replace(true) {
            return Err(Fault::Order("it is in a section; let that end first: they do not nest"));
        }
        self.task()?.enter_section();
        Ok(())
    }

    /// To be called without the GIL: the CPU may go to another task.
    pub fn leave_section(&self) -> Result<(), Fault> {
        if self.is_in_section.replace(false) {
            self.task()?.leave_section();
        }
        Ok(())
    }

    /// Takes `lock`. To be called without the GIL.
    pub fn lock(&self, lock: &Arc<Lock>) -> Result<(), Fault> {
        self.expect_job()?;
        let task = self.task()?;
        if lock.is_held_by(&task) {
            return Err(Fault::Order("it has the lock; let it go first: the task would wait for itself"));
        }
        let mut raised = None;
        let mut go_on = || Python::attach(|py| py.check_signals()).map_err(|error| raised = Some(error)).is_ok();
        if !lock.try_take(&task) && !lock.take_while(&task, &mut go_on) {
            return Err(Fault::Raised(raised.expect("nothing else ends a wait")));
        }
        self.locks.borrow_mut().push(Arc::clone(lock));
        Ok(())
    }

    /// Gives it up. To be called without the GIL: the CPU may go to the task that gets it.
    pub fn unlock(&self, lock: &Arc<Lock>) -> Result<(), Fault> {
        let mut locks = self.locks.borrow_mut();
        let at = locks.iter().position(|held| Arc::ptr_eq(held, lock));
        let at = at.ok_or(Fault::Order("it does not have the lock"))?;
        locks.remove(at);
        lock.give_up();
        Ok(())
    }

    pub fn expect(&self, thread: &InterruptThread) -> Result<(), Fault> {
        let has_room = self.task()?.begin_expecting(thread);
        has_room.then_some(()).ok_or(Fault::Order("eight interrupt threads work for it; let one `with` end first"))
    }

    pub fn expect_no_more(&self, thread: &InterruptThread) -> Result<(), Fault> {
        self.task()?.end_expecting(thread);
        Ok(())
    }
}

impl Drop for KernelTask {
    fn drop(&mut self) {
        // A thread that ended amid a job: others wait for them.
        for lock in self.locks.borrow().iter() {
            lock.give_up();
        }
    }
}
