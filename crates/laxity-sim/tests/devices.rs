//! Devices that serve no job: where their bottom halves run, and how bandwidth servers bound what they take (paper 000,
//! sections II and III).

mod common;

use common::{draw, run, simulate};
use laxity_model::{
    Arrival, CpuId, Device, Distribution, ExecutionTime, GpuManagement, Instant, InterruptHandling, Invocation, Nanos,
    OverheadCosts, OverheadProfile, Platform, PriorityRule, ReleaseInterrupts, Scheduler, Server, ServerKind, Task,
    TaskId, ThreadPriority, Workload,
};
use laxity_plan::Plan;
use laxity_trace::{Event, Record, check};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const KLMIRQD: InterruptHandling = InterruptHandling::Klmirqd { threads: None };

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// Interrupts CPU 0 every `period` ms with a bottom half of `bottom` ms.
fn network(period: u64, bottom: u64, server: Option<Server>) -> Device {
    Device {
        name: "net".to_owned(),
        cluster: 0,
        arrival: Arrival::Periodic,
        period: ms(period),
        top_half: ExecutionTime::constant(Nanos::ZERO),
        bottom_half: ExecutionTime::constant(ms(bottom)),
        interrupt_cpus: vec![CpuId(0)],
        server,
    }
}

fn server(kind: ServerKind, budget: u64, period: u64) -> Option<Server> {
    Some(Server { kind, budget: ms(budget), period: ms(period), priority: None })
}

fn workload(handling: InterruptHandling, cpus: usize, device: Device, tasks: Vec<Task>) -> Workload {
    let platform = Platform { devices: vec![device], ..Platform::identical(cpus) };
    Workload {
        gpu_management: GpuManagement { handling, ..GpuManagement::default() },
        ..Workload::new("w", platform, tasks)
    }
}

/// Each a `(wcet, period)` in ms.
fn tasks(parameters: &[(u64, u64)]) -> Vec<Task> {
    let task =
        |(index, &(wcet, period)): (usize, &(u64, u64))| Task::periodic(format!("t{index}"), ms(wcet), ms(period));
    parameters.iter().enumerate().map(task).collect()
}

/// A row a CPU, a column a ms; the thread has the number after the last task's. `b`: a bottom half on the stack.
fn drawn(workload: &Workload, scheduler: &str, columns: u64) -> String {
    let records = simulate(workload, scheduler, Instant::from_millis(columns));
    let mut picture: Vec<char> = draw(&records, workload.platform.cpus as u16, MS, columns).chars().collect();
    let mut begun = None;
    for record in &records {
        match record.event {
            Event::BottomHalfBegin { .. } => begun = Some(record.at),
            Event::BottomHalfEnd { cpu, .. } => {
                let from: Instant = begun.take().expect("it began");
                let row = cpu.index() * ("cpu0 \n".len() + columns as usize) + "cpu0 ".len();
                for column in from.0 / MS..record.at.0 / MS {
                    picture[row + column as usize] = 'b';
                }
            }
            _ => {}
        }
    }
    picture.into_iter().collect()
}

/// Standard Linux: the interrupted job waits, however urgent. The daemon is not needed for one at a time.
#[test]
fn under_standard_linux_bottom_halves_run_on_the_stack_of_the_interrupted_process() {
    let workload = workload(InterruptHandling::Linux, 1, network(6, 2, None), tasks(&[(3, 12)]));
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 bb000.bb....");
}

/// No job owns them, so there is no priority to be aware of.
#[test]
fn process_aware_handling_runs_them_as_standard_linux_does() {
    let system = |handling| workload(handling, 2, network(5, 2, None), tasks(&[(3, 12), (4, 9), (2, 7)]));
    let linux = drawn(&system(InterruptHandling::Linux), "G-EDF", 60);
    assert_eq!(drawn(&system(InterruptHandling::ProcessAware), "G-EDF", 60), linux);
}

#[test]
fn under_preempt_rt_their_thread_has_a_fixed_priority_above_or_below_all() {
    let system = |priority| workload(InterruptHandling::PreemptRt(priority), 1, network(6, 2, None), tasks(&[(3, 12)]));
    assert_eq!(drawn(&system(ThreadPriority::High), "G-EDF", 12), "cpu0 11000.11....");
    assert_eq!(drawn(&system(ThreadPriority::Low), "G-EDF", 12), "cpu0 00011.11....");
}

#[test]
fn a_klmirqd_thread_without_a_server_runs_when_no_job_wants_the_cpu() {
    let workload = workload(KLMIRQD, 1, network(6, 2, None), tasks(&[(3, 12)]));
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 00011.11....");
}

/// Budget 1 in 4, work 3: served in [0, 1), [4, 5), [8, 9). At 0 the server is due at 4, before the job.
///
/// ```text
///           0   4   8   12
///   server  #...#...#...
///   job     .###.##.....   due at 12
/// ```
#[test]
fn a_hard_server_is_throttled_until_its_deadline() {
    let device = network(100, 3, server(ServerKind::CbsHard, 1, 4));
    let workload = workload(KLMIRQD, 1, device, tasks(&[(5, 12)]));
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 1000100.1...");
}

/// Budget 1 in 4, work 5. Due at 4, 8, 12 (it ties with the job, which is listed first), 16, 20: it goes on as soon as
/// nothing more urgent wants the CPU.
#[test]
fn a_soft_server_goes_on_with_a_later_deadline() {
    let device = network(100, 5, server(ServerKind::CbsSoft, 1, 4));
    let workload = workload(KLMIRQD, 1, device, tasks(&[(5, 12)]));
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 1100000111..");
}

/// Budget 2 in 6; bottom halves of 1 at 0, 3 and 6. Budget used at 0 comes back at 6, budget used at 3 at 9; the
/// budget of the third is there at once.
#[test]
fn a_sporadic_server_gets_back_what_it_used_a_period_later() {
    let device = network(3, 1, server(ServerKind::Sporadic, 2, 6));
    let workload = workload(KLMIRQD, 1, device, tasks(&[(9, 24)]));
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 100100100100");
    let device = network(2, 1, server(ServerKind::Sporadic, 2, 6));
    let workload = self::workload(KLMIRQD, 1, device, tasks(&[(8, 24)]));
    // At 4 nothing is left: the third waits until 6, the one that came at 6 until 8.
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 101000101000");
}

/// The checker of traces knows the servers of devices, too: the schedule of one is none of one with half the budget.
#[test]
fn a_trace_is_judged_by_the_servers_of_its_devices() {
    for kind in [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic] {
        let workload = workload(KLMIRQD, 1, network(5, 2, server(kind, 2, 10)), tasks(&[(3, 20)]));
        let scheduler: Scheduler = "G-EDF".parse().expect("a scheduler's name");
        let mut plan = Plan::new(&workload, &scheduler, 0).expect("the simulator can run it");
        let records = run(&workload, &scheduler, Instant::from_millis(100), 0);
        let violations = |plan: &Plan| check::legality(&plan.header, &records, |_| None).violations.len();
        assert_eq!(violations(&plan), 0, "{kind:?}");
        assert_eq!(plan.header.servers[0].task, TaskId(1), "its thread comes after the task");
        plan.header.servers[0].budget = ms(1);
        assert!(violations(&plan) > 0, "{kind:?}");
    }
}

/// Under fixed priorities a server ranks as a task of its period would.
#[test]
fn under_rate_monotonic_priorities_a_server_ranks_by_its_period() {
    let system = |period| {
        let device = network(100, 2, server(ServerKind::CbsHard, 2, period));
        workload(KLMIRQD, 1, device, tasks(&[(1, 4), (3, 10)]))
    };
    assert_eq!(drawn(&system(6), "G-RM", 6), "cpu0 022101");
    assert_eq!(drawn(&system(3), "G-RM", 6), "cpu0 220101");
    assert_eq!(drawn(&system(12), "G-RM", 8), "cpu0 0111022.");
}

#[test]
fn the_seed_decides_on_sporadic_arrivals_and_no_two_are_closer_than_the_period() {
    let mut device = network(3, 1, None);
    device.arrival = Arrival::Sporadic { gap: Distribution::Uniform { min: Nanos::ZERO, max: ms(4) } };
    let workload = workload(InterruptHandling::Linux, 1, device, tasks(&[(1, 9)]));
    let arrivals = |seed| -> Vec<Instant> {
        let records = run(&workload, &Scheduler::GLOBAL_EDF, Instant::from_millis(300), seed);
        records
            .iter()
            .filter(|record| matches!(record.event, Event::Interrupt { .. }))
            .map(|record| record.at)
            .collect()
    };
    assert_eq!(arrivals(1), arrivals(1));
    assert_ne!(arrivals(1), arrivals(2));
    let gaps: Vec<Nanos> = arrivals(1).windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (ms(3)..=ms(7)).contains(gap)), "{gaps:?}");
    assert!(gaps.iter().any(|gap| *gap > ms(5)) && gaps.iter().any(|gap| *gap < ms(5)));
}

// --- Whatever the system --------------------------------------------------------------------------------------------

fn servers() -> impl Strategy<Value = Option<Server>> {
    let kinds = prop_oneof![Just(ServerKind::CbsHard), Just(ServerKind::CbsSoft), Just(ServerKind::Sporadic)];
    let server = (kinds, 1u64..600, 1u64..3_000).prop_map(|(kind, budget, period)| Server {
        kind,
        budget: Nanos::from_micros(budget.min(period)),
        period: Nanos::from_micros(period),
        priority: None,
    });
    prop::option::weighted(0.8, server)
}

fn random_device(index: usize) -> impl Strategy<Value = Device> {
    (servers(), 50u64..2_000, 1u64..800, 1u64..20, any::<bool>(), 0u16..3).prop_map(
        move |(server, period, bottom, top, sporadic, cpu)| Device {
            name: format!("net{index}"),
            cluster: 0,
            arrival: if sporadic {
                Arrival::Sporadic { gap: Distribution::Uniform { min: Nanos::ZERO, max: Nanos::from_micros(period) } }
            } else {
                Arrival::Periodic
            },
            period: Nanos::from_micros(period),
            top_half: ExecutionTime::constant(Nanos::from_micros(top)),
            bottom_half: ExecutionTime::constant(Nanos::from_micros(bottom)),
            interrupt_cpus: if cpu < 2 { vec![CpuId(cpu)] } else { vec![CpuId(0), CpuId(1)] },
            server,
        },
    )
}

fn handlings() -> impl Strategy<Value = InterruptHandling> {
    prop_oneof![
        1 => Just(InterruptHandling::Linux),
        1 => Just(InterruptHandling::ProcessAware),
        1 => Just(InterruptHandling::PreemptRt(ThreadPriority::Low)),
        1 => Just(InterruptHandling::PreemptRt(ThreadPriority::High)),
        3 => Just(KLMIRQD),
    ]
}

prop_compose! {
    fn systems()(
        devices in (random_device(0), random_device(1)),
        parameters in prop::collection::vec((1u64..900, 300u64..3_000), 1..6),
        handling in handlings(),
        costly in any::<bool>(),
    ) -> Workload {
        let us = Nanos::from_micros;
        let task = |(index, (wcet, period)): (usize, (u64, u64))| {
            Task::periodic(format!("t{index}"), us(wcet.min(period)), us(period))
        };
        let costs = OverheadCosts {
            release: Nanos(2_000),
            scheduling: Nanos(1_500),
            context_switch: Nanos(1_000),
            ipi_latency: Nanos(1_200),
            thread_release: Nanos(800),
            cache_preemption: Nanos(700),
            ..OverheadCosts::default()
        };
        let overheads = OverheadProfile::constant("random", if costly { costs } else { OverheadCosts::default() });
        let platform = Platform { devices: vec![devices.0, devices.1], overheads, ..Platform::identical(2) };
        Workload {
            gpu_management: GpuManagement { handling, ..GpuManagement::default() },
            ..Workload::new("random", platform, parameters.into_iter().enumerate().map(task).collect())
        }
    }
}

fn schedulers() -> impl Strategy<Value = Scheduler> {
    let rules = prop_oneof![Just(PriorityRule::Edf), Just(PriorityRule::RateMonotonic)];
    let invocations = prop_oneof![Just(Invocation::EventDriven), Just(Invocation::QuantumDriven)];
    let interrupts = prop_oneof![4 => Just(ReleaseInterrupts::Global), 1 => Just(ReleaseInterrupts::Dedicated)];
    (rules, invocations, interrupts).prop_map(|(rule, invocation, interrupts)| Scheduler {
        rule,
        invocation,
        interrupts,
        ..Scheduler::GLOBAL_EDF
    })
}

/// How long `thread` executed in each of the intervals in which it did.
fn executions_of(records: &[Record], thread: TaskId) -> Vec<(u64, u64)> {
    let runs = common::executions(records);
    runs.iter().filter(|run| run.job.task == thread).map(|run| (run.start.0, run.end.0)).collect()
}

/// The most that a server of this kind may run in a window of length `t`, however scheduled; see `policy::server`.
fn most(server: &Server, t: u64) -> u64 {
    let (budget, period) = (u128::from(server.budget.0), u128::from(server.period.0));
    let t = u128::from(t);
    let bound = match server.kind {
        ServerKind::CbsHard => 2 * budget + (t.saturating_sub(2 * budget) * budget).div_ceil(period),
        ServerKind::Sporadic => budget * (1 + t.div_ceil(period)),
        // It may use what no other job needs.
        ServerKind::CbsSoft => t,
    };
    bound.min(t) as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn the_schedule_is_legal_follows_the_policy_and_servers_stay_within_their_bandwidth(
        workload in systems(),
        scheduler in schedulers(),
        seed in any::<u64>(),
    ) {
        prop_assert_eq!(workload.validate(), Ok(()));
        let plan = Plan::new(&workload, &scheduler, seed).expect("all of it can be simulated");
        let records = run(&workload, &scheduler, Instant::from_millis(30), seed);
        let legality = check::legality(&plan.header, &records, |_| None);
        prop_assert!(legality.is_clean(), "{:#?}", legality);
        let policy = check::policy(&plan.header, &records);
        prop_assert!(policy.is_clean(), "{:#?}", policy);
        if workload.gpu_management.handling != KLMIRQD {
            return Ok(());
        }
        for (index, device) in workload.platform.devices.iter().enumerate() {
            let Some(server) = &device.server else { continue };
            let runs = executions_of(&records, TaskId((workload.tasks.len() + index) as u32));
            let mut before = 0;
            let sums: Vec<u64> = runs.iter().map(|&(from, to)| { before += to - from; before }).collect();
            for (first, &(from, to)) in runs.iter().enumerate() {
                let earlier = sums[first] - (to - from);
                for (last, &(_, end)) in runs.iter().enumerate().skip(first) {
                    let used = sums[last] - earlier;
                    prop_assert!(
                        used <= most(server, end - from),
                        "{:?} runs {} ns in [{}, {})", server, used, from, end
                    );
                }
            }
        }
    }
}
