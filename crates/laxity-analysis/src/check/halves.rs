//! The safe accounting of GPU interrupts: by how much top and bottom halves of any owner may delay a job.
//!
//! | Handling | A bottom half delays | and costs others |
//! | --- | --- | --- |
//! | standard Linux | the job that the interrupted CPU would run: any job | nothing more |
//! | process-aware | the job whose stack it takes, even of a more urgent job that was linked meanwhile: any job | decisions and checks made for it |
//! | PREEMPT_RT, high | any job, from a thread above all of them | switches to the thread and back |
//! | klmirqd | its owner: the thread runs in the owner's place, never beside it, at its effective priority | nothing |
//! | klmirqd, several tokens a GPU | its owner, with those of other tokens' holders before it; and for as long as a holder executes with the priority that the thread has, any job below | decisions made for it, and where priorities change |
//! | klmirqd, with callbacks | any job: two threads may have one owner's priority | the same |
//!
//! A top half, and handing on the bottom half, may hit any CPU of the cluster and so delay any job. At each instant a
//! job, or the holder that it waits for, is behind one handler at most, so that each interrupt in the window counts once, those
//! of critical sections it waits for included.
//!
//! Under Linux ten bottom halves run after an interrupt, the rest in a daemon without real-time priority, so no more
//! than ten may be pending on a CPU. Operations that jobs wait for, with one interrupt each, leave no more than one
//! pending for each GPU that is held, or for each task where the driver arbitrates. Else it is what arrives while
//! handlers keep a CPU busy.

use laxity_model::{InterruptHandling, PriorityRule};

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::counts::Counted;
use super::interrupts::jobs;
use super::sharing::{Place, Sharing};
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
        self.context.members().zip(self.pending).fold(0, |sum: u64, (task, &pending)| match task.interrupts {
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
        let bottom =
            if self.sharing().place_of_halves() == Place::AnyJob { self.sharing().after_top_half() } else { 0 };
        self.top().saturating_add(bottom)
    }

    /// What an interrupt of a job keeps from that job alone.
    pub fn own(&self) -> u64 {
        match self.sharing().place_of_halves() {
            Place::AnyJob => 0,
            Place::Owner | Place::OwnerOrHolder { .. } => {
                self.sharing().after_top_half().saturating_mul(self.in_a_row())
            }
        }
    }

    /// How many bottom halves a thread executes until it is done with the last one that it was given: its own, and where
    /// others hold tokens of the GPU, those of one operation each.
    pub fn in_a_row(&self) -> u64 {
        let Place::OwnerOrHolder { tokens } = self.sharing().place_of_halves() else { return 1 };
        let operations = self.context.members().flat_map(|task| &task.uses.demand.operations);
        let most = operations.map(|operation| u64::from(operation.interrupts)).max().unwrap_or(0);
        (tokens - 1).saturating_mul(most).saturating_add(1)
    }

    /// For how long in a window threads may have the priority of a job that executes meanwhile, so that both are above a
    /// job of `member` although only one of them stands for a job of higher base priority. That takes a bottom half of
    /// a job of lower priority, and a job that executes while it holds a token: no longer than either lasts. `dispatch`:
    /// what giving a CPU to a job that holds something takes.
    pub fn lent(&self, member: usize, length: u64, dispatch: u64) -> u64 {
        let Place::OwnerOrHolder { .. } = self.sharing().place_of_halves() else { return 0 };
        if !self.may_be_passed(member) {
            return 0;
        }
        let others = || (0..self.pending.len()).filter(|&other| other != member);
        let sum = |of: &dyn Fn(usize) -> u64| {
            others().fold(0, |sum: u64, other| {
                let jobs = jobs(self.task(other), self.pending[other], length);
                sum.saturating_add(jobs.saturating_mul(of(other)))
            })
        };
        let is_edf = self.context.machine.rule == PriorityRule::Edf;
        let halves = |other: usize| match is_edf || self.precedes(member, other) {
            true => self.task(other).interrupts.saturating_mul(self.sharing().bottom_half),
            false => 0,
        };
        let executes = |other: usize| {
            let sections = self.task(other).uses.requests.iter().filter(|request| request.lock == Lock::Gpu);
            sections.fold(0, |sum: u64, section| {
                let demand = &section.demand;
                let dispatches = demand.suspensions.saturating_add(demand.interrupts).saturating_add(1);
                sum.saturating_add(demand.wcet).saturating_add(dispatches.saturating_mul(dispatch))
            })
        };
        let ticks = length.div_ceil(self.context.machine.tick).saturating_mul(self.context.machine.costs.tick.0);
        sum(&halves).min(sum(&executes).saturating_add(ticks))
    }

    /// Whether a job that lends its priority to holders of tokens may be more urgent than one of `member`: any under EDF,
    /// else a user of GPUs, or of what is nested with them, above it.
    fn may_be_passed(&self, member: usize) -> bool {
        let lends = |task: &AnalysedTask| !task.uses.requests.is_empty() || task.uses_gpu();
        let is_edf = self.context.machine.rule == PriorityRule::Edf;
        (0..self.pending.len())
            .any(|other| other != member && lends(self.task(other)) && (is_edf || self.precedes(other, member)))
    }

    fn task(&self, member: usize) -> &'a AnalysedTask {
        &self.context.analysed[self.context.cluster.members[member]]
    }

    /// Whether the fixed priority of one member is higher than that of the other.
    fn precedes(&self, one: usize, other: usize) -> bool {
        let members = &self.context.cluster.members;
        self.context.machine.rank(members[one], self.context.analysed)
            < self.context.machine.rank(members[other], self.context.analysed)
    }

    /// What the scheduler does for bottom halves of others in a window, where priorities changed for another reason than
    /// that a job began to wait or a holder unlocked: it looks for bottom halves, a thread's priority follows, a request
    /// for a token displaces another. `pair`: a decision with its check, a switch.
    pub fn scheduling(&self, counted: Counted, pair: u64) -> u64 {
        let changes = counted.requests.saturating_mul(2);
        let halves = counted.interrupts.saturating_mul(self.sharing().schedulings_of_a_half());
        let count = match self.sharing().handling {
            InterruptHandling::ProcessAware => halves.saturating_add(changes),
            InterruptHandling::Klmirqd { .. } if self.sharing().lends_priorities_twice() => {
                halves.saturating_add(changes)
            }
            // Under Linux those of the run-time library's threads.
            InterruptHandling::PreemptRt(_) | InterruptHandling::Linux => {
                halves.saturating_add(counted.token_requests.saturating_mul(2))
            }
            InterruptHandling::Klmirqd { .. } => counted.token_requests.saturating_mul(2),
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
        let anonymous = self.sharing().devices.iter();
        let anonymous =
            anonymous.fold(0u64, |sum, device| sum.saturating_add(device.on_stacks(self.context.index, lag)));
        if self.sharing().handling != InterruptHandling::Linux && anonymous == 0 {
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
        let owned = if self.sharing().handling == InterruptHandling::Linux { pending } else { 0 };
        let pending = owned.saturating_add(anonymous);
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
