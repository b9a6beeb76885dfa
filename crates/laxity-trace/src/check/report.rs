//! What a checker found.

use std::fmt;

use super::Violation;

/// The violations a checker found, in the order in which it found them; of a hopeless trace the first
/// [`Report::LISTED_MAX`] only.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Report {
    /// The violations.
    pub violations: Vec<Violation>,
    /// How many more were found.
    pub unlisted: u64,
}

impl Report {
    /// How many violations a report lists: memory stays bounded however long and wrong a trace is.
    pub const LISTED_MAX: usize = 1_000;

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether every violation is listed.
    pub(super) fn lists_all(&self) -> bool {
        self.unlisted == 0
    }

    /// How many violations were found, listed or not.
    pub fn count(&self) -> u64 {
        self.violations.len() as u64 + self.unlisted
    }

    pub(super) fn push(&mut self, violation: Violation) {
        if self.violations.len() < Self::LISTED_MAX {
            self.violations.push(violation);
        } else {
            self.unlisted += 1;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        match self.unlisted {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}
