//! The demand of all jobs of many tasks in a window of any length.

use super::bends::Bends;

/// Jobs a task, on average, beyond which summing task by task is no slower.
const JOBS_MAX: u64 = 32;

/// How a job counts in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As much of it as fits between its arrival and the end of the window: `min(C, R - arrival)`.
    Ramps,
    /// As a whole, if it arrives before the end of the window.
    Steps,
}

/// Tasks that may be added one by one. Their jobs are added as far as they were asked for.
pub(crate) struct Jobs {
    shape: Shape,
    streams: Vec<Stream>,
    bends: Bends,
    /// All jobs that arrive before it are among the bends.
    horizon: u64,
    /// How many more may be.
    left: u64,
    /// There would be too many.
    is_full: bool,
}

/// The jobs of a task: each of `wcet`, `period` apart from `first` on, which may be before 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub first: i128,
    pub period: u64,
    pub wcet: u64,
}

impl Jobs {
    /// No tasks yet, of as many as there will be.
    pub fn of(tasks: usize, shape: Shape) -> Self {
        let left = JOBS_MAX.saturating_mul(tasks as u64);
        Jobs { shape, streams: Vec::new(), bends: Bends::default(), horizon: 0, left, is_full: false }
    }

    /// Adds a task.
    pub fn add(&mut self, stream: Stream) {
        self.streams.push(stream);
        self.extend(stream, 0, self.horizon);
    }

    /// What all of them demand in a window from 0 to `at`; `None` where they have too many jobs by then.
    pub fn sum(&mut self, at: u64) -> Option<u128> {
        if at >= self.horizon && !self.is_full {
            let (before, horizon) = (self.horizon, at.saturating_add(1).saturating_mul(2));
            self.is_full |= horizon <= at;
            for index in 0..self.streams.len() {
                let stream = self.streams[index];
                self.extend(stream, stream.count_before(before), horizon);
            }
            self.horizon = horizon;
        }
        (!self.is_full).then(|| self.bends.sum(at))
    }

    /// Adds jobs, from that of a number on, that arrive before `horizon`.
    fn extend(&mut self, stream: Stream, number: u64, horizon: u64) {
        let count = stream.count_before(horizon);
        match self.left.checked_sub(count - number) {
            Some(left) => self.left = left,
            None => self.is_full = true,
        }
        if self.is_full {
            return;
        }
        for number in number..count {
            let arrival = stream.arrival(number);
            match self.shape {
                Shape::Ramps => self.bends.add_ramp(arrival, stream.wcet),
                // One that arrives as the window ends does not count.
                Shape::Steps => self.bends.add_step(u64::try_from(arrival + 1).unwrap_or(0), stream.wcet),
            }
        }
    }
}

impl Stream {
    fn arrival(&self, number: u64) -> i128 {
        self.first + i128::from(number) * i128::from(self.period)
    }

    /// How many arrive before `horizon`; none before there is one.
    fn count_before(&self, horizon: u64) -> u64 {
        let length = u128::try_from(i128::from(horizon) - self.first).unwrap_or(0);
        match horizon {
            0 => 0,
            _ => u64::try_from(length.div_ceil(self.period.into())).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_all_jobs_one_by_one(
            streams in prop::collection::vec((-40i128..40, 20u64..60, 0u64..30), 1..60),
            asked in prop::collection::vec(0u64..100, 1..60),
            steps in any::<bool>(),
        ) {
            let mut jobs = Jobs::of(streams.len(), if steps { Shape::Steps } else { Shape::Ramps });
            for (added, &(first, period, wcet)) in streams.iter().enumerate() {
                jobs.add(Stream { first, period, wcet });
                let at = asked[added % asked.len()];
                let of = |&(first, period, wcet): &(i128, u64, u64)| {
                    let arrivals = (0..).map(|number: i128| first + number * i128::from(period));
                    let inside = arrivals.take_while(|&arrival| arrival < at.into());
                    let part = |arrival: i128| if steps { i128::from(wcet) } else { (i128::from(at) - arrival).min(wcet.into()) };
                    inside.map(part).sum::<i128>() as u128
                };
                prop_assert_eq!(jobs.sum(at), Some(streams[..=added].iter().map(of).sum::<u128>()));
            }
        }
    }

    #[test]
    fn with_too_many_jobs_there_is_no_sum() {
        let mut jobs = Jobs::of(2, Shape::Steps);
        jobs.add(Stream { first: 0, period: 1, wcet: 1 });
        assert_eq!(jobs.sum(20), Some(20));
        assert_eq!(jobs.sum(1_000), None);
        jobs.add(Stream { first: 0, period: 10_000, wcet: 1 });
        assert_eq!((jobs.sum(1), jobs.sum(u64::MAX)), (None, None));
    }
}
