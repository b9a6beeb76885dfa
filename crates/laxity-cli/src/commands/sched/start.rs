//! `laxity sched start`: the scheduler into the kernel.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use laxity_model::{CpuId, parse_cpus};
use laxity_scx::{Settings, Share, probe};
use laxity_sys::scheduling::usable_cpus;

use crate::commands::sched::loader;
use crate::error::CliError;

/// Load the scheduler into the kernel, and keep it there until Ctrl-C or `laxity sched stop`.
///
/// Threads that are tasks of it (laxity_scx::Membership) run by the policy; all others run where no job wants a CPU. When this process ends, in whatever way, Linux schedules all threads, and tasks are told. `make scheduler` builds what is loaded; `laxity sched doctor` says what a machine lacks for it. See docs/guides/kernel.md.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched start                                    G-EDF on all CPUs
  laxity sched start --policy P-RM --cpus 2,3
  laxity sched start --policy G-EDF --realization CQm   decisions where quanta begin
  laxity sched start --policy C-EDF --cluster-size 2 --trace kernel.lxt
  laxity sched start --trace kernel.lxt --overheads     the trace shows how long the scheduler takes
  laxity sched start --others 5ms/100ms                 jobs leave all other threads 5 % of each CPU
  systemd-run --unit laxity laxity sched start          as a service

Exit codes: 0 it was ended; 1 it cannot be loaded, or the kernel ended it; 2 bad usage.")]
pub struct Arguments {
    /// G-, C- or P- with EDF, RM, DM or FP, also with a realization, as in G-EDF/CQm
    #[arg(long, value_name = "POLICY", default_value = "G-EDF")]
    policy: String,
    /// Its ready queue, when it decides, and which CPUs release jobs: CEm, FE1, HQm, S-CQ1, ... [default: that of the policy, or CEm]
    #[arg(long, value_name = "REALIZATION")]
    realization: Option<String>,
    /// The CPUs of jobs, as in 0-3,8; where one is dedicated to releases, the first [default: those that this process may use]
    #[arg(long, value_name = "LIST", value_parser = parse_list)]
    cpus: Option<List>,
    /// Under C-, how many CPUs share a cluster
    #[arg(long, value_name = "N")]
    cluster_size: Option<usize>,
    /// What all other threads have of each CPU at least, if jobs leave them less: a budget in each period
    #[arg(long, value_name = "BUDGET/PERIOD")]
    others: Option<Share>,
    /// Write a trace to this file when it ends
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Have the trace show how long the scheduler takes: releases, decisions, switches, ticks, timers set, interrupts of CPUs
    #[arg(long, requires = "trace")]
    overheads: bool,
}

/// clap would take a bare vector for an argument that may be repeated.
#[derive(Clone)]
pub struct List(pub Vec<CpuId>);

pub fn parse_list(text: &str) -> Result<List, String> {
    parse_cpus(text).map(List)
}

/// The policy with the realization that was asked for.
fn named(policy: String, realization: Option<String>) -> Result<String, CliError> {
    match realization {
        Some(realization) if policy.contains('/') => Err(CliError::Argument {
            message: format!("--policy {policy} and --realization {realization}: name the realization once"),
        }),
        Some(realization) => Ok(format!("{policy}/{realization}")),
        None => Ok(policy),
    }
}

/// The loader, on a machine that lacks nothing for it.
pub fn ready() -> Result<PathBuf, CliError> {
    let live = |message: String| CliError::Live { message };
    if let Some(check) = probe(Path::new("/")).checks.into_iter().find(|check| !check.holds) {
        let remedy = check.remedy.unwrap_or_default();
        return Err(live(format!(
            "{}: {}; {remedy} (`laxity sched doctor` says all; `laxity run --scheduler laxity` needs none of it)",
            check.name, check.found
        )));
    }
    loader::path().map_err(|found| live(format!("{found}; `make scheduler` builds it")))
}

/// Becomes the loader; returns only if it cannot.
pub fn run(arguments: Arguments) -> Result<(), CliError> {
    let live = |message: String| CliError::Live { message };
    let cpus = match arguments.cpus {
        Some(List(cpus)) => cpus.into_iter().map(CpuId::index).collect(),
        None => usable_cpus().map_err(|error| live(format!("the CPUs of this process are unknown: {error}")))?,
    };
    let Arguments { policy, realization, cluster_size, trace, others, overheads, .. } = arguments;
    let policy = named(policy, realization)?;
    let settings = Settings { policy, cpus, cluster_size, trace, object: None, others, overheads, holds: false };
    settings.check().map_err(|error| CliError::Argument { message: error.to_string() })?;
    let loader = ready()?;
    let settings = serde_json::to_string(&settings).expect("settings have no maps");
    let error = Command::new(&loader).arg(settings).exec();
    Err(live(format!("{}: {error}", loader.display())))
}
