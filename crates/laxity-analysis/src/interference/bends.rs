//! Sums of many functions that rise piece by piece, which may be added at any time: the value at one place takes the square
//! of the logarithm of their number (the logarithmic method of Bentley & Saxe, Journal of Algorithms 1(4), 1980).

/// So many bends wait unsorted, to be looked at one by one.
const LOOSE_MAX: usize = 32;

/// A sum of ramps and steps over places from 0 on.
///
/// A ramp rises with slope 1 for a length; it is two bends. A step is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bends {
    /// Each sorted by place, with the sums up to there; each less than half as long as the one before.
    runs: Vec<Vec<Bend>>,
    /// The newest.
    loose: Vec<Bend>,
}

/// From `place` on the sum is larger by `slope * at + offset`.
#[derive(Clone, Copy, Debug)]
struct Bend {
    place: u64,
    slope: i64,
    offset: i128,
}

impl Bends {
    /// Adds a ramp that rises from `from` on, which may be before 0, for `length`.
    pub fn add_ramp(&mut self, from: i128, length: u64) {
        let to = from + i128::from(length);
        match (u64::try_from(from), u64::try_from(to)) {
            (Ok(place), _) => self.add(Bend { place, slope: 1, offset: -from }),
            (Err(_), Ok(_)) if from < 0 => self.add(Bend { place: 0, slope: 1, offset: -from }),
            (Err(_), Err(_)) if to < 0 => return self.add_step(0, length),
            // It begins beyond all places.
            _ => return,
        }
        if let Ok(place) = u64::try_from(to) {
            self.add(Bend { place, slope: -1, offset: to });
        }
    }

    /// Adds a step of `height` that is there from `place` on.
    pub fn add_step(&mut self, place: u64, height: u64) {
        self.add(Bend { place, slope: 0, offset: height.into() });
    }

    /// The sum at `at`.
    pub fn sum(&self, at: u64) -> u128 {
        let (mut slope, mut offset) = (0, 0);
        for run in &self.runs {
            if let Some(last) = run.partition_point(|bend| bend.place <= at).checked_sub(1) {
                slope += run[last].slope;
                offset += run[last].offset;
            }
        }
        for bend in self.loose.iter().filter(|bend| bend.place <= at) {
            slope += bend.slope;
            offset += bend.offset;
        }
        u128::try_from(i128::from(slope) * i128::from(at) + offset).expect("nothing falls below 0")
    }

    fn add(&mut self, bend: Bend) {
        self.loose.push(bend);
        if self.loose.len() < LOOSE_MAX {
            return;
        }
        let mut run = std::mem::take(&mut self.loose);
        run.sort_unstable_by_key(|bend| bend.place);
        for last in 1..run.len() {
            run[last].slope += run[last - 1].slope;
            run[last].offset += run[last - 1].offset;
        }
        while let Some(longer) = self.runs.pop_if(|other| other.len() <= 2 * run.len()) {
            run = merged(&longer, &run);
        }
        self.runs.push(run);
    }
}

fn merged(one: &[Bend], other: &[Bend]) -> Vec<Bend> {
    let mut merged = Vec::with_capacity(one.len() + other.len());
    let sums = |run: &[Bend], passed: usize| run[..passed].last().map_or((0, 0), |bend| (bend.slope, bend.offset));
    let (mut of_one, mut of_other) = (0, 0);
    while of_one < one.len() || of_other < other.len() {
        let next = match (one.get(of_one), other.get(of_other)) {
            (Some(bend), later) if later.is_none_or(|later| bend.place <= later.place) => {
                of_one += 1;
                bend
            }
            _ => {
                of_other += 1;
                &other[of_other - 1]
            }
        };
        let ((slope, offset), (more, beside)) = (sums(one, of_one), sums(other, of_other));
        merged.push(Bend { place: next.place, slope: slope + more, offset: offset + beside });
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_parts_one_by_one(
            parts in prop::collection::vec((-20i128..20, 0u64..15, any::<bool>()), 0..300),
            at in prop::collection::vec(0u64..40, 1..10),
        ) {
            let mut bends = Bends::default();
            for added in 0..=parts.len() {
                if added % 37 == 0 || added == parts.len() {
                    for &at in &at {
                        let height = |&(from, length, is_ramp): &(i128, u64, bool)| {
                            let beyond = i128::from(at) - from;
                            let height = i128::from(length);
                            let height = if is_ramp { beyond.clamp(0, height) } else if beyond >= 0 { height } else { 0 };
                            height as u128
                        };
                        prop_assert_eq!(bends.sum(at), parts[..added].iter().map(height).sum::<u128>());
                    }
                }
                match parts.get(added) {
                    Some(&(from, length, true)) => bends.add_ramp(from, length),
                    Some(&(from, length, false)) => bends.add_step(from.max(0) as u64, length),
                    None => {}
                }
            }
        }
    }

    #[test]
    fn what_lies_beyond_all_places_adds_nothing() {
        let mut bends = Bends::default();
        bends.add_ramp(i128::from(u64::MAX) + 1, 5);
        bends.add_ramp(i128::from(u64::MAX) - 1, 5);
        bends.add_ramp(-7, 3);
        assert_eq!([0, u64::MAX - 1, u64::MAX].map(|at| bends.sum(at)), [3, 3, 4]);
    }
}
