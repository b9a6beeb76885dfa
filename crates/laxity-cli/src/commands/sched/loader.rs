//! The program that loads the scheduler into the kernel: it alone needs libbpf, and rights.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use laxity_scx::{Check, Functions};

/// Its name, beside the command.
const NAME: &str = "laxity-scheduler";

/// Where it is.
///
/// # Errors
/// Text, if it is not there.
pub fn path() -> Result<PathBuf, String> {
    let loader = env::current_exe().map(|program| program.with_file_name(NAME));
    let loader = loader.map_err(|error| format!("this program cannot be found: {error}"))?;
    if loader.exists() { Ok(loader) } else { Err(format!("{} is not there", loader.display())) }
}

/// Whether it is there, and whether the kernel has the functions that the scheduler calls, which only the loader can see.
pub fn checks() -> Vec<Check> {
    let loader = match path() {
        Ok(loader) => loader,
        Err(found) => return vec![lacks(found, BUILD)],
    };
    let has = Check { name: "loader", holds: true, found: "there".to_owned(), remedy: None };
    let said = Command::new(&loader).arg("functions").output();
    let answer = said.map_err(|error| error.to_string()).and_then(|output| {
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
        }
        serde_json::from_slice::<Functions>(&output.stdout).map_err(|error| format!("it answers none of it: {error}"))
    });
    match answer {
        Ok(functions) => vec![has, functions.check()],
        Err(reason) => vec![lacks(format!("{}: {reason}", loader.display()), BUILD)],
    }
}

const BUILD: &str = "`make scheduler` builds it";

fn lacks(found: String, remedy: &'static str) -> Check {
    Check { name: "loader", holds: false, found, remedy: Some(remedy) }
}
