//! Members of a cluster that delay other jobs alike, counted together: what many tasks with few periods cost others is
//! found in time that grows with the number of periods.

use std::collections::BTreeMap;

use super::analysed_task::AnalysedTask;
use super::context::Context;

/// Members with the same timing and the same number of events in a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class<'a> {
    /// One of them.
    pub task: &'a AnalysedTask,
    /// The tardiness bound of each.
    pub tardiness: u64,
    /// How many there are.
    pub count: u64,
}

/// All members, by class.
pub(super) struct Classes<'a> {
    pub all: Vec<Class<'a>>,
    /// Of each member.
    pub of: Vec<usize>,
}

impl<'a> Classes<'a> {
    /// `tardiness`: of the members; empty: none is tardy.
    pub fn new(context: &Context<'a>, tardiness: &[u64]) -> Self {
        let mut found = BTreeMap::new();
        let mut classes = Classes { all: Vec::new(), of: Vec::with_capacity(context.members().len()) };
        for (member, task) in context.members().enumerate() {
            let tardiness = tardiness.get(member).copied().unwrap_or(0);
            let timing = (task.period, task.deadline, task.jitter, task.is_early, tardiness);
            let events = (task.suspensions, task.interrupts, task.uses.requests.len());
            let class = *found.entry((timing, events)).or_insert(classes.all.len());
            if class == classes.all.len() {
                classes.all.push(Class { task, tardiness, count: 0 });
            }
            classes.all[class].count += 1;
            classes.of.push(class);
        }
        classes
    }

    /// The sum of `of` over all members; of one class it is the same for each.
    pub fn sum(&self, of: impl Fn(&Class<'a>) -> u64) -> u64 {
        self.all.iter().fold(0, |sum: u64, class| sum.saturating_add(class.count.saturating_mul(of(class))))
    }
}
