//! Programs of the vendor's compiler, unmodified, under arbitration: on the soft driver with a runtime of ours in the place of
//! the shared one, and on a real driver with the vendor's, shared or static. Without the compiler, what it makes of a program
//! is written by hand.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use laxity_model::EngineOrder;
use support::{Place, built, compile, is_real, needs_soft_driver, operations, plain, run, said, sources};

/// A folder with our runtime under the vendor's name.
static RUNTIME: LazyLock<PathBuf> =
    LazyLock::new(|| folder("runtime", "libcudart.so.13", &built("liblaxity_softcudart.so")));

/// The kernels of `program.cu`.
static KERNELS: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = sources().join("../softcudart/tests/c/kernels.c");
    compile("compiled-kernels.so", &source, &["-shared", "-fPIC", "-ffp-contract=off"])
});

/// What `program.cu` prints, whichever runtime, driver and arbitration it has; and then of its device.
const RESULTS: [&str; 11] = [
    "compute 1 1 ",
    "compute 1 1 ",
    "compute 1000 1 ",
    "compute 1000 1 ",
    "compute 100000 1 ",
    "compute 100000 1 ",
    "rows 07070707 07070707 07070707 07070707",
    "order 1 2 20000 1 1",
    "graph 3 12",
    "threads 50 50 50 50",
    "errors cudaErrorInvalidConfiguration 1 0 cudaErrorInvalidDevice cudaErrorInvalidMemcpyDirection \
     cudaErrorMemoryAllocation",
];

/// What it prints of a soft device.
const SOFT_DEVICE: &str = "device 1 Laxity soft GPU 0 8.0 1 1 1 1 1 1 1";

/// A folder with one library under that name.
fn folder(what: &str, name: &str, library: &Path) -> PathBuf {
    let folder = support::target().join(format!("{what}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let link = folder.join(name);
    let _ = fs::remove_file(&link);
    symlink(library, link).expect("a link");
    folder
}

/// `program` with our runtime and the soft devices of `test`, without the layer; or with the vendor's on a real device.
fn on_runtime(program: &Path, test: &str) -> Command {
    let mut command = plain(program, test);
    if is_real() {
        return command;
    }
    let path = command.get_envs().find_map(|(name, value)| (name == "LD_LIBRARY_PATH").then_some(value)).flatten();
    let path = format!("{}:{}", path.expect("the driver's").to_str().expect("text"), RUNTIME.display());
    command.env("LD_LIBRARY_PATH", path).env("LD_BIND_NOW", "1");
    command
}

/// The vendor's compiler: that of the repository's virtual environment, or the variable's, with its folder.
#[track_caller]
fn compiler() -> Option<(PathBuf, PathBuf)> {
    let own = sources().join("../../.venv/bin/python");
    let find = "import pathlib, nvidia.cu13 as m; print(pathlib.Path(list(m.__path__)[0]) / 'bin' / 'nvcc')";
    let asked = Command::new(own).args(["-c", find]).output();
    let found = asked.ok().filter(|output| output.status.success());
    let found = found.map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    let nvcc = std::env::var_os("LAXITY_NVCC").map(PathBuf::from).or(found).filter(|nvcc| nvcc.is_file());
    let Some(nvcc) = nvcc else {
        laxity_testing::skip("no CUDA compiler: run `make test-cuda`, or name its nvcc in LAXITY_NVCC");
        return None;
    };
    let top = nvcc.ancestors().nth(2).expect("bin/nvcc").to_owned();
    Some((nvcc, top))
}

/// `program.cu`, compiled by the vendor's compiler with these options.
fn compiled((nvcc, top): &(PathBuf, PathBuf), name: &str, options: &[&str]) -> PathBuf {
    let out = support::target().join(format!("{}-{name}", std::process::id()));
    let libraries = ["lib", "lib64"].map(|name| top.join(name));
    let runtime = libraries.iter().find(|folder| folder.join("libcudart.so.13").exists()).expect("CUDA 13's runtime");
    // The wheel has no name for linkers.
    let library = folder(&format!("vendor-{name}"), "libcudart.so", &runtime.join("libcudart.so.13"));
    let mut command = Command::new(nvcc);
    command.args(["-std=c++17", "-O1", "-arch=sm_80", "-I"]).arg(top.join("include"));
    command.arg("-L").arg(library).arg("-L").arg(runtime).args(options).arg("-o").arg(&out);
    if is_real() {
        command.arg("-Xlinker").arg(format!("-rpath={}", runtime.display()));
    }
    run(command.arg(sources().join("../softcudart/tests/cu/program.cu")));
    out
}

#[track_caller]
fn assert_results(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), RESULTS.len() + 2, "{text}");
    let device = if is_real() { "device " } else { SOFT_DEVICE };
    for (line, wanted) in lines.iter().zip(RESULTS.into_iter().chain([device])) {
        // The first runtimes of CUDA 13 have another name for the first error.
        let line = line.replace("errors cudaErrorInvalidValue", "errors cudaErrorInvalidConfiguration");
        assert!(line.starts_with(wanted), "{line} instead of {wanted}");
    }
    assert_eq!(lines.last(), Some(&"end"));
}

#[test]
fn what_the_compiler_writes_runs_on_the_runtime_and_computes_the_same_under_arbitration() {
    if needs_soft_driver() {
        return;
    }
    let source = sources().join("../softcudart/tests/c/runtime.c");
    let program = compile("runtime", &source, &[&format!("-L{}", RUNTIME.display()), "-l:libcudart.so.13"]);
    let mut command = on_runtime(&program, "runtime");
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = "errors 0 cudaErrorInvalidDeviceFunction cudaErrorInvalidConfiguration cudaErrorNotSupported 1 \
                  cudaErrorNotSupported 1 0";
    assert_eq!(text, format!("compute affine 10\n{errors}\nend\n"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        told.matches("cudaMemcpyToSymbol is not supported").count(),
        1,
        "what is not supported is named once: {told}"
    );
    assert!(!told.contains("no version information"), "symbols have the vendor's version: {told}");
    let place = Place::new("runtime", EngineOrder::Fifo);
    let settings = [("batch", "1")];
    assert_eq!(said(place.arbitrate(&mut on_runtime(&program, "runtime"), &settings)), text);
    place.assert_attached(1);
    assert!(place.is_free());
    let (_, records) = place.trace();
    // Two of the launches were refused by the driver, when they had their engine.
    assert_eq!(operations(&records), [14, 1, 2], "the launches and the fill; copies in; copies out");
}

#[test]
fn a_program_of_the_vendors_compiler_computes_the_same_under_arbitration() {
    let Some(compiler) = compiler() else { return };
    // On the soft driver the static runtime refuses: see below.
    let runtimes: &[&str] = if is_real() { &["shared", "static"] } else { &["shared"] };
    for (runtime, (stream, tasks)) in
        runtimes.iter().flat_map(|runtime| [("legacy", 3), ("per-thread", 7)].map(|kind| (runtime, kind)))
    {
        let name = &format!("{runtime}-{stream}");
        let options = ["-cudart", runtime, "-default-stream", stream];
        let program = compiled(&compiler, name, &options);
        let command = |test: &str| {
            let mut command = on_runtime(&program, test);
            command.env("LAXITY_SOFTCUDA_KERNELS", &*KERNELS);
            command
        };
        let without = run(&mut command(name));
        let text = String::from_utf8_lossy(&without.stdout).into_owned();
        assert_results(&text);
        assert_eq!(String::from_utf8_lossy(&without.stderr), "", "all that it asks for is there");
        if !is_real() {
            let no_kernels = on_runtime(&program, name).arg("compute").output().expect("it starts");
            let errors = String::from_utf8_lossy(&no_kernels.stderr);
            assert!(errors.contains("kernel _Z6affinePfPKfffj is no soft kernel and has no time"), "{errors}");
            assert!(errors.contains("cudaErrorInvalidDeviceFunction"), "{errors}");
        }
        for settings in [&[("batch", "16")][..], &[("chunk", "64 KiB"), ("token", "job")], &[("wait", "suspend")]] {
            let place = Place::new(name, EngineOrder::Fifo);
            assert_eq!(said(place.arbitrate(&mut command(name), settings)), text, "{name}, {settings:?}");
            place.assert_attached(1);
            assert!(place.is_free(), "{name}");
            let (header, records) = place.trace();
            let [kernels, into, out] = operations(&records);
            // Of operations that were seen complete at once the trace has one.
            assert!(kernels >= 50 && into >= 6 && out >= 12, "{name}: {kernels} {into} {out}");
            assert!(header.tasks.len() >= tasks, "{name}: {:?}", header.tasks);
        }
    }
}

#[test]
fn two_compiled_programs_at_a_time_never_share_an_engine() {
    let Some(compiler) = compiler() else { return };
    let program = compiled(&compiler, "two", &["-cudart", "shared"]);
    let place = Place::by_priority("compiled-two");
    let start = |priority| {
        let mut command = on_runtime(&program, "compiled-two");
        let command = command.env("LAXITY_SOFTCUDA_KERNELS", &*KERNELS).args(["kernels", "30", "2000"]);
        place.arbitrate(command, &[("priority", priority)]).spawn().expect("it starts")
    };
    for mut child in [start("10"), start("50")] {
        assert!(child.wait().expect("it is ours").success());
    }
    let (_, records) = place.trace();
    assert!(operations(&records)[0] >= 60, "{:?}", operations(&records));
    assert!(place.is_free());
}

/// The vendor's static runtime asks its driver for a proof that it is the vendor's. The soft driver has none, and the
/// program is told so by its own runtime: not by a crash, and with the layer as without.
#[test]
fn a_program_with_the_vendors_static_runtime_is_refused_by_that_runtime() {
    if needs_soft_driver() {
        return;
    }
    let Some(compiler) = compiler() else { return };
    let program = compiled(&compiler, "static", &["-cudart", "static"]);
    let command = || {
        let mut command = plain(&program, "static");
        command.env("LAXITY_SOFTCUDA_KERNELS", &*KERNELS).arg("compute");
        command
    };
    let without = command().output().expect("it starts");
    assert_eq!(without.status.code(), Some(3), "{without:?}");
    let place = Place::new("static", EngineOrder::Fifo);
    let with = place.arbitrate(&mut command(), &[]).output().expect("it starts");
    assert_eq!((with.status.code(), &with.stderr), (Some(3), &without.stderr), "{with:?}");
    // Every entry point that it asked for is known: the layer named none.
    assert!(place.is_free());
}
