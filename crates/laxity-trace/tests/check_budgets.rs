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

/// ```text
///   given     v   v   v             2 of 2, in 10
///   job       ##..##..#
/// ```
#[test]
fn budgets_that_come_more_often_than_once_in_a_period_are_found_whatever_they_say() {
    let spans = [(0, 2), (4, 6), (8, 9)];
    let wrong = |what| Problem::WrongBudget { task: TaskId(0), what };
    let short =
        |when: u64, deadline: u64| wrong(BudgetProblem::Short { deadline: at(deadline), expected: at(when + 10) });
    let claims_a_shorter_period = trace(&spans, &[(0, 2, 4), (4, 2, 8), (8, 2, 12)]);
    assert_eq!(simulated(ServerKind::CbsHard, &claims_a_shorter_period), [short(0, 4), short(4, 8), short(8, 12)]);
    let early = |due| wrong(BudgetProblem::Early { due: at(due) });
    let none_is_back = wrong(BudgetProblem::NotBack { budget: ms(2), back: Nanos::ZERO });
    let found_at_once = simulated(ServerKind::Sporadic, &claims_a_shorter_period);
    assert_eq!(found_at_once, [short(0, 4), none_is_back, none_is_back]);
    let claims_nothing = trace(&spans, &[(0, 2, 10), (4, 2, 14), (8, 2, 18)]);
    for origin in [Origin::Simulated, Origin::Live] {
        assert_eq!(found(ServerKind::CbsHard, origin, &claims_nothing), [early(10), early(14)], "{origin:?}");
        assert_eq!(found(ServerKind::Sporadic, origin, &claims_nothing), [none_is_back; 2], "{origin:?}");
    }
    // A job that had work all the time: the last budget is due too early whenever it says that it was given.
    let claims_the_past = trace(&[(0, 2), (4, 6), (14, 15)], &[(0, 2, 10), (10, 2, 20), (14, 2, 24)]);
    let claims_the_past = found(ServerKind::CbsHard, Origin::Live, &claims_the_past);
    assert_eq!(claims_the_past, [early(20)]);
}

#[test]
fn another_budget_while_the_one_before_is_not_used_up_is_found() {
    let wrong = [Problem::WrongBudget { task: TaskId(0), what: BudgetProblem::Unused { left: ms(1) } }];
    let goes_on = trace(&[(0, 3)], &[(0, 2, 10), (1, 2, 20)]);
    assert_eq!(simulated(ServerKind::CbsSoft, &goes_on), wrong);
    let waits = trace(&[(0, 1), (10, 12)], &[(0, 2, 10), (10, 2, 20)]);
    assert_eq!(simulated(ServerKind::CbsHard, &waits), wrong);
    assert_eq!(simulated(ServerKind::Sporadic, &waits), wrong);
    // Live it may have used the budget up unseen.
    for (kind, records) in
        [(ServerKind::CbsSoft, &goes_on), (ServerKind::CbsHard, &waits), (ServerKind::Sporadic, &waits)]
    {
        assert_eq!(found(kind, Origin::Live, records), [], "{kind:?}");
    }
}

#[test]
fn budgets_of_bandwidth_servers_are_whole() {
    let halves = trace(&[(0, 1), (10, 11)], &[(0, 1, 10), (10, 1, 20)]);
    let what = BudgetProblem::Small { budget: ms(1), whole: ms(2) };
    let wrong = Problem::WrongBudget { task: TaskId(0), what };
    assert_eq!(simulated(ServerKind::CbsHard, &halves), [wrong; 2]);
    assert_eq!(simulated(ServerKind::CbsSoft, &halves), [wrong, wrong]);
    // What was used beyond a budget is missing in the next one.
    assert_eq!(found(ServerKind::CbsHard, Origin::Live, &halves), []);
    let text = legality(&header(ServerKind::CbsHard, Origin::Simulated), &halves[..4], |_| None).to_string();
    assert_eq!(text, "at 0 ms the server T0 is given a budget of 1 ms; a whole one is 2 ms\n");
}

/// Of 2 one is used at 0, the other one at 4; so each comes back by itself.
///
/// ```text
///   given     v   v     v   v       all; the rest; what was used at 0; at 4
///   job       #...#.....#...#
/// ```
#[test]
fn each_part_of_a_sporadic_budget_comes_back_a_period_after_its_use_began() {
    let job = |index| JobId { index, ..JOB };
    let whole = |third: u64, fourth: u64| {
        let mut records = Vec::new();
        let starts = [(0, 2, 10), (4, 1, 14), (third, 1, third + 10), (fourth, 1, fourth + 10)];
        for (index, (when, budget, deadline)) in (0..).zip(starts) {
            let mut record = |when, event| records.push(Record { at: at(when), event });
            record(when, Event::Release { job: job(index), deadline: at(when + 30) });
            record(when, Event::Replenish { task: TaskId(0), budget: ms(budget), deadline: at(deadline) });
            record(when, Event::Ready { job: job(index), cpu: CPU });
            record(when, Event::Dispatch { cpu: CPU, job: job(index) });
            record(when + 1, Event::Complete { cpu: CPU, job: job(index) });
        }
        let of_budgets = |what: &Problem| matches!(what, Problem::WrongBudget { .. });
        simulated(ServerKind::Sporadic, &records).into_iter().filter(of_budgets).collect::<Vec<_>>()
    };
    let none_is_back = BudgetProblem::NotBack { budget: ms(1), back: Nanos::ZERO };
    let wrong = [Problem::WrongBudget { task: TaskId(0), what: none_is_back }];
    assert_eq!(whole(10, 14), []);
    assert_eq!(whole(9, 14), wrong);
    assert_eq!(whole(10, 13), wrong);
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
