//! Schedulers on the command line.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use laxity_model::Scheduler;

use crate::suggest::nearest_of;

/// The algorithms that can be named.
pub const ALGORITHMS: [&str; 15] = [
    "G-EDF", "C-EDF", "P-EDF", "G-RM", "C-RM", "P-RM", "G-DM", "C-DM", "P-DM", "G-FP", "C-FP", "P-FP", "G-CFS",
    "C-CFS", "P-CFS",
];
/// What Linux calls one of them.
pub const LINUX_NAME: &str = "SCHED_OTHER";

/// What `--policy` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyChoice {
    /// The nine measured ones of paper 002.
    All,
    /// One, with its name as it was written.
    One {
        /// As written.
        name: String,
        /// What it means.
        scheduler: Scheduler,
    },
}

/// Reads a [`PolicyChoice`], suggests what may have been meant, and tells shells what they can complete.
#[derive(Clone, Debug)]
pub struct PolicyParser;

impl TypedValueParser for PolicyParser {
    type Value = PolicyChoice;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<PolicyChoice, clap::Error> {
        let text = value.to_string_lossy();
        if text == "all" {
            return Ok(PolicyChoice::All);
        }
        text.parse().map(|scheduler| PolicyChoice::One { name: text.to_string(), scheduler }).map_err(|_| {
            let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
            if let Some(argument) = argument {
                error.insert(ContextKind::InvalidArg, ContextValue::String(argument.to_string()));
            }
            error.insert(ContextKind::InvalidValue, ContextValue::String(text.to_string()));
            if let Some(near) = nearest(&text) {
                error.insert(ContextKind::SuggestedValue, ContextValue::String(near));
            }
            let hint = "`laxity policies` lists the algorithms and their realizations".to_owned();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
            error
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            ["all"]
                .into_iter()
                .chain(ALGORITHMS)
                .chain([LINUX_NAME])
                .chain(Scheduler::MEASURED)
                .map(PossibleValue::new),
        ))
    }
}

/// All realization names, in the order of paper 002's letters: queue, invocation, interrupts; staggered ones last.
pub fn realizations() -> Vec<String> {
    let mut names = Vec::new();
    for (stagger, invocations) in [("", &["E", "Q"][..]), ("S-", &["Q"][..])] {
        for queue in ["C", "F", "H"] {
            for invocation in invocations {
                for interrupts in ["m", "1"] {
                    names.push(format!("{stagger}{queue}{invocation}{interrupts}"));
                }
            }
        }
    }
    names
}

/// The name nearest to `text`, if it is near enough to be what was meant.
fn nearest(text: &str) -> Option<String> {
    let (algorithm, realization) = match text.split_once('/') {
        Some((algorithm, realization)) => (Some(algorithm), Some(realization)),
        None => (None, None),
    };
    let algorithms = || ALGORITHMS.iter().chain([&LINUX_NAME]).map(|name| (*name).to_owned());
    match (algorithm, realization) {
        (Some(algorithm), Some(realization)) => {
            let algorithm = nearest_of(algorithm, algorithms())?;
            Some(format!("{algorithm}/{}", nearest_of(realization, realizations())?))
        }
        _ => nearest_of(text, algorithms().chain(realizations()).chain(["all".to_owned()])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_name_is_a_scheduler() {
        for name in ALGORITHMS {
            assert_eq!(name.parse::<Scheduler>().expect(name).algorithm(), name);
        }
        let names = realizations();
        assert_eq!(names.len(), 18);
        for name in &names {
            assert_eq!(name.parse::<Scheduler>().expect(name).realization(), *name);
        }
        assert!(Scheduler::MEASURED.iter().all(|measured| names.iter().any(|name| name == measured)));
    }

    #[test]
    fn a_mistyped_name_finds_the_one_meant() {
        let near = |text| nearest(text);
        assert_eq!(near("GEDF").as_deref(), Some("G-EDF"));
        assert_eq!(near("g-edf").as_deref(), Some("G-EDF"));
        assert_eq!(near("cem").as_deref(), Some("CEm"));
        assert_eq!(near("S-CQn").as_deref(), Some("S-CQm"));
        assert_eq!(near("C-RN/FEm").as_deref(), Some("C-RM/FEm"));
        assert_eq!(near("SCHED_OTHERS").as_deref(), Some("SCHED_OTHER"));
        assert_eq!(near("round-robin"), None);
    }
}
