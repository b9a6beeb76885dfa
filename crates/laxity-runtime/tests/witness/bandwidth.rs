//! The bandwidth lock: jobs take it where simulated jobs do, and best-effort CPUs are throttled meanwhile.

use laxity_model::{JobId, LockId, TaskId, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_testing::skip;
use laxity_trace::metrics::{MemorySummary, Metrics};
use laxity_trace::{Event, Record, Sink};

use crate::harness::{SEED, live_by, ms, simulated, workload};
use crate::scheduled::followed;

/// The example, on the two CPUs that tests may count on.
fn protected() -> Option<Workload> {
    if std::thread::available_parallelism().expect("CPUs").get() < 2 {
        skip("a protected workload needs two CPUs");
        return None;
    }
    let text = include_str!("../../../../examples/workloads/protected.toml");
    let text = text.replace("cpus = 4", "cpus = 2").replace("\"1-3\"", "\"1\"");
    let text = text.replace("cpu = 2\n", "cpu = 1\n").replace("cpu = 3\n", "cpu = 1\n");
    Some(Workload::from_toml(&text, "protected.toml").unwrap_or_else(|errors| panic!("{errors}")))
}

fn memory(workload: &Workload, records: &[Record], linux: LinuxScheduler) -> MemorySummary {
    let options = Options { scheduler: workload.scheduler, linux: Some(linux), seed: SEED, duration: ms(1) };
    let plan = LivePlan::new(workload, &options).expect("it ran");
    let mut metrics = Metrics::new(plan.header());
    records.iter().for_each(|record| metrics.record(record.at, record.event));
    metrics.finish(records.last().expect("the end").at).memory.expect("a bandwidth lock")
}

/// What jobs of the first task did about locks and operations, job by job.
fn protections(records: &[Record]) -> Vec<(JobId, &'static str, Option<LockId>)> {
    let did = |record: &Record| match record.event {
        Event::Request { job, lock } => Some((job, "requests", Some(lock))),
        Event::Grant { job, lock, .. } => Some((job, "has", Some(lock))),
        Event::Unlock { job, lock, .. } => Some((job, "unlocks", Some(lock))),
        Event::EngineBegin { job, .. } => Some((job, "begins", None)),
        Event::EngineEnd { job, .. } => Some((job, "has done", None)),
        _ => None,
    };
    records.iter().filter_map(did).filter(|(job, ..)| job.task == TaskId(0)).collect()
}

#[test]
fn best_effort_cpus_are_throttled_while_a_job_uses_the_gpu_and_only_then() {
    let Some(workload) = protected() else { return };
    for linux in [LinuxScheduler::Fifo, LinuxScheduler::Laxity] {
        let duration = ms(400);
        let Some(records) = live_by(&workload, duration, linux) else { return };
        let did = protections(&records);
        let expected = protections(&simulated(&workload, ms(2_000)));
        assert_eq!(did, expected[..did.len()], "{linux}: the simulated order");
        let memory = memory(&workload, &records, linux);
        let hogs: Vec<_> = memory.best_effort.iter().filter(|task| task.name != "map-compression").collect();
        assert!(hogs.iter().any(|hog| hog.throttled_periods > 0), "{linux}: {hogs:?}");
        assert_eq!(memory.best_effort[1].throttled_periods, 0, "{linux}: it causes no traffic");
        assert!(memory.cpus[1].periods >= memory.cpus[1].throttled_periods, "{linux}: {:?}", memory.cpus);
        assert_eq!(memory.cpus[0].periods, 0, "{linux}: no best-effort task may be there");
        // From the first period in which the lock was held until the one after it was unlocked.
        let mut regulated = records.iter().filter(|record| matches!(record.event, Event::Regulate { .. }));
        let last = regulated.next_back().map(|record| record.event);
        assert!(matches!(last, Some(Event::Regulate { budget: None, .. })), "{linux}: {last:?}");
        let budgets = records.iter().filter_map(|record| match record.event {
            Event::Regulate { budget, .. } => budget,
            _ => None,
        });
        assert!(budgets.into_iter().all(|budget| budget == 16_000_000), "{linux}: the file's budget");
    }
}

/// A job above all others keeps the only CPU, though the thread for its operation's interrupt is ready and precedes it otherwise.
#[test]
fn the_ceiling_of_the_bandwidth_lock_is_in_the_trace_where_laxity_schedules() {
    for policy in ["P-FP", "P-EDF", "P-RM"] {
        for kernel in ["{ kernel = \"1 ms\" }", "{ kernel = \"1 ms\", asynchronous = true }"] {
            let workload = workload(&format!(
                "scheduler = \"{policy}\"\n\
                 [platform]\ncpus = 1\n[[platform.gpu]]\nname = \"g\"\nbandwidth = \"1 GB/s\"\n\
                 [gpu_management]\narbitration = \"k_fmlp\"\nbandwidth_lock = {{ budget = \"50 MB/s\" }}\n\
                 [[task]]\nname = \"t0\"\nperiod = \"20 ms\"\npriority = 1\n\
                 body = [{{ cpu = \"200 us\" }}, {kernel}, {{ cpu = \"3 ms\" }}]\n"
            ));
            let Some(records) = followed(&workload, ms(100)) else { return };
            let ceilings = records.iter().filter(
                |record| matches!(record.event, Event::Priority { level: 0, job, .. } if job.task == TaskId(0)),
            );
            assert!(ceilings.count() > 0, "{policy} {kernel}: jobs that hold the lock are above all");
        }
    }
}

#[test]
fn under_the_fair_class_regulators_would_stop_real_time_tasks_and_are_refused_by_name() {
    let Some(mut workload) = protected() else { return };
    workload.best_effort[0].cpu = Some(0);
    let (scheduler, linux) = (workload.scheduler, Some(LinuxScheduler::Other));
    let options = Options { scheduler, linux, seed: SEED, duration: ms(10) };
    let refusal = LivePlan::new(&workload, &options).expect_err("detect may be on CPU 0").to_string();
    assert!(refusal.contains("a real-time task may be on CPU") && refusal.contains("--scheduler laxity"), "{refusal}");
}
