//! What the paper leaves open, as named options.

use std::fmt;
use std::str::FromStr;

use laxity_analysis::klmirqd::Blocking;
use laxity_analysis::partition::Order;

/// Options of the study, written and read as one line: `blocking=exact order=input ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Which bound on blocking by the k-FMLP: the paper gives three and does not say which it used. Only the exact one,
    /// its 0-1 program, comes near its figures: the others charge a job for waiting where GPUs are free.
    pub blocking: Blocking,
    /// In which order tasks are packed within each of the two passes.
    pub order: Order,
    /// How long a job holds a GPU.
    pub critical_section: CriticalSection,
    /// The tardiness for which interrupts are counted.
    pub tardiness: Tardiness,
}

/// How long a job holds a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CriticalSection {
    /// As long as it uses it: l = s.
    GpuTime,
    /// From its start to its end: l = e + s.
    WholeJob,
}

/// The tardiness of jobs for which equation 11 counts interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tardiness {
    /// The bound, iterated with the execution times it follows from until nothing changes.
    FixedPoint,
    /// None: conditions 4 and 5 once. Unsound; for comparison, to see how much the bound costs.
    None,
}

/// The text is not a line of options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown option `{word}`; write blocking=aware|oblivious|oblivious-integer|exact, order=input|decreasing, \
     critical-section=gpu-time|whole-job, tardiness=fixed-point|none"
)]
pub struct ParseOptionsError {
    word: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            blocking: Blocking::Exact,
            order: Order::Input,
            critical_section: CriticalSection::GpuTime,
            tardiness: Tardiness::FixedPoint,
        }
    }
}

const BLOCKING: [(&str, Blocking); 3] =
    [("aware", Blocking::Aware), ("oblivious", Blocking::Oblivious), ("exact", Blocking::Exact)];
const ORDER: [(&str, Order); 2] = [("input", Order::Input), ("decreasing", Order::Decreasing)];
const CRITICAL_SECTION: [(&str, CriticalSection); 2] =
    [("gpu-time", CriticalSection::GpuTime), ("whole-job", CriticalSection::WholeJob)];
const TARDINESS: [(&str, Tardiness); 2] = [("fixed-point", Tardiness::FixedPoint), ("none", Tardiness::None)];

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blocking =
            BLOCKING.iter().find(|named| named.1 == self.blocking).map_or("oblivious-integer", |named| named.0);
        let order = if self.order == Order::Input { "input" } else { "decreasing" };
        let section = if self.critical_section == CriticalSection::GpuTime { "gpu-time" } else { "whole-job" };
        let tardiness = if self.tardiness == Tardiness::FixedPoint { "fixed-point" } else { "none" };
        write!(f, "blocking={blocking} order={order} critical-section={section} tardiness={tardiness}")
    }
}

impl FromStr for Options {
    type Err = ParseOptionsError;

    fn from_str(text: &str) -> Result<Self, ParseOptionsError> {
        let mut options = Options::default();
        for word in text.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let read = match key {
                "blocking" if value == "oblivious-integer" => {
                    options.blocking = Blocking::ObliviousInteger;
                    Some(())
                }
                "blocking" => set(&mut options.blocking, &BLOCKING, value),
                "order" => set(&mut options.order, &ORDER, value),
                "critical-section" => set(&mut options.critical_section, &CRITICAL_SECTION, value),
                "tardiness" => set(&mut options.tardiness, &TARDINESS, value),
                _ => None,
            };
            read.ok_or_else(|| ParseOptionsError { word: word.to_owned() })?;
        }
        Ok(options)
    }
}

fn set<T: Copy>(field: &mut T, names: &[(&str, T)], value: &str) -> Option<()> {
    *field = names.iter().find(|named| named.0 == value)?.1;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_read_back_as_they_were_written() {
        for blocking in ["aware", "oblivious", "oblivious-integer", "exact"] {
            for rest in [
                "order=input critical-section=gpu-time tardiness=fixed-point",
                "order=decreasing critical-section=whole-job tardiness=none",
            ] {
                let text = format!("blocking={blocking} {rest}");
                assert_eq!(text.parse::<Options>().map(|options| options.to_string()), Ok(text));
            }
        }
        assert_eq!("".parse(), Ok(Options::default()));
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_way_out() {
        for text in ["blocking=none", "order", "critical-section=", "gpus=3"] {
            let error = text.parse::<Options>().expect_err("unknown").to_string();
            assert!(error.contains(text) && error.contains("order=input|decreasing"), "{error}");
        }
    }
}
