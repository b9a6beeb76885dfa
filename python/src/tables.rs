//! Measurements as record batches.

use std::collections::HashMap;

use arrow_array::{Float64Array, Int64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array};
use laxity_model::{OverheadKind, SignedNanos};
use laxity_trace::TraceHeader;
use laxity_trace::metrics::{
    ChainSummary, DistributionSummary, EngineSummary, JobSummary, MachineSummary, Summary, WaitSummary,
};
use pyo3::prelude::*;

use crate::arrow::Columns;
use crate::simulate::Outcome;

/// A row a task; see `Result.tasks`.
pub fn tasks(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let tasks = &summary.tasks;
    let mut columns = Columns::default();
    columns.push("task", UInt32Array::from_iter_values(tasks.iter().map(|task| task.task.0)), false);
    columns.push("name", StringArray::from_iter_values(tasks.iter().map(|task| &task.name)), false);
    push_jobs(&mut columns, &tasks.iter().map(|task| &task.jobs).collect::<Vec<_>>());
    columns.batch(metadata(header, summary))
}

/// A row a CPU; see `Result.cpus`.
pub fn cpus(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let cpus = &summary.cpus;
    let mut columns = Columns::default();
    columns.push("cpu", UInt16Array::from_iter_values(cpus.iter().map(|cpu| cpu.cpu.0)), false);
    push_usage(&mut columns, &cpus.iter().map(|cpu| &cpu.usage).collect::<Vec<_>>());
    columns.batch(metadata(header, summary))
}

/// A row an interrupt thread; see `Result.threads`.
pub fn threads(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let threads = &summary.threads;
    let mut columns = Columns::default();
    columns.push("task", UInt32Array::from_iter_values(threads.iter().map(|thread| thread.task.0)), false);
    columns.push("name", StringArray::from_iter_values(threads.iter().map(|thread| &thread.name)), false);
    push_jobs(&mut columns, &threads.iter().map(|thread| &thread.jobs).collect::<Vec<_>>());
    columns.batch(metadata(header, summary))
}

/// A row a task and cause of waiting; see `Result.waits`.
pub fn waits(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let rows: Vec<_> = summary.tasks.iter().flat_map(|task| task.waits.iter().map(move |wait| (task, wait))).collect();
    let mut columns = Columns::default();
    columns.push("task", UInt32Array::from_iter_values(rows.iter().map(|(task, _)| task.task.0)), false);
    columns.push("task_name", StringArray::from_iter_values(rows.iter().map(|(task, _)| &task.name)), false);
    columns.push("cause", StringArray::from_iter_values(rows.iter().map(|(_, wait)| wait.cause.name())), false);
    let mut int_column = |name: &str, of: &dyn Fn(&WaitSummary) -> u64| {
        columns.push(name, Int64Array::from_iter_values(rows.iter().map(|(_, wait)| int(of(wait)))), false);
    };
    int_column("count", &|wait| wait.count);
    int_column("total_ns", &|wait| wait.total.0);
    int_column("max_ns", &|wait| wait.max.0);
    columns.batch(metadata(header, summary))
}

/// A row an engine; see `Result.engines`.
pub fn engines(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let engines = &summary.engines;
    let name = |engine: &EngineSummary| header.gpus.get(engine.gpu.index()).map_or("", |gpu| gpu.name.as_str());
    let mut columns = Columns::default();
    columns.push("gpu", UInt16Array::from_iter_values(engines.iter().map(|engine| engine.gpu.0)), false);
    columns.push("gpu_name", StringArray::from_iter_values(engines.iter().map(name)), false);
    columns.push("engine", StringArray::from_iter_values(engines.iter().map(|engine| engine.engine.name())), false);
    let operations = engines.iter().map(|engine| int(engine.operations));
    columns.push("operations", Int64Array::from_iter_values(operations), false);
    columns.push("busy_ns", Int64Array::from_iter_values(engines.iter().map(|engine| int(engine.busy.0))), false);
    let utilization = engines.iter().map(|engine| engine.utilization);
    columns.push("utilization", Float64Array::from_iter_values(utilization), false);
    columns.batch(metadata(header, summary))
}

/// A row a kind of priority inversion, all of them first; see `Result.inversions`.
pub fn inversions(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let rows = summary.inversions.map_or_else(Vec::new, |all| {
        vec![
            ("all", all.all),
            ("waiting_bottom_half", all.waiting_bottom_half),
            ("blocked_stack", all.blocked_stack),
            ("overtaken", all.overtaken),
            ("co_scheduled", all.co_scheduled),
        ]
    });
    let mut columns = Columns::default();
    columns.push("kind", StringArray::from_iter_values(rows.iter().map(|(kind, _)| kind)), false);
    push_distributions(&mut columns, &rows.iter().map(|&(_, lengths)| lengths).collect::<Vec<_>>());
    columns.batch(metadata(header, summary))
}

/// A row a graph: its latencies from end to end; see `Result.graphs`.
pub fn graphs(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let graphs = &summary.graphs;
    let mut columns = Columns::default();
    columns.push("graph", UInt32Array::from_iter_values(0..graphs.len() as u32), false);
    columns.push("name", StringArray::from_iter_values(graphs.iter().map(|graph| &graph.name)), false);
    push_distributions(&mut columns, &graphs.iter().map(|graph| graph.end_to_end).collect::<Vec<_>>());
    columns.batch(metadata(header, summary))
}

/// Rows of each chain, one a measure; see `Result.chains`.
pub fn chains(header: &TraceHeader, summary: &Summary) -> PyResult<RecordBatch> {
    let measures = |chain: &ChainSummary| {
        [
            ("data_age", chain.data_age, chain.data_age_max),
            ("data_age_first", chain.data_age_first, None),
            ("reaction_time", chain.reaction_time, chain.reaction_time_max),
            ("reaction_time_last", chain.reaction_time_last, None),
        ]
    };
    let rows: Vec<_> =
        summary.chains.iter().flat_map(|chain| measures(chain).map(|measure| (chain, measure))).collect();
    let mut columns = Columns::default();
    columns.push("chain", StringArray::from_iter_values(rows.iter().map(|(chain, _)| &chain.name)), false);
    columns.push("measure", StringArray::from_iter_values(rows.iter().map(|(_, measure)| measure.0)), false);
    columns.push("outputs", Int64Array::from_iter_values(rows.iter().map(|(chain, _)| int(chain.outputs))), false);
    columns.push("missed", Int64Array::from_iter_values(rows.iter().map(|(chain, _)| int(chain.missed))), false);
    let deadlines = rows.iter().map(|(_, (_, _, deadline))| deadline.map(|deadline| int(deadline.0)));
    columns.push("deadline_ns", deadlines.collect::<Int64Array>(), true);
    push_distributions(&mut columns, &rows.iter().map(|(_, (_, times, _))| *times).collect::<Vec<_>>());
    columns.batch(metadata(header, summary))
}

/// The columns of sets of spans: count, then times that are null where the set is empty.
fn push_distributions(columns: &mut Columns, sets: &[Option<DistributionSummary>]) {
    let count = sets.iter().map(|set| set.map_or(0, |set| int(set.count)));
    columns.push("count", Int64Array::from_iter_values(count), false);
    let mut some = |name: &str, of: &dyn Fn(&DistributionSummary) -> u64| {
        columns.push(name, sets.iter().map(|set| set.as_ref().map(|set| int(of(set)))).collect::<Int64Array>(), true);
    };
    some("total_ns", &|set| set.total.0);
    some("mean_ns", &|set| set.mean.0);
    some("stddev_ns", &|set| set.stddev.0);
    some("p50_ns", &|set| set.p50.0);
    some("p90_ns", &|set| set.p90.0);
    some("p99_ns", &|set| set.p99.0);
    some("p999_ns", &|set| set.p999.0);
    some("max_ns", &|set| set.max.0);
}

/// A simulation of many, and which it is.
pub struct Run {
    pub workload: usize,
    pub overheads: String,
    pub outcome: Outcome,
}

/// A row a run; see `laxity.simulate_many`.
pub fn runs(runs: &[Run]) -> PyResult<RecordBatch> {
    let mut columns = Columns::default();
    push_runs(&mut columns, runs.iter());
    push_jobs(&mut columns, &runs.iter().map(|run| &run.outcome.summary.total).collect::<Vec<_>>());
    push_usage(&mut columns, &runs.iter().map(|run| &run.outcome.summary.machine).collect::<Vec<_>>());
    columns.batch(HashMap::new())
}

/// A row a task of each run; see `laxity.simulate_many`.
pub fn tasks_of_runs(runs: &[Run]) -> PyResult<RecordBatch> {
    let rows: Vec<_> =
        runs.iter().flat_map(|run| run.outcome.summary.tasks.iter().map(move |task| (run, task))).collect();
    let mut columns = Columns::default();
    push_runs(&mut columns, rows.iter().map(|(run, _)| *run));
    columns.push("task", UInt32Array::from_iter_values(rows.iter().map(|(_, task)| task.task.0)), false);
    columns.push("task_name", StringArray::from_iter_values(rows.iter().map(|(_, task)| &task.name)), false);
    push_jobs(&mut columns, &rows.iter().map(|(_, task)| &task.jobs).collect::<Vec<_>>());
    columns.batch(HashMap::new())
}

fn push_runs<'a>(columns: &mut Columns, runs: impl Iterator<Item = &'a Run> + Clone) {
    let header = || runs.clone().map(|run| &run.outcome.header);
    columns.push("workload", UInt32Array::from_iter_values(runs.clone().map(|run| run.workload as u32)), false);
    columns.push("workload_name", StringArray::from_iter_values(header().map(|header| &header.workload)), false);
    let scheduler = header().map(|header| header.scheduler.to_string());
    columns.push("scheduler", StringArray::from_iter_values(scheduler), false);
    columns.push("overheads", StringArray::from_iter_values(runs.clone().map(|run| &run.overheads)), false);
    columns.push("seed", UInt64Array::from_iter_values(header().map(|header| header.seed)), false);
    let duration = runs.map(|run| int(run.outcome.summary.duration.0));
    columns.push("duration_ns", Int64Array::from_iter_values(duration), false);
}

/// The columns of job summaries, the nested ones flattened: `response_time_ns.max` becomes `response_time_max_ns`.
fn push_jobs(columns: &mut Columns, jobs: &[&JobSummary]) {
    let mut all = |name: &str, of: &dyn Fn(&JobSummary) -> u64| {
        columns.push(name, Int64Array::from_iter_values(jobs.iter().map(|jobs| int(of(jobs)))), false);
    };
    all("released", &|jobs| jobs.released);
    all("completed", &|jobs| jobs.completed);
    all("missed", &|jobs| jobs.missed);
    all("missed_incomplete", &|jobs| jobs.missed_incomplete);
    all("preemptions", &|jobs| jobs.preemptions);
    all("migrations", &|jobs| jobs.migrations);
    all("suspensions", &|jobs| jobs.suspensions);
    let mut some = |name: &str, of: &dyn Fn(&JobSummary) -> Option<i64>| {
        columns.push(name, jobs.iter().map(|jobs| of(jobs)).collect::<Int64Array>(), true);
    };
    some("response_time_min_ns", &|jobs| jobs.response_time.map(|time| int(time.min.0)));
    some("response_time_mean_ns", &|jobs| jobs.response_time.map(|time| int(time.mean.0)));
    some("response_time_p50_ns", &|jobs| jobs.response_time.map(|time| int(time.p50.0)));
    some("response_time_p90_ns", &|jobs| jobs.response_time.map(|time| int(time.p90.0)));
    some("response_time_p99_ns", &|jobs| jobs.response_time.map(|time| int(time.p99.0)));
    some("response_time_max_ns", &|jobs| jobs.response_time.map(|time| int(time.max.0)));
    some("lateness_min_ns", &|jobs| jobs.lateness.map(|lateness| lateness.min.0));
    some("lateness_mean_ns", &|jobs| jobs.lateness.map(|lateness| lateness.mean.0));
    some("lateness_max_ns", &|jobs| jobs.lateness.map(|lateness| lateness.max.0));
    some("tardiness_mean_ns", &|jobs| jobs.tardiness.map(|tardiness| int(tardiness.mean.0)));
    some("tardiness_max_ns", &|jobs| jobs.tardiness.map(|tardiness| int(tardiness.max.0)));
    some("laxity_min_ns", &|jobs| jobs.laxity_min.map(SignedNanos::as_nanos));
    let mut all = |name: &str, of: &dyn Fn(&JobSummary) -> u64| {
        columns.push(name, Int64Array::from_iter_values(jobs.iter().map(|jobs| int(of(jobs)))), false);
    };
    all("execution_ns", &|jobs| jobs.execution.0);
    all("cache_delay_ns", &|jobs| jobs.cache_delay.0);
}

fn push_usage(columns: &mut Columns, usages: &[&MachineSummary]) {
    let mut push = |name: String, of: &dyn Fn(&MachineSummary) -> u64| {
        columns.push(name, Int64Array::from_iter_values(usages.iter().map(|usage| int(of(usage)))), false);
    };
    push("busy_ns".to_owned(), &|usage| usage.busy.0);
    push("best_effort_ns".to_owned(), &|usage| usage.best_effort.0);
    push("lock_wait_ns".to_owned(), &|usage| usage.lock_wait.0);
    push("spin_ns".to_owned(), &|usage| usage.spin.0);
    push("idle_ns".to_owned(), &|usage| usage.idle.0);
    push("overhead_ns".to_owned(), &|usage| usage.overheads.cpu_time().0);
    for kind in OverheadKind::ALL {
        push(format!("{}_count", kind.name()), &|usage| usage.overheads.of(kind).count);
        push(format!("{}_ns", kind.name()), &|usage| usage.overheads.of(kind).time.0);
    }
    let utilization = usages.iter().map(|usage| usage.utilization);
    columns.push("utilization", Float64Array::from_iter_values(utilization), false);
}

/// Counts and times as signed integers, whose differences cannot wrap around in numpy; those of any run fit.
fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// What a table of one run is about.
pub fn metadata(header: &TraceHeader, summary: &Summary) -> HashMap<String, String> {
    let pairs = [
        ("origin", "simulated".to_owned()),
        ("workload", header.workload.clone()),
        ("scheduler", header.scheduler.to_string()),
        ("seed", header.seed.to_string()),
        ("duration_ns", summary.duration.0.to_string()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}
