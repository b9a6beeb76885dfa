//! `laxity policies`: the schedulers that can be named.

use laxity_model::Scheduler;

use crate::error::CliError;
use crate::output::Output;
use crate::policy::{ALGORITHMS, LINUX_NAME, realizations};
use crate::report::describe;
use crate::style::{FAINT, RESET, STRONG};

/// Prints algorithms and realizations, a line each.
pub fn run(output: &mut Output) -> Result<(), CliError> {
    output.line(format_args!("{STRONG}Algorithms{RESET}: which job goes first, and which CPUs share a ready queue"))?;
    for name in ALGORITHMS {
        output.line(format_args!("  {STRONG}{name:<7}{RESET} {}", algorithm(name)))?;
    }
    output.line(format_args!("\n{STRONG}Realizations{RESET}: how it is implemented (paper 002); * measured there"))?;
    for name in realizations() {
        let scheduler: Scheduler = name.parse().expect("every realization listed is a scheduler");
        let mark = if Scheduler::MEASURED.contains(&name.as_str()) { "*" } else { " " };
        output.line(format_args!("  {STRONG}{name:<5}{RESET}{mark}  {}", describe(&scheduler)))?;
    }
    output.line(format_args!(
        "\n{FAINT}Write an algorithm, a realization, or both: --policy G-EDF, --policy CQ1, --policy C-RM/FEm.\n\
         Omitted parts are those of G-EDF/CEm. CFS has no realizations; --policy SCHED_OTHER is G-CFS. --policy all: the nine measured ones.{RESET}"
    ))
}

fn algorithm(name: &str) -> String {
    let (scope, rule) = name.split_once('-').unwrap_or(("", name));
    if rule == "CFS" {
        let balanced = match scope {
            "G" => "all CPUs take from one another",
            "C" => "those of a cluster take from one another",
            _ => "no CPU takes from another",
        };
        return format!("least virtual time first, a queue for each CPU: Linux's {LINUX_NAME}; {balanced}");
    }
    let scope = match scope {
        "G" => "all CPUs share a queue",
        "C" => "a queue for each cluster",
        _ => "a queue for each CPU",
    };
    let rule = match rule {
        "EDF" => "earliest absolute deadline first",
        "RM" => "shorter period first (rate-monotonic)",
        "DM" => "shorter relative deadline first (deadline-monotonic)",
        _ => "the file's fixed priorities, smaller number first",
    };
    format!("{rule}; {scope}")
}
