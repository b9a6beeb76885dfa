//! `replicas = "auto"`: the analysis says how many, and the simulator runs with as many.

use std::fs;

use crate::support::{folder, run};

fn chain(arbitration: &str) -> String {
    format!(
        r#"
laxity = 1
name = "chain"
[platform]
cpus = 3
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
[gpu_management]
arbitration = "{arbitration}"
[[graph]]
name = "vision"
replicas = "auto"
object = [{{ name = "image", nodes = ["camera", "track"] }}]
edge = [{{ from = "camera", to = "detect" }}, {{ from = "detect", to = "track" }}]
[[graph.node]]
name = "camera"
period = "10 ms"
wcet = "6 ms"
[[graph.node]]
name = "detect"
body = [{{ cpu = "1 ms" }}, {{ kernel = "2 ms" }}, {{ cpu = "1 ms" }}]
[[graph.node]]
name = "track"
wcet = "2 ms"
"#
    )
}

/// With a CPU each, the nodes take 6 ms, 4 ms and 2 ms at most: the image is in use for 12 ms, more than one period.
#[test]
fn a_graph_has_as_many_replicas_as_the_bounds_ask_for() {
    let folder = folder();
    let file = folder.path().join("chain.toml");
    fs::write(&file, chain("k_fmlp")).expect("it can be written");
    let (code, out, _) = run(["check".as_ref(), file.as_os_str()]);
    assert_eq!(code, 0, "{out}");
    let said = out.lines().find(|line| line.contains("replicas")).unwrap_or_default();
    assert_eq!(said, "graph vision: no job waits for data with 2 replicas");
    let (code, _, err) = run(["simulate".as_ref(), file.as_os_str()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("note: ") && err.contains("has 2 replicas: with those no job waits for one"), "{err}");
}

#[test]
fn without_bounds_it_has_as_many_as_it_is_deep_and_that_is_said() {
    let folder = folder();
    let file = folder.path().join("chain.toml");
    let fair = chain("k_fmlp").replace("[platform]", "scheduler = \"SCHED_OTHER\"\n[platform]");
    fs::write(&file, fair).expect("it can be written");
    let (code, _, err) = run(["simulate".as_ref(), file.as_os_str()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("has 3 replicas, its depth, and jobs may wait for one"), "{err}");
    assert!(err.contains("there is no bound under G-CFS"), "{err}");
}
