//! The thread of a task.

use std::io;
use std::sync::Arc;

use laxity_model::{ExecutionTime, Instant, LockId, Nanos};
use laxity_sys::pi_lock::PiLock;
use laxity_sys::{clock, scheduling};

use crate::body::Op;
use crate::control::Control;
use crate::log::{Deed, Writer};
use crate::plan::{Raised, TaskPlan};
use crate::work::Work;

/// What the thread of a task has.
pub(crate) struct Worker {
    plan: TaskPlan,
    log: Writer,
    locks: Arc<[PiLock]>,
    control: Arc<Control>,
    work: Work,
    /// The priorities that it raised itself to, the last one last.
    priorities: Vec<u8>,
}

/// Why a job did not come to its end.
enum Cut {
    /// Everything was stopped.
    Stopped,
    /// Something does not work.
    Failed(String),
}

impl Worker {
    /// Makes the calling thread that of the task.
    ///
    /// # Errors
    /// What Linux refuses, and the way out.
    pub fn new(plan: TaskPlan, log: Writer, locks: Arc<[PiLock]>, control: Arc<Control>) -> Result<Worker, String> {
        let of_task = |error: String| format!("task \"{}\": {error}", plan.name);
        let work = Work::new(plan.working_set).map_err(of_task)?;
        // A thread that is late now and then is no reason not to run.
        let _ = scheduling::expire_on_time();
        if let Some(cpus) = &plan.cpus {
            scheduling::keep_on(cpus).map_err(|error| of_task(format!("cannot keep to CPUs {cpus:?}: {error}")))?;
        }
        plan.attributes.apply().map_err(of_task)?;
        let priorities = Vec::with_capacity(plan.ops.len());
        Ok(Worker { plan, log, locks, control, work, priorities })
    }

    /// Runs all jobs, the first no earlier than `start`, unless it is stopped.
    ///
    /// # Errors
    /// Why it cannot go on.
    pub fn run(mut self, start: Instant) -> Result<(), String> {
        while let Some(release) = self.plan.releases.next() {
            let at = start.saturating_add(Nanos(release.at.0));
            // A futex and not `clock_nanosleep`: it has the same absolute timer, and can be ended from outside.
            if !self.control.suspend_until(at) {
                return Ok(());
            }
            match self.job(release.index) {
                Ok(()) => {}
                Err(Cut::Stopped) => return Ok(()),
                Err(Cut::Failed(reason)) => return Err(format!("task \"{}\": {reason}", self.plan.name)),
            }
        }
        Ok(())
    }

    fn job(&mut self, index: u32) -> Result<(), Cut> {
        self.log.note(index, Deed::Begin);
        self.work.begin_job();
        for position in 0..self.plan.ops.len() {
            let outcome = self.op(index, position);
            if let Err(cut) = outcome {
                self.give_up_locks(index, position);
                return Err(cut);
            }
        }
        self.work.end_job();
        self.log.note(index, Deed::Complete);
        Ok(())
    }

    fn op(&mut self, index: u32, position: usize) -> Result<(), Cut> {
        match &self.plan.ops[position] {
            Op::Pass => Ok(()),
            Op::Run(time) => {
                let span = self.draw(time, index, position);
                self.execute(span)
            }
            Op::NonPreemptive(time) => {
                let span = self.draw(time, index, position);
                self.non_preemptive(index, span)
            }
            Op::Suspend(time) => {
                let span = self.draw(time, index, position);
                self.suspend(index, span)
            }
            &Op::Lock(lock) => self.lock(index, lock),
            &Op::Unlock(lock) => self.unlock(index, lock),
        }
    }

    fn draw(&self, time: &ExecutionTime, index: u32, position: usize) -> Nanos {
        self.plan.draws.step(&time.actual, time.wcet, index, position)
    }

    fn execute(&mut self, span: Nanos) -> Result<(), Cut> {
        if self.work.execute(span, &self.control) { Ok(()) } else { Err(Cut::Stopped) }
    }

    fn suspend(&mut self, index: u32, span: Nanos) -> Result<(), Cut> {
        let until = clock::now().saturating_add(span);
        self.log.note(index, Deed::Suspend);
        if !self.control.suspend_until(until) {
            return Err(Cut::Stopped);
        }
        self.log.note(index, Deed::Resume);
        Ok(())
    }

    /// Noted only where it is one: under `SCHED_FIFO`, and within it.
    fn non_preemptive(&mut self, index: u32, span: Nanos) -> Result<(), Cut> {
        let Some(priority) = self.plan.raised.as_ref().map(|raised| raised.non_preemptive) else {
            return self.execute(span);
        };
        self.raise(Some(priority))?;
        self.log.note(index, Deed::NonPreemptiveBegin);
        let outcome = self.execute(span);
        self.log.note(index, Deed::NonPreemptiveEnd);
        self.lower()?;
        outcome
    }

    fn lock(&mut self, index: u32, lock: LockId) -> Result<(), Cut> {
        self.log.note(index, Deed::Request(lock));
        let ceiling = self.plan.raised.as_ref().and_then(|raised| raised.ceilings[lock.index()]);
        let locks = Arc::clone(&self.locks);
        let guard = &locks[lock.index()];
        if !guard.try_lock() {
            self.log.note(index, Deed::Wait(lock));
            guard.lock().map_err(|error| self.no_lock(lock, &error))?;
        }
        self.log.note(index, Deed::Grant(lock));
        self.raise(ceiling)
    }

    fn unlock(&mut self, index: u32, lock: LockId) -> Result<(), Cut> {
        // Before it is true: nobody is granted earlier.
        self.log.note(index, Deed::Unlock(lock));
        self.locks[lock.index()].unlock().map_err(|error| self.no_lock(lock, &error))?;
        self.lower()
    }

    fn no_lock(&self, lock: LockId, error: &io::Error) -> Cut {
        let circle = match error.kind() {
            io::ErrorKind::Deadlock => ": tasks wait for one another; lock resources in the same order everywhere",
            _ => "",
        };
        Cut::Failed(format!("resource {} cannot be locked or unlocked: {error}{circle}", lock.0))
    }

    /// Unlocks what the job holds at `position`, so that others get on to where they are stopped.
    fn give_up_locks(&mut self, index: u32, position: usize) {
        let mut held: Vec<LockId> = Vec::new();
        for op in &self.plan.ops[..position] {
            match op {
                Op::Lock(lock) => held.push(*lock),
                Op::Unlock(_) => drop(held.pop()),
                _ => {}
            }
        }
        while let Some(lock) = held.pop() {
            // It held what it locked before; and if Linux disagrees, all are stopped anyway.
            let _ = self.unlock(index, lock);
        }
    }

    /// Has `priority`, if any, and at least the present one, until [`Worker::lower`].
    fn raise(&mut self, priority: Option<u8>) -> Result<(), Cut> {
        let Some(now) = self.priority() else { return Ok(()) };
        let raised = priority.map_or(now, |priority| priority.max(now));
        self.priorities.push(raised);
        change(now, raised)
    }

    fn lower(&mut self) -> Result<(), Cut> {
        let Some(now) = self.priority() else { return Ok(()) };
        self.priorities.pop();
        change(now, self.priority().unwrap_or(now))
    }

    /// The priority that it gave itself, where there are any.
    fn priority(&self) -> Option<u8> {
        let base = self.plan.raised.as_ref().map(|&Raised { base, .. }| base)?;
        Some(self.priorities.last().copied().unwrap_or(base))
    }
}

fn change(from: u8, to: u8) -> Result<(), Cut> {
    if from == to {
        return Ok(());
    }
    let refused = |error| Cut::Failed(format!("cannot go from SCHED_FIFO priority {from} to {to}: {error}"));
    scheduling::set_fifo(to).map_err(refused)
}
