//! Paper 002, Fig. 1: three jobs with (e, p) = (2.5, 8), (6, 11), (6.5, 12) ms on two CPUs, released at 6.5, 3.9 and
//! 1.5 ms, event-driven, quantum-driven, and event-driven with overheads.

mod common;

use common::{draw, executions, simulate};
use laxity_model::{CpuId, Instant, Nanos, OverheadCosts, OverheadKind, OverheadProfile, Platform, Task, Workload};
use laxity_trace::{Event, Record};

fn figure_1() -> Workload {
    let task = |name, wcet_us, period_ms, phase_us| Task {
        phase: Nanos::from_micros(phase_us),
        ..Task::periodic(name, Nanos::from_micros(wcet_us), Nanos::from_millis(period_ms))
    };
    let tasks = vec![task("T1", 2_500, 8, 6_500), task("T2", 6_000, 11, 3_900), task("T3", 6_500, 12, 1_500)];
    Workload::new("paper 002, Fig. 1", Platform::identical(2), tasks)
}

const STEP: u64 = 500_000;

#[test]
fn inset_a_event_driven_schedules_each_release_at_once() {
    // Half milliseconds; 0, 1, 2 are T1, T2, T3. Jobs that run in part of a column only are not drawn.
    let records = simulate(&figure_1(), "G-EDF", Instant::from_millis(12));
    let expected = "\
cpu0 ...2222222222222111111..
cpu1 ........1111100000......";
    assert_eq!(draw(&records, 2, STEP, 24), expected);
    let runs: Vec<(u64, u64, u16, u32)> = executions(&records)
        .iter()
        .map(|run| (run.start.0 / 1_000, run.end.0 / 1_000, run.cpu.0, run.job.task.0))
        .collect();
    assert_eq!(
        runs,
        [(1_500, 8_000, 0, 2), (3_900, 6_500, 1, 1), (6_500, 9_000, 1, 0), (8_000, 11_400, 0, 1)],
        "us; T1 preempts T2 on P2 at its release, T2 migrates to P1 when T3 completes"
    );
}

#[test]
fn inset_b_quantum_driven_waits_for_the_next_boundary_and_leaves_quanta_partly_idle() {
    let records = simulate(&figure_1(), "CQm", Instant::from_millis(13));
    let runs: Vec<(u64, u64, u16, u32)> = executions(&records)
        .iter()
        .map(|run| (run.start.0 / 1_000, run.end.0 / 1_000, run.cpu.0, run.job.task.0))
        .collect();
    assert_eq!(
        runs,
        [(2_000, 8_500, 0, 2), (4_000, 7_000, 1, 1), (7_000, 9_500, 1, 0), (9_000, 12_000, 0, 1)],
        "us; T3 released at 1.5 starts at 2, T1 released at 6.5 preempts at 7, P1 idles from 8.5 to 9"
    );
}

/// Overheads as in inset (c), "magnified for clarity".
fn magnified() -> OverheadCosts {
    OverheadCosts {
        release: Nanos::from_micros(200),
        scheduling: Nanos::from_micros(150),
        context_switch: Nanos::from_micros(100),
        ipi_latency: Nanos::from_micros(50),
        timer_rearming: Nanos::from_micros(30),
        ..OverheadCosts::default()
    }
}

/// What happened on a CPU or between CPUs in `[from, to)` us, one word an event.
fn story(records: &[Record], from: u64, to: u64) -> Vec<String> {
    let word = |record: &Record| {
        let at = record.at.0 / 1_000;
        let text = match record.event {
            Event::Release { job, .. } => format!("release T{}", job.task.0 + 1),
            Event::Overhead { cpu, kind, .. } => format!("P{} {}", cpu.0 + 1, kind.name()),
            Event::Ipi { from, to, .. } => format!("ipi P{}->P{}", from.0 + 1, to.0 + 1),
            Event::Dispatch { cpu, job } => format!("P{} runs T{}", cpu.0 + 1, job.task.0 + 1),
            Event::Preempt { cpu, job } => format!("P{} stops T{}", cpu.0 + 1, job.task.0 + 1),
            Event::Complete { cpu, job } => format!("P{} completes T{}", cpu.0 + 1, job.task.0 + 1),
            _ => return None,
        };
        (from <= at && at < to).then(|| format!("{at} {text}"))
    };
    records.iter().filter_map(word).collect()
}

#[test]
fn inset_c_overheads_happen_in_order_on_the_cpu_where_they_belong() {
    let mut workload = figure_1();
    workload.platform.overheads = OverheadProfile::constant("magnified", magnified());
    let records = simulate(&workload, "G-EDF", Instant::from_millis(14));

    assert_eq!(
        story(&records, 1_400, 2_500),
        ["1500 release T3", "1500 P1 release", "1700 P1 scheduling", "1850 P1 context_switch", "1950 P1 runs T3"],
        "all three in sequence where the interrupt occurred"
    );
    assert_eq!(
        story(&records, 3_800, 5_000),
        ["3900 release T2", "3900 P2 release", "4100 P2 scheduling", "4250 P2 context_switch", "4350 P2 runs T2"],
    );
    assert_eq!(
        story(&records, 6_400, 7_200),
        [
            "6500 release T1",
            "6500 P1 release",
            "6700 ipi P1->P2",
            "6750 P2 scheduling",
            "6900 P2 stops T2",
            "6900 P2 context_switch",
            "7000 P2 runs T1",
        ],
        "the release is handled on P1, where T3 loses time though it has the higher priority; P2 learns of it by IPI"
    );
    assert_eq!(
        story(&records, 8_600, 9_100),
        [
            "8650 P1 completes T3",
            "8650 P1 scheduling",
            "8800 P1 context_switch",
            "8900 P1 timer_rearming",
            "8930 P1 runs T2"
        ],
        "T3 ran from 1.95 and lost 0.2 to the release of T1; the timer is re-armed after the switch"
    );
}

#[test]
fn a_dedicated_cpu_takes_every_release_and_runs_no_job() {
    let mut workload = figure_1();
    workload.platform = Platform::identical(3);
    workload.platform.overheads = OverheadProfile::constant("magnified", magnified());
    let records = simulate(&workload, "CE1", Instant::from_millis(60));
    let mut releases = 0;
    for record in &records {
        match record.event {
            Event::Overhead { cpu, kind: OverheadKind::Release, .. } => {
                assert_eq!(cpu, CpuId(0));
                releases += 1;
            }
            Event::Overhead { cpu, kind, .. } => assert_ne!(cpu, CpuId(0), "{kind:?}"),
            Event::Dispatch { cpu, .. } | Event::Link { cpu, .. } => assert_ne!(cpu, CpuId(0)),
            Event::Ipi { from, .. } => assert_eq!(from, CpuId(0)),
            _ => {}
        }
    }
    assert!(releases >= 15, "7 + 6 + 5 jobs in 60 ms, some of which may share a timer: {releases}");
}
