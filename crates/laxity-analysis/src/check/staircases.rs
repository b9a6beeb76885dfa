//! Sums of many staircases at many places, in time that grows nearly linearly with the number of both.
//!
//! How many interrupts, requests and preemptions may delay a job is a sum over all tasks of a function of the job's window,
//! and each of these functions is a staircase. Summing anew for every job is quadratic. But the windows of all jobs are known
//! beforehand: a staircase is added as the differences from one window to the next, of which it has no more than steps,
//! nor than there are windows, and the sum at a window is that of all differences up to it.

/// `weight * ceil((at + offset) / period)`, or 0 where that is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Staircase {
    pub weight: u64,
    pub offset: i128,
    pub period: u64,
}

/// The sum of staircases at each of some places: a binary indexed tree (Fenwick, Software: Practice and Experience 24(3),
/// 1994) of differences.
pub(super) struct Staircases {
    /// Ascending, each once.
    places: Vec<u64>,
    /// Node i (counted from 1) has the sum of the differences at the places `i - lowest_bit(i) .. i`.
    nodes: Vec<u128>,
}

impl Staircase {
    /// Its height without the weight.
    fn steps(&self, at: u64) -> u64 {
        let ahead = i128::from(at) + self.offset;
        u64::try_from(ahead).map_or(0, |ahead| ahead.div_ceil(self.period))
    }

    /// The first place, if it can be written, where it is higher than `steps` steps.
    fn next(&self, steps: u64) -> Option<u64> {
        u64::try_from(i128::from(steps) * i128::from(self.period) - self.offset + 1).ok()
    }

    /// Its height.
    fn at(&self, at: u64) -> u128 {
        u128::from(self.weight) * u128::from(self.steps(at))
    }
}

impl Staircases {
    /// No staircases yet; they may be asked for at `places`.
    pub fn new(mut places: Vec<u64>) -> Self {
        places.sort_unstable();
        places.dedup();
        let nodes = vec![0; places.len() + 1];
        Staircases { places, nodes }
    }

    /// Those of `stairs` at `places`.
    pub fn of(stairs: impl Iterator<Item = Staircase>, places: Vec<u64>) -> Self {
        let mut sums = Staircases::new(places);
        stairs.for_each(|stair| sums.add(&stair));
        sums
    }

    /// Adds `stair`.
    pub fn add(&mut self, stair: &Staircase) {
        if stair.weight == 0 {
            return;
        }
        let (mut index, mut steps) = (0, 0);
        while let Some(&place) = self.places.get(index) {
            let higher = stair.steps(place);
            self.raise(index, u128::from(stair.weight) * u128::from(higher - steps));
            steps = higher;
            let Some(next) = stair.next(steps) else { return };
            index += self.places[index..].partition_point(|&place| place < next);
        }
    }

    /// The sum at `at`, one of the places; what cannot be written saturates.
    pub fn at(&self, at: u64) -> u64 {
        u64::try_from(self.sum(at)).unwrap_or(u64::MAX)
    }

    /// The same without `some` of the staircases.
    pub fn without(&self, some: &[Staircase], at: u64) -> u64 {
        let some: u128 = some.iter().map(|stair| stair.at(at)).sum();
        u64::try_from(self.sum(at) - some).unwrap_or(u64::MAX)
    }

    fn sum(&self, at: u64) -> u128 {
        let mut index = self.places.binary_search(&at).expect("it is one of the places") + 1;
        let mut sum = 0;
        while index > 0 {
            sum += self.nodes[index];
            index &= index - 1;
        }
        sum
    }

    fn raise(&mut self, index: usize, by: u128) {
        let mut index = index + 1;
        while let Some(node) = self.nodes.get_mut(index) {
            *node += by;
            index += index & index.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_stairs() -> impl Strategy<Value = Vec<Staircase>> {
        let stair = (0u64..5, -60i128..60, 1u64..30);
        prop::collection::vec(stair.prop_map(|(weight, offset, period)| Staircase { weight, offset, period }), 0..40)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn the_sum_is_that_of_the_staircases_one_by_one(
            stairs in any_stairs(),
            places in prop::collection::vec(0u64..200, 1..40),
        ) {
            let plain = |stair: &Staircase, at: u64| {
                let ahead = i128::from(at) + stair.offset;
                let steps = (0..).take_while(|&steps| steps * i128::from(stair.period) < ahead).count() as u64;
                stair.weight * steps
            };
            let mut sums = Staircases::new(places.clone());
            for added in 0..=stairs.len() {
                for &at in &places {
                    let expected: u64 = stairs[..added].iter().map(|stair| plain(stair, at)).sum();
                    prop_assert_eq!(sums.at(at), expected);
                    for stair in &stairs[..added] {
                        prop_assert_eq!(sums.without(&[*stair], at), expected - plain(stair, at));
                    }
                }
                stairs.get(added).into_iter().for_each(|stair| sums.add(stair));
            }
        }
    }

    #[test]
    fn a_staircase_that_no_place_reaches_adds_nothing_and_a_sum_beyond_64_bits_saturates() {
        let far = Staircase { weight: 7, offset: -i128::from(u64::MAX), period: 1 };
        let steep = Staircase { weight: u64::MAX, offset: 0, period: 1 };
        let sums = Staircases::of([far, steep].into_iter(), vec![0, 1, 2, u64::MAX]);
        assert_eq!([0, 1, 2, u64::MAX].map(|at| sums.at(at)), [0, u64::MAX, u64::MAX, u64::MAX]);
        assert_eq!(sums.without(&[steep], 2), 0);
    }
}
