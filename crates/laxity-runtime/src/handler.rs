//! The threads that handle the interrupts of soft GPUs, and how they are scheduled.
//!
//! Under Laxity's scheduler such a thread is a task of the system, each interrupt a job of it: klmirqd. In the kernel it is an
//! interrupt thread, which works from its wake-up to its sleep for the most urgent job that expects it. Under classes of
//! Linux it has a priority, or follows the holders of tokens (`laxity-gpu`).

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use laxity_model::TaskId;
use laxity_sched::{Parameters, Service, System, Task, Urgency, Watch};
use laxity_softgpu::{Handling, HandlingThread};
use laxity_sys::scheduling;

use crate::log::{JobStep, Writer};
use crate::shared::Shared;

/// Handles the interrupts of a GPU.
pub(crate) struct Handler {
    pub cpus: Vec<usize>,
    pub class: Class,
    /// Where it notes that it does.
    pub log: Mutex<ServiceLog>,
    /// Why it cannot be scheduled.
    pub failed: Mutex<Option<String>>,
}

/// The log of a thread that handles interrupts, each of which is a job of it.
#[derive(Debug)]
pub struct ServiceLog {
    writer: Writer,
    /// How many it has handled.
    handled: u32,
    is_serving: bool,
}

/// How it is scheduled.
pub(crate) enum Class {
    /// As the thread that opens the GPU.
    Inherited,
    /// By `SCHED_FIFO`, at this priority.
    Fifo(u8),
    /// By Laxity's scheduler in the kernel, as what works for the tasks of that cluster that use this GPU.
    Kernel { shared: Arc<Shared>, gpu: usize, cluster: usize },
    /// By Laxity's scheduler, as the task of that number.
    Laxity { system: System, parameters: Parameters, number: TaskId, urgency: Urgency },
}

impl ServiceLog {
    pub(crate) fn new(writer: Writer) -> ServiceLog {
        ServiceLog { writer, handled: 0, is_serving: false }
    }

    /// A job begins and executes, as a class of Linux schedules it.
    fn begin(&mut self) {
        self.is_serving = true;
        self.writer.note(self.handled, JobStep::Begin);
    }

    fn end(&mut self) {
        self.writer.note(self.handled, JobStep::Complete);
        self.next();
    }

    /// A job begins by `serve`, which tells what Laxity's scheduler decides, and executes.
    pub fn serves(&mut self, serve: impl FnOnce(&mut dyn Watch)) {
        self.is_serving = true;
        serve(&mut self.writer.decisions(self.handled, Some(JobStep::Serves)));
        self.writer.note(self.handled, JobStep::Executes);
    }

    /// It is complete by `complete`, which tells what Laxity's scheduler decides. A job that began before there was a log has no
    /// place in it.
    pub fn completes(&mut self, complete: impl FnOnce(&mut dyn Watch)) {
        if self.is_serving {
            complete(&mut self.writer.decisions(self.handled, Some(JobStep::Complete)));
            self.next();
        } else {
            complete(&mut ());
        }
    }

    fn next(&mut self) {
        self.is_serving = false;
        self.handled = self.handled.wrapping_add(1);
    }
}

thread_local! {
    /// The calling thread as a task.
    static TASK: RefCell<Option<Task>> = const { RefCell::new(None) };
}

impl Handler {
    /// Schedules the calling thread as one that handles interrupts.
    pub fn take_place(&self) -> Result<(), String> {
        let place = || {
            scheduling::keep_on(&self.cpus)?;
            match self.class {
                Class::Fifo(priority) => scheduling::set_fifo(priority),
                Class::Inherited | Class::Kernel { .. } | Class::Laxity { .. } => Ok(()),
            }
        };
        place().map_err(|error: io::Error| in_words(error))
    }

    /// Why the thread cannot be scheduled as it is to be.
    pub fn failure(&self) -> Option<String> {
        lock(&self.failed).clone()
    }

    fn begin_task(&self) -> Result<(), String> {
        if let Class::Kernel { shared, gpu, cluster } = &self.class {
            let kernel = shared.kernel.as_ref().expect("it schedules this run");
            return kernel.handle_interrupts(*gpu, *cluster).map_err(in_words);
        }
        let Class::Laxity { system, parameters, number, .. } = &self.class else { return Ok(()) };
        let task = system.begin_as(parameters.clone(), *number).map_err(in_words)?;
        TASK.set(Some(task));
        Ok(())
    }
}

impl Handling for Handler {
    fn begin(&self, thread: HandlingThread) {
        if thread == HandlingThread::Interrupts {
            *lock(&self.failed) = self.begin_task().err();
        }
    }

    fn serve(&self, thread: HandlingThread, stream: &str) {
        if thread != HandlingThread::Interrupts {
            return;
        }
        let log = &mut *lock(&self.log);
        let Class::Laxity { urgency, .. } = self.class else { return log.begin() };
        TASK.with_borrow(|task| {
            let owner = owner_of(stream).filter(|_| urgency != Urgency::Fixed);
            let task = task.as_ref().expect("the GPU is open only if it is a task");
            let index = log.handled.into();
            // If the system is damaged its tasks say so.
            log.serves(|mut watch| drop(task.serve(index, Service { owner, urgency }, &mut watch)));
        });
    }

    fn done(&self, thread: HandlingThread) {
        if thread != HandlingThread::Interrupts {
            return;
        }
        let log = &mut *lock(&self.log);
        let Class::Laxity { .. } = self.class else { return log.end() };
        TASK.with_borrow(|task| {
            let task = task.as_ref().expect("it served");
            log.completes(|mut watch| drop(task.complete_watched(&mut watch)));
        });
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("cpus", &self.cpus).finish_non_exhaustive()
    }
}

/// The name of the streams of task `number`, by which the thread that handles their interrupts knows the owner.
pub(crate) fn owners_name(number: usize, task: &str) -> String {
    format!("{number} {task}")
}

/// The task whose stream has that name.
pub(crate) fn owner_of(stream: &str) -> Option<TaskId> {
    let (number, _) = stream.split_once(' ')?;
    number.parse().ok().map(TaskId)
}

fn in_words(error: impl fmt::Display) -> String {
    format!("the thread that handles interrupts: {error}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_by_the_names_of_their_streams() {
        assert_eq!(owner_of(&owners_name(12, "detect 3")), Some(TaskId(12)));
        assert_eq!(owner_of("another program"), None);
    }
}
