//! The library as installed, and programs that are built against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// The output of `make capi`, of the dev profile.
pub static PREFIX: LazyLock<PathBuf> = LazyLock::new(|| {
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    let mut install = Command::new(root().join("scripts/capi.sh"));
    install.arg(&prefix).arg("dev");
    // The target folder of this test.
    install.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder"));
    run(&mut install);
    prefix
});

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("capi/ has a parent")
}

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

/// Its output, if it succeeds.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// As text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
