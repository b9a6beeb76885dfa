//! The tasks of this thread. Objects of Python may go anywhere, tasks of Rust may not leave their thread: so the latter
//! stay, in memory of the thread, and objects of Python have no more than a number.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, LocalKey, ThreadId};

use laxity_sched::{Task, TaskError};
use pyo3::prelude::*;

use super::errors::{misuse, sched_error};

thread_local! {
    static TASKS: Tasks<Task> = const { RefCell::new(BTreeMap::new()) };
}

/// By number. A task that is left when the thread ends, ends then.
pub type Tasks<T> = RefCell<BTreeMap<u64, Rc<T>>>;

/// A kind of task, of one scheduler.
pub trait Own: Sized + 'static {
    /// By which a thread becomes one.
    const BEGIN: &'static str;

    /// Those of this thread.
    fn tasks() -> &'static LocalKey<Tasks<Self>>;
}

impl Own for Task {
    const BEGIN: &'static str = "System.task";

    fn tasks() -> &'static LocalKey<Tasks<Task>> {
        &TASKS
    }
}

/// Numbers are those of one task ever.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// Where a task is: in which thread, of which process, by which number.
#[derive(Debug)]
pub struct Place<T = Task> {
    name: String,
    number: u64,
    thread: ThreadId,
    pid: u32,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        let Place { ref name, number, thread, pid, kind } = *self;
        Place { name: name.clone(), number, thread, pid, kind }
    }
}

impl<T: Own> Place<T> {
    /// Keeps `task` in this thread.
    pub fn keep(name: &str, task: T) -> Place<T> {
        let place = Place {
            name: name.to_owned(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            thread: thread::current().id(),
            pid: std::process::id(),
            kind: PhantomData,
        };
        T::tasks().with_borrow_mut(|tasks| tasks.insert(place.number, Rc::new(task)));
        place
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this process has the task, and not a copy of it because it was forked.
    pub fn is_of_this_process(&self) -> bool {
        std::process::id() == self.pid
    }

    /// Reads something of the task.
    ///
    /// Raises UseError in other threads and processes, and once it is released.
    pub fn read<R>(&self, py: Python<'_>, read: impl FnOnce(&T) -> R) -> PyResult<R> {
        self.check(py)?;
        self.find().map(|task| read(&task)).ok_or_else(|| self.gone(py))
    }

    /// The same without the GIL: another task may have the CPU then, and the GIL.
    ///
    /// Raises as [`Place::read`] does.
    pub fn without_gil<R: Send>(&self, py: Python<'_>, call: impl FnOnce(&T) -> R + Send) -> PyResult<R> {
        self.check(py)?;
        let told = py.detach(|| self.find().map(|task| call(&task)));
        told.ok_or_else(|| self.gone(py))
    }

    /// Ends the task, if it is still there.
    ///
    /// Raises UseError in other threads and processes.
    pub fn release(&self, py: Python<'_>) -> PyResult<()> {
        self.check(py)?;
        self.forget();
        Ok(())
    }

    /// The same where an error cannot be raised: in another thread nothing happens.
    pub fn forget(&self) {
        if self.is_here() {
            drop(T::tasks().try_with(|tasks| tasks.borrow_mut().remove(&self.number)));
        }
    }

    fn find(&self) -> Option<Rc<T>> {
        T::tasks().try_with(|tasks| tasks.borrow().get(&self.number).cloned()).ok().flatten()
    }

    fn is_here(&self) -> bool {
        thread::current().id() == self.thread && std::process::id() == self.pid
    }

    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let name = &self.name;
        if std::process::id() != self.pid {
            let text = "this process was forked from the one that has the task; attach and become a task here";
            return Err(misuse(py, format!("task {name}: {text}")));
        }
        if thread::current().id() != self.thread {
            let text = "it is another thread; a thread that is to be scheduled becomes a task by";
            return Err(misuse(py, format!("task {name}: {text} {}", T::BEGIN)));
        }
        Ok(())
    }

    fn gone(&self, py: Python<'_>) -> PyErr {
        misuse(py, format!("task {}: it is released; become a task again", self.name))
    }
}

impl Place {
    /// Tells the task something, without the GIL.
    ///
    /// Raises as [`Place::read`] does, and what fits the error.
    pub fn tell<T: Send>(
        &self,
        py: Python<'_>,
        tell: impl FnOnce(&Task) -> Result<T, TaskError> + Send,
    ) -> PyResult<T> {
        self.without_gil(py, tell)?.map_err(|error| sched_error(py, &error))
    }
}
