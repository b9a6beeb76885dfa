//! The code that a workload file names.

use std::path::Path;

use laxity_model::{Workload, WorkloadError};
use laxity_runtime::LivePlan;

use crate::error::CliError;
use crate::input;

/// Loads the code that `workload`, which was read from `file`, names, with paths from the folder of the file.
pub fn load(plan: &mut LivePlan, workload: &Workload, file: &Path) -> Result<(), CliError> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let Err(errors) = plan.load_code(folder) else { return Ok(()) };
    // Standard input is read already, and its messages have no lines.
    let text = if file.as_os_str() == "-" { String::new() } else { input::text(file)? };
    let (name, is_json) = (input::name(file), input::is_json(file, &text));
    let lines = errors.into_iter().map(|error| {
        let place = (error.task, error.field);
        WorkloadError::of_own_code(workload, (&text, &name, is_json), place, error.message).to_string()
    });
    Err(CliError::Code { message: lines.collect::<Vec<_>>().join("\n") })
}
