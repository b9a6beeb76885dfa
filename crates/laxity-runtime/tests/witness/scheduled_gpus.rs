//! Tokens, engines and interrupt threads under Laxity's scheduler: granted, inherited and scheduled live as simulated.

use laxity_model::{Engine, JobId};
use laxity_testing::skip;
use laxity_trace::{Event, Record};

use crate::harness::{completions, ms, replicas, simulated, workload};
use crate::scheduled::{completed, followed, latest, priorities};

const GPU: &str = r#"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "10 MB/s"
"#;

/// Tokens in FIFO and priority queues, engines by priority between chunks, k-FMLP and a semaphore: requests are 40 ms
/// apart or more.
#[test]
fn tokens_and_engines_are_granted_live_as_simulated() {
    let kernels = [("holder", 0, 4, 300), ("patient", 60, 3, 20), ("meek", 120, 2, 20), ("urgent", 180, 1, 20)];
    let contended: String = kernels
        .iter()
        .map(|(name, phase, rank, kernel)| {
            let deadline = 500 + 100 * rank;
            format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"2 s\"\nphase = \"{phase} ms\"\ndeadline = \"{deadline} ms\"\n\
                 priority = {rank}\nbody = [{{ cpu = \"1 us\" }}, {{ kernel = \"{kernel} ms\" }}, {{ cpu = \"1 us\" }}]\n"
            )
        })
        .collect();
    let copies = [("bulk", 0, 3, 6), ("second", 50, 2, 1), ("first", 125, 1, 1)];
    let chunks: String = copies
        .iter()
        .map(|(name, phase, rank, size)| {
            let deadline = 1_200 + 100 * rank;
            format!(
                "[[task]]\nname = \"{name}\"\nperiod = \"2 s\"\nphase = \"{phase} ms\"\ndeadline = \"{deadline} ms\"\n\
                 priority = {rank}\nbody = [{{ cpu = \"1 us\" }}, {{ copy_in = \"{size} MB\" }}]\n"
            )
        })
        .collect();
    let chunked =
        r#"{ protocol = "gpusync", tokens = 3, fifo_requests = 3, engine_order = "priority", chunk = "2 MB" }"#;
    for (policy, arbitration, tasks) in [
        ("G-FP", r#"{ protocol = "gpusync", fifo_length = 2 }"#, &contended),
        ("G-EDF", r#"{ protocol = "gpusync", fifo_length = 2 }"#, &contended),
        ("P-EDF", r#""k_fmlp""#, &contended),
        ("G-EDF", r#""semaphore""#, &contended),
        ("G-EDF", chunked, &chunks),
    ] {
        let handling = if policy == "P-EDF" { "preempt_rt_high" } else { "klmirqd" };
        let workload = workload(&format!(
            "scheduler = \"{policy}\"\n{GPU}[gpu_management]\narbitration = {arbitration}\nhandling = \"{handling}\"\n{tasks}"
        ));
        let duration = ms(1_200);
        let expected = replicas(&simulated(&workload, duration));
        let is_same = (0..4).find_map(|_| {
            let records = followed(&workload, duration)?;
            let found = replicas(&records);
            (found == expected || latest(&records) < ms(5)).then_some(found)
        });
        let Some(found) = is_same else {
            skip(format_args!("{policy} {arbitration}: not permitted, or this machine is too busy"));
            continue;
        };
        assert_eq!(found, expected, "{policy} {arbitration}");
    }
}

/// Two GPUs, each of which a task occupies in turn, so that `little` moves. A kernel of it fails if it does not find what the
/// last one wrote: the state is real bytes, which are copied from GPU to GPU or by host memory.
///
/// ```text
///   ms         0     200    400    600    800    1000
///   gpu0       first.......        little first.......
///   gpu1          little.little second.......      little
/// ```
#[test]
fn a_task_moves_with_its_state_live_as_simulated() {
    let task = |name: &str, period: u32, phase: u32, kernel: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"{period} ms\"\nphase = \"{phase} ms\"\n\
             body = [{{ cpu = \"1 us\" }}, {{ {kernel} }}, {{ cpu = \"1 us\" }}]\n"
        )
    };
    let tasks = [
        task("little", 200, 120, "kernel = \"40 ms\""),
        task("first", 800, 0, "kernel = \"300 ms\", gpu = \"gpu0\""),
        task("second", 800, 400, "kernel = \"300 ms\", gpu = \"gpu1\""),
    ]
    .concat();
    // With one CPU a second request would wait for the first, wherever a GPU is free.
    let pair = GPU.replace("cpus = 1", "cpus = 2");
    let second = "[[platform.gpu]]\nname = \"gpu1\"\nbandwidth = \"10 MB/s\"\n";
    let copies = |records: &[Record]| {
        let is_copy = |record: &&Record| matches!(record.event, Event::EngineBegin { engine: Engine::Copy(_), job, .. } if job.task.0 == 0);
        records.iter().filter(is_copy).count()
    };
    for path in ["peer", "host"] {
        let workload = workload(&format!(
            "scheduler = \"G-RM\"\n{pair}{second}[gpu_management]\narbitration = {{ protocol = \"gpusync\", migration = \"15 ms\", \
             migration_path = \"{path}\" }}\nhandling = \"klmirqd\"\n{tasks}"
        ));
        let duration = ms(1_100);
        let model = simulated(&workload, duration);
        let expected = replicas(&model);
        assert!(copies(&model) >= 4, "{path}: it moves twice at least");
        let is_same = (0..4).find_map(|_| {
            let records = followed(&workload, duration)?;
            let found = replicas(&records);
            (found == expected || latest(&records) < ms(5)).then(|| (found, copies(&records)))
        });
        let Some((found, copied)) = is_same else {
            skip(format_args!("{path}: not permitted, or this machine is too busy"));
            continue;
        };
        assert_eq!(found, expected, "{path}");
        assert_eq!(copied, copies(&model), "{path}");
    }
}

/// On one CPU under EDF, in ms; `K` is a kernel, for which its job is suspended. With the k-FMLP:
///
/// ```text
///                  0    10   20   30   40   50   60   70
///   holder (900)   KKKKKHHHHHHHHHHHHHHHHHHHHH           h    has the GPU
///   waiter (500)             ...............KKKKKww          wants it at 20
///   middle (700)                  ..........mmmmm  mmmm      released at 30
/// ```
#[test]
fn a_holder_of_a_token_has_its_waiters_deadline() {
    let task = |name: &str, phase: u32, deadline: u32, body: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nperiod = \"2 s\"\nphase = \"{phase} ms\"\ndeadline = \"{deadline} ms\"\n\
             body = [{body}]\n"
        )
    };
    let section = |after: u32| {
        format!("{{ gpu_section = [{{ kernel = \"10 ms\" }}, {{ cpu = \"{after} ms\" }}] }}, {{ cpu = \"2 ms\" }}")
    };
    // A token of GPUSync is held to the end of the job.
    for (arbitration, order) in [("k_fmlp", [1, 2, 0]), ("gpusync", [0, 1, 2])] {
        let workload = workload(
            &[
                format!(
                    "scheduler = \"G-EDF\"\n{GPU}[gpu_management]\narbitration = \"{arbitration}\"\nhandling = \"klmirqd\"\n"
                ),
                task("holder", 0, 900, &section(40)),
                task("waiter", 20, 500, &section(1)),
                task("middle", 30, 700, "{ cpu = \"20 ms\" }"),
            ]
            .concat(),
        );
        let duration = ms(400);
        let expected = completed(&simulated(&workload, duration));
        let tasks = |order: &[u32]| order.iter().copied().filter(|&task| task < 3).collect::<Vec<_>>();
        assert_eq!(tasks(&expected), order, "{arbitration}: without inheritance `middle` is the first");
        let Some(records) = (0..4).find_map(|_| {
            let records = followed(&workload, duration)?;
            (tasks(&completed(&records)) == tasks(&expected) || latest(&records) < ms(2)).then_some(records)
        }) else {
            skip(format_args!("{arbitration}: not permitted, or this machine is too busy"));
            continue;
        };
        assert_eq!(tasks(&completed(&records)), tasks(&expected), "{arbitration}");
        let lifted = priorities(&records).into_iter().find(|&(task, _, of)| task == 0 && of == 1);
        assert_eq!(lifted, Some((0, ms(520).0, 1)), "{arbitration}: the holder has the waiter's deadline");
    }
}

/// The interrupt of a job waits for a more urgent job that computes, as the thread that handles it is as urgent as its owner;
/// a thread above all jobs does not wait.
#[test]
fn klmirqds_thread_is_as_urgent_as_its_owner_under_edf() {
    let served_late = |handling: &str| {
        let workload = workload(&format!(
            r#"
scheduler = "G-EDF"
{GPU}
[gpu_management]
arbitration = "k_fmlp"
handling = "{handling}"
[[task]]
name = "computes"
period = "2 s"
phase = "20 ms"
deadline = "500 ms"
wcet = "200 ms"
[[task]]
name = "waits"
period = "2 s"
deadline = "900 ms"
body = [{{ cpu = "1 us" }}, {{ kernel = "100 ms" }}, {{ cpu = "1 us" }}]
"#
        ));
        let once = || {
            let records = followed(&workload, ms(600))?;
            let position = |wanted: &dyn Fn(Event) -> bool| records.iter().position(|record| wanted(record.event));
            let begun = position(&|event| matches!(event, Event::Dispatch { job, .. } if job.task.0 == 0))?;
            let computed = position(&|event| matches!(event, Event::Complete { job, .. } if job.task.0 == 0))?;
            let ended = position(&|event| matches!(event, Event::EngineEnd { .. }))?;
            let executes = position(&|event| matches!(event, Event::Complete { job, .. } if job.task.0 == 2))?;
            (begun..computed).contains(&ended).then_some(executes > computed)
        };
        (0..4).find_map(|_| once())
    };
    let (Some(followed), Some(fixed)) = (served_late("klmirqd"), served_late("preempt_rt_high")) else {
        return skip("not permitted, or this machine is too busy for a kernel to end while another job computes");
    };
    assert!(followed && !fixed, "late if it follows: {followed}; late above all jobs: {fixed}");
}

/// Owners that execute while their own kernels end: on two CPUs, of which one is idle, the thread goes before its owner and
/// not beside it. The checkers say so of every record.
#[test]
fn klmirqds_thread_goes_before_its_owner_and_never_beside_it() {
    let cpus = std::thread::available_parallelism().expect("CPUs").get().min(2);
    let workload = workload(&format!(
        r#"
scheduler = "G-EDF"
[platform]
cpus = {cpus}
[[platform.gpu]]
name = "gpu0"
bandwidth = "10 MB/s"
[gpu_management]
arbitration = "driver"
handling = "klmirqd"
[[task]]
name = "asynchronous"
period = "20 ms"
body = [{{ kernel = "2 ms", asynchronous = true }}, {{ kernel = "2 ms", asynchronous = true }}, {{ cpu = "6 ms" }}]
[[task]]
name = "other"
period = "50 ms"
body = [{{ cpu = "1 ms" }}, {{ kernel = "5 ms" }}, {{ cpu = "1 ms" }}]
"#
    ));
    let Some(records) = followed(&workload, ms(400)) else { return };
    assert!(completions(&records).len() >= 20 + 8);
    // A thread took the CPU from its owner: it was linked where that had been.
    let mut links: Vec<Option<JobId>> = vec![None; cpus];
    let mut owners: Vec<(JobId, JobId)> = Vec::new();
    let mut went_before = 0;
    for Record { event, .. } in &records {
        match *event {
            Event::Serve { thread, job: Some(owner), .. } => owners.push((thread, owner)),
            Event::Link { cpu, job } => {
                let before = std::mem::replace(&mut links[cpu.index()], job);
                let of = |thread| owners.iter().find(|&&(other, _)| other == thread).map(|&(_, owner)| owner);
                went_before += u32::from(before.is_some() && job.and_then(of) == before);
            }
            _ => {}
        }
    }
    assert!(went_before > 0, "the owner executes when its kernel ends");
}
