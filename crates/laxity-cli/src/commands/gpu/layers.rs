//! The layers between programs and drivers: where they are, how programs get them, and what they report.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use laxity_interpose::{Report, ReportState};

use crate::commands::named::live;
use crate::error::CliError;

/// What programs reach a GPU by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Interface {
    /// OpenCL.
    Opencl,
    /// CUDA.
    Cuda,
}

/// A layer, as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    interface: Interface,
    path: PathBuf,
}

impl Interface {
    fn file(self) -> &'static str {
        match self {
            Interface::Opencl => "liblaxity_opencl.so",
            Interface::Cuda => "liblaxity_cuda.so",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Interface::Opencl => "OpenCL",
            Interface::Cuda => "CUDA",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Interface::Opencl => "--layer",
            Interface::Cuda => "--cuda-layer",
        }
    }

    /// The variables that have a program get its layer, and what stands between two of a list.
    fn variables(self) -> (&'static [&'static str], &'static str) {
        match self {
            Interface::Opencl => (&["OPENCL_LAYERS"], ":"),
            // The dynamic linker asks the one what symbols are bound to, and binds them to the other.
            Interface::Cuda => (&["LD_AUDIT", PRELOAD], ":"),
        }
    }
}

/// The layers that a program gets: those that the options name, which must be there, and those that lie beside this
/// command. Loaders skip one that they cannot load without a word, so having none is an error.
pub fn find(opencl: Option<&Path>, cuda: Option<&Path>, only: Option<Interface>) -> Result<Vec<Layer>, CliError> {
    let wanted = [(Interface::Opencl, opencl), (Interface::Cuda, cuda)];
    let mut found = Vec::new();
    let mut missing = None;
    for (interface, named) in wanted.into_iter().filter(|(interface, _)| only.is_none_or(|only| only == *interface)) {
        match (one(interface, named), named) {
            (Ok(layer), _) => found.push(layer),
            (Err(error), Some(_)) => return Err(error),
            (Err(error), None) => missing = missing.or(Some(error)),
        }
    }
    match missing {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn one(interface: Interface, named: Option<&Path>) -> Result<Layer, CliError> {
    let beside = || {
        let command = env::current_exe().ok()?;
        let folder = command.parent()?;
        let places = [folder.join(interface.file()), folder.join("../lib").join(interface.file())];
        places.into_iter().find(|place| place.is_file())
    };
    let found = named.map(Path::to_owned).or_else(beside);
    let path = found.filter(|path| path.is_file()).and_then(|path| path.canonicalize().ok());
    let path = path.ok_or_else(|| {
        let (name, file, option) = (interface.name(), interface.file(), interface.option());
        let reason = match named {
            Some(named) => format!("{} is no file", named.display()),
            None => format!("{file} is not beside this command"),
        };
        let message = format!("no {name} layer: {reason}; build it, or name it with {option}");
        CliError::Argument { message }
    })?;
    if !is_library(&path) {
        let (name, option) = (interface.name(), interface.option());
        let message = format!(
            "no {name} layer: {} is no shared library; name {} with {option}",
            path.display(),
            interface.file()
        );
        return Err(CliError::Argument { message });
    }
    Ok(Layer { interface, path })
}

/// Whether it is a shared object by its ELF header. A loader skips another file, and the program runs without the layer.
fn is_library(path: &Path) -> bool {
    const DYNAMIC: u8 = 3;
    let mut header = [0; 17];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    // The type, of two bytes, is small: one of them is 0, whichever comes first.
    read.is_ok() && header.starts_with(b"\x7fELF") && [0, DYNAMIC].contains(&header[16])
}

/// The variables that have a program get them, behind what the user has: loaders put later ones on top. A program that
/// announces its jobs finds that function in the layer among the symbols of all libraries, where a loader of layers does not put
/// it.
pub fn environment(layers: &[Layer], announces: bool) -> Vec<(&'static str, OsString)> {
    let mut pairs: BTreeMap<&'static str, OsString> = BTreeMap::new();
    for Layer { interface, path } in layers {
        let (names, between) = interface.variables();
        let preloads = announces && !names.contains(&PRELOAD);
        for name in names.iter().copied().chain(preloads.then_some(PRELOAD)) {
            let before = pairs.remove(name).or_else(|| env::var_os(name));
            pairs.insert(name, joined(before, between, path.as_os_str()));
        }
    }
    pairs.into_iter().collect()
}

const PRELOAD: &str = "LD_PRELOAD";

fn joined(before: Option<OsString>, between: &str, ours: &OsStr) -> OsString {
    let mut list = before.unwrap_or_default();
    if !list.is_empty() {
        list.push(between);
    }
    list.push(ours);
    list
}

/// What the layers said in all processes of the program.
pub fn read(folder: &Path) -> Vec<Report> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>()).collect()
}

/// Whether the program was arbitrated.
pub fn judge(reports: &[Report], program: &str, is_optional: bool) -> Result<(), CliError> {
    let is = |state| move |report: &&Report| report.state == state;
    if let Some(refusal) = reports.iter().find(is(ReportState::Refused)) {
        return Err(live(format_args!("{} ran without arbitration: {}", refusal.program, refusal.text)));
    }
    if reports.iter().any(|report| report.state == ReportState::Attached) || is_optional {
        return Ok(());
    }
    Err(live(match reports.iter().find(is(ReportState::Loaded)) {
        Some(_) => {
            format!("{program} issued nothing to an OpenCL queue: nothing was arbitrated (--optional accepts that)")
        }
        None => format!(
            "{program} ran without a layer: it uses neither CUDA nor OpenCL, is linked to a vendor's OpenCL library instead \
             of a loader that knows OPENCL_LAYERS, or is a static program, for which there is no LD_AUDIT (--optional \
             accepts that)"
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_own_layers_come_before_ours() {
        let ours = OsStr::new("/lib/liblaxity_opencl.so");
        assert_eq!(joined(None, ":", ours), "/lib/liblaxity_opencl.so");
        assert_eq!(joined(Some("theirs.so".into()), ":", ours), "theirs.so:/lib/liblaxity_opencl.so");
    }

    #[test]
    fn a_program_that_announces_jobs_has_all_layers_preloaded() {
        let layer = |interface, path: &str| Layer { interface, path: path.into() };
        let both = [layer(Interface::Opencl, "/lib/o.so"), layer(Interface::Cuda, "/lib/c.so")];
        let value = |announces, name| {
            let list = environment(&both, announces).into_iter().find(|(known, _)| *known == name).expect("set").1;
            list.into_string().expect("plain")
        };
        assert!(value(false, PRELOAD).ends_with("/lib/c.so") && !value(false, PRELOAD).contains("/lib/o.so"));
        assert!(value(true, PRELOAD).ends_with("/lib/o.so:/lib/c.so"));
        assert!(value(true, "LD_AUDIT").ends_with("/lib/c.so") && value(true, "OPENCL_LAYERS").ends_with("/lib/o.so"));
    }

    #[test]
    fn a_layer_that_is_not_there_is_named_with_the_way_out() {
        let error = find(Some(Path::new("/nowhere.so")), None, Some(Interface::Opencl)).expect_err("not there");
        assert!(error.to_string().contains("no OpenCL layer: /nowhere.so is no file"), "{error}");
        let source = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let error = find(Some(source), None, Some(Interface::Opencl)).expect_err("no layer");
        assert!(error.to_string().contains("Cargo.toml is no shared library; name liblaxity_opencl.so"), "{error}");
        let error = find(None, Some(Path::new("/nowhere.so")), Some(Interface::Cuda)).expect_err("not there");
        assert!(error.to_string().contains("build it, or name it with --cuda-layer"), "{error}");
    }
}
