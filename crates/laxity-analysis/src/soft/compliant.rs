//! Response-time bounds by a compliant vector. Erickson, Guan & Baruah, OPODIS 2010; Erickson & Anderson, ECRTS 2012.

use std::cmp::Ordering;

use num_traits::{ToPrimitive, Zero};

use super::check_bounded;
use crate::exact::{Rational, ceil_ticks, exact_sum, rational, whole};
use crate::{AnalysisTask, Outcome, TaskSet};

/// Which priority points rank the jobs: a job's priority is its arrival plus its task's point, the earliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PriorityPoints<'a> {
    /// Global EDF: `Y = D`.
    Edf,
    /// Global fair lateness: `Y = D - (m - 1) / m * C`, which minimises the largest lateness bound.
    FairLateness,
    /// A point for each task, in ticks after the arrival, possibly negative; the deadline where one is missing.
    Given(&'a [i64]),
}

/// Response-time bounds under a scheduler with window-constrained priorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompliantVector {
    /// The solution s of the fixed point, in ticks.
    pub s: Rational,
    /// `x_i = s - C_i / m`, in ticks; may be negative. Paper 000 calls the tardiness bound x instead.
    pub x: Vec<Rational>,
    /// Response-time bounds `R_i = Y_i - min(Y) + x_i + C_i`, in ticks.
    pub response_times: Vec<Rational>,
    /// Tardiness bounds `max(0, R_i - D_i)`, in ticks.
    pub tardiness: Vec<Rational>,
}

/// The compliant vector for any deadlines, where tardiness is bounded.
///
/// With `Y~ = Y - min(Y)` (a uniform shift changes no schedule), `S_i = C_i * [1 - Y~_i / T_i]+`, `S = sum S_i` and
/// `K = ceil(U) - 1`, s solves
///
/// ```text
/// (sum of the K largest line_i(s)) + S = m * s          line_i(s) = C_i * (1 - u_i / m) - S_i + u_i * s
/// ```
///
/// The difference of the sides is convex with slope at most -1, so Newton's method from s = 0 climbs to the root and
/// stops there exactly, after as many steps as the set of K lines changes (at most four seen).
///
/// # Errors
/// [`Outcome::Infeasible`] if tardiness is unbounded.
pub fn compliant_vector(set: &TaskSet, points: PriorityPoints<'_>) -> Result<CompliantVector, Outcome> {
    check_bounded(set).map_err(Outcome::Infeasible)?;
    let cpus = i128::from(set.cpus());
    let shifted = shifted_points(set, points);
    let s = root(set, &shifted) / whole(cpus);
    let x: Vec<Rational> = set.tasks().iter().map(|task| &s - rational(task.wcet, cpus)).collect();
    let response_times: Vec<Rational> = (set.tasks().iter().zip(&x).zip(&shifted))
        .map(|((task, x), &y)| rational(y, cpus) + x + whole(task.wcet))
        .collect();
    let late = |(task, response): (&AnalysisTask, &Rational)| (response - whole(task.deadline)).max(Rational::zero());
    let tardiness = set.tasks().iter().zip(&response_times).map(late).collect();
    Ok(CompliantVector { s, x, response_times, tardiness })
}

/// `m * s`, where tardiness is bounded.
pub(super) fn root(set: &TaskSet, shifted: &[i128]) -> Rational {
    let cpus = i128::from(set.cpus());
    let lines: Vec<Line> = set.tasks().iter().zip(shifted).map(|(task, &y)| Line::new(task, y, cpus)).collect();
    solve(&lines, set.utilization_ceiling().saturating_sub(1) as usize, cpus)
}

impl CompliantVector {
    /// The tardiness bounds, rounded up to the tick.
    pub fn tardiness_ticks(&self) -> Vec<u64> {
        self.tardiness.iter().map(ceil_ticks).collect()
    }

    /// The response-time bounds, rounded up to the tick.
    pub fn response_time_ticks(&self) -> Vec<u64> {
        self.response_times.iter().map(ceil_ticks).collect()
    }
}

/// `m * (Y - min(Y))` for each task: integers.
pub(super) fn shifted_points(set: &TaskSet, points: PriorityPoints<'_>) -> Vec<i128> {
    let cpus = i128::from(set.cpus());
    let point = |(index, task): (usize, &AnalysisTask)| {
        let deadline = cpus * i128::from(task.deadline);
        match points {
            PriorityPoints::Edf => deadline,
            PriorityPoints::FairLateness => deadline - (cpus - 1) * i128::from(task.wcet),
            PriorityPoints::Given(points) => points.get(index).map_or(deadline, |&point| cpus * i128::from(point)),
        }
    };
    let points: Vec<i128> = set.tasks().iter().enumerate().map(point).collect();
    let least = points.iter().copied().min().unwrap_or(0);
    points.into_iter().map(|point| point - least).collect()
}

/// In `w = m * s`, and with `h = [m * T - m * Y~]+` so that `m * S_i = u * h`:
/// `m * line(w) = u * (offset + w)`, `offset = m * T - C - h`. All integers but u.
struct Line {
    wcet: u64,
    period: u64,
    offset: i128,
    /// `h` above.
    early: i128,
}

impl Line {
    fn new(task: &AnalysisTask, shifted_point: i128, cpus: i128) -> Self {
        let window = cpus * i128::from(task.period);
        let early = (window - shifted_point).max(0);
        Line { wcet: task.wcet, period: task.period, offset: window - i128::from(task.wcet) - early, early }
    }

    fn share(&self) -> f64 {
        self.wcet as f64 / self.period as f64
    }

    fn value(&self, w: &Rational) -> Rational {
        (whole(self.offset) + w) * rational(self.wcet, self.period)
    }
}

/// The root w of `sum_K u * (offset + w) + sum u * h = m * w`, which is the equation times m.
fn solve(lines: &[Line], chosen: usize, cpus: i128) -> Rational {
    let shares = |lines: &mut dyn Iterator<Item = (&Line, i128)>| -> Rational {
        lines.map(|(line, factor)| rational(line.wcet, line.period) * whole(factor)).sum()
    };
    // u * h summed by equal (period, h): with implicit deadlines h is the same for all tasks.
    let early = early_sum(lines);
    let mut w = Rational::zero();
    loop {
        let top = largest(lines, chosen, &w);
        let intercepts = shares(&mut top.iter().map(|&index| (&lines[index], lines[index].offset)));
        let slopes = shares(&mut top.iter().map(|&index| (&lines[index], 1)));
        let next = (intercepts + &early) / (whole(cpus) - slopes);
        if next <= w {
            return w;
        }
        w = next;
    }
}

/// `sum(u * h)`, by groups of equal h.
fn early_sum(lines: &[Line]) -> Rational {
    let mut sorted: Vec<&Line> = lines.iter().collect();
    sorted.sort_by_key(|line| line.early);
    let group = |group: &[&Line]| {
        let shares = exact_sum(group.iter().map(|line| (line.wcet.into(), line.period.into())));
        shares * whole(group[0].early)
    };
    sorted.chunk_by(|a, b| a.early == b.early).filter(|lines| lines[0].early > 0).map(group).sum()
}

/// Indices of the `count` lines that are largest at `w`: by floating point, and exactly where that is too close.
fn largest(lines: &[Line], count: usize, w: &Rational) -> Vec<usize> {
    let at = w.to_f64().unwrap_or(f64::MAX);
    let mut indices: Vec<usize> = (0..lines.len()).collect();
    if count >= lines.len() || count == 0 {
        indices.truncate(count);
        return indices;
    }
    let values: Vec<f64> = lines.iter().map(|line| line.share() * (line.offset as f64 + at)).collect();
    let error = |index: usize| {
        let line = &lines[index];
        line.share() * ((line.offset as f64).abs() + at) * 16.0 * f64::EPSILON
    };
    let compare = |&a: &usize, &b: &usize| {
        let gap = values[b] - values[a];
        if gap.abs() > error(a) + error(b) {
            return gap.total_cmp(&0.0);
        }
        lines[b].value(w).cmp(&lines[a].value(w)).then(Ordering::Equal)
    };
    indices.select_nth_unstable_by(count - 1, |a, b| compare(a, b).then(a.cmp(b)));
    indices.truncate(count);
    indices
}
