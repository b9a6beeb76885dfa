//! Programs that are linked with the library as installed.

use std::path::Path;
use std::process::Command;

use crate::support::{PREFIX, stdout};

/// The options that pkg-config gives for the installation; both must be the same.
pub fn libraries() -> Vec<String> {
    let expected = vec![flag("-L", "lib"), "-llaxity".to_owned()];
    let mut ask = Command::new("pkg-config");
    ask.args(["--libs", "laxity"]).env("PKG_CONFIG_PATH", PREFIX.join("lib/pkgconfig"));
    if let Ok(output) = ask.output() {
        assert_eq!(stdout(&output).split_whitespace().collect::<Vec<_>>(), expected);
    }
    expected
}

/// An option with the path of a folder of the installation.
pub fn flag(letter: &str, folder: &str) -> String {
    format!("{letter}{}", PREFIX.join(folder).display())
}

/// `program`, which finds the shared library.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", PREFIX.join("lib"));
    command.env("LAXITY_SOFTGPU_SERVER", PREFIX.join("bin/laxity-softgpu-server"));
    command
}
