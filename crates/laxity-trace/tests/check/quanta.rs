//! Every rule of a policy that decides at quanta, broken alone.

use super::check_reference::hand::*;
use super::check_reference::{Setup, UNIT, at};
use super::policy::{deadline, judge, setup, with_overheads};
use super::{A, B, C, only};
use laxity_model::{CpuId, Nanos, OverheadKind, Quanta};
use laxity_trace::check::Problem;
use laxity_trace::{Event, TraceHeader};

/// Two CPUs, quanta of 4 units.
fn quantum_driven(quanta: Quanta) -> TraceHeader {
    Setup { quantum: Some(4), quanta, ..setup(2) }.header()
}

/// A from 0; B is released at 1 and linked to cpu1 at `linked`.
fn second_job_linked_at(linked: u64) -> Vec<(u64, Event)> {
    vec![
        (0, release(A, 10)),
        (0, ready(A)),
        (0, link(0, A)),
        (0, dispatch(0, A)),
        (1, release(B, 21)),
        (1, ready(B)),
        (linked, link(1, B)),
        (linked, dispatch(1, B)),
        (9, Event::End),
    ]
}

#[test]
fn quantum_driven_jobs_wait_for_the_next_quantum_and_no_longer() {
    let header = quantum_driven(Quanta::Aligned);
    assert!(judge(&header, &second_job_linked_at(4)).is_clean());
    let early = judge(&header, &second_job_linked_at(3));
    let what = Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) };
    assert_eq!(only(&early), (3, Some(CpuId(1)), Some(B), what));
    let late = judge(&header, &second_job_linked_at(8));
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&late), (4, Some(CpuId(1)), None, what));
}

/// A runs as C and gives that up at 4, where a quantum began that was decided for it; B waits until 8 and no longer.
#[test]
fn a_quantum_is_decided_by_the_priorities_of_its_beginning() {
    let header = Setup { quantum: Some(4), ..setup(1) }.header();
    let given_up = |at, end| {
        let mut events = vec![
            (0, release(A, 20)),
            (0, ready(A)),
            (0, Event::Priority { job: A, level: 5 * UNIT.0, of: C.task }),
            (0, link(0, A)),
            (0, dispatch(0, A)),
            (1, release(B, 10)),
            (1, ready(B)),
            (3, preempt(0, A)),
            (4, dispatch(0, A)),
            (at, Event::Priority { job: A, level: 20 * UNIT.0, of: A.task }),
            (end, Event::End),
        ];
        events.sort_by_key(|&(at, _)| at);
        events
    };
    let what = Problem::Inversion { urgency: deadline(20), waiting: B, waiting_urgency: deadline(10) };
    // The CPU runs nothing from 3 to 4, which is another violation.
    let inversions = |events: &[(u64, Event)]| {
        let found = judge(&header, events).violations;
        found
            .iter()
            .filter(|violation| violation.what == what)
            .map(|violation| violation.at.0 / UNIT.0)
            .collect::<Vec<_>>()
    };
    assert!(inversions(&given_up(4, 8)).is_empty());
    assert_eq!(inversions(&given_up(4, 9)), [8]);
    assert_eq!(inversions(&given_up(3, 7)), [4]);
}

#[test]
fn staggered_quanta_begin_late_by_the_cpus_share() {
    // Quanta begin at 0, 4, 8 on cpu0 and at 2, 6, 10 on cpu1.
    let header = quantum_driven(Quanta::Staggered);
    assert!(judge(&header, &second_job_linked_at(2)).is_clean());
    assert_eq!(only(&judge(&header, &second_job_linked_at(6))).0, 2);
    let off = judge(&header, &second_job_linked_at(4));
    let kinds: Vec<_> = off.violations.iter().map(|violation| (violation.at, violation.what)).collect();
    let waits = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(kinds, [(at(2), waits), (at(4), Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) })]);
}

/// As `second_job_linked_at`, with tick handlers of one unit on both CPUs.
fn with_ticks(linked: u64) -> Vec<(u64, Event)> {
    let mut events = second_job_linked_at(linked);
    events.truncate(events.len() - 1);
    // A is linked by the first tick handler and dispatched after it.
    events[2].0 = 1;
    events[3].0 = 1;
    for boundary in [0, 4, 8, 12] {
        for cpu in [0, 1] {
            events.push((boundary, overhead(cpu, OverheadKind::Tick, 1)));
        }
    }
    events.push((14, Event::End));
    // Stable: the handler's record precedes the link it decides at the same time only if it began before.
    events.sort_by_key(|&(time, _)| time);
    events
}

#[test]
fn tick_handlers_that_take_time_link_while_they_run() {
    let header = with_overheads(quantum_driven(Quanta::Aligned));
    assert!(judge(&header, &with_ticks(5)).is_clean());
    let what = Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) };
    assert_eq!(only(&judge(&header, &with_ticks(6))), (6, Some(CpuId(1)), Some(B), what));
}

#[test]
fn a_quantum_that_passes_without_the_link_it_owed_is_found() {
    let header = with_overheads(quantum_driven(Quanta::Aligned));
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&judge(&header, &with_ticks(9))), (4, Some(CpuId(1)), None, what));
}

#[test]
fn a_cpu_that_became_idle_within_the_quantum_is_excused_until_the_next() {
    let header = with_overheads(Setup { quantum: Some(4), ..setup(1) }.header());
    let with_link_at = |time| {
        let mut events: Vec<_> = [0, 4, 8, 12].map(|time| (time, overhead(0, OverheadKind::Tick, 1))).to_vec();
        events.extend([
            (1, release(A, 11)),
            (1, ready(A)),
            (1, release(C, 31)),
            (1, ready(C)),
            (5, link(0, A)),
            (6, dispatch(0, A)),
            (7, complete(0, A)),
            (time, link(0, C)),
            (time + 1, dispatch(0, C)),
            (14, Event::End),
        ]);
        events.sort_by_key(|&(time, _)| time);
        judge(&header, &events)
    };
    assert!(with_link_at(9).is_clean(), "{}", with_link_at(9));
    let what = Problem::NotWorkConserving { waiting: C, waiting_urgency: deadline(31) };
    assert_eq!(only(&with_link_at(13)), (8, Some(CpuId(0)), None, what));
}

#[test]
fn a_quantum_spent_on_a_less_urgent_job_is_found() {
    let header = with_overheads(Setup { quantum: Some(4), ..setup(1) }.header());
    let mut events: Vec<_> = [0, 4, 8].map(|time| (time, overhead(0, OverheadKind::Tick, 1))).to_vec();
    events.extend([
        (1, release(A, 11)),
        (1, ready(A)),
        (1, release(B, 21)),
        (1, ready(B)),
        (5, link(0, B)),
        (6, dispatch(0, B)),
        (9, preempt(0, B)),
        (9, link(0, A)),
        (10, dispatch(0, A)),
        (11, Event::End),
    ]);
    events.sort_by_key(|&(time, _)| time);
    let what = Problem::Inversion { urgency: deadline(21), waiting: A, waiting_urgency: deadline(11) };
    assert_eq!(only(&judge(&header, &events)), (4, Some(CpuId(0)), Some(B), what));
}

#[test]
fn a_cpu_that_became_idle_at_the_boundary_is_owed_a_job() {
    let header = with_overheads(Setup { quantum: Some(4), ..setup(1) }.header());
    let mut events: Vec<_> = [0, 4, 8, 12].map(|time| (time, overhead(0, OverheadKind::Tick, 1))).to_vec();
    events.extend([
        (1, release(A, 11)),
        (1, ready(A)),
        (1, release(C, 31)),
        (1, ready(C)),
        (5, link(0, A)),
        (6, dispatch(0, A)),
        (8, complete(0, A)),
        (14, Event::End),
    ]);
    events.sort_by_key(|&(time, _)| time);
    let what = Problem::NotWorkConserving { waiting: C, waiting_urgency: deadline(31) };
    assert_eq!(only(&judge(&header, &events)), (8, Some(CpuId(0)), None, what));
}

#[test]
fn a_quantum_without_any_record_is_judged_too() {
    let mut header = with_overheads(quantum_driven(Quanta::Aligned));
    header.costs.tick = Nanos::ZERO;
    let mut events = second_job_linked_at(9);
    events.pop();
    events.push((10, Event::End));
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&judge(&header, &events)), (4, Some(CpuId(1)), None, what));
}

/// B on cpu0 and C on cpu1; A, the most urgent, takes cpu0 at 5, and B goes on on cpu1 at `second`.
fn displacing_in_turn(second: u64) -> Vec<(u64, Event)> {
    vec![
        (0, release(B, 20)),
        (0, ready(B)),
        (0, release(C, 30)),
        (0, ready(C)),
        (0, overhead(0, OverheadKind::Tick, 1)),
        (1, link(0, B)),
        (2, overhead(1, OverheadKind::Tick, 1)),
        (3, link(1, C)),
        (3, release(A, 13)),
        (3, ready(A)),
        (4, overhead(0, OverheadKind::Tick, 1)),
        (5, link(0, A)),
        (6, overhead(1, OverheadKind::Tick, 1)),
        (second, link(1, B)),
        (8, overhead(0, OverheadKind::Tick, 1)),
        (10, overhead(1, OverheadKind::Tick, 1)),
        (11, Event::End),
    ]
}

#[test]
fn with_staggered_quanta_a_displaced_job_waits_for_the_next_cpu() {
    // Quanta begin at 0, 4, 8 on cpu0 and at 2, 6, 10 on cpu1.
    let header = with_overheads(quantum_driven(Quanta::Staggered));
    let report = judge(&header, &displacing_in_turn(7));
    assert!(report.is_clean(), "{report}");
    // Displaced before 6, when cpu1 decides, so owed cpu1 from then on.
    let mut never = displacing_in_turn(7);
    never.retain(|&(_, event)| event != link(1, B));
    let what = Problem::Inversion { urgency: deadline(30), waiting: B, waiting_urgency: deadline(20) };
    assert_eq!(only(&judge(&header, &never)), (6, Some(CpuId(1)), Some(C), what));
}

#[test]
fn with_aligned_quanta_the_least_urgent_job_is_displaced_and_no_other() {
    let header = with_overheads(quantum_driven(Quanta::Aligned));
    let displace = |cpu| {
        let ticks = [(0, 0), (0, 1), (4, 0), (4, 1), (8, 0), (8, 1)];
        let mut events = ticks.map(|(time, cpu)| (time, overhead(cpu, OverheadKind::Tick, 1))).to_vec();
        events.extend([
            (0, release(B, 20)),
            (0, ready(B)),
            (0, release(C, 30)),
            (0, ready(C)),
            (1, link(0, B)),
            (1, link(1, C)),
            (3, release(A, 13)),
            (3, ready(A)),
            (5, link(cpu, A)),
            (9, Event::End),
        ]);
        events.sort_by_key(|&(time, _)| time);
        judge(&header, &events)
    };
    assert!(displace(1).is_clean());
    let what = Problem::Inversion { urgency: deadline(30), waiting: B, waiting_urgency: deadline(20) };
    assert_eq!(only(&displace(0)), (4, Some(CpuId(1)), Some(C), what));
}
