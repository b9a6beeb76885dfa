//! Locks of a system: the holder inherits by the policy, the next holder goes on by the decision of the unlock, and a holder
//! that is killed keeps nothing.

mod support;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use laxity_model::{CpuId, EngineOrder, LockId, ReplicaId};
use laxity_policy::lock;
use laxity_sched::{
    Change, Config, Decision, Link, LockRequest, Registry, Rule, Snapshot, System, TaskSnapshot, TaskState, Watch,
};
use laxity_testing::{Process, role, until};
use support::{Place, on, release, spin_until, task, usable};

const DOOR: LockId = LockId(0);

fn with_door(test: &str) -> Option<(Place, System)> {
    let door = lock::Config::Queue { replicas: 1, order: EngineOrder::Priority, progress: lock::Progress::Inheritance };
    let cpu = *usable().last().expect("it runs somewhere");
    on(test, Config { locks: vec![door], ..Config::new(Rule::Edf, vec![vec![cpu]]) })
}

fn named(snapshot: &Snapshot, name: &str) -> Option<TaskSnapshot> {
    snapshot.tasks.iter().find(|task| task.name == name).cloned()
}

/// Not a test by itself: the process that a test kills.
#[test]
fn child() {
    let Some((_, place)) = role() else { return };
    let system = Registry::at(&place).attach("s").expect("it is there");
    let task = task(&system, "holder", 60_000);
    release(&task, 0);
    task.lock(LockRequest::of(DOOR), &mut ()).expect("free");
    // It keeps the lock and gives up the CPU.
    task.suspend().expect("it has a job");
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

#[test]
fn a_holder_has_the_deadline_of_its_most_urgent_waiter_until_it_unlocks() {
    let Some((_place, system)) = with_door("inherits") else { return };
    let (order, holds) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let note = |what: &'static str| order.lock().expect("no panic").push(what);
    thread::scope(|scope| {
        let (system, note, holds) = (&system, &note, &holds);
        scope.spawn(move || {
            let late = task(system, "late", 60_000);
            let job = release(&late, 0);
            late.lock(LockRequest::of(DOOR), &mut ()).expect("free");
            holds.store(true, Ordering::SeqCst);
            let look = || system.snapshot().expect("whole");
            // On the only CPU the middle one never runs, as this one inherits.
            spin_until(|| {
                let of = |name| named(&look(), name).map(|task| task.state);
                of("early") == Some(TaskState::Suspended) && of("middle") == Some(TaskState::Ready)
            });
            let early = named(&look(), "early").expect("it waits").level;
            assert_eq!(named(&look(), "late").expect("this").level, early, "it inherits");
            assert!(early < job.deadline.0 && late.is_linked());
            note("unlock");
            late.unlock(DOOR, &mut ()).expect("held");
            assert_eq!(named(&look(), "late").expect("this").level, job.deadline.0, "its own again");
            note("late");
            late.complete().expect("it has a job");
        });
        until("the lock is held", || holds.load(Ordering::SeqCst));
        scope.spawn(move || {
            let early = task(system, "early", 20_000);
            release(&early, 0);
            assert_eq!(early.lock(LockRequest::of(DOOR), &mut ()).expect("granted"), ReplicaId(0));
            note("early");
            early.unlock(DOOR, &mut ()).expect("held");
            early.complete().expect("it has a job");
        });
        until("the first one waits", || {
            named(&system.snapshot().expect("whole"), "early").is_some_and(|task| task.state == TaskState::Suspended)
        });
        scope.spawn(move || {
            let middle = task(system, "middle", 40_000);
            release(&middle, 0);
            note("middle");
            middle.complete().expect("it has a job");
        });
    });
    assert_eq!(*order.lock().expect("no panic"), ["unlock", "early", "middle", "late"]);
}

/// The holder of a bandwidth lock is above all others; a lock of the system that is requested or unlocked meanwhile leaves it
/// there.
#[test]
fn a_job_that_gave_itself_the_top_priority_keeps_it_whatever_locks_say() {
    let cpus = usable();
    let [.., first, second] = cpus[..] else { return laxity_testing::skip("two jobs at once need two CPUs") };
    let door = lock::Config::Queue { replicas: 1, order: EngineOrder::Priority, progress: lock::Progress::Inheritance };
    let config = Config { locks: vec![door; 2], ..Config::new(Rule::Edf, vec![vec![first, second]]) };
    let Some((_place, system)) = on("top", config) else { return };
    let look = || system.snapshot().expect("whole");
    let level = |name| named(&look(), name).expect("it is a task").level;
    let holds = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let late = task(&system, "late", 60_000);
            let job = release(&late, 0);
            late.lock(LockRequest::of(DOOR), &mut ()).expect("free");
            late.top_priority_watched(true, &mut ()).expect("it has a job");
            holds.store(true, Ordering::SeqCst);
            spin_until(|| named(&look(), "early").is_some_and(|task| task.state == TaskState::Suspended));
            let early = level("early");
            assert_eq!(level("late"), 0, "above all, whatever it inherits");
            late.lock(LockRequest::of(LockId(1)), &mut ()).expect("free");
            late.unlock(LockId(1), &mut ()).expect("held");
            assert_eq!(level("late"), 0, "its own locks do not lower it");
            late.top_priority_watched(false, &mut ()).expect("it has a job");
            assert_eq!(level("late"), early, "what it inherited meanwhile");
            late.top_priority_watched(true, &mut ()).expect("it has a job");
            late.unlock(DOOR, &mut ()).expect("held");
            assert_eq!(level("late"), 0);
            late.top_priority_watched(false, &mut ()).expect("it has a job");
            assert_eq!(level("late"), job.deadline.0, "its own again");
            late.top_priority_watched(true, &mut ()).expect("it has a job");
            late.complete().expect("it has a job");
            let next = release(&late, 1);
            assert_eq!(level("late"), next.deadline.0, "the next job begins with its own");
            late.complete().expect("it has a job");
        });
        until("the lock is held", || holds.load(Ordering::SeqCst));
        scope.spawn(|| {
            let early = task(&system, "early", 20_000);
            release(&early, 0);
            early.lock(LockRequest::of(DOOR), &mut ()).expect("granted");
            early.unlock(DOOR, &mut ()).expect("held");
            early.complete().expect("it has a job");
        });
    });
}

/// Hears what was decided.
#[derive(Default)]
struct Heard(Vec<Decision>);

impl Watch for Heard {
    fn decided(&mut self, decision: &Decision) {
        self.0.push(decision.clone());
    }
}

/// What the policy decides while a job is above all others follows from that, so that recorders must know.
#[test]
fn the_top_priority_is_among_the_changes_that_a_watch_hears_of() {
    let door = lock::Config::Queue { replicas: 1, order: EngineOrder::Priority, progress: lock::Progress::Inheritance };
    let cpu = *usable().last().expect("it runs somewhere");
    for locks in [vec![], vec![door]] {
        let config = Config { locks, ..Config::new(Rule::Edf, vec![vec![cpu]]) };
        let Some((_place, system)) = on("top-heard", config) else { return };
        let task = task(&system, "t", 60_000);
        let job = release(&task, 0);
        for (is_above, level) in [(true, (0, task.id().0)), (false, (job.deadline.0, task.id().0))] {
            let mut heard = Heard::default();
            task.top_priority_watched(is_above, &mut heard).expect("it has a job");
            let changes: Vec<Change> = heard.0.iter().flat_map(|decision| decision.changes.iter().copied()).collect();
            assert_eq!(changes, [Change::Prioritized { task: task.id(), level }], "above: {is_above}");
        }
        task.complete().expect("it has a job");
    }
}

/// With two decisions, the waiter would have the only CPU between them, and complete first.
#[test]
fn a_job_whose_last_step_is_an_unlock_completes_by_the_same_decision() {
    let Some((_place, system)) = with_door("last-step") else { return };
    let (order, holds) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let note = |what: &'static str| order.lock().expect("no panic").push(what);
    thread::scope(|scope| {
        let (system, note, holds) = (&system, &note, &holds);
        scope.spawn(move || {
            let late = task(system, "late", 60_000);
            release(&late, 0);
            late.lock(LockRequest::of(DOOR), &mut ()).expect("free");
            holds.store(true, Ordering::SeqCst);
            let of = |name| named(&system.snapshot().expect("whole"), name);
            spin_until(|| of("early").is_some_and(|task| task.state == TaskState::Suspended));
            let early = of("early").expect("it waits").id;
            let mut heard = Heard::default();
            late.unlock_and_complete(DOOR, &mut heard).expect("held");
            note("late");
            let [decision] = &heard.0[..] else { panic!("one decision: {:?}", heard.0) };
            assert!(decision.changes.contains(&Change::Resumed { task: early }), "{decision:?}");
            assert_eq!(decision.changes.last(), Some(&Change::Completed { task: late.id() }), "{decision:?}");
            assert_eq!(decision.links[..], [Link { cpu: CpuId(0), task: Some(early) }], "{decision:?}");
            assert_eq!(of("late").map(|task| (task.state, task.completed)), Some((TaskState::Parked, 1)));
            assert!(late.complete().is_err(), "it is complete");
            // The next one is as usual.
            release(&late, 1);
            late.complete().expect("it has a job");
        });
        until("the lock is held", || holds.load(Ordering::SeqCst));
        scope.spawn(move || {
            let early = task(system, "early", 20_000);
            release(&early, 0);
            early.lock(LockRequest::of(DOOR), &mut ()).expect("granted");
            note("early");
            early.unlock_and_complete(DOOR, &mut ()).expect("held");
        });
    });
    assert_eq!(*order.lock().expect("no panic"), ["late", "early"]);
}

#[test]
fn a_lock_of_a_killed_process_goes_to_the_next_job() {
    let Some((place, system)) = with_door("killed") else { return };
    let mut process = Process::start(&place, "hold");
    let look = || place.look("s").expect("whole");
    until("it holds", || named(&look(), "holder").is_some_and(|task| task.state == TaskState::Suspended));
    let granted = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let next = task(&system, "next", 20_000);
            let job = release(&next, 0);
            next.lock(LockRequest::of(DOOR), &mut ()).expect("granted");
            granted.store(true, Ordering::SeqCst);
            let level = named(&system.snapshot().expect("whole"), "next").expect("this").level;
            assert_eq!(level, job.deadline.0);
            next.unlock(DOOR, &mut ()).expect("held");
            next.complete().expect("it has a job");
        });
        until("it waits", || {
            let state = |name| named(&look(), name).map(|task| (task.state, task.level));
            let (holder, next) = (state("holder"), state("next"));
            next.is_some_and(|(is, level)| is == TaskState::Suspended && holder.is_some_and(|(_, of)| of == level))
        });
        assert!(!granted.load(Ordering::SeqCst), "the holder lives");
        process.kill();
    });
    until("it is gone", || named(&look(), "holder").is_none());
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let Some((_place, system)) = with_door("refused") else { return };
    let task = task(&system, "t", 60_000);
    assert!(task.lock(LockRequest::of(DOOR), &mut ()).is_err(), "no job");
    release(&task, 0);
    assert!(task.unlock(DOOR, &mut ()).is_err(), "not held");
    assert!(task.lock(LockRequest::of(LockId(1)), &mut ()).is_err(), "no such lock");
    task.lock(LockRequest::of(DOOR), &mut ()).expect("free");
    assert!(task.lock(LockRequest::of(DOOR), &mut ()).is_err(), "held");
    assert!(task.complete().is_err(), "a job that holds a lock is not complete");
    task.unlock(DOOR, &mut ()).expect("held");
    task.complete().expect("it has a job");
}
