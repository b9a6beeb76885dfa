//! Budgets: a live job is suspended where the simulated one is, and gets the same budgets with the same deadlines.

use std::collections::BTreeMap;
use std::sync::Arc;

use laxity_model::{Instant, JobId, Nanos, TaskId, Workload};
use laxity_runtime::code::{Code, Edges, View};
use laxity_runtime::{LinuxScheduler, LivePlan, Options};
use laxity_sys::clock;
use laxity_trace::check::PolicyCheck;
use laxity_trace::{Event, Record, Sink};

use crate::harness::{SEED, live_by, lives, ms, simulated, start, workload};

/// Budgets that tasks were given: of which size, and with which deadline.
fn replenished(records: &[Record]) -> BTreeMap<TaskId, Vec<(Nanos, Instant)>> {
    let mut found: BTreeMap<TaskId, Vec<_>> = BTreeMap::new();
    for record in records {
        if let Event::Replenish { task, budget, deadline } = record.event {
            found.entry(task).or_default().push((budget, deadline));
        }
    }
    found
}

/// Runs the first job of each task live and simulated by EDF; answers both, if Linux permits.
fn both(workload: &Workload, linux: LinuxScheduler) -> Option<[Vec<Record>; 2]> {
    let records = live_by(workload, ms(100), linux)?;
    let options = Options { scheduler: workload.scheduler, linux: Some(linux), seed: SEED, duration: ms(100) };
    let plan = LivePlan::new(workload, &options).expect("it ran");
    if plan.header().is_linked {
        let mut check = PolicyCheck::new(plan.header());
        records.iter().for_each(|record| check.record(record.at, record.event));
        let report = check.finish();
        assert!(report.is_clean(), "{linux}: {:?}", report.violations);
    }
    Some([records, simulated(workload, ms(3_000))])
}

/// Needs three budgets: it waits for two of them until the deadline of the one before, and is later due each time.
#[test]
fn a_job_that_needs_more_than_its_budget_waits_for_the_next_as_simulated() {
    let workload = workload(
        r#"
scheduler = "P-EDF"
[platform]
cpus = 1
[[task]]
name = "greedy"
period = "500 ms"
wcet = "25 ms"
budget = "10 ms"
[[task]]
name = "other"
period = "400 ms"
phase = "5 ms"
wcet = "2 ms"
"#,
    );
    for linux in [LinuxScheduler::Other, LinuxScheduler::Laxity] {
        let Some([live, model]) = both(&workload, linux) else { continue };
        let first = JobId { task: TaskId(0), index: 0 };
        let (did, expected) = (lives(&live), lives(&model));
        assert_eq!(did[&first], expected[&first], "{linux}");
        assert_eq!(did[&first].iter().filter(|(did, _)| *did == "sleeps").count(), 2, "{linux}");
        let (given, expected) = (replenished(&live), replenished(&model));
        for ((budget, deadline), (full, same)) in given[&TaskId(0)].iter().zip(&expected[&TaskId(0)]).take(3) {
            assert_eq!(deadline, same, "{linux}");
            assert!(budget <= full, "{linux}: what was used beyond a budget is paid back");
        }
        assert_eq!(given[&TaskId(0)].len(), 3, "{linux}");
    }
}

#[test]
fn a_job_ends_its_section_before_it_waits_for_budget() {
    let workload = workload(
        r#"
scheduler = "P-EDF"
[platform]
cpus = 1
[[resource]]
name = "map"
[[task]]
name = "greedy"
period = "500 ms"
budget = "10 ms"
body = [{ cpu = "5 ms" }, { critical = "map", body = [{ cpu = "15 ms" }] }, { nonpreemptive = "5 ms" }, { cpu = "10 ms" }]
"#,
    );
    for linux in [LinuxScheduler::Other, LinuxScheduler::Laxity] {
        let Some([live, model]) = both(&workload, linux) else { continue };
        let first = JobId { task: TaskId(0), index: 0 };
        assert_eq!(lives(&live)[&first], lives(&model)[&first], "{linux}");
    }
}

/// When each task has used a budget up, and which job is complete when, in order: what servers decide.
fn order(records: &[Record]) -> Vec<(&'static str, TaskId, u64)> {
    let mut order = Vec::new();
    for record in records {
        match record.event {
            Event::Replenish { task, deadline, .. } => order.push(("budget due", task, deadline.0)),
            Event::Complete { job, .. } => order.push(("complete", job.task, job.index.into())),
            _ => {}
        }
    }
    order
}

/// Jobs of 25 ms in budgets of 10 ms, beside one that is due between the deadlines of two of the budgets.
fn beside(kind: &str, cpus: usize) -> Workload {
    workload(&format!(
        r#"
scheduler = "G-EDF"
[platform]
cpus = {cpus}
[[task]]
name = "greedy"
period = "500 ms"
wcet = "25 ms"
server = {{ kind = "{kind}", budget = "10 ms", period = "100 ms" }}
[[task]]
name = "other"
period = "500 ms"
deadline = "150 ms"
wcet = "30 ms"
"#
    ))
}

/// A soft server's job goes on with the next budget, which is due later than the other job: so that one preempts it. Hard and
/// sporadic ones wait.
#[test]
fn servers_of_all_kinds_give_live_the_budgets_and_the_order_that_are_simulated() {
    for kind in ["cbs_hard", "cbs_soft", "sporadic"] {
        let workload = beside(kind, 1);
        let Some([live, model]) = both(&workload, LinuxScheduler::Laxity) else { continue };
        let first = JobId { task: TaskId(0), index: 0 };
        let (did, expected) = (lives(&live), lives(&model));
        assert_eq!(did[&first], expected[&first], "{kind}");
        let sleeps = did[&first].iter().filter(|(did, _)| *did == "sleeps").count();
        assert_eq!(sleeps, if kind == "cbs_soft" { 0 } else { 2 }, "{kind}");
        let expected = order(&model);
        let first_jobs = order(&live);
        // Deadlines of a sporadic server count from its first use of a budget; to the microsecond live.
        let coarse = |order: &[(&'static str, TaskId, u64)]| -> Vec<_> {
            order
                .iter()
                .map(|&(what, task, at)| (what, task, if what == "complete" { at } else { at / 50_000_000 }))
                .collect()
        };
        assert_eq!(coarse(&first_jobs), coarse(&expected[..first_jobs.len()]), "{kind}");
        assert_eq!(first_jobs.iter().filter(|(what, ..)| *what == "budget due").count(), 3, "{kind}");
        let preemptions = |records: &[Record]| {
            let of_first = |record: &&Record| matches!(record.event, Event::Preempt { job, .. } if job == first);
            records.iter().filter(of_first).count()
        };
        if kind == "cbs_soft" {
            assert!(
                preemptions(&live) >= 1 && preemptions(&model) == 1,
                "the other job is due before its second budget"
            );
        }
    }
}

/// No class of Linux has the deadlines of a server.
#[test]
fn a_server_is_refused_under_classes_of_linux_and_runs_under_laxity_by_default() {
    for kind in ["cbs_hard", "cbs_soft", "sporadic"] {
        let workload = beside(kind, 1);
        let options = |linux| Options { scheduler: workload.scheduler, linux, seed: SEED, duration: ms(100) };
        for linux in [LinuxScheduler::Other, LinuxScheduler::Deadline] {
            let Err(refusal) = LivePlan::new(&workload, &options(Some(linux))) else { panic!("{kind} under {linux}") };
            let refusal = refusal.to_string();
            let is_expected = refusal.contains("no class of Linux") && refusal.contains("--scheduler laxity");
            // This class may not be had here at all.
            assert!(is_expected || linux == LinuxScheduler::Deadline, "{refusal}");
        }
        if let Ok(plan) = LivePlan::new(&workload, &options(None)) {
            assert_eq!(plan.linux(), LinuxScheduler::Laxity);
        }
    }
}

/// A soft server's job of 30 ms in a section and 10 ms after it, in budgets of 10 ms in 200 ms, beside these two tasks.
fn holder(waiter: &str, middle: &str) -> Workload {
    workload(&format!(
        r#"
scheduler = "G-EDF"
[platform]
cpus = 1
[[resource]]
name = "map"
[[task]]
name = "greedy"
period = "900 ms"
server = {{ kind = "cbs_soft", budget = "10 ms", period = "200 ms" }}
body = [{{ critical = "map", body = [{{ cpu = "30 ms" }}] }}, {{ cpu = "10 ms" }}]
[[task]]
name = "waiter"
period = "900 ms"
phase = "5 ms"
deadline = "{waiter}"
body = [{{ critical = "map", body = [{{ cpu = "5 ms" }}] }}]
[[task]]
name = "middle"
period = "900 ms"
phase = "15 ms"
deadline = "{middle}"
wcet = "10 ms"
"#
    ))
}

/// Grants, unlocks and completions of the first jobs, in order.
fn of_locks(records: &[Record]) -> Vec<(&'static str, u32)> {
    let of = |record: &Record| match record.event {
        Event::Grant { job, .. } if job.index == 0 => Some(("has", job.task.0)),
        Event::Unlock { job, .. } if job.index == 0 => Some(("gives up", job.task.0)),
        Event::Complete { job, .. } if job.index == 0 => Some(("complete", job.task.0)),
        _ => None,
    };
    records.iter().filter_map(of).collect()
}

/// In the section its own deadline is postponed beyond that of `middle`; it keeps the one of `waiter`, which is before that, to
/// the end of the section, and then waits for both.
#[test]
fn a_postponed_holder_keeps_what_it_inherits() {
    let Some([live, model]) = both(&holder("150 ms", "200 ms"), LinuxScheduler::Laxity) else { return };
    let (greedy, waiter, middle) = (0, 1, 2);
    let expected = [
        ("has", greedy),
        ("gives up", greedy),
        ("has", waiter),
        ("gives up", waiter),
        ("complete", waiter),
        ("complete", middle),
        ("complete", greedy),
    ];
    assert_eq!(of_locks(&model), expected);
    assert_eq!(of_locks(&live), expected);
}

/// The first budget is due before both others, the second after both: in the section the holder has the deadline of `waiter`
/// from then on, and `middle` preempts it.
#[test]
fn a_postponed_holder_has_no_more_than_it_inherits() {
    let Some([live, model]) = both(&holder("300 ms", "240 ms"), LinuxScheduler::Laxity) else { return };
    let (greedy, waiter, middle) = (0, 1, 2);
    let expected = [
        ("has", greedy),
        ("complete", middle),
        ("gives up", greedy),
        ("has", waiter),
        ("gives up", waiter),
        ("complete", waiter),
        ("complete", greedy),
    ];
    assert_eq!(of_locks(&model), expected);
    assert_eq!(of_locks(&live), expected);
}

/// Uses up 12 ms of CPU time in each call.
struct Burns;

impl Code for Burns {
    fn call(&mut self, _: &mut View<'_>) -> Result<(), String> {
        let until = clock::thread_cpu_time() + ms(12);
        while clock::thread_cpu_time() < until {}
        Ok(())
    }
}

/// The call of the first job uses 12 ms of budgets of 5: the next one is spent, and the one after, from 200 ms on, has 3 left.
#[test]
fn a_call_of_own_code_is_charged_when_it_returns() {
    let workload = workload(
        r#"
scheduler = "P-EDF"
[platform]
cpus = 1
[[task]]
name = "burns"
period = "100 ms"
wcet = "12 ms"
budget = "5 ms"
"#,
    );
    let options =
        Options { scheduler: workload.scheduler, linux: Some(LinuxScheduler::Other), seed: SEED, duration: ms(150) };
    let mut plan = LivePlan::new(&workload, &options).expect("permitted everywhere");
    plan.bind("burns", Arc::new(|_: &str, _: &Edges| Ok(Box::new(Burns) as Box<dyn Code>)), false).expect("a task");
    let mut records = Vec::new();
    let mut run = start(&plan).expect("it starts");
    while !run.is_over() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(run.collect(&mut records).is_empty());
    }
    run.finish(&mut records).1.expect("no job fails");
    let second = JobId { task: TaskId(0), index: 1 };
    let ready = records.iter().find(|record| matches!(record.event, Event::Ready { job, .. } if job == second));
    let ready = ready.expect("it was released at 100 ms").at;
    assert!(ready >= Instant::ZERO + ms(200), "{ready}");
    let given = replenished(&records);
    let (rest, _) = given[&TaskId(0)][1];
    assert!(rest <= ms(3), "{rest} of a budget that the call before used in part");
}
