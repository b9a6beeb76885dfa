//! The checkers judge the simulator where GPUs, locks and graphs are: whatever the arbitration, the interrupt handling
//! and the scheduler, with and without overheads, no rule of any checker is ever broken.
//!
//! One test an interrupt handling, so that a failure names the half of the simulator to look at, and one for graphs.

mod accounts;
mod graphs;
mod systems;

use laxity_model::{GpuArbitration, Instant, InterruptHandling, JobId, Nanos, Scheduler, ThreadPriority, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::{Event, Record, TraceHeader, check};
use proptest::prelude::*;

use systems::{scheduler, workload};

const LONG: Nanos = Nanos::from_millis(40);

/// Simulates `workload` and has every checker judge the records.
fn judge(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Result<(TraceHeader, Vec<Record>), TestCaseError> {
    prop_assert!(workload.validate().is_ok(), "an invalid workload: {:?}", workload.validate());
    let plan = Plan::new(workload, scheduler, seed).unwrap_or_else(|refusal| panic!("{scheduler}: {refusal}"));
    let mut simulator = Simulator::new(&plan, Vec::new());
    simulator.run_until(Instant::ZERO + LONG);
    let (header, records) = (plan.header.clone(), simulator.finish());
    let legality = check::legality(&header, &records, costs(workload));
    prop_assert!(legality.is_clean(), "{scheduler}: {legality}{}", before(&records, &legality));
    let policy = check::policy(&header, &records);
    prop_assert!(policy.is_clean(), "{scheduler}: {policy}{}", before(&records, &policy));
    Ok((header, records))
}

/// What led to the first violation of `report`: the last records up to then.
fn before(records: &[Record], report: &check::Report) -> String {
    const SHOWN: usize = 40;
    let at = report.violations.first().map_or(Instant::ZERO, |violation| violation.at);
    let end = records.partition_point(|record| record.at <= at);
    let lines = records[end.saturating_sub(SHOWN)..end].iter();
    lines.map(|record| format!("{} {:?}\n", record.at, record.event)).collect()
}

/// What a job of a task needs: its worst case, since all execution times are constant here; nothing is known of nodes
/// of graphs and of interrupt threads.
fn costs(workload: &Workload) -> impl Fn(JobId) -> Option<Nanos> + use<> {
    let costs: Vec<Nanos> = workload.tasks.iter().map(laxity_model::Task::wcet).collect();
    move |job| costs.get(job.task.index()).copied()
}

/// How often `is_meant` holds, so that a test can say that it saw what it is about.
fn count(records: &[Record], is_meant: impl Fn(&Event) -> bool) -> usize {
    records.iter().filter(|record| is_meant(&record.event)).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn standard_linux_breaks_no_rule(
        workload in workload(Just(InterruptHandling::Linux)), scheduler in scheduler(true), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }

    #[test]
    fn threads_of_one_priority_break_no_rule(
        workload in workload(prop_oneof![
            Just(InterruptHandling::PreemptRt(ThreadPriority::Low)),
            Just(InterruptHandling::PreemptRt(ThreadPriority::High)),
        ]),
        scheduler in scheduler(true), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }

    #[test]
    fn process_aware_interrupts_break_no_rule(
        workload in workload(Just(InterruptHandling::ProcessAware)), scheduler in scheduler(true), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }

    #[test]
    fn klmirqd_breaks_no_rule(
        workload in workload(
            prop::option::of(1u32..3).prop_map(|threads| InterruptHandling::Klmirqd { threads })
        ),
        scheduler in scheduler(false), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }

    /// No deadlock stops all jobs, and the seed alone decides the schedule.
    #[test]
    fn some_job_always_makes_progress_and_the_same_seed_gives_the_same_records(
        workload in workload(prop_oneof![
            Just(InterruptHandling::Linux),
            Just(InterruptHandling::ProcessAware),
            Just(InterruptHandling::PreemptRt(ThreadPriority::High)),
            Just(InterruptHandling::Klmirqd { threads: None }),
        ]),
        scheduler in scheduler(false), seed in any::<u64>(),
    ) {
        let mut workload = workload;
        let management = &mut workload.gpu_management;
        // While jobs spin, what they wait for may have no CPU for ever: a callback thread without priority, or a thread
        // of klmirqd at the bottom half of a less urgent job, behind which theirs is queued.
        if !matches!(management.handling, InterruptHandling::Klmirqd { .. }) {
            management.callback = None;
        } else if management.arbitration == GpuArbitration::DriverSpinning {
            management.arbitration = GpuArbitration::Driver;
        }
        let (_, records) = judge(&workload, &scheduler, seed)?;
        prop_assert_eq!(&records, &judge(&workload, &scheduler, seed)?.1);
        let half = Instant::ZERO + Nanos(LONG.0 / 2);
        let recent = &records[records.partition_point(|record| record.at < half)..];
        let ends = count(recent, |event| matches!(event, Event::Complete { .. } | Event::BottomHalfEnd { .. }));
        prop_assert!(ends > 0, "nothing has ended since {}", half);
    }

    #[test]
    fn graphs_on_gpus_break_no_rule(
        (workload, scheduler) in graphs::system(), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }
}

/// The generators reach what they are for: on the whole there are grants, waits, inheritance, threads, bottom halves on
/// stacks, spinning, tokens and more than one operation at once.
#[test]
fn the_random_systems_contain_what_the_rules_are_about() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = [0; 8];
    let any_handling = prop_oneof![
        Just(InterruptHandling::Linux),
        Just(InterruptHandling::ProcessAware),
        Just(InterruptHandling::PreemptRt(ThreadPriority::High)),
        Just(InterruptHandling::Klmirqd { threads: None }),
    ];
    let mut look = |records: &[Record]| {
        seen[0] += count(records, |event| matches!(event, Event::Grant { .. }));
        seen[1] += count(records, |event| matches!(event, Event::Priority { .. }));
        seen[2] += count(records, |event| matches!(event, Event::Serve { job: Some(_), .. }));
        seen[3] += count(records, |event| matches!(event, Event::BottomHalfBegin { .. }));
        seen[4] += count(records, |event| matches!(event, Event::SpinBegin { .. }));
        seen[5] += count(records, |event| matches!(event, Event::Consume { .. }));
        seen[6] += count(records, |event| matches!(event, Event::EngineBegin { .. }));
        seen[7] += count(records, |event| matches!(event, Event::Preempt { .. }));
    };
    for _ in 0..40 {
        let flat = (workload(any_handling.clone()), scheduler(false)).new_tree(&mut runner).expect("drawn").current();
        look(&judge(&flat.0, &flat.1, 1).expect("judged above").1);
        let graph = graphs::system().new_tree(&mut runner).expect("drawn").current();
        look(&judge(&graph.0, &graph.1, 1).expect("judged above").1);
    }
    assert!(seen.iter().all(|&often| often > 100), "{seen:?}");
}
