//! GPUs: the same grants simulated and live, engines that are busy one at a time, and nothing left behind.

use laxity_model::{Engine, Instant, JobId, Nanos, Workload};
use laxity_runtime::LinuxScheduler;
use laxity_trace::{Event, Record};

use crate::harness::{completions, live, live_by, lives, ms, replicas, same_live, simulated, workload};

const GPU: &str = r#"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "10 MB/s"
"#;

/// The one token is held while both others come, the more urgent one last: what comes first waits in the FIFO queue of
/// one, whichever comes then in the priority queue.
#[test]
fn a_contended_token_is_granted_in_the_simulated_order() {
    let workload = workload(&format!(
        r#"{GPU}
[scheduler]
policy = "G-FP"
[gpu_management]
arbitration = {{ protocol = "gpusync", fifo_length = 2 }}
[[task]]
name = "holder"
period = "2 s"
priority = 2
body = [{{ cpu = "1 us" }}, {{ kernel = "600 ms" }}]
[[task]]
name = "patient"
period = "2 s"
phase = "100 ms"
priority = 4
body = [{{ cpu = "1 us" }}, {{ kernel = "1 ms" }}, {{ copy_out = "10 kB" }}]
[[task]]
name = "meek"
period = "2 s"
phase = "250 ms"
priority = 3
body = [{{ cpu = "1 us" }}, {{ kernel = "1 ms" }}]
[[task]]
name = "urgent"
period = "2 s"
phase = "400 ms"
priority = 1
body = [{{ cpu = "1 us" }}, {{ kernel = "1 ms" }}]
"#
    ));
    let Some(records) = same_live(&workload, ms(1_500), ms(70), facts) else { return };
    let tokens = replicas(&simulated(&workload, ms(1_500))).into_iter().filter(|(_, lock, _)| lock.0 == 0);
    let order: Vec<u32> = tokens.map(|(job, ..)| job.task.0).collect();
    assert_eq!(order.first(), Some(&0));
    assert_ne!(order, [0, 1, 2, 3], "priorities count somewhere");
    assert_eq!(completions(&records).len(), 2 * 4 + 1, "jobs, and an interrupt for each of their operations");
}

/// A long copy in chunks gives way to more urgent ones between any two, and these go by priority.
#[test]
fn engines_are_granted_by_priority_between_the_chunks_of_a_copy() {
    let workload = workload(&format!(
        r#"{GPU}
[scheduler]
policy = "G-FP"
[gpu_management]
arbitration = {{ protocol = "gpusync", tokens = 3, fifo_requests = 3, engine_order = "priority", chunk = "2 MB" }}
[[task]]
name = "bulk"
period = "3 s"
priority = 3
body = [{{ cpu = "1 us" }}, {{ copy_in = "6 MB" }}]
[[task]]
name = "second"
period = "3 s"
phase = "50 ms"
priority = 2
body = [{{ cpu = "1 us" }}, {{ copy_in = "1 MB" }}]
[[task]]
name = "first"
period = "3 s"
phase = "125 ms"
priority = 1
body = [{{ cpu = "1 us" }}, {{ copy_in = "1 MB" }}]
"#
    ));
    let Some(records) = same_live(&workload, ms(1_500), ms(35), facts) else { return };
    let copies: Vec<u32> = engine(&records, Engine::Copy(0)).map(|(job, ..)| job.task.0).collect();
    assert_eq!(copies, [0, 2, 1, 0, 0]);
    assert!(engine(&records, Engine::Copy(0)).all(|(_, span)| span >= ms(100)));
}

/// Kernels take no CPU: two tasks of one CPU overlap on two GPUs, without arbitration and with operations that are not
/// waited for at once.
#[test]
fn the_drivers_order_and_asynchronous_operations_leave_legal_traces_on_several_gpus() {
    let text = |arbitration: &str| {
        format!(
            r#"{GPU}
[[platform.gpu]]
name = "gpu1"
bandwidth = "10 MB/s"
[gpu_management]
arbitration = "{arbitration}"
[[task]]
name = "one"
period = "40 ms"
body = [{{ cpu = "1 ms" }}, {{ copy_in = "20 kB", asynchronous = true }}, {{ kernel = "5 ms" }}, {{ cpu = "1 ms" }}]
[[task]]
name = "two"
period = "50 ms"
body = [{{ cpu = "1 ms" }}, {{ kernel = "5 ms", asynchronous = true }}, {{ cpu = "1 ms" }}, {{ copy_out = "30 kB" }}]
"#
        )
    };
    for arbitration in ["driver", "driver_spinning", "k_fmlp", "gpusync"] {
        let workload = workload(&text(arbitration));
        let records = live(&workload, ms(200));
        let (ended, begun) = (ends(&records), engines_begun(&records));
        assert!(ended == begun && ended == 2 * (5 + 4), "{arbitration}: {ended} of {begun}");
        let served = records.iter().filter(|record| matches!(record.event, Event::Serve { job: Some(_), .. }));
        assert!(served.count() >= ended - 1, "{arbitration}: the owner of each interrupt is known");
    }
}

/// The three are released together again and again. The least urgent issues its operation then, is preempted, and has what the
/// thread needs that handles interrupts: for the others, which spin on both CPUs until it does.
#[test]
fn jobs_that_spin_do_not_wait_for_one_that_they_preempted() {
    for handling in ["linux", "klmirqd"] {
        let workload = workload(&format!(
            r#"
scheduler = "G-RM"
[platform]
cpus = 2
[[platform.gpu]]
name = "gpu0"
bandwidth = "2 GB/s"
[gpu_management]
arbitration = "driver_spinning"
handling = "{handling}"
[[task]]
name = "a"
period = "40 ms"
body = [{{ cpu = "1 ms" }}, {{ kernel = "3 ms" }}, {{ cpu = "1 ms" }}]
[[task]]
name = "x"
period = "20 ms"
body = [{{ cpu = "1 ms" }}, {{ kernel = "2 ms" }}]
[[task]]
name = "z"
period = "50 ms"
body = [{{ kernel = "1 ms" }}, {{ cpu = "1 ms" }}]
"#
        ));
        let Some(records) = live_by(&workload, ms(2_000), LinuxScheduler::Laxity) else { return };
        assert_eq!(ends(&records), 50 + 100 + 40, "{handling}");
    }
}

/// With one seed operations take what is drawn for them in a simulation, and never less.
#[test]
fn operations_occupy_their_engines_for_the_times_drawn() {
    let workload = workload(&format!(
        r#"{GPU}
[gpu_management]
arbitration = {{ protocol = "gpusync", chunk = "20 kB" }}
[[task]]
name = "t"
period = "50 ms"
body = [
    {{ cpu = "1 us" }},
    {{ copy_in = "50 kB" }},
    {{ kernel = "15 ms", actual = {{ uniform = ["1 ms", "15 ms"] }} }},
    {{ kernel = "10 ms", actual = {{ uniform = ["1 ms", "10 ms"] }} }},
]
"#
    ));
    let expected = simulated(&workload, ms(600));
    let found = live(&workload, ms(600));
    for wanted in [Engine::Execution, Engine::Copy(0)] {
        let (expected, found) = (engine(&expected, wanted), engine(&found, wanted));
        let mut compared = 0;
        for ((job, least), (same, span)) in expected.zip(found) {
            assert!(job == same && span >= least, "{job} takes {least} simulated, and {same} {span} live");
            compared += 1;
        }
        assert_eq!(compared, if wanted == Engine::Execution { 24 } else { 36 });
    }
}

#[test]
fn what_live_gpus_cannot_do_is_refused_with_the_way_out() {
    let refused = |arbitration: &str| {
        let task = "[[task]]\nname = \"t\"\nperiod = \"1 s\"\nbody = [{ cpu = \"1 ms\" }, { kernel = \"1 ms\" }]\n";
        let workload = workload(&format!("{GPU}[gpu_management]\narbitration = {arbitration}\n{task}"));
        plan(&workload).expect_err("refused").to_string()
    };
    assert!(refused("\"semaphore\"").contains("take --scheduler laxity"));
    let migrates = "{ protocol = \"gpusync\", migration = \"1 ms\" }";
    assert!(refused(migrates).contains("write migration_path = \"host\""));
}

/// A run that is stopped while tokens are held and waited for ends at once, and its GPUs with it.
#[test]
fn a_run_that_is_stopped_lets_go_of_tokens_and_engines() {
    let task = |name: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"40 ms\"\nbody = [{{ cpu = \"1 ms\" }}, {{ kernel = \"30 ms\" }}]\n"
        )
    };
    let workload =
        workload(&format!("{GPU}[gpu_management]\narbitration = \"gpusync\"\n{}{}{}", task("a"), task("b"), task("c")));
    let plan = plan(&workload).expect("it can be run");
    let mut records = Vec::new();
    let mut run = crate::harness::start(&plan).expect("threads");
    while run.completed() < 2 {
        run.collect(&mut records);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    run.stop();
    let (outcome, failed) = run.finish(&mut records);
    assert_eq!(failed, Ok(()));
    assert!(outcome.is_whole);
    let names = laxity_gpu::Registry::default().names().expect("a directory");
    let prefix = format!("run-{}-", std::process::id());
    // Other tests of this process run beside this one.
    let left = names.iter().filter(|name| name.starts_with(&prefix)).count();
    assert!(left <= 3, "{names:?}");
}

fn plan(workload: &Workload) -> Result<laxity_runtime::LivePlan, laxity_runtime::Refusal> {
    let linux = Some(laxity_runtime::LinuxScheduler::Other);
    let duration = Nanos::from_secs(3_600);
    let options = laxity_runtime::Options { scheduler: workload.scheduler, linux, seed: 0, duration };
    laxity_runtime::LivePlan::new(workload, &options)
}

/// The order of all grants, and what each job did.
fn facts(records: &[Record]) -> impl PartialEq + std::fmt::Debug + use<> {
    (replicas(records), lives(records))
}

/// The operations on an engine, with the time that they took.
fn engine(records: &[Record], wanted: Engine) -> impl Iterator<Item = (JobId, Nanos)> {
    let mut begun: Option<(JobId, Instant)> = None;
    records.iter().filter_map(move |record| match record.event {
        Event::EngineBegin { engine, job, .. } if engine == wanted => {
            begun = Some((job, record.at));
            None
        }
        Event::EngineEnd { engine, .. } if engine == wanted => {
            begun.take().map(|(job, at)| (job, record.at.saturating_since(at)))
        }
        _ => None,
    })
}

fn ends(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.event, Event::EngineEnd { .. })).count()
}

fn engines_begun(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.event, Event::EngineBegin { .. })).count()
}
