//! The CPU that is dedicated to interrupts.

use super::check_reference::hand::*;
use super::policy::{judge, setup};
use super::{A, job, only};
use laxity_model::{CpuId, ReleaseInterrupts, ServerKind, TaskId};
use laxity_trace::check::Problem;
use laxity_trace::{Event, Origin, ServerInfo, TraceHeader};

/// cpu0 handles interrupts, and cpu1 runs jobs.
fn header() -> TraceHeader {
    let mut header = setup(2).header();
    header.scheduler.interrupts = ReleaseInterrupts::Dedicated;
    header.clusters = vec![vec![CpuId(1)]];
    header
}

/// The first job of a task is made ready by `first`; the second one, released before that is complete, by `second` at 12.
fn made_ready_by(first: u16, second: u16, at: u64) -> Vec<(u64, Event)> {
    let next = job(0, 1);
    let ready = |job, cpu| Event::Ready { job, cpu: CpuId(cpu) };
    let mut events = vec![
        (0, release(A, 10)),
        (0, ready(A, first)),
        (0, link(1, A)),
        (0, dispatch(1, A)),
        (10, release(next, 20)),
        (12, complete(1, A)),
        (at, ready(next, second)),
        (at, link(1, next)),
        (at, dispatch(1, next)),
        (15, Event::End),
    ];
    events.sort_by_key(|&(at, _)| at);
    events
}

#[test]
fn only_the_dedicated_cpu_makes_jobs_ready_but_those_that_waited_for_their_predecessors() {
    assert_eq!(judge(&header(), &made_ready_by(0, 1, 12)).to_string(), "");
    assert_eq!(judge(&header(), &made_ready_by(0, 0, 13)).to_string(), "");
    let first = judge(&header(), &made_ready_by(1, 1, 12));
    assert_eq!(only(&first), (0, Some(CpuId(1)), Some(A), Problem::NotDedicated));
    assert_eq!(only(&judge(&header(), &made_ready_by(0, 1, 13))).0, 13);
    assert_eq!(
        first.to_string(),
        "at 0 ms T0.0 is released by cpu1, which runs jobs, while another CPU is dedicated to interrupts\n"
    );
}

#[test]
fn it_is_judged_where_one_is_dedicated_and_of_timers_in_simulations() {
    let events = made_ready_by(1, 1, 12);
    let global = {
        let mut header = header();
        header.scheduler.interrupts = ReleaseInterrupts::Global;
        header
    };
    let live = TraceHeader { origin: Origin::Live, ..header() };
    let (budget, period) = (live.tasks[0].wcet, live.tasks[0].period);
    // The CPU that gives it a budget may make it ready.
    let server = ServerInfo { task: TaskId(0), kind: ServerKind::CbsHard, budget, period };
    let served = TraceHeader { servers: vec![server], ..header() };
    for header in [global, live, served] {
        assert_eq!(judge(&header, &events).to_string(), "");
    }
}
