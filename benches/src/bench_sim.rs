//! Simulator throughput against SimSo, in one run: three generated workloads, jobs completed per second of CPU time.
//!
//! Laxity runs as its users run it: the real policies and metrics, and once more writing a trace to a file, and under the
//! fair class, whose ticks are events of their own. Repetitions of all variants take turns, so that a machine whose speed
//! drifts slows them alike; medians are printed.

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser;
use cpu_time::ProcessTime;
use laxity_gen::{Decimal, FixedSum, FixedSumMethod, GeneratorSpec, PeriodDistribution, generate, task_set_seed};
use laxity_model::{Instant, Nanos, Platform, PriorityRule, Scheduler, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::codec::TraceWriter;
use laxity_trace::metrics::Metrics;
use serde::{Deserialize, Serialize};

/// Measures the simulator against SimSo on the same workloads.
#[derive(Parser)]
struct Arguments {
    /// Python interpreter that can `import simso`.
    #[arg(long)]
    python: PathBuf,
    /// Repetitions of each measurement; the median counts.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
}

/// One row: tasks on CPUs, and the simulated time that takes each simulator about a second or two.
struct Row {
    tasks: usize,
    cpus: usize,
    laxity: Nanos,
    simso: Nanos,
}

const ROWS: [Row; 3] = [
    Row { tasks: 20, cpus: 4, laxity: Nanos::from_secs(600), simso: Nanos::from_millis(4_000) },
    Row { tasks: 100, cpus: 12, laxity: Nanos::from_secs(120), simso: Nanos::from_millis(500) },
    Row { tasks: 400, cpus: 32, laxity: Nanos::from_secs(30), simso: Nanos::from_millis(100) },
];

/// Jobs completed and CPU seconds used.
#[derive(Clone, Copy, Deserialize)]
struct Measured {
    jobs: u64,
    cpu_seconds: f64,
}

/// What the baseline's script reads.
#[derive(Serialize)]
struct SimsoInput {
    cpus: usize,
    duration_ns: u64,
    tasks: Vec<(u64, u64)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    println!(
        "G-EDF, implicit deadlines, U = 0.8 m, periods log-uniform 3-100 ms; median of {} runs",
        arguments.repetitions
    );
    println!(
        "{:>5} {:>4} {:>16} {:>16} {:>16} {:>12} {:>9} {:>9} {:>9}",
        "tasks", "cpus", "full engine", "with trace", "G-CFS", "SimSo", "ratio", "traced", "G-CFS"
    );
    println!(
        "{:>5} {:>4} {:>16} {:>16} {:>16} {:>12} {:>9} {:>9} {:>9}",
        "", "", "jobs/CPU s", "jobs/CPU s", "jobs/CPU s", "jobs/CPU s", "to SimSo", "to full", "to full"
    );
    let trace = std::env::temp_dir().join(format!("laxity-bench-{}.lxt", std::process::id()));
    let fair = Scheduler { rule: PriorityRule::Fair, ..Scheduler::GLOBAL_EDF };
    let (mut ratios, mut fair_ratios) = (Vec::new(), Vec::new());
    let mut headline = (0.0, 0.0);
    for row in &ROWS {
        let workload = workload(row)?;
        let [mut full, mut traced, mut shared, mut baseline] = [const { Vec::<f64>::new() }; 4];
        for _ in 0..arguments.repetitions {
            full.push(rate(run_full(&workload, &Scheduler::GLOBAL_EDF, row.laxity)?));
            traced.push(rate(run_traced(&workload, row.laxity, &trace)?));
            shared.push(rate(run_full(&workload, &fair, row.laxity)?));
            baseline.push(rate(run_simso(&arguments.python, &workload, row.simso)?));
        }
        let [full, traced, shared, baseline] = [full, traced, shared, baseline].map(median);
        ratios.push(full / baseline);
        fair_ratios.push(shared / full);
        if row.tasks == 100 {
            headline = (full, traced);
        }
        println!(
            "{:>5} {:>4} {full:>16.0} {traced:>16.0} {shared:>16.0} {baseline:>12.0} {:>8.0}x {:>9.2} {:>9.2}",
            row.tasks,
            row.cpus,
            full / baseline,
            traced / full,
            shared / full,
        );
    }
    std::fs::remove_file(&trace)?;
    let [worst, worst_fair] = [ratios, fair_ratios].map(|ratios| ratios.into_iter().fold(f64::INFINITY, f64::min));
    println!(
        "simulator jobs_per_cpu_s={:.0} traced_jobs_per_cpu_s={:.0} ratio_to_simso={worst:.0} \
         fair_to_full={worst_fair:.2}",
        headline.0, headline.1
    );
    Ok(())
}

fn workload(row: &Row) -> Result<Workload, Box<dyn Error>> {
    let total = Decimal::from_thousandths(800 * row.cpus as u64);
    // Whole microseconds, which SimSo's milliseconds in floating point hold well.
    let periods =
        PeriodDistribution::log_uniform(Nanos::from_millis(3), Nanos::from_millis(100), Nanos::from_micros(1));
    let spec = GeneratorSpec::fixed_sum(FixedSum::new(FixedSumMethod::RandFixedSum, row.tasks, total), periods);
    let set = generate(&spec, task_set_seed(1, row.tasks as u64, 0))?;
    Ok(Workload::new(set.provenance.to_string(), Platform::identical(row.cpus), set.tasks))
}

fn run_full(workload: &Workload, scheduler: &Scheduler, duration: Nanos) -> Result<Measured, Box<dyn Error>> {
    let start = ProcessTime::now();
    let plan = Plan::new(workload, scheduler, 0)?;
    let mut simulator = Simulator::new(&plan, Metrics::new(&plan.header));
    simulator.run_until(Instant::ZERO + duration);
    let summary = simulator.finish().finish(Instant::ZERO + duration);
    Ok(Measured { jobs: summary.total.completed, cpu_seconds: start.elapsed().as_secs_f64() })
}

fn run_traced(workload: &Workload, duration: Nanos, path: &Path) -> Result<Measured, Box<dyn Error>> {
    let start = ProcessTime::now();
    let plan = Plan::new(workload, &Scheduler::GLOBAL_EDF, 0)?;
    let writer = TraceWriter::new(File::create(path)?, &plan.header)?;
    let mut simulator = Simulator::new(&plan, (Metrics::new(&plan.header), writer));
    simulator.run_until(Instant::ZERO + duration);
    let (metrics, writer) = simulator.finish();
    writer.finish()?.sync_data()?;
    let summary = metrics.finish(Instant::ZERO + duration);
    Ok(Measured { jobs: summary.total.completed, cpu_seconds: start.elapsed().as_secs_f64() })
}

fn run_simso(python: &Path, workload: &Workload, duration: Nanos) -> Result<Measured, Box<dyn Error>> {
    let tasks = workload.tasks.iter().map(|task| (task.wcet().as_nanos(), task.period.as_nanos())).collect();
    let input = SimsoInput { cpus: workload.platform.cpus, duration_ns: duration.as_nanos(), tasks };
    let script = include_str!("simso_baseline.py");
    let mut child = Command::new(python).args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().expect("a pipe").write_all(serde_json::to_string(&input)?.as_bytes())?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{} running SimSo failed: {}", python.display(), output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn rate(measured: Measured) -> f64 {
    measured.jobs as f64 / measured.cpu_seconds
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
