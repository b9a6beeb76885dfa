//! Merges arithmetic progressions into one ascending sequence, a window at a time.
//!
//! Sorting a few thousand points at once is several times faster than a heap that hands them out one by one.

/// Points `first + j * step` of many progressions, in ascending order of time, then of tag.
pub(super) struct Progressions {
    sources: Vec<Source>,
    /// Points of the current window, sorted.
    window: Vec<(u64, u32)>,
    position: usize,
    /// Width of the next window: grows from some tens of points to a few thousand, since most sweeps end early.
    width: u64,
    /// Width of the widest window.
    width_max: u64,
    last: u64,
}

struct Source {
    next: u64,
    step: u64,
    tag: u32,
}

const POINTS_FIRST: f64 = 32.0;
const POINTS_MAX: f64 = 4_096.0;

impl Progressions {
    /// Merges `(first, step, tag)` up to and including `last`. Steps are positive.
    pub(super) fn new(sources: impl Iterator<Item = (u64, u64, u32)>, last: u64) -> Self {
        let sources: Vec<Source> = sources.map(|(next, step, tag)| Source { next, step, tag }).collect();
        // The rate of points is the sum of 1/step; f64 only sizes the window.
        let rate: f64 = sources.iter().map(|source| 1.0 / source.step as f64).sum();
        let width = |points: f64| ((points / rate.max(1e-18)) as u64).saturating_add(1);
        let (first, width_max) = (width(POINTS_FIRST), width(POINTS_MAX));
        Progressions { sources, window: Vec::new(), position: 0, width: first, width_max, last }
    }

    /// The next point and its tag.
    pub(super) fn next(&mut self) -> Option<(u64, u32)> {
        if self.position == self.window.len() {
            self.refill();
        }
        let point = self.window.get(self.position).copied();
        self.position += usize::from(point.is_some());
        point
    }

    /// The time of the point that [`next`](Self::next) would return.
    pub(super) fn peek(&mut self) -> Option<u64> {
        if self.position == self.window.len() {
            self.refill();
        }
        self.window.get(self.position).map(|point| point.0)
    }

    fn refill(&mut self) {
        self.window.clear();
        self.position = 0;
        let Some(start) = self.sources.iter().map(|source| source.next).min() else { return };
        let end = start.saturating_add(self.width).min(self.last.saturating_add(1));
        for source in &mut self.sources {
            while source.next < end {
                self.window.push((source.next, source.tag));
                source.next = source.next.saturating_add(source.step);
            }
        }
        self.width = self.width.saturating_mul(2).min(self.width_max);
        self.window.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::Progressions;

    #[test]
    fn points_that_are_ages_apart_are_still_handed_out() {
        let age = 1 << 60;
        let mut points = Progressions::new([(age, age, 7)].into_iter(), 3 * age);
        let all: Vec<_> = std::iter::from_fn(|| points.next()).collect();
        assert_eq!(all, [(age, 7), (2 * age, 7), (3 * age, 7)]);
        assert_eq!(Progressions::new(std::iter::empty(), age).next(), None);
    }
}
