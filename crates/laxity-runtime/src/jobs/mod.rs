//! Executes the jobs of a workload, step by step, on the thread of their task.
//!
//! A value on the stack holds a token or an engine: [`Jobs::steps`] executes the steps during which it is held, and ends
//! where it is given up.

mod arbitrated;
mod bandwidth;
mod budget;
mod error;
mod gpus;
mod kernel;
mod kernel_nodes;
mod messages;
mod own_code;
mod place;
mod resources;
mod scheduled;
mod state;

use std::cell::RefCell;
use std::sync::Arc;

use laxity_gpu::{Client, Token, TokenRequest};
use laxity_model::{ExecutionTime, Instant, LockId, Nanos, ReplicaId};
use laxity_plan::Op;
use laxity_policy::server::Budget;
use laxity_sched::{Supervisor, System};
use laxity_sys::clock;
use laxity_sys::own_code::StepKind;

pub(crate) use self::error::JobError;
use self::gpus::Gpus;
use self::kernel::KernelTask;
pub(crate) use self::messages::Messages;
use self::own_code::{Calls, Exchange};
use crate::code::Watch;
use crate::gpus::{Share, base};
use crate::log::{JobStep, Writer};
use crate::plan::{LivePlan, TaskPlan};
use crate::shared::Shared;
use crate::stop::StopSignal;
use crate::work::Work;
use crate::worker::{Body, Interrupted, Job};

/// The jobs of a task, one at a time.
pub(crate) struct Jobs {
    plan: TaskPlan,
    log: Writer,
    shared: Arc<Shared>,
    stop: Arc<StopSignal>,
    work: Work,
    /// The user's code, where that is what jobs run.
    code: Option<Calls>,
    gpus: Option<Gpus>,
    /// If it locks GPUs.
    client: Option<Client>,
    /// If its jobs hold the bandwidth lock.
    bandwidth: Option<Client>,
    /// If its jobs run code that is stopped where its budget ends. Before the task, which it acts for.
    supervisor: Option<Supervisor<Writer>>,
    /// If Laxity's scheduler schedules it.
    scheduled: Option<laxity_sched::Task>,
    /// If its scheduler in the kernel does.
    kernel: Option<KernelTask>,
    /// If it has one.
    budget: Option<Budget>,
    /// Sections, other than of resources, that the job is in: a budget that is exhausted does not end them.
    sections: u32,
    /// The resources that the job holds, the last one last.
    held: Vec<(LockId, ReplicaId)>,
    /// The priorities that it raised itself to, the last one last.
    priorities: Vec<u8>,
    /// Which job it is.
    index: u32,
    /// Whether it completed with its last unlock.
    is_complete: bool,
}

/// Why a step did not come to its end.
type Cut = Interrupted<JobError>;

/// The client and the token of GPUs that the job has, and a way to its messages if it is one of a node.
#[derive(Clone, Copy)]
struct Holding<'a> {
    job: Option<&'a dyn Exchange>,
    client: Option<&'a Client>,
    token: Option<Held<'a>>,
}

/// A token that the job holds.
#[derive(Clone, Copy)]
enum Held<'a> {
    /// By the arbitration of its pool of GPUs.
    Arbitrated(&'a Token<'a>),
    /// By the arbiter of all locks of the run: this replica of the pool's lock.
    Ours(ReplicaId),
}

impl Jobs {
    /// The jobs of `task`, which has a share of the GPUs of a plan if it uses any. Made on the thread of the task.
    ///
    /// # Errors
    /// That there is not enough memory, or what the arbitration of the GPUs refuses.
    pub fn new(
        task: TaskPlan,
        gpus: Option<(&LivePlan, &Share)>,
        log: Writer,
        shared: Arc<Shared>,
        stop: Arc<StopSignal>,
        system: Option<&System>,
        watch: Option<Arc<Watch>>,
    ) -> Result<Jobs, String> {
        // Code of the user has a working set of its own.
        let work = Work::new(if task.code.is_some() { 0 } else { task.working_set })?;
        let budget =
            task.server.map(|it| Budget::new(it.config, it.level)).transpose().map_err(|why| why.to_string())?;
        let parameters = task.scheduled.as_ref();
        let scheduled = system.zip(parameters).map(|(system, (number, it))| scheduled::begin(system, it, *number));
        let scheduled = scheduled.transpose()?;
        let kernel =
            task.in_kernel.clone().map(|(number, request)| KernelTask::new(number, request, task.urgency.is_some()));
        let (held, priorities) = (Vec::with_capacity(task.ops.len()), Vec::with_capacity(task.ops.len()));
        // When Linux schedules it as it will: threads that inherit from it ask for that.
        let client = gpus.map(|(_, share)| share.register(&task)).transpose()?.flatten();
        let bandwidth = gpus.map(|(_, share)| share.register_bandwidth(&task)).transpose()?.flatten();
        let gpus = gpus.map(|(plan, share)| Gpus::new(plan, &task, share));
        let code = Calls::new(&task, watch)?;
        let supervised = scheduled.as_ref().filter(|_| code.is_some() && budget.is_some());
        let supervisor = supervised.map(|task| Supervisor::start(task, log.in_turns())).transpose();
        let supervisor = supervisor.map_err(|error| format!("its budget cannot be supervised: {error}"))?;
        Ok(Jobs {
            plan: task,
            log,
            shared,
            stop,
            work,
            code,
            gpus,
            client,
            bandwidth,
            supervisor,
            scheduled,
            kernel,
            budget,
            sections: 0,
            held,
            priorities,
            index: 0,
            is_complete: false,
        })
    }

    /// Carries out job `index`, which is due at `deadline`. All its steps are done when this returns. A job that is cut
    /// holds nothing then.
    fn carry_out(
        &mut self,
        index: u32,
        (release, deadline): (Instant, Instant),
        mut node_job: Option<&mut laxity_graph::Job<'_>>,
    ) -> Result<(), Cut> {
        self.begin_job(index, deadline)?;
        self.work.begin_job();
        match (&mut self.code, &mut node_job) {
            (Some(code), _) => code.begin_job(release, deadline),
            (None, Some(job)) => messages::exchange(job, &self.plan.messages),
            (None, None) => {}
        }
        let mut client = self.client.take();
        let job = node_job.map(RefCell::new);
        let outcome = self.with_client(client.as_mut(), deadline, job.as_ref().map(|job| job as &dyn Exchange));
        self.client = client;
        match outcome {
            Ok(end) => assert_eq!(end, self.plan.ops.len(), "a job gives up what it took, and nothing else"),
            Err(cut) => {
                self.give_up_resources();
                return Err(cut);
            }
        }
        self.work.end_job();
        Ok(())
    }

    fn with_client(
        &mut self,
        client: Option<&mut Client>,
        deadline: Instant,
        job: Option<&dyn Exchange>,
    ) -> Result<usize, Cut> {
        let client = match client {
            // A fixed urgency is that of all jobs.
            Some(client) if self.plan.urgency.is_none() => {
                client.begin_job(base(None, deadline)).map_err(JobError::from)?;
                Some(&*client)
            }
            client => client.map(|client| &*client),
        };
        self.steps(0, Holding { job, client, token: None })
    }

    fn note(&mut self, step: JobStep) {
        self.log.note(self.index, step);
    }

    /// Executes the steps from `first` on, up to the step that gives up the caller's token or engine; answers which step
    /// that is.
    fn steps(&mut self, first: usize, holding: Holding<'_>) -> Result<usize, Cut> {
        let ops = Arc::clone(&self.plan.ops);
        let mut at = first;
        while let Some(op) = ops.get(at) {
            match *op {
                Op::Dispatch => {}
                Op::Run(ref time) => self.use_cpu(time, at, StepKind::Cpu, holding)?,
                Op::NonPreemptive(ref time) => self.non_preemptive(time, at, holding)?,
                Op::Suspend(ref time) => self.suspend(time, at, holding)?,
                Op::Lock { lock, length, only } if self.is_pool(lock) => {
                    at = self.with_token(at, TokenRequest { gpu: only, length, deadline: Instant::NEVER }, holding)?;
                }
                Op::Unlock(lock) if self.is_pool(lock) => return Ok(at),
                Op::Lock { lock, length, .. } => self.lock(lock, length)?,
                Op::Unlock(lock) => self.unlock_at(at, lock)?,
                Op::LockEngine(target) => at = self.with_engine(at, target, holding)?,
                Op::UnlockEngine(_) => return Ok(at),
                Op::Issue(ref operation) => self.issue(operation, at, holding)?,
                Op::Wait => {
                    // A job that spins uses its budget.
                    let before = clock::thread_cpu_time();
                    self.wait()?;
                    self.charge_since(before);
                }
                Op::HoldBandwidth => self.hold_bandwidth()?,
                Op::EndBandwidth => self.end_bandwidth()?,
                Op::UnlessMoved(steps) => at += if self.has_moved() { 0 } else { steps as usize },
            }
            at += 1;
            // A job that is done needs no more budget.
            if self.budget.is_some() && at < ops.len() {
                self.await_budget()?;
            }
        }
        Ok(at)
    }

    fn draw(&self, time: &ExecutionTime, at: usize) -> Nanos {
        match &self.plan.handles {
            None => self.plan.draws.step(time, self.index, at),
            Some(handles) => handles.draws.bottom_half(time, self.index),
        }
    }

    fn suspend(&mut self, time: &ExecutionTime, at: usize, holding: Holding<'_>) -> Result<(), Cut> {
        if self.code.is_some() {
            return self.suspended(|jobs| jobs.call_code(at, StepKind::Suspend, holding))?;
        }
        let span = self.draw(time, at);
        let until = clock::now().saturating_add(span);
        let stop = Arc::clone(&self.stop);
        if self.suspended(|_| stop.suspend_until(until))? { Ok(()) } else { Err(Cut::Stopped) }
    }

    /// A section that no other task preempts: noted where it is one, which is under `SCHED_FIFO` and
    /// Laxity's scheduler.
    fn non_preemptive(&mut self, time: &ExecutionTime, at: usize, holding: Holding<'_>) -> Result<(), Cut> {
        let kind = StepKind::NonPreemptive;
        let priority = self.plan.raised.as_ref().map(|raised| raised.non_preemptive);
        if priority.is_none() && self.scheduled.is_none() && self.kernel.is_none() {
            return self.use_cpu(time, at, kind, holding);
        }
        self.raise(priority)?;
        self.enter_section()?;
        self.sections += 1;
        let outcome = self.use_cpu(time, at, kind, holding);
        self.sections -= 1;
        self.leave_section()?;
        self.lower()?;
        outcome
    }
}

impl Body for Jobs {
    type Error = JobError;

    fn await_release(&mut self, release: Instant, deadline: Instant, stop: &StopSignal) -> Result<bool, JobError> {
        if self.kernel.is_some() { self.await_in_kernel(release, deadline) } else { Ok(stop.suspend_until(release)) }
    }

    fn begin_node(&mut self, start: Instant) -> bool {
        self.begin_node_in_kernel(start)
    }

    fn await_node(&mut self, node: &mut laxity_graph::Node) -> Result<bool, JobError> {
        self.await_node_in_kernel(node)
    }

    fn execute(&mut self, job: Job<'_>) -> Result<(), Cut> {
        match job {
            Job::Timer { index, deadline } => {
                let release = Instant(deadline.0.saturating_sub(self.plan.deadline.0));
                self.carry_out(index, (release, deadline), None)?;
                self.end_job()?;
            }
            Job::Node(mut job) => {
                let times = (job.release().unwrap_or(Instant::ZERO), job.deadline().unwrap_or(Instant::NEVER));
                // Jobs of a trace have 32 bits, too.
                self.carry_out(job.index() as u32, times, Some(&mut job))?;
                // Before the tokens are there, so that in the log no consumer begins before its producer completes.
                self.end_job()?;
                self.boost_in_kernel();
                job.complete();
            }
        }
        Ok(())
    }

    fn end(self, outcome: Result<(), JobError>) -> Result<(), String> {
        if let (Some(own), Some(kernel)) = (&self.kernel, &self.shared.kernel) {
            kernel.pass(own.number());
        }
        let ended = self.code.map_or(Ok(()), Calls::end);
        outcome.and(ended).map_err(|error| format!("task \"{}\": {error}", self.plan.name))
    }
}
