//! Data objects of graphs and their replicas.

use laxity_model::{DataObject, ErrorKind, Replicas, Workload};

use crate::examples::example;
use crate::validation::breaks_in;

use ErrorKind::{BadValue, Contradiction, Duplicate, UnknownName};

#[track_caller]
fn breaks(kind: ErrorKind, path: &str, words: &str, change: impl FnOnce(&mut Workload)) {
    breaks_in("gpu_pool.toml", kind, path, words, change);
}

#[test]
fn objects_name_their_nodes_in_the_order_of_access() {
    let graph = example("gpu_pool.toml").graphs.remove(0);
    let object = |name: &str, accessors: &[usize], delay| DataObject {
        name: name.to_owned(),
        accessors: accessors.to_vec(),
        delay,
    };
    assert_eq!(graph.objects, [object("frame", &[0, 1, 2], 0), object("history", &[2, 3], 2)]);
}

#[test]
fn replicas_are_counted_computed_or_absent() {
    let read = |replicas: &str| {
        let text =
            include_str!("../../../../examples/workloads/gpu_pool.toml").replace("replicas = \"auto\"", replicas);
        Workload::from_toml(&text, "f.toml").map(|workload| workload.graphs[0].replicas)
    };
    assert_eq!(read("replicas = \"auto\""), Ok(Replicas::Auto));
    assert_eq!(read("replicas = 3"), Ok(Replicas::Count(3)));
    assert_eq!(read(""), Ok(Replicas::None));
    let error = read("replicas = \"atuo\"").expect_err("a slip").to_string();
    assert!(error.ends_with("`replicas` is the unknown word \"atuo\"; did you mean `auto`?"), "{error}");
    let error = read("replicas = true").expect_err("no number").to_string();
    assert!(error.ends_with("`replicas` is `true`; write their number, as in 3, or \"auto\""), "{error}");
}

/// camera (0) leads to detect (1) and flow (2), both to fuse (3).
#[test]
fn objects_are_sound() {
    let at = |rest: &str| format!("graph[0].object[0].{rest}");
    let frame =
        |accessors: &'static [usize]| move |w: &mut Workload| w.graphs[0].objects[0].accessors = accessors.to_vec();
    breaks(BadValue, &at("nodes"), "empty", frame(&[]));
    breaks(UnknownName, &at("nodes[1]"), "no node 4: the graph has 4", frame(&[0, 4]));
    breaks(Duplicate, &at("nodes[2]"), "\"camera\" is listed twice", frame(&[0, 1, 0]));
    breaks(Contradiction, &at("nodes[1]"), "\"camera\" is listed after \"fuse\"", frame(&[3, 0]));
    breaks(Duplicate, "graph[0].object[1].name", "graph[0].object[0]", |w| {
        w.graphs[0].objects[1].name = "frame".to_owned();
    });
    let mut workload = example("gpu_pool.toml");
    frame(&[2, 1])(&mut workload);
    assert_eq!(workload.validate(), Ok(()), "neither waits for the other");
}

/// Jobs of equal index share one.
#[test]
fn replicas_need_edges_over_which_jobs_of_equal_index_meet() {
    let at = |key: &str| format!("graph[0].edge[0].{key}");
    let sharing = "jobs of equal index share a replica";
    breaks(Contradiction, &at("threshold"), sharing, |w| w.graphs[0].edges[0].threshold = 2);
    breaks(Contradiction, &at("initial"), "2 initial tokens and a delay of 1", |w| {
        (w.graphs[0].edges[0].initial, w.graphs[0].edges[0].delay) = (2, 1);
    });
    let mut workload = example("gpu_pool.toml");
    (workload.graphs[0].edges[0].initial, workload.graphs[0].edges[0].delay) = (2, 2);
    assert_eq!(workload.validate(), Ok(()));
    (workload.graphs[0].edges[0].threshold, workload.graphs[0].replicas) = (2, Replicas::None);
    assert_eq!(workload.validate(), Ok(()), "each graph has its data once, and jobs may meet as they like");
}

#[test]
fn replicas_need_objects() {
    breaks(BadValue, "graph[0].replicas", "at least 1", |w| w.graphs[0].replicas = Replicas::Count(0));
    breaks(Contradiction, "graph[0].replicas", "no object to replicate", |w| w.graphs[0].objects.clear());
}
