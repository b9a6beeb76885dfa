//! Programs with the layer and without, on the soft driver, under an arbitration that the test has made.
#![allow(dead_code, reason = "each test uses a part")]

#[path = "../../../softcuda/tests/support/mod.rs"]
mod soft;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use laxity_gpu::{Arbitration, Config, Registry};
use laxity_interpose::trace::Logs;
use laxity_interpose::{Report, ReportState};
use laxity_model::{EngineOrder, GpuArbitration, GpuSync};
use laxity_testing::Directory;
use laxity_trace::{Event, Record, TraceHeader, check};

#[allow(unused_imports, reason = "as above")]
pub use soft::{Reach, bindings, python, run, said};

/// The name of the arbitration.
const NAME: &str = "cuda";

/// The program of these tests.
pub fn program(reach: Reach) -> PathBuf {
    soft::program("program", &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/program.c"), reach)
}

/// `program` on the soft devices of `test`, without the layer.
pub fn plain(program: impl AsRef<std::ffi::OsStr>, test: &str) -> Command {
    let mut command = Command::new(program);
    soft::on_soft(&mut command, test);
    command
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
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = Directory::new(&format!("cuda-{test}-{number}"));
        for folder in ["log", "report"] {
            fs::create_dir(directory.path().join(folder)).expect("a folder");
        }
        let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, 1) };
        let arbitration = Registry::at(directory.path()).create(NAME, &config).expect("created");
        Place { directory, arbitration }
    }

    /// Has `command` run under the arbitration, with these settings, too.
    pub fn arbitrate<'a>(&self, command: &'a mut Command, settings: &[(&str, &str)]) -> &'a mut Command {
        let (path, layer) = (self.directory.path(), soft::built("liblaxity_cuda.so"));
        command.env("LD_AUDIT", &layer).env("LD_PRELOAD", &layer);
        command.env("LAXITY_GPU_ARBITRATION", NAME).env("LAXITY_GPU_FOLDER", path);
        command.env("LAXITY_GPU_LOG", path.join("log")).env("LAXITY_GPU_REPORT", path.join("report"));
        command.envs(settings.iter().map(|(key, value)| (format!("LAXITY_GPU_{}", key.to_uppercase()), value)))
    }

    /// What the layer reported.
    pub fn reports(&self) -> Vec<Report> {
        let entries = fs::read_dir(self.directory.path().join("report")).expect("a folder");
        let texts = entries.map(|entry| fs::read_to_string(entry.expect("one").path()).expect("a report"));
        let parse = |text: String| -> Vec<Report> {
            text.lines().map(|line| serde_json::from_str(line).expect("a report")).collect()
        };
        texts.flat_map(parse).collect()
    }

    /// Whether the layer attached in so many processes, and said nothing else.
    #[track_caller]
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
    #[track_caller]
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

/// How many operations began on each engine.
pub fn operations(records: &[Record]) -> [usize; 3] {
    let mut counts = [0; 3];
    for record in records {
        if let Event::EngineBegin { engine, .. } = record.event {
            counts[engine.index()] += 1;
        }
    }
    counts
}
