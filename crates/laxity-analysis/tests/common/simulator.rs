//! The simplest global scheduler there is: a tick at a time, everything recomputed. An independent witness.

use laxity_analysis::TaskSet;
use laxity_model::rng::SplitMix64;

/// What ranks the pending jobs; ties go to the smaller key `tie[task]`.
#[derive(Clone, Copy, Debug)]
pub enum Rank {
    EarliestDeadline,
    TaskOrder,
}

/// Arrival times of each task, ascending.
pub type Arrivals = Vec<Vec<u64>>;

/// The largest response time of each task over all jobs completed by `horizon`; a job still pending then counts with
/// the time it has been pending.
pub fn response_times(set: &TaskSet, arrivals: &Arrivals, rank: Rank, reverse_ties: bool, horizon: u64) -> Vec<u64> {
    let tasks = set.tasks();
    let n = tasks.len();
    // Jobs of a task are sequential: per task the index of the first incomplete job and what it still needs.
    let mut current = vec![0usize; n];
    let mut left: Vec<u64> = tasks.iter().map(|task| task.wcet).collect();
    let mut worst = vec![0u64; n];
    let mut ready: Vec<(u64, usize, usize)> = Vec::with_capacity(n);
    for now in 0..horizon {
        ready.clear();
        for i in 0..n {
            let Some(&arrival) = arrivals[i].get(current[i]).filter(|&&arrival| arrival <= now) else { continue };
            let key = match rank {
                Rank::EarliestDeadline => arrival + tasks[i].deadline,
                Rank::TaskOrder => 0,
            };
            ready.push((key, if reverse_ties { n - i } else { i }, i));
        }
        ready.sort_unstable();
        for &(_, _, i) in ready.iter().take(set.cpus() as usize) {
            left[i] -= 1;
            if left[i] == 0 {
                worst[i] = worst[i].max(now + 1 - arrivals[i][current[i]]);
                current[i] += 1;
                left[i] = tasks[i].wcet;
            }
        }
    }
    for i in 0..n {
        if let Some(&arrival) = arrivals[i].get(current[i]) {
            worst[i] = worst[i].max(horizon.saturating_sub(arrival));
        }
    }
    worst
}

/// All tasks arrive at 0, then periodically.
pub fn synchronous(set: &TaskSet, horizon: u64) -> Arrivals {
    set.tasks().iter().map(|task| (0..horizon).step_by(task.period as usize).collect()).collect()
}

/// Random offsets; with `gaps`, random extra separation.
pub fn random(set: &TaskSet, horizon: u64, gaps: bool, rng: &mut SplitMix64) -> Arrivals {
    let mut arrivals = Arrivals::new();
    for task in set.tasks() {
        let mut now = rng.below(task.period);
        let mut times = Vec::new();
        while now < horizon {
            times.push(now);
            now += task.period + if gaps && rng.below(3) == 0 { rng.below(task.period) } else { 0 };
        }
        arrivals.push(times);
    }
    arrivals
}

/// A deadline of every task lies at one instant, with as many periodic jobs before it as fit.
pub fn aligned_deadlines(set: &TaskSet, horizon: u64) -> Arrivals {
    let instant = horizon / 2 + set.tasks().iter().map(|task| task.deadline).max().unwrap_or(0);
    let first = |last: u64, period: u64| last % period;
    let times = |task: &laxity_analysis::AnalysisTask| {
        let start = first(instant - task.deadline, task.period);
        (start..horizon).step_by(task.period as usize).collect()
    };
    set.tasks().iter().map(times).collect()
}

/// The worst response times over several arrival patterns, and both tie orders where there are ties.
pub fn worst_seen(set: &TaskSet, rank: Rank, rng: &mut SplitMix64) -> Vec<u64> {
    let longest = set.tasks().iter().map(|task| task.period.max(task.deadline)).max().unwrap_or(1);
    let horizon = 6 * longest;
    let patterns = [
        synchronous(set, horizon),
        random(set, horizon, false, rng),
        random(set, horizon, true, rng),
        aligned_deadlines(set, horizon),
    ];
    let mut worst = vec![0; set.tasks().len()];
    for pattern in &patterns {
        // A given order has no ties; reversing them would reverse the order.
        let tie_orders: &[bool] = if matches!(rank, Rank::EarliestDeadline) { &[false, true] } else { &[false] };
        for &reverse in tie_orders {
            for (worst, seen) in worst.iter_mut().zip(response_times(set, pattern, rank, reverse, horizon)) {
                *worst = (*worst).max(seen);
            }
        }
    }
    worst
}
