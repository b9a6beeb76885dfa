//! What `--overheads` says: a published profile, or the file of a measurement.

use std::path::Path;

use laxity_model::{Measurement, OverheadProfile, Scheduler};

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
    /// Reads the file that `text` names, if it does.
    pub fn read(text: &str) -> Result<Overheads, CliError> {
        let Some((path, statistic)) = Measurement::file_of(text) else {
            return Ok(Overheads::Published(text.to_owned()));
        };
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
