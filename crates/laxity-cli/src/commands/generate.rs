//! `laxity gen`: random task sets as workload files.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use laxity_gen::{
    FixedSumMethod, GeneratedSet, GeneratorSpec, PeriodDistribution, UtilizationDistribution, generate,
    klmirqd_platform, task_set_seed,
};
use laxity_model::{OverheadProfile, Platform, Scheduler, Workload};

use crate::error::CliError;
use crate::output::{self, Output};
use crate::output_file::OutputFile;
use crate::overheads::Overheads;
use crate::policy::{PolicyChoice, PolicyParser};
use crate::quantity::{counted, parse_seed};
use crate::style::{FAINT, RESET, STRONG};

/// Generate random task sets as workload files.
///
/// SPEC is UTILIZATIONS/PERIODS and parameters, as in `uni-light/moderate cap=2`; --list shows what can be named. The
/// same spec and seed give the same bytes on any machine; each file says how to draw it again.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gen --list
  laxity gen uni-light/moderate cap=2 --seed 7 -o light.toml
  laxity gen exp-heavy/multimedia cap=8 gpu=0.2..0.3        with GPU work, on the machine of paper 000
  laxity gen randfixedsum/log-uniform\\(1ms,1s,1ms\\) n=10 total=7.5 --cpus 8
  laxity gen bimo-medium/long cap=4 -n 100 -o sets/         a hundred files
  laxity gen uni-light/short cap=2 | laxity simulate -")]
pub struct Arguments {
    /// UTILIZATIONS/PERIODS and parameters KEY=VALUE
    #[arg(value_name = "SPEC", required_unless_present = "list")]
    spec: Vec<String>,
    /// List what can be named
    #[arg(long, exclusive = true)]
    list: bool,
    /// Seed of the set; with -n, of all sets
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, default_value_t = 0)]
    seed: u64,
    /// Generate COUNT sets, each with a seed of its own made from --seed and its number
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    count: Option<u64>,
    /// Write to FILE (.toml or .json), or with -n to files in FOLDER [default: standard output, as TOML]
    #[arg(short, long, value_name = "FILE|FOLDER")]
    output: Option<PathBuf>,
    /// CPUs of the platform [default: as many as the tasks need at least; with GPU work, the twelve of paper 000]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    cpus: Option<u16>,
    /// The file's scheduler
    #[arg(long, value_name = "NAME", value_parser = PolicyParser, hide_possible_values = true)]
    policy: Option<PolicyChoice>,
    /// The file's overheads: a published profile, a family, or a FILE of `laxity measure`
    #[arg(long, value_name = "PROFILE|FILE")]
    overheads: Option<String>,
}

/// Prints the list, one set, or writes many.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    if arguments.list {
        return list(output);
    }
    let spec: GeneratorSpec = arguments.spec.join(" ").parse()?;
    let scheduler = match &arguments.policy {
        None => Scheduler::default(),
        Some(PolicyChoice::One { scheduler, .. }) => *scheduler,
        Some(PolicyChoice::All) => {
            let message = "a file has one scheduler; name one instead of `all`".to_owned();
            return Err(CliError::Argument { message });
        }
    };
    let overheads = match &arguments.overheads {
        None => OverheadProfile::zero(),
        Some(name) => Overheads::read(name)?.of(&scheduler)?,
    };
    if spec.gpu.is_some() && arguments.cpus.is_some() {
        let message =
            "GPU work is generated for the machine of paper 000, which has 12 CPUs; leave --cpus out".to_owned();
        return Err(CliError::Argument { message });
    }
    let draw = |seed| -> Result<Workload, CliError> {
        let set = generate(&spec, seed)?;
        let platform = Platform { overheads: overheads.clone(), ..platform(&set, arguments.cpus) };
        let name = set.provenance.to_string();
        Ok(Workload { scheduler, ..Workload::new(name, platform, set.tasks) })
    };
    match (arguments.count, &arguments.output) {
        (None, None) => output.print(text(&draw(arguments.seed)?, false)?),
        (None, Some(path)) => write(&draw(arguments.seed)?, path),
        (Some(1), None) => output.print(text(&draw(task_set_seed(arguments.seed, 0, 0))?, false)?),
        (Some(count), None) => {
            let message = format!("{count} sets need a folder to go to; name it with -o");
            Err(CliError::Argument { message })
        }
        (Some(count), Some(file)) if is_file_name(file) => {
            let message = format!(
                "-o {} names one file, and -n {count} writes a folder of them; name a folder, as in -o {}/",
                file.display(),
                file.with_extension("").display()
            );
            Err(CliError::Argument { message })
        }
        (Some(count), Some(folder)) => {
            let failed = |source| CliError::Write { path: folder.clone(), source };
            fs::create_dir_all(folder).map_err(failed)?;
            let digits = (count - 1).to_string().len().max(3);
            for number in 0..count {
                let path = folder.join(format!("set-{number:0digits$}.toml"));
                let written = write(&draw(task_set_seed(arguments.seed, 0, number))?, &path);
                written.inspect_err(|_| keep_in_mind(number, folder))?;
            }
            output::note(format_args!("{count} workloads in {}", folder.display()));
            Ok(())
        }
    }
}

/// Whether `path` looks like a workload file rather than a folder.
fn is_file_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    matches!(extension.as_deref(), Some("toml" | "json")) && !path.is_dir()
}

/// Says what is there although the command fails.
fn keep_in_mind(written: u64, folder: &Path) {
    if written > 0 {
        output::note(format_args!("{} already written to {}", counted(written, "workload"), folder.display()));
    }
}

/// The machine of paper 000 for GPU work; else identical CPUs, at least as many as the tasks need.
fn platform(set: &GeneratedSet, cpus: Option<u16>) -> Platform {
    if set.provenance.spec.gpu.is_some() {
        return klmirqd_platform();
    }
    let needed = set.total_utilization().units().div_ceil(laxity_gen::Utilization::ONE.units()).max(1);
    Platform::identical(cpus.map_or(needed as usize, usize::from))
}

fn write(workload: &Workload, path: &Path) -> Result<(), CliError> {
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    OutputFile::write(path, text(workload, is_json)?.as_bytes())
}

/// The workload as a file, which was read back: what is generated can be used.
fn text(workload: &Workload, json: bool) -> Result<String, CliError> {
    let name = format!("<{}>", workload.name);
    if json {
        let text = workload.to_json();
        Workload::from_json(&text, &name)?;
        return Ok(text);
    }
    let body = workload.to_toml();
    Workload::from_toml(&body, &name)?;
    let spec = workload.name.split(" seed=").next().unwrap_or_default();
    let seed = workload.name.split(" seed=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    Ok(format!("# Drawn by: laxity gen '{spec}' --seed {seed}\n{body}"))
}

fn list(output: &mut Output) -> Result<(), CliError> {
    let heading = |text: &str| format!("{STRONG}{text}{RESET}");
    output.line(format_args!("{} of tasks drawn one by one up to cap=TOTAL", heading("Utilizations")))?;
    for (name, distribution) in UtilizationDistribution::NAMED {
        output.line(format_args!("  {STRONG}{name:<12}{RESET} {}", in_words(&distribution)))?;
    }
    output.line("  uniform(MIN,MAX)  bimodal(NINTHS)  exponential(MEAN)")?;
    output.line(format_args!(
        "\n{} of n=TASKS tasks with total=UTILIZATION, within min= and max=",
        heading("Utilizations")
    ))?;
    for method in FixedSumMethod::ALL {
        output.line(format_args!("  {STRONG}{}{RESET}", method.name()))?;
    }
    output.line(format_args!("\n{}", heading("Periods")))?;
    for (name, periods) in PeriodDistribution::NAMED {
        output.line(format_args!("  {STRONG}{name:<12}{RESET} {} to {}", periods.min, periods.max))?;
    }
    output.line("  uniform(MIN,MAX,STEP)  log-uniform(MIN,MAX,STEP)")?;
    output.line(format_args!("\n{}: a share of the tasks uses one", heading("GPU")))?;
    output.line("  gpu=MIN..MAX  part=SHARE  transfer=SHARE  interrupts=NUMBER  overlap=SHARE")?;
    output.line(format_args!("\n{FAINT}As in: laxity gen uni-light/moderate cap=2 --seed 7{RESET}"))
}

fn in_words(distribution: &UtilizationDistribution) -> String {
    match distribution {
        UtilizationDistribution::Uniform { min, max } => format!("uniform from {min} to {max}"),
        UtilizationDistribution::Bimodal { light_ninths } => {
            format!("{light_ninths}/9 light (0.001 to 0.5), the others heavy (0.5 to 0.9)")
        }
        UtilizationDistribution::Exponential { mean } => format!("exponential with mean {mean}, at most 1"),
    }
}
