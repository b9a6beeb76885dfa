//! What was measured of a machine: overheads, and what they were made of.

use crate::{CpuId, Nanos, OverheadProfile, Statistic};

/// What `laxity measure` found: a profile for the worst case and one for the average, as published ones have them, the
/// distributions that they were derived from, and where that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Where and how it was measured.
    pub machine: MeasuredMachine,
    /// For hard real-time.
    pub worst: OverheadProfile,
    /// For soft real-time.
    pub average: OverheadProfile,
    /// What was measured, in the order of measuring.
    pub quantities: Vec<MeasuredQuantity>,
}

/// A machine, and how it was measured.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct MeasuredMachine {
    /// Its processor, as Linux names it; empty where it does not.
    pub processor: String,
    /// The release of its Linux.
    pub kernel: String,
    /// The frequency governors of its CPUs; empty where Linux names none.
    pub governor: String,
    /// The CPUs of Linux that were measured.
    pub cpus: Vec<CpuId>,
    /// How Linux scheduled what measured: `SCHED_FIFO` or `SCHED_OTHER`.
    pub scheduler: String,
    /// Which of the samples is the worst case: `max`, `p99.9` or `p99`.
    pub worst: String,
    /// The working set, in bytes, for which the profiles have cache-related delays.
    pub working_set: u64,
    /// For how long it was measured.
    pub duration: Nanos,
}

/// A quantity of which there are samples. Percentiles are at most 1/64 above the exact value and never below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredQuantity {
    /// Which, as in `timer_latency_idle`.
    pub name: String,
    /// How many samples.
    pub count: u64,
    /// The least.
    pub min: Nanos,
    /// Half of them are no more.
    pub median: Nanos,
    /// Rounded down.
    pub mean: Nanos,
    /// 99 % are no more.
    pub p99: Nanos,
    /// 99.9 % are no more.
    pub p999: Nanos,
    /// The largest.
    pub max: Nanos,
}

impl Measurement {
    /// The file that `text` names, and which profile of it is meant: `profile.toml`, `profile.toml:worst`,
    /// `profile.toml:average`; that of the worst case unless it is said. `None`: it is the name of published overheads,
    /// which has neither a dot nor a slash.
    pub fn file_of(text: &str) -> Option<(&str, Statistic)> {
        let said = |statistic: Statistic| Some((text.strip_suffix(statistic.name())?.strip_suffix(':')?, statistic));
        let of_file = said(Statistic::Average).or_else(|| said(Statistic::Worst)).unwrap_or((text, Statistic::Worst));
        Some(of_file).filter(|(path, _)| path.contains(['.', '/']))
    }

    /// The profile of one statistic.
    pub fn profile(&self, statistic: Statistic) -> &OverheadProfile {
        match statistic {
            Statistic::Worst => &self.worst,
            Statistic::Average => &self.average,
        }
    }

    /// The samples of the quantity called `name`, if there are any.
    pub fn quantity(&self, name: &str) -> Option<&MeasuredQuantity> {
        self.quantities.iter().find(|quantity| quantity.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_of_a_file_is_meant_unless_it_says_otherwise() {
        assert_eq!(Measurement::file_of("a/b.toml"), Some(("a/b.toml", Statistic::Worst)));
        assert_eq!(Measurement::file_of("b.toml:worst"), Some(("b.toml", Statistic::Worst)));
        assert_eq!(Measurement::file_of("b:c.toml:average"), Some(("b:c.toml", Statistic::Average)));
        assert_eq!(Measurement::file_of("brandenburg2009-average"), None);
        assert_eq!(Measurement::file_of("none"), None);
    }
}
