//! A process whose threads are tasks of the scheduler in the kernel, and those that ask how it is.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use laxity_sys::packets::{Packets, Received};
use laxity_sys::scheduling::current_thread;
use laxity_sys::shared_page::SharedPage;

use crate::brakes::Brakes;
use crate::layout::{Entry, PAGE};
use crate::program::ProgramTask;
use crate::protocol::{ADDRESS, Answer, Begin, InterruptRequest, PACKET_MAX, Releases, Request, Status, TaskRequest};
use crate::task::{InterruptThread, Task};

/// Of the thread that asks: for JSON and a few calls.
const ASKING_STACK: usize = 128 * 1024;

/// Why the scheduler cannot be asked, or a thread not be a task.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is none.
    #[error("Laxity's scheduler is not in the kernel; `laxity sched start`, as root, loads it")]
    NotRunning,
    /// It cannot be asked.
    #[error("the scheduler in the kernel cannot be asked: {0}")]
    Connection(#[source] io::Error),
    /// It says no.
    #[error("the scheduler in the kernel: {0}")]
    Refused(String),
    /// It ended meanwhile.
    #[error("the scheduler in the kernel ended before it answered")]
    Ended,
}

/// This process as the scheduler knows it. Its tasks are no more once the process ends, or they leave.
#[derive(Debug)]
pub struct Membership {
    connection: Packets,
    page: Mutex<Option<Arc<SharedPage>>>,
}

impl Membership {
    /// Of the scheduler that is loaded now.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`] if none is.
    pub fn join() -> Result<Membership, ClientError> {
        let connection = Packets::connect(ADDRESS).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => ClientError::NotRunning,
            _ => ClientError::Connection(error),
        })?;
        Ok(Membership { connection, page: Mutex::new(None) })
    }

    /// Has the scheduler do what takes long before the first task can begin: Linux waits until all programs have ended that do
    /// not know this process (a grace period of RCU, up to tens of milliseconds). [`Membership::begin`] does it otherwise.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn prepare(&self) -> Result<(), ClientError> {
        match self.ask_alone(&Request::Prepare)? {
            Answer::Prepared => Ok(()),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// The calling thread is a task from now on. It waits for its first job with [`Task::next_job`].
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn begin(&self, task: &TaskRequest) -> Result<Task, ClientError> {
        self.begin_then(task, || ())
    }

    /// As [`Membership::begin`]. Another thread calls `then` once the scheduler has answered: this one may not return before its
    /// first job is released.
    ///
    /// # Errors
    /// As of [`Membership::begin`].
    pub fn begin_then(&self, task: &TaskRequest, then: impl FnOnce() + Send) -> Result<Task, ClientError> {
        let request = Request::Begin(Begin { thread: current_thread(), is_program: false, task: task.clone() });
        // The scheduler keeps this thread from when it is a task until its first job. So another one asks, which no other
        // task of this process has to wait for.
        let asked = thread::scope(|scope| {
            // Where all memory is locked, Linux clears the whole stack first.
            let asking = thread::Builder::new().name("laxity-begin".to_owned()).stack_size(ASKING_STACK);
            let asking = asking.spawn_scoped(scope, || {
                let answer = self.ask_to_begin(&request);
                then();
                answer
            });
            let asking = asking.map_err(ClientError::Connection)?;
            asking.join().expect("it does not panic")
        });
        let (Answer::Begun { entry, cluster, release }, page) = asked? else {
            return Err(ClientError::Refused("an answer to another question".to_owned()));
        };
        let entry = Entry::new(entry).ok_or_else(|| ClientError::Refused(format!("no entry {entry}")))?;
        Ok(Task::new(page, entry, cluster, release, task))
    }

    /// The first thread of the process `program`, a child of this one, is a task from now on, until it ends: each of its wake-ups
    /// releases a job, which its next sleep completes, and all of them together have the budget of `task` in each period. Its other
    /// threads are scheduled as those that are no tasks.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn begin_program(&self, program: u32, task: &TaskRequest) -> Result<ProgramTask, ClientError> {
        let task = TaskRequest { releases: Releases::Events, ..task.clone() };
        let (answer, page) = self.ask_to_begin(&Request::Begin(Begin { thread: program, is_program: true, task }))?;
        let Answer::Begun { entry, cluster, .. } = answer else {
            return Err(ClientError::Refused("an answer to another question".to_owned()));
        };
        let entry = Entry::new(entry).ok_or_else(|| ClientError::Refused(format!("no entry {entry}")))?;
        Ok(ProgramTask::new(page, entry, cluster))
    }

    fn ask_to_begin(&self, request: &Request) -> Result<(Answer, Arc<SharedPage>), ClientError> {
        // One thread asks at a time, and the first answer brings the page.
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = self.ask(request, &mut page)?;
        let page = page.clone().ok_or_else(|| ClientError::Refused("no control page".to_owned()))?;
        Ok((answer, page))
    }

    /// A thread of the kernel handles interrupts for tasks from now on, until it or the scheduler ends; then it has what it had
    /// before. So does one of this process, which is to sleep meanwhile: the calling one, or one that waits for something. After the scheduler's end
    /// that keeps its class and the CPUs of the cluster. It has the priority of the job that says by [`Task::expect`] that it works for it.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the scheduler's reason.
    pub fn handle(&self, request: &InterruptRequest) -> Result<InterruptThread, ClientError> {
        match self.ask_alone(&Request::Handle(request.clone()))? {
            Answer::Handles(status) => Ok(InterruptThread::of(&status)),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// The thread of the kernel with that number in Linux, which handles interrupts for tasks.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if it does not.
    pub fn interrupt_thread(&self, thread: u32) -> Result<InterruptThread, ClientError> {
        let status = self.status()?;
        let found = status.interrupts.iter().find(|it| it.thread == thread);
        let missing = || format!("thread {thread} handles no interrupts for tasks; `laxity sched irq` has it do so");
        found.map(InterruptThread::of).ok_or_else(|| ClientError::Refused(missing()))
    }

    /// The page by which a regulator of memory traffic throttles CPUs.
    ///
    /// # Errors
    /// [`ClientError::Refused`] by a scheduler that has none.
    pub fn brakes(&self) -> Result<Brakes, ClientError> {
        // Its page is not that of this process's tasks.
        let _alone = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = None;
        match (self.ask(&Request::Brakes, &mut page)?, page) {
            (Answer::Brakes, Some(page)) => Ok(Brakes::of(page)),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// What the scheduler does.
    ///
    /// # Errors
    /// If it ends meanwhile.
    pub fn status(&self) -> Result<Status, ClientError> {
        match self.ask_alone(&Request::Status)? {
            Answer::Status(status) => Ok(status),
            _ => Err(ClientError::Refused("an answer to another question".to_owned())),
        }
    }

    /// Ends the scheduler, and waits until it has ended: all threads are scheduled by Linux from then on.
    ///
    /// # Errors
    /// If it ended before it could answer.
    pub fn stop(&self) -> Result<(), ClientError> {
        self.ask_alone(&Request::Stop)?;
        // The loader closes the connection by ending.
        while self.connection.receive(&mut [0; 64]) != Received::End {}
        Ok(())
    }

    /// As [`Membership::ask`]. One thread asks at a time: another's answer would be taken for this one's.
    fn ask_alone(&self, request: &Request) -> Result<Answer, ClientError> {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        self.ask(request, &mut page)
    }

    fn ask(&self, request: &Request, page: &mut Option<Arc<SharedPage>>) -> Result<Answer, ClientError> {
        let packet = serde_json::to_vec(request).expect("requests have no maps");
        self.connection.send(&packet).map_err(|_| ClientError::Ended)?;
        let mut answer = vec![0; PACKET_MAX];
        let (Received::Packet(length), descriptors) = self.connection.receive_with(&mut answer) else {
            return Err(ClientError::Ended);
        };
        if let Some(descriptor) = descriptors.into_iter().next() {
            *page = Some(Arc::new(SharedPage::map(descriptor, PAGE).map_err(ClientError::Connection)?));
        }
        match serde_json::from_slice(&answer[..length]) {
            Ok(Answer::Refused(reason)) => Err(ClientError::Refused(reason)),
            Ok(answer) => Ok(answer),
            Err(error) => Err(ClientError::Connection(error.into())),
        }
    }
}
