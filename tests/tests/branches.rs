//! Branches of a graph that execute side by side: what `check` proves of them is what the simulator does, where they share a CPU, a
//! lock or a GPU, and where they share nothing.

use laxity_model::{Instant, Nanos, Workload};
use laxity_tests::judge::checked;
use laxity_tests::simulate;
use laxity_trace::metrics::measure;

/// A source of 1 ms and so many branches of 10 ms, on so many CPUs; nothing costs time beside.
fn fork(cpus: usize, branches: usize, body: &str) -> Workload {
    let nodes = (0..branches).map(|branch| format!("{{ name = \"n{branch}\", body = [{body}] }},\n"));
    let edges = (0..branches).map(|branch| format!("\"source -> n{branch}\", "));
    let text = format!(
        r#"
laxity = 1
name = "fork"
scheduler = "G-EDF"
[platform]
cpus = {cpus}
overheads = "none"
[[platform.gpu]]
name = "gpu"
bandwidth = "1 GB/s"
[[resource]]
name = "shared"
[[graph]]
name = "g"
edge = [{}]
node = [
    {{ name = "source", period = "100 ms", wcet = "1 ms" }},
{}]
"#,
        edges.collect::<String>(),
        nodes.collect::<String>(),
    );
    Workload::from_toml(&text, "fork.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// The end-to-end latency of the graph: proven, and simulated.
fn latencies(workload: &Workload) -> (Nanos, Nanos) {
    let scheduler = &workload.scheduler;
    let proven = checked(workload, scheduler).graphs[0].end_to_end.expect("a bound");
    let end = Instant(10_000_000_000);
    let (header, records) = simulate(workload, scheduler, end, 0);
    let simulated = measure(&header, &records, end).graphs[0].end_to_end.expect("instances are complete").max;
    (proven, simulated)
}

const CPU: &str = r#"{ cpu = "10 ms" }"#;

#[test]
fn branches_that_share_nothing_take_as_long_as_one() {
    let ms = Nanos::from_millis;
    assert_eq!(latencies(&fork(3, 2, CPU)), (ms(11), ms(11)));
    assert_eq!(latencies(&fork(4, 2, r#"{ suspend = "9 ms" }, { cpu = "1 ms" }"#)), (ms(11), ms(11)));
}

#[test]
fn branches_without_a_cpu_each_wait_for_one_another() {
    let ms = Nanos::from_millis;
    assert_eq!(latencies(&fork(1, 2, CPU)), (ms(21), ms(21)));
    assert_eq!(latencies(&fork(2, 3, CPU)), (ms(21), ms(21)));
}

#[test]
fn branches_that_share_a_lock_or_a_gpu_take_turns() {
    let ms = Nanos::from_millis;
    let executes = r#"{ critical = "shared", body = [{ cpu = "10 ms" }] }"#;
    let suspends = r#"{ critical = "shared", body = [{ suspend = "9 ms" }, { cpu = "1 ms" }] }"#;
    for body in [executes, suspends] {
        assert_eq!(latencies(&fork(4, 2, body)), (ms(21), ms(21)), "{body}");
    }
    // The last of the first one is beside the other's kernel.
    let on_the_gpu = r#"{ kernel = "9 ms" }, { cpu = "1 ms" }"#;
    assert_eq!(latencies(&fork(4, 2, on_the_gpu)), (ms(20), ms(20)));
}
