//! The bandwidth lock: nesting, streams, holders that end, the least budget.

use std::collections::BTreeMap;

use laxity_model::TaskId;
use laxity_policy::bandwidth::{BandwidthLock, Change, Hold, Holder, NotHeld};
use proptest::prelude::*;

fn holder(holds: &[Hold]) -> Holder {
    let mut holder = Holder::default();
    holds.iter().for_each(|&hold| holder.handle(hold).expect("what ends was taken"));
    holder
}

/// Table I of paper 004: five launches and one synchronization are one section.
#[test]
fn launches_before_one_synchronization_are_one_section() {
    let launch = Hold::Issue { stream: 0, budget: 5 };
    assert_eq!(holder(&[launch; 5]).budget(), Some(5));
    assert_eq!(holder(&[launch, launch, Hold::AllSynchronized]).budget(), None);
}

/// Section IV-B: a stream that is waited for must not unlock what another stream still needs.
#[test]
fn the_lock_is_held_while_any_stream_is_active() {
    let issue = |stream| Hold::Issue { stream, budget: 5 };
    let one_left = [issue(0), issue(1), Hold::Synchronized { stream: 0 }];
    assert_eq!(holder(&one_left).budget(), Some(5));
    assert_eq!(holder(&[&one_left[..], &[Hold::Synchronized { stream: 1 }]].concat()).budget(), None);
}

#[test]
fn of_nested_holds_the_least_budget_counts_and_only_an_unlock_ends_one() {
    let outer = [Hold::Lock { budget: 5 }, Hold::Lock { budget: 3 }];
    assert_eq!(holder(&outer).budget(), Some(3));
    assert_eq!(holder(&[outer[0], outer[1], Hold::Unlock]).budget(), Some(5));
    assert_eq!(holder(&[outer[0], Hold::Issue { stream: 0, budget: 9 }, Hold::AllSynchronized]).budget(), Some(5));
    assert_eq!(holder(&[outer[0], outer[1], Hold::Ended]).budget(), None);
}

#[test]
fn an_unlock_too_many_is_refused_and_changes_nothing() {
    let mut lock = BandwidthLock::new(2);
    let issue = Hold::Issue { stream: 0, budget: 5 };
    lock.handle(TaskId(1), issue).expect("an operation is issued");
    assert_eq!(lock.handle(TaskId(1), Hold::Unlock), Err(NotHeld));
    assert_eq!((lock.budget(), lock.is_held_by(TaskId(1))), (Some(5), true));
}

#[test]
fn the_least_budget_of_all_holders_is_in_force() {
    let mut lock = BandwidthLock::new(2);
    let mut handle = |thread, hold| lock.handle(TaskId(thread), hold).expect("what ends was taken");
    let change = |ceiling, budget| Change { ceiling, budget };
    assert_eq!(handle(0, Hold::Lock { budget: 5 }), change(Some(true), Some(Some(5))));
    assert_eq!(handle(1, Hold::Lock { budget: 7 }), change(Some(true), None));
    assert_eq!(handle(1, Hold::Lock { budget: 2 }), change(None, Some(Some(2))));
    assert_eq!(handle(0, Hold::Unlock), change(Some(false), None));
    assert_eq!(handle(1, Hold::Ended), change(Some(false), Some(None)));
}

/// What a thread holds, written as plainly as possible: a list of everything that it has begun and not ended.
#[derive(Default)]
struct Plain {
    begun: Vec<(Option<u64>, u64)>,
}

impl Plain {
    fn handle(&mut self, hold: Hold) -> bool {
        match hold {
            Hold::Lock { budget } => self.begun.push((None, budget)),
            Hold::Issue { stream, budget } => self.begun.push((Some(stream), budget)),
            Hold::Unlock => match self.begun.iter().rposition(|(stream, _)| stream.is_none()) {
                Some(last) => {
                    self.begun.remove(last);
                }
                None => return false,
            },
            Hold::End { budget } => match self.begun.iter().rposition(|&begun| begun == (None, budget)) {
                Some(last) => {
                    self.begun.remove(last);
                }
                None => return false,
            },
            Hold::Synchronized { stream } => self.begun.retain(|&(active, _)| active != Some(stream)),
            Hold::AllSynchronized => self.begun.retain(|(stream, _)| stream.is_none()),
            Hold::Ended => self.begun.clear(),
        }
        true
    }
}

fn hold() -> impl Strategy<Value = Hold> {
    prop_oneof![
        3 => (1u64..20).prop_map(|budget| Hold::Lock { budget }),
        3 => Just(Hold::Unlock),
        2 => (1u64..20).prop_map(|budget| Hold::End { budget }),
        4 => (0u64..3, 1u64..20).prop_map(|(stream, budget)| Hold::Issue { stream, budget }),
        3 => (0u64..3).prop_map(|stream| Hold::Synchronized { stream }),
        1 => Just(Hold::AllSynchronized),
        1 => Just(Hold::Ended),
    ]
}

proptest! {
    #[test]
    fn the_lock_is_held_by_just_those_that_have_something_left_to_end(
        events in prop::collection::vec((0u32..3, hold()), 0..60),
    ) {
        let mut lock = BandwidthLock::new(3);
        let mut plain: BTreeMap<u32, Plain> = BTreeMap::new();
        let (mut ceilings, mut budget) = ([false; 3], None);
        for (thread, hold) in events {
            let is_legal = plain.entry(thread).or_default().handle(hold);
            let change = lock.handle(TaskId(thread), hold);
            prop_assert_eq!(change.is_ok(), is_legal);
            let change = change.unwrap_or_default();
            let ceiling = &mut ceilings[thread as usize];
            *ceiling = change.ceiling.unwrap_or(*ceiling);
            budget = change.budget.unwrap_or(budget);
            let least = plain.values().flat_map(|plain| &plain.begun).map(|&(_, budget)| budget).min();
            prop_assert_eq!((lock.budget(), budget), (least, least));
            for (thread, plain) in &plain {
                prop_assert_eq!(lock.is_held_by(TaskId(*thread)), !plain.begun.is_empty());
                prop_assert_eq!(ceilings[*thread as usize], !plain.begun.is_empty());
            }
        }
    }
}
