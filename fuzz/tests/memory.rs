//! Shared memory that another process has damaged: graphs are attached to and used all the same, and
//! arbitrations and systems are looked at.
//!
//! Nothing may panic, hang or touch memory outside the segment. Errors are expected.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use laxity_fuzz::edit;
use laxity_gpu::{Base, Config};
use laxity_graph::{Channel, Spec};
use laxity_model::{Edge, Graph, Nanos, Node};
use laxity_sys::clock::now;
use laxity_testing::TestRegistry;

/// Long enough for what goes on, short enough for thousands of inputs.
const PATIENCE: Nanos = Nanos::from_micros(200);

/// The one file below `folder`.
fn segment(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).expect("the directory is there");
    entries.next().expect("the segment is there").expect("readable").path()
}

/// Applies the edits `input` to the one file below `folder`, in registry.
fn damage(folder: &Path, input: &[u8]) {
    let path = segment(folder);
    let mut bytes = fs::read(&path).expect("readable");
    edit(&mut bytes, input);
    let file = fs::OpenOptions::new().write(true).open(&path).expect("writable");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("writable");
}

/// A source, a node and a sink with rings between them.
fn spec() -> Spec {
    let nodes =
        vec![Node::new("source", Some(Nanos::from_millis(1))), Node::new("node", None), Node::new("sink", None)];
    let graph = Graph::new("g", nodes, vec![Edge::new(0, 1), Edge::new(1, 2)]);
    Spec::with_channels(graph, vec![Channel::Ring { message: 16, capacity: 4 }; 2]).expect("a graph that can be")
}

#[test]
fn graph() {
    let spec = spec();
    bolero::check!().with_iterations(200).for_each(|input: &[u8]| {
        let registry: TestRegistry<laxity_graph::Registry> = TestRegistry::new("fuzz-graph");
        let creator = registry.create(&spec).expect("the name is free");
        damage(registry.as_ref(), input);
        let until = now().saturating_add(PATIENCE);
        let Ok(graph) = registry.attach_until("g", until) else { return };
        for number in 0..graph.spec().graph().nodes.len() {
            let _ = graph.status(number);
        }
        for number in 0..graph.spec().graph().edges.len() {
            let _ = graph.tokens(number);
        }
        for _ in 0..3 {
            let Ok(mut node) = graph.claim_any() else { break };
            if let Ok(mut job) = node.wait_for(PATIENCE) {
                let (inputs, mut outputs) = job.messages();
                for edge in 0..2 {
                    let _ = inputs.get(edge, 0).map(<[u8]>::len);
                    let _ = outputs.get(edge, 0).map(|message| message.fill(1));
                }
                job.complete();
            }
        }
        drop((graph, creator));
    });
}

/// The name and the bytes of the one file below `folder`.
fn whole(folder: &Path) -> (OsString, Vec<u8>) {
    let path = segment(folder);
    (path.file_name().expect("a file has a name").to_owned(), fs::read(&path).expect("readable"))
}

/// A directory of its own with the file `original`, changed by the edits `input`.
///
/// Members are no target: a mutex of the C library that a peer has overwritten ends the process by an assertion of that
/// library, and peers are processes of the same user (decision 33).
fn copy<R: From<PathBuf>>(original: &(OsString, Vec<u8>), input: &[u8]) -> TestRegistry<R> {
    let (name, mut bytes) = original.clone();
    // Tests of one program run side by side, each in directories of its own.
    let copy: TestRegistry<R> = TestRegistry::new(&format!("fuzz-copy-{}", name.display()));
    edit(&mut bytes, input);
    let file = copy.as_ref().join(&name);
    fs::write(&file, bytes).expect("writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    copy
}

/// What watches an arbitration (`laxity gpu list`, `top`) reads memory that it takes no lock of.
#[test]
fn arbitration() {
    let original: TestRegistry<laxity_gpu::Registry> = TestRegistry::new("fuzz-gpus");
    let arbitration = original.create("g", &Config::new(2, 2)).expect("the name is free");
    let client = arbitration.register("first", Base::Background).expect("room");
    let token = client.token().expect("it is free");
    let bytes = whole(original.as_ref());
    bolero::check!().for_each(|input: &[u8]| {
        let copy: TestRegistry<laxity_gpu::Registry> = copy(&bytes, input);
        let _ = copy.look("g");
        let _ = copy.is_in_use("g");
    });
    drop(token);
}

/// What watches a system of the own scheduler (`laxity sched list`, `top`) does so, too.
#[test]
fn system() {
    let original: TestRegistry<laxity_sched::Registry> = TestRegistry::new("fuzz-systems");
    let config = laxity_sched::Config::new(laxity_sched::Rule::Edf, vec![vec![0], vec![1]]);
    let system = original.create("s", &config).expect("the name is free");
    let bytes = whole(original.as_ref());
    bolero::check!().for_each(|input: &[u8]| {
        let copy: TestRegistry<laxity_sched::Registry> = copy(&bytes, input);
        let _ = copy.look("s");
        let _ = copy.is_in_use("s");
    });
    drop(system);
}
