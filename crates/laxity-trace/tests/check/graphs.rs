//! Every rule about the tokens of graphs, kept and then broken alone.

use super::check_reference::Setup;
use super::check_reference::hand::*;
use super::{A, B};
use laxity_model::{EdgeId, JobId, TaskId};
use laxity_trace::check::{self, Problem, Report};
use laxity_trace::{EdgeInfo, EdgeKind, Event, GraphInfo, TaskKind, TraceHeader};

/// When, with which job, and what the only violation is.
fn only(report: &Report) -> (u64, Option<JobId>, Problem) {
    let (at, _, job, what) = super::only(report);
    (at, job, what)
}

/// ```text
///   node 0 (source) --2/3 (threshold 4)--> node 1,  feedback 1 -> 0 with 1 token: one replica
/// ```
fn graph(produce: u32, consume: u32, threshold: u32, replicas: u32) -> TraceHeader {
    let mut header = Setup::edf(2, &[(1, 1), (2, 2)], 0).header();
    for (index, task) in header.tasks.iter_mut().enumerate() {
        task.kind = TaskKind::Node { graph: 0, source: index == 0 };
    }
    let (first, second) = (TaskId(0), TaskId(1));
    header.graphs = vec![GraphInfo { name: "graph".to_owned(), nodes: vec![first, second] }];
    let token =
        EdgeInfo { producer: first, consumer: second, produce, consume, threshold, initial: 0, kind: EdgeKind::Token };
    let feedback = EdgeInfo {
        producer: second,
        consumer: first,
        produce: 1,
        consume: 1,
        threshold: 1,
        initial: replicas,
        kind: EdgeKind::Feedback,
    };
    header.edges = if replicas == 0 { vec![token] } else { vec![token, feedback] };
    header
}

fn run(job: JobId, from: u64, to: u64, consumed: &[(u32, u32)], produced: &[(u32, u32)]) -> Vec<(u64, Event)> {
    let cpu = job.task.0 as u16;
    let takes = consumed.iter().map(|&(edge, tokens)| (from, consume(job, edge, tokens)));
    let puts = produced.iter().map(|&(edge, tokens)| (to, produce(job, edge, tokens)));
    let begin = [(from, ready(job)), (from, dispatch(cpu, job))];
    takes.chain(begin).chain(puts).chain([(to, complete(cpu, job))]).collect()
}

/// ```text
///          0 1 2 3 4
///   node0  0 1 2            puts 2 tokens each time
///   node1      0 . .        starts with the 4 tokens of two jobs, takes 3
/// ```
fn two_producers_one_consumer() -> Vec<(u64, Event)> {
    let mut events = vec![(0, release(A, 1))];
    events.extend(run(A, 0, 1, &[], &[(0, 2)]));
    events.push((1, release(job(0, 1), 2)));
    events.extend(run(job(0, 1), 1, 2, &[], &[(0, 2)]));
    // Early: its arrival is 5 - 2.
    events.push((2, release(B, 5)));
    events.extend(run(B, 2, 3, &[(0, 3)], &[]));
    events
}

fn judge_graph(header: &TraceHeader, events: &[(u64, Event)]) -> Report {
    check::legality(header, &trace(events), |_| None)
}

#[test]
fn tokens_flow_as_the_edge_says_and_jobs_may_be_released_early() {
    let report = judge_graph(&graph(2, 3, 4, 0), &two_producers_one_consumer());
    assert!(report.is_clean(), "{report}");
}

#[test]
fn every_rule_about_tokens_is_judged() {
    let header = graph(2, 3, 4, 0);
    let edge = EdgeId(0);
    let change = |from: Event, to: &[Event]| {
        let events = two_producers_one_consumer().into_iter();
        let events: Vec<_> = events
            .flat_map(
                |(at, event)| {
                    if event == from { to.iter().map(|&to| (at, to)).collect() } else { vec![(at, event)] }
                },
            )
            .collect();
        judge_graph(&header, &events).violations.first().map(|violation| (violation.job, violation.what))
    };
    let (first, take) = (produce(A, 0, 2), consume(B, 0, 3));
    assert_eq!(
        change(first, &[produce(A, 0, 1)]),
        Some((Some(A), Problem::WrongTokens { edge, tokens: 1, expected: 2 }))
    );
    let report = judge_graph(&graph(2, 3, 5, 0), &two_producers_one_consumer());
    assert_eq!(only(&report).2, Problem::BelowThreshold { edge, tokens: 4, threshold: 5 });
    assert_eq!(
        change(take, &[consume(B, 0, 2)]),
        Some((Some(B), Problem::WrongTokens { edge, tokens: 2, expected: 3 }))
    );
    assert_eq!(change(take, &[]), Some((Some(B), Problem::StartedWithoutTokens { edge })));
    assert_eq!(change(first, &[first, first]), Some((Some(A), Problem::TokensOutOfTurn { edge })));
    assert_eq!(change(take, &[take, take]), Some((Some(B), Problem::TokensOutOfTurn { edge })));
    assert_eq!(
        change(first, &[]),
        Some((Some(job(0, 1)), Problem::TokensOutOfTurn { edge })),
        "A's tokens are missing"
    );
    assert_eq!(change(first, &[first, produce(B, 0, 2)]), Some((Some(B), Problem::WrongEnd { edge })));
    assert_eq!(change(first, &[first, consume(A, 0, 3)]), Some((Some(A), Problem::WrongEnd { edge })));
    let unknown = Problem::UnknownEdge { edge: EdgeId(7) };
    assert_eq!(change(first, &[first, produce(A, 7, 2)]), Some((Some(A), unknown)));
    assert_eq!(change(first, &[first, consume(A, 7, 2)]), Some((Some(A), unknown)));
}

/// ```text
///          0 1 2 3 4
///   node0  0 1              with two replicas job 1 may write while job 0 of node 1 reads;
///   node1    0 0            with one it must wait until 3
/// ```
#[test]
fn a_replica_is_overwritten_only_after_its_readers_are_complete() {
    let a1 = job(0, 1);
    let pipelined = |begin: u64| {
        let mut events = vec![(0, release(A, 1)), (0, consume(A, 1, 1))];
        events.extend(run(A, 0, 1, &[], &[(0, 1)]));
        events.extend([(1, release(B, 3)), (1, release(a1, 2))]);
        events.extend(run(B, 1, 3, &[(0, 1)], &[(1, 1)]));
        events.extend([(begin, consume(a1, 1, 1)), (begin, ready(a1)), (begin, dispatch(0, a1))]);
        events.sort_by_key(|&(at, _)| at);
        events
    };
    let clean = judge_graph(&graph(1, 1, 1, 2), &pipelined(1));
    assert!(clean.is_clean(), "{clean}");
    let clean = judge_graph(&graph(1, 1, 1, 1), &pipelined(3));
    assert!(clean.is_clean(), "{clean}");
    let found = judge_graph(&graph(1, 1, 1, 1), &pipelined(1));
    let problems: Vec<Problem> = found.violations.iter().map(|violation| violation.what).collect();
    let edge = EdgeId(1);
    assert_eq!(problems[0], Problem::BelowThreshold { edge, tokens: 0, threshold: 1 });
    assert_eq!(problems[1], Problem::StaleRead { reader: B });
}
