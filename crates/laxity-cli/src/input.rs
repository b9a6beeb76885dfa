//! Workloads from files and from standard input.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use laxity_model::Workload;

use crate::error::CliError;

/// What `-` is called in messages.
const STDIN: &str = "<stdin>";

/// What a workload file is called in messages.
pub fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { STDIN.to_owned() } else { path.display().to_string() }
}

/// Reads and validates the workload in `path`; `-` is standard input.
///
/// The extension says whether it is TOML or JSON; without one, a text that begins with a brace is JSON, as no TOML does.
pub fn workload(path: &Path) -> Result<Workload, CliError> {
    let (name, text) = (name(path), text(path)?);
    let workload =
        if is_json(path, &text) { Workload::from_json(&text, &name) } else { Workload::from_toml(&text, &name) };
    Ok(workload?)
}

/// Whether the workload `text`, which was read from `path`, is JSON.
pub fn is_json(path: &Path, text: &str) -> bool {
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    match extension.as_deref().and_then(|extension| extension.to_str()) {
        Some("json") => true,
        Some("toml") => false,
        _ => text.trim_start().starts_with('{'),
    }
}

/// The text in `path`; `-` is standard input.
pub fn text(path: &Path) -> Result<String, CliError> {
    let name = name(path);
    let bytes = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    let bytes = bytes.map_err(|source| CliError::Read { file: name.clone(), source })?;
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        CliError::NotText { file: name.clone(), line: 1 + sound.iter().filter(|&&byte| byte == b'\n').count() }
    })
}
