//! Every rule about priorities, kept and then broken alone. Each task has a CPU, so that links say nothing.

use super::check_reference::hand::*;
use super::check_reference::{Setup, UNIT, at};
use super::policy::{deadline, judge};
use super::{A, B, C};
use laxity_model::{
    Engine, EngineOrder, GpuId, InterruptHandling, JobId, LockId, Nanos, PriorityRule, ServerKind, TaskId,
    ThreadPriority,
};
use laxity_trace::check::{Problem, Report, Urgency};
use laxity_trace::{
    DeviceId, DeviceInfo, Event, GpuInfo, LockInfo, LockKind, Origin, ServerInfo, TaskKind, TraceHeader,
};

/// Of a thread.
const T: JobId = job(3, 0);

const FIFO: LockKind = LockKind::Resource { order: EngineOrder::Fifo };
/// Priority inheritance or a ceiling.
const BY_PRIORITY: LockKind = LockKind::Resource { order: EngineOrder::Priority };

fn gpus(count: u16) -> Vec<GpuId> {
    (0..count).map(GpuId).collect()
}

/// Tasks of deadlines 10, 20 and 30 and a thread, four CPUs, and these locks.
fn header(kinds: &[LockKind]) -> TraceHeader {
    let mut header = Setup::edf(4, &[(9, 10), (9, 20), (9, 30), (9, 40)], 0).header();
    let lock = |kind: &LockKind| LockInfo { name: "lock".to_owned(), replicas: 1, kind: kind.clone() };
    header.locks = kinds.iter().map(lock).collect();
    header.tasks[3].kind = TaskKind::Thread;
    header.handling = InterruptHandling::Klmirqd { threads: None };
    header.gpus = vec![GpuInfo { name: "gpu0".to_owned(), cluster: 0, copy_engines: 1 }];
    header.devices = vec![DeviceInfo { name: "gpu0".to_owned() }];
    header
}

/// Under fixed priorities: A has rank 3, B 2, C 1.
fn ranked(kinds: &[LockKind]) -> TraceHeader {
    let setup = Setup { rule: PriorityRule::Given, ..Setup::edf(4, &[(9, 10), (9, 20), (9, 30), (9, 40)], 0) };
    let mut header = TraceHeader { scheduler: setup.header().scheduler, ..header(kinds) };
    for (rank, task) in (0..4).rev().zip(&mut header.tasks) {
        task.rank = rank;
    }
    header
}

/// A, B and C execute from 0 on.
fn with_jobs(events: &[(u64, Event)]) -> Vec<(u64, Event)> {
    let jobs = [(A, 10), (B, 20), (C, 30)].into_iter().zip(0..);
    let begin = jobs.flat_map(|((job, due), cpu)| [release(job, due), ready(job), link(cpu, job), dispatch(cpu, job)]);
    begin.map(|event| (0, event)).chain(events.iter().copied()).collect()
}

fn verdict(header: &TraceHeader, events: &[(u64, Event)]) -> Vec<(u64, Option<JobId>, Problem)> {
    let Report { violations, .. } = judge(header, &with_jobs(events));
    violations.iter().map(|violation| (violation.at.0 / UNIT.0, violation.job, violation.what)).collect()
}

/// ```text
///   cpu0   A A ~ ~ A A      A waits for C from 2 to 4, and C is as urgent as A meanwhile
///   cpu2   C C C C C C
///            |-lock-|
/// ```
fn inherits() -> Vec<(u64, Event)> {
    vec![
        (1, request(C, 0)),
        (1, grant(C, 0, 0)),
        (2, request(A, 0)),
        (2, priority(C, 10, 0)),
        (2, suspend(0, A)),
        (4, unlock(C, 0, 0)),
        (4, grant(A, 0, 0)),
        (4, priority(C, 30, 2)),
        (4, resume(A)),
        (4, link(0, A)),
        (4, dispatch(0, A)),
        (5, unlock(A, 0, 0)),
        (6, Event::End),
    ]
}

fn without(events: &[(u64, Event)], left_out: Event) -> Vec<(u64, Event)> {
    let kept: Vec<_> = events.iter().copied().filter(|&(_, event)| event != left_out).collect();
    assert_eq!(kept.len() + 1, events.len());
    kept
}

/// The locks whose holders inherit.
fn inheriting() -> [LockKind; 5] {
    let engine = LockKind::Engine { gpu: GpuId(0), engine: Engine::Execution, order: EngineOrder::Priority };
    [FIFO, BY_PRIORITY, engine, LockKind::KFmlp { gpus: gpus(1) }, LockKind::Tokens { gpus: gpus(1) }]
}

#[test]
fn a_holder_has_the_priority_of_the_job_that_waits_for_it() {
    let events = inherits();
    for kind in inheriting() {
        let header = header(std::slice::from_ref(&kind));
        assert_eq!(verdict(&header, &events), [], "{kind:?}");
        let what =
            Problem::NotInherited { lock: LockId(0), urgency: deadline(30), waiting: A, waiting_urgency: deadline(10) };
        let forged = without(&without(&events, priority(C, 10, 0)), priority(C, 30, 2));
        assert_eq!(verdict(&header, &forged), [(2, Some(C), what)], "{kind:?}");
    }
    // Holders of a semaphore inherit nothing, nor do those of a token where not all that wait are in queues.
    for kind in [LockKind::Semaphore { gpus: gpus(1) }, LockKind::Tokens { gpus: gpus(2) }] {
        let forged = without(&without(&events, priority(C, 10, 0)), priority(C, 30, 2));
        assert_eq!(verdict(&header(&[kind]), &forged), []);
    }
}

#[test]
fn a_priority_comes_from_a_job_that_waits_for_what_is_held() {
    let foreign = |urgency, of| Problem::ForeignPriority { urgency, of: TaskId(of), own: deadline(30) };
    // No lock at all.
    let raised = |level, of| [(1, Event::Priority { job: C, level, of: TaskId(of) }), (3, Event::End)];
    for (level, of, urgency) in [(0, 2, Urgency::Boosted), (at(10).0, 0, deadline(10)), (at(29).0, 2, deadline(29))] {
        assert_eq!(verdict(&header(&[]), &raised(level, of)), [(1, Some(C), foreign(urgency, of))]);
    }
    assert_eq!(verdict(&header(&[]), &raised(at(40).0, 2)), [(1, Some(C), foreign(deadline(40), 2))], "it is lowered");
    assert_eq!(verdict(&header(&[]), &raised(at(30).0, 2)), []);
    // What is above all is of no other task.
    let events = [(1, grant(C, 0, 0)), (1, Event::Priority { job: C, level: 0, of: A.task }), (3, Event::End)];
    assert_eq!(verdict(&header(&[LockKind::Bandwidth]), &events), [(1, Some(C), foreign(Urgency::Boosted, 0))]);
    for kind in inheriting() {
        let header = header(&[kind]);
        // Before any job waits.
        let mut early = inherits();
        early.insert(2, (1, priority(C, 10, 0)));
        assert_eq!(verdict(&header, &early), [(1, Some(C), foreign(deadline(10), 0))]);
        // That of a job that does not wait.
        let mut other = without(&inherits(), priority(C, 10, 0));
        other.insert(3, (2, priority(C, 20, 1)));
        assert!(!verdict(&header, &other).is_empty());
        let mut other = inherits();
        other.insert(5, (3, priority(C, 10, 1)));
        assert!(!verdict(&header, &other).is_empty());
    }
    let semaphore = header(&[LockKind::Semaphore { gpus: gpus(1) }]);
    assert_eq!(verdict(&semaphore, &inherits()), [(2, Some(C), foreign(deadline(10), 0))]);
}

#[test]
fn what_was_lent_is_given_back() {
    for kind in inheriting() {
        let forged = without(&inherits(), priority(C, 30, 2));
        let what = Problem::ForeignPriority { urgency: deadline(10), of: TaskId(0), own: deadline(30) };
        assert_eq!(verdict(&header(&[kind]), &forged), [(4, Some(C), what)]);
    }
    let report = judge(&header(&[FIFO]), &with_jobs(&without(&inherits(), priority(C, 30, 2))));
    let said = "at 4 ms T2.0 has the priority of T0 (deadline 10 ms), which is neither its own (deadline 30 ms) nor that \
                of a lock that it holds or of a job that waits for it\n";
    assert_eq!(report.to_string(), said);
}

/// A waits for B, which waits for C: the priority goes through B.
#[test]
fn a_priority_goes_through_a_job_that_waits_itself() {
    let header = header(&[FIFO, FIFO]);
    let events = vec![
        (1, request(C, 0)),
        (1, grant(C, 0, 0)),
        (1, request(B, 1)),
        (1, grant(B, 1, 0)),
        (2, request(B, 0)),
        (2, priority(C, 20, 1)),
        (2, suspend(1, B)),
        (3, request(A, 1)),
        (3, priority(B, 10, 0)),
        (3, priority(C, 10, 0)),
        (3, suspend(0, A)),
        (5, Event::End),
    ];
    assert_eq!(verdict(&header, &events), []);
    let what =
        Problem::NotInherited { lock: LockId(0), urgency: deadline(20), waiting: B, waiting_urgency: deadline(10) };
    assert_eq!(verdict(&header, &without(&events, priority(C, 10, 0))), [(3, Some(C), what)]);
}

/// Under EDF the ceiling of a lock that A uses is the time of the grant, and 10.
#[test]
fn a_lock_by_priority_may_have_a_ceiling_unless_a_holder_is_below_it() {
    let header = header(&[BY_PRIORITY]);
    let raised = |level| {
        [(1, request(C, 0)), (1, grant(C, 0, 0)), (1, priority(C, level, 0)), (2, request(A, 0)), (2, suspend(0, A))]
    };
    let released =
        [(4, unlock(C, 0, 0)), (4, grant(A, 0, 0)), (4, priority(C, 30, 2)), (4, resume(A)), (4, link(0, A))];
    let end = |rest: &[(u64, Event)]| [released.to_vec(), vec![(4, dispatch(0, A))], rest.to_vec()].concat();
    let kept = [raised(11).to_vec(), end(&[(6, Event::End)])].concat();
    assert_eq!(verdict(&header, &kept), []);
    let what = Problem::ForeignPriority { urgency: deadline(12), of: TaskId(0), own: deadline(30) };
    let other = [raised(12).to_vec(), end(&[(6, Event::End)])].concat();
    assert_eq!(verdict(&header, &other)[0], (1, Some(C), what));
    // B holds it later without a ceiling: so it has none, and the first one was wrong.
    let rest = [(5, unlock(A, 0, 0)), (6, request(B, 0)), (6, grant(B, 0, 0)), (8, Event::End)];
    let what = Problem::ForeignPriority { urgency: deadline(11), of: TaskId(0), own: deadline(30) };
    assert_eq!(verdict(&header, &[raised(11).to_vec(), end(&rest)].concat()), [(1, Some(C), what)]);
}

/// C has rank 1, A rank 3: level 4 is that of A, level 2 that of C.
#[test]
fn under_fixed_priorities_a_ceiling_is_the_rank_of_a_user() {
    let header = ranked(&[BY_PRIORITY]);
    let raised = |level, of| {
        let raised = Event::Priority { job: A, level, of: TaskId(of) };
        let own = Event::Priority { job: A, level: 4, of: TaskId(0) };
        [(1, request(A, 0)), (1, grant(A, 0, 0)), (1, raised), (3, unlock(A, 0, 0)), (3, own)]
    };
    let end = [(9, Event::End)];
    assert_eq!(verdict(&header, &[raised(2, 2).as_slice(), &end].concat()), []);
    let what = |rank| Problem::ForeignPriority { urgency: Urgency::Rank(rank), of: TaskId(1), own: Urgency::Rank(3) };
    assert_eq!(verdict(&header, &[raised(2, 1).as_slice(), &end].concat()), [(1, Some(A), what(1))], "of another task");
    // B has rank 2 and holds it at that, and so does A without a ceiling.
    let again = [(4, request(A, 0)), (4, grant(A, 0, 0)), (5, unlock(A, 0, 0))];
    let used = [(6, request(B, 0)), (6, grant(B, 0, 0)), (7, unlock(B, 0, 0)), (7, request(A, 0)), (7, grant(A, 0, 0))];
    let events = [raised(3, 1).as_slice(), &again, &used, &end].concat();
    assert_eq!(verdict(&header, &events), [(1, Some(A), what(2))], "an inheritance lock");
}

#[test]
fn the_holder_of_the_bandwidth_lock_is_above_all() {
    let header = header(&[LockKind::Bandwidth]);
    let above = Event::Priority { job: C, level: 0, of: TaskId(2) };
    let events = vec![
        (1, request(C, 0)),
        (1, grant(C, 0, 0)),
        (1, above),
        (3, unlock(C, 0, 0)),
        (3, priority(C, 30, 2)),
        (5, Event::End),
    ];
    assert_eq!(verdict(&header, &events), []);
    let what = Problem::BelowCeiling { lock: LockId(0), urgency: deadline(30) };
    let forged = without(&without(&events, above), priority(C, 30, 2));
    assert_eq!(verdict(&header, &forged), [(1, Some(C), what)]);
    let what = Problem::ForeignPriority { urgency: Urgency::Boosted, of: TaskId(2), own: deadline(30) };
    assert_eq!(verdict(&header, &without(&events, priority(C, 30, 2))), [(3, Some(C), what)]);
}

/// The priority of a server is that of its budget.
#[test]
fn a_server_has_the_deadline_of_its_budget() {
    let mut header = header(&[]);
    header.servers =
        vec![ServerInfo { task: TaskId(2), kind: ServerKind::CbsSoft, budget: UNIT, period: Nanos(5 * UNIT.0) }];
    let replenish = |due| Event::Replenish { task: TaskId(2), budget: UNIT, deadline: at(due) };
    let given = |due, level| {
        vec![
            (0, replenish(5)),
            (0, priority(C, 5, 2)),
            (1, replenish(due)),
            (1, priority(C, level, 2)),
            (3, Event::End),
        ]
    };
    assert_eq!(verdict(&header, &given(10, 10)), []);
    let what = Problem::ForeignPriority { urgency: deadline(9), of: TaskId(2), own: deadline(10) };
    assert_eq!(verdict(&header, &given(10, 9)), [(1, Some(C), what)]);
    let what = Problem::ForeignPriority { urgency: deadline(5), of: TaskId(2), own: deadline(10) };
    assert_eq!(verdict(&header, &without(&given(10, 10), priority(C, 10, 2))), [(1, Some(C), what)], "postponed");
}

/// T serves C.
fn serves(level: u64, of: u32, owner: Option<JobId>) -> Vec<(u64, Event)> {
    vec![
        (2, release(T, 30)),
        (2, Event::Serve { thread: T, device: DeviceId(0), job: owner }),
        (2, Event::Priority { job: T, level, of: TaskId(of) }),
        (2, ready(T)),
        (2, link(3, T)),
        (2, dispatch(3, T)),
    ]
}

#[test]
fn a_thread_has_the_priority_of_its_owner_under_klmirqd() {
    let header = header(&[FIFO, LockKind::Tokens { gpus: gpus(1) }]);
    let found = |events: &[(u64, Event)]| verdict(&header, &[events, &[(9, Event::End)]].concat());
    let wrong = |urgency, of, expected| Problem::ThreadPriority { urgency, of: TaskId(of), expected };
    const BELOW: u64 = u64::MAX - 1;
    assert_eq!(found(&serves(at(30).0, 2, Some(C))), []);
    assert_eq!(found(&serves(BELOW, 3, None)), []);
    let what = wrong(Urgency::Boosted, 3, deadline(30));
    assert_eq!(found(&serves(0, 3, Some(C))), [(2, Some(T), what)]);
    assert_eq!(found(&serves(at(10).0, 0, Some(C))), [(2, Some(T), wrong(deadline(10), 0, deadline(30)))]);
    assert_eq!(found(&serves(at(30).0, 2, None)), [(2, Some(T), wrong(deadline(30), 2, Urgency::Below))]);
    // It follows the owner, which inherits.
    let held = [(1, request(C, 0)), (1, grant(C, 0, 0))];
    let raised = [(4, request(A, 0)), (4, priority(C, 10, 0)), (4, suspend(0, A))];
    let owner = serves(at(30).0, 2, Some(C));
    let stays = [held.as_slice(), &owner, &raised].concat();
    assert_eq!(found(&[stays.as_slice(), &[(4, priority(T, 10, 0))]].concat()), []);
    assert_eq!(found(&stays), [(4, Some(T), wrong(deadline(30), 2, deadline(10)))]);
    // Or the holder of a token of that GPU.
    let held = [(1, request(B, 1)), (1, grant(B, 1, 0))];
    assert_eq!(found(&[held.as_slice(), &serves(at(20).0, 1, Some(C))].concat()), []);
    let what = wrong(deadline(30), 2, deadline(20));
    assert_eq!(found(&[held.as_slice(), &serves(at(30).0, 2, Some(C))].concat()), [(2, Some(T), what)]);
}

#[test]
fn a_thread_has_a_fixed_priority_elsewhere() {
    let mut header = header(&[]);
    const BELOW: u64 = u64::MAX - 1;
    for (priority, right, wrong) in [(ThreadPriority::High, 0, BELOW), (ThreadPriority::Low, BELOW, 0)] {
        header.handling = InterruptHandling::PreemptRt(priority);
        let end = [(9, Event::End)];
        assert_eq!(verdict(&header, &[serves(right, 3, Some(C)).as_slice(), &end].concat()), []);
        for (level, of) in [(wrong, 3), (right, 2), (at(30).0, 2)] {
            let found = verdict(&header, &[serves(level, of, Some(C)).as_slice(), &end].concat());
            assert!(matches!(found[..], [(2, Some(T), Problem::ThreadPriority { .. })]), "{found:?}");
        }
    }
    header.tasks[3].kind = TaskKind::Callback;
    let found = verdict(&header, &[serves(0, 3, Some(C)).as_slice(), &[(9, Event::End)]].concat());
    assert!(!found.is_empty(), "the run-time library's are below all");
}

/// The threads of a run decide one after the other, and a job may give itself a priority.
#[test]
fn live_priorities_are_believed() {
    let mut header = header(&[FIFO]);
    header.origin = Origin::Live;
    header.is_linked = true;
    assert_eq!(verdict(&header, &without(&inherits(), priority(C, 30, 2))), []);
}
