//! Global EDF with hard deadlines: sufficient tests, each in its file, and their combination.
//!
//! [`hard`] tries them in order of cost. The single tests answer exactly what their publication says, without the
//! trivial acceptance of sets that have a CPU per task; [`trivial`] is a test of its own.

mod bak;
mod bar;
mod bar_sweep;
mod bcl;
mod bcl_iterative;
mod combined;
mod demand;
mod ffdbf;
mod ffdbf_grid;
mod gfb;
mod progressions;
mod rta;
mod rta_index;
mod trivial;
mod uniprocessor;

pub use bak::{bak, bak_any_deadline};
pub use bar::{BarVariant, bar, bar_horizon};
pub use bcl::bcl;
pub use bcl_iterative::bcl_iterative;
pub use combined::{HardMode, HardReport, hard, run_test};
pub use demand::{carry_in_demand, demand_bound};
pub use ffdbf::ffdbf;
pub use ffdbf_grid::{SpeedGrid, ffdbf_grid};
pub use gfb::{gfb, gfb_bound};
pub use rta::{rta, rta_slack};
pub use trivial::trivial;
pub use uniprocessor::{uniprocessor_edf, uniprocessor_edf_interrupts};

use crate::{DeadlineClass, Infeasibility, Outcome, Precondition, TaskSet};
use std::cmp::Ordering;

/// What every test presumes: `C <= min(D, T)` for each task and `U <= m`.
pub(crate) fn check_feasible(set: &TaskSet) -> Result<(), Outcome> {
    for (task, parameters) in set.tasks().iter().enumerate() {
        let window = parameters.window();
        if parameters.wcet > window {
            let reason = Infeasibility::Window { task, wcet: parameters.wcet, window };
            return Err(Outcome::Infeasible(reason));
        }
    }
    if set.compare_utilization_to_cpus() == Ordering::Greater {
        return Err(Outcome::Infeasible(Infeasibility::Utilization { cpus: set.cpus() }));
    }
    Ok(())
}

/// [`check_feasible`], and `D <= T` for each task.
fn check_constrained(set: &TaskSet) -> Result<(), Outcome> {
    check_feasible(set)?;
    if set.class() == DeadlineClass::Arbitrary {
        return Err(Outcome::NotApplicable(Precondition::ConstrainedDeadlines));
    }
    Ok(())
}

/// The value of a computation that may end early, either way.
fn settle(outcome: Result<Outcome, Outcome>) -> Outcome {
    outcome.unwrap_or_else(|early| early)
}
