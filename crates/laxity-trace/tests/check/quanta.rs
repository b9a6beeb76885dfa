//! Every rule of a policy that decides at quanta, broken alone.

use super::check_reference::hand::*;
use super::check_reference::{Setup, UNIT, at};
use super::policy::{deadline, judge, setup, with_overheads};
use super::{A, B, C, only};
use laxity_model::{CpuId, Nanos, OverheadKind, Quanta};
use laxity_trace::check::Problem;
use laxity_trace::{DeviceId, Event, Origin, TraceHeader};

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

/// A spins until the interrupt of its GPU at 4, has nothing left and completes. Its CPU handles that interrupt and the tick in
/// whichever order, so B may get it at 8, but not later; without an interrupt it must get it at 4.
#[test]
fn a_job_that_spins_until_an_interrupt_may_complete_after_the_tick_of_that_instant() {
    let header = Setup { quantum: Some(4), ..setup(1) }.header();
    judge_spinning(&header, &[4]);
    // The handler began before, and its end is at the tick.
    judge_spinning(&header, &[3, 4]);
}

/// Handlers of the GPU's interrupt begin and end at `handled`.
fn judge_spinning(header: &TraceHeader, handled: &[u64]) {
    let (begin, end) = (handled[0], handled[handled.len() - 1]);
    let found = |is_interrupted: bool, linked: u64| {
        let cpu = CpuId(0);
        let mut events = vec![
            (0, release(A, 10)),
            (0, ready(A)),
            (0, link(0, A)),
            (0, dispatch(0, A)),
            (1, release(B, 21)),
            (1, ready(B)),
            (2, Event::SpinBegin { cpu, job: A }),
            (begin, Event::Interrupt { cpu, device: DeviceId(0), job: Some(A) }),
            (begin, Event::BottomHalfBegin { cpu, device: DeviceId(0), job: Some(A) }),
            (end, Event::BottomHalfEnd { cpu, device: DeviceId(0), job: Some(A) }),
            (4, Event::SpinEnd { cpu, job: A }),
            (4, complete(0, A)),
            (linked, link(0, B)),
            (linked, dispatch(0, B)),
            (linked + 1, Event::End),
        ];
        let is_handler = |event: &Event| {
            matches!(event, Event::Interrupt { .. } | Event::BottomHalfBegin { .. } | Event::BottomHalfEnd { .. })
        };
        events.retain(|(_, event)| is_interrupted || !is_handler(event));
        judge(header, &events)
    };
    assert!(found(true, 4).is_clean() && found(true, 8).is_clean() && found(false, 4).is_clean());
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&found(true, 12)), (8, Some(CpuId(0)), None, what));
    assert_eq!(only(&found(false, 8)), (4, Some(CpuId(0)), None, what));
}

/// A has nothing left when a bottom half takes its CPU, which is done just where a quantum begins.
#[test]
fn a_job_that_goes_on_after_a_handler_may_complete_after_the_tick_of_that_instant() {
    let header = Setup { quantum: Some(4), ..setup(1) }.header();
    let found = |ended: u64, linked: u64| {
        let cpu = CpuId(0);
        let events = vec![
            (0, release(A, 10)),
            (0, ready(A)),
            (0, link(0, A)),
            (0, dispatch(0, A)),
            (1, release(B, 21)),
            (1, ready(B)),
            (3, Event::BottomHalfBegin { cpu, device: DeviceId(0), job: None }),
            (ended, Event::BottomHalfEnd { cpu, device: DeviceId(0), job: None }),
            (4, complete(0, A)),
            (linked, link(0, B)),
            (linked, dispatch(0, B)),
            (linked + 1, Event::End),
        ];
        judge(&header, &events)
    };
    assert!(found(4, 4).is_clean() && found(4, 8).is_clean() && found(3, 4).is_clean());
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&found(4, 12)), (8, Some(CpuId(0)), None, what));
    assert_eq!(only(&found(3, 8)), (4, Some(CpuId(0)), None, what));
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

/// Quanta of 4, and handlers of one unit from 2, 6 and 10 on: of ticks that are shorter than quanta.
#[test]
fn a_tick_handler_within_a_quantum_links_nothing() {
    for quanta in [Quanta::Aligned, Quanta::Staggered] {
        let header = with_overheads(quantum_driven(quanta));
        let late = |cpu: u64| if quanta == Quanta::Staggered { 2 * cpu } else { 0 };
        let mut events = second_job_linked_at(late(1) + 3);
        (events[2].0, events[3].0) = (1, 1);
        events.retain(|&(_, event)| event != Event::End);
        let handlers = [0, 2, 4, 6, 8].into_iter().flat_map(|at| [(at + late(0), 0), (at + late(1), 1)]);
        events.extend(handlers.map(|(at, cpu)| (at, overhead(cpu, OverheadKind::Tick, 1))));
        events.push((14, Event::End));
        events.sort_by_key(|&(time, _)| time);
        let found = judge(&header, &events).violations;
        let what = Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) };
        assert!(found.iter().any(|it| it.what == what && it.job == Some(B)), "{quanta:?}: {found:?}");
    }
}

/// Both CPUs handle something else where the quantum of 4 begins, up to `until`; then comes the tick. B is linked at 7.
fn delayed_tick(until: u64) -> Vec<(u64, Event)> {
    let mut events = with_ticks(7);
    events.retain(|&(at, event)| {
        at != 4 || event != overhead(0, OverheadKind::Tick, 1) && event != overhead(1, OverheadKind::Tick, 1)
    });
    for cpu in [0, 1] {
        events.push((3, overhead(cpu, OverheadKind::Release, until - 3)));
        events.push((6, overhead(cpu, OverheadKind::Tick, 1)));
    }
    events.sort_by_key(|&(time, _)| time);
    events
}

#[test]
fn a_tick_handler_is_late_only_where_something_else_is_handled() {
    let header = with_overheads(quantum_driven(Quanta::Aligned));
    assert_eq!(judge(&header, &delayed_tick(6)).to_string(), "");
    let what = Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) };
    assert_eq!(only(&judge(&header, &delayed_tick(5))), (7, Some(CpuId(1)), Some(B), what));
}

/// The other overheads take time.
#[test]
fn where_ticks_cost_nothing_links_come_with_quanta_or_after_what_delayed_them() {
    let mut header = with_overheads(quantum_driven(Quanta::Aligned));
    header.costs.tick = Nanos::ZERO;
    assert_eq!(judge(&header, &second_job_linked_at(4)).to_string(), "");
    let what = Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) };
    assert_eq!(only(&judge(&header, &second_job_linked_at(5))), (5, Some(CpuId(1)), Some(B), what));
    let mut delayed = second_job_linked_at(5);
    let handled = [0, 1].map(|cpu| (3, overhead(cpu, OverheadKind::Release, 2)));
    delayed.splice(6..6, handled);
    assert_eq!(judge(&header, &delayed).to_string(), "");
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
            (5, dispatch(0, A)),
            (7, complete(0, A)),
            (time, link(0, C)),
            (time, dispatch(0, C)),
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
        (5, dispatch(0, B)),
        (9, preempt(0, B)),
        (9, link(0, A)),
        (9, dispatch(0, A)),
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
        (5, dispatch(0, A)),
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
    let mut events = second_job_linked_at(8);
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
        (1, dispatch(0, B)),
        (2, overhead(1, OverheadKind::Tick, 1)),
        (3, link(1, C)),
        (3, dispatch(1, C)),
        (3, release(A, 13)),
        (3, ready(A)),
        (4, overhead(0, OverheadKind::Tick, 1)),
        (5, preempt(0, B)),
        (5, link(0, A)),
        (5, dispatch(0, A)),
        (6, overhead(1, OverheadKind::Tick, 1)),
        (second, preempt(1, C)),
        (second, link(1, B)),
        (second, dispatch(1, B)),
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
    never.retain(|&(_, event)| ![preempt(1, C), link(1, B), dispatch(1, B)].contains(&event));
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
            (1, dispatch(0, B)),
            (1, link(1, C)),
            (1, dispatch(1, C)),
            (3, release(A, 13)),
            (3, ready(A)),
            (5, preempt(cpu, [B, C][usize::from(cpu)])),
            (5, link(cpu, A)),
            (5, dispatch(cpu, A)),
            (9, Event::End),
        ]);
        events.sort_by_key(|&(time, _)| time);
        judge(&header, &events)
    };
    assert!(displace(1).is_clean());
    let what = Problem::Inversion { urgency: deadline(30), waiting: B, waiting_urgency: deadline(20) };
    assert_eq!(only(&displace(0)), (4, Some(CpuId(1)), Some(C), what));
}

/// As recorded live: ticks are records of no length, and come when they come.
fn live(header: TraceHeader) -> TraceHeader {
    TraceHeader { origin: Origin::Live, ..header }
}

fn tick(cpu: u16) -> Event {
    overhead(cpu, OverheadKind::Tick, 0)
}

/// B runs on cpu0 and C on cpu1; A, more urgent than both, is ready at 5. Then comes what is given, up to 40.
fn two_run_and_a_third_is_ready(quanta: Quanta, then: &[(u64, Event)]) -> Vec<(u64, Event)> {
    let mut before = vec![
        (0, release(B, 20)),
        (0, ready(B)),
        (0, release(C, 30)),
        (0, ready(C)),
        (1, tick(0)),
        (1, link(0, B)),
        (1, tick(1)),
        (1, link(1, C)),
        (1, dispatch(0, B)),
        (1, dispatch(1, C)),
        (5, release(A, 15)),
        (5, ready(A)),
    ];
    // One tick is for both CPUs.
    before.retain(|&(_, event)| event != tick(1) || quanta == Quanta::Staggered);
    [&before, then, &[(40, suspend(0, B)), (41, Event::End)]].concat()
}

#[test]
fn live_each_tick_must_link_all_that_wait_and_be_it_late() {
    let header = live(quantum_driven(Quanta::Aligned));
    let both_cpus = |at| {
        let then = [(at, tick(0)), (at, link(0, A)), (at, link(1, B))];
        two_run_and_a_third_is_ready(Quanta::Aligned, &then)
    };
    for at in [8, 9, 30] {
        assert_eq!(judge(&header, &both_cpus(at)).to_string(), "", "late by less than is odd");
    }
    // It leaves A where it was.
    let then = [(8, tick(0)), (9, tick(0)), (9, link(1, A))];
    let forgotten = judge(&header, &two_run_and_a_third_is_ready(Quanta::Aligned, &then));
    let what = |urgency| Problem::Inversion { urgency, waiting: A, waiting_urgency: deadline(15) };
    let found: Vec<_> = forgotten.violations.iter().map(|it| (it.at, it.cpu, it.what)).collect();
    assert_eq!(
        found,
        [(at(8), Some(CpuId(0)), what(deadline(20))), (at(8), Some(CpuId(1)), what(deadline(30)))],
        "the second tick is right"
    );
}

#[test]
fn live_a_staggered_tick_links_for_its_own_cpu() {
    let header = live(quantum_driven(Quanta::Staggered));
    let whole = [(6, tick(0)), (6, link(0, A)), (7, tick(1)), (7, link(1, B))];
    assert_eq!(judge(&header, &two_run_and_a_third_is_ready(Quanta::Staggered, &whole)).to_string(), "");
    // Nothing is amiss on cpu0, which has had no tick yet.
    let then = [(6, tick(1)), (7, tick(1)), (7, link(1, A))];
    let forgotten = judge(&header, &two_run_and_a_third_is_ready(Quanta::Staggered, &then));
    let what = Problem::Inversion { urgency: deadline(30), waiting: A, waiting_urgency: deadline(15) };
    assert_eq!(only(&forgotten), (6, Some(CpuId(1)), Some(C), what));
}

#[test]
fn live_a_link_without_a_tick_is_found() {
    let header = live(quantum_driven(Quanta::Staggered));
    // The tick has been at that time, but something else was since.
    for between in [(6, dispatch(1, A)), (6, ready(job(0, 9)))] {
        let then = [(6, tick(1)), (6, link(1, A)), between, (6, link(0, C))];
        let report = judge(&header, &two_run_and_a_third_is_ready(Quanta::Staggered, &then));
        let what = Problem::LinkedWithinQuantum { quantum: Nanos(4 * UNIT.0) };
        assert_eq!(only(&report), (6, Some(CpuId(0)), Some(C), what));
    }
}

#[test]
fn live_a_job_that_waits_for_a_hundred_quanta_is_found() {
    let header = live(quantum_driven(Quanta::Aligned));
    // 100 quanta after A was ready, and after the last tick that might have been for it.
    let mut events = two_run_and_a_third_is_ready(Quanta::Aligned, &[]);
    events.truncate(events.len() - 2);
    events.extend([(405, Event::End)]);
    assert_eq!(judge(&header, &events).to_string(), "");
    events.pop();
    events.extend([(406, preempt(1, C)), (407, Event::End)]);
    let report = judge(&header, &events);
    let found: Vec<_> = report.violations.iter().map(|it| (it.at, it.cpu)).collect();
    assert_eq!(found, [(at(405), Some(CpuId(0))), (at(405), Some(CpuId(1)))]);
}
