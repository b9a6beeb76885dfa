//! Tasks with a budget: a job that needs more goes on a period later, and others do not notice.

mod common;

use common::{draw, executions, run, simulate};
use laxity_model::{
    ExecutionTime, Gpu, GpuArbitration, GpuManagement, GpuSync, Instant, Nanos, OverheadCosts, OverheadProfile,
    Platform, PriorityRule, Resource, ResourceProtocol, Scheduler, Step, Task, TaskId, TaskServer, Workload,
};
use laxity_plan::Plan;
use laxity_trace::{Event, Record, check};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn cpu(length: u64) -> Step {
    Step::Cpu(ExecutionTime::constant(ms(length)))
}

fn task(name: &str, body: Vec<Step>, period: u64) -> Task {
    Task { body, ..Task::periodic(name, ms(1), ms(period)) }
}

fn limited(name: &str, body: Vec<Step>, period: u64, budget: u64) -> Task {
    Task { server: Some(TaskServer::hard(ms(budget))), ..task(name, body, period) }
}

fn workload(cpus: usize, tasks: Vec<Task>) -> Workload {
    let mutex = Resource { name: "map".to_owned(), protocol: ResourceProtocol::PriorityInheritance, replicas: 1 };
    Workload { resources: vec![mutex], ..Workload::new("w", Platform::identical(cpus), tasks) }
}

fn drawn(workload: &Workload, scheduler: &str, columns: u64) -> String {
    assert_eq!(workload.validate(), Ok(()));
    draw(&simulate(workload, scheduler, Instant::from_millis(columns)), workload.platform.cpus as u16, MS, columns)
}

/// T0 needs 4 where it has 2 in 5: its first job goes on at 5, due at 10; the second, which arrived at 5, has to wait for
/// the budget of 10.
///
/// ```text
///        0    5    10   15
///   T0   ##...##...##...##...      due 5, then 10; then 15, then 20
///   T1   ..###.......###.....
/// ```
#[test]
fn a_job_that_overruns_goes_on_in_the_next_period_and_its_successors_after_that() {
    let tasks = vec![limited("overruns", vec![cpu(4)], 5, 2), task("other", vec![cpu(3)], 10)];
    let workload = workload(1, tasks);
    assert_eq!(drawn(&workload, "G-EDF", 20), "cpu0 0011100...0011100...");
}

#[test]
fn without_an_overrun_a_budget_changes_nothing() {
    let system = |budget: Option<Nanos>| {
        let tasks = vec![
            Task { server: budget.map(TaskServer::hard), ..task("exact", vec![cpu(2)], 5) },
            task("other", vec![cpu(3)], 10),
        ];
        drawn(&workload(1, tasks), "G-EDF", 40)
    };
    assert_eq!(system(Some(ms(2))), system(None));
}

/// Under fixed priorities it is throttled, and keeps its rank.
#[test]
fn under_fixed_priorities_an_overrun_waits_and_keeps_its_rank() {
    let tasks = vec![limited("overruns", vec![cpu(4)], 5, 2), task("other", vec![cpu(8)], 20)];
    assert_eq!(drawn(&workload(1, tasks), "G-RM", 20), "cpu0 00111001110011.00...");
}

/// A job that exhausts its budget in a critical section goes on to the end of the section; T0 holds the mutex until 4, then waits for 10.
///
/// ```text
///        0         10
///   T0   [[[[......##        budget 2 in 10; [ in the section
///   T1   ....[[....          wants the mutex from 1 on
/// ```
#[test]
fn an_overrun_in_a_critical_section_ends_with_the_section() {
    let section = |length| Step::Critical { resource: 0, body: vec![cpu(length)] };
    let tasks = vec![
        limited("overruns", vec![section(4), cpu(2)], 10, 2),
        Task { phase: ms(1), ..task("other", vec![section(2)], 30) },
    ];
    assert_eq!(drawn(&workload(1, tasks), "G-EDF", 12), "cpu0 000011....00");
}

#[test]
fn an_overrun_in_a_non_preemptive_section_ends_with_the_section() {
    let section = Step::NonPreemptive(ExecutionTime::constant(ms(4)));
    let tasks = vec![limited("overruns", vec![section, cpu(1)], 10, 2), task("other", vec![cpu(3)], 30)];
    assert_eq!(drawn(&workload(1, tasks), "G-EDF", 12), "cpu0 0000111...00");
}

/// GPUSync: one GPU with one token. The holder overruns at 2: the next waiter is admitted to the queue at once, and is
/// granted the token when it is given up, at 4.
#[test]
fn the_next_waiter_for_a_token_is_granted_it_when_the_overrun_ends() {
    let gpu = Gpu {
        name: "gpu0".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: vec![laxity_model::CpuId(0)],
    };
    let section = |length| Step::GpuSection { body: vec![cpu(length)] };
    let tasks = vec![
        limited("overruns", vec![section(4), cpu(1)], 10, 2),
        Task { phase: ms(1), ..task("next", vec![section(3)], 30) },
        Task { phase: ms(1), ..task("last", vec![section(1)], 40) },
    ];
    let sync =
        GpuSync { tokens: 1, fifo_length: Some(2), hold: laxity_model::TokenHold::Section, ..GpuSync::default() };
    let mut workload = workload(3, tasks);
    workload.platform.gpus = vec![gpu];
    workload.gpu_management = GpuManagement { arbitration: GpuArbitration::GpuSync(sync), ..GpuManagement::default() };
    assert_eq!(drawn(&workload, "G-EDF", 12), "cpu0 0000......00\ncpu1 ....111.....\ncpu2 .......2....");
    let records = simulate(&workload, "G-EDF", Instant::from_millis(12));
    let grants: Vec<(u64, u32)> = records
        .iter()
        .filter_map(|record| match record.event {
            Event::Grant { job, .. } => Some((record.at.0 / MS, job.task.0)),
            _ => None,
        })
        .collect();
    assert_eq!(grants, [(0, 0), (4, 1), (7, 2), (11, 0)]);
}

// --- Whatever the system --------------------------------------------------------------------------------------------

prop_compose! {
    /// Tasks of one CPU whose budgets fill it at most, some of which overrun.
    fn isolated()(
        parameters in prop::collection::vec((1u64..40, 1u64..=10, 1u64..=4, any::<bool>()), 2..6),
        sections in any::<bool>(),
    ) -> Workload {
        let count = parameters.len() as u64;
        let us = Nanos::from_micros;
        let task = |(index, (period, share, excess, overruns)): (usize, (u64, u64, u64, bool))| {
            let period = 100 * period;
            let budget = (period * share / (10 * count)).max(1);
            let wcet = if overruns { (budget * excess).min(period) } else { budget };
            let first = ExecutionTime::constant(us(wcet - wcet / 2));
            let rest = ExecutionTime::constant(us(wcet / 2));
            let mut body = vec![Step::Cpu(first)];
            if wcet / 2 > 0 {
                body.push(if sections { Step::Critical { resource: 0, body: vec![Step::Cpu(rest)] } } else { Step::Cpu(rest) });
            }
            Task { body, server: Some(TaskServer::hard(us(budget))), ..Task::periodic(format!("t{index}"), us(1), us(period)) }
        };
        workload(1, parameters.into_iter().enumerate().map(task).collect())
    }
}

fn budget(task: &Task) -> Nanos {
    task.server.expect("all have one").budget
}

fn missed(records: &[Record], plan: &Plan) -> Vec<TaskId> {
    let mut deadlines = std::collections::BTreeMap::new();
    let mut missed = Vec::new();
    for record in records {
        match record.event {
            Event::Release { job, deadline } => {
                deadlines.insert(job, deadline);
            }
            Event::Complete { job, .. } if record.at > deadlines.remove(&job).expect("it was released") => {
                missed.push(job.task);
            }
            _ => {}
        }
    }
    let end = records.last().map_or(Instant::ZERO, |record| record.at);
    missed.extend(deadlines.into_iter().filter(|&(_, deadline)| deadline < end).map(|(job, _)| job.task));
    assert!(missed.iter().all(|task| task.index() < plan.header.tasks.len()));
    missed
}

/// At most what a hard server may run in a window of length `t`; see `policy::server::Cbs`.
fn most(budget: Nanos, period: Nanos, t: u64) -> u64 {
    let (budget, t) = (u128::from(budget.0), u128::from(t));
    (2 * budget + (t.saturating_sub(2 * budget) * budget).div_ceil(u128::from(period.0))).min(t) as u64
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Temporal isolation: a task that stays within its budget meets its deadlines, whatever the others need. With critical
    /// sections, which delay other tasks, only the schedule's legality is asserted.
    #[test]
    fn a_task_within_its_budget_does_not_notice_that_others_overrun(workload in isolated(), seed in any::<u64>()) {
        prop_assert_eq!(workload.validate(), Ok(()));
        let plan = Plan::new(&workload, &Scheduler::GLOBAL_EDF, seed).expect("all of it can be simulated");
        let records = run(&workload, &Scheduler::GLOBAL_EDF, Instant::from_millis(40), seed);
        let legality = check::legality(&plan.header, &records, |_| None);
        prop_assert!(legality.is_clean(), "{:#?}", legality);
        let policy = check::policy(&plan.header, &records);
        prop_assert!(policy.is_clean(), "{:#?}", policy);
        if workload.tasks.iter().any(|task| task.body.iter().any(|step| matches!(step, Step::Critical { .. }))) {
            return Ok(());
        }
        for task in missed(&records, &plan) {
            let task = &workload.tasks[task.index()];
            prop_assert!(task.wcet() > budget(task), "{} stays within its budget", task.name);
        }
        for (index, task) in workload.tasks.iter().enumerate() {
            let runs = executions(&records);
            let own: Vec<(u64, u64)> =
                runs.iter().filter(|run| run.job.task.index() == index).map(|run| (run.start.0, run.end.0)).collect();
            for (first, &(from, _)) in own.iter().enumerate() {
                let mut used = 0;
                for &(start, end) in &own[first..] {
                    used += end - start;
                    let bound = most(budget(task), task.period, end - from);
                    prop_assert!(used <= bound, "{} runs {} ns in [{}, {})", task.name, used, from, end);
                }
            }
        }
    }

    /// Several CPUs, overheads, either rule: legal, and no job is lost.
    #[test]
    fn throttled_jobs_go_on_under_any_rule_and_overheads(
        workload in isolated(),
        cpus in 1usize..4,
        fixed in any::<bool>(),
        costly in any::<bool>(),
    ) {
        let mut workload = workload;
        let costs = OverheadCosts {
            release: Nanos(2_000),
            scheduling: Nanos(1_500),
            context_switch: Nanos(1_000),
            ipi_latency: Nanos(1_200),
            ..OverheadCosts::default()
        };
        let overheads = OverheadProfile::constant("random", if costly { costs } else { OverheadCosts::default() });
        workload.platform = Platform { overheads, ..Platform::identical(cpus) };
        let rule = if fixed { PriorityRule::RateMonotonic } else { PriorityRule::Edf };
        let scheduler = Scheduler { rule, ..Scheduler::GLOBAL_EDF };
        let plan = Plan::new(&workload, &scheduler, 1).expect("all of it can be simulated");
        let records = run(&workload, &scheduler, Instant::from_millis(40), 1);
        let legality = check::legality(&plan.header, &records, |_| None);
        prop_assert!(legality.is_clean(), "{:#?}", legality);
        let policy = check::policy(&plan.header, &records);
        prop_assert!(policy.is_clean(), "{:#?}", policy);
        let suspended = records.iter().filter(|record| matches!(record.event, Event::Suspend { .. })).count();
        let resumed = records.iter().filter(|record| matches!(record.event, Event::Resume { .. })).count();
        prop_assert!(suspended - resumed <= workload.tasks.len());
    }
}
