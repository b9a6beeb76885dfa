//! How often a job may be displaced by a more urgent one: once by each that becomes ready while it is pending, and by those
//! from before whose interrupt or boundary was late.
//!
//! Under EDF a job of j is more urgent only if it is due no later: it arrives at most `D - D_j` after this one, which may itself
//! have begun before it arrived. Where
//! priorities change, jobs that are given a CPU count, and requests for locks and their ends, of all jobs that are pending
//! meanwhile.

use laxity_model::PriorityRule;

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::staircases::{Staircase, Staircases};

/// The preemptions of a cluster's members.
pub(super) struct Preemptions<'a> {
    context: &'a Context<'a>,
    /// How long a job of each member may be pending.
    pending: &'a [u64],
    /// How long what has come before a job may still displace it.
    reach: u64,
    /// The windows of the members.
    windows: &'a [u64],
    /// Whether members share something, so that priorities change.
    shares: bool,
    sums: Staircases,
}

impl<'a> Preemptions<'a> {
    /// Of members of which no other is more urgent yet.
    pub fn new(context: &'a Context<'a>, pending: &'a [u64], windows: &'a [u64], reach: u64) -> Self {
        let (shares, sums) = (context.shares(), Staircases::new(Vec::new()));
        let mut preemptions = Preemptions { context, pending, reach, windows, shares, sums };
        let members = 0..pending.len();
        preemptions.sums = Staircases::new(members.clone().map(|member| preemptions.place(member)).collect());
        // Where priorities change, and under EDF, any may be more urgent.
        if shares || preemptions.is_edf() {
            members.for_each(|member| preemptions.add(member));
        }
        preemptions
    }

    /// How often a job of `member` may be displaced.
    pub fn of(&self, member: usize) -> u64 {
        let place = self.place(member);
        match !self.shares && self.is_edf() {
            true => self.sums.without(&self.stairs(member), place),
            false => self.sums.at(place),
        }
    }

    /// Members that follow under fixed priorities are less urgent than `member`.
    pub fn follow(&mut self, member: usize) {
        if !self.shares && !self.is_edf() {
            self.add(member);
        }
    }

    fn add(&mut self, member: usize) {
        self.stairs(member).iter().for_each(|stair| self.sums.add(stair));
    }

    fn is_edf(&self) -> bool {
        self.context.machine.rule == PriorityRule::Edf
    }

    fn task(&self, member: usize) -> &'a AnalysedTask {
        &self.context.analysed[self.context.cluster.members[member]]
    }

    /// What the number of preemptions of a job of `member` depends on.
    fn place(&self, member: usize) -> u64 {
        match (self.shares, self.is_edf()) {
            (true, _) => self.windows[member].saturating_add(self.reach),
            (false, true) => self.task(member).deadline.saturating_add(self.task(member).ahead()),
            (false, false) => self.pending[member].saturating_add(self.task(member).ahead()),
        }
    }

    /// How often jobs of `member` displace others.
    fn stairs(&self, member: usize) -> [Staircase; 2] {
        let task = self.task(member);
        if self.shares {
            let none = Staircase { weight: 0, offset: 0, period: task.period };
            return [task.jobs_by(self.pending[member], self.changes(task)), none];
        }
        let tardiness = self.pending[member].saturating_sub(task.deadline);
        let held = task.node.map_or(0, |tokens| tokens.held);
        // Under EDF a job that is early is due as if it were not.
        let early = if self.is_edf() { 0 } else { task.ahead() };
        let late = [task.jitter, tardiness, held, early].into_iter().fold(self.reach, u64::saturating_add);
        let after = |offset: i128| i128::from(late) + offset + 1;
        let deadline = i128::from(task.deadline);
        let arrived = after(if self.is_edf() { -deadline } else { 0 });
        [
            Staircase { weight: 1, offset: arrived, period: task.period },
            Staircase { weight: task.suspensions, offset: after(deadline), period: task.period },
        ]
    }

    /// How often a job of `task` changes the order of priorities.
    fn changes(&self, task: &AnalysedTask) -> u64 {
        let each = self.context.machine.sharing.schedulings_of_a_half().max(1);
        let requests = task.lock_requests.saturating_mul(2);
        task.wakeups().saturating_add(task.interrupts.saturating_mul(each)).saturating_add(requests)
    }
}
