//! Vision graphs from C and C++: programs built against the library as it is installed, and run.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// What `make capi` makes, of the dev profile.
static PREFIX: LazyLock<PathBuf> = LazyLock::new(|| {
    let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi-vision");
    let mut install = Command::new(root().join("scripts/capi.sh"));
    install.arg(&prefix).arg("dev");
    // The target folder of this very test, wherever that is.
    install.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder"));
    run(&mut install);
    prefix
});

#[test]
fn a_graph_in_cpp_computes_fails_and_uses_a_gpu() {
    let Some(program) = build("capi/tests/cpp/vx.cpp") else { return };
    let place = Place::new("cpp");
    let server = PREFIX.join("bin/laxity-softgpu-server");
    assert_eq!(stdout(&run(command(&program).arg(&place.0).arg(server))), "ok\n");
    assert!(place.is_empty(), "graphs are gone with their runs");
}

#[test]
fn a_graph_in_c_fails_with_its_own_words() {
    let Some(program) = build("capi/tests/c/vx.c") else { return };
    let place = Place::new("c");
    assert_eq!(stdout(&run(command(&program).arg(&place.0))), "ok\n");
    assert!(place.is_empty(), "graphs are gone with their runs");
}

/// A bar that goes to the right is 2 of 320 pixels wide: where it is and where it was, in 240 rows.
#[test]
fn the_example_sees_what_moves() {
    let Some(program) = build("examples/cpp/motion.cpp") else { return };
    let place = Place::new("motion");
    let said = stdout(&run(command(&program).env("LAXITY_DIRECTORY", &place.0)));
    let expected: Vec<String> = (0..30).map(|frame| if frame < 2 { 480 } else { 960 }.to_string()).collect();
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), expected);
    assert!(place.is_empty(), "graphs are gone with their runs");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("capi/ has a parent")
}

/// The program made of `source`; nothing if there is no compiler, which is said.
fn build(source: &str) -> Option<PathBuf> {
    let source = root().join(source);
    let is_cpp = source.extension() == Some(OsStr::new("cpp"));
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
    if Command::new(compiler).arg("--version").output().is_err() {
        eprintln!("skipped: there is no {compiler}");
        return None;
    }
    let name = source.file_stem().and_then(OsStr::to_str).expect("a name");
    let program = PREFIX.join(format!("{name}-{compiler}"));
    let mut compile = Command::new(compiler);
    compile.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-O1", "-o"]);
    compile.arg(&program).arg(&source).args(flags());
    // Such as -fsanitize=address,undefined.
    compile.args(std::env::var("LAXITY_TEST_CFLAGS").unwrap_or_default().split_whitespace());
    run(compile.arg("-pthread"));
    Some(program)
}

/// What pkg-config answers; the same, where it is not installed.
fn flags() -> Vec<String> {
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs", "laxity"]).env("PKG_CONFIG_PATH", PREFIX.join("lib/pkgconfig"));
    match ask.output() {
        Ok(output) => stdout(&output).split_whitespace().map(str::to_owned).collect(),
        Err(_) => {
            let flag = |letter: &str, folder: &str| format!("{letter}{}", PREFIX.join(folder).display());
            vec![flag("-I", "include"), flag("-L", "lib"), "-llaxity".to_owned()]
        }
    }
}

/// `program`, which finds the shared library.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", PREFIX.join("lib"));
    command
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A directory of shared memory that goes with it.
struct Place(PathBuf);

impl Place {
    fn new(test: &str) -> Place {
        let path = PathBuf::from(format!("/dev/shm/laxity-vision-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("/dev/shm is writable");
        Place(path)
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).expect("it exists").next().is_none()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
