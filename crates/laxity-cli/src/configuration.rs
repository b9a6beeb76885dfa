//! The configurations a command line asks for: schedulers, each with the overheads it is charged.

use laxity_model::{OverheadProfile, Scheduler, Statistic, Workload};

use crate::error::CliError;
use crate::policy::PolicyChoice;

/// A workload under one scheduler.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What the scheduler was called.
    pub name: String,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The workload, with the overheads that this scheduler is charged.
    pub workload: Workload,
}

/// A configuration for each scheduler named, in that order, each once; for the file's if none is. `overheads` replaces
/// the file's.
pub fn configurations(
    choices: &[PolicyChoice],
    overheads: Option<&str>,
    workload: &Workload,
) -> Result<Vec<Configuration>, CliError> {
    let mut all = Vec::new();
    for (name, scheduler) in schedulers(choices, workload) {
        let mut workload = workload.clone();
        workload.platform.overheads = match overheads {
            Some(profile) => OverheadProfile::named(profile, &scheduler)?,
            None => own_overheads(&workload, &scheduler),
        };
        all.push(Configuration { name, scheduler, workload });
    }
    Ok(all)
}

/// What the file's overheads mean for `scheduler`: where the file has the measurements of its own scheduler's
/// realization, those of this one; otherwise, and for realizations nobody measured, what the file has.
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
