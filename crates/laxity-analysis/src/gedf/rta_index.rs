//! Sweeps of response-time analysis whose cost grows nearly linearly with the number of tasks.
//!
//! A sweep takes the response times of the last one as given and bounds that of each task k anew. Summing over all tasks
//! for each k is quadratic. But with `z = R + J_i`, `J_i = R_i - C_i`, the interference of task i, without the bound `x`,
//!
//! ```text
//! min( W_i(R), Wd_i(D_k) ),   W_i(R) = floor(z / T_i) * C_i + min(C_i, z mod T_i)
//! ```
//!
//! rises with slope 1 from `R = j * T_i - J_i` on, for C_i ticks, for each j, and stays in between. [Segment] j counts
//! once `D_k >= j * T_i + S_i + C_i`, `S_i = D_i - R_i` (a part of it shortly before that), and then for all later
//! deadlines. So tasks are taken in the order of their deadlines, segments are added as they begin to count, and the sum at
//! any R is read from a binary indexed tree over where segments begin and end. The bound `x` matters to tasks with large
//! terms alone, which are evaluated one by one.
//!
//! Every value is at most the least simultaneous fixed point, as in the plain sweeps: both ascend by the same monotone
//! operator from the same start, so that they end with the same bounds.

use super::demand_tree::DemandTree;
use crate::interference::{Fixed, Recurrence};
use crate::{AnalysisTask, TaskSet};

/// Segments a task, on average, beyond which plain sweeps are no slower.
const SEGMENTS_MAX: u64 = 32;

/// Steps towards one fixed point before it is left to the walk from kink to kink.
const STEPS_MAX: usize = 64;

/// How the sweeps ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    /// The bounds are the least fixed point.
    Settled,
    /// That of this task exceeds its deadline.
    Beyond { task: usize },
    /// The steps allowed did not suffice.
    OutOfSteps,
    /// The set is not one that this is fast for. The bounds are as large as they became.
    Unsuited,
}

/// One time at which a task begins to execute in the worst case, and its effect on later deadlines.
struct Segment {
    task: usize,
    /// The response time from which on it counts; less than 0 where a job is carried in.
    from: i128,
    /// It counts, for no more than the part beyond this, for deadlines greater than this.
    opens: u64,
    /// It counts as a whole for deadlines from here on.
    full: u64,
}

/// A sweep: the set with the bounds of the sweep before.
struct Sweep<'a> {
    tasks: &'a [AnalysisTask],
    cpus: usize,
    bounds: &'a [u64],
    /// Tasks that may need more than half a CPU: their terms may exceed any x.
    heavy: &'a [usize],
    /// The others, the largest reach first; see [`Sweep::reach`].
    light: Vec<(u64, usize)>,
    tree: DemandTree,
    /// Segments of which a part counts, at the present deadline.
    open: Vec<Segment>,
}

/// Raises `bounds`, which must not exceed the least fixed point, sweep by sweep until nothing changes.
pub(super) fn raise(set: &TaskSet, recurrence: &mut Recurrence<'_>, bounds: &mut [u64], steps: &mut u64) -> Raised {
    let tasks = set.tasks();
    let by_deadline = {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&task| (tasks[task].deadline, task));
        order
    };
    let heavy: Vec<usize> = (0..tasks.len()).filter(|&task| is_heavy(&tasks[task])).collect();
    loop {
        let Some(segments) = segments(tasks, bounds) else { return Raised::Unsuited };
        let slacks: Vec<u64> = tasks.iter().zip(&*bounds).map(|(task, bound)| task.deadline - bound).collect();
        let mut sweep = Sweep::new(set, bounds, &heavy, &segments);
        let mut next = bounds.to_vec();
        let mut segments = segments.into_iter().peekable();
        let mut hard = 0;
        for &k in &by_deadline {
            if *steps == 0 {
                return Raised::OutOfSteps;
            }
            *steps -= 1;
            sweep.advance(tasks[k].deadline, &mut segments);
            let least = sweep.least(k).unwrap_or_else(|reached| {
                hard += 1;
                recurrence.least(k, &slacks, reached, steps)
            });
            match least {
                Fixed::At(bound) => next[k] = bound,
                Fixed::BeyondDeadline => return Raised::Beyond { task: k },
                Fixed::OutOfSteps => return Raised::OutOfSteps,
            }
        }
        let is_settled = next == bounds;
        bounds.copy_from_slice(&next);
        if is_settled {
            return Raised::Settled;
        }
        if hard > tasks.len() / 2 {
            return Raised::Unsuited;
        }
    }
}

fn is_heavy(task: &AnalysisTask) -> bool {
    task.wcet > task.period / 2
}

/// Every segment that counts for the longest deadline, by the deadline from which on; `None` if there are too many.
fn segments(tasks: &[AnalysisTask], bounds: &[u64]) -> Option<Vec<Segment>> {
    let longest = tasks.iter().map(|task| task.deadline).max().unwrap_or(0);
    let count = |task: &AnalysisTask| longest / task.period + 1;
    let total = tasks.iter().map(count).fold(0, u64::saturating_add);
    if total > SEGMENTS_MAX * tasks.len() as u64 {
        return None;
    }
    let mut segments = Vec::with_capacity(total as usize);
    for (index, (task, &bound)) in tasks.iter().zip(bounds).enumerate() {
        let (slack, carried) = (task.deadline - bound, bound - task.wcet);
        let starts = (0..count(task)).map(|job| job * task.period).take_while(|start| start + slack < longest);
        segments.extend(starts.map(|start| Segment {
            task: index,
            from: i128::from(start) - i128::from(carried),
            opens: start + slack,
            full: start + slack + task.wcet,
        }));
    }
    segments.sort_by_key(|segment| (segment.opens, segment.task));
    Some(segments)
}

impl<'a> Sweep<'a> {
    fn new(set: &'a TaskSet, bounds: &'a [u64], heavy: &'a [usize], segments: &[Segment]) -> Self {
        let tasks = set.tasks();
        let ends = |segment: &Segment| [segment.from, segment.from + i128::from(tasks[segment.task].wcet)];
        let light = (0..tasks.len()).filter(|&task| !is_heavy(&tasks[task]));
        let mut light: Vec<(u64, usize)> = light.map(|task| (Self::reach(&tasks[task], bounds[task]), task)).collect();
        light.sort_unstable_by(|a, b| b.cmp(a));
        Sweep {
            tasks,
            cpus: set.cpus() as usize,
            bounds,
            heavy,
            light,
            tree: DemandTree::new(segments.iter().flat_map(ends).collect()),
            open: Vec::new(),
        }
    }

    /// With at most half a CPU, `W(R) <= U * (R + J) + C <= R / 2 + reach`.
    fn reach(task: &AnalysisTask, bound: u64) -> u64 {
        let carried = u128::from(bound - task.wcet) * u128::from(task.wcet);
        task.wcet + carried.div_ceil(u128::from(task.period)) as u64
    }

    /// Goes on to `deadline`: adds what counts for it.
    fn advance(&mut self, deadline: u64, segments: &mut std::iter::Peekable<std::vec::IntoIter<Segment>>) {
        self.open.extend(std::iter::from_fn(|| segments.next_if(|segment| segment.opens < deadline)));
        let (tasks, tree) = (self.tasks, &mut self.tree);
        self.open.retain(|segment| {
            let is_full = segment.full <= deadline;
            if is_full {
                tree.add(segment.from, tasks[segment.task].wcet);
            }
            !is_full
        });
    }

    /// The least fixed point of task `k`, at whose deadline the sweep is; `Err` with a lower bound on it if that is not
    /// found soon.
    fn least(&self, k: usize) -> Result<Fixed, u64> {
        let task = &self.tasks[k];
        let mut response = self.bounds[k];
        for _ in 0..STEPS_MAX {
            let x = response - task.wcet + 1;
            let next = self.least_over_present(k, response, x).ok_or(response)? + (task.wcet - 1);
            if next == response {
                return Ok(Fixed::At(response));
            }
            if next > task.deadline {
                return Ok(Fixed::BeyondDeadline);
            }
            response = next;
        }
        Err(response)
    }

    /// The least `y >= x` with `sum_{i != k} min(A_i, y) <= m * y - 1` for the values `A_i` at `response`; `None` if too
    /// many may be as large as y.
    fn least_over_present(&self, k: usize, response: u64, x: u64) -> Option<u64> {
        let window = self.tasks[k].deadline;
        let at = |task: usize| self.interference(task, window, response);
        let mut large: Vec<u64> = self.heavy.iter().filter(|&&task| task != k).map(|&task| at(task)).collect();
        let parts = |segment: &Segment| {
            let executed = (i128::from(response) - segment.from).max(0) as u128;
            executed.min(u128::from(window - segment.opens))
        };
        // The sum without the heavy tasks and k itself.
        let mut rest = self.tree.sum(response) + self.open.iter().map(parts).sum::<u128>();
        rest -= large.iter().map(|&value| u128::from(value)).sum::<u128>() + u128::from(at(k));
        let mut light = self.light.iter().peekable();
        loop {
            let y = least_beside(rest, &mut large, self.cpus, x);
            let mut is_larger = false;
            // R / 2 + reach >= y: it might be bounded by y, or by less.
            let exceeds = |reach: u64| u128::from(response) + 2 * u128::from(reach) >= 2 * u128::from(y);
            while let Some(&&(_, task)) = light.peek().filter(|(reach, _)| exceeds(*reach)) {
                light.next();
                if task != k {
                    let value = at(task);
                    large.push(value);
                    rest -= u128::from(value);
                    is_larger |= value >= y;
                }
                if large.len() > 4 * self.cpus + 64 {
                    return None;
                }
            }
            if !is_larger {
                return Some(y);
            }
        }
    }

    /// `min(W_i(response), Wd_i(window))`.
    fn interference(&self, task: usize, window: u64, response: u64) -> u64 {
        let (other, bound) = (&self.tasks[task], self.bounds[task]);
        let executed =
            |z: u64, late: u64| z / other.period * other.wcet + other.wcet.min((z % other.period).saturating_sub(late));
        executed(response + bound - other.wcet, 0).min(executed(window, other.deadline - bound))
    }
}

/// The least `y >= x` with `rest + sum min(v, y) <= m * y - 1` over `values`, which are sorted.
///
/// With c values capped by y and `rest` the sum of all others, `y = floor(rest / (m - c)) + 1`, if that reaches no capped
/// value; fewer than m can be capped.
pub(crate) fn least_beside(rest: u128, values: &mut [u64], cpus: usize, x: u64) -> u64 {
    values.sort_unstable_by(|a, b| b.cmp(a));
    let most = values.len().min(cpus - 1);
    let mut rest = rest + values[most..].iter().map(|&value| u128::from(value)).sum::<u128>();
    let mut least = values.get(cpus - 1).map_or(x, |&value| x.max(value + 1));
    for capped in (0..=most).rev() {
        let y = least.max((rest / (cpus - capped) as u128 + 1) as u64);
        if capped == 0 || y <= values[capped - 1] {
            return y;
        }
        least = least.max(values[capped - 1] + 1);
        rest += u128::from(values[capped - 1]);
    }
    unreachable!("no value is capped in the last round")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interference::Interfering;

    /// Sets of tens of tasks, light and heavy, with few distinct periods so that times coincide.
    fn any_set() -> impl Strategy<Value = TaskSet> {
        let task = (2u64..40, 1u64..=100, 1u64..=100).prop_map(|(period, share, shorter)| {
            let wcet = (period * share / 100).max(1);
            let deadline = wcet + (period - wcet) * shorter / 100;
            AnalysisTask::new(wcet, period, deadline)
        });
        let tasks = prop::collection::vec((task, 1u64..12), 2..60);
        (1u32..6, tasks, 1u64..50).prop_map(|(cpus, tasks, scale)| {
            let lighter = |(task, divisor): (AnalysisTask, u64)| {
                AnalysisTask::new((task.wcet * scale / divisor).max(1), task.period * scale, task.deadline * scale)
            };
            TaskSet::new(cpus, tasks.into_iter().map(lighter).collect()).expect("in range")
        })
    }

    /// Sweeps over all tasks, each summed over all others.
    fn plain(set: &TaskSet) -> Option<Vec<u64>> {
        let tasks = set.tasks();
        let mut recurrence = Recurrence::new(set, Interfering::ByDeadline);
        let mut bounds: Vec<u64> = tasks.iter().map(|task| task.wcet).collect();
        loop {
            let before = bounds.clone();
            for k in 0..tasks.len() {
                let slacks: Vec<u64> = tasks.iter().zip(&bounds).map(|(task, bound)| task.deadline - bound).collect();
                match recurrence.least(k, &slacks, bounds[k], &mut { u64::MAX }) {
                    Fixed::At(bound) => bounds[k] = bound,
                    Fixed::BeyondDeadline => return None,
                    Fixed::OutOfSteps => unreachable!("there are enough"),
                }
            }
            if bounds == before {
                return Some(bounds);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn sweeps_by_index_end_with_the_bounds_of_plain_sweeps(set in any_set()) {
            let mut recurrence = Recurrence::new(&set, Interfering::ByDeadline);
            let mut bounds: Vec<u64> = set.tasks().iter().map(|task| task.wcet).collect();
            let raised = raise(&set, &mut recurrence, &mut bounds, &mut { u64::MAX });
            let expected = plain(&set);
            match raised {
                Raised::Settled => prop_assert_eq!(Some(bounds), expected),
                Raised::Beyond { .. } => prop_assert_eq!(None, expected),
                // Lower bounds, from which plain sweeps go on.
                Raised::Unsuited => prop_assert!(expected.is_none_or(|all| all.iter().zip(&bounds).all(|(a, b)| a >= b))),
                Raised::OutOfSteps => prop_assert!(false, "there are enough"),
            }
        }
    }

    #[test]
    fn sets_with_many_tasks_are_settled_by_index() {
        let tasks = (0..400u64).map(|index| AnalysisTask::new(3 + index % 7, 1_000 + 13 * index, 900 + 13 * index));
        let set = TaskSet::new(4, tasks.collect()).expect("in range");
        let mut recurrence = Recurrence::new(&set, Interfering::ByDeadline);
        let mut bounds: Vec<u64> = set.tasks().iter().map(|task| task.wcet).collect();
        let raised = raise(&set, &mut recurrence, &mut bounds, &mut { u64::MAX });
        assert_eq!((raised, Some(bounds)), (Raised::Settled, plain(&set)));
    }
}
