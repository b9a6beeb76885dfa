//! Another thread acts for a task whose own thread computes and does not come back: the supervisor of its budget.
//!
//! ```text
//!            throttle: no budget left
//! (ready) ----------------------------> (throttled: suspended, its thread below all real-time threads)
//!    ^  '--- postpone: another budget        |
//!    '----------- resume: budget again ------'
//! ```

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::{Instant, TaskId};
use laxity_policy::cpu::Event;

use crate::decision::{Change, Watch};
use crate::placement::Class;
use crate::shared::Shared;
use crate::state_lock::ClusterGuard;
use crate::system::Membership;
use crate::task::{Task, TaskError};

/// Acts for the job of a task. The two take turns: while this acts, the thread of the task does nothing with its
/// [`Task`], and its job is neither suspended by itself nor complete.
#[derive(Clone, Debug)]
pub(crate) struct Delegate {
    membership: Arc<Membership>,
    task: TaskId,
    name: String,
    cluster: usize,
    thread: u32,
}

impl Task {
    /// What another thread of this process acts with for this task, until the task ends.
    pub(crate) fn delegate(&self) -> Delegate {
        let (shared, parameters) = (self.shared(), self.parameters());
        Delegate {
            membership: self.membership.clone(),
            task: self.id(),
            name: parameters.name.clone(),
            cluster: parameters.cluster,
            thread: shared.number(shared.task(self.id()).thread),
        }
    }
}

impl Delegate {
    /// The calling thread becomes as urgent as one that handles an event of a task.
    ///
    /// # Errors
    /// If Linux refuses.
    pub fn rise(&self) -> io::Result<()> {
        self.shared().attributes(Class::Urgent).give_to(0)
    }

    /// The job, if its thread has its CPU, is suspended; the thread goes on where no real-time thread wants the CPU.
    /// Answers whether it had its CPU: one that lost it takes nothing from other jobs, and goes on as it did.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn throttle(&self, watch: &mut impl Watch) -> Result<bool, TaskError> {
        let mut had_cpu = false;
        self.event(watch, |state| {
            had_cpu = state.placed_on(self.task).is_some();
            if had_cpu {
                let (task, cpu) = (self.task, state.cpu_of(self.task));
                self.shared().set_throttled(task, true);
                state.handle(task, Event::Suspended { cpu, task });
            }
            had_cpu
        })?;
        Ok(had_cpu)
    }

    /// The throttled job goes on.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn resume(&self, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.event(watch, |state| {
            let (task, cpu) = (self.task, state.cpu_of(self.task));
            self.shared().set_throttled(task, false);
            state.handle(task, Event::Resumed { cpu, task });
            true
        })
    }

    /// The job, throttled or not, is due at `deadline` from now on, and goes by that under EDF; one that holds locks keeps
    /// what it inherits.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn postpone(&self, deadline: Instant, watch: &mut impl Watch) -> Result<(), TaskError> {
        let (shared, task) = (self.shared(), self.task);
        let words = shared.task(task);
        let begin = || {
            let (index, release) = (shared.long(words.job), Instant(shared.long(words.release)));
            shared.begin_job(task, index, release, deadline);
        };
        if shared.config.locks.is_empty() {
            return self.event(watch, |state| {
                begin();
                state.change(Change::Prioritized { task, level: shared.own_level(task) });
                true
            });
        }
        self.check()?;
        watch.begin();
        let changed = shared.lock_locks().and_then(|mut locks| {
            begin();
            locks.rebase(task);
            locks.publish(None)
        });
        if let Ok(outcome) = &changed {
            watch.arbitrated(outcome.at, &outcome.grants);
            outcome.decisions.iter().for_each(|decision| watch.decided(decision));
        }
        watch.end();
        Ok(changed.map(drop)?)
    }

    /// Whether this is the process of the task, not one forked from it.
    pub(crate) fn is_ours(&self) -> bool {
        self.membership.is_ours()
    }

    /// That the task has ended.
    pub(crate) fn no_task(&self) -> TaskError {
        TaskError::NotAttached { task: self.name.clone() }
    }

    fn shared(&self) -> &Shared {
        &self.membership.shared
    }

    fn check(&self) -> Result<(), TaskError> {
        let is_ours = self.is_ours();
        let thread = self.shared().own_threads[self.task.index()].load(Ordering::Relaxed);
        let is_task = is_ours && thread == self.thread && !self.shared().has_ended(self.task);
        if is_task { Ok(()) } else { Err(self.no_task()) }
    }

    /// Has the policy decide, unless `event` answers that nothing happened.
    fn event(
        &self,
        watch: &mut impl Watch,
        event: impl FnOnce(&mut ClusterGuard<'_>) -> bool,
    ) -> Result<(), TaskError> {
        watch.begin();
        let decision = self.shared().lock(self.cluster).map_err(TaskError::from).and_then(|mut state| {
            self.check()?;
            Ok(event(&mut state).then(|| state.publish(None)))
        });
        if let Ok(Some(decision)) = &decision {
            watch.decided(decision);
        }
        watch.end();
        decision.map(drop)
    }
}
