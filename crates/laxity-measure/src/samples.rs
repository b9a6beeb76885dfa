//! The samples of a quantity.

use laxity_model::{MeasuredQuantity, Nanos};
use laxity_trace::metrics::Distribution;

/// Samples, folded: memory does not grow with their number.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    min: Option<Nanos>,
    all: Distribution,
}

impl Samples {
    /// Counts one more.
    pub fn record(&mut self, sample: Nanos) {
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.all.record(sample);
    }

    /// What is said of the quantity called `name`; nothing if there are no samples.
    pub fn quantity(&self, name: String) -> Option<MeasuredQuantity> {
        let (min, all) = (self.min?, self.all.summary()?);
        let median = all.p50;
        Some(MeasuredQuantity {
            name,
            count: all.count,
            min,
            median,
            mean: all.mean,
            p99: all.p99,
            p999: all.p999,
            max: all.max,
        })
    }
}

/// The samples of one thread in one slice, on their way. Memory is there before the first, so that no sample pays for
/// it.
#[derive(Debug)]
pub(crate) struct Tally {
    spans: Vec<u64>,
}

impl Tally {
    /// More than a slice of the fastest probe has.
    const MAX: usize = 1 << 16;

    pub fn new() -> Self {
        let mut spans = vec![1; Tally::MAX];
        spans.clear();
        Tally { spans }
    }

    /// Takes one sample. Beyond the largest number that is kept, samples are dropped.
    pub fn take(&mut self, span: Nanos) {
        if self.spans.len() < Tally::MAX {
            self.spans.push(span.0);
        }
    }

    pub fn fold_into(self, samples: &mut Samples) {
        self.spans.into_iter().for_each(|span| samples.record(Nanos(span)));
    }
}
