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
    /// How long a job of each may be pending.
    pub pending: u64,
    /// How many there are.
    pub count: u64,
}

/// All members, by class.
pub(super) struct Classes<'a> {
    pub all: Vec<Class<'a>>,
}

impl<'a> Classes<'a> {
    /// `pending`: how long a job of each member may be pending.
    pub fn new(context: &Context<'a>, pending: &[u64]) -> Self {
        let mut found = BTreeMap::new();
        let mut classes = Classes { all: Vec::new() };
        for (task, &pending) in context.members().zip(pending) {
            let timing = (task.period, task.deadline, task.jitter, task.early, pending);
            let events = (task.suspensions, task.interrupts, task.lock_requests, task.node);
            let class = *found.entry((timing, events)).or_insert(classes.all.len());
            if class == classes.all.len() {
                classes.all.push(Class { task, pending, count: 0 });
            }
            classes.all[class].count += 1;
        }
        classes
    }

    /// The sum of `of` over all members; of one class it is the same for each.
    pub fn sum(&self, of: impl Fn(&Class<'a>) -> u64) -> u64 {
        self.all.iter().fold(0, |sum: u64, class| sum.saturating_add(class.count.saturating_mul(of(class))))
    }
}
