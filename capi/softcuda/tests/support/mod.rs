//! Programs on the soft driver; or, where `make test-gpu` runs the tests, on this machine's GPU and its own driver.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, Mutex};

/// The folder of what tests build.
pub fn target() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("softcuda-tests");
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The sources of the soft driver's tests.
pub fn sources() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|folder| folder.join("capi/softcuda").exists());
    root.expect("within the repository").join("capi/softcuda")
}

/// A library of this workspace, which cargo has built for this test.
pub fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    // `cargo build` copies it out of `deps`, `cargo test` does not.
    let places = [folder.join(name), folder.join("deps").join(name)];
    let built = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    places.into_iter().filter(|path| path.exists()).max_by_key(built).expect("cargo builds the library with its tests")
}

/// The soft GPU's server, which is another package's program: built where this test was.
static SERVER: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "laxity-softgpu", "--bin", "laxity-softgpu-server"]);
    run(build.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target));
    target.join("debug/laxity-softgpu-server")
});

/// Whether programs get this machine's GPU, and its maker's driver, instead of soft ones.
pub fn is_real() -> bool {
    std::env::var_os("LAXITY_TEST_GPU").is_some()
}

/// Whether a test of the soft driver is to be left out, which is noted.
#[track_caller]
pub fn needs_soft_driver() -> bool {
    if is_real() {
        laxity_testing::skip("it is about the soft driver, and this run is on a real GPU");
    }
    is_real()
}

/// A folder with the driver under the name that programs look for.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| if is_real() { real_driver() } else { soft_driver() });

/// Where the dynamic linker finds the driver.
fn real_driver() -> PathBuf {
    let ldconfig = String::from_utf8_lossy(&run(Command::new("/sbin/ldconfig").arg("-p")).stdout).into_owned();
    let paths = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let searched = paths.split(':').map(PathBuf::from);
    let cached = ldconfig.lines().filter_map(|line| line.split_once(" => ").map(|(_, path)| Path::new(path)));
    let mut folders = searched.chain(cached.filter_map(Path::parent).map(Path::to_owned));
    folders.find(|folder| folder.join("libcuda.so.1").exists()).expect("libcuda.so.1 is installed")
}

fn soft_driver() -> PathBuf {
    let folder = target().join(format!("driver-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join("libcuda.so.1");
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(built("liblaxity_softcuda.so"), link).expect("a link");
    folder
}

/// The kernels of the tests.
static KERNELS: LazyLock<PathBuf> =
    LazyLock::new(|| compile("kernels.so", &sources().join("tests/c/kernels.c"), &["-shared", "-fPIC"]));

/// How a program reaches the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is linked to libcuda.so.1.
    Linked,
    /// By dlopen and dlsym.
    Dlsym,
    /// By cuGetProcAddress, as the static runtime.
    ProcAddress,
    /// As above, and each thread has a default stream of its own.
    PerThread,
}

impl Reach {
    /// Those that share a default stream.
    pub const ALL: [Reach; 3] = [Reach::Linked, Reach::Dlsym, Reach::ProcAddress];
}

/// A program in C that reaches the driver so.
pub fn program(name: &str, source: &Path, reach: Reach) -> PathBuf {
    let library = format!("-L{}", DRIVER.display());
    let options: &[&str] = match reach {
        Reach::Linked => &["-DLINKED", &library, "-l:libcuda.so.1"],
        Reach::Dlsym => &["-DBY_DLSYM"],
        Reach::ProcAddress => &[],
        Reach::PerThread => &["-DDEFAULT_STREAM=2"],
    };
    compile(&format!("{name}-{reach:?}"), source, options)
}

/// A program of the soft driver's tests.
pub fn own_program(name: &str, reach: Reach) -> PathBuf {
    program(name, &sources().join("tests/c").join(format!("{name}.c")), reach)
}

/// A program in C.
pub fn compile(name: &str, source: &Path, options: &[&str]) -> PathBuf {
    // One at a time, and each once: a program that runs cannot be written.
    static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().expect("no panic");
    if let Some(out) = built.get(name) {
        return out.clone();
    }
    let out = target().join(format!("{}-{name}", std::process::id()));
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread"]);
    compile.arg("-I").arg(sources().join("include")).arg("-I").arg(sources().join("tests/c"));
    compile.arg(format!("-DKERNELS_PTX=\"{}\"", sources().join("tests/c/kernels.ptx").display()));
    compile.arg("-o").arg(&out).arg(source).args(options);
    run(&mut compile);
    built.insert(name.to_owned(), out.clone());
    out
}

/// Has `command` find the soft driver, whose devices only this test has.
pub fn on_soft<'a>(command: &'a mut Command, test: &str) -> &'a mut Command {
    command.env("LD_LIBRARY_PATH", &*DRIVER).env("LAXITY_SOFTGPU_SERVER", &*SERVER);
    command.env("LAXITY_SOFTCUDA_NAME", format!("t{}-{test}-", std::process::id()));
    command.env("LAXITY_SOFTCUDA_KERNELS", &*KERNELS).env("LAXITY_SOFTCUDA_TIMES", "timed=20ms");
    command.stdin(Stdio::null())
}

/// Has `command` find the driver of this run.
pub fn on_driver<'a>(command: &'a mut Command, test: &str) -> &'a mut Command {
    if is_real() { command.stdin(Stdio::null()) } else { on_soft(command, test) }
}

/// A Python that has CUDA's official bindings: that of the repository's virtual environment, or the variable's.
/// `None`: there is none, which is noted.
#[track_caller]
pub fn python() -> Option<PathBuf> {
    let own = sources().join("../../.venv/bin/python");
    let python = std::env::var_os("LAXITY_CUDA_PYTHON").map_or(own, PathBuf::from);
    let mut import = Command::new(&python);
    let has = import.args(["-c", "import cuda.bindings, numpy"]).stderr(Stdio::null()).status();
    if has.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    laxity_testing::skip("no Python with cuda-bindings and numpy: run `make venv`, or name one in LAXITY_CUDA_PYTHON");
    None
}

/// The script of the bindings.
pub fn bindings() -> PathBuf {
    sources().join("tests/python/bindings.py")
}

/// Its output, if it succeeds.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// What it prints, if it succeeds.
#[track_caller]
pub fn said(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command).stdout).into_owned()
}
