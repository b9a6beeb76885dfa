//! Paper 000, Figs. 7 to 12: which overhead comes when, on which CPU. Magnified to whole microseconds.

mod common;

use common::simulate;
use laxity_model::{
    CpuId, ExecutionTime, Factor, Gpu, GpuManagement, GpuOperation, GpuWork, Instant, InterruptHandling, Nanos,
    OverheadCosts, OverheadProfile, Platform, Step, Task, Waiting, Workload,
};
use laxity_trace::{Event, Record};

const US: u64 = 1_000;

fn us(us: u64) -> ExecutionTime {
    ExecutionTime::constant(Nanos::from_micros(us))
}

fn magnified() -> OverheadCosts {
    let us = Nanos::from_micros;
    OverheadCosts {
        release: us(7),
        scheduling: us(6),
        context_switch: us(4),
        ipi_latency: us(5),
        top_half: us(16),
        bottom_half: us(30),
        thread_release: us(14),
        pai_enqueue: us(9),
        pai_check: us(2),
        ..OverheadCosts::default()
    }
}

fn platform(cpus: usize, interrupted: u16) -> Platform {
    let gpu = Gpu {
        name: "gpu0".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: vec![CpuId(interrupted)],
    };
    let overheads = OverheadProfile::constant("magnified", magnified());
    Platform { gpus: vec![gpu], overheads, ..Platform::identical(cpus) }
}

/// A job of 100 us, a GPU kernel of 200 us for which it waits suspended, and 100 us more.
fn gpu_task(name: &str) -> Task {
    let kernel = GpuOperation {
        gpu: Some(0),
        work: GpuWork::Kernel(us(200)),
        waiting: Waiting::Synchronous,
        interrupts: 1,
        memory: Factor::ZERO,
    };
    let body = vec![Step::Cpu(us(100)), Step::Gpu(kernel), Step::Cpu(us(100))];
    Task { body, ..Task::periodic(name, Nanos::from_micros(200), Nanos::from_millis(50)) }
}

fn later(name: &str, wcet_us: u64, phase_us: u64) -> Task {
    let task = Task::periodic(name, Nanos::from_micros(wcet_us), Nanos::from_millis(100));
    Task { phase: Nanos::from_micros(phase_us), ..task }
}

fn workload(handling: InterruptHandling, cpus: usize, interrupted: u16, tasks: Vec<Task>) -> Workload {
    Workload {
        gpu_management: GpuManagement { handling, ..GpuManagement::default() },
        ..Workload::new("w", platform(cpus, interrupted), tasks)
    }
}

/// What happened from `from` to `to`, in us, one line an event.
fn story(workload: &Workload, from: u64, to: u64) -> Vec<String> {
    let records = simulate(workload, "G-EDF", Instant::from_millis(2));
    let line = |record: &Record| {
        let at = record.at.0 / US;
        let text = match record.event {
            Event::Release { job, .. } => format!("release {job}"),
            Event::Overhead { cpu, kind, .. } => format!("{cpu} {}", kind.name()),
            Event::Ipi { from, to, .. } => format!("ipi {from} {to}"),
            Event::Dispatch { cpu, job } => format!("{cpu} runs {job}"),
            Event::Preempt { cpu, job } => format!("{cpu} stops {job}"),
            Event::Suspend { cpu, job } => format!("{cpu} suspends {job}"),
            Event::Complete { cpu, job } => format!("{cpu} completes {job}"),
            Event::EngineBegin { .. } => "GPU begins".to_owned(),
            Event::EngineEnd { .. } => "GPU ends".to_owned(),
            Event::BottomHalfBegin { cpu, .. } => format!("{cpu} bottom half"),
            Event::BottomHalfEnd { cpu, .. } => format!("{cpu} bottom half done"),
            _ => return None,
        };
        (from <= at && at < to).then(|| format!("{at} {text}"))
    };
    records.iter().filter_map(line).collect()
}

/// Fig. 7: a job is framed by scheduling decisions and context switches; Fig. 9: before that, its release.
#[test]
fn figs_7_and_9_a_cpu_only_job_is_framed_by_release_scheduling_and_switches() {
    let task = Task::periodic("T", Nanos::from_micros(100), Nanos::from_millis(50));
    let workload = workload(InterruptHandling::Linux, 1, 0, vec![task]);
    assert_eq!(
        story(&workload, 0, 1_000),
        [
            "0 release T0.0",
            "0 cpu0 release",
            "7 cpu0 scheduling",
            "13 cpu0 context_switch",
            "17 cpu0 runs T0.0",
            "117 cpu0 completes T0.0",
            "117 cpu0 scheduling",
            "123 cpu0 context_switch",
        ]
    );
}

/// Fig. 9: the timer fires on CPU x = 0, where a more urgent job runs; CPU y = 1 is told by IPI.
#[test]
fn fig_9_a_job_released_elsewhere_waits_for_the_interrupt_between_processors() {
    let urgent = Task::periodic("U", Nanos::from_micros(500), Nanos::from_millis(50));
    let workload = workload(InterruptHandling::Linux, 2, 0, vec![urgent, later("V", 10, 400), later("J", 100, 200)]);
    assert_eq!(
        story(&workload, 200, 330),
        [
            "200 release T2.0",
            "200 cpu0 release",
            "207 ipi cpu0 cpu1",
            "212 cpu1 scheduling",
            "218 cpu1 context_switch",
            "222 cpu1 runs T2.0",
            "322 cpu1 completes T2.0",
            "322 cpu1 scheduling",
            "328 cpu1 context_switch",
        ]
    );
}

/// Figs. 8 and 10: the suspension costs a decision and a switch, the top half is followed by the bottom half at once,
/// which ends in the job's resumption.
#[test]
fn figs_8_and_10_standard_linux_runs_the_bottom_half_right_after_the_top_half() {
    let workload = workload(InterruptHandling::Linux, 1, 0, vec![gpu_task("T")]);
    assert_eq!(
        story(&workload, 100, 1_000),
        [
            "117 GPU begins",
            "117 cpu0 suspends T0.0",
            "117 cpu0 scheduling",
            "123 cpu0 context_switch",
            "317 GPU ends",
            "317 cpu0 top_half",
            "333 cpu0 bottom half",
            "363 cpu0 bottom half done",
            "363 cpu0 release",
            "370 cpu0 scheduling",
            "376 cpu0 context_switch",
            "380 cpu0 runs T0.0",
            "480 cpu0 completes T0.0",
            "480 cpu0 scheduling",
            "486 cpu0 context_switch",
        ]
    );
}

/// Figs. 11 and 12: the interrupt is over with the release of the thread; the thread is scheduled like a job, and the
/// owner resumes after it.
#[test]
fn figs_11_and_12_klmirqd_queues_the_bottom_half_and_schedules_its_thread() {
    let handling = InterruptHandling::Klmirqd { threads: None };
    let workload = workload(handling, 1, 0, vec![gpu_task("T"), later("B", 900, 150)]);
    assert_eq!(
        story(&workload, 300, 600),
        [
            "317 GPU ends",
            "317 cpu0 top_half",
            "333 cpu0 thread_release",
            "347 release T2.0",
            "347 cpu0 scheduling",
            "353 cpu0 stops T1.0",
            "353 cpu0 context_switch",
            "357 cpu0 runs T2.0",
            "387 cpu0 completes T2.0",
            "387 cpu0 release",
            "394 cpu0 scheduling",
            "400 cpu0 context_switch",
            "404 cpu0 runs T0.0",
            "504 cpu0 completes T0.0",
            "504 cpu0 scheduling",
            "510 cpu0 context_switch",
            "514 cpu0 runs T1.0",
        ],
        "B does not run between the thread and its owner"
    );
}

/// Appendix B, eqs. 17 to 21: enqueue after the top half; where the CPU of lowest priority is another, an IPI, a
/// scheduling decision and the check there; the bottom half then runs on B's stack, and B goes on afterwards.
#[test]
fn process_aware_interrupts_enqueue_notify_check_and_run_on_the_stack_of_the_least_urgent_job() {
    let other = Task { period: Nanos::from_millis(60), ..Task::periodic("A", Nanos::from_micros(900), Nanos(1)) };
    let other = Task { deadline: Nanos::from_millis(60), ..other };
    let tasks = || vec![gpu_task("T"), other.clone(), later("B", 900, 150)];
    let elsewhere = workload(InterruptHandling::ProcessAware, 2, 1, tasks());
    assert_eq!(
        story(&elsewhere, 300, 420),
        [
            "319 GPU ends",
            "319 cpu1 top_half",
            "335 cpu1 pai_enqueue",
            "344 ipi cpu1 cpu0",
            "349 cpu0 scheduling",
            "355 cpu0 pai_check",
            "357 cpu0 bottom half",
            "387 cpu0 bottom half done",
            "387 cpu0 pai_check",
            "389 cpu0 release",
            "396 cpu0 scheduling",
            "402 cpu0 pai_check",
            "404 cpu0 stops T2.0",
            "404 cpu0 context_switch",
            "408 cpu0 runs T0.0",
        ]
    );
    let here = workload(InterruptHandling::ProcessAware, 2, 0, tasks());
    assert_eq!(
        story(&here, 300, 400),
        [
            "319 GPU ends",
            "319 cpu0 top_half",
            "335 cpu0 pai_enqueue",
            "344 cpu0 bottom half",
            "374 cpu0 bottom half done",
            "374 cpu0 release",
            "381 cpu0 scheduling",
            "387 cpu0 pai_check",
            "389 cpu0 stops T2.0",
            "389 cpu0 context_switch",
            "393 cpu0 runs T0.0",
        ],
        "the CPU that was interrupted is the one of lowest priority: no detour"
    );
}
