//! What jobs spend their time with where other threads of the machine and interrupts have CPUs.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId, Nanos};
use laxity_trace::intervals::{Activity, Timeline};
use laxity_trace::metrics::{Metrics, OutsideUse};
use laxity_trace::why::{Blame, explain, line, row};
use laxity_trace::{Event, Origin, Outsider, OutsiderKind, Record, ShortName, Sink, TraceHeader};
use proptest::prelude::*;

use super::check_reference::hand::*;
use super::check_reference::{self, any_setup};
use super::{A, C, account, header, told};

/// A thread outside the tasks takes the CPU from C, and an interrupt takes it from both; before, it kept C from being released.
///
/// ```text
///   cpu0   k k C k i k C      k thread of the machine, i interrupt
///          0 1 2 3 4 5 6
/// ```
#[test]
fn other_threads_and_interrupts_of_the_machine_are_named() {
    let mut header = header(2);
    let outsider = |kind, number| Outsider { kind, number };
    let (thread, interrupt) = (outsider(OutsiderKind::Thread, 0), outsider(OutsiderKind::Interrupt, 1));
    let name = |outsider, name: &str| Event::OutsiderName { outsider, piece: 0, name: ShortName::pieces(name)[0] };
    let outside = |cpu, by| Event::Outside { cpu: CpuId(cpu), by };
    let events = [
        (0, name(thread, "kworker/0:2")),
        (0, Event::OutsiderThread { outsider: thread, thread: 57 }),
        (0, name(interrupt, "virtio0")),
        (0, outside(0, Some(thread))),
        (0, release(C, 40)),
        (2, outside(0, None)),
        (2, ready(C)),
        (2, dispatch(0, C)),
        (3, outside(0, Some(thread))),
        (3, outside(1, Some(interrupt))),
        (4, outside(0, Some(interrupt))),
        (5, outside(0, Some(thread))),
        // It says itself that a CPU was stolen; of what is named that is known better.
        (5, Event::Stolen { cpu: CpuId(0), duration: Nanos(2 * check_reference::UNIT.0) }),
        (6, outside(0, None)),
        (7, complete(0, C)),
        (7, Event::End),
    ];
    let records = trace(&events);
    records.iter().for_each(|record| header.learn(&record.event));
    let account = account(&header, &events, C);
    let by = "waits for a CPU: thread kworker/0:2 (57) has it";
    assert_eq!(
        told(&header, &account),
        [
            format!("0-2 {by}"),
            "2-3 executes".to_owned(),
            format!("3-4 {by}"),
            "4-5 interrupt: virtio0".to_owned(),
            format!("5-6 {by}"),
            "6-7 executes".to_owned(),
        ]
    );
    let unit = check_reference::UNIT.0;
    let parts: Vec<(String, u64)> =
        account.parts().iter().map(|part| (part.blame.describe(&header), part.time.0 / unit)).collect();
    assert_eq!(parts[0], (by.to_owned(), 4));
    assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), 7, "each nanosecond is accounted for once");
    let json = serde_json::to_value(row(&header, &account)).expect("JSON");
    assert_eq!(json["parts"][0]["cause"], "other_thread");
    assert_eq!(line(&account, 7).cells, "AA█A▒A█");
}

/// ```text
///   cpu0   0 1 2 3 4 5 6 7 8 9 10 11 C      each number a thread that takes the CPU from C for a unit of time
/// ```
#[test]
fn of_many_threads_those_that_took_less_share_a_sign() {
    let header = TraceHeader { origin: Origin::Live, ..header(2) };
    let by = |number| Some(Outsider { kind: OutsiderKind::Thread, number });
    let outside = |at: u64, by| (at, Event::Outside { cpu: CpuId(0), by });
    let mut events = vec![(0, release(C, 40)), (0, ready(C)), (0, dispatch(0, C))];
    events.extend((0..12).map(|number| outside(u64::from(number), by(number))));
    events.extend([outside(12, None), (13, complete(0, C)), (13, Event::End)]);
    let account = account(&header, &events, C);
    assert_eq!(account.parts().len(), 13, "each is known: {:?}", told(&header, &account));
    let line = line(&account, 13);
    assert_eq!(line.cells, "ABCDEFGH****█");
    assert_eq!(line.symbols.iter().filter(|&&(_, symbol)| symbol == '*').count(), 4);
}

/// Laxity's scheduler tells that a job is to be released where it will be: only then is it known what had that CPU.
#[test]
fn a_job_whose_release_waited_for_another_thread_blames_that() {
    let header = TraceHeader { origin: Origin::Live, is_linked: true, ..header(2) };
    let thread = Outsider { kind: OutsiderKind::Thread, number: 3 };
    let outside = |cpu, by| Event::Outside { cpu: CpuId(cpu), by };
    let events = [
        (0, outside(1, Some(thread))),
        (1, release(A, 11)),
        (3, outside(1, None)),
        (4, Event::Ready { job: A, cpu: CpuId(1) }),
        (4, dispatch(1, A)),
        (5, complete(1, A)),
        (5, Event::End),
    ];
    assert_eq!(
        told(&header, &account(&header, &events, A)),
        ["1-3 waits for a CPU: thread 3 has it", "3-4 its release: not handled yet", "4-5 executes"]
    );
}

/// ```text
///   cpu0   C C k k i C        to the end k
/// ```
#[test]
fn metrics_leave_out_what_other_threads_took_and_count_it_by_cpu() {
    let header = header(2);
    let outsider = |kind| Outsider { kind, number: 0 };
    let outside = |kind: Option<OutsiderKind>| Event::Outside { cpu: CpuId(0), by: kind.map(outsider) };
    let events = [
        (0, release(C, 40)),
        (0, ready(C)),
        (0, dispatch(0, C)),
        (2, outside(Some(OutsiderKind::Thread))),
        (4, outside(Some(OutsiderKind::SoftInterrupt))),
        (5, outside(None)),
        (6, complete(0, C)),
        (7, outside(Some(OutsiderKind::Thread))),
        (7, Event::OutsidersLost { cpu: CpuId(0), records: 5 }),
        (10, Event::End),
    ];
    let mut metrics = Metrics::new(&header);
    trace(&events).into_iter().for_each(|Record { at, event }| metrics.record(at, event));
    let units = |count: u64| Nanos(count * check_reference::UNIT.0);
    let summary = metrics.finish(Instant::ZERO + units(10));
    assert_eq!(summary.total.execution, units(3));
    assert_eq!(summary.machine.busy, units(3));
    let [outside] = summary.outside[..] else { panic!("one CPU: {:?}", summary.outside) };
    assert_eq!((outside.cpu, outside.lost_records), (CpuId(0), 5));
    assert_eq!(outside.threads, OutsideUse { count: 2, total: units(5), longest: units(3) });
    assert_eq!(outside.interrupts, OutsideUse { count: 1, total: units(1), longest: units(1) });
}

/// Something that is no task has a CPU of so many for a while.
fn any_outside() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let kind = (0..OutsiderKind::ALL.len()).prop_map(|index| OutsiderKind::ALL[index]);
    let by = prop::option::of((kind, 0..3u16).prop_map(|(kind, number)| Outsider { kind, number }));
    let event = (0..3u16, by).prop_map(|(cpu, by)| Event::Outside { cpu: CpuId(cpu), by });
    prop::collection::vec((0..60 * check_reference::UNIT.0, event), 0..40)
}

proptest! {
    /// Whatever else has the CPUs, each nanosecond of a job has a cause, and what is called execution is what is drawn as that.
    #[test]
    fn the_parts_sum_to_the_response_time_whatever_else_has_the_cpus(setup in any_setup(), outside in any_outside()) {
        let header = setup.header();
        let mut records = setup.schedule();
        let end = records.last().map_or(Instant::ZERO, |record| record.at);
        let known = |&(at, event): &(u64, Event)| at <= end.0 && matches!(event, Event::Outside { cpu, .. } if cpu.index() < header.cpus);
        records.extend(outside.iter().filter(|item| known(item)).map(|&(at, event)| Record { at: Instant(at), event }));
        records.sort_by_key(|record| record.at);
        let accounts = explain(&header, &records, |_| true).expect("a sound trace");
        let timeline = Timeline::of(&header, &records).expect("a sound trace");
        let mut executed: BTreeMap<JobId, u64> = BTreeMap::new();
        for interval in &timeline.intervals {
            if let Activity::Execution { job, .. } = interval.activity {
                *executed.entry(job).or_default() += interval.duration().0;
            }
        }
        for account in accounts {
            let parts = account.parts();
            prop_assert_eq!(parts.iter().map(|part| part.time.0).sum::<u64>(), account.time().0);
            let is_execution = |blame: &Blame| matches!(blame, Blame::Execution | Blame::CacheRefill(_));
            let execution: u64 = parts.iter().filter(|part| is_execution(&part.blame)).map(|part| part.time.0).sum();
            prop_assert_eq!(execution, executed.get(&account.job).copied().unwrap_or(0));
        }
    }
}
