//! Cost of the global-EDF tests of paper 002 per task set, on one core, on 18 kinds of task sets.
//!
//! The baseline column is what a well-known C++ toolkit needed for the same five tests on sets of the same kinds on a
//! machine of this class; it was recorded once and cannot be re-run here, so ratios to it are indications. The ratios
//! among our own tests come from one run.

use std::error::Error;

use clap::Parser;
use cpu_time::ProcessTime;
use laxity_analysis::check::{Options, check};
use laxity_analysis::gedf::{BarVariant, bak, bar, bcl, bcl_iterative, gfb};
use laxity_analysis::{AnalysisTask, Limits, TaskSet, Verdict};
use laxity_gen::{Decimal, GeneratorSpec, PeriodDistribution, UtilizationDistribution, generate, task_set_seed};
use laxity_model::Workload;
use laxity_model::rng::SplitMix64;

/// Measures the five hard real-time tests of paper 002.
#[derive(Parser)]
struct Arguments {
    /// Task sets a row.
    #[arg(long, default_value_t = 200)]
    sets: u64,
}

/// Sizes of the task sets that show how the cost of a check grows.
const FEW: u64 = 1_000;
const MANY: u64 = 8_000;

const CPUS: u32 = 32;
const CAPS: [u64; 3] = [8, 16, 24];

/// Distribution, and the toolkit's microseconds a set for all five tests at caps 8, 16 and 24.
const ROWS: [(&str, [f64; 3]); 6] = [
    ("uni-light", [9_600.0, 18_000.0, 233_000.0]),
    ("uni-medium", [1_120.0, 1_880.0, 1_250.0]),
    ("uni-heavy", [196.0, 3_770.0, 3_300.0]),
    ("bimo-light", [790.0, 850.0, 1_110.0]),
    ("bimo-medium", [520.0, 1_060.0, 700.0]),
    ("bimo-heavy", [350.0, 5_680.0, 480.0]),
];

type Test = fn(&TaskSet, &Limits) -> Verdict;

const TESTS: [(&str, Test); 5] = [
    ("gfb", |set, _| gfb(set)),
    ("bak", |set, _| bak(set)),
    ("bcl", |set, _| bcl(set)),
    ("bcl_iter", bcl_iterative),
    ("bar", |set, limits| bar(set, BarVariant::Integer, limits)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    println!("us of CPU time a task set, mean of {} sets; m = {CPUS}, periods 10-100 ms", arguments.sets);
    print!("{:<12} {:>4} {:>6}", "utilization", "cap", "tasks");
    for (name, _) in TESTS {
        print!(" {name:>9}");
    }
    println!(" {:>10} {:>10} {:>7}", "all five", "toolkit", "ratio");
    let (mut logarithms, mut worst, mut slowest_ratio) = (0.0, 0.0f64, f64::INFINITY);
    for (name, toolkit) in ROWS {
        for (cap, baseline) in CAPS.into_iter().zip(toolkit) {
            let sets = task_sets(name, cap, arguments.sets)?;
            let tasks = sets.iter().map(|set| set.tasks().len()).sum::<usize>() / sets.len();
            let costs = TESTS.map(|(_, test)| microseconds(&sets, test));
            let total: f64 = costs.iter().sum();
            print!("{name:<12} {cap:>4} {tasks:>6}");
            for cost in costs {
                print!(" {cost:>9.1}");
            }
            println!(" {total:>10.1} {baseline:>10.0} {:>6.1}x", baseline / total);
            logarithms += total.ln();
            worst = worst.max(total);
            slowest_ratio = slowest_ratio.min(baseline / total);
        }
    }
    let rows = (ROWS.len() * CAPS.len()) as f64;
    let geomean = (logarithms / rows).exp();
    let toolkit = (ROWS.iter().flat_map(|(_, costs)| costs).map(|cost| cost.ln()).sum::<f64>() / rows).exp();
    println!(
        "geometric mean {:.1}x faster than the toolkit, {slowest_ratio:.1}x in the least favourable row",
        toolkit / geomean
    );
    let mut most_growth = 0.0f64;
    for scheduler in ["G-EDF", "G-RM", "P-EDF", "P-RM"] {
        let (few, many) = (check_seconds(FEW, scheduler)?, check_seconds(MANY, scheduler)?);
        let growth = many / few / (MANY as f64 / FEW as f64);
        println!(
            "check, {scheduler}: {few:.2} s for {FEW} tasks, {many:.2} s for {MANY}: {growth:.1} times as much a task"
        );
        most_growth = most_growth.max(growth);
    }
    println!("analysis geomean_us_all_five={geomean:.1} worst_row_us={worst:.1} growth_8000_to_1000={most_growth:.1}");
    Ok(())
}

/// CPU time of a whole check of so many tasks, which share eight CPUs that are busy for 60 %: the least of three.
fn check_seconds(tasks: u64, scheduler: &str) -> Result<f64, Box<dyn Error>> {
    let mut rng = SplitMix64::new(tasks);
    let mut text = format!("laxity = 1\nname = \"many\"\nscheduler = \"{scheduler}\"\n[platform]\ncpus = 8\n");
    for task in 0..tasks {
        let period_us = rng.between(10_000, 1_000_000);
        let wcet_us = (period_us * 48 / 10 / tasks).max(1);
        text += &format!("[[task]]\nname = \"t{task}\"\nperiod = \"{period_us} us\"\nwcet = \"{wcet_us} us\"\n");
    }
    let workload = Workload::from_toml(&text, "many.toml")?;
    let once = || {
        let start = ProcessTime::now();
        let report = check(&workload, &workload.scheduler, &Options::default());
        assert!(report.hard.is_schedulable(), "response-time analysis, too, has to be done");
        start.elapsed().as_secs_f64()
    };
    Ok((0..3).map(|_| once()).fold(f64::INFINITY, f64::min))
}

fn task_sets(distribution: &str, cap: u64, count: u64) -> Result<Vec<TaskSet>, Box<dyn Error>> {
    let named = UtilizationDistribution::NAMED.iter().find(|(name, _)| *name == distribution);
    let (_, utilizations) = named.ok_or("an unknown distribution")?;
    let spec =
        GeneratorSpec::until_cap(*utilizations, PeriodDistribution::MODERATE, Decimal::from_thousandths(1_000 * cap));
    (0..count)
        .map(|replicate| {
            let set = generate(&spec, task_set_seed(2009, cap, replicate))?;
            Ok(TaskSet::new(CPUS, set.tasks.iter().map(AnalysisTask::from).collect())?)
        })
        .collect()
}

/// Mean CPU time of `test` a set.
fn microseconds(sets: &[TaskSet], test: Test) -> f64 {
    let limits = Limits::default();
    let start = ProcessTime::now();
    for set in sets {
        std::hint::black_box(test(std::hint::black_box(set), &limits));
    }
    start.elapsed().as_secs_f64() * 1e6 / sets.len() as f64
}
