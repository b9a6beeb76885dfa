//! Every rule about locks, engines and bottom halves, kept and then broken alone.

use super::check_reference::hand::*;
use super::check_reference::{Setup, UNIT};
use super::{A, B, C, costs};
use laxity_model::{
    CpuId, Engine, EngineOrder, GpuId, InterruptHandling, JobId, LockId, Nanos, OverheadKind, ReplicaId,
};
use laxity_trace::check::{self, Act, Problem, Report};
use laxity_trace::{DeviceInfo, Event, GpuInfo, LockInfo, LockKind, Origin, Record, TaskKind, TraceHeader};

/// Of an interrupt thread.
const T: JobId = job(3, 0);

/// Three tasks of deadlines 10, 20 and 30, an interrupt thread, three CPUs, a GPU with one copy engine; locks: 0 FIFO,
/// 1 by priority, 2 a k-FMLP of two, 3 a semaphore of two, 4 perhaps with a ceiling.
fn header() -> TraceHeader {
    let mut header = Setup::edf(3, &[(9, 10), (9, 20), (9, 30), (9, 40)], 0).header();
    header.tasks[3].kind = TaskKind::Thread;
    header.costs = costs();
    header.handling = InterruptHandling::Klmirqd { threads: None };
    header.gpus = vec![GpuInfo { name: "gpu0".to_owned(), cluster: 0, copy_engines: 1 }; 2];
    header.devices = vec![DeviceInfo { name: "gpu0".to_owned() }; 2];
    let lock = |kind, replicas| LockInfo { name: "lock".to_owned(), kind, replicas };
    let gpus = vec![GpuId(0), GpuId(1)];
    header.locks = vec![
        lock(LockKind::Resource { order: EngineOrder::Fifo }, 1),
        lock(LockKind::Engine { gpu: GpuId(0), engine: Engine::Execution, order: EngineOrder::Priority }, 1),
        lock(LockKind::KFmlp { gpus: gpus.clone() }, 2),
        lock(LockKind::Semaphore { gpus }, 2),
        lock(LockKind::Resource { order: EngineOrder::Priority }, 1),
    ];
    header
}

fn records(events: &[(u64, Event)]) -> Vec<Record> {
    let jobs = [(0, release(A, 10)), (0, release(B, 20)), (0, release(C, 30))];
    trace(&[jobs.as_slice(), events].concat())
}

fn judge(events: &[(u64, Event)]) -> Report {
    check::legality(&header(), &records(events), |_| None)
}

/// When, with which job, and what the only violation is.
fn only(report: &Report) -> (u64, Option<JobId>, Problem) {
    let (at, _, job, what) = super::only(report);
    (at, job, what)
}

const L: [LockId; 4] = [LockId(0), LockId(1), LockId(2), LockId(3)];
const R: [ReplicaId; 3] = [ReplicaId(0), ReplicaId(1), ReplicaId(2)];

/// ```text
///   lock 0   C C C B B A A        in the order of the requests C, B, A
/// ```
fn in_fifo_order() -> Vec<(u64, Event)> {
    vec![
        (0, request(C, 0)),
        (0, grant(C, 0, 0)),
        (1, request(B, 0)),
        (2, request(A, 0)),
        (3, unlock(C, 0, 0)),
        (3, grant(B, 0, 0)),
        (5, unlock(B, 0, 0)),
        (5, grant(A, 0, 0)),
        (7, unlock(A, 0, 0)),
        (8, Event::End),
    ]
}

/// The same for lock 1 in the order of priority.
fn by_priority() -> Vec<(u64, Event)> {
    vec![
        (0, request(C, 1)),
        (0, grant(C, 1, 0)),
        (1, request(B, 1)),
        (2, request(A, 1)),
        (3, unlock(C, 1, 0)),
        (3, grant(A, 1, 0)),
        (5, unlock(A, 1, 0)),
        (5, grant(B, 1, 0)),
        (6, unlock(B, 1, 0)),
    ]
}

#[test]
fn grants_in_the_order_of_the_lock_are_legal() {
    for events in [in_fifo_order(), by_priority()] {
        let report = judge(&events);
        assert!(report.is_clean(), "{report}");
    }
}

#[test]
fn a_lock_is_granted_in_its_order() {
    let mut fifo = in_fifo_order();
    (fifo[5], fifo[6], fifo[7], fifo[8]) =
        ((3, grant(A, 0, 0)), (5, unlock(A, 0, 0)), (5, grant(B, 0, 0)), (7, unlock(B, 0, 0)));
    assert_eq!(only(&judge(&fifo)), (3, Some(A), Problem::GrantOrder { lock: L[0], earlier: B }));
    let mut priority = by_priority();
    (priority[5], priority[6], priority[7], priority[8]) =
        ((3, grant(B, 1, 0)), (5, unlock(B, 1, 0)), (5, grant(A, 1, 0)), (6, unlock(A, 1, 0)));
    assert_eq!(only(&judge(&priority)), (3, Some(B), Problem::GrantOrder { lock: L[1], earlier: A }));
}

#[test]
fn the_order_of_priority_is_that_of_effective_priorities() {
    let mut events = by_priority();
    // B inherits a deadline of 5 before the lock is free.
    events.insert(4, (2, priority(B, 5, 0)));
    assert_eq!(only(&judge(&events)), (3, Some(A), Problem::GrantOrder { lock: L[1], earlier: B }));
}

/// C may be restricted to GPU 1 when B, which asked later, is granted GPU 0; not if it is granted GPU 0 in the end.
#[test]
fn no_job_of_a_pool_gets_the_gpu_that_an_earlier_request_waits_for() {
    let events = |lock: u16, last: u16| {
        [
            (0, request(A, lock)),
            (0, grant(A, lock, 1)),
            (0, request(C, lock)),
            (0, request(B, lock)),
            (0, grant(B, lock, 0)),
            (1, unlock(A, lock, 1)),
            (1, unlock(B, lock, 0)),
            (1, grant(C, lock, last)),
            (2, unlock(C, lock, last)),
        ]
    };
    let orders = |lock: u16, last: u16| {
        let report = judge(&events(lock, last));
        let orders = report.violations.iter().filter(|found| matches!(found.what, Problem::GrantOrder { .. }));
        orders.map(|found| (found.at.0 / UNIT.0, found.job, found.what)).collect::<Vec<_>>()
    };
    assert!(judge(&events(3, 1)).is_clean());
    assert_eq!(orders(3, 0), [(0, Some(B), Problem::GrantOrder { lock: L[3], earlier: C })]);
    // C may have waited in the queue of GPU 1, and been moved to the other one in the end.
    assert_eq!([orders(2, 1), orders(2, 0)], [[], []]);
}

#[test]
fn a_k_fmlp_of_one_gpu_is_granted_in_the_order_of_requests() {
    let mut header = header();
    header.locks[2] =
        LockInfo { kind: LockKind::KFmlp { gpus: vec![GpuId(0)] }, replicas: 1, ..header.locks[2].clone() };
    let events = [
        (0, request(A, 2)),
        (0, grant(A, 2, 0)),
        (0, request(C, 2)),
        (0, request(B, 2)),
        (1, unlock(A, 2, 0)),
        (1, grant(B, 2, 0)),
        (2, unlock(B, 2, 0)),
        (2, grant(C, 2, 0)),
        (3, unlock(C, 2, 0)),
    ];
    let report = check::legality(&header, &records(&events), |_| None);
    assert_eq!(only(&report), (1, Some(B), Problem::GrantOrder { lock: L[2], earlier: C }));
}

#[test]
fn a_replica_has_one_holder_and_exists() {
    let held = [(0, request(A, 2)), (0, grant(A, 2, 0)), (1, request(B, 2))];
    let both = [&held[..], &[(1, grant(B, 2, 1))]].concat();
    assert!(judge(&both).is_clean(), "another replica");
    let same = [&held[..], &[(1, grant(B, 2, 0))]].concat();
    assert_eq!(only(&judge(&same)), (1, Some(B), Problem::LockHeld { lock: L[2], replica: R[0], by: A }));
    let beyond = [&held[..], &[(1, grant(B, 2, 2))]].concat();
    assert_eq!(only(&judge(&beyond)), (1, Some(B), Problem::UnknownReplica { lock: L[2], replica: R[2] }));
    assert_eq!(only(&judge(&[(0, request(A, 9))])).2, Problem::UnknownLock { lock: LockId(9) });
}

#[test]
fn a_job_is_granted_what_it_asked_for_and_unlocks_what_it_holds() {
    assert_eq!(only(&judge(&[(0, grant(A, 0, 0))])).2, Problem::NotRequested { lock: L[0] });
    assert_eq!(only(&judge(&[(0, withdraw(A, 0))])).2, Problem::NotRequested { lock: L[0] });
    assert_eq!(only(&judge(&[(0, unlock(A, 0, 0))])).2, Problem::NotHeld { lock: L[0], replica: R[0] });
    let held = [(0, request(A, 0)), (0, grant(A, 0, 0)), (1, request(B, 0))];
    let twice = [&held[..], &[(2, request(B, 2))]].concat();
    assert_eq!(only(&judge(&twice)), (2, Some(B), Problem::RequestedTwice { lock: L[0] }));
    let again = [&held[..], &[(2, request(A, 0))]].concat();
    assert_eq!(only(&judge(&again)), (2, Some(A), Problem::RequestedTwice { lock: L[0] }));
    let gives_up = [&held[..], &[(2, withdraw(B, 0)), (3, unlock(A, 0, 0))]].concat();
    assert!(judge(&gives_up).is_clean());
}

#[test]
fn no_job_waits_for_a_free_lock() {
    let mut late = in_fifo_order();
    // B's grant comes a unit after C's unlock.
    late[5].0 = 4;
    let idle = |replica| Problem::ReplicaIdle { lock: L[0], replica };
    assert_eq!(only(&judge(&late)), (3, Some(B), idle(R[0])));
    let never = [(0, request(A, 0)), (1, Event::End)];
    assert_eq!(only(&judge(&never)), (0, Some(A), idle(R[0])));
}

#[test]
fn a_replica_granted_in_the_end_was_not_free_before() {
    let begin = [
        (0, request(A, 2)),
        (0, grant(A, 2, 0)),
        (0, request(B, 2)),
        (0, grant(B, 2, 1)),
        (1, request(C, 2)),
        (2, unlock(A, 2, 0)),
    ];
    let other = [&begin[..], &[(5, unlock(B, 2, 1)), (5, grant(C, 2, 1))]].concat();
    assert!(judge(&other).is_clean(), "it may have named this GPU");
    let same = [&begin[..], &[(5, grant(C, 2, 0))]].concat();
    assert_eq!(only(&judge(&same)), (5, Some(C), Problem::ReplicaIdle { lock: L[2], replica: R[0] }));
    let mut header = header();
    header.locks[2].kind = LockKind::Tokens { gpus: vec![GpuId(0), GpuId(1)] };
    let report = check::legality(&header, &records(&same), |_| None);
    assert!(report.is_clean(), "too many requests may be in the queues of tokens: {report}");
}

#[test]
fn a_job_completes_holding_and_wanting_nothing() {
    let run =
        |middle: &[(u64, Event)]| [&[(0, ready(A)), (0, dispatch(0, A))], middle, &[(3, complete(0, A))]].concat();
    let held = run(&[(1, request(A, 0)), (1, grant(A, 0, 0))]);
    assert_eq!(only(&judge(&held)), (3, Some(A), Problem::CompletedHolding { lock: L[0] }));
    let other = [(0, request(B, 0)), (0, grant(B, 0, 0)), (3, request(A, 0))];
    assert_eq!(only(&judge(&run(&other))), (3, Some(A), Problem::CompletedWaiting { lock: L[0] }));
    assert!(judge(&run(&[(1, request(A, 0)), (1, grant(A, 0, 0)), (2, unlock(A, 0, 0))])).is_clean());
}

/// A has the CPU from 0 to 3, and waits for lock 0, which B holds, from 1 on: until 2 if it spins, or its grant comes.
#[test]
fn a_job_does_not_execute_while_it_waits() {
    let until = |wait: Event, over: Event| {
        let held = [(0, request(B, 0)), (0, grant(B, 0, 0)), (0, ready(A)), (0, dispatch(0, A)), (1, request(A, 0))];
        let end = [(2, unlock(B, 0, 0)), (2, grant(A, 0, 0)), (2, over), (3, unlock(A, 0, 0)), (3, complete(0, A))];
        [&held[..], &[(1, wait)], &end[..]].concat()
    };
    let spins = until(Event::SpinBegin { cpu: CpuId(0), job: A }, Event::SpinEnd { cpu: CpuId(0), job: A });
    assert!(judge(&spins).is_clean(), "{}", judge(&spins));
    let executes: Vec<_> = spins
        .into_iter()
        .filter(|(_, event)| !matches!(event, Event::SpinBegin { .. } | Event::SpinEnd { .. }))
        .collect();
    assert_eq!(only(&judge(&executes)), (1, Some(A), Problem::ExecutesWaiting { lock: L[0] }));
    let live = TraceHeader { origin: Origin::Live, ..header() };
    assert!(check::legality(&live, &records(&executes), |_| None).is_clean(), "a thread is a moment in the kernel");
}

/// ```text
///   EE    . . A A B B
///   CE0   A A . . A A
/// ```
#[test]
fn an_engine_runs_one_operation_and_a_job_one_after_another() {
    const EE: Engine = Engine::Execution;
    const CE: Engine = Engine::Copy(0);
    let legal = [
        (0, engine_begin(0, CE, A)),
        (2, engine_end(0, CE, A)),
        (2, engine_begin(0, EE, A)),
        (4, engine_end(0, EE, A)),
        (4, engine_begin(0, EE, B)),
        (4, engine_begin(0, CE, A)),
    ];
    assert!(judge(&legal).is_clean());
    let gpu = GpuId(0);
    let busy = [&legal[..], &[(5, engine_begin(0, EE, C))]].concat();
    assert_eq!(only(&judge(&busy)), (5, Some(C), Problem::EngineBusy { gpu, engine: EE, by: B }));
    let overlap = [(0, engine_begin(0, CE, A)), (1, engine_begin(0, EE, A))];
    assert_eq!(only(&judge(&overlap)), (1, Some(A), Problem::StreamOrder { gpu, engine: CE }));
    let peers = [(0, engine_begin(0, CE, A)), (0, engine_begin(1, CE, A))];
    assert!(judge(&peers).is_clean(), "a copy between GPUs");
    let apart = [(0, engine_begin(0, CE, A)), (1, engine_begin(1, CE, A))];
    assert_eq!(
        only(&judge(&apart)),
        (1, Some(A), Problem::StreamOrder { gpu, engine: CE }),
        "simulated it begins at once"
    );
    let live = TraceHeader { origin: Origin::Live, ..header() };
    let of_live = |events: &[(u64, Event)]| check::legality(&live, &records(events), |_| None);
    assert!(of_live(&apart).is_clean(), "live each GPU begins by itself");
    let computes = [(0, engine_begin(0, CE, A)), (1, engine_begin(1, EE, A))];
    assert_eq!(only(&of_live(&computes)).2, Problem::StreamOrder { gpu, engine: CE });
    let mut unarbitrated = header();
    unarbitrated.locks.truncate(1);
    let of_driver = |events: &[(u64, Event)]| check::legality(&unarbitrated, &records(events), |_| None);
    assert!(of_driver(&computes).is_clean(), "no lock says which GPU a job has: it has a stream of each");
    assert_eq!(only(&of_driver(&overlap)).2, Problem::StreamOrder { gpu, engine: CE });
    assert_eq!(only(&judge(&[(0, engine_end(0, CE, A))])).2, Problem::NoOperation { gpu, engine: CE });
    let engine = Engine::Copy(1);
    assert_eq!(only(&judge(&[(0, engine_begin(0, engine, A))])).2, Problem::UnknownEngine { gpu, engine });
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   A A b ~ b A        ~ an interrupt; A executes for 3
/// ```
#[test]
fn a_bottom_half_on_its_stack_is_no_execution_of_the_job() {
    let events = [
        (0, ready(A)),
        (0, dispatch(0, A)),
        (2, half_begin(0, B)),
        (3, overhead(0, OverheadKind::TopHalf, 1)),
        (5, half_end(0, B)),
        (6, complete(0, A)),
    ];
    let report = check::legality(&header(), &records(&events), |_| Some(Nanos(3 * UNIT.0)));
    assert!(report.is_clean(), "{report}");
    let nested = [&events[..3], &[(3, half_begin(0, C))]].concat();
    assert_eq!(only(&judge(&nested)), (3, Some(C), Problem::BottomHalvesNest));
    assert_eq!(only(&judge(&[(3, half_end(0, C))])), (3, Some(C), Problem::NoBottomHalf));
    for (last, act) in [
        (preempt(0, A), Act::Preempt),
        (suspend(0, A), Act::Suspend),
        (section_begin(0, A), Act::NonPreemptiveBegin),
        (complete(0, A), Act::Complete),
    ] {
        let acts = [&events[..3], &[(3, last)]].concat();
        assert_eq!(only(&judge(&acts)), (3, Some(A), Problem::StackBorrowed { act }));
    }
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   A A s . . s A        s spins, preempted in between: A executes for 3
/// ```
#[test]
fn spinning_is_no_execution_and_outlives_a_preemption() {
    let events = [
        (0, ready(A)),
        (0, dispatch(0, A)),
        (2, spin_begin(0, A)),
        (3, preempt(0, A)),
        (5, dispatch(0, A)),
        (6, spin_end(0, A)),
        (7, complete(0, A)),
    ];
    let report = check::legality(&header(), &records(&events), |_| Some(Nanos(3 * UNIT.0)));
    assert!(report.is_clean(), "{report}");
}

/// The thread's job, released twice within its period, with deadlines of its owners.
fn thread_beside(owner: JobId) -> Vec<(u64, Event)> {
    vec![
        (0, ready(A)),
        (0, dispatch(0, A)),
        (1, release(T, 10)),
        (1, serve(T, owner)),
        (1, ready(T)),
        (1, dispatch(1, T)),
        (2, complete(1, T)),
        (3, release(job(3, 1), 10)),
        (4, Event::End),
    ]
}

#[test]
fn under_klmirqd_no_thread_runs_beside_its_owner() {
    let report = judge(&thread_beside(B));
    assert!(report.is_clean(), "an interrupt thread has no period: {report}");
    assert_eq!(only(&judge(&thread_beside(A))), (1, Some(T), Problem::BesideOwner { owner: A }));
    let elsewhere = TraceHeader { handling: InterruptHandling::ProcessAware, ..header() };
    let records = records(&thread_beside(A));
    assert!(check::legality(&elsewhere, &records, |_| None).is_clean(), "only klmirqd promises that");
    let mut apart = header();
    apart.clusters = vec![vec![CpuId(0)], vec![CpuId(1), CpuId(2)]];
    apart.tasks[3].cluster = 1;
    assert!(check::legality(&apart, &records, |_| None).is_clean(), "schedulers of two clusters know nothing of it");
    assert_eq!(only(&judge(&[(0, serve(B, A))])), (0, Some(B), Problem::NoThread));
}

#[test]
fn a_process_about_to_be_switched_out_is_not_beside_its_thread() {
    let mut events = thread_beside(A);
    events.insert(5, (1, overhead(0, OverheadKind::Scheduling, 1)));
    let report = judge(&events);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn bottom_halves_have_no_deadlines_to_miss() {
    let events = [(1, release(T, 2)), (1, serve(T, A)), (1, ready(T)), (1, dispatch(1, T)), (5, complete(1, T))];
    let header = header();
    assert!(check::deadlines(&header, &trace(&events)).is_clean());
}

/// ```text
///          0 1 2 3 4
///   cpu0   A A A A A        B has A's deadline, a ceiling: C, more urgent than B in its own right, waits
///   cpu1   B B B B B
/// ```
#[test]
fn the_policy_ranks_by_effective_priorities() {
    let mut header = header();
    header.clusters = vec![vec![CpuId(0), CpuId(1)]];
    let begin = [(0, release(C, 19)), (0, ready(A)), (0, ready(B)), (0, ready(C))];
    let links = [(0, link(0, A)), (0, dispatch(0, A)), (0, link(1, B)), (0, dispatch(1, B)), (3, Event::End)];
    let events = |is_raised: bool| {
        let raised = [(0, request(B, 4)), (0, grant(B, 4, 0)), (0, priority(B, 10, 0))];
        let jobs = [(0, release(A, 10)), (0, release(B, 20))];
        let raised = raised.into_iter().filter(|_| is_raised);
        trace(&jobs.into_iter().chain(begin).chain(raised).chain(links).collect::<Vec<_>>())
    };
    let report = check::policy(&header, &events(true));
    assert!(report.is_clean(), "{report}");
    let report = check::policy(&header, &events(false));
    assert!(matches!(only(&report).2, Problem::Inversion { waiting: C, .. }), "{report}");
}

/// ```text
///          0 1 2 3 4
///   cpu0   A A A A A        T, which serves A, has A's priority but waits; B runs
///   cpu1   B B B B B        C, suspended, has A's priority, too: a ceiling
/// ```
#[test]
fn under_klmirqd_a_thread_held_back_by_its_owner_does_not_wait() {
    let mut header = header();
    header.clusters = vec![vec![CpuId(0), CpuId(1)]];
    let events = |owner: JobId| {
        records(&[
            (0, ready(C)),
            (0, link(0, C)),
            (0, dispatch(0, C)),
            (0, request(C, 4)),
            (0, grant(C, 4, 0)),
            (0, priority(C, 10, 0)),
            (0, suspend(0, C)),
            (0, ready(A)),
            (0, ready(B)),
            (0, link(0, A)),
            (0, dispatch(0, A)),
            (0, link(1, B)),
            (0, dispatch(1, B)),
            (1, release(T, 40)),
            (1, serve(T, owner)),
            (1, priority(T, 10, 0)),
            (1, ready(T)),
            (3, Event::End),
        ])
    };
    let report = check::policy(&header, &events(A));
    assert!(report.is_clean(), "{report}");
    let report = check::policy(&header, &events(C));
    assert!(matches!(only(&report).2, Problem::Inversion { waiting: T, .. }), "{report}");
    header.handling = InterruptHandling::ProcessAware;
    assert!(!check::policy(&header, &events(A)).is_clean(), "elsewhere they are two");
}

/// ```text
///          0 1 2 3 4
///   cpu0   A b b b A        b is on the stack of A, which is relinked at 4; C runs
///   cpu1   C C C C C
/// ```
#[test]
fn a_job_whose_stack_is_borrowed_does_not_wait_for_a_cpu() {
    let mut header = header();
    header.clusters = vec![vec![CpuId(0), CpuId(1)]];
    let events = |borrowed: bool| {
        let all = [
            (0, ready(A)),
            (0, ready(C)),
            (0, link(0, A)),
            (0, dispatch(0, A)),
            (0, link(1, C)),
            (0, dispatch(1, C)),
            (1, half_begin(0, B)),
            (1, unlink(0)),
            (4, half_end(0, B)),
            (4, link(0, A)),
            (5, Event::End),
        ];
        let is_half = |event: Event| matches!(event, Event::BottomHalfBegin { .. } | Event::BottomHalfEnd { .. });
        records(&all.into_iter().filter(|&(_, event)| borrowed || !is_half(event)).collect::<Vec<_>>())
    };
    let report = check::policy(&header, &events(true));
    assert!(report.is_clean(), "{report}");
    assert!(!check::policy(&header, &events(false)).is_clean());
}
