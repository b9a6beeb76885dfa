//! Values for all, `10ms`, or for one, `camera=10ms`.

use std::fmt::Display;
use std::str::FromStr;

use laxity_model::{Nanos, parse_cpus, parse_size};

use super::super::way_out;

/// A value for the node or edge that is named, or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    subject: Option<String>,
    value: T,
}

impl<T: FromStr<Err: Display>> FromStr for Setting<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (subject, value) = match text.split_once('=') {
            // Distributions have equals signs of their own, but they begin with a brace.
            Some((subject, value)) if !subject.trim_start().starts_with('{') => (Some(subject.to_owned()), value),
            _ => (None, text),
        };
        Ok(Setting { subject, value: value.parse().map_err(|error: T::Err| error.to_string())? })
    }
}

/// What is set for `name`: what was said of it by name, or else of all; of several values the last.
pub fn value<'s, T>(settings: &'s [Setting<T>], name: &str) -> Option<&'s T> {
    named(settings, name).or_else(|| last(settings, None))
}

/// What was said of `name` by name.
pub fn named<'s, T>(settings: &'s [Setting<T>], name: &str) -> Option<&'s T> {
    last(settings, Some(name))
}

fn last<'s, T>(settings: &'s [Setting<T>], subject: Option<&str>) -> Option<&'s T> {
    settings.iter().rfind(|setting| setting.subject.as_deref() == subject).map(|setting| &setting.value)
}

/// Refuses settings of what is not among `names`, each a `noun`.
pub fn check<T>(option: &str, settings: &[Setting<T>], names: &[String], noun: &str) -> Result<(), String> {
    match settings.iter().filter_map(|setting| setting.subject.as_ref()).find(|name| !names.contains(name)) {
        Some(name) => Err(format!("{option}: no {noun} is called {name}; {}", way_out(name, names, noun))),
        None => Ok(()),
    }
}

/// So many jobs in a window, as `30` (a second) or `7/28ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// From one release to the next, to the nearest nanosecond.
    pub period: Nanos,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no rate; write jobs a second, as in 30, or in a window, as in 7/28ms");
        let (jobs, window) = match text.split_once('/') {
            Some((jobs, window)) => (jobs, window.parse::<Nanos>().map_err(|error| error.to_string())?),
            None => (text, Nanos::from_secs(1)),
        };
        let jobs: u64 = jobs.trim().parse().ok().filter(|&jobs| jobs > 0).ok_or_else(wrong)?;
        // Below 2^64 both, so that the sum does not overflow.
        let period = ((u128::from(window.0) + u128::from(jobs / 2)) / u128::from(jobs)) as u64;
        match period {
            0 => Err(format!("{text:?} is more than one job a nanosecond; write a lower rate")),
            period => Ok(Rate { period: Nanos(period) }),
        }
    }
}

/// CPUs, as `0-3,8`: ascending, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(pub Vec<usize>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus: Vec<usize> = parse_cpus(text)?.into_iter().map(|cpu| cpu.index()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Cpus(cpus))
    }
}

/// A number of bytes, as `64 kB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_size(text).map(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Distribution;

    use super::*;

    #[test]
    fn the_last_word_counts_and_what_is_said_by_name_more_than_what_is_said_of_all() {
        let settings: Vec<Setting<Nanos>> =
            ["A=4ms", "9ms", "10ms"].map(|text| text.parse().expect(text)).into_iter().collect();
        let ms = Nanos::from_millis;
        assert_eq!(["A", "B"].map(|name| value(&settings, name).copied()), [Some(ms(4)), Some(ms(10))]);
        assert_eq!(named(&settings, "B"), None);
        let names = ["A1".to_owned(), "B".to_owned()];
        let error = check("--period", &settings, &names, "node").expect_err("no A");
        assert_eq!(error, "--period: no node is called A; write one of A1, B");
        assert!("A=soon".parse::<Setting<Nanos>>().is_err());
    }

    #[test]
    fn distributions_keep_their_equals_signs() {
        let uniform = Distribution::Uniform { min: Nanos::from_millis(1), max: Nanos::from_millis(5) };
        for (text, subject) in
            [("{ uniform = [\"1 ms\", \"5 ms\"] }", None), ("A={ uniform = [\"1 ms\", \"5 ms\"] }", Some("A".into()))]
        {
            assert_eq!(text.parse(), Ok(Setting { subject, value: uniform.clone() }));
        }
    }

    #[test]
    fn rates_are_a_second_or_in_a_window() {
        let period = |text: &str| text.parse::<Rate>().map(|rate| rate.period.0);
        assert_eq!(period("30"), Ok(33_333_333));
        assert_eq!(period("7/28ms"), Ok(4_000_000));
        assert_eq!(period("3/2s"), Ok(666_666_667));
        for wrong in ["", "0", "-1", "1/2", "x", "3000000000", "1/0s"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cpus_are_a_set() {
        assert_eq!("3,0-1,1".parse(), Ok(Cpus(vec![0, 1, 3])));
        assert!("all".parse::<Cpus>().is_err());
    }
}
