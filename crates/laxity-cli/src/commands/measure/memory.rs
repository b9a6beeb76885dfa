//! `laxity measure --memory`: how much slower memory-bound work is beside traffic of another CPU.

use std::io::Write;
use std::path::Path;

use laxity_measure::memory::{Contention, ContentionError, Curve, Interference};
use laxity_model::Nanos;
use laxity_sys::scheduling;
use serde::Serialize;

use super::Arguments;
use crate::commands::named::{live, pretty};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::quantity::bytes;
use crate::table::{Cell, Table};

/// As little slower is noise.
const INTERFERENCE_MIN: f64 = 1.2;

#[derive(Serialize)]
struct Json {
    laxity: &'static str,
    victim_cpu: usize,
    hog_cpu: usize,
    victim: &'static str,
    hog: &'static str,
    measured: Vec<JsonPoint>,
    contention: Vec<(u64, f64)>,
}

#[derive(Serialize)]
struct JsonPoint {
    traffic: u64,
    slowdown: f64,
    solo_rate: u64,
    turns: usize,
}

/// Measures, then writes, then prints.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let quiet = arguments.quiet || arguments.json;
    let cpus = match &arguments.cpus {
        Some(list) => list.0.clone(),
        None => scheduling::usable_cpus().map_err(live)?,
    };
    let &[victim, hog, ..] = &cpus[..] else {
        let message =
            "interference takes two CPUs, that of the victim and that of the hog; name two with --cpus".to_owned();
        return Err(CliError::Argument { message });
    };
    let contention = for_as_long(Contention::new([victim, hog]), arguments.duration);
    let interrupt = Interrupt::watch();
    if !quiet {
        output::note(format_args!("a {} on CPU {victim} beside a {} on CPU {hog}", contention.victim, contention.hog));
    }
    let measured = contention.measure_until(&|| interrupt.is_requested());
    if interrupt.is_requested() {
        // Even if that was too soon for any result, which is said of a machine that is disturbed.
        return Err(CliError::Interrupted { reached: "while it measured; nothing was written".to_owned() });
    }
    let measured = measured.map_err(refused)?;
    let curve = Contention::curve(&measured);
    if let Some(path) = &arguments.out {
        write(path, &curve)?;
    }
    print(arguments, &contention, &measured, &curve, output)
}

/// As many turns as the time has room for, three at least.
fn for_as_long(contention: Contention, duration: Nanos) -> Contention {
    // Two windows, and what it takes the hog to begin.
    let turn = (2 * contention.window.0 + 2_000_000) * contention.duties.len() as u64;
    let turns = usize::try_from(duration.0 / turn).unwrap_or(usize::MAX).clamp(3, 10_000);
    Contention { turns, ..contention }
}

fn refused(error: ContentionError) -> CliError {
    let message = error.to_string();
    match error {
        ContentionError::Cpu { .. } | ContentionError::Same { .. } => CliError::Argument { message },
        ContentionError::Disturbed { .. } => CliError::Live { message },
    }
}

fn write(path: &Path, curve: &Curve) -> Result<(), CliError> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        let message = format!("--out {}: give the file the extension .toml", path.display());
        return Err(CliError::Argument { message });
    }
    let mut file = OutputFile::create(path)?;
    let text = format!("# By laxity measure --memory {}.\n{}", env!("CARGO_PKG_VERSION"), curve.to_toml());
    file.write_all(text.as_bytes()).map_err(|source| CliError::Write { path: path.to_owned(), source })?;
    file.commit()
}

fn print(
    arguments: &Arguments,
    contention: &Contention,
    measured: &[Interference],
    curve: &Curve,
    output: &mut Output,
) -> Result<(), CliError> {
    if arguments.json {
        let [victim_cpu, hog_cpu] = contention.cpus;
        let point = |one: &Interference| JsonPoint {
            traffic: one.traffic,
            slowdown: one.slowdown,
            solo_rate: one.solo,
            turns: one.turns,
        };
        return output.print(pretty(&Json {
            laxity: env!("CARGO_PKG_VERSION"),
            victim_cpu,
            hog_cpu,
            victim: contention.victim.name(),
            hog: contention.hog.name(),
            measured: measured.iter().map(point).collect(),
            contention: curve.points().iter().map(|point| (point.traffic, point.slowdown)).collect(),
        }));
    }
    if arguments.quiet {
        return Ok(());
    }
    let mut table =
        Table::of("hog's traffic").group("time, relative to alone", &["median", "curve"]).group("turns", &[""]);
    for one in measured {
        let drawn = curve.slowdown(one.traffic as f64);
        let traffic = Cell::from(format!("{}/s", bytes(one.traffic)));
        let numbers = [format!("{:.3}", one.slowdown), format!("{drawn:.3}"), one.turns.to_string()];
        table.row([traffic].into_iter().chain(numbers.map(Cell::from)).collect());
    }
    output.print(table.render(output.width()))?;
    output.line("")?;
    output.print(curve.to_toml())?;
    output.finish()?;
    if curve.points().iter().all(|point| point.slowdown < INTERFERENCE_MIN) {
        output::note("next to no interference: these CPUs have memory bandwidth to spare, or a host moved them apart");
    }
    Ok(())
}
