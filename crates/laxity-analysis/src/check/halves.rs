//! The safe accounting of GPU interrupts: by how much top and bottom halves of any owner may delay a job.
//!
//! | Handling | A bottom half delays | and costs others |
//! | --- | --- | --- |
//! | standard Linux | the job that the interrupted CPU would run: any job | nothing more |
//! | process-aware | the job whose stack it takes, even of a more urgent job that was linked meanwhile: any job | decisions and checks made for it |
//! | PREEMPT_RT, high | any job, from a thread above all of them | switches to the thread and back |
//! | klmirqd | its owner: the thread runs in the owner's place, never beside it, at its effective priority | nothing |
//! | klmirqd, several tokens a GPU, or callbacks | any job: another job may run with the priority that the thread has | decisions made for it, and where priorities change |
//!
//! A top half, and handing on the bottom half, may hit any CPU of the cluster and so delay any job. At each instant a
//! job, or the holder that it waits for, is behind one handler at most, so that each interrupt in the window counts once, those
//! of critical sections it waits for included.
//!
//! Under Linux ten bottom halves run after an interrupt, the rest in a daemon without real-time priority, so no more
//! than ten may be pending on a CPU. Operations that jobs wait for, with one interrupt each, leave no more than one
//! pending for each GPU that is held, or for each task where the driver arbitrates. Else it is what arrives while
//! handlers keep a CPU busy.

use laxity_model::InterruptHandling;

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::interrupts::jobs;
use super::sharing::Sharing;
use super::uses::Lock;

/// Tasklets that standard Linux runs after an interrupt (paper 000, section II).
const AFTER_INTERRUPT: u64 = 10;

/// GPU interrupts of a cluster.
#[derive(Clone, Copy)]
pub(super) struct Halves<'a> {
    context: &'a Context<'a>,
    /// How long a job of each member may be pending.
    pending: &'a [u64],
}

impl<'a> Halves<'a> {
    /// `pending`: how long a job of each member may be pending.
    pub fn new(context: &'a Context<'a>, pending: &'a [u64]) -> Self {
        Halves { context, pending }
    }

    fn sharing(&self) -> &'a Sharing {
        &self.context.machine.sharing
    }

    /// Interrupts raised for jobs that may be pending in a window.
    pub fn count(&self, length: u64) -> u64 {
        self.sum(length, |task| task.interrupts)
    }

    /// Requests for locks in a window, engines included.
    fn requests(&self, length: u64) -> u64 {
        self.sum(length, |task| task.lock_requests)
    }

    /// Requests for tokens.
    fn token_requests(&self, length: u64) -> u64 {
        let of = |task: &AnalysedTask| task.uses.requests.iter().filter(|it| it.lock == Lock::Gpu).count() as u64;
        if self.sharing().tokens().is_some() { self.sum(length, of) } else { 0 }
    }

    fn sum(&self, length: u64, of: impl Fn(&AnalysedTask) -> u64) -> u64 {
        self.context.members().zip(self.pending).fold(0, |sum: u64, (task, &pending)| match of(task) {
            0 => sum,
            count => sum.saturating_add(count.saturating_mul(jobs(task, pending, length))),
        })
    }

    /// A top half with the delivery of its bottom half.
    pub fn top(&self) -> u64 {
        let costs = &self.context.machine.costs;
        let delivery = match self.sharing().handling {
            InterruptHandling::Linux => 0,
            InterruptHandling::ProcessAware => costs.pai_enqueue.0,
            InterruptHandling::PreemptRt(_) | InterruptHandling::Klmirqd { .. } => costs.thread_release.0,
        };
        self.sharing().top_half.saturating_add(delivery)
    }

    /// What an interrupt of any task may keep from a job.
    pub fn each(&self) -> u64 {
        let bottom = if self.sharing().delays_all() { self.sharing().after_top_half() } else { 0 };
        self.top().saturating_add(bottom)
    }

    /// What an interrupt of a job keeps from that job alone.
    pub fn own(&self) -> u64 {
        if self.sharing().delays_all() { 0 } else { self.sharing().after_top_half() }
    }

    /// What the scheduler does for bottom halves of others in a window, where priorities changed for another reason than
    /// that a job began to wait or a holder unlocked: it looks for bottom halves, a thread's priority follows, a request
    /// for a token displaces another. `pair`: a decision with its check, a switch.
    pub fn scheduling(&self, length: u64, pair: u64) -> u64 {
        let changes = self.requests(length).saturating_mul(2);
        let halves = self.count(length).saturating_mul(self.sharing().schedulings_of_a_half());
        let count = match self.sharing().handling {
            InterruptHandling::ProcessAware => halves.saturating_add(changes),
            InterruptHandling::Klmirqd { .. } if self.sharing().lends_priorities_twice() => {
                halves.saturating_add(changes)
            }
            InterruptHandling::PreemptRt(_) => halves.saturating_add(self.token_requests(length).saturating_mul(2)),
            InterruptHandling::Linux | InterruptHandling::Klmirqd { .. } => {
                self.token_requests(length).saturating_mul(2)
            }
        };
        let latency = self.context.machine.costs.ipi_latency.0;
        count.saturating_mul(pair.saturating_mul(2).saturating_add(latency))
    }

    /// Whether standard Linux runs every bottom half right after its interrupt, if handlers keep a CPU busy for up to
    /// `lag`.
    ///
    /// # Errors
    /// Why some may be left to the daemon.
    pub fn leave_none_to_the_daemon(&self, lag: u64) -> Result<(), String> {
        if self.sharing().handling != InterruptHandling::Linux {
            return Ok(());
        }
        let users = || self.context.members().filter(|task| task.uses_gpu());
        let operations = || users().flat_map(|task| &task.uses.demand.operations);
        let arriving = self.count(lag);
        let pending = if operations().any(|operation| operation.is_asynchronous || operation.interrupts > 1) {
            arriving
        } else if self.sharing().holds_gpus() {
            let tokens = self.sharing().tokens().map_or(1, |rules| u64::from(rules.tokens));
            let held = tokens.saturating_mul(self.sharing().pools[self.context.index].len() as u64);
            arriving.min(held).min(users().count() as u64)
        } else {
            arriving.min(users().count() as u64)
        };
        if pending <= AFTER_INTERRUPT {
            return Ok(());
        }
        Err(format!(
            "{pending} bottom halves may be pending on a CPU; Linux runs {AFTER_INTERRUPT} after an interrupt and leaves \
             the rest to a daemon without real-time priority, so let jobs hold GPUs (\"k_fmlp\") and wait for their \
             operations, or take another interrupt handling"
        ))
    }
}
