//! The affinity predictor: which replica a request joins. Times are in nanoseconds; a request of length l, of a task
//! without samples, is predicted to hold for l, and for l plus what a migration costs on another GPU than last time.

use crate::cluster::{Cluster, Sizes};

fn predicting(gpus: u16, migration: u64) -> Cluster {
    Sizes::balanced(6, gpus, 1).predicting(9, Some(migration))
}

/// The original never updates its minimum here, and would choose the last queue that beats the first: r2.
///
/// ```text
/// r0   0 (30)     r1   1 (10)     r2   2 (20)     3 joins r1
/// ```
#[test]
fn a_task_without_affinity_joins_the_queue_that_is_over_first() {
    let mut cluster = predicting(3, 5);
    assert_eq!(cluster.request_with(0, None, 30), [(0, 0)]);
    assert_eq!(cluster.request_with(1, None, 10), [(1, 1)]);
    assert_eq!(cluster.request_with(2, None, 20), [(2, 2)]);
    assert_eq!(cluster.request_with(3, None, 1), []);
    assert_eq!(cluster.gifts(), [(3, 1)]);
}

/// ```text
/// time 25     r0   0 (5 of 30 left)     r1   1 (10)     r2   2 (20)     3 joins r0
/// ```
#[test]
fn a_holder_counts_for_what_is_left_of_its_hold() {
    let mut cluster = predicting(3, 5);
    cluster.request_with(0, None, 30);
    cluster.now = 25;
    cluster.request_with(1, None, 10);
    cluster.request_with(2, None, 20);
    cluster.request_with(3, None, 1);
    assert_eq!(cluster.gifts(), [(3, 0)]);
}

/// Task 1 held r0 for 10; now 3 holds it for `wait`, and r1 is idle. At home it is done after `wait + 10`, away after
/// `10 + 50`.
fn joins_own_gpu(wait: u64) -> bool {
    let mut cluster = predicting(2, 50);
    assert_eq!(cluster.request_with(1, None, 99), [(1, 0)]);
    cluster.now = 10;
    cluster.unlock(1);
    assert_eq!(cluster.request_with(3, Some(0), wait), [(3, 0)]);
    cluster.request_with(1, None, 99).is_empty()
}

#[test]
fn a_task_waits_for_its_own_gpu_unless_moving_its_state_is_faster() {
    assert!(joins_own_gpu(49));
    assert!(joins_own_gpu(50), "a tie goes to its own GPU");
    assert!(!joins_own_gpu(51));
}

/// As above, but it turns out that a migration costs nothing: after it was made to move once, it moves unless its own
/// GPU is idle.
#[test]
fn what_a_migration_costs_is_learnt() {
    let mut cluster = predicting(2, 50);
    let hold = |cluster: &mut Cluster, gpu| {
        cluster.request_with(1, Some(gpu), 99);
        cluster.now += 10;
        cluster.unlock(1);
    };
    hold(&mut cluster, 0);
    hold(&mut cluster, 1);
    assert_eq!(cluster.request_with(3, Some(1), 1), [(3, 1)]);
    assert_eq!(cluster.request_with(1, None, 99), [(1, 0)]);
}

/// Task 1 was on GPU 0, none on GPU 1; 0 has been nowhere.
#[test]
fn a_tie_goes_to_the_gpu_that_was_the_last_of_fewest_tasks() {
    let mut cluster = predicting(2, 50);
    assert_eq!(cluster.request(1), [(1, 0)]);
    cluster.unlock(1);
    assert_eq!(cluster.request(0), [(0, 1)]);
}

/// GPU 0 has tokens 0 and 2, GPU 1 has 1 and 3. One task was on each.
///
/// ```text
/// r0         r1         r2   2     r3         4 is granted r1: GPU 1 has no user
/// ```
#[test]
fn a_further_tie_goes_to_the_gpu_with_fewest_users() {
    let mut cluster = Sizes::balanced(4, 2, 2).predicting(9, Some(50));
    for (task, gpu) in [(1, 0), (2, 0), (3, 1)] {
        cluster.request_with(task, Some(gpu), 1);
    }
    assert_eq!((cluster.holder(0), cluster.holder(1), cluster.holder(2)), (Some(1), Some(3), Some(2)));
    cluster.unlock(1);
    cluster.unlock(3);
    assert_eq!(cluster.request(4), [(4, 1)]);
}
