//! Which simulations a command line asks for.

use std::path::{Path, PathBuf};

use laxity_model::{Nanos, OverheadCosts, OverheadProfile, Scheduler, Statistic, Workload};
use laxity_sim::Setup;

use super::Arguments;
use crate::error::CliError;
use crate::policy::PolicyChoice;

/// One simulation.
pub struct Plan {
    /// What it is called in progress and file names.
    pub name: String,
    /// The simulation, ready to start.
    pub setup: Setup,
    /// The name of the overhead profile charged.
    pub overheads: String,
    /// Where its trace goes.
    pub trace: Option<PathBuf>,
}

impl Plan {
    /// Whether anything costs anything.
    pub fn is_charged(&self) -> bool {
        self.setup.header().costs != OverheadCosts::default()
    }
}

/// A simulation for each scheduler named, in that order, each once; for the file's if none is. Whatever is wrong with
/// any of them is found before the first one starts.
pub fn plans(arguments: &Arguments, file: &str, workload: &Workload) -> Result<Vec<Plan>, CliError> {
    let schedulers = schedulers(&arguments.policy, workload);
    let several = schedulers.len() > 1;
    let mut plans = Vec::with_capacity(schedulers.len());
    for (name, scheduler) in schedulers {
        let mut workload = workload.clone();
        workload.platform.overheads = match &arguments.overheads {
            Some(profile) => OverheadProfile::named(profile, &scheduler)?,
            None => own_overheads(&workload, &scheduler),
        };
        let setup = Setup::new(&workload, &scheduler, arguments.seed)
            .map_err(|refusal| CliError::Refused { file: file.to_owned(), refusal })?;
        let trace = arguments.trace.as_deref().map(|path| if several { insert(path, &name) } else { path.to_owned() });
        plans.push(Plan { name, setup, overheads: workload.platform.overheads.name, trace });
    }
    Ok(plans)
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

/// `out.lxt` and `C-RM/FEm` make `out-C-RM-FEm.lxt`.
fn insert(path: &Path, policy: &str) -> PathBuf {
    let stem = path.file_stem().map_or_else(Default::default, |stem| stem.to_string_lossy());
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{}{extension}", policy.replace('/', "-")))
}

/// Long enough for every task to have released ten jobs, and at least 1 s.
pub fn default_duration(workload: &Workload) -> Nanos {
    let tasks = workload.tasks.iter();
    let longest = tasks.map(|task| Nanos(task.phase.0.saturating_add(task.period.0.saturating_mul(10)))).max();
    longest.unwrap_or(Nanos::ZERO).clamp(Nanos::from_secs(1), Nanos::LONGEST)
}

#[cfg(test)]
mod tests {
    use laxity_model::{Platform, Task};

    use super::*;

    #[test]
    fn a_policys_name_goes_before_the_extension() {
        assert_eq!(insert(Path::new("out/run.1.lxt"), "C-RM/FEm"), Path::new("out/run.1-C-RM-FEm.lxt"));
        assert_eq!(insert(Path::new("trace"), "CEm"), Path::new("trace-CEm"));
    }

    #[test]
    fn by_default_every_task_releases_ten_jobs() {
        let mut slow = Task::periodic("slow", Nanos(1), Nanos::from_secs(2));
        slow.phase = Nanos::from_secs(3);
        let fast = Task::periodic("fast", Nanos(1), Nanos::from_millis(1));
        let workload = |tasks| Workload::new("w", Platform::identical(1), tasks);
        assert_eq!(default_duration(&workload(vec![fast.clone()])), Nanos::from_secs(1));
        assert_eq!(default_duration(&workload(vec![fast, slow])), Nanos::from_secs(23));
    }

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
