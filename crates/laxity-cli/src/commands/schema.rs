//! `laxity schema`: the JSON Schema of workload files.

use crate::error::CliError;
use crate::output::Output;

/// The published schema, also for editors that complete TOML.
const SCHEMA: &str = include_str!("../../../../schema/laxity-workload-1.schema.json");

/// Prints it.
pub fn run(output: &mut Output) -> Result<(), CliError> {
    output.print(SCHEMA)
}
