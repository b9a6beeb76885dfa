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
//! any R is read from [`Bends`].
//!
//! Every value is at most the least simultaneous fixed point, as in the plain sweeps: both ascend by the same monotone
//! operator from the same start, so that they end with the same bounds.

use crate::interference::indexed::{Interferers, ascend};
use crate::interference::{Bends, Fixed, Recurrence};
use crate::{AnalysisTask, TaskSet};

/// Segments a task, on average, beyond which plain sweeps are no slower.
const SEGMENTS_MAX: u64 = 32;

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
    bounds: &'a [u64],
    /// Tasks of which a segment counts at the present deadline.
    interferers: Interferers<'a>,
    /// Segments that count as a whole.
    full: Bends,
    /// Those of which a part counts.
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
    loop {
        let Some(segments) = segments(tasks, bounds) else { return Raised::Unsuited };
        let slacks: Vec<u64> = tasks.iter().zip(&*bounds).map(|(task, bound)| task.deadline - bound).collect();
        let mut sweep =
            Sweep { tasks, bounds, interferers: Interferers::new(set), full: Bends::default(), open: Vec::new() };
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

impl Sweep<'_> {
    /// Goes on to `deadline`: adds what counts for it.
    fn advance(&mut self, deadline: u64, segments: &mut std::iter::Peekable<std::vec::IntoIter<Segment>>) {
        while let Some(segment) = segments.next_if(|segment| segment.opens < deadline) {
            let (task, bound) = (segment.task, self.bounds[segment.task]);
            if segment.opens == self.tasks[task].deadline - bound {
                self.interferers.add(task, bound);
            }
            self.open.push(segment);
        }
        for segment in self.open.extract_if(.., |segment| segment.full <= deadline) {
            self.full.add_ramp(segment.from, self.tasks[segment.task].wcet);
        }
    }

    /// The least fixed point of task `k`, at whose deadline the sweep is; `Err` with a lower bound on it if that is not
    /// found soon.
    fn least(&self, k: usize) -> Result<Fixed, u64> {
        let (task, window) = (&self.tasks[k], self.tasks[k].deadline);
        ascend(task, self.bounds[k], |response, x| {
            let response = task.arrivals_within(response);
            let parts = |segment: &Segment| {
                let executed = (i128::from(response) - segment.from).max(0) as u128;
                executed.min(u128::from(window - segment.opens))
            };
            let all = self.full.sum(response) + self.open.iter().map(parts).sum::<u128>();
            let value = |task: usize| self.interference(task, window, response);
            self.interferers.least(all, Some(k), value, response, x)
        })
    }

    /// `min(W_i(response), Wd_i(window))`.
    fn interference(&self, task: usize, window: u64, response: u64) -> u64 {
        let (other, bound) = (&self.tasks[task], self.bounds[task]);
        let executed =
            |z: u64, late: u64| z / other.period * other.wcet + other.wcet.min((z % other.period).saturating_sub(late));
        executed(response + bound - other.wcet, 0).min(executed(window, other.deadline - bound))
    }
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
            AnalysisTask { ends_waiting: shorter % 3 == 0, ..AnalysisTask::new(wcet, period, deadline) }
        });
        let tasks = prop::collection::vec((task, 1u64..12), 2..60);
        (1u32..6, tasks, 1u64..50).prop_map(|(cpus, tasks, scale)| {
            let lighter = |(task, divisor): (AnalysisTask, u64)| {
                let wcet = (task.wcet * scale / divisor).max(1);
                AnalysisTask { wcet, period: task.period * scale, deadline: task.deadline * scale, ..task }
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
