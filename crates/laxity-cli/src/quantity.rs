//! Numbers for tables: exact integers in, text out, aligned by having the same number of decimals. All are rounded to the
//! nearest, halves up, and something is never shown as nothing: `<0.01` in place of `0.00` (decision 158).

use laxity_model::{Nanos, SignedNanos};

/// The unit that all times of a table share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeUnit {
    /// Its name.
    pub name: &'static str,
    nanos: u64,
}

impl TimeUnit {
    /// Microseconds.
    pub const MICROS: TimeUnit = TimeUnit { name: "us", nanos: 1_000 };
    /// Milliseconds.
    pub const MILLIS: TimeUnit = TimeUnit { name: "ms", nanos: 1_000_000 };
    /// Seconds.
    pub const SECONDS: TimeUnit = TimeUnit { name: "s", nanos: 1_000_000_000 };

    /// The unit for times of which `longest` is the longest.
    pub fn for_longest(longest: Nanos) -> TimeUnit {
        match longest.0 {
            0..1_000_000 => TimeUnit::MICROS,
            1_000_000..100_000_000_000 => TimeUnit::MILLIS,
            _ => TimeUnit::SECONDS,
        }
    }

    /// `span` in this unit with three decimals, rounded to the nearest. Something is never shown as nothing.
    pub fn show(self, span: Nanos) -> String {
        let thousandth = self.nanos / 1_000;
        let rounded = span.0.saturating_add(thousandth / 2) / thousandth;
        if rounded == 0 && !span.is_zero() {
            return "<0.001".to_owned();
        }
        format!("{}.{:03}", rounded / 1_000, rounded % 1_000)
    }

    /// As [`TimeUnit::show`], with the sign in front.
    pub fn show_signed(self, span: SignedNanos) -> String {
        let text = self.show(Nanos(span.0.unsigned_abs()));
        match span.0 < 0 {
            true if text.starts_with('<') => ">-0.001".to_owned(),
            true => format!("-{text}"),
            false => text,
        }
    }
}

/// `part` of `whole` in percent with two decimals, without the sign; a dash if there is no whole.
pub fn percent(part: u128, whole: u128) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    // Spans are below 2^64 and at most 2^16 CPUs are summed: the products stay far below 2^128.
    let rounded = (part * 10_000 + whole / 2) / whole;
    if rounded == 0 && part > 0 {
        return "<0.01".to_owned();
    }
    format!("{}.{:02}", rounded / 100, rounded % 100)
}

/// CPUs that are needed, to three decimals.
pub fn cpus_needed(needed: f64) -> String {
    match needed {
        needed if needed > 0.0 && needed < 0.0005 => "<0.001".to_owned(),
        // Nothing at all may be a sum of nothing, which is -0.0.
        needed => format!("{:.3}", needed + 0.0),
    }
}

/// `6`, `6.5 thousand` ... : for rates, where digits do not matter.
pub fn rough(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.1} billion", v / 1e9),
        v if v >= 1e6 => format!("{:.1} million", v / 1e6),
        v if v >= 1e4 => format!("{:.0} thousand", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// A count with its noun: `1 job`, `2 jobs`.
pub fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A number of things to show, at least one, from a command line.
pub fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("that shows nothing; write 1 or more".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("write a whole number, 1 or more".to_owned()),
    }
}

/// The seed of random numbers, from a command line.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("write a whole number of 0 to {}", u64::MAX))
}

/// A span to three decimals of its natural unit: `9.38 us`, `33.333 ms`. For prose, where [`Nanos`] itself would show
/// every digit.
pub fn short(span: Nanos) -> String {
    let unit = match span.0 {
        0..1_000 => return format!("{} ns", span.0),
        1_000..1_000_000 => TimeUnit::MICROS,
        1_000_000..1_000_000_000 => TimeUnit::MILLIS,
        _ => TimeUnit::SECONDS,
    };
    let text = unit.show(span);
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), unit.name)
}

/// A number of bytes in decimal units: `12.3 MB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} B"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_decimals_and_are_rounded_to_the_nearest() {
        assert_eq!(TimeUnit::MILLIS.show(Nanos(33_333_499)), "33.333");
        assert_eq!(TimeUnit::MILLIS.show(Nanos(33_333_500)), "33.334");
        assert_eq!(TimeUnit::MILLIS.show(Nanos(0)), "0.000");
        assert_eq!(TimeUnit::MILLIS.show(Nanos(499)), "<0.001");
        assert_eq!(TimeUnit::MILLIS.show_signed(SignedNanos(-1_500_000)), "-1.500");
        assert_eq!(TimeUnit::MILLIS.show_signed(SignedNanos(-3)), ">-0.001");
        assert_eq!(TimeUnit::MICROS.show(Nanos(1)), "0.001");
        assert_eq!(TimeUnit::SECONDS.show(Nanos(u64::MAX)), "18446744073.709");
    }

    #[test]
    fn the_unit_follows_the_longest_time() {
        assert_eq!(TimeUnit::for_longest(Nanos(999_999)).name, "us");
        assert_eq!(TimeUnit::for_longest(Nanos(1_000_000)).name, "ms");
        assert_eq!(TimeUnit::for_longest(Nanos(100_000_000_000)).name, "s");
    }

    #[test]
    fn percentages_have_two_decimals_and_hide_nothing() {
        assert_eq!(percent(1, 3), "33.33");
        assert_eq!(percent(2, 3), "66.67");
        assert_eq!(percent(3, 3), "100.00");
        assert_eq!(percent(1, 1_000_000), "<0.01");
        assert_eq!(percent(0, 5), "0.00");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(
            [0.0, -0.0, 0.0004, 0.0006, 1.1144].map(cpus_needed),
            ["0.000", "0.000", "<0.001", "0.001", "1.114"]
        );
    }

    #[test]
    fn prose_gets_short_spans() {
        assert_eq!(short(Nanos(33_333_333)), "33.333 ms");
        assert_eq!(short(Nanos(60_000_000_000)), "60 s");
        assert_eq!(short(Nanos(9_380)), "9.38 us");
        assert_eq!(short(Nanos(7)), "7 ns");
        assert_eq!(counted(1, "job") + ", " + &counted(0, "task"), "1 job, 0 tasks");
    }
}
