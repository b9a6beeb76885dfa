//! Runs a study, or a part of it, on all CPUs of this machine and writes its counts as CSV.
//!
//! ```sh
//! cargo run --release -p laxity-study --example run_study -- gedf --out gedf.csv
//! cargo run --release -p laxity-study --example run_study -- gedf --scenarios 0..3 --replicates 0..100 --out part.csv
//! ```
//!
//! `python -m studies` does the same, resumes, spreads over machines, and draws the figures; it also imports
//! the CSV files written here (`--import`).
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a command, not a part of the pure crate")]

use std::error::Error;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, fs};

use laxity_study::gedf::GedfStudy;
use laxity_study::klmirqd::KlmirqdStudy;
use laxity_study::{Chunk, Counts, Study};
use rayon::prelude::*;

const USAGE: &str = "usage: run_study gedf|klmirqd [--options \"KEY=VALUE ...\"] [--scenarios A..B] [--step N] \
                     [--replicates A..B] [--out FILE]";

struct Arguments {
    study: Box<dyn Study>,
    scenarios: Range<u32>,
    /// Every so many-th point.
    step: usize,
    replicates: Range<u64>,
    out: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { study, scenarios, step, replicates, out } = arguments()?;
    let points: Vec<u64> = study.points().into_iter().step_by(step).collect();
    let mut total = Counts::default();
    let start = Instant::now();
    let names = study.scenarios();
    for scenario in scenarios {
        let (counts, seconds) = run_scenario(study.as_ref(), scenario, &points, &replicates)?;
        let sets = points.len() as u64 * (replicates.end - replicates.start);
        let rate = sets as f64 / seconds;
        eprintln!("{:>32}: {sets} sets in {seconds:.1} s, {rate:.0} sets/s", names[scenario as usize]);
        total.merge(&counts);
    }
    eprintln!("{:.1} s on {} threads", start.elapsed().as_secs_f64(), rayon::current_num_threads());
    let csv = csv(study.as_ref(), &total)?;
    match out {
        Some(path) => fs::write(path, csv)?,
        None => print!("{csv}"),
    }
    Ok(())
}

fn run_scenario(
    study: &dyn Study,
    scenario: u32,
    points: &[u64],
    replicates: &Range<u64>,
) -> Result<(Counts, f64), Box<dyn Error>> {
    const CHUNK: u64 = 50;
    let start = Instant::now();
    let starts: Vec<u64> = replicates.clone().step_by(CHUNK as usize).collect();
    // The largest caps first: they take longest.
    let chunks: Vec<Chunk> = points
        .iter()
        .rev()
        .flat_map(|&point| {
            starts.iter().map(move |&first| Chunk { scenario, point, first, count: CHUNK.min(replicates.end - first) })
        })
        .collect();
    let done = AtomicUsize::new(0);
    let counts = chunks
        .par_iter()
        .map(|chunk| {
            let counts = study.evaluate(chunk);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if done.is_multiple_of(500) {
                eprintln!("  {done} of {} chunks, {:.0} s", chunks.len(), start.elapsed().as_secs_f64());
            }
            counts
        })
        .try_reduce(Counts::default, |mut left, right| {
            left.merge(&right);
            Ok(left)
        })?;
    Ok((counts, start.elapsed().as_secs_f64()))
}

/// The columns of the Python package's tables.
fn csv(study: &dyn Study, counts: &Counts) -> Result<String, std::fmt::Error> {
    let (scenarios, curves) = (study.scenarios(), study.curves());
    let mut csv = format!("# study={} options={}\n", study.name(), study.options());
    csv.push_str("scenario,graph,curve,x_thousandths,sets,accepted,undecided,weight,weight_accepted\n");
    for row in counts.rows() {
        let (scenario, curve, tally) = (&scenarios[row.scenario as usize], &curves[row.curve as usize], row.tally);
        writeln!(
            csv,
            "\"{scenario}\",{},{},{},{},{},{},{},{}",
            curve.graph,
            curve.name,
            row.x,
            tally.sets,
            tally.accepted,
            tally.undecided,
            tally.weight,
            tally.weight_accepted
        )?;
    }
    Ok(csv)
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let mut words = env::args().skip(1);
    let name = words.next().ok_or(USAGE)?;
    let (mut options, mut scenarios, mut step, mut replicates, mut out) = (String::new(), None, 1, None, None);
    while let Some(flag) = words.next() {
        let value = words.next().ok_or_else(|| format!("{flag} needs a value; {USAGE}"))?;
        match flag.as_str() {
            "--options" => options = value,
            "--scenarios" => scenarios = Some(range(&value)?),
            "--step" => step = value.parse()?,
            "--replicates" => replicates = Some(range(&value)?),
            "--out" => out = Some(value),
            _ => return Err(format!("unknown argument `{flag}`; {USAGE}").into()),
        }
    }
    let study: Box<dyn Study> = match name.as_str() {
        "gedf" => Box::new(GedfStudy::new(options.parse()?)),
        "klmirqd" => Box::new(KlmirqdStudy::new(options.parse()?)),
        _ => return Err(format!("unknown study `{name}`; {USAGE}").into()),
    };
    let scenarios = match scenarios {
        Some(range) => u32::try_from(range.start)?..u32::try_from(range.end)?,
        None => 0..u32::try_from(study.scenarios().len())?,
    };
    let replicates = replicates.unwrap_or(0..study.replicates());
    Ok(Arguments { study, scenarios, step, replicates, out })
}

fn range(text: &str) -> Result<Range<u64>, Box<dyn Error>> {
    let (start, end) = text.split_once("..").ok_or_else(|| format!("`{text}` is no range; write 0..18"))?;
    Ok(start.parse()?..end.parse()?)
}
