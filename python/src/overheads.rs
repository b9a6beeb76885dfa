//! The overheads that an argument names: published ones, or those of a measured machine.

use std::fs;
use std::path::{Path, PathBuf};

use laxity_model::{Measurement, OverheadProfile, Scheduler, Statistic};
use pyo3::prelude::*;

use crate::argument::choice;
use crate::errors::{file_error, value_error, workload_error};

choice! {
    /// What an argument says.
    enum Given: "the name of a profile, or the path of a file that `laxity measure` wrote" {
        Text(String),
        Path(PathBuf),
    }
}

/// Overheads that an argument names.
pub enum Overheads {
    /// A published profile, or a family of them, in which each scheduler has its own.
    Published(String),
    /// The same for all.
    Measured(Box<OverheadProfile>),
}

impl<'py> FromPyObject<'_, 'py> for Overheads {
    type Error = PyErr;

    /// As on the command line.
    fn extract(argument: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = argument.py();
        match argument.extract()? {
            Given::Text(text) => match Measurement::file_of(&text) {
                Some((path, statistic)) => measured(py, Path::new(path), statistic),
                None => Ok(Overheads::Published(text)),
            },
            Given::Path(path) => measured(py, &path, Statistic::Worst),
        }
    }
}

impl Overheads {
    /// Those that `scheduler` is charged.
    pub fn of(&self, scheduler: &Scheduler) -> PyResult<OverheadProfile> {
        match self {
            Overheads::Published(name) => OverheadProfile::named(name, scheduler).map_err(value_error),
            Overheads::Measured(profile) => Ok((**profile).clone()),
        }
    }
}

/// Reads a file that `laxity measure` wrote.
fn measured(py: Python<'_>, path: &Path, statistic: Statistic) -> PyResult<Overheads> {
    let text = fs::read_to_string(path).map_err(|error| file_error(path, error))?;
    let measurement = Measurement::from_text(&text, &path.to_string_lossy());
    let measurement = measurement.map_err(|errors| workload_error(py, errors, true))?;
    Ok(Overheads::Measured(Box::new(measurement.profile(statistic).clone())))
}
