//! Every nanosecond of every job has a cause, whatever the system.

use laxity_model::{InterruptHandling, JobId, Nanos, Scheduler, ThreadPriority, Workload};
use laxity_tests::simulate;
use laxity_trace::intervals::{Activity, JobHistory, Timeline};
use laxity_trace::why::{Account, Blame, explain, worst};
use laxity_trace::{TaskKind, TraceHeader};
use proptest::prelude::*;

use super::{LONG, graphs, systems};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_causes_of_a_job_sum_to_its_response_time(
        workload in systems::workload(prop_oneof![
            Just(InterruptHandling::Linux),
            Just(InterruptHandling::ProcessAware),
            Just(InterruptHandling::PreemptRt(ThreadPriority::High)),
        ]),
        scheduler in systems::scheduler(true), seed in any::<u64>(),
    ) {
        account_for_all(&workload, &scheduler, seed)?;
    }

    #[test]
    fn the_causes_of_a_job_sum_to_its_response_time_under_klmirqd(
        workload in systems::workload(prop::option::of(1u32..3).prop_map(|threads| InterruptHandling::Klmirqd { threads })),
        scheduler in systems::scheduler(false), seed in any::<u64>(),
    ) {
        account_for_all(&workload, &scheduler, seed)?;
    }

    #[test]
    fn the_causes_of_a_job_of_a_node_sum_to_its_response_time(
        (workload, scheduler) in graphs::system(), seed in any::<u64>(),
    ) {
        account_for_all(&workload, &scheduler, seed)?;
    }
}

/// Explains every job, and compares with the intervals, which know nothing of causes.
fn account_for_all(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Result<(), TestCaseError> {
    let (header, records) = simulate(workload, scheduler, laxity_model::Instant::ZERO + LONG, seed);
    let timeline = Timeline::of(&header, &records).expect("the simulator's own records");
    let accounts = explain(&header, &records, |_| true).expect("the simulator's own records");
    let released = timeline.jobs.iter().filter(|job| job.released.is_some()).count();
    prop_assert_eq!(accounts.len(), released, "every job that was released has an account");
    for account in &accounts {
        let job = timeline.jobs.iter().find(|job| job.job == account.job).expect("it was released");
        judge(&header, &timeline, job, account)?;
    }
    let late = worst(&header, &records, |_| true);
    let missed = timeline.missed().filter(|job| header.tasks[job.job.task.index()].kind != TaskKind::BestEffort);
    let of_own = missed.filter(|job| !header.tasks[job.job.task.index()].kind.is_thread());
    let found = late.iter().filter(|candidate| candidate.lateness.0 > 0 || !candidate.completed).count();
    prop_assert_eq!(found, of_own.count(), "every late job is among the worst");
    Ok(())
}

fn judge(header: &TraceHeader, timeline: &Timeline, job: &JobHistory, account: &Account) -> Result<(), TestCaseError> {
    let name = job.job;
    let gapless = account.pieces.windows(2).all(|pair| pair[0].to == pair[1].from && pair[0].causes != pair[1].causes);
    prop_assert!(gapless, "{}: {:?}", name, account);
    let parts = account.parts();
    let sum: u64 = parts.iter().map(|part| part.time.0).sum();
    prop_assert_eq!(sum, account.time().0, "{}: {:?}", name, account);
    prop_assert_eq!(account.completed, job.completion().is_some());
    if let (Some(response), false) = (job.response_time(), header.tasks[name.task.index()].kind.is_thread()) {
        prop_assert_eq!(account.time(), response, "{}", name);
    }
    let time = |is_meant: &dyn Fn(Blame) -> bool| -> Nanos {
        Nanos(parts.iter().filter(|part| is_meant(part.blame)).map(|part| part.time.0).sum())
    };
    let executed = time(&|blame| matches!(blame, Blame::Execution | Blame::CacheRefill(_)));
    match account.release < account.arrival {
        // What it executed before it arrived is not part of the response time.
        true => prop_assert!(executed <= job.executed, "{name}: {executed} of {}", job.executed),
        false => prop_assert_eq!(executed, job.executed, "{}: {:?}", name, account),
    }
    let of_intervals = |is_meant: &dyn Fn(Activity) -> bool| -> u64 {
        let intervals = timeline.intervals.iter().filter(|interval| interval.activity.job() == Some(name));
        intervals.filter(|interval| is_meant(interval.activity)).map(|interval| interval.duration().0).sum()
    };
    let awaited = of_intervals(&|activity| matches!(activity, Activity::AwaitingLock { .. }));
    prop_assert!(time(&|blame| matches!(blame, Blame::Lock(..))).0 <= awaited, "{}: {:?}", name, account);
    let operations = of_intervals(&|activity| matches!(activity, Activity::Operation { .. }));
    prop_assert!(time(&|blame| matches!(blame, Blame::Operation(..))).0 <= operations, "{}: {:?}", name, account);
    let blames_itself = account.pieces.iter().flat_map(|piece| &piece.causes).any(|cause| {
        let job: Option<JobId> = cause.other_job();
        job == Some(name) && matches!(cause.blame(), Blame::Task(..) | Blame::Lock(..) | Blame::Engine(..))
    });
    prop_assert!(!blames_itself, "{}: {:?}", name, account);
    Ok(())
}
