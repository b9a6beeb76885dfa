//! Spans of time as people write them outside of a file: on a command line, in a script.

use std::str::FromStr;

use super::quantity::{self, QuantityError};
use crate::Nanos;

/// The text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" {reason}")]
pub struct ParseNanosError {
    text: String,
    reason: QuantityError,
}

/// Reads a span as a workload file does: `5 ms`, `250us`, `1.5 s`, `2 min`. Exact, a whole number of nanoseconds.
impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        quantity::parse_span(text).map_err(|reason| ParseNanosError { text: text.to_owned(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_as_in_a_file_and_refused_with_the_way_out() {
        assert_eq!("2 min".parse(), Ok(Nanos(120_000_000_000)));
        assert_eq!("500ms".parse(), Ok(Nanos(500_000_000)));
        let error = "5".parse::<Nanos>().expect_err("no unit");
        assert_eq!(error.to_string(), "\"5\" has no unit; write 5 with one, as in \"5 ms\"");
    }
}
