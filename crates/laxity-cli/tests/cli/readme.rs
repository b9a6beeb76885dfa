//! What the README shows is what the command prints.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{folder, laxity, stdout};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("the README")
}

/// What `readme` shows below `$ COMMAND`, to the end of the block or the next command.
fn shown<'r>(readme: &'r str, command: &str) -> &'r str {
    let line = format!("\n$ {command}\n");
    let start = readme.find(&line).unwrap_or_else(|| panic!("the README shows `{command}`")) + line.len();
    let end = ["```", "$ "].iter().filter_map(|end| readme[start..].find(end)).min().expect("a block ends");
    &readme[start..start + end]
}

/// Runs `laxity COMMAND` in `directory`, with the root's files below it.
pub fn printed(directory: &Path, command: &str) -> String {
    let words = command
        .split(' ')
        .skip(1)
        .map(|word| if word.starts_with("examples/") { root().join(word).into_os_string() } else { word.into() });
    let output = laxity().args(words).current_dir(directory).output().expect("the binary starts");
    assert!(output.status.success(), "{command}: {output:?}");
    stdout(&output)
}

#[test]
fn the_file_in_the_readme_is_the_example() {
    let example = fs::read_to_string(root().join("examples/workloads/camera.toml")).expect("the example");
    let fields = example.split_once("laxity = 1").expect("the version").1;
    assert!(readme().contains(&format!("```toml\nlaxity = 1{fields}```")), "the README shows another file");
}

#[test]
fn the_output_in_the_readme_is_what_the_commands_print() {
    let (readme, folder) = (readme(), folder());
    for command in [
        "laxity check examples/workloads/camera.toml",
        "laxity simulate examples/workloads/camera.toml",
        "laxity simulate examples/workloads/camera.toml --trace sim.lxt --quiet",
        "laxity trace sim.lxt gantt --to 100ms",
    ] {
        assert_eq!(printed(folder.path(), command).trim_end(), shown(&readme, command).trim_end(), "{command}");
    }
}
