//! A distribution of spans in little memory: log-linear buckets, 64 to each power of two.
//!
//! As an HDR histogram, but only the powers of two that occur take memory (half a kilobyte each, where one array from
//! 1 ns up would take 20 to 30), so the histograms of a hundred tasks stay in the cache while a simulation fills them.

use laxity_model::Nanos;

/// Sub-buckets per power of two, as a number of bits.
const BITS: u32 = 6;
const SUB_BUCKETS: usize = 1 << BITS;

/// Counts spans to within 1/64 of their length; below 128 ns exactly.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// Which power of two `blocks` begins with.
    first: usize,
    blocks: Vec<[u64; SUB_BUCKETS]>,
}

impl Histogram {
    /// Counts one span.
    #[inline]
    pub fn record(&mut self, span: Nanos) {
        let (block, bucket) = place(span);
        match self.blocks.get_mut(block.wrapping_sub(self.first)) {
            Some(counts) => counts[bucket] += 1,
            None => self.widen(block)[bucket] += 1,
        }
    }

    /// Counts all that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (offset, theirs) in other.blocks.iter().enumerate() {
            let ours = self.widen(other.first + offset);
            for (mine, their) in ours.iter_mut().zip(theirs) {
                *mine += their;
            }
        }
    }

    /// The shortest bucket end that at least `percent` percent of the spans do not exceed: at most 1/64 above the
    /// exact percentile, never below it. Zero if nothing was counted.
    pub fn percentile(&self, percent: u64) -> Nanos {
        self.permille(10 * percent)
    }

    /// The same in thousandths.
    pub fn permille(&self, permille: u64) -> Nanos {
        let counted = || self.blocks.iter().flatten();
        let count: u128 = counted().map(|&count| u128::from(count)).sum();
        let needed = (count * u128::from(permille)).div_ceil(1000);
        let mut seen = 0;
        for (offset, counts) in self.blocks.iter().enumerate() {
            for (bucket, &count) in counts.iter().enumerate() {
                seen += u128::from(count);
                if count > 0 && seen >= needed {
                    return longest(self.first + offset, bucket);
                }
            }
        }
        Nanos::ZERO
    }

    /// Makes room for a power of two and returns its counts.
    #[cold]
    fn widen(&mut self, block: usize) -> &mut [u64; SUB_BUCKETS] {
        if self.blocks.is_empty() {
            self.first = block;
        }
        if block < self.first {
            let missing = self.first - block;
            self.blocks.splice(0..0, std::iter::repeat_n([0; SUB_BUCKETS], missing));
            self.first = block;
        }
        let offset = block - self.first;
        if offset >= self.blocks.len() {
            self.blocks.resize(offset + 1, [0; SUB_BUCKETS]);
        }
        &mut self.blocks[offset]
    }
}

/// Block and bucket of a span. Block 0 holds 0 to 63 ns one by one; block `b` holds the spans of `b + 5` bits after
/// the leading one, in 64 buckets of `2^(b - 1)` ns.
#[inline]
fn place(span: Nanos) -> (usize, usize) {
    let bits = u64::BITS - span.0.leading_zeros();
    let block = bits.saturating_sub(BITS);
    let shift = block.saturating_sub(1);
    (block as usize, (span.0 >> shift) as usize % SUB_BUCKETS)
}

/// The longest span of a bucket.
fn longest(block: usize, bucket: usize) -> Nanos {
    if block == 0 {
        return Nanos(bucket as u64);
    }
    // (64 + bucket + 1) << shift, minus 1: for the last bucket of all that is u64::MAX, so subtract before the shift
    // can overflow.
    let shift = block - 1;
    Nanos((((SUB_BUCKETS + bucket) as u64) << shift) + ((1u64 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_span_falls_into_a_bucket_that_ends_at_most_a_64th_above_it() {
        for shift in 0..64 {
            for span in
                [1u64 << shift, (1u64 << shift).wrapping_sub(1), u64::MAX >> shift, 0xdead_beef_cafe_f00d >> shift]
            {
                let (block, bucket) = place(Nanos(span));
                let end = longest(block, bucket).0;
                assert!(end >= span, "{span} is above the end {end} of its bucket");
                assert!(end - span <= span / 64, "{span} is far below the end {end} of its bucket");
            }
        }
    }

    #[test]
    fn neighbouring_buckets_share_no_span() {
        for block in 0..59 {
            for bucket in 0..SUB_BUCKETS {
                let end = longest(block, bucket);
                assert_eq!(place(end), (block, bucket));
                match end.0.checked_add(1) {
                    Some(next) => assert_ne!(place(Nanos(next)), (block, bucket)),
                    None => assert_eq!((block, bucket), (58, SUB_BUCKETS - 1), "the last bucket of all"),
                }
            }
        }
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_spans_to_within_a_64th(
            spans in prop::collection::vec((any::<u64>(), 0..64u32).prop_map(|(span, shift)| span >> shift), 1..200),
            split in 0..200usize,
            percent in 1..=100u64,
        ) {
            // Counted in two histograms and merged, as the total over tasks is.
            let (mut all, mut rest) = (Histogram::default(), Histogram::default());
            let split = split.min(spans.len());
            spans[..split].iter().for_each(|&span| all.record(Nanos(span)));
            spans[split..].iter().for_each(|&span| rest.record(Nanos(span)));
            all.merge(&rest);
            let mut sorted = spans;
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() as u64 * percent).div_ceil(100) as usize - 1];
            let found = all.percentile(percent).0;
            prop_assert!(found >= exact && found - exact <= exact / 64, "{} for {}", found, exact);
        }
    }
}
