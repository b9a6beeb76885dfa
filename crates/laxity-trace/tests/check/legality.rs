//! Every rule of a legal schedule, broken alone.

use super::check_reference::hand::*;
use super::check_reference::{Setup, UNIT, at};
use super::{A, B, costs, only};
use laxity_model::{CpuId, JobId, Nanos, OverheadKind, SignedNanos, TaskId};
use laxity_trace::check::{self, Act, LegalityCheck, Phase, Problem, Report};
use laxity_trace::{DeviceId, Event, LinuxClass, Origin, Record, Sink, TaskKind, TraceHeader};

const A1: JobId = job(0, 1);

/// T0: 4 units every 10 on cpu0 and cpu1, T1: 3 every 20 on the same, T2: on cpu2 alone.
fn header() -> TraceHeader {
    let mut setup = Setup::edf(2, &[(4, 10), (3, 20), (1, 30)], 0);
    setup.clusters = vec![2, 1];
    setup.tasks[2].cluster = 1;
    TraceHeader { costs: costs(), ..setup.header() }
}

fn judge(events: &[(u64, Event)]) -> Report {
    check::legality(&header(), &trace(events), |_| None)
}

/// ```text
///   cpu0   A A ~ ~ A ~ . . . .          ~ overhead, ^ release of A1 while A is suspended
///   cpu1   . B B . . . . . b A A1
/// ```
fn eventful() -> Vec<(u64, Event)> {
    vec![
        (0, release(A, 10)),
        (0, ready(A)),
        (0, dispatch(0, A)),
        (1, release(B, 21)),
        (1, ready(B)),
        (1, dispatch(1, B)),
        (2, overhead(0, OverheadKind::Release, 2)),
        (3, section_begin(1, B)),
        (3, section_end(1, B)),
        (3, preempt(1, B)),
        (5, overhead(0, OverheadKind::Tick, 1)),
        (6, suspend(0, A)),
        (8, dispatch(1, B)),
        (8, cache_delay(1, B, OverheadKind::CachePreemption, 1)),
        (10, release(A1, 20)),
        (10, complete(1, B)),
        (10, resume(A)),
        (10, dispatch(1, A)),
        (11, complete(1, A)),
        (11, ready(A1)),
        (11, lock_wait(1, 1)),
        (11, dispatch(1, A1)),
        (12, Event::End),
    ]
}

#[test]
fn preemption_migration_suspension_and_overheads_are_legal() {
    let cost = |id: JobId| Some(Nanos(if id == B { 3 } else { 4 } * UNIT.0));
    let report = check::legality(&header(), &trace(&eventful()), cost);
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_job_must_execute_for_its_cost_and_its_cache_delays() {
    // B executed 2 + 2 units, one of which refilled its cache.
    let cost = |_| Some(Nanos(4 * UNIT.0));
    let report = check::legality(&header(), &trace(&eventful()), cost);
    let what = Problem::WrongExecution { executed: Nanos(4 * UNIT.0), demand: Nanos(5 * UNIT.0) };
    assert_eq!(only(&report), (10, Some(CpuId(1)), Some(B), what));
    assert_eq!(report.to_string(), "at 10 ms T1.0 completes after 4 ms of execution, its demand is 5 ms\n");
}

#[test]
fn a_job_owes_nothing_for_the_cache_delays_of_its_predecessor() {
    let b1 = job(1, 1);
    let events = [
        (0, release(B, 20)),
        (0, ready(B)),
        (0, dispatch(0, B)),
        (0, cache_delay(0, B, OverheadKind::CacheMigration, 2)),
        (5, complete(0, B)),
        (20, release(b1, 40)),
        (20, ready(b1)),
        (20, dispatch(0, b1)),
        (23, complete(0, b1)),
    ];
    let report = check::legality(&header(), &trace(&events), |_| Some(Nanos(3 * UNIT.0)));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_simulated_job_of_unknown_cost_must_not_exceed_its_worst_case() {
    let events = [(0, release(B, 20)), (0, ready(B)), (0, dispatch(0, B)), (4, complete(0, B))];
    let what = Problem::ExceededWcet { executed: Nanos(4 * UNIT.0), limit: Nanos(3 * UNIT.0) };
    assert_eq!(only(&judge(&events)), (4, Some(CpuId(0)), Some(B), what));
    let live = TraceHeader { origin: Origin::Live, ..header() };
    assert!(check::legality(&live, &trace(&events), |_| None).is_clean(), "a live job may: that is its own problem");
}

#[test]
fn time_must_not_go_back() {
    let report = judge(&[(3, release(A, 13)), (2, ready(A))]);
    assert_eq!(only(&report), (2, None, None, Problem::TimeWentBack { latest: at(3) }));
}

#[test]
fn nothing_follows_the_end() {
    assert_eq!(only(&judge(&[(1, Event::End), (1, release(A, 11))])), (1, None, None, Problem::AfterEnd));
}

#[test]
fn jobs_are_released_in_index_order() {
    let report = judge(&[(0, release(A, 10)), (10, release(job(0, 2), 20))]);
    assert_eq!(only(&report), (10, None, Some(job(0, 2)), Problem::ReleasedOutOfOrder { expected: 1 }));
    let report = judge(&[(0, release(A1, 10))]);
    assert_eq!(only(&report).3, Problem::ReleasedOutOfOrder { expected: 0 });
    let live = TraceHeader { origin: Origin::Live, ..header() };
    let report = check::legality(&live, &trace(&[(0, release(A1, 10)), (0, ready(A1))]), |_| None);
    assert!(report.is_clean(), "a recording may begin with any job: {report}");
}

#[test]
fn a_live_recording_that_shows_all_jobs_begins_with_the_first() {
    let live = TraceHeader { origin: Origin::Live, ..header() };
    let judge = |first: JobId| {
        let mut check = LegalityCheck::new(&live).with_all_jobs();
        check.record(at(0), release(first, 10));
        check.finish()
    };
    assert!(judge(A).is_clean());
    assert_eq!(only(&judge(A1)).3, Problem::ReleasedOutOfOrder { expected: 0 });
}

/// Its program says when it runs; a simulated one is released by time.
#[test]
fn a_live_source_may_be_released_before_it_arrives() {
    let mut simulated = header();
    simulated.tasks[0].kind = TaskKind::Node { graph: 0, source: true };
    let early = trace(&[(2, release(A, 13))]);
    assert!(!check::legality(&simulated, &early, |_| None).is_clean());
    let live = TraceHeader { origin: Origin::Live, ..simulated };
    assert!(check::legality(&live, &early, |_| None).is_clean());
}

#[test]
fn a_job_is_released_no_earlier_than_it_arrives() {
    assert_eq!(only(&judge(&[(2, release(A, 13))])).3, Problem::ReleasedBeforeArrival { arrival: at(3) });
    assert!(judge(&[(5, release(A, 13))]).is_clean(), "a jitter of 2");
}

#[test]
fn arrivals_are_a_period_apart() {
    let report = judge(&[(0, release(A, 10)), (9, release(A1, 19))]);
    let separation = SignedNanos(9 * UNIT.0 as i64);
    assert_eq!(only(&report).3, Problem::ArrivalsTooClose { separation, period: Nanos(10 * UNIT.0) });
    let jitter = judge(&[(5, release(A, 10)), (10, release(A1, 20))]);
    assert!(jitter.is_clean(), "releases may be closer: {jitter}");
}

/// The violation of a job that is out of turn, with the phase it was in.
fn out_of_turn(events: &[(u64, Event)]) -> (Act, Phase) {
    match only(&judge(events)).3 {
        Problem::OutOfTurn { act, phase } => (act, phase),
        other => panic!("out of turn expected, not {other:?}"),
    }
}

#[test]
fn a_job_skips_no_phase_of_its_life() {
    let released = [(0, release(A, 10))];
    let is_ready = [(0, release(A, 10)), (0, ready(A))];
    let running = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A))];
    let suspended = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (1, suspend(0, A))];
    let complete_ = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (1, complete(0, A))];
    let cases: [(&[_], _, _, _); 16] = [
        (&[], ready(A), Act::Ready, Phase::Unreleased),
        (&[], dispatch(0, A), Act::Dispatch, Phase::Unreleased),
        (&released, dispatch(0, A), Act::Dispatch, Phase::Released),
        (&released, complete(0, A), Act::Complete, Phase::Released),
        (&released, resume(A), Act::Resume, Phase::Released),
        (&is_ready, ready(A), Act::Ready, Phase::Ready),
        (&is_ready, preempt(0, A), Act::Preempt, Phase::Ready),
        (&is_ready, suspend(0, A), Act::Suspend, Phase::Ready),
        (&is_ready, cache_delay(0, A, OverheadKind::CacheMigration, 1), Act::CacheDelay, Phase::Ready),
        (&running, ready(A), Act::Ready, Phase::Running),
        (&running, section_end(0, A), Act::NonPreemptiveEnd, Phase::Running),
        (&suspended, dispatch(0, A), Act::Dispatch, Phase::Suspended),
        (&suspended, ready(A), Act::Ready, Phase::Suspended),
        (&complete_, dispatch(0, A), Act::Dispatch, Phase::Complete),
        (&complete_, complete(0, A), Act::Complete, Phase::Complete),
        (&complete_, ready(A1), Act::Ready, Phase::Unreleased),
    ];
    for (before, last, act, phase) in cases {
        let events: Vec<_> = before.iter().copied().chain([(2, last)]).collect();
        assert_eq!(out_of_turn(&events), (act, phase), "{last:?}");
    }
}

#[test]
fn jobs_of_a_task_are_sequential() {
    let mut events = vec![(0, release(A, 10)), (0, ready(A)), (10, release(A1, 20)), (10, ready(A1))];
    let what = |act| Problem::BeforePredecessor { act, predecessor: A };
    assert_eq!(only(&judge(&events)).3, what(Act::Ready));
    events.pop();
    events.push((10, dispatch(0, A1)));
    let report = judge(&events);
    assert_eq!(only(&report), (10, Some(CpuId(0)), Some(A1), what(Act::Dispatch)));
    assert_eq!(report.to_string(), "at 10 ms T0.1 is dispatched before T0.0 is complete\n");
}

#[test]
fn a_cpu_has_one_job() {
    let both_ready = [(0, release(A, 10)), (0, ready(A)), (0, release(B, 20)), (0, ready(B))];
    let events: Vec<_> = both_ready.into_iter().chain([(0, dispatch(0, A)), (1, dispatch(0, B))]).collect();
    let report = judge(&events);
    assert_eq!(only(&report), (1, Some(CpuId(0)), Some(B), Problem::CpuOccupied { by: A }));
    assert_eq!(report.to_string(), "at 1 ms cpu0 gets T1.0 while it has T0.0\n");
}

#[test]
fn a_job_has_one_cpu() {
    let running = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A))];
    for (last, act) in [
        (dispatch(1, A), Act::Dispatch),
        (preempt(1, A), Act::Preempt),
        (suspend(1, A), Act::Suspend),
        (complete(1, A), Act::Complete),
        (section_begin(1, A), Act::NonPreemptiveBegin),
    ] {
        let events: Vec<_> = running.into_iter().chain([(1, last)]).collect();
        assert_eq!(only(&judge(&events)), (1, Some(CpuId(1)), Some(A), Problem::Elsewhere { act, on: CpuId(0) }));
    }
}

#[test]
fn a_job_stays_in_its_cluster() {
    let report = judge(&[(0, release(A, 10)), (0, ready(A)), (0, dispatch(2, A))]);
    let what = Problem::OutsideCluster { act: Act::Dispatch, cluster: 0 };
    assert_eq!(only(&report), (0, Some(CpuId(2)), Some(A), what));
}

#[test]
fn a_non_preemptive_section_ends_before_its_job_leaves() {
    let inside = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (1, section_begin(0, A))];
    for (last, act) in [(preempt(0, A), Act::Preempt), (suspend(0, A), Act::Suspend)] {
        let events: Vec<_> = inside.into_iter().chain([(2, last)]).collect();
        assert_eq!(only(&judge(&events)).3, Problem::LeftNonPreemptive { act });
    }
    let events: Vec<_> = inside.into_iter().chain([(2, complete(0, A))]).collect();
    assert!(judge(&events).is_clean(), "completion ends the section");
}

/// B stands for an interrupt thread, which live is above all jobs.
#[test]
fn an_interrupt_thread_takes_the_cpu_of_a_live_section_which_goes_on_there() {
    let mut live = TraceHeader { origin: Origin::Live, ..header() };
    live.tasks[B.task.index()].kind = TaskKind::Thread;
    let found = |header: &TraceHeader, last: &[(u64, Event)]| {
        let inside = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (1, section_begin(0, A))];
        let thread = [(2, release(B, 22)), (2, ready(B)), (2, preempt(0, A))];
        let events: Vec<_> = inside.into_iter().chain(thread).chain(last.iter().copied()).collect();
        check::legality(header, &trace(&events), |_| None)
    };
    let by_thread = |next: u16| [(2, dispatch(0, B)), (3, complete(0, B)), (3, dispatch(next, A)), (9, Event::End)];
    assert!(found(&live, &by_thread(0)).is_clean());
    let (left, moved) = ([Act::Preempt, Act::Dispatch]).map(|act| Problem::LeftNonPreemptive { act }).into();
    assert_eq!(only(&found(&live, &by_thread(1))), (3, Some(CpuId(1)), Some(A), moved));
    let by_linux = TraceHeader { linux_class: Some(LinuxClass::Fifo), ..live.clone() };
    let at_once = [(2, dispatch(1, A)), (2, dispatch(0, B)), (3, complete(0, B)), (9, Event::End)];
    assert!(found(&by_linux, &by_thread(1)).is_clean() && found(&by_linux, &at_once).is_clean());
    assert_eq!(only(&found(&by_linux, &[(3, dispatch(1, A))])), (2, Some(CpuId(0)), Some(A), left));
    assert_eq!(only(&found(&live, &[(3, dispatch(0, A))])), (2, Some(CpuId(0)), Some(A), left));
    assert_eq!(only(&found(&live, &[(3, Event::End)])), (2, Some(CpuId(0)), Some(A), left));
    let job = live.tasks[A.task.index()].kind;
    live.tasks[B.task.index()].kind = job;
    assert_eq!(only(&found(&live, &by_thread(0))), (2, Some(CpuId(0)), Some(A), left));
}

/// B has the CPU of A, which Linux moves to a CPU that an interrupt thread takes next.
#[test]
fn linux_lets_the_job_of_a_live_section_go_on_soon_where_there_are_interrupt_threads() {
    let mut live = TraceHeader { origin: Origin::Live, linux_class: Some(LinuxClass::Fifo), ..header() };
    let found = |header: &TraceHeader, micros: u64| {
        let inside = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (1, section_begin(0, A))];
        let other = [(1, release(B, 21)), (1, ready(B)), (2, preempt(0, A)), (2, dispatch(0, B))];
        let mut records = trace(&inside.into_iter().chain(other).collect::<Vec<_>>());
        let back = at(2).saturating_add(Nanos::from_micros(micros));
        records.extend([preempt(0, B), dispatch(0, A)].map(|event| Record { at: back, event }));
        check::legality(header, &records, |_| None)
    };
    let left = (2, Some(CpuId(0)), Some(A), Problem::LeftNonPreemptive { act: Act::Preempt });
    assert!(found(&live, 0).is_clean());
    assert_eq!(only(&found(&live, 1)), left, "without interrupt threads it keeps its CPU");
    live.tasks[2].kind = TaskKind::Thread;
    assert!(found(&live, 200).is_clean());
    assert_eq!(only(&found(&live, 201)), left);
}

/// Under Laxity's scheduler the thread of B, which lost its CPU, may say on any CPU that the job is complete.
#[test]
fn a_job_takes_the_cpu_of_a_live_section_for_no_time_under_our_scheduler() {
    let linked = TraceHeader { origin: Origin::Live, is_linked: true, ..header() };
    let found = |header: &TraceHeader, last: &[(u64, Event)]| {
        let inside = [(0, release(A, 10)), (0, ready(A)), (0, dispatch(0, A)), (1, section_begin(0, A))];
        let other = [(2, release(B, 22)), (2, ready(B)), (3, preempt(0, A)), (3, dispatch(0, B))];
        let events: Vec<_> = inside.into_iter().chain(other).chain(last.iter().copied()).collect();
        check::legality(header, &trace(&events), |_| None)
    };
    let passing = |until, next: u16| [(until, complete(0, B)), (until, dispatch(next, A)), (9, Event::End)];
    assert!(found(&linked, &passing(3, 0)).is_clean());
    let (left, moved) = ([Act::Preempt, Act::Dispatch]).map(|act| Problem::LeftNonPreemptive { act }).into();
    assert_eq!(only(&found(&linked, &passing(4, 0))), (3, Some(CpuId(0)), Some(A), left));
    assert_eq!(only(&found(&linked, &passing(3, 1))), (3, Some(CpuId(1)), Some(A), moved));
    assert_eq!(only(&found(&linked, &[(3, complete(0, B)), (9, Event::End)])), (3, Some(CpuId(0)), Some(A), left));
    for header in [TraceHeader { is_linked: false, ..linked.clone() }, header()] {
        assert_eq!(only(&found(&header, &passing(3, 0))), (3, Some(CpuId(0)), Some(A), left));
    }
}

#[test]
fn a_simulated_overhead_takes_no_longer_than_it_costs() {
    let (kind, duration, cost) = (OverheadKind::Tick, Nanos(10 * UNIT.0), Nanos(9 * UNIT.0));
    let report = judge(&[(0, overhead(0, kind, 10))]);
    assert_eq!(only(&report), (0, Some(CpuId(0)), None, Problem::ExceededCost { kind, duration, cost }));
    let ipi = Event::Ipi { from: CpuId(0), to: CpuId(1), latency: UNIT };
    let (kind, duration, cost) = (OverheadKind::IpiLatency, UNIT, Nanos::ZERO);
    assert_eq!(only(&judge(&[(0, ipi)])).3, Problem::ExceededCost { kind, duration, cost });
    let live = TraceHeader { origin: Origin::Live, ..header() };
    assert!(check::legality(&live, &trace(&[(0, ipi)]), |_| None).is_clean());
}

#[test]
fn a_cpu_is_in_one_overhead_at_a_time() {
    let events = [(0, overhead(0, OverheadKind::Tick, 2)), (1, lock_wait(0, 1))];
    assert_eq!(only(&judge(&events)), (1, Some(CpuId(0)), None, Problem::OverheadsOverlap { until: at(2) }));
    let sequence = [(0, overhead(0, OverheadKind::Tick, 2)), (2, lock_wait(0, 1)), (2, lock_wait(1, 1))];
    assert!(judge(&sequence).is_clean());
}

#[test]
fn what_the_header_does_not_know_is_named() {
    assert_eq!(only(&judge(&[(0, release(job(3, 0), 10))])).3, Problem::UnknownTask);
    assert_eq!(only(&judge(&[(0, dispatch(0, job(3, 0)))])).3, Problem::UnknownTask);
    assert_eq!(only(&judge(&[(0, unlink(3))])).3, Problem::UnknownCpu);
    assert_eq!(only(&judge(&[(0, overhead(9, OverheadKind::Tick, 1))])).3, Problem::UnknownCpu);
    let device = DeviceId(0);
    let unknown = [
        (Event::Link { cpu: CpuId(0), job: Some(job(3, 0)) }, Problem::UnknownTask),
        (Event::Priority { job: A, level: 1, of: TaskId(3) }, Problem::UnknownTask),
        (Event::Replenish { task: TaskId(3), budget: UNIT, deadline: at(9) }, Problem::UnknownTask),
        (Event::Interrupt { cpu: CpuId(0), device, job: None }, Problem::UnknownDevice { device }),
        (Event::Serve { thread: A, device, job: Some(job(3, 0)) }, Problem::UnknownTask),
        (Event::Serve { thread: A, device, job: None }, Problem::UnknownDevice { device }),
    ];
    for (event, problem) in unknown {
        let report = judge(&[(0, release(A, 10)), (1, event)]);
        assert!(report.violations.iter().any(|found| found.what == problem), "{event:?}: {report}");
    }
}

#[test]
fn a_hopeless_trace_is_counted_but_not_listed_without_end() {
    let events = vec![(0, ready(A)); Report::LISTED_MAX + 5];
    let report = judge(&events);
    assert_eq!((report.violations.len(), report.unlisted, report.count()), (1_000, 5, 1_005));
    assert!(report.to_string().ends_with("\nand 5 more\n"));
}

#[test]
fn late_and_incomplete_jobs_miss_their_deadlines() {
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, dispatch(0, A)),
        (10, release(A1, 20)),
        (11, complete(0, A)),
        (0, release(B, 21)),
        (20, Event::End),
    ];
    let report = check::deadlines(&header(), &trace(&events));
    assert_eq!(
        report.to_string(),
        "at 11 ms T0.0 completes 1 ms after its deadline 10 ms\nat 20 ms T0.1 is incomplete, its deadline was 20 ms\n"
    );
    let punctual = [(0, release(A, 10)), (10, complete(0, A)), (19, release(A1, 20)), (19, Event::End)];
    assert!(check::deadlines(&header(), &trace(&punctual)).is_clean(), "at the deadline is in time");
}
