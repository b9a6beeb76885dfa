//! Linux's real-time schedulers, where this user may have them.

use laxity_runtime::LinuxScheduler;
use laxity_trace::Event;

use crate::harness::{completions, live_by, ms, workload};

/// Tasks, a graph and a GPU under `SCHED_DEADLINE`, on all CPUs that there are.
#[test]
fn deadlines_of_linux_schedule_a_whole_workload() {
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    let name = format!("deadline-{}", std::process::id());
    let workload = workload(&format!(
        r#"
[platform]
cpus = {cpus}
[[platform.gpu]]
name = "gpu0"
bandwidth = "10 MB/s"
[scheduler]
policy = "G-EDF"
[gpu_management]
arbitration = "gpusync"
[[task]]
name = "control"
period = "50 ms"
wcet = "1 ms"
[[task]]
name = "detect"
period = "100 ms"
body = [{{ cpu = "1 ms" }}, {{ kernel = "10 ms" }}, {{ cpu = "1 ms" }}]
[[graph]]
name = "{name}"
edge = ["camera -> show"]
[[graph.node]]
name = "camera"
period = "50 ms"
wcet = "1 ms"
[[graph.node]]
name = "show"
wcet = "1 ms"
"#
    ));
    let Some(records) = live_by(&workload, ms(300), LinuxScheduler::Deadline) else { return };
    let jobs = 6 + 3 + 6 + 6;
    assert!(completions(&records).len() >= jobs, "{}", completions(&records).len());
    let kernels = records.iter().filter(|record| matches!(record.event, Event::EngineEnd { .. })).count();
    assert_eq!(kernels, 3);
}
