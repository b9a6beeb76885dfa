//! Chains in drawn schedules: their data age and reaction time are what a person would read off, and reads of values that are
//! not the newest are found.

mod check_reference;

use check_reference::hand::*;
use check_reference::{Setup, UNIT, at};
use laxity_model::{EdgeId, JobId, Nanos, TaskId};
use laxity_trace::check::{self, Problem};
use laxity_trace::metrics::{ChainSummary, DistributionSummary, measure};
use laxity_trace::{ChainInfo, EdgeInfo, EdgeKind, Event, GraphInfo, LatestInfo, TaskKind, TraceHeader};

/// ```text
///   node 0 (source, period 4) --tokens--> node 1 ..latest..> node 2 (source, period 6)
/// ```
fn header() -> TraceHeader {
    let mut header = Setup::edf(3, &[(1, 4), (2, 4), (1, 6)], 0).header();
    for (index, task) in header.tasks.iter_mut().enumerate() {
        task.kind = TaskKind::Node { graph: 0, source: index != 1 };
    }
    let path = vec![TaskId(0), TaskId(1), TaskId(2)];
    header.graphs = vec![GraphInfo { name: "graph".to_owned(), nodes: path.clone() }];
    let (producer, consumer, kind) = (path[0], path[1], EdgeKind::Token);
    header.edges = vec![EdgeInfo { producer, consumer, produce: 1, consume: 1, threshold: 1, initial: 0, kind }];
    header.latest = vec![LatestInfo { producer: path[1], consumer: path[2] }];
    let limit = |units: u64| Some(Nanos(units * UNIT.0));
    let chain = ChainInfo { name: "chain".to_owned(), path, data_age_max: limit(9), reaction_time_max: limit(11) };
    header.chains = vec![chain];
    header
}

fn read(job: JobId, value: Option<u32>) -> Event {
    Event::Read { job, edge: EdgeId(1), value }
}

/// Each on a CPU of its own.
fn run(job: JobId, from: u64, to: u64, deadline: u64, value: Option<Option<u32>>) -> Vec<(u64, Event)> {
    let cpu = job.task.0 as u16;
    let mut events = vec![(from, release(job, deadline))];
    events.extend((job.task.0 == 1).then(|| (from, consume(job, 0, 1))));
    events.extend([(from, ready(job)), (from, dispatch(cpu, job))]);
    events.extend(value.map(|value| (from, read(job, value))));
    events.extend((job.task.0 == 0).then(|| (to, produce(job, 0, 1))));
    events.push((to, complete(cpu, job)));
    events
}

/// ```text
///          0         1         2
///          0123456789012345678901234
///   node0  0   1   2   3   4   5          arrivals at 0, 4, 8, ...
///   node1   00  11  22  33  44  55        completions at 3, 7, 11, ...
///   node2  0     1     2     3     4      begin at 0, 6, 12, 18, 24: they read -, 0, 2, 3, 5
/// ```
fn schedule(third: Option<u32>) -> Vec<(u64, Event)> {
    let mut events = Vec::new();
    for index in 0..6 {
        let from = 4 * u64::from(index);
        events.extend(run(job(0, index), from, from + 1, from + 4, None));
        events.extend(run(job(1, index), from + 1, from + 3, from + 5, None));
    }
    for (index, value) in [None, Some(0), third, Some(3), Some(5)].into_iter().enumerate() {
        let from = 6 * index as u64;
        events.extend(run(job(2, index as u32), from, from + 1, from + 6, Some(value)));
    }
    events.sort_by_key(|&(at, _)| at);
    events.push((26, Event::End));
    events
}

fn chain(header: &TraceHeader, events: &[(u64, Event)]) -> ChainSummary {
    measure(header, &trace(events), at(26)).chains.remove(0)
}

fn times(all: Option<DistributionSummary>) -> (u64, u64, u64) {
    let all = all.expect("some");
    (all.count, all.total.0 / UNIT.0, all.max.0 / UNIT.0)
}

/// Outputs at 7, 13, 19, 25 use the samples of 0, 8, 12, 20.
#[test]
fn ages_count_from_samples_and_reactions_from_just_after_the_samples_before() {
    let chain = chain(&header(), &schedule(Some(2)));
    assert_eq!(chain.outputs, 4, "the first job read nothing");
    assert_eq!(times(chain.data_age), (4, 7 + 5 + 7 + 5, 7));
    assert_eq!(chain.data_age, chain.data_age_first, "no sample is used twice");
    // From 0 to 13, from 8 to 19, from 12 to 25.
    assert_eq!(times(chain.reaction_time), (3, 13 + 11 + 13, 13));
    // The last output of a sample is known with the first of the next: of the sample of 8 from 0, of that of 12 from 8.
    assert_eq!(times(chain.reaction_time_last), (2, 13 + 11, 13));
    assert_eq!(chain.missed, 2, "reactions may take 11");
}

/// The job that begins at 12 reads the value that the one before it read.
#[test]
fn a_sample_that_is_used_again_is_older_and_reactions_are_later() {
    let chain = chain(&header(), &schedule(Some(0)));
    // Outputs at 7 and 13 use the sample of 0.
    assert_eq!(times(chain.data_age), (4, 7 + 13 + 7 + 5, 13));
    assert_eq!(times(chain.data_age_first), (3, 7 + 7 + 5, 7));
    assert_eq!(times(chain.reaction_time), (2, 19 + 13, 19));
    assert_eq!(times(chain.reaction_time_last), (1, 19, 19), "of the sample of 12, from just after 0");
    assert_eq!(chain.missed, 3, "an age of 13, reactions of 19 and 13");
}

#[test]
fn a_read_of_another_value_than_the_newest_complete_one_is_a_violation() {
    let header = header();
    let judge = |events: &[(u64, Event)]| check::legality(&header, &trace(events), |_| None);
    let clean = judge(&schedule(Some(2)));
    assert!(clean.is_clean(), "{clean}");
    let edge = EdgeId(1);
    let found = |events: &[(u64, Event)]| {
        judge(events).violations.iter().map(|violation| (violation.job, violation.what)).collect::<Vec<_>>()
    };
    let reader = Some(job(2, 2));
    let stale = Problem::NotNewest { edge, read: Some(0), newest: Some(2) };
    assert_eq!(found(&schedule(Some(0))), [(reader, stale)]);
    // Of a job that has not completed.
    let early = Problem::NotNewest { edge, read: Some(3), newest: Some(2) };
    assert_eq!(found(&schedule(Some(3))), [(reader, early)]);
    let is_it = |event: &Event| matches!(event, Event::Read { job: it, .. } if Some(*it) == reader);
    let without: Vec<_> = schedule(Some(2)).into_iter().filter(|(_, event)| !is_it(event)).collect();
    assert_eq!(found(&without), [(reader, Problem::NotRead { edge })]);
    let unknown = schedule(Some(2)).into_iter().map(|(at, event)| match event {
        Event::Read { job: it, value, .. } if Some(it) == reader => {
            (at, Event::Read { job: it, edge: EdgeId(7), value })
        }
        event => (at, event),
    });
    let problems = found(&unknown.collect::<Vec<_>>());
    assert_eq!(problems, [(reader, Problem::UnknownEdge { edge: EdgeId(7) }), (reader, Problem::NotRead { edge })]);
}

#[test]
fn reads_chains_and_latest_value_edges_survive_the_file() {
    let (header, records) = (header(), trace(&schedule(Some(2))));
    let mut writer = laxity_trace::codec::TraceWriter::new(Vec::new(), &header).expect("memory takes it");
    for record in &records {
        laxity_trace::Sink::record(&mut writer, record.at, record.event);
    }
    let bytes = writer.finish().expect("memory takes it");
    let trace = laxity_trace::codec::read_all(&bytes[..]).expect("it is whole");
    assert_eq!((trace.header, trace.records), (header, records));
}

/// Data is 7, 5, 7 and 5 old in the outputs at 7, 13, 19 and 25, and those at 13 and 25 show an event after 13. They were counted
/// as missed, and the trace was said to meet its deadlines.
#[test]
fn an_output_that_exceeds_a_deadline_of_its_chain_is_a_missed_deadline() {
    let mut header = header();
    for (data_age_max, late) in [(9, vec![13, 25]), (6, vec![7, 13, 19, 25])] {
        header.chains[0].data_age_max = Some(Nanos(data_age_max * UNIT.0));
        let found = check::deadlines(&header, &trace(&schedule(Some(2))));
        let times: Vec<_> = found.violations.iter().map(|violation| violation.at).collect();
        assert_eq!(times, late.into_iter().map(at).collect::<Vec<_>>(), "{found}");
        assert_eq!(found.count(), chain(&header, &schedule(Some(2))).missed);
    }
    let found = check::deadlines(&header, &trace(&schedule(Some(2))));
    let words: Vec<_> = found.violations.iter().map(|violation| violation.in_words(&header).to_string()).collect();
    assert!(words[0].ends_with("completes an output of chain chain with a data age of 7 ms where 6 ms is allowed"));
    assert!(
        words[1].ends_with("completes an output of chain chain with a reaction time of 13 ms where 11 ms is allowed")
    );
}
