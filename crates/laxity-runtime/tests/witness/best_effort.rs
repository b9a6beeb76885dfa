//! Best-effort tasks: released, traced and measured as simulated ones, below real-time jobs, and ended with the run.

use laxity_model::{Nanos, Workload};
use laxity_plan::Plan;
use laxity_runtime::LinuxScheduler;
use laxity_testing::skip;
use laxity_trace::Record;
use laxity_trace::metrics::{BestEffortSummary, Metrics};
use laxity_trace::{Event, Sink};

use crate::harness::{SEED, completions, live, live_by, ms, releases, simulated, workload};

/// What the metrics say of the best-effort tasks.
fn best_effort(workload: &Workload, records: &[Record]) -> Vec<BestEffortSummary> {
    let plan = Plan::new(workload, &workload.scheduler, SEED).expect("it can be simulated");
    let mut metrics = Metrics::new(&plan.header);
    records.iter().for_each(|record| metrics.record(record.at, record.event));
    let end = records.last().expect("the end").at;
    metrics.finish(end).memory.expect("best-effort tasks").best_effort
}

/// A control task and three best-effort tasks on one CPU. A platform's GPU that no task uses has a thread in the trace.
const CONTROL: &str = r#"
[platform]
cpus = 1
[[platform.gpu]]
name = "unused"
bandwidth = "1 GB/s"
[gpu_management]
handling = "preempt_rt_high"
[[task]]
name = "control"
period = "20 ms"
wcet = "5 ms"
[[best_effort]]
name = "endless"
cpu = 0
memory_demand = "50 MB/s"
[[best_effort]]
name = "light"
weight = 100
[[best_effort]]
name = "short"
weight = 4096
work = "30 ms"
"#;

#[test]
fn best_effort_tasks_run_beside_the_others_and_endless_ones_end_with_the_run() {
    let workload = workload(CONTROL);
    let duration = ms(400);
    let records = live(&workload, duration);
    assert_eq!(releases(&records), releases(&simulated(&workload, duration)), "best-effort jobs from the start");
    let [endless, light, short] = &best_effort(&workload, &records)[..] else { panic!("three") };
    assert!(!endless.completed && !light.completed);
    assert!(endless.execution > Nanos::ZERO && light.execution > Nanos::ZERO, "{endless:?} {light:?}");
    assert!(endless.execution > light.execution, "ten times the weight: {endless:?} {light:?}");
    // In a run on a busy machine it may not come to its end.
    assert!(!short.completed || short.execution >= ms(20), "{short:?}");
    assert_eq!(completions(&records).iter().filter(|(job, _)| job.task.0 == 0).count(), 20, "all of control's");
}

#[test]
fn best_effort_jobs_get_no_cpu_while_a_real_time_job_has_it() {
    for linux in [LinuxScheduler::Fifo, LinuxScheduler::Laxity] {
        let workload = workload(&format!("scheduler = \"P-FP\"\n{}", CONTROL.replace("wcet", "priority = 1\nwcet")));
        let Some(records) = live_by(&workload, ms(400), linux) else { return };
        let mut has_cpu = false;
        for record in &records {
            match record.event {
                Event::Dispatch { job, .. } if job.task.0 == 0 => has_cpu = true,
                Event::Dispatch { job, .. } => assert!(!has_cpu, "{linux}: {job} at {}", record.at),
                Event::Complete { job, .. } | Event::Preempt { job, .. } if job.task.0 == 0 => has_cpu = false,
                _ => {}
            }
        }
        let tasks = best_effort(&workload, &records);
        assert!(tasks.iter().any(|task| task.execution > ms(20)), "{linux}: {tasks:?}");
        let preempted =
            records.iter().any(|record| matches!(record.event, Event::Preempt { job, .. } if job.task.0 > 0));
        assert!(preempted, "{linux}: a control job takes the CPU from a best-effort job");
    }
}

#[test]
fn a_run_of_best_effort_tasks_alone_lasts_as_long_as_it_is_asked_to() {
    let workload = workload("[platform]\ncpus = 1\n[[best_effort]]\nname = \"b\"\nwork = \"10 ms\"\n");
    let records = live(&workload, ms(100));
    let [task] = &best_effort(&workload, &records)[..] else { panic!("one") };
    assert!(task.execution > Nanos::ZERO, "{task:?}");
    if !task.completed {
        skip("other programs had the CPU");
    }
}
