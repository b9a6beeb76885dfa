//! Sums of many ramps at one place, in logarithmic time: a binary indexed tree (Fenwick, Software: Practice and
//! Experience 24(3), 1994).

/// Ramps: each is 0 up to a place, then rises with slope 1 for a length, then stays.
///
/// A ramp is two bends: `max(0, R - from) - max(0, R - to)`. The tree keeps, for all bends at or before a place, how many
/// more rise than fall and the same of the sum of their places.
pub(super) struct DemandTree {
    /// Where bends may be, ascending, each once.
    places: Vec<i128>,
    /// Node i (counted from 1) has the sums over the places `i - lowest_bit(i) .. i`.
    nodes: Vec<Bends>,
}

#[derive(Clone, Copy, Default)]
struct Bends {
    rising: i64,
    places: i128,
}

impl DemandTree {
    /// No ramps yet; they may begin and end at `places`.
    pub fn new(mut places: Vec<i128>) -> Self {
        places.sort_unstable();
        places.dedup();
        let nodes = vec![Bends::default(); places.len() + 1];
        DemandTree { places, nodes }
    }

    /// Adds a ramp that begins at `from` and rises by `length`; both ends must be among the places.
    pub fn add(&mut self, from: i128, length: u64) {
        self.bend(from, 1);
        self.bend(from + i128::from(length), -1);
    }

    /// The sum of all ramps at `at`.
    pub fn sum(&self, at: u64) -> u128 {
        let at = i128::from(at);
        let mut index = self.places.partition_point(|&place| place <= at);
        let (mut rising, mut places) = (0, 0);
        while index > 0 {
            rising += self.nodes[index].rising;
            places += self.nodes[index].places;
            index &= index - 1;
        }
        u128::try_from(i128::from(rising) * at - places).expect("ramps never fall below 0")
    }

    fn bend(&mut self, place: i128, rising: i64) {
        let mut index = self.places.binary_search(&place).expect("it is one of the places") + 1;
        while let Some(node) = self.nodes.get_mut(index) {
            node.rising += rising;
            node.places += i128::from(rising) * place;
            index += index & index.wrapping_neg();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sum_is_that_of_the_ramps_one_by_one(
            ramps in prop::collection::vec((-20i128..20, 0u64..15), 0..30),
            at in prop::collection::vec(0u64..40, 1..10),
        ) {
            let places = ramps.iter().flat_map(|&(from, length)| [from, from + i128::from(length)]);
            let mut tree = DemandTree::new(places.collect());
            for &(from, length) in &ramps {
                tree.add(from, length);
            }
            for at in at {
                let ramp = |&(from, length): &(i128, u64)| (i128::from(at) - from).clamp(0, i128::from(length)) as u128;
                prop_assert_eq!(tree.sum(at), ramps.iter().map(ramp).sum::<u128>());
            }
        }
    }
}
