//! CPUs on which best-effort jobs stand still.

use laxity_model::{CpuId, Instant, Nanos, TaskId};
use laxity_trace::gantt::{Characters, Rows, TextOptions, text};
use laxity_trace::intervals::{Activity, Timeline};
use laxity_trace::{Event, Origin, Record, TaskInfo, TaskKind, TraceHeader};

use super::fixtures::{at, job};

const CPU: CpuId = CpuId(0);

/// A best-effort job that executes for 2 ms, stands still for 3 ms, executes for 2 ms and stands still until the end.
fn throttled() -> (TraceHeader, Vec<Record>) {
    let task = TaskInfo {
        name: "hog".to_owned(),
        period: Nanos::ZERO,
        deadline: Nanos::LONGEST,
        wcet: Nanos::ZERO,
        cluster: 0,
        rank: 0,
        kind: TaskKind::BestEffort,
    };
    let scheduler = "P-FP".parse().expect("a scheduler");
    let header = TraceHeader { tasks: vec![task], ..TraceHeader::new(Origin::Simulated, "w", 1, scheduler) };
    let (hog, because) = (job(0, 0), Some(TaskId(0)));
    let events = [
        (0, Event::Release { job: hog, deadline: Instant(Nanos::LONGEST.0) }),
        (0, Event::Ready { job: hog, cpu: CPU }),
        (0, Event::Dispatch { cpu: CPU, job: hog }),
        (20, Event::Throttle { cpu: CPU, task: because }),
        (20, Event::Preempt { cpu: CPU, job: hog }),
        (50, Event::Unthrottle { cpu: CPU, task: because, lost: Nanos::from_millis(3) }),
        (50, Event::Dispatch { cpu: CPU, job: hog }),
        (70, Event::Throttle { cpu: CPU, task: because }),
        (70, Event::Preempt { cpu: CPU, job: hog }),
        (100, Event::End),
    ];
    (header, events.map(|(time, event)| Record { at: at(time), event }).to_vec())
}

#[test]
fn throttling_is_an_interval_that_ends_with_it_or_with_the_trace() {
    let (header, records) = throttled();
    let timeline = Timeline::of(&header, &records).expect("the records fit the header");
    let spans: Vec<(Instant, Instant)> = timeline
        .intervals
        .iter()
        .filter(|interval| interval.activity == Activity::Throttled { cpu: CPU, task: Some(TaskId(0)) })
        .map(|interval| (interval.from, interval.to))
        .collect();
    assert_eq!(spans, [(at(20), at(50)), (at(70), at(100))]);
}

#[test]
fn a_chart_shows_throttling_in_the_rows_of_the_cpu_and_of_the_task() {
    let (header, records) = throttled();
    let options = TextOptions { characters: Characters::Ascii, rows: Rows::Both, width: 40, ..TextOptions::default() };
    let chart = text(&header, &records, &options).expect("the records fit the header");
    assert!(chart.matches(":::").count() >= 2, "{chart}");
    assert!(chart.contains(": throttled"), "{chart}");
}
