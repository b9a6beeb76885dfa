//! The configurations a command line asks for: schedulers, each with the overheads it is charged, and ways to manage
//! GPUs.

use clap::Args;
use laxity_model::{GpuManagement, OverheadProfile, Scheduler, Statistic, Workload};

use crate::error::CliError;
use crate::management::{arbitration_names, arbitrations, handling_names, handlings};
use crate::overheads::Overheads;
use crate::policy::{PolicyChoice, PolicyParser};

/// What is to be taken instead of what the file says.
#[derive(Args)]
pub struct Alternatives {
    /// Schedule with NAME instead of the file's scheduler: an algorithm, a realization, both, or all; repeatable
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = PolicyParser,
        hide_possible_values = true
    )]
    pub policy: Vec<PolicyChoice>,
    /// Charge PROFILE instead of the file's overheads: a published one (see `laxity overheads`), a family, none, or the
    /// worst case in a FILE of `laxity measure` (its average as FILE:average)
    #[arg(long, value_name = "PROFILE|FILE")]
    pub overheads: Option<String>,
    /// Share GPUs by NAME instead of the file's arbitration: driver, driver_spinning, semaphore, k_fmlp, gpusync, or
    /// all; repeatable
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = arbitration_names(),
        hide_possible_values = true
    )]
    pub arbitration: Vec<String>,
    /// Run bottom halves by NAME instead of the file's handling: linux, preempt_rt_low, preempt_rt_high, pai, klmirqd,
    /// or all; repeatable
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        value_parser = handling_names(),
        hide_possible_values = true
    )]
    pub handling: Vec<String>,
}

impl Alternatives {
    /// What is named to no purpose: `workload` has nothing to apply it to.
    pub fn without_effect(&self, workload: &Workload) -> impl Iterator<Item = &'static str> {
        let has_gpu = !workload.platform.gpus.is_empty();
        let has_device = has_gpu || !workload.platform.devices.is_empty();
        let arbitration = !has_gpu && !self.arbitration.is_empty();
        let handling = !has_device && !self.handling.is_empty();
        let arbitration = arbitration.then_some("without a GPU, --arbitration changes nothing");
        arbitration.into_iter().chain(handling.then_some("without a GPU or another device, --handling changes nothing"))
    }
}

/// A workload under one scheduler and one way to manage GPUs.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What the scheduler was called; where there are several ways to manage GPUs, also the way.
    pub name: String,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The workload, with the overheads that this scheduler is charged, and managed in that way.
    pub workload: Workload,
}

/// A configuration for each combination of what is named, in that order, each once; of what is not named, the file's.
pub fn configurations(instead: &Alternatives, workload: &Workload) -> Result<Vec<Configuration>, CliError> {
    let managements = managements(instead, &workload.gpu_management);
    let instead_of_own = instead.overheads.as_deref().map(Overheads::read).transpose()?;
    let mut all = Vec::new();
    for (scheduler_name, scheduler) in schedulers(&instead.policy, workload) {
        let overheads = match &instead_of_own {
            Some(overheads) => overheads.of(&scheduler)?,
            None => own_overheads(workload, &scheduler),
        };
        for (way, gpu_management) in &managements {
            let mut workload = workload.clone();
            workload.platform.overheads = overheads.clone();
            workload.gpu_management = gpu_management.clone();
            let name = format!("{scheduler_name}{way}");
            all.push(Configuration { name, scheduler, workload });
        }
    }
    Ok(all)
}

/// The ways to manage GPUs, each with what it adds to the name of a configuration: what the others do not have, too.
fn managements(instead: &Alternatives, file: &GpuManagement) -> Vec<(String, GpuManagement)> {
    let arbitrations = arbitrations(&instead.arbitration, file);
    let handlings = handlings(&instead.handling, file);
    let mut all = Vec::with_capacity(arbitrations.len() * handlings.len());
    for &arbitration in &arbitrations {
        for &handling in &handlings {
            let mut name = String::new();
            if arbitrations.len() > 1 {
                name.push_str(&format!(" {}", arbitration.name()));
            }
            if handlings.len() > 1 {
                name.push_str(&format!(" {}", handling.name()));
            }
            all.push((name, GpuManagement { arbitration, handling, ..file.clone() }));
        }
    }
    all
}

/// What the file's overheads mean for `scheduler`: where the file has the measurements of its own scheduler's
/// realization, those of this one; otherwise, and for realizations that were not measured, what the file has.
fn own_overheads(workload: &Workload, scheduler: &Scheduler) -> OverheadProfile {
    let files = &workload.platform.overheads;
    for statistic in [Statistic::Worst, Statistic::Average] {
        if OverheadProfile::published_for(&workload.scheduler, statistic).as_ref() == Ok(files) {
            return OverheadProfile::published_for(scheduler, statistic).unwrap_or_else(|_| files.clone());
        }
    }
    files.clone()
}

/// The schedulers with the names they were given by.
fn schedulers(choices: &[PolicyChoice], workload: &Workload) -> Vec<(String, Scheduler)> {
    let mut all: Vec<(String, Scheduler)> = Vec::new();
    let mut add = |name: &str, scheduler: Scheduler| {
        if all.iter().all(|(_, known)| *known != scheduler) {
            all.push((name.to_owned(), scheduler));
        }
    };
    for choice in choices {
        match choice {
            PolicyChoice::One { name, scheduler } => add(name, *scheduler),
            PolicyChoice::All => {
                for name in Scheduler::MEASURED {
                    add(name, name.parse().expect("the measured realizations are schedulers"));
                }
            }
        }
    }
    if choices.is_empty() {
        add(&workload.scheduler.to_string(), workload.scheduler);
    }
    all
}

#[cfg(test)]
mod tests {
    use laxity_model::Platform;

    use super::*;

    #[test]
    fn the_measurements_of_the_files_scheduler_are_exchanged_for_those_of_another() {
        let mut workload = Workload::new("w", Platform::identical(1), Vec::new());
        let own = |workload: &Workload, name: &str| own_overheads(workload, &name.parse().expect(name)).name;
        assert_eq!(own(&workload, "CQm"), "none");
        workload.platform.overheads = OverheadProfile::published("brandenburg2009-CEm-worst-aligned").expect("known");
        assert_eq!(own(&workload, "CEm"), "brandenburg2009-CEm-worst-aligned");
        assert_eq!(own(&workload, "S-CQ1"), "brandenburg2009-CQ1-worst-staggered");
        assert_eq!(own(&workload, "HQ1"), "brandenburg2009-CEm-worst-aligned", "HQ1 was not measured");
        workload.platform.overheads = OverheadProfile::published("brandenburg2009-FEm-worst-aligned").expect("known");
        assert_eq!(own(&workload, "CQm"), "brandenburg2009-FEm-worst-aligned", "not those of the file's scheduler");
    }

    #[test]
    fn each_scheduler_is_simulated_once_under_the_first_name_it_was_given() {
        let workload = Workload::new("w", Platform::identical(1), Vec::new());
        let one = |name: &str| PolicyChoice::One { name: name.to_owned(), scheduler: name.parse().expect(name) };
        let names = |choices: &[PolicyChoice]| -> Vec<String> {
            schedulers(choices, &workload).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[]), ["G-EDF/CEm"]);
        assert_eq!(names(&[one("CQm"), one("G-EDF"), one("CEm"), one("C-RM")]), ["CQm", "G-EDF", "C-RM"]);
        assert_eq!(names(&[one("S-CQ1"), PolicyChoice::All]).len(), 9);
    }
}
