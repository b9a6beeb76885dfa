//! A median and how well it is known.

/// The median of a number that was measured several times, and where it lies with 95 % confidence.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Of what was measured.
    pub median: f64,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
}

impl Interval {
    /// Of at least six values; of fewer the interval is all of them, with less confidence.
    ///
    /// From order statistics: whatever the distribution is, each value is below its median with a chance of one half. So
    /// the median is below the k-th smallest of n with the chance of fewer than k heads in n throws of a coin.
    pub fn of(mut values: Vec<f64>) -> Interval {
        values.sort_unstable_by(f64::total_cmp);
        let outside = outside(values.len());
        let last = values.len() - 1;
        Interval { median: values[values.len() / 2], low: values[outside], high: values[last - outside] }
    }

    /// With `change` made to all of it, which is to keep the order.
    pub fn map(self, change: impl Fn(f64) -> f64) -> Interval {
        Interval { median: change(self.median), low: change(self.low), high: change(self.high) }
    }
}

/// How many of `values` are outside at each end.
fn outside(values: usize) -> usize {
    let mut chance = 0.5_f64.powi(values as i32);
    let (mut sum, mut heads) = (chance, 0);
    while sum <= 0.025 {
        heads += 1;
        chance *= (values - heads + 1) as f64 / heads as f64;
        sum += chance;
    }
    heads.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in tables of the sign test: of 31 values the 10th to the 22nd, of 11 the 2nd to the 10th, of 6 all.
    #[test]
    fn intervals_are_those_of_the_tables() {
        for (values, low) in [(6, 1), (11, 2), (20, 6), (31, 10), (100, 40)] {
            let interval = Interval::of((1..=values).rev().map(f64::from).collect());
            assert_eq!((interval.low, interval.high), (f64::from(low), f64::from(values - low + 1)), "of {values}");
        }
    }

    #[test]
    fn of_few_values_the_interval_is_all() {
        assert_eq!([1, 2, 5].map(outside), [0; 3]);
    }
}
