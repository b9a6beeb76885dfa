//! Values of a workload file that stand alone: on a command line, between processes.

use std::str::FromStr;

use super::reader::Item;
use super::tree::Value;
use super::{cpu_list, decode, encode, quantity, toml, write};
use crate::error::{FieldPath, Findings};
use crate::limits::CPUS_MAX;
use crate::{CpuId, Distribution, Nanos, validate};

/// The field that holds a distribution in a file.
const FIELD: &str = "actual";

/// The text is no distribution of spans.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", reasons.join("; "))]
pub struct ParseDistributionError {
    reasons: Vec<String>,
}

/// Reads what a TOML workload has after `actual =`, and a span without quotes: `5 ms`, `{ uniform = ["1 ms", "5 ms"] }`.
impl FromStr for Distribution {
    type Err = ParseDistributionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if !text.trim_start().starts_with(['{', '"', '\'']) {
            let constant = text.trim().parse::<Nanos>().map(Distribution::Constant);
            return constant.map_err(|error| ParseDistributionError { reasons: vec![error.to_string()] });
        }
        let tree = toml::parse(&format!("{FIELD} = {text}")).map_err(|errors| ParseDistributionError {
            reasons: errors.into_iter().map(|error| error.message).collect(),
        })?;
        if matches!(&tree.value, Value::Table(entries) if entries.len() > 1) {
            let message = "holds more than one value; write one distribution, as in { uniform = [\"1 ms\", \"5 ms\"] }";
            return Err(ParseDistributionError { reasons: vec![message.to_owned()] });
        }
        let path = FieldPath::root().key(FIELD);
        let mut findings = Findings::default();
        let found = tree.field(FIELD).and_then(|node| {
            let item = Item { node, path: path.clone() };
            decode::distribution(&item, &mut findings)
        });
        if let Some(found) = &found {
            validate::distribution(found, Nanos::LONGEST, &path, &mut findings);
        }
        match found.filter(|_| findings.list.is_empty()) {
            Some(found) => Ok(found),
            None => {
                Err(ParseDistributionError { reasons: findings.list.into_iter().map(|found| found.message).collect() })
            }
        }
    }
}

impl Distribution {
    /// What a TOML workload has after `actual =`, on one line, which [`Distribution::from_str`] reads back exactly;
    /// `None` for the worst case, which files say by saying nothing.
    pub fn to_toml(&self) -> Option<String> {
        let outline = encode::distribution(self)?;
        let text = write::toml(&vec![(FIELD, outline)]);
        Some(text.trim_start_matches(FIELD).trim_start_matches(" = ").trim_end().to_owned())
    }
}

/// Reads CPUs as Linux lists them: `0-3,8`. In the order of the list; a CPU may be there twice.
///
/// # Errors
/// What to write instead.
pub fn parse_cpus(text: &str) -> Result<Vec<CpuId>, String> {
    cpu_list::parse(text).ok_or_else(|| match cpu_list::first_beyond(text) {
        Some(number) => format!("\"{text}\" names CPU {number}, and the last that there can be is {}", CPUS_MAX - 1),
        None => format!("\"{text}\" lists no CPUs; write them as in \"0-3,8\""),
    })
}

/// Reads a number of bytes as workload files write it: `64 kB`, `2 MiB`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_size(text: &str) -> Result<u64, String> {
    quantity::parse_size(text).map_err(|reason| format!("\"{text}\" {reason}"))
}

/// Reads a number of bytes a second as workload files write it: `64 MB/s`, `2 GiB/s`.
///
/// # Errors
/// What is wrong with it.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    quantity::parse_rate(text).map_err(|reason| format!("\"{text}\" {reason}"))
}

/// Bytes a second as workload files write them, in the largest unit that divides them: `64 MB/s`.
pub fn write_rate(bytes: u64) -> String {
    quantity::write_rate(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bin;

    #[test]
    fn a_distribution_is_read_as_in_a_file_and_written_back() {
        let ms = Nanos::from_millis;
        let bin = |min, max, weight| Bin { min: ms(min), max: ms(max), weight };
        let pairs = [
            ("5 ms", Distribution::Constant(ms(5))),
            ("{ uniform = [\"1 ms\", \"5 ms\"] }", Distribution::Uniform { min: ms(1), max: ms(5) }),
            (
                "{ histogram = [{ min = \"1 ms\", max = \"2 ms\", weight = 3 }, { min = \"2 ms\", max = \"9 ms\", weight = 1 }] }",
                Distribution::Histogram(vec![bin(1, 2, 3), bin(2, 9, 1)]),
            ),
            ("{ recorded = [\"5 ms\", \"6 ms\"] }", Distribution::Recorded(vec![ms(5), ms(6)])),
        ];
        for (text, expected) in pairs {
            let found: Distribution = text.parse().expect(text);
            assert_eq!(found, expected);
            let written = found.to_toml().expect("it is not the worst case");
            assert_eq!(written.parse(), Ok(expected), "{written}");
        }
        assert_eq!("\"5 ms\"".parse(), Ok(Distribution::Constant(ms(5))));
        assert_eq!(Distribution::WorstCase.to_toml(), None);
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_the_way_out() {
        let error = |text: &str| text.parse::<Distribution>().expect_err(text).to_string();
        assert!(error("soon").contains("soon"));
        assert!(error("{ uniform = [\"5 ms\"] }").contains("has 1 elements"));
        assert!(error("{ uniform = [\"5 ms\", \"1 ms\"] }").contains("exchange them"));
        assert!(error("{ recorded = [] }").contains("list at least one span"));
        assert!(error("{ unifrm = [\"1 ms\", \"5 ms\"] }").contains("uniform"));
        assert!(error("{ uniform = ").contains("not TOML"));
        assert!(error("\"5 ms\"\nwcet = \"1 ms\"").contains("more than one value"));
    }

    #[test]
    fn cpus_and_sizes_are_read_as_in_a_file() {
        assert_eq!(parse_cpus("0-1,3"), Ok(vec![CpuId(0), CpuId(1), CpuId(3)]));
        assert!(parse_cpus("all").expect_err("no list").ends_with("write them as in \"0-3,8\""));
        assert_eq!(parse_size("64 kB"), Ok(64_000));
        assert!(parse_size("64").is_err());
        assert_eq!(parse_rate("64 MB/s"), Ok(64_000_000));
        assert_eq!(write_rate(64_000_000), "64 MB/s");
        assert!(parse_rate("64 MB").is_err());
    }
}
