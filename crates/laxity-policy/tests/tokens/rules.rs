//! The rules, one by one. Tasks are numbered by priority, 0 the highest. Drawings show each replica's queue, its holder
//! before the bar, then the tasks outside; `a > b` is a donor and its donee.

use crate::cluster::{Cluster, Sizes};

fn sizes(cpus: u16, gpus: u16, tokens: u16, fifo_length: u16, fifo_requests: u16) -> Sizes {
    Sizes { cpus, gpus, tokens, fifo_length, fifo_requests }
}

/// One replica, m = f = 2, and 5 and 6 in its queue.
fn two_low() -> Cluster {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    assert_eq!((cluster.request(5), cluster.request(6)), (vec![(5, 0)], vec![]));
    cluster
}

/// ```text
/// r0   1 | 3     r1   2 | 4     2 unlocks: 4 holds r1
/// ```
#[test]
fn requests_join_the_shortest_queue_and_are_granted_in_order() {
    let mut cluster = Sizes::balanced(6, 1, 2).cluster(9);
    assert_eq!((cluster.request(1), cluster.request(2)), (vec![(1, 0)], vec![(2, 1)]));
    assert_eq!((cluster.request(3), cluster.request(4)), (vec![], vec![]));
    assert_eq!(cluster.gifts(), [(3, 1), (4, 2)]);
    assert_eq!(cluster.unlock(2), [(4, 1)]);
    assert_eq!((cluster.holder(0), cluster.holder(1), cluster.gifts()), (Some(1), Some(4), vec![(3, 1)]));
}

/// ```text
/// r0   5 | 2     2's priority is that of 5, until 5 unlocks
/// ```
#[test]
fn a_holder_inherits_from_the_waiters_of_its_queue_until_it_unlocks() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request(5);
    cluster.request(2);
    assert_eq!(cluster.effective(5), Some(2));
    assert_eq!(cluster.unlock(5), [(2, 0)]);
    assert_eq!((cluster.effective(5), cluster.effective(2)), (Some(5), Some(2)));
}

/// ```text
/// r0   0 | 1     7     7 gives its priority to none; 0 unlocks:     r0   1 | 7
/// ```
#[test]
fn a_request_that_is_not_among_the_m_highest_waits_in_the_priority_queue() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request(0);
    cluster.request(1);
    assert_eq!((cluster.request(7), cluster.gifts()), (vec![], vec![(1, 0)]));
    assert_eq!(cluster.unlock(0), [(1, 0)]);
    assert_eq!(cluster.gifts(), [(7, 1)]);
}

/// ```text
/// r0   5 | 6     1 > 6     so 5 runs at the priority of 1
/// ```
#[test]
fn a_high_request_donates_to_the_lowest_and_its_priority_reaches_the_holder() {
    let mut cluster = two_low();
    assert_eq!((cluster.request(1), cluster.gifts()), (vec![], vec![(1, 6), (6, 5)]));
    assert_eq!((cluster.effective(5), cluster.effective(6)), (Some(1), Some(1)));
}

/// 6 has 1's priority, yet is not among the two highest by its base priority: 2 is, and donates to 5.
///
/// ```text
/// r0   5 | 6     1 > 6   2 > 5
/// ```
#[test]
fn the_m_highest_are_judged_by_base_priority() {
    let mut cluster = two_low();
    cluster.request(1);
    cluster.request(2);
    assert_eq!(cluster.gifts(), [(1, 6), (2, 5), (6, 5)]);
}

/// ```text
/// r0   5 | 6     1 > 6   2 > 5     then 0:     r0   5 | 6     1 > 6   0 > 5   2
/// ```
#[test]
fn a_donor_that_is_no_longer_among_the_m_highest_returns_to_the_priority_queue() {
    let mut cluster = two_low();
    cluster.request_all([1, 2, 0]);
    assert_eq!(cluster.gifts(), [(0, 5), (1, 6), (6, 5)]);
}

/// m = 4, but there is place for one only.
///
/// ```text
/// r0   6 |     3 > 6     then 1:     r0   6 |     1 > 6   3     then 2:     r0   6 |     1 > 6   2 3
/// ```
#[test]
fn where_all_requests_have_donors_the_previous_one_returns_to_the_priority_queue() {
    let mut cluster = sizes(4, 1, 1, 1, 1).cluster(9);
    cluster.request_all([6, 3]);
    assert_eq!(cluster.gifts(), [(3, 6)]);
    cluster.request(1);
    assert_eq!(cluster.gifts(), [(1, 6)]);
    cluster.request(2);
    assert_eq!(cluster.gifts(), [(1, 6)]);
    assert_eq!(cluster.unlock(6), [(1, 0)]);
    assert_eq!(cluster.gifts(), [], "a request donates to no higher one");
    assert_eq!(cluster.unlock(1), [(2, 0)]);
}

/// ```text
/// r0   5 | 6     1 > 6   2 > 5     5 unlocks: 2 has the place, though 1 is higher     r0   6 | 2     1 > 6
/// ```
#[test]
fn a_place_that_becomes_free_is_that_of_the_releasers_donor() {
    let mut cluster = two_low();
    cluster.request_all([1, 2]);
    assert_eq!(cluster.unlock(5), [(6, 0)]);
    assert_eq!(cluster.gifts(), [(1, 6), (2, 6)]);
    assert_eq!(cluster.unlock(6), [(2, 0)]);
    assert_eq!(cluster.gifts(), [(1, 2)], "in the queue of 2, not its donor: no other is left");
    assert_eq!((cluster.unlock(2), cluster.unlock(1)), (vec![(1, 0)], vec![]));
}

/// ```text
/// r0   0 | 8     1 > 8   4     0 unlocks, which has no donor:     r0   8 | 1     4 > 8
/// ```
#[test]
fn without_a_donor_of_its_own_the_highest_donor_has_the_place() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request_all([0, 8, 1, 4]);
    assert_eq!(cluster.gifts(), [(1, 8), (8, 0)]);
    assert_eq!(cluster.unlock(0), [(8, 0)]);
    // 4 is now among the two highest.
    assert_eq!(cluster.gifts(), [(1, 8), (4, 8)]);
}

/// ```text
/// r0   0 | 1     6 4 5     0 unlocks:     r0   1 | 4     5 6
/// ```
#[test]
fn without_donors_the_highest_of_the_priority_queue_has_the_place() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request_all([0, 1, 6, 4, 5]);
    cluster.unlock(0);
    assert_eq!((cluster.unlock(1), cluster.unlock(4)), (vec![(4, 0)], vec![(5, 0)]));
}

/// ```text
/// r0   0 | 7     5     0 unlocks, 5 joins; then 2 and 3:     r0   7 | 5     2 > 7   3 > 5
/// ```
#[test]
fn no_inheritance_is_left_after_an_unlock() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request_all([0, 7, 5, 2, 3]);
    cluster.unlock(0);
    assert_eq!((cluster.effective(0), cluster.effective(7)), (Some(0), Some(2)));
}

/// ```text
/// r0   3 | 6 8     r1   4 | 5 7     4, 5 and 7 unlock:     r0   3 | 8     r1   6
/// ```
#[test]
fn an_idle_replica_steals_the_highest_waiter() {
    let mut cluster = Sizes::balanced(6, 1, 2).cluster(9);
    cluster.request_all([3, 4, 8, 5, 6, 7]);
    assert_eq!((cluster.unlock(4), cluster.unlock(5)), (vec![(5, 1)], vec![(7, 1)]));
    assert_eq!(cluster.unlock(7), [(6, 1)], "6 is higher than 8, which is before it in the queue of r0");
    assert_eq!(cluster.gifts(), [(8, 3)]);
    assert_eq!(cluster.unlock(6), [(8, 1)]);
    assert_eq!(cluster.unlock(8), [], "a holder is not stolen");
}

/// ```text
/// f = 3, but two requests in all     r0   0     r1   1     2     0 unlocks:     r0   2     r1   1
/// ```
#[test]
fn no_more_requests_than_may_be_are_in_all_queues_together() {
    let mut cluster = sizes(6, 1, 2, 3, 2).cluster(9);
    cluster.request_all([0, 1, 2]);
    assert_eq!(cluster.gifts(), [], "2 is behind none, and none is lower");
    assert_eq!(cluster.unlock(0), [(2, 0)]);
}

/// Two GPUs of two tokens: replicas 0 and 2 are GPU 0's. GPU 0's own requests fill its queues; 4 has no use for GPU 1.
///
/// ```text
/// r0   0     r1         r2   1     r3         4     0 unlocks:     r0   4
/// ```
#[test]
fn a_request_for_one_gpu_gets_its_tokens_only() {
    let mut cluster = Sizes::balanced(4, 2, 2).cluster(9);
    let only = |cluster: &mut Cluster, task, gpu| cluster.request_with(task, Some(gpu), 1);
    assert_eq!((only(&mut cluster, 0, 0), only(&mut cluster, 1, 0)), (vec![(0, 0)], vec![(1, 2)]));
    assert_eq!(only(&mut cluster, 4, 0), []);
    assert_eq!(cluster.request(3), [(3, 1)]);
    assert_eq!(cluster.unlock(3), [], "r1 is nothing to 4");
    assert_eq!(cluster.unlock(0), [(4, 0)]);
}

/// Its donee is in a queue of that GPU, although one of the other is lower.
///
/// ```text
/// r0   5     r1   8     2 > 5
/// ```
#[test]
fn a_request_for_one_gpu_donates_within_its_queues() {
    let mut cluster = Sizes::balanced(2, 2, 1).cluster(9);
    cluster.request_all([5, 8]);
    cluster.request_with(2, Some(0), 1);
    assert_eq!(cluster.gifts(), [(2, 5)]);
    assert_eq!((cluster.unlock(8), cluster.unlock(5)), (vec![], vec![(2, 0)]));
}

/// A stolen request leaves a place for a task that may not use the idle replica, and its donor looks for another donee.
///
/// ```text
/// 0 and 1 want GPU 1     r0   3     r1   4 | 6     0 > 4   1 > 6     3 unlocks:     r0   6     r1   4 | 0     1 > 4
/// ```
#[test]
fn a_stolen_request_leaves_its_place_and_its_donor_behind() {
    let mut cluster = Sizes::balanced(4, 2, 1).cluster(9);
    cluster.request_all([5, 4, 3, 6]);
    assert_eq!(cluster.request_with(1, Some(1), 1), []);
    assert_eq!(cluster.request_with(0, Some(1), 1), []);
    assert_eq!(cluster.unlock(5), [(3, 0)]);
    assert_eq!(cluster.gifts(), [(0, 4), (1, 6), (6, 4)]);
    assert_eq!(cluster.unlock(3), [(6, 0)]);
    assert_eq!(cluster.gifts(), [(0, 4), (1, 4)]);
    assert_eq!(cluster.unlock(6), [], "1 has no use for r0, and 0 either");
    assert_eq!((cluster.unlock(4), cluster.unlock(0)), (vec![(0, 1)], vec![(1, 1)]));
}

/// k-FMLP as a special case: one token, queues without end, none outside.
#[test]
fn with_queues_without_end_it_is_the_k_fmlp() {
    let mut cluster = sizes(2, 2, 1, u16::MAX, u16::MAX).cluster(9);
    for task in (0..9).rev() {
        cluster.request(task);
    }
    assert_eq!(cluster.gifts(), [(0, 8), (1, 7), (2, 8), (3, 7), (4, 8), (5, 7), (6, 8)]);
    assert_eq!((cluster.unlock(8), cluster.unlock(6)), (vec![(6, 0)], vec![(4, 0)]));
}

/// ```text
/// r0   5 | 6     1 > 6     6 withdraws: its donor has the place     r0   5 | 1
/// ```
#[test]
fn a_withdrawn_request_leaves_its_place_to_its_donor() {
    let mut cluster = two_low();
    cluster.request(1);
    assert_eq!((cluster.withdraw(6), cluster.gifts()), (vec![], vec![(1, 5)]));
    assert_eq!(cluster.unlock(5), [(1, 0)]);
}

/// ```text
/// r0   0 | 8     1 > 8   4     1 withdraws:     r0   0 | 8     4 > 8
/// ```
#[test]
fn a_donor_that_withdraws_makes_room_for_another() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request_all([0, 8, 1, 4]);
    assert_eq!((cluster.withdraw(1), cluster.gifts()), (vec![], vec![(4, 8), (8, 0)]));
    assert_eq!((cluster.withdraw(4), cluster.gifts()), (vec![], vec![(8, 0)]));
}

/// ```text
/// r0   5 | 6     1 > 5   3 > 6     5 overruns:     r0   (5) 6 1     3 > 6     5 unlocks:     r0   6 | 1     3 > 6
/// ```
#[test]
fn a_holder_that_overruns_loses_its_place_but_holds_and_inherits_until_it_unlocks() {
    let mut cluster = two_low();
    cluster.request_all([3, 1]);
    assert_eq!(cluster.gifts(), [(1, 5), (3, 6), (6, 5)]);
    assert_eq!((cluster.overrun(5), cluster.holder(0)), (vec![], Some(5)));
    assert_eq!(cluster.gifts(), [(1, 5), (3, 6), (6, 5)], "1 waits in the queue");
    assert_eq!(cluster.effective(5), Some(1));
    assert_eq!(cluster.overrun(5), [], "said before");
    assert_eq!((cluster.unlock(5), cluster.effective(6)), (vec![(6, 0)], Some(1)));
    assert_eq!(cluster.gifts(), [(1, 6), (3, 6)]);
}

/// ```text
/// r0   (5)     r1         2 and 3 ask:     r0   (5) 3     r1   2     2 unlocks: r1 steals 3
/// ```
#[test]
fn an_idle_replica_is_preferred_to_one_whose_holder_overran() {
    let mut cluster = Sizes::balanced(4, 1, 2).cluster(9);
    cluster.request(5);
    cluster.overrun(5);
    assert_eq!((cluster.request(2), cluster.request(3)), (vec![(2, 1)], vec![]));
    assert_eq!(cluster.unlock(2), [(3, 1)]);
    assert_eq!(cluster.unlock(5), []);
}
