//! `laxity tune`: which configuration leaves the most laxity?

mod text;

use std::path::PathBuf;
use std::time::{Duration, Instant as WallInstant};

use clap::Args;
use laxity_model::{Instant, Nanos, Workload};
use laxity_tune::{Bottleneck, Effort, Part, Score, Search, Setting, Space, bottlenecks, evaluate, growth, scaled};
use rayon::prelude::*;
use serde::Serialize;

use super::simulate::{default_duration, parse_duration};
use crate::error::CliError;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::overheads::Overheads;
use crate::progress::Progress;

/// How often the search starts anew, if there is time.
const RESTARTS: u32 = 8;
/// The longer simulations that decide between the best are so many times as long.
const LONGER: u64 = 4;

/// Search for the configuration that leaves the most laxity.
///
/// Tries schedulers, priorities (Audsley's order among them), placements, GPU arbitration, chunks, places for bottom halves,
/// replicas and bandwidth budgets. A configuration whose deadlines are all proven is better than any other, then the one with
/// the most proven laxity relative to its deadline, then the one with the better simulated tail: missed jobs, then the
/// greatest 99th percentile of a response time relative to its deadline, or of what a graph's latency lies above that of the
/// graph alone, relative to its period.
///
/// Shows the best, what each of its changes buys, and what stands in the way of a proof. The search is seeded; how far it
/// gets in the time it has depends on the machine. Ctrl-C ends it, and what was found by then is shown.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity tune car.toml
  laxity tune car.toml --load 120% -o better.toml        what to change to carry 20 % more
  laxity tune car.toml --within 2min --overheads profile.toml --json

Exit codes: 0 it searched; 1 no configuration is possible; 2 bad usage or a bad workload; 130 interrupted.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    file: PathBuf,
    /// Multiply all execution times first, as by 120%
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, default_value = "100%", hide_default_value = true)]
    load: u64,
    /// Search for DURATION at most
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1 min")]
    within: Nanos,
    /// Simulate each configuration for DURATION [default: ten of the longest periods, at least 1 s]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Nanos>,
    /// Seed of the search and of the simulations
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Charge PROFILE instead of the file's overheads: a published one, none, or a FILE of `laxity measure`
    #[arg(long, value_name = "PROFILE|FILE")]
    overheads: Option<String>,
    /// Show so many of the best
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    best: usize,
    /// Write the best configuration to FILE (.toml or .json)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
}

/// `120%`, in thousandths.
fn parse_percent(text: &str) -> Result<u64, String> {
    let digits = text.trim().trim_end_matches('%').trim();
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let permille = whole.parse::<u64>().ok().zip(format!("{part:0<1}")[..1].parse::<u64>().ok());
    match permille {
        Some((whole, part)) if (1..=100_000).contains(&whole) => Ok(whole * 10 + part),
        _ => Err(format!("`{text}` is no percentage of 1 to 100000; write, as in 120%")),
    }
}

/// What was found.
#[derive(Serialize)]
struct Found<'a> {
    workload: &'a str,
    load_permille: u64,
    settings: u64,
    tried: usize,
    /// The file's own configuration.
    own: Ranked<'a>,
    best: Vec<Ranked<'a>>,
    /// What each change of the best buys.
    changes: Vec<Effect<'a>>,
    /// By how many thousandths all execution times of the best may be multiplied before it is no longer proven.
    growth_permille: Option<u64>,
    /// What alone may shrink so that the best is proven, if it is not.
    bottlenecks: Vec<Bottleneck>,
}

/// A setting and its score.
#[derive(Clone, Serialize)]
struct Ranked<'a> {
    changes: Vec<Change<'a>>,
    score: Score,
    #[serde(skip)]
    setting: Setting,
}

#[derive(Clone, Copy, Serialize)]
struct Change<'a> {
    what: &'a str,
    to: &'a str,
    #[serde(skip)]
    dimension: usize,
}

#[derive(Serialize)]
struct Effect<'a> {
    change: Change<'a>,
    /// The file's own configuration with this change alone.
    alone: Score,
    /// The best without it.
    without: Score,
}

/// Searches, then shows what was found.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let file = input::name(&arguments.file);
    let mut workload = input::workload(&arguments.file)?;
    if let Some(named) = &arguments.overheads {
        workload.platform.overheads = Overheads::read(named)?.of(&workload.scheduler)?;
    }
    let workload = scaled(&workload, arguments.load, Part::All);
    workload.validate().map_err(|errors| CliError::Argument { message: format!("with --load: {errors}") })?;
    let simulated = arguments.duration.unwrap_or_else(|| default_duration(&workload));
    let effort = Effort::new(&workload, simulated, arguments.seed);
    let space = Space::of(workload.clone());
    let interrupt = Interrupt::watch();
    let (ranked, tried) = search(&space, &effort, &arguments, &interrupt)?;
    let Some(best) = ranked.iter().max_by(|a, b| a.score.cmp(&b.score).then_with(|| b.setting.cmp(&a.setting))) else {
        let message = format!("{file}: no configuration can be simulated; `laxity simulate {file}` says why");
        return Err(CliError::Live { message });
    };
    let best = best.clone();
    let tuned = space.workload(&best.setting);
    let found = found(&space, &workload, &effort, &arguments, ranked, tried, &tuned, &interrupt);
    match arguments.json {
        true => output.line(serde_json::to_string_pretty(&found).expect("numbers and texts are JSON"))?,
        false if arguments.quiet => {}
        false => output.print(text::text(&found, &effort, output.width()))?,
    }
    if let Some(path) = &arguments.output {
        write(path, &tuned)?;
        if !arguments.quiet && !arguments.json {
            output.finish()?;
            output::note(format_args!("the best is in {}; `laxity check` and `laxity run` take it", path.display()));
        }
    }
    match interrupt.is_requested() {
        true => Err(CliError::Interrupted { reached: format!("after {tried} settings; the best of these is shown") }),
        false => Ok(()),
    }
}

/// The best settings by a longer simulation, the file's own among them, and how many were tried.
fn search<'a>(
    space: &'a Space,
    effort: &Effort,
    arguments: &Arguments,
    interrupt: &Interrupt,
) -> Result<(Vec<Ranked<'a>>, usize), CliError> {
    let started = WallInstant::now();
    // The rest of the time is for what is shown: simplifying the best, and simulating them for longer.
    let tenths = |count: u32| Duration::from_nanos(arguments.within.0 / 10) * count;
    let (limit, limit_of_few) = (tenths(6), tenths(8));
    let is_over = || interrupt.is_requested() || started.elapsed() > limit;
    let progress = Progress::new("tuned  ".to_owned(), arguments.within, arguments.quiet || arguments.json);
    let mut search = Search::new(space, arguments.seed, RESTARTS);
    // The file's own configuration is always evaluated: the others are compared with it.
    let mut is_first = true;
    loop {
        let batch = search.propose();
        if batch.is_empty() {
            break;
        }
        let score = |setting: &Setting| {
            (is_first || !is_over()).then(|| (setting.clone(), evaluate(&space.workload(setting), effort)))
        };
        let told: Vec<Option<(Setting, Score)>> = batch.par_iter().map(score).collect();
        let is_whole = told.iter().all(Option::is_some);
        told.into_iter().flatten().for_each(|(setting, score)| search.tell(setting, score));
        is_first = false;
        let elapsed = Nanos(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)).min(arguments.within);
        let best = search.best().first().map_or_else(String::new, |(_, score)| text::brief(score));
        progress.doing(Instant(elapsed.0), format_args!("{} settings, best {best}", search.tried()));
        if !is_whole || is_over() {
            break;
        }
    }
    progress.finish();
    let tried = search.tried();
    let mut settings = few(&mut search, space, effort, arguments.best.max(1), &|| {
        interrupt.is_requested() || started.elapsed() > limit_of_few
    });
    if !settings.contains(&space.base()) {
        settings.push(space.base());
    }
    // Other draws, and more of them, so that the best is not the one that the first draws happened to suit.
    let longer = effort.longer(LONGER);
    let ranked = settings.into_par_iter().map(|setting| ranked(space, setting, &longer)).collect();
    Ok((ranked, tried))
}

/// The best settings without changes that buy nothing.
fn few(
    search: &mut Search,
    space: &Space,
    effort: &Effort,
    count: usize,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Vec<Setting> {
    let candidates: Vec<Setting> =
        search.best().into_iter().take(2 * count).map(|(setting, _)| setting.clone()).collect();
    let mut settings: Vec<Setting> = Vec::new();
    for mut setting in candidates {
        while !is_over() {
            let score = search.score(&setting).cloned();
            let known: Vec<(Setting, Score)> = Search::simpler(&setting)
                .into_par_iter()
                .map(|simpler| {
                    let known = search.score(&simpler).cloned();
                    let score = known.unwrap_or_else(|| evaluate(&space.workload(&simpler), effort));
                    (simpler, score)
                })
                .collect();
            known.iter().for_each(|(simpler, score)| search.tell(simpler.clone(), score.clone()));
            match known.into_iter().find(|(_, simpler)| score.as_ref().is_some_and(|score| simpler >= score)) {
                Some((simpler, _)) => setting = simpler,
                None => break,
            }
        }
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    settings.truncate(count);
    settings
}

fn ranked<'a>(space: &'a Space, setting: Setting, effort: &Effort) -> Ranked<'a> {
    let score = evaluate(&space.workload(&setting), effort);
    Ranked { changes: changes(space, &setting), score, setting }
}

fn changes<'a>(space: &'a Space, setting: &Setting) -> Vec<Change<'a>> {
    let chosen = space.dimensions().iter().zip(setting).enumerate().filter(|(_, (_, choice))| **choice != 0);
    let change = |(dimension, (of, &choice)): (usize, (&'a laxity_tune::Dimension, &u16))| Change {
        what: &of.name,
        to: &of.choices[usize::from(choice)].label,
        dimension,
    };
    chosen.map(change).collect()
}

#[expect(clippy::too_many_arguments, reason = "what was found is put together of all that there is")]
fn found<'a>(
    space: &'a Space,
    workload: &'a Workload,
    effort: &Effort,
    arguments: &Arguments,
    mut all: Vec<Ranked<'a>>,
    tried: usize,
    tuned: &Workload,
    interrupt: &Interrupt,
) -> Found<'a> {
    all.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.setting.cmp(&b.setting)));
    let base = space.base();
    let own = all.iter().find(|ranked| ranked.setting == base).cloned();
    let own = own.unwrap_or_else(|| ranked(space, base.clone(), effort));
    all.retain(|ranked| ranked.score.is_possible());
    all.truncate(arguments.best.max(1));
    let longer = effort.longer(LONGER);
    let best = all.first().cloned().unwrap_or_else(|| own.clone());
    let of_change = |change: &Change<'a>| {
        let (mut alone, mut without) = (base.clone(), best.setting.clone());
        alone[change.dimension] = best.setting[change.dimension];
        without[change.dimension] = 0;
        Effect {
            change: *change,
            alone: evaluate(&space.workload(&alone), &longer),
            without: evaluate(&space.workload(&without), &longer),
        }
    };
    let changes = if interrupt.is_requested() { Vec::new() } else { best.changes.par_iter().map(of_change).collect() };
    Found {
        workload: &workload.name,
        load_permille: arguments.load,
        settings: space.size(),
        tried,
        own,
        best: all,
        changes,
        growth_permille: growth(tuned),
        bottlenecks: bottlenecks(tuned),
    }
}

fn write(path: &std::path::Path, workload: &Workload) -> Result<(), CliError> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let text = if is_json { workload.to_json() } else { workload.to_toml() };
    OutputFile::write(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_percentages_to_the_tenth() {
        assert_eq!(parse_percent("120%"), Ok(1_200));
        assert_eq!(parse_percent("87.5 %"), Ok(875));
        assert_eq!(parse_percent("100"), Ok(1_000));
        assert!(parse_percent("0%").is_err() && parse_percent("-5%").is_err() && parse_percent("x").is_err());
    }
}
