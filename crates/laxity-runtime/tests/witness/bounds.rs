//! Measured response times and the bounds of the analysis.

use laxity_analysis::check::{self, BoundSource};
use laxity_model::{Instant, JobId, Nanos};
use laxity_runtime::LinuxScheduler;
use laxity_trace::{Event, Record};

use crate::harness::{live, live_by, ms, releases, workload};

/// What this machine may add to a job: its own latencies are no part of the model.
const MARGIN: Nanos = Nanos(2_000_000);

const WORKLOADS: [(&str, &str); 3] = [
    (
        "resources",
        r#"
[platform]
cpus = 1
[scheduler]
policy = "P-RM"
[[resource]]
name = "door"
[[task]]
name = "fast"
period = "100 ms"
body = [{ cpu = "2 ms" }, { critical = "door", body = [{ cpu = "1 ms" }] }]
[[task]]
name = "slow"
period = "300 ms"
body = [{ cpu = "5 ms" }, { critical = "door", body = [{ cpu = "10 ms" }] }]
"#,
    ),
    (
        "a GPU",
        r#"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "10 MB/s"
[scheduler]
policy = "P-RM"
[gpu_management]
arbitration = "k_fmlp"
[[task]]
name = "fast"
period = "200 ms"
body = [{ cpu = "2 ms" }, { kernel = "10 ms" }, { cpu = "1 ms" }]
[[task]]
name = "slow"
period = "400 ms"
body = [{ cpu = "5 ms" }, { copy_in = "100 kB" }, { kernel = "30 ms" }, { cpu = "2 ms" }]
"#,
    ),
    (
        "a graph",
        r#"
[platform]
cpus = 1
[scheduler]
policy = "P-RM"
[[task]]
name = "control"
period = "50 ms"
wcet = "2 ms"
[[graph]]
name = "NAME"
edge = ["camera -> detect"]
[[graph.node]]
name = "camera"
period = "150 ms"
wcet = "5 ms"
[[graph.node]]
name = "detect"
wcet = "20 ms"
"#,
    ),
];

/// A job that took longer than its bound is reported with what kept it: the bound is one of the model, which has nobody
/// else on its CPUs, and nobody can promise that of the machine of a test.
#[test]
fn response_times_that_exceed_their_bounds_are_reported_with_the_cause() {
    for (what, text) in WORKLOADS {
        let workload = workload(&text.replace("NAME", &format!("bounds-{}", std::process::id())));
        let report = check::check(&workload, &workload.scheduler, &check::Options::default());
        let mut bounded = 0;
        let records = live_by(&workload, ms(900), LinuxScheduler::Fifo).unwrap_or_else(|| live(&workload, ms(900)));
        for (task, found) in report.tasks.iter().enumerate() {
            let Some(bound) = found.response_time.filter(|bound| bound.by != BoundSource::Deadline) else { continue };
            let worst = responses(&records, task, found.deadline).max_by_key(|&(_, response)| response);
            let Some((job, response)) = worst else { panic!("{what}: {} had no job", found.name) };
            if response > Nanos(bound.time.0 + MARGIN.0) {
                eprintln!(
                    "{what}: {job} of {} took {response}, and its bound is {}: {} passed from its release until it had a \
                     CPU, and the rest of the excess while others, that are no tasks, had it",
                    found.name,
                    bound.time,
                    latency(&records, job)
                );
            }
            bounded += 1;
        }
        assert!(bounded > 0, "{what}: there is no bound to compare with");
    }
}

/// The response time of each job of `task` that is complete, from its arrival.
fn responses(records: &[Record], task: usize, deadline: Nanos) -> impl Iterator<Item = (JobId, Nanos)> {
    let completed = move |record: &Record| match record.event {
        Event::Complete { job, .. } if job.task.index() == task => Some((job, record.at)),
        _ => None,
    };
    records.iter().filter_map(completed).map(move |(job, at)| {
        let due = releases(records).into_iter().find(|&(released, ..)| released == job).expect("it was released").2;
        (job, Nanos((at.0 + deadline.0).saturating_sub(due.0)))
    })
}

/// How long after its release `job` had a CPU.
fn latency(records: &[Record], job: JobId) -> Nanos {
    let at = |wanted: &dyn Fn(Event) -> bool| {
        records.iter().find(|record| wanted(record.event)).map_or(Instant::ZERO, |record| record.at)
    };
    let released = at(&|event| matches!(event, Event::Release { job: released, .. } if released == job));
    at(&|event| matches!(event, Event::Dispatch { job: begun, .. } if begun == job)).saturating_since(released)
}
