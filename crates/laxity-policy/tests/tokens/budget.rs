//! Budget enforcement of a job that locks.

use laxity_model::LockId;
use laxity_policy::lock::budget::{Action, Enforcement, Event};

use crate::cluster::Sizes;

const TOKEN: LockId = LockId(0);
const ENGINE: LockId = LockId(1);

fn after(enforcement: &mut Enforcement, event: Event) -> Vec<Action> {
    let mut actions = Vec::new();
    enforcement.handle(event, &mut actions);
    actions
}

/// A job that holds these locks.
fn holding(locks: &[LockId]) -> Enforcement {
    let mut enforcement = Enforcement::new();
    for &lock in locks {
        assert_eq!(after(&mut enforcement, Event::Request { lock }), [Action::Request { lock }]);
        assert_eq!(after(&mut enforcement, Event::Granted), []);
    }
    enforcement
}

/// The original's test for budget is inverted.
#[test]
fn a_request_is_made_at_once_if_there_is_budget_and_else_when_there_is() {
    let mut enforcement = Enforcement::new();
    assert_eq!(after(&mut enforcement, Event::Request { lock: TOKEN }), [Action::Request { lock: TOKEN }]);

    let mut enforcement = Enforcement::new();
    assert_eq!(after(&mut enforcement, Event::Exhausted), []);
    assert_eq!(after(&mut enforcement, Event::Request { lock: TOKEN }), []);
    assert_eq!(after(&mut enforcement, Event::Exhausted), [], "known");
    assert_eq!(after(&mut enforcement, Event::Replenished), [Action::Request { lock: TOKEN }]);
    assert_eq!(after(&mut enforcement, Event::Replenished), [], "known");
}

/// ```text
/// request   exhausted   replenished   granted
///    |---------|             |-----------|######
/// ```
#[test]
fn exhausted_while_it_waits_it_is_withdrawn_and_asks_again_when_replenished() {
    let mut enforcement = Enforcement::new();
    after(&mut enforcement, Event::Request { lock: TOKEN });
    assert_eq!(after(&mut enforcement, Event::Exhausted), [Action::Withdraw { lock: TOKEN }]);
    assert!(!enforcement.overruns());
    assert_eq!(after(&mut enforcement, Event::Replenished), [Action::Request { lock: TOKEN }]);
    assert_eq!(after(&mut enforcement, Event::Granted), []);
    assert_eq!(after(&mut enforcement, Event::Unlocked { lock: TOKEN }), []);
}

/// ```text
/// holds token and engine     ##########|  synchronize  |  unlock engine, token
/// GPU call                      [      |]
///                          exhausted --'  masked until the call is over
/// ```
#[test]
fn exhausted_while_it_holds_it_unwinds_once_no_call_masks_the_signal() {
    let mut enforcement = holding(&[TOKEN, ENGINE]);
    after(&mut enforcement, Event::CallEntered);
    after(&mut enforcement, Event::CallEntered);
    let admit = [Action::Admit { lock: TOKEN }, Action::Admit { lock: ENGINE }];
    assert_eq!(after(&mut enforcement, Event::Exhausted), admit);
    assert_eq!(after(&mut enforcement, Event::CallLeft), [], "calls nest");
    assert_eq!(after(&mut enforcement, Event::CallLeft), [Action::Synchronize]);
    assert!(enforcement.overruns());
    let unlock = [Action::Unlock { lock: ENGINE }, Action::Unlock { lock: TOKEN }];
    assert_eq!(after(&mut enforcement, Event::Synchronized), unlock);
    assert!(!enforcement.overruns());
    assert_eq!(after(&mut enforcement, Event::Request { lock: TOKEN }), [], "still without budget");
}

#[test]
fn the_signal_comes_at_once_outside_calls() {
    let mut enforcement = holding(&[TOKEN]);
    assert_eq!(after(&mut enforcement, Event::Exhausted), [Action::Admit { lock: TOKEN }, Action::Synchronize]);
}

/// Within a GPU call, it waits for an engine with the token in hand.
#[test]
fn a_holder_that_waits_keeps_waiting_since_others_wait_for_what_it_holds() {
    let mut enforcement = holding(&[TOKEN]);
    after(&mut enforcement, Event::Request { lock: ENGINE });
    assert_eq!(after(&mut enforcement, Event::Exhausted), [Action::Admit { lock: TOKEN }]);
    assert_eq!(after(&mut enforcement, Event::Granted), [Action::Synchronize], "a wait masks the signal");
    let unlock = [Action::Unlock { lock: ENGINE }, Action::Unlock { lock: TOKEN }];
    assert_eq!(after(&mut enforcement, Event::Synchronized), unlock);
}

#[test]
fn an_overrun_may_ask_for_the_locks_it_needs_to_end_its_call() {
    let mut enforcement = holding(&[TOKEN]);
    after(&mut enforcement, Event::CallEntered);
    after(&mut enforcement, Event::Exhausted);
    assert_eq!(after(&mut enforcement, Event::Request { lock: ENGINE }), [Action::Request { lock: ENGINE }]);
}

#[test]
fn a_job_that_unlocks_all_before_the_signal_comes_has_nothing_to_unwind() {
    let mut enforcement = holding(&[TOKEN]);
    after(&mut enforcement, Event::CallEntered);
    after(&mut enforcement, Event::Exhausted);
    assert_eq!(after(&mut enforcement, Event::Unlocked { lock: TOKEN }), []);
    assert_eq!(after(&mut enforcement, Event::CallLeft), []);
    assert_eq!(after(&mut enforcement, Event::Request { lock: TOKEN }), []);
    assert_eq!(after(&mut enforcement, Event::Replenished), [Action::Request { lock: TOKEN }]);
}

#[test]
fn replenished_before_the_signal_comes_it_unwinds_nevertheless_and_may_ask_again_at_once() {
    let mut enforcement = holding(&[TOKEN]);
    after(&mut enforcement, Event::CallEntered);
    after(&mut enforcement, Event::Exhausted);
    assert_eq!(after(&mut enforcement, Event::Replenished), []);
    assert_eq!(after(&mut enforcement, Event::CallLeft), [Action::Synchronize]);
    assert_eq!(after(&mut enforcement, Event::Synchronized), [Action::Unlock { lock: TOKEN }]);
    assert_eq!(after(&mut enforcement, Event::Request { lock: TOKEN }), [Action::Request { lock: TOKEN }]);
}

/// One token, f = m = 2; 5 overruns.
///
/// ```text
/// r0   5 | 6     7     Admit:     r0   (5) 6 7     Unlock:     r0   6 | 7
/// ```
#[test]
fn what_an_overrun_holds_goes_to_the_next_at_the_real_unlock() {
    let mut cluster = Sizes::balanced(2, 1, 1).cluster(9);
    cluster.request_all([5, 6, 7]);
    let mut enforcement = holding(&[TOKEN]);
    let mut grants = Vec::new();
    for event in [Event::CallEntered, Event::Exhausted, Event::CallLeft, Event::Synchronized] {
        for action in after(&mut enforcement, event) {
            match action {
                Action::Admit { .. } => {
                    assert_eq!(cluster.overrun(5), []);
                    assert_eq!(cluster.gifts(), [(6, 5), (7, 5)]);
                }
                Action::Unlock { .. } => grants = cluster.unlock(5),
                _ => assert_eq!(action, Action::Synchronize),
            }
        }
    }
    assert_eq!(grants, [(6, 0)]);
    assert_eq!(cluster.gifts(), [(7, 6)]);
}
