//! A place of a test of a layer, that of OpenCL or that of CUDA: an arbitration, what programs logged there, and what they
//! reported. The layer's own support module has its name, and puts it between a program and its driver.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use laxity_gpu::{Arbitration, Base, Config, Registry};
use laxity_interpose::trace::Logs;
use laxity_interpose::{Report, ReportState};
use laxity_model::{CopyDirection, EngineOrder, GpuArbitration, GpuSync, LockId};
use laxity_testing::{Directory, until};
use laxity_trace::{Event, Record, TraceHeader, check};

use super::{NAME, put_layer};

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
        let directory = Directory::new(&format!("{NAME}-{test}-{number}"));
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
        put_layer(command);
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

    /// A client that wants the GPU as soon as it is free takes all of it, and is the only one that is left.
    pub fn passes_to_the_next(&self, start: impl FnOnce()) {
        let client = self.arbitration.register("next", Base::Fixed(5)).expect("room");
        start();
        let token = client.token().expect("whole");
        drop(token.execute_engine().expect("whole"));
        drop(token.copy_engine(CopyDirection::In).expect("whole"));
        drop(token);
        until("no other client is left", || {
            self.arbitration.snapshot().expect("whole").clients.iter().all(|client| client.name == "next")
        });
    }

    /// A program that says a line when it has begun is killed after `wait_ms` more, while it holds the engine; the next
    /// client gets that.
    pub fn kill_while_it_holds(&self, command: &mut Command, wait_ms: u64) {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it says");
        assert_eq!(line, "begun\n");
        thread::sleep(Duration::from_millis(wait_ms));
        let look = || self.arbitration.snapshot().expect("whole");
        until("it holds the engine", || look().engines[0][0].is_held());
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        let client = self.arbitration.register("next", Base::Fixed(5)).expect("room");
        drop(client.token().expect("whole").execute_engine().expect("whole"));
    }

    /// Starts programs one after the other while the GPU is taken, each with its priority, and answers in which order they
    /// got it.
    pub fn order_of_grants(&self, priorities: &[&str], command: impl Fn() -> Command) -> Vec<usize> {
        let client = self.arbitration.register("holder", Base::Fixed(99)).expect("room");
        let token = client.token().expect("free");
        let mut children: Vec<Child> = Vec::new();
        for (number, priority) in priorities.iter().enumerate() {
            let mut command = command();
            self.arbitrate(&mut command, &[("priority", priority)]).stdout(Stdio::null());
            children.push(command.spawn().expect("it starts"));
            until("the next program waits", || {
                self.arbitration.snapshot().expect("whole").tokens.waiting.len() == number + 1
            });
        }
        drop(token);
        for child in &mut children {
            assert!(child.wait().expect("it is ours").success());
        }
        // The trace does not know why the programs waited at first: it has no holder for that time.
        let (header, records) = self.trace_of_programs();
        let process = |task: &str| {
            children.iter().position(|child| task.ends_with(&format!("({})", child.id()))).expect("one of them")
        };
        let mut order = Vec::new();
        for record in records {
            if let Event::Grant { job, lock: LockId(0), .. } = record.event {
                let number = process(&header.tasks[job.task.index()].name);
                if !order.contains(&number) {
                    order.push(number);
                }
            }
        }
        order
    }
}
