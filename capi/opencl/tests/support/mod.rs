//! Programs with the layer and without, under an arbitration that the test has made.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use laxity_gpu::{Arbitration, Config, Registry};
use laxity_interpose::trace::Logs;
use laxity_interpose::{Report, ReportState};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync};
use laxity_testing::Directory;
use laxity_trace::{Event, Record, TraceHeader, check};

/// The name of the arbitration.
pub const NAME: &str = "opencl";

/// The folder of the layer and of what tests build.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The layer, which cargo has built for this test.
pub fn layer() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    // `cargo build` copies it out of `deps`, `cargo test` does not.
    let places = [folder.join("liblaxity_opencl.so"), folder.join("deps/liblaxity_opencl.so")];
    let built = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    places.into_iter().filter(|path| path.exists()).max_by_key(built).expect("cargo builds the library with its tests")
}

/// A place of a test: an arbitration, logs, reports.
pub struct Place {
    directory: Directory,
    pub arbitration: Arbitration,
}

impl Place {
    /// With one GPU, whose engines are granted in that order, its token in the order of requests.
    pub fn new(test: &str, order: EngineOrder) -> Place {
        Place::with(test, GpuSync { engine_order: order, ..GpuSync::DEFAULT })
    }

    /// With one GPU, whose token and engines go to the most urgent.
    pub fn by_priority(test: &str) -> Place {
        Place::with(test, GpuSync { engine_order: EngineOrder::Priority, fifo_length: Some(1), ..GpuSync::DEFAULT })
    }

    fn with(test: &str, sync: GpuSync) -> Place {
        let directory = Directory::new(&format!("opencl-{test}"));
        for folder in ["log", "report"] {
            fs::create_dir(directory.path().join(folder)).expect("a folder");
        }
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, 1) };
        let arbitration = Registry::at(directory.path()).create(NAME, &config).expect("created");
        Place { directory, arbitration }
    }

    /// Has `command` run under the arbitration, with these settings, too.
    pub fn arbitrate<'a>(&self, command: &'a mut Command, settings: &[(&str, &str)]) -> &'a mut Command {
        let path = self.directory.path();
        command.env("OPENCL_LAYERS", layer()).env("LAXITY_GPU_ARBITRATION", NAME).env("LAXITY_GPU_FOLDER", path);
        command.env("LAXITY_GPU_LOG", path.join("log")).env("LAXITY_GPU_REPORT", path.join("report"));
        command.envs(settings.iter().map(|(key, value)| (format!("LAXITY_GPU_{}", key.to_uppercase()), value)))
    }

    /// What the layer reported.
    pub fn reports(&self) -> Vec<Report> {
        let entries =
            fs::read_dir(self.directory.path().join("report")).expect("a folder").map(|entry| entry.expect("one"));
        let texts = entries.map(|entry| fs::read_to_string(entry.path()).expect("a report"));
        texts
            .flat_map(|text| text.lines().map(|line| serde_json::from_str(line).expect("a report")).collect::<Vec<_>>())
            .collect()
    }

    /// Whether the layer attached in so many processes, and said nothing else.
    pub fn assert_attached(&self, processes: usize) {
        let reports = self.reports();
        let count = |state| reports.iter().filter(|report| report.state == state).count();
        assert_eq!(count(ReportState::Attached), processes, "{reports:?}");
        assert_eq!(count(ReportState::Refused) + count(ReportState::Notice), 0, "{reports:?}");
    }

    /// The trace of all programs that ran here. Clients of the test itself are not in it.
    pub fn trace_of_programs(&self) -> (TraceHeader, Vec<Record>) {
        let logs = Logs::read(&self.directory.path().join("log")).expect("logs");
        (logs.header(), logs.records())
    }

    /// The trace of all that ran here, which must be legal.
    pub fn trace(&self) -> (TraceHeader, Vec<Record>) {
        let (header, records) = self.trace_of_programs();
        let report = check::legality(&header, &records, |_| None);
        assert!(report.is_clean(), "{:#?}", report.violations.iter().take(5).collect::<Vec<_>>());
        (header, records)
    }

    /// Whether no lock is held or wanted.
    pub fn is_free(&self) -> bool {
        let look = self.arbitration.snapshot().expect("whole");
        let mut locks = look.engines.iter().flatten().chain([&look.tokens]);
        locks.all(|lock| !lock.is_held() && lock.waiting.is_empty())
    }
}

/// How many operations began on an engine.
pub fn operations(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.event, Event::EngineBegin { .. })).count()
}

/// A program in C, built for the test `name` from `source` in `tests/c`; `None`: there is no OpenCL here, which is noted.
#[track_caller]
pub fn program(name: &str, source: &str) -> Option<PathBuf> {
    build(name, source, &["-lOpenCL", "-lpthread"])
}

/// As [`program`], with these options.
#[track_caller]
pub fn build(name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    if !has_opencl() {
        laxity_testing::skip("no OpenCL device or no headers: run scripts/opencl.sh as root");
        return None;
    }
    let folder = target().join("opencl-tests");
    fs::create_dir_all(&folder).expect("a folder");
    let out = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&out).arg(source).args(options);
    run(&mut compile);
    Some(out)
}

/// Whether programs can be built, and find a device.
pub fn has_opencl() -> bool {
    let headers = Path::new("/usr/include/CL/cl_layer.h").exists();
    let icd = fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut vendors| vendors.next().is_some());
    headers && icd
}

/// `program`, without any layer.
pub fn plain(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("OPENCL_LAYERS").env("POCL_CACHE_DIR", target().join("pocl-cache"));
    fs::create_dir_all(target().join("pocl-cache")).expect("a folder");
    command.stdin(Stdio::null());
    command
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
