//! Max-min partitioning (machine covering): the 0-1 program of k-FMLP blocking, by branch and bound.

/// The largest b such that `items` can be assigned to `bins` bins with at least b in each. With the flag false the
/// search took more than `nodes` nodes and the value is an upper bound.
pub(super) fn cover(mut items: Vec<u64>, bins: usize, nodes: u64) -> (u128, bool) {
    if items.len() < bins {
        return (0, true);
    }
    items.sort_unstable_by(|a, b| b.cmp(a));
    let total: u128 = items.iter().map(|&item| u128::from(item)).sum();
    if bins == 1 {
        return (total, true);
    }
    let upper = upper_bound(&items, bins, total);
    let mut search =
        Search { best: greedy(&items, bins), upper, rest: suffix_sums(&items), items, loads: vec![0; bins], nodes };
    let complete = search.branch(0);
    if complete || search.best == upper { (search.best, true) } else { (upper, false) }
}

/// No bin can be sure of more than an even share of what is left after the largest items each fill a bin: an item
/// above the even share closes its bin.
fn upper_bound(items: &[u64], bins: usize, total: u128) -> u128 {
    let (mut left, mut open) = (total, bins as u128);
    for &item in items {
        if open == 1 || u128::from(item) * open <= left {
            break;
        }
        left -= u128::from(item);
        open -= 1;
    }
    left / open
}

/// Longest first onto the least loaded bin: at least three quarters of the optimum.
fn greedy(items: &[u64], bins: usize) -> u128 {
    let mut loads = vec![0u128; bins];
    for &item in items {
        if let Some(least) = loads.iter_mut().min() {
            *least += u128::from(item);
        }
    }
    loads.into_iter().min().unwrap_or(0)
}

fn suffix_sums(items: &[u64]) -> Vec<u128> {
    let mut sums = vec![0; items.len() + 1];
    for index in (0..items.len()).rev() {
        sums[index] = sums[index + 1] + u128::from(items[index]);
    }
    sums
}

struct Search {
    items: Vec<u64>,
    /// Sum of the items from an index on.
    rest: Vec<u128>,
    loads: Vec<u128>,
    best: u128,
    upper: u128,
    nodes: u64,
}

impl Search {
    /// Tries every bin for the items from `index` on; false if out of nodes.
    fn branch(&mut self, index: usize) -> bool {
        if self.nodes == 0 {
            return false;
        }
        self.nodes -= 1;
        // To beat the best, every bin must reach best + 1: what is missing must not exceed what is left.
        let missing: u128 = self.loads.iter().map(|&load| (self.best + 1).saturating_sub(load)).sum();
        if missing > self.rest[index] || self.best == self.upper {
            return true;
        }
        if index == self.items.len() {
            self.best = self.loads.iter().copied().min().unwrap_or(0);
            return true;
        }
        let item = u128::from(self.items[index]);
        for bin in 0..self.loads.len() {
            // Bins of equal load are interchangeable, and one that has enough needs no more.
            let load = self.loads[bin];
            if self.loads[..bin].contains(&load) || load > self.best {
                continue;
            }
            self.loads[bin] += item;
            let complete = self.branch(index + 1);
            self.loads[bin] -= item;
            if !complete {
                return false;
            }
        }
        true
    }
}
