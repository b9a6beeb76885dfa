//! Devices that serve no job: timers raise the simulated interrupts, whose bottom halves are scheduled as simulated.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, Workload};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_testing::skip;
use laxity_trace::{Event, Record};

use crate::harness::{SEED, completions, live_by, ms, simulated, workload};
use crate::scheduled::followed;

/// A task that computes for 20 ms of each 40, and a device that interrupts it every 5 ms or more.
fn busy(scheduler: &str, handling: &str, device: &str) -> Workload {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2));
    let others: Vec<String> = (0..cpus).map(|cpu| cpu.to_string()).collect();
    workload(&format!(
        "scheduler = \"{scheduler}\"\n[platform]\ncpus = {cpus}\n[gpu_management]\nhandling = \"{handling}\"\n\
         [[platform.device]]\nname = \"network\"\nperiod = \"5 ms\"\n\
         top_half = \"100 us\"\nbottom_half = \"500 us\"\ninterrupt_cpus = [{}]\n{device}\n\
         [[task]]\nname = \"t\"\nperiod = \"40 ms\"\nwcet = \"20 ms\"\npriority = 2\n\
         [[task]]\nname = \"u\"\nperiod = \"40 ms\"\nwcet = \"20 ms\"\npriority = 1\n",
        others.join(", ")
    ))
}

/// Where interrupts came, in their order.
fn interrupts(records: &[Record]) -> Vec<(Instant, CpuId)> {
    let interrupt = |record: &Record| match record.event {
        Event::Interrupt { cpu, job: None, .. } => Some((record.at, cpu)),
        _ => None,
    };
    records.iter().filter_map(interrupt).collect()
}

/// When the bottom halves were complete.
fn handled(records: &[Record]) -> Vec<Instant> {
    let threads: Vec<JobId> = records
        .iter()
        .filter_map(|record| match record.event {
            Event::Serve { thread, .. } => Some(thread),
            _ => None,
        })
        .collect();
    completions(records).into_iter().filter(|(job, _)| threads.contains(job)).map(|(_, at)| at).collect()
}

/// Whether live interrupts are the simulated ones, each on its CPU and none early.
fn assert_are_the_simulated(workload: &Workload, duration: Nanos, records: &[Record]) {
    let (expected, found) = (interrupts(&simulated(workload, duration)), interrupts(records));
    let places = |interrupts: &[(Instant, CpuId)]| interrupts.iter().map(|&(_, cpu)| cpu).collect::<Vec<_>>();
    let before_the_end = |&&(at, _): &&(Instant, CpuId)| at < Instant::ZERO + duration;
    let count = expected.iter().filter(before_the_end).count();
    assert_eq!(places(&found), places(&expected)[..count], "{}", workload.scheduler);
    assert!(found.iter().zip(&expected).all(|(found, expected)| found.0 >= expected.0), "{found:?} {expected:?}");
}

#[test]
fn interrupts_of_a_device_come_live_as_simulated_under_every_scheduler_and_handling() {
    let sporadic = "arrival = \"sporadic\"\ngap = { uniform = [\"0 ms\", \"4 ms\"] }";
    for linux in LinuxScheduler::ALL {
        for (handling, device) in
            [("linux", ""), ("pai", sporadic), ("preempt_rt_low", ""), ("preempt_rt_high", sporadic), ("klmirqd", "")]
        {
            for scheduler in ["G-EDF", "P-RM"] {
                let workload = busy(scheduler, handling, device);
                let duration = ms(120);
                let ours = linux == LinuxScheduler::Laxity;
                // One class of Linux has no deadlines, and the other nothing else; the scheduler in the kernel takes no devices.
                match (linux, scheduler) {
                    (LinuxScheduler::Fifo, "G-EDF")
                    | (LinuxScheduler::Deadline, "P-RM")
                    | (LinuxScheduler::Kernel, _) => continue,
                    _ => {}
                }
                let ran = if ours { followed(&workload, duration) } else { live_by(&workload, duration, linux) };
                let Some(records) = ran else { continue };
                assert_are_the_simulated(&workload, duration, &records);
                assert_eq!(handled(&records).len(), interrupts(&records).len(), "each bottom half is executed");
                let taken = records.iter().filter_map(|record| match record.event {
                    Event::Overhead { kind: OverheadKind::TopHalf, duration, .. } => Some(duration),
                    _ => None,
                });
                assert!(taken.clone().all(|taken| taken >= Nanos::from_micros(100)), "no top half is shorter");
                assert!(!ours || taken.count() == interrupts(&records).len(), "nothing has the CPU meanwhile");
            }
        }
    }
}

/// On one CPU, the order in which bottom halves and the task's first job end.
///
/// ```text
///   above all jobs:   i.b..task....i.b....i.b....i.b..task ends
///   below:            i....task....i......i......i....task ends b b b b
/// ```
#[test]
fn bottom_halves_are_above_all_jobs_or_below_as_simulated() {
    for (handling, is_above) in [("preempt_rt_high", true), ("preempt_rt_low", false), ("klmirqd", false)] {
        for scheduler in ["G-EDF", "G-FP"] {
            let workload = workload(&format!(
                "scheduler = \"{scheduler}\"\n[platform]\ncpus = 1\n[gpu_management]\nhandling = \"{handling}\"\n\
                 [[platform.device]]\nname = \"network\"\nperiod = \"10 ms\"\ntop_half = \"100 us\"\nbottom_half = \"200 us\"\n\
                 [[task]]\nname = \"t\"\nperiod = \"1 s\"\nwcet = \"55 ms\"\npriority = 1\n"
            ));
            let duration = ms(100);
            let before = |records: &[Record]| {
                let done = completions(records).first().map_or(Instant::ZERO, |&(_, at)| at);
                handled(records).iter().filter(|&&at| at < done).count()
            };
            let expected = before(&simulated(&workload, duration));
            assert_eq!(expected > 0, is_above, "{handling}");
            let Some(records) = followed(&workload, duration) else { return };
            // A job that takes longer than simulated meets more interrupts.
            let found = before(&records);
            assert!(
                if is_above { found >= expected } else { found == 0 },
                "{handling} {scheduler}: {found}, {expected}"
            );
        }
    }
}

/// A server of 1 ms in each 20 ms, for interrupts every 5 ms that take 1 ms each: all but one of four must wait.
#[test]
fn the_server_of_a_device_holds_its_bottom_halves_back_live_as_simulated() {
    let duration = ms(200);
    for kind in ["cbs_hard", "cbs_soft", "sporadic"] {
        let server = format!("server = {{ kind = \"{kind}\", budget = \"1 ms\", period = \"20 ms\", priority = 0 }}");
        let scheduler = if kind == "sporadic" { "G-FP" } else { "G-EDF" };
        let workload = workload(&format!(
            "scheduler = \"{scheduler}\"\n[platform]\ncpus = 1\n[gpu_management]\nhandling = \"klmirqd\"\n\
             [[platform.device]]\nname = \"network\"\nperiod = \"5 ms\"\ntop_half = \"10 us\"\nbottom_half = \"1 ms\"\n{server}\n\
             [[task]]\nname = \"t\"\nperiod = \"40 ms\"\nwcet = \"10 ms\"\npriority = 1\n"
        ));
        let simulation = handled(&simulated(&workload, duration));
        let Some(records) = followed(&workload, duration) else { return };
        let found = handled(&records);
        let within = |handled: &[Instant]| handled.iter().filter(|&&at| at <= Instant::ZERO + duration).count();
        let (expected, found) = (within(&simulation), within(&found));
        if kind == "cbs_soft" {
            // It goes on at once with a later deadline, and the CPU has room.
            assert!(expected > 30, "{expected}");
        } else {
            assert!((9..=11).contains(&expected), "{kind}: 1 ms in each 20 ms: {expected}");
            assert!(found <= expected, "{kind}: {found} of {expected}");
        }
        if found + 2 < expected {
            skip(format_args!("{kind}: this machine is too busy: {found} of {expected} bottom halves"));
        }
        let replenished = records.iter().filter(|record| matches!(record.event, Event::Replenish { .. })).count();
        assert!(replenished >= found.saturating_sub(1), "{kind}: the trace has the budgets: {replenished}");
    }
}

#[test]
fn classes_of_linux_refuse_the_server_of_a_device_with_the_way_out() {
    let workload = busy("G-EDF", "klmirqd", "server = { kind = \"cbs_hard\", budget = \"1 ms\", period = \"20 ms\" }");
    let of = |linux| Options { scheduler: workload.scheduler, linux, seed: SEED, duration: ms(10) };
    let refused = LivePlan::new(&workload, &of(Some(LinuxScheduler::Other))).expect_err("it has no servers");
    assert_eq!(
        refused.to_string(),
        "device \"network\": no class of Linux has the server of its klmirqd thread; take --scheduler laxity, leave `server` \
         out, or simulate"
    );
}
