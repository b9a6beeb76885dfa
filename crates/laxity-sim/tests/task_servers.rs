//! Tasks that are servers of any kind, with periods of their own.

mod common;

use common::{draw, executions, run, simulate};
use laxity_model::{
    ExecutionTime, Instant, Nanos, OverheadCosts, OverheadProfile, Platform, PriorityRule, Resource, ResourceProtocol,
    Scheduler, ServerKind, Step, Task, TaskServer, Workload,
};
use laxity_plan::Plan;
use laxity_trace::{Event, Record, check};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

/// `wcet` each `period`, in a server of 2 in 6.
fn served(kind: ServerKind, wcet: u64, period: u64) -> Task {
    let server = TaskServer { kind, budget: ms(2), period: Some(ms(6)) };
    Task { server: Some(server), ..Task::periodic("served", ms(wcet), ms(period)) }
}

fn drawn(tasks: Vec<Task>, scheduler: &str, columns: u64) -> String {
    let workload = Workload::new("w", Platform::identical(1), tasks);
    assert_eq!(workload.validate(), Ok(()));
    draw(&simulate(&workload, scheduler, Instant::from_millis(columns)), 1, MS, columns)
}

/// T0 needs 5, of which it has 2 in 6. T1 needs 6 by 9: later than T0's first budget, sooner than its second.
///
/// ```text
///                 0    5    10   15
///   hard     T0   ##....##....#              due 6, 12, 18
///   soft     T0   ##......###                due 6, and from 2 on 12: T1 goes first; at 10 due 18
/// ```
#[test]
fn a_hard_server_waits_and_a_soft_one_goes_on_with_less_urgency() {
    let tasks = |kind| {
        let other = Task { deadline: ms(9), ..Task::periodic("other", ms(6), ms(30)) };
        vec![served(kind, 5, 30), other]
    };
    assert_eq!(drawn(tasks(ServerKind::CbsHard), "G-EDF", 15), "cpu0 0011111100..0..");
    assert_eq!(drawn(tasks(ServerKind::CbsSoft), "G-EDF", 15), "cpu0 00111111000....");
}

/// The second job, at 8, finds 1 left. Of a sporadic server each part comes back 6 after a job could first use it: at 12 and at 14; of a
/// constant bandwidth server all of it at 12.
#[test]
fn parts_of_a_sporadic_budget_come_back_one_by_one() {
    assert_eq!(drawn(vec![served(ServerKind::Sporadic, 3, 8)], "G-EDF", 16), "cpu0 00....0.0...0.0.");
    assert_eq!(drawn(vec![served(ServerKind::CbsHard, 3, 8)], "G-EDF", 16), "cpu0 00....0.0...00..");
}

/// The other task's period is between those of the server and of its task.
#[test]
fn a_server_ranks_by_its_own_period() {
    let other = || Task::periodic("other", ms(3), ms(9));
    for kind in [ServerKind::CbsHard, ServerKind::Sporadic] {
        assert_eq!(drawn(vec![other(), served(kind, 4, 30)], "G-RM", 9), "cpu0 11000.11.");
    }
    let alone = Task { server: None, ..served(ServerKind::CbsHard, 4, 30) };
    assert_eq!(drawn(vec![other(), alone], "G-RM", 9), "cpu0 0001111..");
    // Nothing makes it wait.
    assert_eq!(drawn(vec![other(), served(ServerKind::CbsSoft, 4, 30)], "G-RM", 9), "cpu0 1111000..");
}

/// The judge goes by what the header says, and not by what budgets say about themselves.
#[test]
fn servers_of_more_bandwidth_than_the_header_says_are_found() {
    for kind in [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic] {
        for scheduler in ["P-EDF", "P-RM"] {
            let server = TaskServer { kind, budget: ms(1), period: Some(ms(2)) };
            let served = Task { server: Some(server), ..Task::periodic("served", ms(90), ms(100)) };
            let workload =
                Workload::new("w", Platform::identical(1), vec![served, Task::periodic("other", ms(1), ms(7))]);
            let scheduler: Scheduler = scheduler.parse().expect("it is one");
            let plan = Plan::new(&workload, &scheduler, 0).expect("all of it can be simulated");
            let records = run(&workload, &scheduler, Instant::from_millis(200), 0);
            let found = |change: &dyn Fn(&mut laxity_trace::ServerInfo)| {
                let mut header = plan.header.clone();
                change(&mut header.servers[0]);
                check::legality(&header, &records, |_| None).violations.len()
            };
            assert_eq!(found(&|_| {}), 0, "{kind:?} {scheduler}");
            // The true one gets five times as much, and one and a half times.
            assert!(found(&|server| server.period = ms(10)) > 0, "{kind:?} {scheduler}");
            assert!(found(&|server| server.period = ms(3)) > 0, "{kind:?} {scheduler}");
            assert!(found(&|server| server.budget = Nanos(500_000)) > 0, "{kind:?} {scheduler}");
        }
    }
}

// --- Whatever the system --------------------------------------------------------------------------------------------

prop_compose! {
    /// Servers of all kinds, many of whose jobs need several budgets.
    fn servers()(
        parameters in prop::collection::vec((1u64..40, 1u64..5, 1u64..=10, 1u64..400, 0usize..3), 1..6),
        cpus in 1usize..4,
        sections in any::<bool>(),
        costly in any::<bool>(),
    ) -> Workload {
        let us = Nanos::from_micros;
        let task = |(index, (period, budgets, share, need, kind)): (usize, (u64, u64, u64, u64, usize))| {
            let (period, own) = (100 * period * budgets, 100 * period);
            let budget = own * share / 20;
            let wcet = us((budget * budgets * need / 200).clamp(1, period));
            let kind = [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic][kind];
            let first = Nanos(wcet.0 - wcet.0 / 2);
            let rest = ExecutionTime::constant(Nanos(wcet.0 / 2));
            let rest = match (sections, index % 2) {
                (true, 0) => Step::Critical { resource: 0, body: vec![Step::Cpu(rest)] },
                (true, _) => Step::NonPreemptive(rest),
                _ => Step::Cpu(rest),
            };
            let server = TaskServer { kind, budget: us(budget), period: (index % 3 > 0).then_some(us(own)) };
            Task {
                body: vec![Step::Cpu(ExecutionTime::constant(first)), rest],
                server: Some(server),
                ..Task::periodic(format!("t{index}"), us(1), us(period))
            }
        };
        let mutex = Resource { name: "map".to_owned(), protocol: ResourceProtocol::PriorityInheritance, replicas: 1 };
        let costs = OverheadCosts {
            release: Nanos(2_000),
            scheduling: Nanos(1_500),
            context_switch: Nanos(1_000),
            ipi_latency: Nanos(1_200),
            ..OverheadCosts::default()
        };
        let costs = if costly { costs } else { OverheadCosts::default() };
        let platform = Platform { overheads: OverheadProfile::constant("random", costs), ..Platform::identical(cpus) };
        let tasks = parameters.into_iter().enumerate().map(task).collect();
        Workload { resources: vec![mutex], ..Workload::new("w", platform, tasks) }
    }
}

/// The most that a server may run in a window of length `t`; see `policy::server::{Cbs, SporadicServer}`.
fn most(server: TaskServer, period: Nanos, t: u64) -> u64 {
    let (budget, period, t) = (u128::from(server.budget.0), u128::from(period.0), u128::from(t));
    let most = match server.kind {
        ServerKind::CbsHard => 2 * budget + (t.saturating_sub(2 * budget) * budget).div_ceil(period),
        ServerKind::Sporadic => budget * (1 + t.div_ceil(period)),
        ServerKind::CbsSoft => t,
    };
    most.min(t) as u64
}

fn waits(records: &[Record], task: usize) -> usize {
    let is_wait = |record: &&Record| matches!(record.event, Event::Suspend { job, .. } if job.task.index() == task);
    records.iter().filter(is_wait).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Legal, budgets included; by the policy; no hard or sporadic server runs more than it may in any window; and no job of a
    /// soft one ever waits for a budget.
    #[test]
    fn servers_of_any_kind_keep_to_their_budgets(workload in servers(), fixed in any::<bool>(), seed in any::<u64>()) {
        if workload.validate().is_err() {
            return Ok(());
        }
        let rule = if fixed { PriorityRule::RateMonotonic } else { PriorityRule::Edf };
        let scheduler = Scheduler { rule, ..Scheduler::GLOBAL_EDF };
        let plan = Plan::new(&workload, &scheduler, seed).expect("all of it can be simulated");
        let records = run(&workload, &scheduler, Instant::from_millis(40), seed);
        let legality = check::legality(&plan.header, &records, |_| None);
        prop_assert!(legality.is_clean(), "{}", legality);
        let policy = check::policy(&plan.header, &records);
        prop_assert!(policy.is_clean(), "{}", policy);
        let has_sections = workload.tasks.iter().any(|task| !matches!(task.body[1], Step::Cpu(_)));
        if has_sections {
            // They may outlast budgets, and jobs wait for them.
            return Ok(());
        }
        let runs = executions(&records);
        for (index, task) in workload.tasks.iter().enumerate() {
            let server = task.server.expect("all are");
            if server.kind == ServerKind::CbsSoft {
                prop_assert_eq!(waits(&records, index), 0, "{} is soft", task.name);
            }
            let own: Vec<(u64, u64)> =
                runs.iter().filter(|run| run.job.task.index() == index).map(|run| (run.start.0, run.end.0)).collect();
            for (first, &(from, _)) in own.iter().enumerate() {
                let mut used = 0;
                for &(start, end) in &own[first..] {
                    used += end - start;
                    let bound = most(server, task.ranked_by().0, end - from);
                    prop_assert!(used <= bound, "{} runs {} ns in [{}, {})", task.name, used, from, end);
                }
            }
        }
    }
}
