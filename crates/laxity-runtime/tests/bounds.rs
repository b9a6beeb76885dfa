//! Measured response times and the bounds of the analysis. Alone in its program, so that no other test runs beside.

#[path = "witness/harness.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod harness;

use laxity_analysis::check::{self, BoundSource};
use laxity_model::{Instant, JobId, Nanos};
use laxity_runtime::LinuxScheduler;
use laxity_testing::{Late, on_a_calm_machine};
use laxity_trace::{Event, Record};

use harness::{live_by, ms, releases, workload};

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

/// The bounds are those of the model, where nothing else is on the CPUs, and so are those of a calm machine.
#[test]
fn no_response_time_exceeds_its_bound_on_a_calm_machine() {
    for (what, text) in WORKLOADS {
        let workload = workload(&text.replace("NAME", &format!("bounds-{}", std::process::id())));
        let report = check::check(&workload, &workload.scheduler, &check::Options::default());
        let bounded = report.tasks.iter().any(|task| bound(task).is_some());
        assert!(bounded, "{what}: there is no bound to compare with");
        on_a_calm_machine(|| {
            let Some(records) = live_by(&workload, ms(900), LinuxScheduler::Fifo) else { return Ok(()) };
            let excesses = excesses(&report, &records);
            if excesses.is_empty() {
                return Ok(());
            }
            let stolen = records.iter().filter(|record| matches!(record.event, Event::Stolen { .. })).count();
            let what = format!("{what}: CPUs were stolen {stolen} times: {}", excesses.join("; "));
            Err(Late { what, calm: (stolen > 0).then_some(false) })
        });
    }
}

fn bound(task: &check::TaskReport) -> Option<Nanos> {
    task.response_time.filter(|bound| bound.by != BoundSource::Deadline).map(|bound| bound.time)
}

/// The tasks whose longest response time exceeds its bound, with what kept the job.
fn excesses(report: &check::Report, records: &[Record]) -> Vec<String> {
    let excess = |(task, found): (usize, &check::TaskReport)| {
        let bound = bound(found)?;
        let worst = responses(records, task, found.deadline).max_by_key(|&(_, response)| response);
        let (job, response) = worst.unwrap_or_else(|| panic!("{} had no job", found.name));
        (response > Nanos(bound.0 + MARGIN.0)).then(|| {
            let latency = latency(records, job);
            format!("{job} of {} took {response}, its bound is {bound}, and it had a CPU after {latency}", found.name)
        })
    };
    report.tasks.iter().enumerate().filter_map(excess).collect()
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
