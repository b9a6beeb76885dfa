//! What a job does, carried out step by step on the thread of its task.
//!
//! A token and an engine are held by what is on the stack: [`Jobs::steps`] carries out what comes while they are, and
//! ends where they are given up.

mod gpus;
mod resources;

use std::sync::Arc;

use laxity_gpu::{Client, Token, TokenRequest};
use laxity_model::{ExecutionTime, Instant, LockId, Nanos};
use laxity_plan::Op;
use laxity_sys::clock;
use laxity_sys::pi_lock::PiLock;

use self::gpus::Gpus;
use crate::gpus::{Share, base};
use crate::halt::Halt;
use crate::log::{Deed, Writer};
use crate::plan::{Plan, TaskPlan};
use crate::work::Work;

/// The jobs of a task, one at a time.
pub(crate) struct Jobs {
    plan: TaskPlan,
    log: Writer,
    resources: Arc<[PiLock]>,
    halt: Arc<Halt>,
    work: Work,
    gpus: Option<Gpus>,
    /// The resources that the job holds, the last one last.
    held: Vec<LockId>,
    /// The priorities that it raised itself to, the last one last.
    priorities: Vec<u8>,
    /// Which job it is.
    index: u32,
}

/// Why a job did not come to its end.
pub(crate) enum Cut {
    /// Everything was stopped.
    Stopped,
    /// Something does not work.
    Failed(String),
}

/// What of GPUs the job holds.
#[derive(Clone, Copy)]
struct Holding<'a> {
    client: Option<&'a Client>,
    token: Option<&'a Token<'a>>,
}

impl Jobs {
    /// Those of `task`, which uses what `share` says of the GPUs of `plan`.
    ///
    /// # Errors
    /// That there is not enough memory.
    pub fn new(
        plan: &Plan,
        task: TaskPlan,
        share: Option<&Share>,
        log: Writer,
        resources: Arc<[PiLock]>,
        halt: Arc<Halt>,
    ) -> Result<Jobs, String> {
        let work = Work::new(task.working_set)?;
        let (held, priorities) = (Vec::with_capacity(task.ops.len()), Vec::with_capacity(task.ops.len()));
        let gpus = share.map(|share| Gpus::new(plan, &task, share));
        Ok(Jobs { plan: task, log, resources, halt, work, gpus, held, priorities, index: 0 })
    }

    /// Carries out job `index`, which is due at `deadline`. It is complete when this returns, and not yet known to be.
    ///
    /// # Errors
    /// Why it did not come to its end. It holds nothing then.
    pub fn carry_out(&mut self, index: u32, deadline: Instant, client: Option<&mut Client>) -> Result<(), Cut> {
        self.index = index;
        self.note(Deed::Begin);
        self.work.begin_job();
        let client = match client {
            // A fixed urgency is that of all jobs.
            Some(client) if self.plan.urgency.is_none() => {
                client.begin_job(base(None, deadline)).map_err(|error| Cut::Failed(error.to_string()))?;
                Some(&*client)
            }
            client => client.map(|client| &*client),
        };
        match self.steps(0, Holding { client, token: None }) {
            Ok(end) => assert_eq!(end, self.plan.ops.len(), "a job gives up what it took, and nothing else"),
            Err(cut) => {
                self.give_up_resources();
                return Err(cut);
            }
        }
        self.work.end_job();
        self.note(Deed::Complete);
        Ok(())
    }

    fn note(&mut self, deed: Deed) {
        self.log.note(self.index, deed);
    }

    /// Carries out the steps from `first` on, up to the one that gives up what the caller has; answers which that is.
    fn steps(&mut self, first: usize, holding: Holding<'_>) -> Result<usize, Cut> {
        let ops = Arc::clone(&self.plan.ops);
        let mut at = first;
        while let Some(op) = ops.get(at) {
            match *op {
                Op::Dispatch => {}
                Op::Run(ref time) => self.execute(self.draw(time, at))?,
                Op::NonPreemptive(ref time) => self.non_preemptive(self.draw(time, at))?,
                Op::Suspend(ref time) => self.suspend(self.draw(time, at))?,
                Op::Lock { lock, length, only } if self.is_pool(lock) => {
                    at = self.with_token(at, TokenRequest { gpu: only, length, deadline: Instant::NEVER }, holding)?;
                }
                Op::Unlock(lock) if self.is_pool(lock) => return Ok(at),
                Op::Lock { lock, .. } => self.lock(lock)?,
                Op::Unlock(lock) => self.unlock(lock)?,
                Op::LockEngine(target) => at = self.with_engine(at, target, holding)?,
                Op::UnlockEngine(_) => return Ok(at),
                Op::Issue(ref operation) => self.issue(operation, at, holding)?,
                Op::Wait => self.wait()?,
                Op::UnlessMoved(_) => unreachable!("a plan refuses what moves from GPU to GPU"),
            }
            at += 1;
        }
        Ok(at)
    }

    fn draw(&self, time: &ExecutionTime, at: usize) -> Nanos {
        self.plan.draws.step(time, self.index, at)
    }

    fn execute(&mut self, span: Nanos) -> Result<(), Cut> {
        if self.work.execute(span, &self.halt.control) { Ok(()) } else { Err(Cut::Stopped) }
    }

    fn suspend(&mut self, span: Nanos) -> Result<(), Cut> {
        let until = clock::now().saturating_add(span);
        self.note(Deed::Suspend);
        if !self.halt.control.suspend_until(until) {
            return Err(Cut::Stopped);
        }
        self.note(Deed::Resume);
        Ok(())
    }

    /// Noted only where it is one: under `SCHED_FIFO`, and within it.
    fn non_preemptive(&mut self, span: Nanos) -> Result<(), Cut> {
        let Some(priority) = self.plan.raised.as_ref().map(|raised| raised.non_preemptive) else {
            return self.execute(span);
        };
        self.raise(Some(priority))?;
        self.note(Deed::NonPreemptiveBegin);
        let outcome = self.execute(span);
        self.note(Deed::NonPreemptiveEnd);
        self.lower()?;
        outcome
    }
}
