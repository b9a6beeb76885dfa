//! What records add up to.

use laxity_model::{
    CpuId, EdgeId, Engine, GpuId, Instant, LockId, Nanos, OverheadKind, ReplicaId, SignedNanos, TaskId,
};
use laxity_trace::intervals::{Activity, Begin, Interval, Ipi, Stop, Timeline, TrackError};
use laxity_trace::{DeviceId, EdgeInfo, EdgeKind, Event, LockKind, Outsider, OutsiderKind, Record};
use proptest::prelude::*;

use super::fixtures::*;
use super::gpus::{add_gpu, add_lock};

fn execution(from: u64, to: u64, cpu: u16, task: u32, begin: Begin, end: Stop) -> Interval {
    let activity = Activity::Execution { cpu: CpuId(cpu), job: job(task, 0), begin, end };
    Interval { from: at(from), to: at(to), activity }
}

fn executions(timeline: &Timeline) -> Vec<Interval> {
    timeline.intervals.iter().copied().filter(|i| matches!(i.activity, Activity::Execution { .. })).collect()
}

/// Paper 002, Fig. 1(a).
#[test]
fn a_preempted_job_migrates_and_its_pieces_say_so() {
    let timeline = Timeline::of(&figure_1_header(), &figure_1a()).expect("a trace of its header");
    assert_eq!(
        timeline.intervals,
        [
            execution(15, 80, 0, 2, Begin::First, Stop::Completed),
            execution(39, 65, 1, 1, Begin::First, Stop::Preempted),
            execution(65, 90, 1, 0, Begin::First, Stop::Completed),
            execution(80, 114, 0, 1, Begin::Migrated { from: CpuId(1) }, Stop::Completed),
        ]
    );
    let t2 = timeline.jobs[1];
    assert_eq!((t2.job, t2.preemptions, t2.migrations, t2.executed), (job(1, 0), 1, 1, span(60)));
    assert_eq!(t2.response_time(), Some(span(75)));
    assert_eq!(t2.lateness(), Some(SignedNanos(-3_500_000)));
    assert_eq!(t2.tardiness(), Some(Nanos::ZERO));
    assert_eq!(timeline.missed().count(), 0);
    assert!(timeline.complete);
    assert_eq!((timeline.begin, timeline.end), (at(15), at(150)));
}

/// Paper 002, Fig. 1(c): T3 is delayed by T1's release although T3 has the higher priority; the switch on P2 comes
/// after scheduling and context-switch overhead, and the piece before them is still known to be preempted.
#[test]
fn overhead_splits_a_dispatch_and_the_last_piece_tells_how_it_ended() {
    let timeline = Timeline::of(&figure_1_header(), &figure_1c()).expect("a trace of its header");
    assert_eq!(
        executions(&timeline),
        [
            execution(22, 65, 0, 2, Begin::First, Stop::Overhead),
            execution(46, 70, 1, 1, Begin::First, Stop::Preempted),
            execution(67, 89, 0, 2, Begin::AfterOverhead, Stop::Completed),
            execution(75, 100, 1, 0, Begin::First, Stop::Completed),
            execution(94, 130, 0, 1, Begin::Migrated { from: CpuId(1) }, Stop::Completed),
        ]
    );
    assert!(timeline.jobs.iter().all(|history| history.executed == [25, 60, 65].map(span)[history.job.task.index()]));
    assert_eq!(timeline.ipis, [Ipi { at: at(67), arrives: at(70), from: CpuId(0), to: CpuId(1) }]);
}

#[test]
fn a_suspension_lasts_from_suspend_to_resume() {
    let (header, records) = suspension_and_misses();
    let timeline = Timeline::of(&header, &records).expect("a trace of its header");
    let suspensions: Vec<Interval> =
        timeline.intervals.iter().copied().filter(|i| matches!(i.activity, Activity::Suspension { .. })).collect();
    assert_eq!(suspensions, [Interval { from: at(20), to: at(40), activity: Activity::Suspension { job: job(0, 0) } }]);
}

#[test]
fn a_late_job_and_one_still_pending_after_its_deadline_are_both_missed() {
    let (header, records) = suspension_and_misses();
    let timeline = Timeline::of(&header, &records).expect("a trace of its header");
    let missed: Vec<_> = timeline.missed().map(|history| (history.job, history.tardiness())).collect();
    assert_eq!(missed, [(job(0, 0), Some(span(10))), (job(1, 0), None), (job(0, 1), Some(span(10)))]);
    assert_eq!(
        executions(&timeline).last().map(|piece| piece.activity),
        Some(Activity::Execution { cpu: CpuId(0), job: job(1, 0), begin: Begin::Again, end: Stop::TraceEnded })
    );
}

#[test]
fn a_job_that_completes_at_its_deadline_is_not_missed() {
    let header = header("edge", 1, &[("t", 40, 40)]);
    let records = [release(0, job(0, 0), 40), dispatch(0, 0, job(0, 0)), complete(40, 0, job(0, 0)), end(50)];
    assert_eq!(Timeline::of(&header, &records).expect("legal").missed().count(), 0);
}

#[test]
fn a_job_incomplete_when_the_trace_ends_at_its_deadline_is_missed() {
    let header = header("edge", 1, &[("t", 40, 40)]);
    let ending_at = |tenths| {
        let records = [release(0, job(0, 0), 40), dispatch(0, 0, job(0, 0)), end(tenths)];
        Timeline::of(&header, &records).expect("legal").missed().count()
    };
    assert_eq!(ending_at(39), 0);
    assert_eq!(ending_at(40), 1, "metrics and checkers count it as well");
}

/// A job of an interrupt thread has the deadline of the job that it serves: metrics do not count it twice, and neither do
/// the chart's misses.
#[test]
fn a_late_job_of_an_interrupt_thread_is_not_missed() {
    let mut header = header("threads", 1, &[("t", 40, 40), ("irq", 40, 40)]);
    let records = [
        release(0, job(0, 0), 40),
        release(0, job(1, 0), 40),
        dispatch(41, 0, job(0, 0)),
        complete(50, 0, job(0, 0)),
        end(60),
    ];
    let missed = |header: &laxity_trace::TraceHeader| Timeline::of(header, &records).expect("legal").missed().count();
    assert_eq!(missed(&header), 2);
    header.tasks[1].kind = laxity_trace::TaskKind::Thread;
    assert_eq!(missed(&header), 1);
}

#[test]
fn arrival_is_the_deadline_minus_the_relative_deadline() {
    let header = header("jitter", 1, &[("t", 10, 40)]);
    let records = [release(3, job(0, 0), 40), dispatch(3, 0, job(0, 0)), complete(13, 0, job(0, 0)), end(40)];
    let timeline = Timeline::of(&header, &records).expect("legal");
    let released = timeline.jobs[0].released.expect("it was released");
    assert_eq!((released.arrival, released.release, released.deadline), (at(0), at(3), at(40)));
    assert_eq!(timeline.jobs[0].response_time(), Some(span(13)), "counted from the arrival, not the release");
}

#[test]
fn overhead_within_overhead_is_not_counted_twice() {
    let header = header("nested", 1, &[("t", 60, 100)]);
    let t = job(0, 0);
    let records = [
        release(0, t, 100),
        dispatch(0, 0, t),
        overhead(10, 0, OverheadKind::Tick, 30),
        overhead(20, 0, OverheadKind::Release, 5),
        complete(90, 0, t),
        end(100),
    ];
    let timeline = Timeline::of(&header, &records).expect("legal");
    assert_eq!(timeline.jobs[0].executed, span(60), "10 before the tick, 50 after it");
}

#[test]
fn overhead_is_clipped_at_the_end_of_the_trace() {
    let header = header("clip", 1, &[("t", 10, 40)]);
    let records = [overhead(10, 0, OverheadKind::Tick, 30), end(20)];
    let timeline = Timeline::of(&header, &records).expect("legal");
    assert_eq!(timeline.intervals.iter().map(|i| (i.from, i.to)).collect::<Vec<_>>(), [(at(10), at(20))]);
}

#[test]
fn records_of_another_header_are_refused() {
    let header = header("small", 1, &[("t", 10, 40)]);
    let of = |records: &[Record]| Timeline::of(&header, records).expect_err("refused");
    assert_eq!(of(&[dispatch(5, 1, job(0, 0))]), TrackError::UnknownCpu { at: at(5), cpu: CpuId(1), cpus: 1 });
    assert_eq!(
        of(&[dispatch(5, 0, job(1, 2))]).to_string(),
        "record at 500 us: job T1.2 is of no known task, the header has 1 tasks counted from 0; pass the header that was \
         written with these records"
    );
    assert_eq!(of(&[end(5), end(4)]), TrackError::OutOfOrder { at: at(4), previous: at(5) });
}

/// Any event over a few CPUs and jobs, legal or not.
fn any_event() -> impl Strategy<Value = Event> {
    let ids = (0u16..3, 0u32..3, 0u32..3, prop_oneof![0u64..50, Just(u64::MAX)]);
    (0usize..35, ids).prop_map(|(which, (cpu, task, index, time))| {
        let (to, small, cpu, job, duration) = (CpuId(2 - cpu), cpu, CpuId(cpu), job(task, index), Nanos(time));
        let (gpu, engine, device) = (GpuId(small % 2), Engine::ALL[task as usize], DeviceId(small));
        let (lock, replica, edge, tokens) = (LockId(small), ReplicaId(small % 2), EdgeId(0), task);
        // An owner of another task, or none.
        let owner = (index > 0).then(|| super::fixtures::job((task + index) % 3, 0));
        match which {
            0 => Event::Release { job, deadline: Instant(time) },
            1 => Event::Ready { job, cpu },
            2 => Event::Link { cpu, job: Some(job) },
            3..=6 => Event::Dispatch { cpu, job },
            7 => Event::Preempt { cpu, job },
            8 => Event::Suspend { cpu, job },
            9 => Event::Resume { cpu, job },
            10 => Event::Complete { cpu, job },
            11 => Event::NonPreemptiveBegin { cpu, job },
            12 => Event::NonPreemptiveEnd { cpu, job },
            13 => Event::Overhead { cpu, kind: OverheadKind::Tick, duration },
            14 => Event::Overhead { cpu, kind: OverheadKind::TopHalf, duration: Nanos(time % 64) },
            15 => Event::LockWait { cpu, duration },
            16 => Event::Ipi { from: cpu, to, latency: duration },
            17 => Event::EngineBegin { gpu, engine, job },
            18 => Event::EngineEnd { gpu, engine, job },
            19 => Event::Interrupt { cpu, device, job: owner },
            20 => Event::BottomHalfBegin { cpu, device, job: owner },
            21 => Event::BottomHalfEnd { cpu, device, job: owner },
            22 => Event::Serve { thread: job, device, job: owner },
            23 => Event::Request { job, lock },
            24 => Event::Grant { job, lock, replica },
            25 => Event::Unlock { job, lock, replica },
            26 => Event::Withdraw { job, lock },
            27 => Event::Priority { job, level: time, of: TaskId(u32::from(small)) },
            28 => Event::Produce { job, edge, tokens },
            29 => Event::Consume { job, edge, tokens },
            30 => Event::SpinBegin { cpu, job },
            31 => Event::SpinEnd { cpu, job },
            32 => Event::Replenish { task: job.task, budget: duration, deadline: Instant(time) },
            33 => Event::Outside {
                cpu,
                by: (small != 0).then_some(Outsider { kind: OutsiderKind::Thread, number: small }),
            },
            _ => Event::Stolen { cpu, duration },
        }
    })
}

/// Any sequence of records in order of time.
pub fn any_records() -> impl Strategy<Value = Vec<Record>> {
    proptest::collection::vec((0u64..20, any_event()), 0..80).prop_map(|steps| {
        let mut now = Instant::ZERO;
        steps
            .into_iter()
            .map(|(gap, event)| {
                now += Nanos(gap);
                Record { at: now, event }
            })
            .collect()
    })
}

/// The header of [`any_records`].
pub fn any_header() -> laxity_trace::TraceHeader {
    let mut header = header("anything", 3, &[("a", 1, 10), ("b", 2, 20), ("c", 3, 30)]);
    for name in ["g", "h", "network"] {
        add_gpu(&mut header, name, 2);
        add_lock(&mut header, name, LockKind::Semaphore { gpus: vec![GpuId(0)] }, 2);
    }
    header.gpus.truncate(2);
    header.edges.push(EdgeInfo {
        producer: TaskId(0),
        consumer: TaskId(1),
        produce: 1,
        consume: 1,
        threshold: 1,
        initial: 1,
        kind: EdgeKind::Token,
    });
    header
}

proptest! {
    /// Whatever the records say: no panic, nothing empty or beyond the end, no two of execution, spinning, bottom
    /// halves and what is no task at once on a CPU, and none that is stolen twice at once.
    #[test]
    fn a_cpu_never_executes_two_things_at_once(records in any_records()) {
        let timeline = Timeline::of(&any_header(), &records).expect("CPUs, tasks and times fit the header");
        for interval in &timeline.intervals {
            prop_assert!(interval.from < interval.to && interval.to <= timeline.end);
        }
        let busy: Vec<_> = timeline
            .intervals
            .iter()
            .filter_map(|i| match i.activity {
                Activity::Execution { cpu, .. } | Activity::Spinning { cpu, .. } | Activity::BottomHalf { cpu, .. } | Activity::Outside { cpu, .. } => {
                    Some((cpu, i.from, i.to, true))
                }
                Activity::Overhead { cpu, .. } | Activity::LockWait { cpu } => {
                    Some((cpu, i.from, i.to, false))
                }
                _ => None,
            })
            .collect();
        for (position, one) in busy.iter().enumerate() {
            for other in &busy[position + 1..] {
                // Overheads may overlap one another in a broken trace, but never an execution.
                if one.0 == other.0 && (one.3 || other.3) {
                    prop_assert!(one.2 <= other.1 || other.2 <= one.1, "{one:?} overlaps {other:?}");
                }
            }
        }
        let stolen = |i: &&Interval| matches!(i.activity, Activity::Stolen { .. });
        let mut stolen: Vec<_> = timeline.intervals.iter().filter(stolen).map(|i| (i.activity.cpu(), i.from, i.to)).collect();
        stolen.sort();
        for pair in stolen.windows(2) {
            prop_assert!(pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1, "{pair:?} overlap");
        }
        let pieces: u64 = executions(&timeline).iter().map(|piece| piece.duration().0).sum();
        prop_assert_eq!(pieces, timeline.jobs.iter().map(|history| history.executed.0).sum::<u64>());
    }
}
