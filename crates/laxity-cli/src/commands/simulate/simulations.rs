//! Which simulations a command line asks for.

use std::path::{Path, PathBuf};

use laxity_analysis::check::{Settled, settle};
use laxity_model::{OverheadCosts, Scheduler, Workload};

use super::Arguments;
use crate::configuration::{Configuration, configurations};
use crate::error::CliError;
use crate::output;

/// One simulation.
pub struct Simulation {
    /// What it is called in progress and file names.
    pub name: String,
    /// The simulation, ready to start.
    pub plan: laxity_plan::Plan,
    /// The name of the overhead profile charged.
    pub overheads: String,
    /// Where its trace goes.
    pub trace: Option<PathBuf>,
}

impl Simulation {
    /// Whether anything costs anything.
    pub fn is_charged(&self) -> bool {
        self.plan.header.costs != OverheadCosts::default()
    }
}

/// A simulation for each configuration asked for. Whatever is wrong with
/// any of them is found before the first one starts.
pub fn simulations(arguments: &Arguments, file: &str, workload: &Workload) -> Result<Vec<Simulation>, CliError> {
    let configurations = configurations(&arguments.instead, workload)?;
    let several = configurations.len() > 1;
    let mut simulations = Vec::with_capacity(configurations.len());
    for Configuration { name, scheduler, mut workload } in configurations {
        settle_replicas(&mut workload, &scheduler, file, &name, arguments.quiet || arguments.json);
        let plan = laxity_plan::Plan::new(&workload, &scheduler, arguments.seed)
            .map_err(|refusal| CliError::Refused { file: file.to_owned(), refusal })?;
        let trace = arguments.trace.as_deref().map(|path| if several { insert(path, &name) } else { path.to_owned() });
        simulations.push(Simulation { name, plan, overheads: workload.platform.overheads.name, trace });
    }
    Ok(simulations)
}

/// Settles how many replicas graphs have that leave it to the analysis, and says so unless `quiet`.
pub fn settle_replicas(workload: &mut Workload, scheduler: &Scheduler, file: &str, configuration: &str, quiet: bool) {
    let settled = settle(workload, scheduler);
    settled.iter().filter(|_| !quiet).for_each(|settled| say(file, configuration, settled));
}

fn say(file: &str, configuration: &str, settled: &Settled) {
    let Settled { graph, replicas, unbounded } = settled;
    match unbounded {
        None => output::note(format_args!(
            "{file}: graph \"{graph}\" has {replicas} replicas: with those no job waits for one"
        )),
        Some(reason) => output::note(format_args!(
            "{file}: graph \"{graph}\" has {replicas} replicas, its depth, and jobs may wait for one: there is no bound \
             under {configuration}, as {reason}"
        )),
    }
}

/// `out.lxt` and `C-RM/FEm pai` make `out-C-RM-FEm-pai.lxt`.
fn insert(path: &Path, name: &str) -> PathBuf {
    let stem = path.file_stem().map_or_else(Default::default, |stem| stem.to_string_lossy());
    let extension = path.extension().map_or(String::new(), |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{}{extension}", name.replace(['/', ' '], "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policys_name_goes_before_the_extension() {
        assert_eq!(insert(Path::new("out/run.1.lxt"), "C-RM/FEm"), Path::new("out/run.1-C-RM-FEm.lxt"));
        assert_eq!(insert(Path::new("run.lxt"), "CEm pai"), Path::new("run-CEm-pai.lxt"));
        assert_eq!(insert(Path::new("trace"), "CEm"), Path::new("trace-CEm"));
    }
}
