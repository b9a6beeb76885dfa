//! The rows themselves.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, LockId, OverheadKind, ReplicaId, TaskId};
use laxity_trace::intervals::TrackError;
use laxity_trace::table::{EventRow, IntervalRow, JobRow, Owner, events, intervals, jobs};
use laxity_trace::{DeviceId, Event, Outsider, OutsiderInfo, OutsiderKind, TaskKind, TraceHeader};

use super::fixtures::*;
use super::gpus::*;

/// Paper 002, Fig. 1(c): the job that is preempted and migrates.
#[test]
fn a_jobs_row_tells_how_it_fared() {
    let header = figure_1_header();
    let rows = jobs(&header, &figure_1c()).expect("it fits");
    assert_eq!(rows.iter().map(|row| row.task_name).collect::<Vec<_>>(), ["T3", "T2", "T1"], "by release");
    assert_eq!(
        rows[1],
        JobRow {
            task: 1,
            task_name: "T2",
            job: 0,
            release_ns: Some(3_900_000),
            arrival_ns: Some(3_900_000),
            deadline_ns: Some(14_900_000),
            completion_ns: Some(13_000_000),
            response_time_ns: Some(9_100_000),
            lateness_ns: Some(-1_900_000),
            tardiness_ns: Some(0),
            preemptions: 1,
            migrations: 1,
            executed_ns: 6_000_000,
            missed: false,
            spinning_ns: 0,
            awaiting_locks_ns: 0,
            inheriting_ns: 0,
            operations_ns: 0,
            bottom_halves_ns: 0,
            owner: None,
        }
    );
}

#[test]
fn a_jobs_row_tells_what_it_waited_for_and_what_was_done_for_it() {
    let (header, records) = pipeline();
    let rows = jobs(&header, &records).expect("it fits");
    let of = |name: &str| *rows.iter().find(|row| row.task_name == name).expect(name);
    let (detector, lidar) = (of("detector"), of("lidar"));
    assert_eq!((detector.spinning_ns, detector.inheriting_ns), (1_000_000, 7_000_000));
    assert_eq!((detector.operations_ns, detector.bottom_halves_ns), (6_000_000, 800_000));
    assert_eq!((detector.awaiting_locks_ns, lidar.awaiting_locks_ns), (0, 7_000_000));
    assert_eq!((lidar.spinning_ns, lidar.executed_ns, lidar.bottom_halves_ns), (1_600_000, 1_900_000, 0));
    let (header, records) = inversion_klmirqd();
    let rows = jobs(&header, &records).expect("it fits");
    let owners: Vec<_> = rows.iter().map(|row| (row.task_name, row.owner.map(|owner| owner.to_string()))).collect();
    assert_eq!(owners, [("H", None), ("L", None), ("klmirqd0", Some("H.0".to_owned()))]);
}

#[test]
fn a_pending_job_has_no_completion_and_is_missed_once_its_deadline_has_come() {
    let (header, records) = suspension_and_misses();
    let rows = jobs(&header, &records).expect("it fits");
    let logger = rows.iter().find(|row| row.task_name == "logger").expect("it was released");
    assert_eq!((logger.completion_ns, logger.response_time_ns, logger.lateness_ns), (None, None, None));
    assert!(logger.missed);
    let late: Vec<_> = rows.iter().filter(|row| row.task == 0).map(|row| (row.job, row.lateness_ns)).collect();
    assert_eq!(late, [(0, Some(1_000_000)), (1, Some(1_000_000))]);
}

#[test]
fn an_events_row_has_what_applies_and_nothing_else() {
    let outsider = Outsider { kind: OutsiderKind::Thread, number: 0 };
    let info = OutsiderInfo { kind: outsider.kind, name: "kworker/1:2".to_owned(), thread: Some(57) };
    let header = TraceHeader { operations: vec!["gemm".to_owned()], outsiders: vec![info], ..figure_1_header() };
    let none = EventRow {
        at_ns: 1_500_000,
        event: "end",
        cpu: None,
        to_cpu: None,
        task: None,
        task_name: None,
        job: None,
        deadline_ns: None,
        kind: None,
        duration_ns: None,
        gpu: None,
        engine: None,
        operation: None,
        outsider: None,
        thread: None,
        device: None,
        lock: None,
        replica: None,
        owner: None,
        edge: None,
        tokens: None,
        level: None,
        of_task: None,
    };
    let t3 = job(2, 0);
    let job = EventRow { task: Some(2), task_name: Some("T3"), job: Some(0), ..none };
    let (cpu, kind, duration) = (CpuId(1), OverheadKind::CacheMigration, span(1));
    let lasting = EventRow { cpu: Some(1), duration_ns: Some(100_000), ..none };
    let (gpu, engine, device) = (GpuId(3), Engine::Copy(1), DeviceId(4));
    let (lock, replica, edge) = (LockId(5), ReplicaId(6), EdgeId(8));
    let half = EventRow { cpu: Some(1), device: Some(4), owner: Some(Owner { task_name: "T3", job: 0 }), ..none };
    let cases = [
        (
            Event::Release { job: t3, deadline: at(135) },
            EventRow { event: "release", deadline_ns: Some(13_500_000), ..job },
        ),
        (Event::Ready { job: t3, cpu }, EventRow { event: "ready", cpu: Some(1), ..job }),
        (Event::Link { cpu, job: Some(t3) }, EventRow { event: "link", cpu: Some(1), ..job }),
        (Event::Link { cpu, job: None }, EventRow { event: "link", cpu: Some(1), ..none }),
        (Event::Dispatch { cpu, job: t3 }, EventRow { event: "dispatch", cpu: Some(1), ..job }),
        (Event::Preempt { cpu, job: t3 }, EventRow { event: "preempt", cpu: Some(1), ..job }),
        (Event::Suspend { cpu, job: t3 }, EventRow { event: "suspend", cpu: Some(1), ..job }),
        (Event::Resume { cpu, job: t3 }, EventRow { event: "resume", cpu: Some(1), ..job }),
        (Event::Complete { cpu, job: t3 }, EventRow { event: "complete", cpu: Some(1), ..job }),
        (Event::NonPreemptiveBegin { cpu, job: t3 }, EventRow { event: "non_preemptive_begin", cpu: Some(1), ..job }),
        (Event::NonPreemptiveEnd { cpu, job: t3 }, EventRow { event: "non_preemptive_end", cpu: Some(1), ..job }),
        (
            Event::Overhead { cpu, kind: OverheadKind::Tick, duration },
            EventRow { event: "overhead", kind: Some("tick"), ..lasting },
        ),
        (Event::LockWait { cpu, duration }, EventRow { event: "lock_wait", ..lasting }),
        (
            Event::CacheDelay { cpu, job: t3, kind, duration },
            EventRow {
                event: "cache_delay",
                kind: Some("cache_migration"),
                cpu: Some(1),
                duration_ns: Some(100_000),
                ..job
            },
        ),
        (
            Event::Ipi { from: cpu, to: CpuId(0), latency: duration },
            EventRow { event: "ipi", to_cpu: Some(0), ..lasting },
        ),
        (
            Event::EngineBegin { gpu, engine, job: t3 },
            EventRow { event: "engine_begin", gpu: Some(3), engine: Some("CE1"), ..job },
        ),
        (
            Event::EngineEnd { gpu, engine, job: t3 },
            EventRow { event: "engine_end", gpu: Some(3), engine: Some("CE1"), ..job },
        ),
        (Event::Interrupt { cpu, device, job: Some(t3) }, EventRow { event: "interrupt", ..half }),
        (Event::Interrupt { cpu, device, job: None }, EventRow { event: "interrupt", owner: None, ..half }),
        (Event::BottomHalfBegin { cpu, device, job: Some(t3) }, EventRow { event: "bottom_half_begin", ..half }),
        (Event::BottomHalfEnd { cpu, device, job: Some(t3) }, EventRow { event: "bottom_half_end", ..half }),
        (
            Event::Serve { thread: t3, device, job: Some(t3) },
            EventRow { event: "serve", device: Some(4), owner: half.owner, ..job },
        ),
        (Event::Request { job: t3, lock }, EventRow { event: "request", lock: Some(5), ..job }),
        (Event::Grant { job: t3, lock, replica }, EventRow { event: "grant", lock: Some(5), replica: Some(6), ..job }),
        (
            Event::Unlock { job: t3, lock, replica },
            EventRow { event: "unlock", lock: Some(5), replica: Some(6), ..job },
        ),
        (Event::Withdraw { job: t3, lock }, EventRow { event: "withdraw", lock: Some(5), ..job }),
        (
            Event::Priority { job: t3, level: 7, of: TaskId(1) },
            EventRow { event: "priority", level: Some(7), of_task: Some(1), ..job },
        ),
        (
            Event::Produce { job: t3, edge, tokens: 9 },
            EventRow { event: "produce", edge: Some(8), tokens: Some(9), ..job },
        ),
        (
            Event::Consume { job: t3, edge, tokens: 9 },
            EventRow { event: "consume", edge: Some(8), tokens: Some(9), ..job },
        ),
        (Event::SpinBegin { cpu, job: t3 }, EventRow { event: "spin_begin", cpu: Some(1), ..job }),
        (Event::SpinEnd { cpu, job: t3 }, EventRow { event: "spin_end", cpu: Some(1), ..job }),
        (
            Event::Replenish { task: TaskId(2), budget: duration, deadline: at(20) },
            EventRow { event: "replenish", job: None, deadline_ns: Some(2_000_000), duration_ns: Some(100_000), ..job },
        ),
        (
            Event::Throttle { cpu, task: Some(TaskId(2)) },
            EventRow { event: "throttle", cpu: Some(1), job: None, ..job },
        ),
        (
            Event::Unthrottle { cpu, task: None, lost: duration },
            EventRow { event: "unthrottle", cpu: Some(1), duration_ns: Some(100_000), ..none },
        ),
        (
            Event::Regulate { cpu, budget: Some(7) },
            EventRow { event: "regulate", cpu: Some(1), level: Some(7), ..none },
        ),
        (
            Event::EngineRate { gpu: GpuId(1), engine: Engine::Copy(0), rate: 5 },
            EventRow { event: "engine_rate", gpu: Some(1), engine: Some("CE0"), level: Some(5), ..none },
        ),
        (
            Event::Read { job: t3, edge, value: Some(4) },
            EventRow { event: "read", edge: Some(8), level: Some(4), ..job },
        ),
        (
            Event::EngineOperation { gpu: GpuId(0), engine: Engine::Execution, name: 0 },
            EventRow { event: "engine_operation", gpu: Some(0), engine: Some("EE"), operation: Some("gemm"), ..none },
        ),
        (
            Event::Stolen { cpu, duration },
            EventRow { event: "stolen", cpu: Some(1), duration_ns: Some(100_000), ..none },
        ),
        (
            Event::Outside { cpu, by: Some(outsider) },
            EventRow {
                event: "outside",
                cpu: Some(1),
                kind: Some("thread"),
                outsider: Some("kworker/1:2"),
                thread: Some(57),
                ..none
            },
        ),
        (Event::Outside { cpu, by: None }, EventRow { event: "outside", cpu: Some(1), ..none }),
        (
            Event::OutsidersLost { cpu, records: 3 },
            EventRow { event: "outsiders_lost", cpu: Some(1), level: Some(3), ..none },
        ),
        (Event::End, none),
    ];
    for (event, expected) in cases {
        let records = [record(15, event)];
        assert_eq!(events(&header, &records).collect::<Vec<_>>(), [expected]);
    }
}

#[test]
fn an_intervals_row_tells_how_an_execution_began_and_stopped() {
    let header = figure_1_header();
    let rows = intervals(&header, &figure_1c()).expect("it fits");
    let t2: Vec<_> = rows.iter().filter(|row| row.task_name == Some("T2")).collect();
    let piece = IntervalRow {
        from_ns: 9_400_000,
        to_ns: 13_000_000,
        duration_ns: 3_600_000,
        activity: "execution",
        cpu: Some(0),
        task: Some(1),
        task_name: Some("T2"),
        job: Some(0),
        begin: Some("migrated"),
        stop: Some("completed"),
        migrated_from_cpu: Some(1),
        gpu: None,
        engine: None,
        operation: None,
        kind: None,
        outsider: None,
        thread: None,
        device: None,
        lock: None,
        replica: None,
        owner: None,
        level: None,
        of_task: None,
    };
    assert_eq!(*t2[1], piece);
    assert_eq!((t2[0].begin, t2[0].stop), (Some("first"), Some("preempted")));
    assert_eq!((rows[0].activity, rows[0].cpu, rows[0].duration_ns), ("release", Some(0), 200_000));
    assert_eq!((rows[0].task, rows[0].begin, rows[0].stop), (None, None, None));
}

#[test]
fn an_intervals_row_tells_what_it_was_about() {
    let (header, records) = pipeline();
    let rows = intervals(&header, &records).expect("it fits");
    let of = |activity: &str| *rows.iter().find(|row| row.activity == activity).expect(activity);
    let operation = of("operation");
    assert_eq!((operation.gpu, operation.engine, operation.task_name), (Some(0), Some("CE0"), Some("detector")));
    assert_eq!((of("awaiting_lock").lock, of("awaiting_lock").replica), (Some(1), None));
    let section = rows.iter().find(|row| row.replica == Some(1)).expect("the second token");
    assert_eq!((section.activity, section.lock, section.job), ("critical_section", Some(0), Some(0)));
    let inheritance = of("inheritance");
    assert_eq!((inheritance.level, inheritance.of_task), (Some(17_500_000), Some(2)));
    let owner = Some(Owner { task_name: "detector", job: 0 });
    for half in [of("top_half"), of("bottom_half")] {
        assert_eq!((half.cpu, half.device, half.owner, half.job), (Some(0), Some(0), owner, None));
    }
    assert_eq!((of("spinning").cpu, of("spinning").job), (Some(0), Some(0)));
    let goes_on = rows.iter().find(|row| row.begin == Some("after_spinning")).expect("detector goes on");
    assert_eq!(goes_on.from_ns, 2_000_000);
    assert!(rows.iter().any(|row| row.stop == Some("spinning")));
}

#[test]
fn a_table_of_another_headers_records_is_refused() {
    let header = figure_1_header();
    let records = [dispatch(5, 7, job(0, 0))];
    let error = TrackError::UnknownCpu { at: at(5), cpu: CpuId(7), cpus: 2 };
    assert_eq!(jobs(&header, &records), Err(error));
    assert_eq!(intervals(&header, &records), Err(error));
}

/// In the trace it has one, ten years after its release: every job has.
#[test]
fn a_best_effort_job_has_no_deadline() {
    let mut header = figure_1_header();
    header.tasks[1].kind = TaskKind::BestEffort;
    let rows = jobs(&header, &figure_1c()).expect("it fits");
    assert_eq!((rows[1].task_name, rows[1].response_time_ns), ("T2", Some(9_100_000)));
    assert_eq!((rows[1].deadline_ns, rows[1].lateness_ns, rows[1].tardiness_ns), (None, None, None));
    assert!(rows.iter().all(|row| row.task == 1 || row.deadline_ns.is_some() && row.lateness_ns.is_some()));
    let records = figure_1c();
    let mut releases = events(&header, &records).filter(|row| row.event == "release");
    assert!(releases.all(|row| row.deadline_ns.is_none() == (row.task == Some(1))));
}
