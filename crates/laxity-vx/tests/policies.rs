//! What Linux is asked for, and says.

mod support;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::Nanos;
use laxity_sys::scheduling;
use laxity_testing::skip;
use laxity_vx::{
    Budgets, Bytes, Context, FailureReason, Parameter, Policy, SpawnError, SpawnOptions, Status, Verified,
};
use support::{Place, frames};

/// How each node's thread was scheduled in its last job.
type Seen = Arc<Mutex<BTreeMap<&'static str, scheduling::Policy>>>;

/// A diamond with a tail: a -> b, c -> d, where c is two nodes long.
fn diamond(context: &Context, seen: &Seen) -> Verified {
    let mut graph = context.graph("diamond");
    let [x, y, z, w] = ["x", "y", "z", "w"].map(|name| graph.object(name, Bytes(1)));
    let nodes = [
        ("a", vec![Parameter::output(x)]),
        ("b", vec![Parameter::input(x), Parameter::output(y)]),
        ("c1", vec![Parameter::input(x), Parameter::output(z)]),
        ("c2", vec![Parameter::input(z), Parameter::output(w)]),
        ("d", vec![Parameter::input(y), Parameter::input(w)]),
    ];
    let note = |name: &'static str| {
        let seen = seen.clone();
        move || {
            let policy = scheduling::policy().expect("a thread may ask");
            seen.lock().expect("no panic").insert(name, policy);
        }
    };
    for (name, parameters) in nodes {
        let note = note(name);
        graph.node(name, parameters, move |_| {
            note();
            Ok(())
        });
    }
    let input = note("input");
    graph.input([], move |_| {
        input();
        Ok(laxity_vx::Action::Continue)
    });
    let output = note("output");
    graph.output([], move |_| {
        output();
        Ok(())
    });
    graph.verify().expect("it can be")
}

/// Runs `frames` frames. Nothing if Linux does not permit the policy here, or has promised its CPUs to others, which is
/// said.
fn scheduled(test: &str, options: &SpawnOptions) -> Option<BTreeMap<&'static str, scheduling::Policy>> {
    /// What one test reserves is not there for another.
    static ONE_BY_ONE: Mutex<()> = Mutex::new(());
    let _turn = ONE_BY_ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (place, seen) = (Place::new(test), Seen::default());
    let is_refusal = |error: &SpawnError| {
        let (SpawnError::Fifo { error, .. } | SpawnError::Deadline { error, .. }) = error else { return false };
        [io::ErrorKind::PermissionDenied, io::ErrorKind::ResourceBusy].contains(&error.kind())
    };
    let refused = match diamond(&place.context(), &seen).spawn(options) {
        Ok(mut run) => match run.wait() {
            Ok(_) => None,
            Err(failure) => match &failure.reason {
                FailureReason::Budget(error) if is_refusal(error) => Some(error.to_string()),
                _ => panic!("{failure}"),
            },
        },
        Err(error) if is_refusal(&error) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    };
    if let Some(refused) = refused {
        skip(format_args!("{test}: {refused}"));
        return None;
    }
    Some(seen.lock().expect("no panic").clone())
}

/// Paper 003, section 5.4.1: the longest path from the input callback, plus the base.
#[test]
fn priorities_under_fifo_grow_along_the_longest_path() {
    let options = SpawnOptions { policy: Policy::Fifo { base: 10 }, ..frames(5) };
    let Some(seen) = scheduled("fifo", &options) else { return };
    let expected = [("input", 10), ("a", 11), ("b", 12), ("c1", 12), ("c2", 13), ("d", 14), ("output", 15)];
    for (node, priority) in expected {
        assert_eq!(seen[node], scheduling::Policy::Fifo { priority }, "node {node}");
    }
}

#[test]
fn priorities_beyond_the_highest_are_refused() {
    let (place, seen) = (Place::new("too-high"), Seen::default());
    let graph = diamond(&place.context(), &seen);
    let spawn = |base| graph.spawn(&SpawnOptions { policy: Policy::Fifo { base }, ..frames(1) });
    for base in [0, 93, 255] {
        let error = spawn(base).expect_err("1 to 97");
        assert_eq!(error.status(), Status::InvalidValue);
        assert!(error.to_string().contains("between 1 and 97"), "{error}");
    }
    assert!(!matches!(spawn(92), Err(SpawnError::Priority(_))));
}

#[test]
fn budgets_under_deadline_are_those_given() {
    let millis = Nanos::from_millis;
    let policy = Policy::Deadline { budgets: Budgets::Given { default: Some(millis(2)) } };
    let options = SpawnOptions { period: millis(50), policy, ..frames(4) };
    let Some(seen) = scheduled("deadline", &options) else { return };
    assert_eq!(seen.len(), 7);
    assert!(
        seen.values().all(|&policy| policy == scheduling::Policy::Deadline { runtime: millis(2), reclaims: true }),
        "{seen:?}"
    );
}

#[test]
fn budgets_are_measured_and_then_reserved() {
    let policy = Policy::Deadline { budgets: Budgets::Measured { frames: 3, margin_percent: 50 } };
    let options = SpawnOptions { period: Nanos::from_millis(100), policy, ..frames(6) };
    let Some(seen) = scheduled("measured", &options) else { return };
    let is_reserved = |policy: &scheduling::Policy| matches!(policy, scheduling::Policy::Deadline { runtime, .. } if *runtime < Nanos::from_millis(100));
    assert!(seen.values().all(is_reserved), "{seen:?}");
}

#[test]
fn budgets_that_cannot_be_are_refused_with_both_numbers() {
    let (place, seen) = (Place::new("budgets"), Seen::default());
    let graph = diamond(&place.context(), &seen);
    let refused = |budget, period| {
        let policy = Policy::Deadline { budgets: Budgets::Given { default: budget } };
        let options = SpawnOptions { period: Nanos::from_millis(period), policy, ..frames(1) };
        let error = graph.spawn(&options).expect_err("it cannot be");
        (error.status(), error.to_string())
    };
    let (status, text) = refused(Some(Nanos::from_millis(30)), 20);
    assert_eq!(status, Status::InvalidValue);
    assert!(text.contains("budget 30 ms exceeds period 20 ms"), "{text}");
    assert!(refused(Some(Nanos(1000)), 20).1.contains("1 us is below 1.024 us"));
    assert!(refused(None, 20).1.starts_with("node a: SCHED_DEADLINE needs a budget"));

    // One and a half CPUs for each CPU.
    let cpus = scheduling::usable_cpus().expect("Linux says").len() as u64;
    let budget = Nanos(20_000_000 * 3 * cpus / 2 / 7);
    let (status, text) = refused(Some(budget.min(Nanos::from_millis(20))), 20);
    if cpus <= 4 {
        assert_eq!(status, Status::NoResources);
        assert!(text.contains("the budgets of all nodes are") && text.contains("but Linux promises"), "{text}");
    }
    assert!(place.is_empty());
}

/// SCHED_DEADLINE is for threads that may use all CPUs.
#[test]
fn deadline_threads_that_are_kept_from_cpus_are_refused_by_linux() {
    let cpus = scheduling::usable_cpus().expect("Linux says");
    if cpus.len() < 2 {
        return skip("it takes two CPUs, and there is one");
    }
    let (place, seen) = (Place::new("kept"), Seen::default());
    let policy = Policy::Deadline { budgets: Budgets::Given { default: Some(Nanos::from_micros(50)) } };
    let options = SpawnOptions { period: Nanos::from_millis(50), policy, cpus: vec![cpus[0]], ..frames(1) };
    match diamond(&place.context(), &seen).spawn(&options) {
        Err(error @ SpawnError::Deadline { .. }) => {
            let text = error.to_string();
            assert!(text.contains("50 us in each 50 ms") && text.contains("take SCHED_OTHER"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    assert!(place.is_empty());
}

#[test]
fn memory_is_locked_where_it_may_be() {
    let (place, seen) = (Place::new("locked"), Seen::default());
    match diamond(&place.context(), &seen).spawn(&SpawnOptions { lock_memory: true, ..frames(1) }) {
        Ok(mut run) => assert_eq!(run.wait().expect("no kernel fails").completed, 1),
        Err(SpawnError::Lock { error }) => skip(error),
        Err(error) => panic!("{error}"),
    }
}
