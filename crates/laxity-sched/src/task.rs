//! A thread that is a task of a system.
//!
//! ```text
//!            release                    link                 complete
//! (no job) ----------> (waits for CPU) ------> (on its CPU) -----------> (no job)
//!                             ^  ^---displaced------'  | suspend
//!                             '-------- resume ------- (suspended)
//! ```

use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use laxity_model::{Instant, Nanos, ServerKind, TaskId};
use laxity_policy::cpu::{Event, Standing};
use laxity_sys::clock;

use crate::config::Rule;
use crate::decision::{Decision, Watch};
use crate::locks::{LocksGuard, Outcome};
use crate::placement::{Class, Placed};
use crate::registration::Registration;
use crate::served::Served;
use crate::shared::Shared;
use crate::state_lock::StateError;
use crate::system::Membership;

/// What a task is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Of 1 to [`NAME_MAX`](crate::NAME_MAX) bytes.
    pub name: String,
    /// Which of the system's clusters schedules it.
    pub cluster: usize,
    /// Of its releases, or the least time between two.
    pub period: Nanos,
    /// Relative to each release.
    pub deadline: Nanos,
    /// The most that a job takes; zero: not known.
    pub wcet: Nanos,
    /// What a job may take, which others are told.
    pub budget: Option<Nanos>,
    /// How the budget is enforced: the task is such a server, with a period of its own `period`. `None`: it is not, and the
    /// budget is only told.
    pub server: Option<ServerKind>,
    /// Its place among others under [`Rule::Given`]: the smaller the more urgent.
    pub priority: Option<u32>,
    /// Its level under fixed priorities, in place of the one that follows from the above; at least 1, the smaller the
    /// more urgent.
    pub level: Option<u64>,
}

impl Parameters {
    /// A task that is released every `period` and due by the next release, in the first cluster.
    pub fn periodic(name: impl Into<String>, period: Nanos) -> Parameters {
        Parameters {
            name: name.into(),
            cluster: 0,
            period,
            deadline: period,
            wcet: Nanos::ZERO,
            budget: None,
            server: None,
            priority: None,
            level: None,
        }
    }

    /// The level of its jobs under fixed priorities; level 0 is above all jobs.
    pub(crate) fn level(&self, rule: Rule) -> u64 {
        let key = match rule {
            Rule::Edf => 0,
            Rule::RateMonotonic => self.period.0,
            Rule::DeadlineMonotonic => self.deadline.0,
            Rule::Given => self.priority.map_or(u64::MAX - 1, u64::from),
        };
        self.level.unwrap_or(key.saturating_add(1)).max(1)
    }
}

/// A job of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Counted from 0.
    pub index: u64,
    /// When it was released, on the monotonic clock.
    pub release: Instant,
    /// When it is due, on the monotonic clock.
    pub deadline: Instant,
}

/// Why a task cannot do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It has no job, or has one already.
    #[error("task {task}: {action} needs {needs}; {way_out}")]
    Order {
        /// The name.
        task: String,
        /// What was asked for.
        action: &'static str,
        /// What is missing.
        needs: &'static str,
        /// The way out.
        way_out: &'static str,
    },
    /// This process was forked from the one that is attached, or the thread is no task any more.
    #[error("task {task}: this thread is not the one that became the task; become a task here")]
    NotAttached {
        /// The name.
        task: String,
    },
    /// The state of the system.
    #[error("{0}")]
    State(#[from] StateError),
}

/// The calling thread as a task of a system: only that thread uses it. When it is dropped, or its thread or process ends,
/// its job ends and Linux schedules the thread as before.
#[derive(Debug)]
pub struct Task {
    pub(crate) membership: Arc<Membership>,
    pub(crate) id: TaskId,
    parameters: Parameters,
    registration: Rc<Registration>,
    pub(crate) placed: RefCell<Placed>,
    pub(crate) phase: Cell<Phase>,
    /// How many locks its job holds.
    pub(crate) held: Cell<u32>,
    next: Cell<Next>,
    /// If its budget is enforced.
    pub(crate) server: RefCell<Option<Box<Served>>>,
    not_send: PhantomData<*mut ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Pending,
    Suspended,
    /// Its thread works for another task.
    Serves,
}

/// The next job of [`Task::wait_for_next_job`].
#[derive(Clone, Copy, Debug)]
struct Next {
    index: u64,
    release: Instant,
}

impl Task {
    pub(crate) fn new(membership: Arc<Membership>, id: TaskId, parameters: Parameters, placed: Placed) -> Task {
        let name = parameters.name.clone();
        let registration = Registration::begin(membership.clone(), id, name, parameters.cluster);
        let next = Cell::new(Next { index: 0, release: Instant::NEVER });
        let (placed, phase) = (RefCell::new(placed), Cell::new(Phase::Idle));
        let (held, server) = (Cell::new(0), RefCell::new(None));
        Task { membership, id, parameters, registration, placed, phase, held, next, server, not_send: PhantomData }
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.membership.shared
    }

    /// Its number in the system, that of [`Link::task`](crate::Link::task).
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// What it is.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The present job, or else the last one.
    pub fn job(&self) -> Job {
        if let Some(job) = self.server.borrow().as_ref().and_then(|served| served.job) {
            return job;
        }
        let (shared, words) = (self.shared(), self.shared().task(self.id));
        let [index, release, deadline] = [words.job, words.release, words.deadline].map(|word| shared.long(word));
        Job { index, release: Instant(release), deadline: Instant(deadline) }
    }

    /// The error with which Linux last refused to place the thread.
    pub fn refused(&self) -> Option<io::Error> {
        let number = self.shared().number(self.shared().task(self.id).refused);
        (number != 0).then(|| io::Error::from_raw_os_error(number as i32))
    }

    /// Completes the present job, if there is one, and waits for the next release: one period after the last; the first
    /// is at once. If the job took longer than that, the next one is released at its time all the same, and begins now.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn wait_for_next_job(&self) -> Result<Job, TaskError> {
        Ok(self.wait_for_next_job_while(&|| true)?.expect("no signal ends this wait"))
    }

    /// As [`Task::wait_for_next_job`], while `go_on` says so: it is asked whenever this thread has handled a signal before
    /// the release. `None` if it does not; then there is no job, and the next wait is for the same release.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn wait_for_next_job_while(&self, go_on: &dyn Fn() -> bool) -> Result<Option<Job>, TaskError> {
        if self.phase.get() != Phase::Idle {
            self.complete()?;
        }
        let Next { index, mut release } = self.next.get();
        if release == Instant::NEVER {
            release = clock::now();
        }
        while !clock::sleep_until_signal(release) {
            if !go_on() {
                return Ok(None);
            }
        }
        let job = Job { index, release, deadline: release.saturating_add(self.parameters.deadline) };
        self.release(job)?;
        self.next.set(Next { index: index + 1, release: release.saturating_add(self.parameters.period) });
        Ok(Some(job))
    }

    /// The first release of [`Task::wait_for_next_job`] is at `start`, on the monotonic clock.
    ///
    /// # Errors
    /// [`TaskError`]; the first job must not have been released, as the numbers of jobs would begin again.
    pub fn start_at(&self, start: Instant) -> Result<(), TaskError> {
        if self.next.get().index > 0 {
            let needs = "no job to have been released by a wait";
            return Err(self.out_of_order("a first release", needs, "call it before the first wait"));
        }
        self.next.set(Next { index: 0, release: start });
        Ok(())
    }

    /// `job` is ready: its release has come. Returns when the thread is placed; if it gets no CPU at once, that may be
    /// later.
    ///
    /// # Errors
    /// [`TaskError`]; the last job must be complete.
    pub fn release(&self, job: Job) -> Result<Decision, TaskError> {
        self.release_watched(job, &mut ())
    }

    /// As [`Task::release`]; `watch` hears of the decision before the thread may have to wait for its CPU.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn release_watched(&self, job: Job, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.expect(Phase::Idle, "a release", "the job before to be complete", "complete it first")?;
        let job = self.begin_budget(job);
        self.charged(|| self.release_now(job, watch))
    }

    fn release_now(&self, job: Job, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        let shared = self.shared();
        let decision = self.event(watch, Phase::Pending, |state| {
            shared.begin_job(self.id, job.index, job.release, job.deadline);
            shared.set_above(self.id, false);
            let (task, cpu) = (self.id, state.cpu_of(self.id));
            state.cache.policy.set_level(task, shared.long(shared.task(task).level));
            state.handle(task, Event::Released { cpu, task, deadline: job.deadline });
        })?;
        Ok(decision)
    }

    /// The present job is complete. The thread stays urgent, and is expected to wait for its next job.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended.
    pub fn complete(&self) -> Result<Decision, TaskError> {
        self.complete_watched(&mut ())
    }

    /// As [`Task::complete`]; `watch` hears of the decision.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn complete_watched(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.charged(|| self.complete_now(watch))
    }

    fn complete_now(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        if self.phase.get() == Phase::Serves {
            self.end_service()?;
        } else {
            self.expect(Phase::Pending, "completion", "a job", "wait for one first")?;
        }
        if self.held.get() > 0 {
            return Err(self.out_of_order("completion", "no lock to be held", "unlock all first"));
        }
        self.end_sections();
        let decision = self.end_pending(watch)?;
        self.shared().end_job(self.id, decision.at);
        Ok(decision)
    }

    /// The policy hears that the present job is complete.
    pub(crate) fn end_pending(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.event(watch, Phase::Idle, |state| {
            let (task, cpu) = (self.id, state.cpu_of(self.id));
            state.handle(task, Event::Completed { cpu, task });
        })
    }

    /// The present job suspends itself. The thread stays urgent, and is expected to wait.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended.
    pub fn suspend(&self) -> Result<Decision, TaskError> {
        self.suspend_watched(&mut ())
    }

    /// As [`Task::suspend`]; `watch` hears of the decision.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn suspend_watched(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.charged(|| self.suspend_now(watch))
    }

    pub(crate) fn suspend_now(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.expect(Phase::Pending, "suspension", "a job that is not suspended", "wait for one first")?;
        self.end_sections();
        self.event(watch, Phase::Suspended, |state| {
            let (task, cpu) = (self.id, state.cpu_of(self.id));
            state.handle(task, Event::Suspended { cpu, task });
        })
    }

    /// The suspended job goes on.
    ///
    /// # Errors
    /// [`TaskError`]; the job must be suspended.
    pub fn resume(&self) -> Result<Decision, TaskError> {
        self.resume_watched(&mut ())
    }

    /// As [`Task::resume`]; `watch` hears of the decision before the thread may have to wait for its CPU.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn resume_watched(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.charged(|| self.resume_now(watch))
    }

    pub(crate) fn resume_now(&self, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.expect(Phase::Suspended, "resumption", "a suspended job", "suspend it first")?;
        self.event(watch, Phase::Pending, |state| {
            let (task, cpu) = (self.id, state.cpu_of(self.id));
            state.handle(task, Event::Resumed { cpu, task });
        })
    }

    /// Whether the job is linked: it has a CPU.
    pub fn is_linked(&self) -> bool {
        self.shared().demanded(self.id).class == Class::Running
    }

    pub(crate) fn expect(
        &self,
        phase: Phase,
        action: &'static str,
        needs: &'static str,
        way: &'static str,
    ) -> Result<(), TaskError> {
        if !self.membership.is_ours() || self.registration.is_over() {
            return Err(TaskError::NotAttached { task: self.parameters.name.clone() });
        }
        match self.phase.get() {
            found if found == phase => Ok(()),
            // It has a job, which another wait does not bring back.
            Phase::Suspended if phase == Phase::Pending => {
                Err(self.out_of_order(action, "a job that is not suspended", "resume it first"))
            }
            _ => Err(self.out_of_order(action, needs, way)),
        }
    }

    pub(crate) fn out_of_order(&self, action: &'static str, needs: &'static str, way_out: &'static str) -> TaskError {
        TaskError::Order { task: self.parameters.name.clone(), action, needs, way_out }
    }

    /// An event happens to this task: its thread has the policy decide, and carries the decision out.
    pub(crate) fn event(
        &self,
        watch: &mut impl Watch,
        after: Phase,
        event: impl FnOnce(&mut crate::state_lock::ClusterGuard<'_>),
    ) -> Result<Decision, TaskError> {
        let shared = self.shared();
        // The thread of a program is another one than the calling thread, which is urgent all the time.
        let caller = shared.program(self.id).is_none().then_some(self.id);
        let mut placed = self.placed.borrow_mut();
        watch.begin();
        caller.into_iter().for_each(|task| shared.rise(task, &mut placed));
        let mut state = match shared.lock(self.parameters.cluster) {
            Ok(state) => state,
            Err(error) => {
                watch.end();
                caller.into_iter().for_each(|task| shared.settle(task, &mut placed));
                return Err(error.into());
            }
        };
        event(&mut state);
        let decision = state.publish(caller);
        watch.decided(&decision);
        watch.end();
        caller.into_iter().for_each(|task| shared.settle(task, &mut placed));
        self.phase.set(after);
        Ok(decision)
    }

    /// Something happens to the locks that this task holds or requests. Answers when that was arbitrated.
    pub(crate) fn change_locks(
        &self,
        watch: &mut impl Watch,
        change: impl FnOnce(&mut LocksGuard<'_>) -> Result<(), TaskError>,
    ) -> Result<Instant, TaskError> {
        let shared = self.shared();
        let mut placed = self.placed.borrow_mut();
        watch.begin();
        shared.rise(self.id, &mut placed);
        let changed = shared.lock_locks().map_err(TaskError::from).and_then(|mut locks| {
            change(&mut locks)?;
            Ok(locks.publish(Some(self.id))?)
        });
        if let Ok(Outcome { at, grants, decisions }) = &changed {
            watch.arbitrated(*at, grants);
            decisions.iter().for_each(|decision| watch.decided(decision));
        }
        watch.end();
        shared.settle(self.id, &mut placed);
        Ok(changed?.at)
    }

    /// The thread is placed as is demanded.
    pub(crate) fn settle(&self) {
        self.shared().settle(self.id, &mut self.placed.borrow_mut());
    }

    /// Where the job is, by the state that counts.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn standing(&self) -> Result<Standing, StateError> {
        Ok(self.shared().lock(self.parameters.cluster)?.cache.policy.standing(self.id).0)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // First, so that it does not act for a task that has ended.
        *self.server.get_mut() = None;
        self.registration.end_early();
    }
}

/// How often a thread looks for itself whether it has a CPU: a thread that was killed may have forgotten to say so.
pub(crate) const LOOK_AGAIN: Nanos = Nanos::from_millis(10);
