//! The checker of budgets, on hand-written records.

use laxity_model::{CpuId, Instant, JobId, Nanos, Scheduler, ServerKind, Task, TaskId};
use laxity_trace::check::{BudgetProblem, Problem, legality};
use laxity_trace::{Event, Origin, Record, ServerInfo, TaskInfo, TraceHeader};

const CPU: CpuId = CpuId(0);

fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// One task of period 30 ms and worst case 9 ms with 2 ms in 10 ms.
fn header(kind: ServerKind, origin: Origin) -> TraceHeader {
    let server = ServerInfo { task: TaskId(0), kind, budget: ms(2), period: ms(10) };
    let tasks = TaskInfo::of(&[Task::periodic("t", ms(9), ms(30))], |_| (0, 0));
    TraceHeader { tasks, servers: vec![server], ..TraceHeader::new(origin, "w", 1, Scheduler::GLOBAL_EDF) }
}

const JOB: JobId = JobId { task: TaskId(0), index: 0 };

/// A job that executes in `[begin, end)`, given budgets of so many milliseconds, due then, at these times.
fn trace(spans: &[(u64, u64)], budgets: &[(u64, u64, u64)]) -> Vec<Record> {
    let mut events =
        vec![(0, 0, Event::Release { job: JOB, deadline: at(30) }), (0, 2, Event::Ready { job: JOB, cpu: CPU })];
    for &(when, budget, deadline) in budgets {
        events.push((when, 1, Event::Replenish { task: TaskId(0), budget: ms(budget), deadline: at(deadline) }));
    }
    for (number, &(begin, end)) in spans.iter().enumerate() {
        if number > 0 {
            events.push((begin, 2, Event::Resume { cpu: CPU, job: JOB }));
        }
        events.push((begin, 3, Event::Dispatch { cpu: CPU, job: JOB }));
        let is_last = number + 1 == spans.len();
        let ends = if is_last { Event::Complete { cpu: CPU, job: JOB } } else { Event::Suspend { cpu: CPU, job: JOB } };
        events.push((end, 0, ends));
    }
    // In order of time; what ends comes before what is given, and what is given before what begins.
    events.sort_by_key(|&(when, order, _)| (when, order));
    events.into_iter().map(|(when, _, event)| Record { at: at(when), event }).collect()
}

fn found(kind: ServerKind, origin: Origin, records: &[Record]) -> Vec<Problem> {
    let report = legality(&header(kind, origin), records, |_| None);
    report.violations.iter().map(|violation| violation.what).collect()
}

fn simulated(kind: ServerKind, records: &[Record]) -> Vec<Problem> {
    found(kind, Origin::Simulated, records)
}

#[test]
fn budgets_by_the_rules_of_each_kind_are_right() {
    let waits = trace(&[(0, 2), (10, 12), (20, 21)], &[(0, 2, 10), (10, 2, 20), (20, 2, 30)]);
    assert_eq!(simulated(ServerKind::CbsHard, &waits), []);
    assert_eq!(simulated(ServerKind::Sporadic, &waits), []);
    let goes_on = trace(&[(0, 5)], &[(0, 2, 10), (2, 2, 20), (4, 2, 30)]);
    assert_eq!(simulated(ServerKind::CbsSoft, &goes_on), []);
}

#[test]
fn a_hard_budget_that_comes_before_the_last_is_due_is_found() {
    let early = trace(&[(0, 2), (9, 11), (20, 21)], &[(0, 2, 10), (9, 2, 19), (20, 2, 30)]);
    let wrong = Problem::WrongBudget { task: TaskId(0), what: BudgetProblem::Early { due: at(10) } };
    assert_eq!(simulated(ServerKind::CbsHard, &early), [wrong]);
    assert_eq!(found(ServerKind::CbsHard, Origin::Live, &early), [wrong]);
}

#[test]
fn a_job_that_executes_on_no_budget_is_found_once() {
    let too_long = trace(&[(0, 4), (10, 11)], &[(0, 2, 10), (10, 2, 20)]);
    let wrong = Problem::ExceededBudget { executed: ms(4), budget: ms(2) };
    for kind in [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic] {
        assert_eq!(simulated(kind, &too_long), [wrong], "{kind:?}");
    }
    // Live it may have been preempted by another program.
    assert_eq!(found(ServerKind::CbsHard, Origin::Live, &too_long), []);
}

#[test]
fn budgets_that_are_too_large_or_due_at_a_wrong_time_are_found() {
    let wrong = |what| [Problem::WrongBudget { task: TaskId(0), what }];
    let large = trace(&[(0, 3)], &[(0, 3, 10)]);
    let what = BudgetProblem::Large { budget: ms(3), whole: ms(2) };
    assert_eq!(simulated(ServerKind::Sporadic, &large), wrong(what));
    let late = trace(&[(0, 2)], &[(0, 2, 11)]);
    let what = BudgetProblem::Late { deadline: at(11), latest: at(10) };
    assert_eq!(simulated(ServerKind::CbsHard, &late), wrong(what));
    let off = trace(&[(0, 3)], &[(0, 2, 10), (2, 2, 19)]);
    let what = BudgetProblem::OffPeriod { deadline: at(19), before: at(10) };
    assert_eq!(simulated(ServerKind::CbsSoft, &off), wrong(what));
    let text = legality(&header(ServerKind::CbsSoft, Origin::Simulated), &off, |_| None).to_string();
    assert_eq!(
        text,
        "at 2 ms the server T0 goes on with a budget that is due at 19 ms, which is not whole periods after the one before, at \
         10 ms\n"
    );
}

/// A section that outlasts the budget comes to its end.
#[test]
fn a_section_may_outlast_the_budget() {
    let mut records = trace(&[(0, 4), (10, 11)], &[(0, 2, 10), (10, 2, 20)]);
    let place = |records: &[Record], when| records.iter().position(|record| record.at == when).expect("it is there");
    let (first, end) = (3, place(&records, at(4)));
    assert!(matches!(records[first].event, Event::Dispatch { .. }));
    records.insert(end, Record { at: at(4), event: Event::NonPreemptiveEnd { cpu: CPU, job: JOB } });
    records.insert(first + 1, Record { at: at(0), event: Event::NonPreemptiveBegin { cpu: CPU, job: JOB } });
    assert_eq!(simulated(ServerKind::CbsHard, &records), []);
}

#[test]
fn headers_with_servers_can_be_read_back() {
    let header = header(ServerKind::Sporadic, Origin::Simulated);
    let text = serde_json::to_string(&header).expect("a header is JSON");
    assert!(
        text.contains(r#""servers":[{"task":0,"kind":"sporadic","budget_ns":2000000,"period_ns":10000000}]"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<TraceHeader>(&text).expect("it is one"), header);
    assert!(serde_json::from_str::<TraceHeader>(&text.replace("sporadic", "spordic")).is_err());
}
