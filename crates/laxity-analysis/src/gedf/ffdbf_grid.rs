//! FF-DBF over a grid of speeds, as a well-known toolkit evaluates it: for comparison with published results.

use super::gfb::densest;
use super::progressions::Progressions;
use super::{check_constrained, settle};
use crate::exact::{Rational, ceil_ticks, rational, whole};
use crate::{AnalysisTask, Evidence, Limits, Outcome, Precondition, Reason, TaskSet, Test, Verdict};

/// Which speeds are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeedGrid {
    /// Distance between two speeds.
    pub step: Rational,
    /// Speeds stay at least this far below `(m - U) / (m - 1)`, so that the horizon stays finite.
    pub margin: Rational,
}

impl Default for SpeedGrid {
    /// Steps of 1/50 and a margin of 1/10.
    fn default() -> Self {
        SpeedGrid { step: rational(1, 50), margin: rational(1, 10) }
    }
}

/// Accepts if one of the speeds `max delta, max delta + step, ...` up to 1 and up to `(m - U) / (m - 1) - margin`
/// satisfies the condition of [`ffdbf`](super::ffdbf()). Accepts a subset of what that accepts. All in exact
/// rationals, hence slow.
pub fn ffdbf_grid(set: &TaskSet, grid: &SpeedGrid, limits: &Limits) -> Verdict {
    let outcome = check_constrained(set).and_then(|()| {
        if set.cpus() < 2 {
            return Err(Outcome::NotApplicable(Precondition::SeveralCpus));
        }
        match densest(set) {
            None => Ok(Outcome::Schedulable(Evidence::Speed(whole(0)))),
            Some(index) => search(set, index, grid, limits),
        }
    });
    Verdict::new(Test::FfDbfGrid, settle(outcome))
}

fn search(set: &TaskSet, densest: usize, grid: &SpeedGrid, limits: &Limits) -> Result<Outcome, Outcome> {
    let top = set.tasks()[densest];
    let spare = whole(set.cpus()) - set.utilization();
    let last = (&spare / whole(set.cpus() - 1) - &grid.margin).min(whole(1));
    let mut speed = rational(top.wcet, top.window());
    let mut points = limits.points;
    let mut failed_at = 0;
    while speed <= last {
        match holds(set, &spare, &speed, &mut points) {
            Some(None) => return Ok(Outcome::Schedulable(Evidence::Speed(speed))),
            Some(Some(interval)) => failed_at = interval,
            None => return Err(Outcome::ResourceLimit { what: "points", limit: limits.points }),
        }
        speed += &grid.step;
    }
    Ok(Outcome::NotProven(Reason::Speed { interval: failed_at }))
}

/// The first interval at which `speed` fails, if any; `None` if out of points.
fn holds(set: &TaskSet, spare: &Rational, speed: &Rational, points: &mut u64) -> Option<Option<u64>> {
    let rate = spare - whole(set.cpus() - 1) * speed;
    let part =
        |task: &AnalysisTask| rational(i128::from(task.wcet) * i128::from(task.period - task.deadline), task.period);
    let excess: Rational = set.tasks().iter().map(part).sum();
    if excess == whole(0) && rate >= whole(0) {
        return Some(None);
    }
    if rate <= whole(0) {
        return Some(Some(0));
    }
    let horizon = ceil_ticks(&(excess / &rate));
    let capacity = whole(set.cpus()) - whole(set.cpus() - 1) * speed;
    let mut steps = Progressions::new(set.tasks().iter().map(|task| (task.deadline, task.period, 0)), horizon);
    while let Some((t, _)) = steps.next() {
        *points = points.checked_sub(1)?;
        if steps.peek() == Some(t) {
            continue;
        }
        let demand: Rational = set.tasks().iter().map(|task| forced_forward(task, t, speed)).sum();
        if demand > &capacity * whole(t) {
            return Some(Some(t));
        }
    }
    Some(None)
}

fn forced_forward(task: &AnalysisTask, t: u64, speed: &Rational) -> Rational {
    let (jobs, rest) = (t / task.period, t % task.period);
    let full = whole(u128::from(jobs) * u128::from(task.wcet));
    let wcet = whole(task.wcet);
    if rest >= task.deadline { full + wcet } else { full + (wcet - whole(task.deadline - rest) * speed).max(whole(0)) }
}
