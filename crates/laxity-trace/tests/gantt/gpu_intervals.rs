//! What records of GPUs, interrupts and locks add up to.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, LockId, OverheadKind, ReplicaId, TaskId};
use laxity_trace::intervals::{Activity, Begin, Interrupt, Interval, Source, Stop, Timeline, TrackError};
use laxity_trace::{DeviceId, Event, Record, TraceHeader};

use super::fixtures::*;
use super::gpus::*;

fn timeline((header, records): &(TraceHeader, Vec<Record>)) -> Timeline {
    Timeline::of(header, records).expect("a trace of its header")
}

/// From, to and whatever `wanted` makes of the activity, in tenths.
fn pick<T>(timeline: &Timeline, wanted: impl Fn(Activity) -> Option<T>) -> Vec<(u64, u64, T)> {
    let tenths = |interval: &Interval| (interval.from.0 / TENTH.0, interval.to.0 / TENTH.0);
    let found = timeline.intervals.iter().filter_map(|interval| {
        let (from, to) = tenths(interval);
        Some((from, to, wanted(interval.activity)?))
    });
    found.collect()
}

fn executions(timeline: &Timeline, task: u32) -> Vec<(u64, u64, (Begin, Stop))> {
    pick(timeline, |activity| match activity {
        Activity::Execution { job, begin, end, .. } if job.task == TaskId(task) => Some((begin, end)),
        _ => None,
    })
}

fn source(owner: Option<laxity_model::JobId>) -> Source {
    Source { device: DeviceId(0), owner }
}

/// Paper 000, Fig. 1.
///
/// ```text
///   cpu0   L L L L " _ _ _ _ L L L      L loses the top half and the bottom half
/// ```
#[test]
fn a_bottom_half_on_a_stack_takes_the_cpu_from_the_job_there() {
    let trace = inversion_slih();
    let timeline = timeline(&trace);
    assert_eq!(
        executions(&timeline, 1),
        [(5, 40, (Begin::First, Stop::Overhead)), (58, 113, (Begin::AfterOverhead, Stop::Completed))]
    );
    let halves = pick(&timeline, |activity| match activity {
        Activity::BottomHalf { cpu, source } => Some((cpu, source)),
        _ => None,
    });
    assert_eq!(halves, [(43, 58, (CpuId(0), source(Some(job(0, 0)))))]);
    let l = timeline.jobs[1];
    assert_eq!((l.job, l.executed, l.preemptions), (job(1, 0), span(90), 0));
}

#[test]
fn a_top_half_belongs_to_the_interrupt_that_was_raised_first() {
    let (header, _) = inversion_slih();
    let (h, l) = (job(0, 0), job(1, 0));
    let records = [
        interrupt(10, 0, Some(h)),
        interrupt(11, 0, Some(l)),
        interrupt(11, 1, None),
        overhead(12, 0, OverheadKind::TopHalf, 2),
        overhead(14, 0, OverheadKind::PaiEnqueue, 1),
        overhead(15, 0, OverheadKind::TopHalf, 2),
        overhead(17, 0, OverheadKind::Scheduling, 1),
        overhead(18, 1, OverheadKind::TopHalf, 1),
        overhead(19, 0, OverheadKind::TopHalf, 1),
        end(30),
    ];
    let timeline = Timeline::of(&header, &records).expect("it fits");
    let sources = pick(&timeline, |activity| match activity {
        Activity::Overhead { source, .. } => Some(source),
        _ => None,
    });
    let [h, l, none] = [Some(h), Some(l), None].map(|owner| Some(source(owner)));
    let expected = [(12, 14, h), (14, 15, h), (15, 17, l), (17, 18, None), (18, 19, none), (19, 20, None)];
    assert_eq!(sources, expected);
    let raised = Interrupt { at: at(10), cpu: CpuId(0), source: source(Some(job(0, 0))) };
    assert_eq!((timeline.interrupts.len(), timeline.interrupts[0]), (3, raised));
}

/// Where a top half costs nothing, there is no record of it: its bottom half tells that it is over.
#[test]
fn a_top_half_that_took_no_time_is_not_mistaken_for_the_next() {
    let (header, _) = inversion_slih();
    let (h, l) = (job(0, 0), job(1, 0));
    for settled in [bottom_half(12, 13, 1, Some(h)).to_vec(), vec![serve(12, job(1, 1), Some(h))]] {
        let mut records = vec![interrupt(10, 0, Some(h))];
        records.extend(settled);
        records.extend([interrupt(14, 0, Some(l)), overhead(14, 0, OverheadKind::TopHalf, 2), end(20)]);
        let timeline = Timeline::of(&header, &records).expect("it fits");
        let sources = pick(&timeline, |activity| match activity {
            Activity::Overhead { source, .. } => source,
            _ => None,
        });
        assert_eq!(sources, [(14, 16, source(Some(l)))]);
    }
}

/// ```text
///   cpu0   t t _ _ ! ! _ _ t t
/// ```
#[test]
fn overhead_interrupts_a_bottom_half_and_the_job_goes_on_after_both() {
    let (header, _) = inversion_slih();
    let t = job(0, 0);
    let mut records = vec![release(0, t, 120), dispatch(0, 0, t), overhead(14, 0, OverheadKind::Tick, 2)];
    records.extend(bottom_half(12, 18, 0, None));
    records.extend([complete(20, 0, t), end(30)]);
    let timeline = Timeline::of(&header, &by_time(records)).expect("it fits");
    let halves = pick(&timeline, |activity| matches!(activity, Activity::BottomHalf { .. }).then_some(()));
    assert_eq!(halves, [(12, 14, ()), (16, 18, ())]);
    assert_eq!(
        executions(&timeline, 0),
        [(0, 12, (Begin::First, Stop::Overhead)), (18, 20, (Begin::AfterOverhead, Stop::Completed))]
    );
}

#[test]
fn a_job_dispatched_under_a_bottom_half_waits_for_its_end() {
    let (header, _) = inversion_slih();
    let t = job(0, 0);
    let mut records = bottom_half(10, 18, 0, None).to_vec();
    records.extend([release(10, t, 120), dispatch(12, 0, t), complete(20, 0, t), end(30)]);
    let timeline = Timeline::of(&header, &by_time(records)).expect("it fits");
    assert_eq!(executions(&timeline, 0), [(18, 20, (Begin::First, Stop::Completed))]);
}

/// The pipeline: what is not execution, by kind.
#[test]
fn engines_locks_spinning_and_inheritance_last_from_their_first_to_their_last_record() {
    let trace = pipeline();
    let timeline = timeline(&trace);
    let operations = pick(&timeline, |activity| match activity {
        Activity::Operation { gpu: GpuId(0), engine, job, .. } => Some((engine, job.task.0)),
        _ => None,
    });
    assert_eq!(operations, [(10, 20, (CE0, 1)), (30, 80, (EE, 1)), (112, 128, (EE, 2))]);
    let waits = pick(&timeline, |activity| match activity {
        Activity::AwaitingLock { job, lock } => Some((job.task.0, lock.0)),
        _ => None,
    });
    assert_eq!(waits, [(40, 110, (2, 1))], "a request granted at once is no wait");
    let sections = pick(&timeline, |activity| match activity {
        Activity::CriticalSection { job, lock, replica } => Some((job.task.0, lock.0, replica.0)),
        _ => None,
    });
    assert_eq!(sections, [(10, 20, (1, 2, 0)), (10, 110, (1, 0, 1)), (30, 110, (1, 1, 0)), (110, 130, (2, 1, 0))]);
    let spinning = pick(&timeline, |activity| match activity {
        Activity::Spinning { job, cpu } => Some((job.task.0, cpu.0)),
        _ => None,
    });
    assert_eq!(spinning, [(10, 20, (1, 0)), (112, 128, (2, 1))]);
    let inherited = pick(&timeline, |activity| match activity {
        Activity::Inheritance { job, of, level } => Some((job.task.0, of.0, level)),
        _ => None,
    });
    assert_eq!(inherited, [(40, 110, (1, 2, at(175).0))]);
    assert_eq!(
        executions(&timeline, 2),
        [
            (35, 40, (Begin::First, Stop::Suspended)),
            (110, 112, (Begin::Again, Stop::Spinning)),
            (128, 140, (Begin::AfterSpinning, Stop::Completed)),
        ]
    );
}

#[test]
fn what_is_under_way_when_the_trace_ends_ends_with_it() {
    let (header, _) = pipeline();
    let (t, u) = (job(0, 0), job(1, 0));
    let records = [
        record(10, Event::EngineBegin { gpu: GpuId(0), engine: EE, job: t }),
        request(10, t, 1),
        request(10, u, 0),
        grant(10, u, 0, 1),
        priority(10, u, 0, 50),
        dispatch(10, 0, t),
        record(10, Event::SpinBegin { cpu: CpuId(0), job: t }),
        record(10, Event::BottomHalfBegin { cpu: CpuId(1), device: DeviceId(0), job: None }),
        end(30),
    ];
    let timeline = Timeline::of(&header, &records).expect("it fits");
    let mut lasted = pick(&timeline, |activity| Some(activity.name()));
    lasted.sort_by_key(|lasted| lasted.2);
    let names = ["awaiting_lock", "bottom_half", "critical_section", "inheritance", "operation", "spinning"];
    assert_eq!(lasted, names.map(|name| (10, 30, name)));
}

#[test]
fn a_withdrawn_request_waits_no_longer() {
    let (header, _) = pipeline();
    let t = job(0, 0);
    let records = [request(10, t, 1), record(14, Event::Withdraw { job: t, lock: LockId(1) }), end(30)];
    let timeline = Timeline::of(&header, &records).expect("it fits");
    assert_eq!(pick(&timeline, |activity| Some(activity.name())), [(10, 14, "awaiting_lock")]);
}

#[test]
fn each_priority_inherited_is_an_interval_of_its_own_and_completion_ends_the_last() {
    let (header, _) = pipeline();
    let t = job(0, 0);
    let records = [
        release(0, t, 130),
        priority(10, t, 1, 90),
        priority(12, t, 1, 90),
        priority(15, t, 2, 80),
        complete(20, 0, t),
        end(30),
    ];
    let timeline = Timeline::of(&header, &records).expect("it fits");
    let of = pick(&timeline, |activity| match activity {
        Activity::Inheritance { of, .. } => Some(of.0),
        _ => None,
    });
    assert_eq!(of, [(10, 15, 1), (15, 20, 2)]);
}

#[test]
fn a_job_of_an_interrupt_thread_knows_its_owner() {
    let trace = inversion_klmirqd();
    let timeline = timeline(&trace);
    assert_eq!(timeline.served.into_iter().collect::<Vec<_>>(), [(job(2, 0), source(Some(job(0, 0))))]);
}

/// A job that is preempted while it spins goes on to spin, and its migration is not forgotten.
#[test]
fn spinning_outlasts_a_preemption() {
    let header = header("spin", 2, &[("t", 60, 100)]);
    let t = job(0, 0);
    let records = [
        release(0, t, 100),
        dispatch(0, 0, t),
        record(10, Event::SpinBegin { cpu: CpuId(0), job: t }),
        preempt(20, 0, t),
        dispatch(30, 1, t),
        record(40, Event::SpinEnd { cpu: CpuId(1), job: t }),
        complete(50, 1, t),
        end(50),
    ];
    let timeline = Timeline::of(&header, &records).expect("it fits");
    let spinning = pick(&timeline, |activity| matches!(activity, Activity::Spinning { .. }).then_some(()));
    assert_eq!(spinning, [(10, 20, ()), (30, 40, ())]);
    assert_eq!(
        executions(&timeline, 0),
        [(0, 10, (Begin::First, Stop::Spinning)), (40, 50, (Begin::Migrated { from: CpuId(0) }, Stop::Completed)),]
    );
    assert_eq!(timeline.jobs[0].executed, span(20));
}

/// Late records about a job that is complete must not make it pending again.
#[test]
fn a_complete_job_stays_complete() {
    let (header, _) = pipeline();
    let t = job(0, 0);
    let mut records = vec![release(0, t, 130), dispatch(0, 0, t), request(1, t, 0), grant(1, t, 0, 0)];
    records.extend([complete(10, 0, t), unlock(11, t, 0, 0), priority(11, t, 0, 130), produce(11, t, 0, 1)]);
    records.extend(operation(5, 20, EE, t));
    records.extend([record(12, Event::SpinEnd { cpu: CpuId(0), job: t }), end(30)]);
    let timeline = Timeline::of(&header, &by_time(records)).expect("it fits");
    assert_eq!(timeline.jobs.len(), 1);
    assert_eq!(timeline.jobs[0].completion(), Some(at(10)));
    let lasted = pick(&timeline, |activity| Some(activity.name()));
    assert_eq!(lasted, [(0, 10, "execution"), (1, 11, "critical_section"), (5, 20, "operation")]);
}

#[test]
fn what_the_header_does_not_have_is_refused_by_name() {
    let (header, _) = pipeline();
    let t = job(0, 0);
    let refused = |event: Event| Timeline::of(&header, &[record(5, event)]).expect_err("refused");
    let unknown = |what, index, count| TrackError::Unknown { at: at(5), what, index, count };
    let (gpu, lock, replica) = (GpuId(0), LockId(1), ReplicaId(1));
    let cases = [
        (Event::EngineBegin { gpu: GpuId(1), engine: EE, job: t }, unknown("GPU", 1, 1)),
        (Event::EngineEnd { gpu, engine: Engine::Copy(2), job: t }, unknown("copy engine", 2, 2)),
        (Event::Interrupt { cpu: CpuId(0), device: DeviceId(4), job: None }, unknown("device", 4, 1)),
        (Event::Request { job: t, lock: LockId(3) }, unknown("lock", 3, 3)),
        (Event::Grant { job: t, lock, replica }, unknown("replica", 1, 1)),
        (Event::Consume { job: t, edge: EdgeId(1), tokens: 1 }, unknown("edge", 1, 1)),
        (Event::Priority { job: t, level: 0, of: TaskId(3) }, unknown("task", 3, 3)),
        (
            Event::Serve { thread: t, device: DeviceId(0), job: Some(job(8, 0)) },
            TrackError::UnknownTask { at: at(5), job: job(8, 0), tasks: 3 },
        ),
    ];
    for (event, expected) in cases {
        assert_eq!(refused(event), expected);
    }
    assert_eq!(
        unknown("lock", 3, 3).to_string(),
        "record at 500 us: lock 3 does not exist, the header has 3 counted from 0; pass the header that was written \
         with these records"
    );
}
