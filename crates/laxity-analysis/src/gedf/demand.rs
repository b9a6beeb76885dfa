//! Demand of a task in an interval, with and without a job carried in.

use crate::AnalysisTask;

/// Demand bound: execution of the jobs of `task` that are both released and due in an interval of `length` ticks.
///
/// `dbf(t) = (floor((t - D) / T) + 1) * C` for `t >= D`, else 0. Source: Baruah, Mok & Rosier 1990. For any deadline.
pub fn demand_bound(task: &AnalysisTask, length: u64) -> u128 {
    if length < task.deadline {
        return 0;
    }
    u128::from((length - task.deadline) / task.period + 1) * u128::from(task.wcet)
}

/// Demand with carry-in: execution of `task` in an interval of `length` ticks at whose end one of its deadlines lies,
/// if no job was late before.
///
/// `floor(t / T) * C + min(C, t mod T)`, at least [`demand_bound`] where D <= T. Source: Baruah, RTSS 2007.
pub fn carry_in_demand(task: &AnalysisTask, length: u64) -> u128 {
    let (jobs, rest) = (length / task.period, length % task.period);
    u128::from(jobs) * u128::from(task.wcet) + u128::from(rest.min(task.wcet))
}
