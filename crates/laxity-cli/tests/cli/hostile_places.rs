//! Places where other processes may have left hostile names: shared memory, logs of programs, and a machine's /proc and /sys.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use laxity_gpu::{Base, MobileClient};
use laxity_graph::Spec;
use laxity_interpose::log::{Arbitration, Line};
use laxity_model::{Engine, Graph, Nanos, Node};
use laxity_sched::{BeginError, Parameters};
use laxity_testing::{Directory, skip};

use crate::gpu_irq;
use crate::hostile::HOSTILE;

/// What is written over names that were checked: as long as a name can be that all of these places take.
const WRITTEN: &str = "\u{1b}[5mblink\r\u{9b}x";

/// The places. Names that this process has in them stay until it ends.
pub struct Places {
    /// A graph `g`, an arbitration `a` and a system `s` with hostile names in them, and copies with hostile names of their own.
    pub memory: Directory,
    /// What looks like a machine with a GPU.
    pub root: Directory,
    /// Of a program under an arbitration.
    pub log: Directory,
}

impl Places {
    pub fn new() -> Places {
        let [memory, root, log] = ["memory", "root", "log"].map(|part| Directory::new(&format!("hostile-{part}")));
        fill_memory(memory.path());
        fill_root(root.path());
        fill_log(log.path());
        Places { memory, root, log }
    }
}

/// Another process of the user writes them there after they were checked.
fn fill_memory(folder: &Path) {
    let checked = "n".repeat(WRITTEN.len());
    let node = Node::new(checked.clone(), Some(Nanos::from_millis(10)));
    let spec = Spec::new(Graph::new("g", vec![node], Vec::new())).expect("a graph that can be");
    let graph = laxity_graph::Registry::at(folder).create(&spec).expect("the name is free");
    std::mem::forget(graph.claim(&checked).expect("it is free"));
    let gpus = laxity_gpu::Registry::at(folder).create("a", &laxity_gpu::Config::new(2, 1)).expect("the name is free");
    let client = gpus.register(&checked, Base::Background).expect("there is room");
    let mut client = MobileClient::new(client, Base::Background);
    client.protect(Some(64_000_000));
    client.say(&checked);
    assert!(client.take_if_free(0, Engine::Execution), "it is free");
    let config = laxity_sched::Config::global_edf([0]);
    let system = laxity_sched::Registry::at(folder).create("s", &config).expect("the name is free");
    let names = match system.begin(Parameters::periodic(&checked, Nanos::from_secs(1))) {
        Ok(task) => {
            std::mem::forget(task);
            3
        }
        Err(error @ BeginError::Refused { .. }) => {
            skip(format_args!("no task of a system has a hostile name: {error}"));
            2
        }
        Err(error) => panic!("{error}"),
    };
    let found = overwrite(folder, checked.as_bytes(), WRITTEN.as_bytes());
    assert!(found > names, "one of a node, two of a client, one of a task: {found}");
    for entry in fs::read_dir(folder).expect("it is there").collect::<Vec<_>>() {
        let path = entry.expect("an entry").path();
        fs::copy(&path, format!("{}{HOSTILE}", path.display())).expect("writable");
    }
    std::mem::forget((client, graph, gpus, system));
}

/// Writes `new` over each `old`, which is as long, in every file of `folder`. Answers how many there were.
fn overwrite(folder: &Path, old: &[u8], new: &[u8]) -> usize {
    assert_eq!(old.len(), new.len());
    let mut found = 0;
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).expect("ours");
        let file = OpenOptions::new().write(true).open(&path).expect("ours");
        for at in (0..bytes.len().saturating_sub(old.len())).filter(|&at| bytes[at..].starts_with(old)) {
            file.write_all_at(new, at as u64).expect("ours");
            found += 1;
        }
    }
    found
}

/// Threads may give themselves any name.
fn fill_root(root: &Path) {
    gpu_irq::machine(root);
    for (thread, name) in [(77, format!("irq/131-{WRITTEN}")), (78, format!("nv_{WRITTEN}"))] {
        fs::write(root.join(format!("proc/{thread}/comm")), format!("{name}\n")).expect("written");
    }
    fs::write(root.join("proc/sys/kernel/osrelease"), format!("6.1.0{HOSTILE}\n")).expect("written");
    fs::create_dir_all(root.join("proc/irq/131").join(WRITTEN)).expect("made");
}

/// A program that was started by any name, and names its streams and operations as it likes.
fn fill_log(folder: &Path) {
    let named = |name: &str| format!("{name}{HOSTILE}");
    let arbitration =
        Arbitration { name: named("a"), cpus: 1, gpus: 1, copy_engines: 1, tokens: 1, by_priority: false };
    let lines = [
        Line::Program { program: named("p"), pid: 7, front: named("f"), arbitration },
        Line::Stream { stream: 0, name: named("s"), gpu: 0, period: None },
        Line::Begins { at: 1000, stream: 0, job: 0, deadline: None, level: 1 },
        Line::Requests { at: 1100, stream: 0, job: 0, engine: 0 },
        Line::Granted { at: 1200, stream: 0, token: 0 },
        Line::Opens { at: 1300, stream: 0, operation: 0, label: Some(named("o")) },
        Line::Complete { at: 1400, stream: 0, operation: 0 },
        Line::Unlocks { at: 1500, stream: 0 },
        Line::Releases { at: 1600, stream: 0 },
        Line::Ends { at: 1700, stream: 0, job: 0 },
    ];
    let line = |line: &Line| serde_json::to_string(line).expect("it can be written") + "\n";
    fs::write(folder.join("p-7.jsonl"), lines.iter().map(line).collect::<String>()).expect("written");
}
