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

/// The interrupt of a job that is less urgent than the one that computes waits for that, if its thread follows its owner as
/// klmirqd does; one of a high fixed priority does not.
#[test]
fn a_thread_that_follows_its_owner_handles_interrupts_at_the_owners_priority() {
    let once = |handling: &str| {
        let workload = workload(&format!(
            r#"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "10 MB/s"
[scheduler]
policy = "P-FP"
[gpu_management]
arbitration = "k_fmlp"
handling = "{handling}"
[[task]]
name = "computes"
period = "2 s"
phase = "20 ms"
priority = 1
wcet = "200 ms"
[[task]]
name = "waits"
period = "2 s"
priority = 2
body = [{{ cpu = "1 us" }}, {{ kernel = "100 ms" }}, {{ cpu = "1 us" }}]
"#
        ));
        let records = live_by(&workload, ms(500), LinuxScheduler::Fifo)?;
        let position = |wanted: &dyn Fn(Event) -> bool| records.iter().position(|record| wanted(record.event));
        let served = position(&|event| matches!(event, Event::Serve { .. }))?;
        let computed = position(&|event| matches!(event, Event::Complete { job, .. } if job.task.0 == 0))?;
        let begun = position(&|event| matches!(event, Event::Dispatch { job, .. } if job.task.0 == 0))?;
        let ended = position(&|event| matches!(event, Event::EngineEnd { .. }))?;
        if !(begun..computed).contains(&ended) {
            eprintln!("not said: this machine was too busy for a kernel to end while another job computed");
            return None;
        }
        Some(served > computed)
    };
    let handled_late = |handling: &str| (0..4).find_map(|_| once(handling));
    let (Some(followed), Some(fixed)) = (handled_late("klmirqd"), handled_late("preempt_rt_high")) else { return };
    assert!(followed && !fixed, "late if it follows: {followed}; late at a fixed priority: {fixed}");
}
