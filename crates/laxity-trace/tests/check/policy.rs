//! Every rule of a policy, broken alone.

use super::check_reference::hand::*;
use super::check_reference::{Setup, UNIT, at};
use super::{A, B, C, only};
use laxity_model::{CpuId, EngineOrder, JobId, OverheadCosts, OverheadKind, PriorityRule};
use laxity_trace::check::{self, Act, Phase, Problem, Report, Urgency};
use laxity_trace::{Event, LockInfo, LockKind, TraceHeader};

/// Three tasks of periods 10, 20 and 30 on `cpus` CPUs.
pub fn setup(cpus: u16) -> Setup {
    Setup::edf(cpus, &[(9, 10), (9, 20), (9, 30)], 0)
}

/// The same with overheads: decisions and switches take time.
pub fn with_overheads(mut header: TraceHeader) -> TraceHeader {
    header.costs = OverheadCosts { tick: UNIT, scheduling: UNIT, context_switch: UNIT, ..OverheadCosts::default() };
    header
}

pub fn judge(header: &TraceHeader, events: &[(u64, Event)]) -> Report {
    check::policy(header, &trace(events))
}

pub fn deadline(units: u64) -> Urgency {
    Urgency::Deadline(at(units))
}

#[test]
fn a_less_urgent_job_must_not_keep_its_cpu() {
    let events = [
        (0, release(B, 20)),
        (0, ready(B)),
        (0, link(0, B)),
        (0, dispatch(0, B)),
        (4, release(A, 14)),
        (4, ready(A)),
        // Another instant of the same violation, which is reported once.
        (5, release(C, 35)),
        (6, preempt(0, B)),
        (6, link(0, A)),
        (6, dispatch(0, A)),
        (7, Event::End),
    ];
    let report = judge(&setup(1).header(), &events);
    let what = Problem::Inversion { urgency: deadline(20), waiting: A, waiting_urgency: deadline(14) };
    assert_eq!(only(&report), (4, Some(CpuId(0)), Some(B), what));
    assert_eq!(
        report.to_string(),
        "at 4 ms cpu0 runs T1.0 (deadline 20 ms) while T0.0 (deadline 14 ms) is ready and unlinked\n"
    );
}

#[test]
fn ties_go_to_the_task_listed_first() {
    let tied = |first: JobId, second: JobId| {
        judge(
            &setup(1).header(),
            &[
                (0, release(A, 20)),
                (0, ready(A)),
                (0, release(B, 20)),
                (0, ready(B)),
                (0, link(0, first)),
                (0, dispatch(0, first)),
                (1, complete(0, first)),
                (1, link(0, second)),
                (1, dispatch(0, second)),
                (2, Event::End),
            ],
        )
    };
    assert!(tied(A, B).is_clean());
    assert!(matches!(only(&tied(B, A)).3, Problem::Inversion { waiting: A, .. }));
}

#[test]
fn fixed_priorities_are_judged_by_rank() {
    let mut header = Setup { rule: PriorityRule::Given, ..setup(1) }.header();
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, release(B, 20)),
        (0, ready(B)),
        (0, link(0, B)),
        (0, dispatch(0, B)),
        (1, Event::End),
    ];
    // The ranks of the reference setup are in reverse: B before A.
    assert!(judge(&header, &events).is_clean());
    header.tasks[0].rank = 0;
    let report = judge(&header, &events);
    let what = Problem::Inversion { urgency: Urgency::Rank(1), waiting: A, waiting_urgency: Urgency::Rank(0) };
    assert_eq!(only(&report).3, what);
    assert!(report.to_string().contains("cpu0 runs T1.0 (rank 1) while T0.0 (rank 0)"), "{report}");
}

/// The rank of a job that is raised is that of the task named, which is level 1 for rank 0; level 0 is above all.
#[test]
fn under_fixed_priorities_a_level_is_a_rank_plus_1() {
    let mut header = Setup { rule: PriorityRule::Given, ..setup(1) }.header();
    // Of the first the ceiling is that of a task, of the second above all.
    let kinds = [LockKind::Resource { order: EngineOrder::Priority }, LockKind::Bandwidth];
    header.locks = kinds.map(|kind| LockInfo { name: "lock".to_owned(), replicas: 1, kind }).to_vec();
    // C has rank 0, B rank 1, A rank 2; A runs at `level`, by what it holds, while B waits.
    let raised = |level, of: JobId, held: Option<u16>| {
        let held = held.map_or(Event::Release { job: C, deadline: at(30) }, |lock| grant(A, lock, 0));
        judge(
            &header,
            &[
                (0, release(A, 10)),
                (0, ready(A)),
                (0, held),
                (0, Event::Priority { job: A, level, of: of.task }),
                (0, link(0, A)),
                (0, dispatch(0, A)),
                (1, release(B, 21)),
                (1, ready(B)),
                (3, Event::End),
            ],
        )
    };
    assert!(raised(1, C, Some(0)).is_clean(), "C's rank");
    assert!(raised(0, A, Some(1)).is_clean(), "above all");
    let what = Problem::Inversion { urgency: Urgency::Rank(2), waiting: B, waiting_urgency: Urgency::Rank(1) };
    assert_eq!(only(&raised(3, A, None)).3, what, "its own rank");
}

#[test]
fn a_cpu_is_not_idle_while_a_job_is_ready() {
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, link(0, A)),
        (0, dispatch(0, A)),
        (1, release(B, 21)),
        (1, ready(B)),
        (3, Event::End),
    ];
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&judge(&setup(2).header(), &events)), (1, Some(CpuId(1)), None, what));
    assert!(judge(&setup(1).header(), &events).is_clean(), "one CPU is not idle");
}

#[test]
fn a_job_that_stays_unlinked_after_another_ends_is_found() {
    let begin = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, link(0, A)),
        (0, dispatch(0, A)),
        (0, release(B, 20)),
        (0, ready(B)),
        (2, complete(0, A)),
        (2, unlink(0)),
    ];
    let late: Vec<_> = begin.into_iter().chain([(3, link(0, B)), (3, dispatch(0, B)), (4, Event::End)]).collect();
    assert_eq!(only(&judge(&setup(1).header(), &late)).0, 2);
    let at_once: Vec<_> = begin.into_iter().chain([(2, link(0, B)), (2, dispatch(0, B)), (4, Event::End)]).collect();
    assert!(judge(&setup(1).header(), &at_once).is_clean());
}

#[test]
fn a_cpu_may_be_without_a_link_while_its_scheduler_runs_but_no_longer() {
    let header = with_overheads(setup(1).header());
    let with_link_at = |time| {
        let events = [
            (0, release(A, 10)),
            (0, ready(A)),
            (0, link(0, A)),
            (0, overhead(0, OverheadKind::ContextSwitch, 1)),
            (1, dispatch(0, A)),
            (1, release(B, 21)),
            (1, ready(B)),
            (4, complete(0, A)),
            (4, lock_wait(0, 1)),
            (5, overhead(0, OverheadKind::Scheduling, 1)),
            (time, link(0, B)),
            (time, overhead(0, OverheadKind::ContextSwitch, 1)),
            (time + 1, dispatch(0, B)),
            (9, Event::End),
        ];
        judge(&header, &events)
    };
    assert!(with_link_at(6).is_clean(), "a dispatch lags its link");
    let what = Problem::NotWorkConserving { waiting: B, waiting_urgency: deadline(21) };
    assert_eq!(only(&with_link_at(7)), (6, Some(CpuId(0)), None, what));
}

#[test]
fn a_job_in_a_non_preemptive_section_keeps_its_cpu() {
    let until = |leave: u64| {
        let events = [
            (0, release(B, 20)),
            (0, ready(B)),
            (0, link(0, B)),
            (0, dispatch(0, B)),
            (1, section_begin(0, B)),
            (2, release(A, 12)),
            (2, ready(A)),
            (leave, section_end(0, B)),
            (5, preempt(0, B)),
            (5, link(0, A)),
            (5, dispatch(0, A)),
            (6, Event::End),
        ];
        judge(&setup(1).header(), &events)
    };
    assert!(until(5).is_clean());
    let what = Problem::Inversion { urgency: deadline(20), waiting: A, waiting_urgency: deadline(12) };
    assert_eq!(only(&until(4)), (4, Some(CpuId(0)), Some(B), what));
}

#[test]
fn a_link_may_change_while_the_process_finishes_its_non_preemptive_section() {
    let events = [
        (0, release(B, 20)),
        (0, ready(B)),
        (0, link(0, B)),
        (0, dispatch(0, B)),
        (1, section_begin(0, B)),
        (2, release(A, 12)),
        (2, ready(A)),
        (2, link(0, A)),
        (4, section_end(0, B)),
        (4, preempt(0, B)),
        (4, dispatch(0, A)),
        (6, Event::End),
    ];
    assert!(judge(&setup(1).header(), &events).is_clean());
    let without_section: Vec<_> = events
        .into_iter()
        .filter(|(_, event)| !matches!(event, Event::NonPreemptiveBegin { .. } | Event::NonPreemptiveEnd { .. }))
        .collect();
    let report = judge(&setup(1).header(), &without_section);
    assert_eq!(only(&report), (2, Some(CpuId(0)), Some(B), Problem::RunsUnlinked { linked: Some(A) }));
    let mut switching = without_section;
    let link = switching.iter().position(|&(at, _)| at == 2).expect("A is released");
    switching.insert(link, (2, overhead(0, OverheadKind::ContextSwitch, 2)));
    let slow = judge(&with_overheads(setup(1).header()), &switching);
    assert!(slow.is_clean(), "with overheads, a switch takes time: {slow}");
}

#[test]
fn a_linked_job_runs_once_no_overhead_goes_on_anywhere() {
    let events = [(0, release(A, 10)), (0, ready(A)), (0, link(0, A)), (1, dispatch(0, A)), (2, Event::End)];
    let report = judge(&setup(1).header(), &events);
    assert_eq!(only(&report), (0, Some(CpuId(0)), Some(A), Problem::LinkedButIdle));
    // Cpu1 decides for a unit, and then its interrupt is on its way for another one.
    let ipi = Event::Ipi { from: CpuId(1), to: CpuId(0), latency: UNIT };
    let decided = |dispatched: u64| {
        [
            (0, release(A, 10)),
            (0, ready(A)),
            (0, overhead(1, OverheadKind::Scheduling, 1)),
            (0, link(0, A)),
            (1, ipi),
            (dispatched, dispatch(0, A)),
            (6, Event::End),
        ]
    };
    let header = with_overheads(setup(2).header());
    assert!(judge(&header, &decided(2)).is_clean());
    assert_eq!(only(&judge(&header, &decided(5))), (2, Some(CpuId(0)), Some(A), Problem::LinkedButIdle));
}

#[test]
fn only_a_ready_job_of_the_cluster_can_be_linked() {
    let header = setup(1).header();
    let mut events = vec![(0, release(A, 10)), (0, link(0, A)), (1, Event::End)];
    let out_of_turn = |phase| Problem::OutOfTurn { act: Act::Link, phase };
    assert_eq!(only(&judge(&header, &events)), (0, Some(CpuId(0)), Some(A), out_of_turn(Phase::Released)));
    events[0] = (0, release(B, 20));
    assert_eq!(only(&judge(&header, &events)).3, out_of_turn(Phase::Unreleased));

    let two_clusters = Setup { clusters: vec![1, 1], ..setup(1) }.header();
    let events =
        [(0, release(A, 10)), (0, ready(A)), (0, link(1, A)), (0, link(0, A)), (0, dispatch(0, A)), (1, Event::End)];
    let what = Problem::OutsideCluster { act: Act::Link, cluster: 0 };
    assert_eq!(only(&judge(&two_clusters, &events)), (0, Some(CpuId(1)), Some(A), what));
}

#[test]
fn jobs_may_swap_their_cpus() {
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, link(0, A)),
        (0, dispatch(0, A)),
        (0, release(B, 20)),
        (0, ready(B)),
        (0, link(1, B)),
        (0, dispatch(1, B)),
        (1, preempt(0, A)),
        (1, preempt(1, B)),
        (1, link(0, B)),
        (1, link(1, A)),
        (1, dispatch(0, B)),
        (1, dispatch(1, A)),
        (2, Event::End),
    ];
    assert!(judge(&setup(2).header(), &events).is_clean());
}

#[test]
fn clusters_are_judged_apart() {
    // B waits for the CPU of the first cluster while that of the second is idle.
    let header = Setup { clusters: vec![1, 1], ..setup(1) }.header();
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, link(0, A)),
        (0, dispatch(0, A)),
        (0, release(B, 20)),
        (0, ready(B)),
        (1, Event::End),
    ];
    assert!(judge(&header, &events).is_clean());
}
