//! Workloads from files and from standard input.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use laxity_model::Workload;

use crate::error::CliError;
use crate::output;

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

/// Warns if `workload`, which was read from `file`, has code that is not found from the folder of `out`, to which it was written.
pub fn warn_of_moved_code(workload: &Workload, file: &Path, out: &Path) {
    let folder = |path: &Path| {
        fs::canonicalize(path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."))).ok()
    };
    let nodes = workload.graphs.iter().flat_map(|graph| &graph.nodes).map(|node| &node.run);
    let has_code = workload.tasks.iter().map(|task| &task.run).chain(nodes).any(Option::is_some);
    if has_code && folder(out) != folder(file) {
        output::warning(format_args!(
            "{}: paths of code start at the folder of the file; move it beside {}",
            out.display(),
            name(file)
        ));
    }
}

/// Opens `path`; `-` is standard input. No output replaces that file from now on.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.as_os_str() == "-" {
        #[cfg(unix)]
        remember(&File::from(std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?).metadata()?, STDIN);
        return Ok(Box::new(io::stdin().lock()));
    }
    let file = File::open(path)?;
    remember(&file.metadata()?, &name(path));
    Ok(Box::new(file))
}

/// What this process reads: an output that replaced one of these files would destroy what it was made of. Every verb writes
/// files by `OutputFile`, which asks.
static INPUTS: Mutex<Vec<(FileId, String)>> = Mutex::new(Vec::new());

/// The device and the inode, which are those of all names of a file.
type FileId = (u64, u64);

/// Notes that the file of `metadata`, which is called `name`, is read.
pub fn remember(metadata: &Metadata, name: &str) {
    if let Some(file) = identity(metadata) {
        INPUTS.lock().unwrap_or_else(PoisonError::into_inner).push((file, name.to_owned()));
    }
}

/// What the file of `metadata` was called when it was read, if it was.
pub fn read_as(metadata: &Metadata) -> Option<String> {
    let file = identity(metadata)?;
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    inputs.iter().find(|(input, _)| *input == file).map(|(_, name)| name.clone())
}

/// Nothing of pipes and devices, which lose nothing.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<FileId> {
    None
}

/// The text in `path`; `-` is standard input.
pub fn text(path: &Path) -> Result<String, CliError> {
    let name = name(path);
    let bytes = open(path).and_then(|mut source| {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = bytes.map_err(|source| CliError::Read { file: name.clone(), source })?;
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        CliError::NotText { file: name.clone(), line: 1 + sound.iter().filter(|&&byte| byte == b'\n').count() }
    })
}
