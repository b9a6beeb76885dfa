//! Runs the simulated run-time study of GPU interrupt handling on all CPUs of this machine: a line of CSV for each run.
//!
//! ```sh
//! cargo run --release -p laxity-study --example run_runtime -- inversions
//! cargo run --release -p laxity-study --example run_runtime -- responses --seconds 5 --options "phases=synchronous"
//! ```
//!
//! `python -m studies elliott2012klmirqd_runtime` does the same, resumes, spreads over machines, and draws.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a command, not a part of the pure crate")]

use std::env;
use std::error::Error;
use std::time::Instant;

use laxity_model::Nanos;
use laxity_study::klmirqd_runtime::{
    CurvePoint, HANDLINGS, INVERSIONS_SECONDS, Measured, REPETITIONS, RESPONSES_SECONDS, RuntimeStudy, Stopped, System,
    TaskResponses, UTILIZATIONS,
};
use laxity_trace::metrics::InversionKind;
use rayon::prelude::*;

const USAGE: &str =
    "usage: run_runtime inversions|responses [--seconds N] [--point THOUSANDTHS] [--options \"KEY=VALUE ...\"]";

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let part = words.next().ok_or(USAGE)?;
    let (mut seconds, mut only, mut options) = (None, None, String::new());
    while let Some(flag) = words.next() {
        let value = words.next().ok_or_else(|| format!("{flag} needs a value; {USAGE}"))?;
        match flag.as_str() {
            "--seconds" => seconds = Some(value.parse::<u64>()?),
            "--point" => only = Some(value.parse::<u64>()?),
            "--options" => options = value,
            _ => return Err(format!("unknown argument `{flag}`; {USAGE}").into()),
        }
    }
    let study = RuntimeStudy::new(options.parse()?);
    let start = Instant::now();
    let lines: Result<Vec<String>, Stopped> = match part.as_str() {
        "inversions" => {
            println!("utilization,handling,interrupts,inversions,p50_ns,p90_ns,p99_ns,max_ns,total_ns,by_kind_ns");
            let points = UTILIZATIONS.into_iter().filter(|&point| only.is_none_or(|only| point == only)).collect();
            inversions(&study, points, Nanos::from_secs(seconds.unwrap_or(INVERSIONS_SECONDS)))
        }
        "responses" => {
            println!("column,repetition,uses_gpu,missed,missed_from_arrival,missed_by_quantum,response_of_period");
            responses(&study, Nanos::from_secs(seconds.unwrap_or(RESPONSES_SECONDS)))
        }
        _ => return Err(USAGE.into()),
    };
    lines.map_err(|stopped| format!("{stopped:?}"))?.iter().for_each(|line| println!("{line}"));
    eprintln!("{:.1} s on {} threads", start.elapsed().as_secs_f64(), rayon::current_num_threads());
    Ok(())
}

fn inversions(study: &RuntimeStudy, points: Vec<u64>, duration: Nanos) -> Result<Vec<String>, Stopped> {
    let runs: Vec<_> = points.into_iter().flat_map(|point| HANDLINGS.map(|handling| (point, handling))).collect();
    runs.into_par_iter()
        .map(|(point, (name, handling))| {
            let measured = study.inversions(point, handling, duration, || false)?;
            Ok(inversions_line(point, name, &measured))
        })
        .collect()
}

fn inversions_line(point: u64, name: &str, Measured { lengths, interrupts }: &Measured) -> String {
    let sorted = lengths.sorted();
    let percentile = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1).unwrap_or(&0);
    let of_kind = |kind: InversionKind| {
        let CurvePoint { rank, cumulative, .. } = lengths.of_kind(kind);
        format!("{} {rank}x {cumulative}", kind.name())
    };
    let kinds: Vec<String> = InversionKind::ALL.into_iter().map(of_kind).collect();
    let [p50, p90, p99, max] = [50, 90, 99, 100].map(percentile);
    let (count, total) = (sorted.len(), lengths.total());
    format!("{point},{name},{interrupts},{count},{p50},{p90},{p99},{max},{total},{}", kinds.join("; "))
}

fn responses(study: &RuntimeStudy, duration: Nanos) -> Result<Vec<String>, Stopped> {
    let runs: Vec<_> =
        System::ALL.into_iter().flat_map(|system| (0..REPETITIONS).map(move |index| (system, index))).collect();
    let lines: Result<Vec<Vec<String>>, Stopped> = runs
        .into_par_iter()
        .map(|(system, repetition)| {
            let tasks = study.responses(&system, repetition, duration, || false)?;
            let line = |uses_gpu| responses_line(&system, repetition, uses_gpu, &tasks);
            Ok(vec![line(false), line(true)])
        })
        .collect();
    lines.map(|lines| lines.concat())
}

fn responses_line(system: &System, repetition: u64, uses_gpu: bool, tasks: &[TaskResponses]) -> String {
    let of: Vec<&TaskResponses> = tasks.iter().filter(|task| task.uses_gpu == uses_gpu).collect();
    let mean = |share: &dyn Fn(&TaskResponses) -> f64| of.iter().map(|task| share(task)).sum::<f64>() / of.len() as f64;
    let missed = mean(&|task| task.missed as f64 / task.jobs as f64);
    let missed_from_arrival = mean(&|task| task.missed_from_arrival as f64 / task.jobs as f64);
    let missed_by_quantum = mean(&|task| task.missed_by_quantum as f64 / task.jobs as f64);
    let response = mean(&|task| task.response_sum as f64 / task.completed.max(1) as f64 / task.period as f64);
    format!(
        "{},{repetition},{uses_gpu},{missed:.5},{missed_from_arrival:.5},{missed_by_quantum:.5},{response:.5}",
        system.column
    )
}
