//! Quantities with units: `5 ms`, `2 MiB`, `12 GB/s`. Read exactly, in integers, and written so that they read back.

use crate::Nanos;
use crate::suggest;

/// A unit and how many of the smallest unit it holds.
type Unit = (&'static str, u128);

/// In picoseconds. Both code points that look like a micro sign are read.
const TIME: &[Unit] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("\u{b5}s", 1_000_000),
    ("\u{3bc}s", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("min", 60 * 1_000_000_000_000),
    ("h", 3_600 * 1_000_000_000_000),
];

/// In bytes.
const SIZE: &[Unit] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuantityError {
    /// It does not begin with a decimal number.
    #[error("does not begin with a decimal number; write it like \"{example}\"")]
    NoNumber { example: &'static str },
    /// A number alone.
    #[error("has no unit; write {number} with one, as in \"{example}\"")]
    NoUnit { number: String, example: &'static str },
    /// A unit of something else, or of nothing.
    #[error("has the unknown unit `{unit}`; {}", way_out(unit, known, suffix))]
    UnknownUnit { unit: String, known: &'static [Unit], suffix: &'static str },
    /// More decimals than the smallest unit can hold.
    #[error("is finer than {smallest}; round it to a whole multiple of {smallest}")]
    TooFine { smallest: &'static str },
    /// More than can be held.
    #[error("is more than {largest}; write less")]
    TooLarge { largest: String },
}

/// A span of time, a whole number of nanoseconds.
pub(crate) fn parse_span(text: &str) -> Result<Nanos, QuantityError> {
    let picos = parse(text, TIME, "", "5 ms")?.ok_or(QuantityError::TooFine { smallest: "1 ns" })?;
    if !picos.is_multiple_of(1_000) {
        return Err(QuantityError::TooFine { smallest: "1 ns" });
    }
    let too_large = || QuantityError::TooLarge { largest: format!("the longest span, {}", Nanos::LONGEST) };
    u64::try_from(picos / 1_000).ok().map(Nanos).filter(|&span| span <= Nanos::LONGEST).ok_or_else(too_large)
}

/// A span of time in picoseconds, for measured overheads.
pub(crate) fn parse_picos(text: &str) -> Result<u64, QuantityError> {
    let picos = parse(text, TIME, "", "9.380001 us")?.ok_or(QuantityError::TooFine { smallest: "1 ps" })?;
    u64::try_from(picos).map_err(|_| QuantityError::TooLarge { largest: "1 h".to_owned() })
}

/// A number of bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, QuantityError> {
    let bytes = parse(text, SIZE, "", "2 MB")?.ok_or(QuantityError::TooFine { smallest: "1 B" })?;
    u64::try_from(bytes).map_err(|_| QuantityError::TooLarge { largest: write_size(u64::MAX) })
}

/// A number of bytes a second.
pub(crate) fn parse_rate(text: &str) -> Result<u64, QuantityError> {
    let bytes = parse(text, SIZE, "/s", "12 GB/s")?.ok_or(QuantityError::TooFine { smallest: "1 B/s" })?;
    u64::try_from(bytes).map_err(|_| QuantityError::TooLarge { largest: write_rate(u64::MAX) })
}

/// Picoseconds in microseconds, exactly: `9.380001 us`.
pub(crate) fn write_picos(picos: u64) -> String {
    let (micros, rest) = (picos / 1_000_000, picos % 1_000_000);
    if rest == 0 {
        return format!("{micros} us");
    }
    let decimals = format!("{rest:06}");
    format!("{micros}.{} us", decimals.trim_end_matches('0'))
}

/// Bytes in the largest unit that divides them.
pub(crate) fn write_size(bytes: u64) -> String {
    let divides = |&&(_, scale): &&Unit| bytes != 0 && u128::from(bytes).is_multiple_of(scale);
    let (unit, scale) = SIZE.iter().rev().find(divides).copied().unwrap_or(("B", 1));
    format!("{} {unit}", u128::from(bytes) / scale)
}

/// Bytes a second in the largest unit that divides them.
pub(crate) fn write_rate(bytes: u64) -> String {
    format!("{}/s", write_size(bytes))
}

/// The number in `text` in the smallest unit; `None` if it is not whole there.
fn parse(
    text: &str,
    units: &'static [Unit],
    suffix: &'static str,
    example: &'static str,
) -> Result<Option<u128>, QuantityError> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let (whole, rest) = split_while(text, is_digit);
    if whole.is_empty() {
        return Err(QuantityError::NoNumber { example });
    }
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => split_while(rest, is_digit),
        None => ("0", rest),
    };
    if fraction.is_empty() {
        return Err(QuantityError::NoNumber { example });
    }
    let unit = rest.trim_start_matches(' ');
    if unit.is_empty() {
        return Err(QuantityError::NoUnit { number: text.trim_end_matches(' ').to_owned(), example });
    }
    let known = unit.strip_suffix(suffix).and_then(|unit| units.iter().find(|(name, _)| *name == unit));
    let Some(&(_, scale)) = known else {
        return Err(QuantityError::UnknownUnit { unit: unit.to_owned(), known: units, suffix });
    };
    scale_decimal(whole, fraction.trim_end_matches('0'), scale)
}

/// `whole.fraction * scale`; `None` if that is not a whole number.
fn scale_decimal(whole: &str, fraction: &str, scale: u128) -> Result<Option<u128>, QuantityError> {
    let too_large = || QuantityError::TooLarge { largest: "what 128 bits can hold".to_owned() };
    // 3.6 * 10^15 ps has 16 factors of 2 and fewer of 5, so that no span with more than 16 decimals (the last not 0) is
    // whole; files write no more of a TiB either. Up to 18, `fraction * scale` is below 10^18 * 3.6 * 10^15 and fits.
    if fraction.len() > 18 {
        return Ok(None);
    }
    let whole: u128 = whole.parse().map_err(|_| too_large())?;
    let ten_to_the = 10u128.pow(fraction.len() as u32);
    let numerator = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().map_err(|_| too_large())? * scale };
    if !numerator.is_multiple_of(ten_to_the) {
        return Ok(None);
    }
    let scaled = whole.checked_mul(scale).and_then(|value| value.checked_add(numerator / ten_to_the));
    scaled.map(Some).ok_or_else(too_large)
}

fn split_while(text: &str, holds: impl Fn(u8) -> bool) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !holds(byte)).unwrap_or(text.len()))
}

/// The unit that may have been meant, of those that can be typed.
fn way_out(unit: &str, known: &[Unit], suffix: &str) -> String {
    let names: Vec<String> = known.iter().map(|(name, _)| format!("{name}{suffix}")).collect();
    suggest::way_out(unit, names.iter().map(String::as_str).filter(|name| name.is_ascii()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_read_exactly() {
        let cases = [
            ("5 ms", 5_000_000),
            ("5ms", 5_000_000),
            ("250 us", 250_000),
            ("250 \u{b5}s", 250_000),
            ("250 \u{3bc}s", 250_000),
            ("1.5 s", 1_500_000_000),
            ("33.333333 ms", 33_333_333),
            ("33.3333330000 ms", 33_333_333),
            ("16 ns", 16),
            ("7000 ps", 7),
            ("0 ms", 0),
            ("2 min", 120_000_000_000),
            ("0.5 h", 1_800_000_000_000),
            ("87600 h", Nanos::LONGEST.0),
        ];
        for (text, nanos) in cases {
            assert_eq!(parse_span(text), Ok(Nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_span_says_why() {
        let says = |text: &str| parse_span(text).expect_err(text).to_string();
        assert_eq!(says("33.3333333 ms"), "is finer than 1 ns; round it to a whole multiple of 1 ns");
        assert_eq!(says("0.5 ns"), "is finer than 1 ns; round it to a whole multiple of 1 ns");
        assert_eq!(says("500 ps"), "is finer than 1 ns; round it to a whole multiple of 1 ns");
        assert_eq!(says("5"), "has no unit; write 5 with one, as in \"5 ms\"");
        assert_eq!(says("ms"), "does not begin with a decimal number; write it like \"5 ms\"");
        assert_eq!(says("-5 ms"), "does not begin with a decimal number; write it like \"5 ms\"");
        assert_eq!(says("5. ms"), "does not begin with a decimal number; write it like \"5 ms\"");
        assert_eq!(says("5 mss"), "has the unknown unit `mss`; did you mean `ms`?");
        assert_eq!(
            says("1 s 5 ms"),
            "has the unknown unit `s 5 ms`; write one of `ps`, `ns`, `us`, `ms`, `s`, `min`, `h`"
        );
        assert_eq!(says("87601 h"), "is more than the longest span, 315360000 s; write less");
        for text in ["", " 5 ms", "5 ms ", "5\tms", "+5 ms", "1e3 ms", "0x5 ms"] {
            assert!(parse_span(text).is_err(), "{text:?}");
        }
        assert!(parse_span(&format!("{} ms", "9".repeat(500))).is_err());
        assert!(parse_span(&format!("0.{}1 ms", "0".repeat(500))).is_err());
    }

    #[test]
    fn sizes_and_rates_know_both_families_of_units() {
        assert_eq!(parse_size("2 MB"), Ok(2_000_000));
        assert_eq!(parse_size("2 MiB"), Ok(2_097_152));
        assert_eq!(parse_size("1.5 kB"), Ok(1_500));
        assert_eq!(parse_rate("12 GB/s"), Ok(12_000_000_000));
        assert_eq!(parse_size("2 Mb").expect_err("bits").to_string(), "has the unknown unit `Mb`; did you mean `MB`?");
        assert_eq!(
            parse_rate("12 GB").expect_err("a size").to_string(),
            "has the unknown unit `GB`; write one of `B/s`, `kB/s`, `KiB/s`, `MB/s`, `MiB/s`, `GB/s`, `GiB/s`, `TB/s`, \
             `TiB/s`"
        );
        assert!(parse_size("0.5 B").is_err() && parse_size("99999999 TiB").is_err());
        assert_eq!(write_size(0), "0 B");
        assert_eq!(write_size(2_097_152), "2 MiB");
        assert_eq!(write_rate(12_000_000_000), "12 GB/s");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value: u64) {
            prop_assert_eq!(parse_size(&write_size(value)), Ok(value));
            prop_assert_eq!(parse_rate(&write_rate(value)), Ok(value));
            prop_assert_eq!(parse_picos(&write_picos(value)), Ok(value));
            let span = Nanos(value % (Nanos::LONGEST.0 + 1));
            prop_assert_eq!(parse_span(&span.to_string()), Ok(span));
        }

        #[test]
        fn no_text_panics(text in "\\PC*", tail in "[0-9]{0,60}(\\.[0-9]{0,60})? ?[a-zA-Z]{0,4}") {
            for text in [text, tail] {
                let _ = (parse_span(&text), parse_size(&text), parse_rate(&text), parse_picos(&text));
            }
        }
    }
}
