//! What `--overheads` says: a published profile, or the file of a measurement.

use std::path::Path;

use laxity_model::{Measurement, OverheadProfile, Scheduler, Statistic};

use crate::error::CliError;
use crate::input;

/// Overheads that are named on a command line.
pub enum Overheads {
    /// A published profile, or a family of them, in which each scheduler has its own.
    Published(String),
    /// The same for all.
    Measured(Box<OverheadProfile>),
}

impl Overheads {
    /// Reads the file that `text` names, if it does: `profile.toml`, `profile.toml:worst`, `profile.toml:average`. What
    /// is published has neither a dot nor a slash in its name.
    pub fn read(text: &str) -> Result<Overheads, CliError> {
        let (path, statistic) = split(text);
        if !path.contains(['.', '/']) {
            return Ok(Overheads::Published(text.to_owned()));
        }
        let path = Path::new(path);
        let measurement = Measurement::from_text(&input::text(path)?, &input::name(path))?;
        Ok(Overheads::Measured(Box::new(measurement.profile(statistic).clone())))
    }

    /// Those that `scheduler` is charged.
    pub fn of(&self, scheduler: &Scheduler) -> Result<OverheadProfile, CliError> {
        match self {
            Overheads::Published(name) => Ok(OverheadProfile::named(name, scheduler)?),
            Overheads::Measured(profile) => Ok((**profile).clone()),
        }
    }
}

/// A path and which profile of the file is meant: that of the worst case unless it is said.
fn split(text: &str) -> (&str, Statistic) {
    let said = |statistic: Statistic| Some((text.strip_suffix(statistic.name())?.strip_suffix(':')?, statistic));
    said(Statistic::Average).or_else(|| said(Statistic::Worst)).unwrap_or((text, Statistic::Worst))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_case_of_a_file_is_meant_unless_it_says_otherwise() {
        assert_eq!(split("a/b.toml"), ("a/b.toml", Statistic::Worst));
        assert_eq!(split("b.toml:worst"), ("b.toml", Statistic::Worst));
        assert_eq!(split("b:c.toml:average"), ("b:c.toml", Statistic::Average));
        assert!(matches!(Overheads::read("brandenburg2009-average"), Ok(Overheads::Published(_))));
    }
}
