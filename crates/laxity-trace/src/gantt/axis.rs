//! The time axis: round ticks, and their labels in one unit.

use laxity_model::Instant;

/// Ticks at the multiples of `step` in a window, labelled in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    from: Instant,
    to: Instant,
    step: u64,
    unit: Unit,
}

/// The unit of the labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    name: &'static str,
    nanos: u64,
}

const UNITS: [Unit; 4] = [
    Unit { name: "s", nanos: 1_000_000_000 },
    Unit { name: "ms", nanos: 1_000_000 },
    Unit { name: "us", nanos: 1_000 },
    Unit { name: "ns", nanos: 1 },
];

impl Axis {
    /// An axis with at most `most` ticks (at least 1) and as many as round numbers allow.
    pub fn new(from: Instant, to: Instant, most: u64) -> Self {
        let span = to.saturating_since(from).0.max(1);
        let step = round_up(span.div_ceil(most.max(1)));
        Axis { from, to, step, unit: unit_for(span) }
    }

    /// Time between ticks.
    #[cfg(test)]
    pub fn step(&self) -> laxity_model::Nanos {
        laxity_model::Nanos(self.step)
    }

    /// The ticks in the window, both edges included, with their labels.
    pub fn ticks(&self) -> impl Iterator<Item = (Instant, String)> {
        let (to, step, unit) = (self.to, self.step, self.unit);
        let first = self.from.0.div_ceil(step).checked_mul(step);
        std::iter::successors(first, move |tick| tick.checked_add(step))
            .take_while(move |&tick| tick <= to.0)
            .map(move |tick| (Instant(tick), unit.label(tick)))
    }

    /// The labels' unit: `ms`.
    pub fn unit(&self) -> &'static str {
        self.unit.name
    }
}

/// The unit in which a window of `span` nanoseconds reads best: the largest of which it holds at least two.
fn unit_for(span: u64) -> Unit {
    UNITS.into_iter().find(|unit| span >= 2 * unit.nanos).unwrap_or(UNITS[UNITS.len() - 1])
}

impl Unit {
    /// `nanos` in this unit, exact to the digit.
    fn label(self, nanos: u64) -> String {
        let fraction = nanos % self.nanos;
        if fraction == 0 {
            return (nanos / self.nanos).to_string();
        }
        let digits = self.nanos.ilog10() as usize;
        format!("{}.{}", nanos / self.nanos, format!("{fraction:0digits$}").trim_end_matches('0'))
    }
}

/// The smallest of 1, 2, 5, 10, 20, 50, ... that is at least `nanos`.
pub(super) fn round_up(nanos: u64) -> u64 {
    let mut decade = 1u64;
    loop {
        for factor in [1, 2, 5] {
            match decade.checked_mul(factor) {
                Some(step) if step >= nanos => return step,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        match decade.checked_mul(10) {
            Some(next) => decade = next,
            None => return u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: u64, to: u64, most: u64) -> (Vec<String>, &'static str) {
        let axis = Axis::new(Instant(from), Instant(to), most);
        (axis.ticks().map(|(_, label)| label).collect(), axis.unit())
    }

    #[test]
    fn ticks_are_round_numbers_in_one_unit() {
        let (ticks, unit) = labels(0, 15_000_000, 10);
        assert_eq!(ticks, ["0", "2", "4", "6", "8", "10", "12", "14"]);
        assert_eq!(unit, "ms");
        let (ticks, unit) = labels(1_300_000, 3_400_000, 5);
        assert_eq!(ticks, ["1.5", "2", "2.5", "3"]);
        assert_eq!(unit, "ms");
        assert_eq!(labels(7, 9, 3), (vec!["7".to_owned(), "8".to_owned(), "9".to_owned()], "ns"));
    }

    #[test]
    fn an_axis_at_the_end_of_time_has_ticks_and_ends() {
        assert_eq!(Axis::new(Instant(u64::MAX - 5), Instant::NEVER, 2).step().0, 5);
        assert!(labels(0, u64::MAX, 7).0.len() <= 8);
    }
}
