//! Jobs that wait for each other.

use laxity_model::TaskId;

/// Tasks that wait in a circle, each for a lock that the next holds; `None` if no task waits for ever.
///
/// `blockers[t]` are the holders of what task `t` waits for, any one of which ends its wait by unlocking; none if it
/// does not wait. So a task is stuck if it waits and every task it waits for is stuck. With mutexes that is the usual
/// cycle of the waits-for graph; with several replicas a cycle alone does not suffice, as a holder outside it may
/// unlock.
///
/// Of several circles it is the one reached from the smallest stuck task by always going to its first blocker.
pub(super) fn circle(blockers: &[Vec<TaskId>]) -> Option<Vec<TaskId>> {
    let stuck = stuck(blockers);
    let mut path = vec![TaskId(stuck.iter().position(|&stuck| stuck)? as u32)];
    loop {
        let last = path[path.len() - 1];
        let next = blockers[last.index()][0];
        if let Some(start) = path.iter().position(|&task| task == next) {
            return Some(path.split_off(start));
        }
        path.push(next);
    }
}

/// The largest set of tasks that wait only for tasks of the set: the tasks that wait, less those that wait for one outside.
fn stuck(blockers: &[Vec<TaskId>]) -> Vec<bool> {
    let mut stuck: Vec<bool> = blockers.iter().map(|blockers| !blockers.is_empty()).collect();
    loop {
        let leaves = |&task: &usize| stuck[task] && blockers[task].iter().any(|blocker| !stuck[blocker.index()]);
        let Some(free) = (0..stuck.len()).find(leaves) else { return stuck };
        stuck[free] = false;
    }
}
