//! Code of the user that does not come back: its budget ends it all the same, wherever it is, and the other tasks keep theirs.

use std::path::Path;
use std::sync::Arc;

use laxity_model::{Instant, JobId, Nanos, TaskId, Workload};
use laxity_runtime::code::{Code, Edges, View};
use laxity_runtime::{LinuxScheduler, LivePlan, Next, Options};
use laxity_sys::clock;
use laxity_testing::{Alone, skip};
use laxity_trace::check::{LegalityCheck, PolicyCheck};
use laxity_trace::{Event, Record, Sink};

use crate::harness::{SEED, ms, start, workload};

/// Computes for so long in each call, and says nothing meanwhile.
struct Loops(Nanos);

impl Code for Loops {
    fn call(&mut self, _: &mut View<'_>) -> Result<(), String> {
        let until = clock::thread_cpu_time() + self.0;
        while clock::thread_cpu_time() < until {
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// Runs `workload` under Laxity's scheduler, its task "loops" with code that computes for `span`; judges the trace and
/// answers with it.
fn run(workload: &Workload, span: Nanos, duration: Nanos) -> Option<Vec<Record>> {
    let options = Options { scheduler: workload.scheduler, linux: Some(LinuxScheduler::Laxity), seed: SEED, duration };
    let _alone = Alone::with_the_scheduler();
    let mut plan = match LivePlan::new(workload, &options) {
        Ok(plan) => plan,
        Err(refusal) => {
            skip(refusal);
            return None;
        }
    };
    let make = move |_: &str, _: &Edges| Ok(Box::new(Loops(span)) as Box<dyn Code>);
    plan.bind("loops", Arc::new(make), false).expect("a task");
    let run = match start(&plan) {
        Ok(run) => run,
        Err(refusal) => {
            skip(refusal);
            return None;
        }
    };
    let mut records = Vec::new();
    let ended = run.carry_on(&mut records, |_, _, _| Next::GoOn);
    assert_eq!(ended.failed, Ok(()));
    let (mut legality, mut policy) = (LegalityCheck::new(plan.header()), PolicyCheck::new(plan.header()));
    for record in &records {
        legality.record(record.at, record.event);
        policy.record(record.at, record.event);
    }
    let (legality, policy) = (legality.finish(), policy.finish());
    assert!(legality.is_clean(), "{:?}", legality.violations);
    assert!(policy.is_clean(), "{:?}", policy.violations);
    Some(records)
}

const LOOPS: JobId = JobId { task: TaskId(0), index: 0 };
const STEADY: TaskId = TaskId(1);

/// A job of ten budgets of 5 ms in 20, beside one that needs 4 ms in 10: together 65 % of the CPU.
fn beside(kind: &str) -> Workload {
    workload(&format!(
        r#"
scheduler = "G-EDF"
[platform]
cpus = 1
[[task]]
name = "loops"
period = "400 ms"
wcet = "50 ms"
server = {{ kind = "{kind}", budget = "5 ms", period = "20 ms" }}
[[task]]
name = "steady"
period = "10 ms"
wcet = "4 ms"
"#
    ))
}

/// How often the looping job did what `did` tells.
fn count(records: &[Record], did: impl Fn(&Event) -> bool) -> usize {
    records.iter().filter(|record| did(&record.event)).count()
}

/// The jobs of the steady task that were complete while the looping job was there.
fn completed_beside(records: &[Record]) -> usize {
    let end = records.iter().position(|record| matches!(record.event, Event::Complete { job: LOOPS, .. }));
    let end = end.expect("the looping job has budgets until it is complete");
    count(&records[..end], |event| matches!(event, Event::Complete { job, .. } if job.task == STEADY))
}

/// By how much the latest job of the steady task was late, and for how long no thread had the CPU at all.
fn latest(records: &[Record]) -> (Nanos, Nanos) {
    let (mut due, mut late, mut stolen) = (Vec::new(), Nanos::ZERO, Nanos::ZERO);
    for record in records {
        match record.event {
            Event::Release { job, deadline } if job.task == STEADY => due.push((job, deadline)),
            Event::Complete { job, .. } if job.task == STEADY => {
                let (_, deadline) = due.iter().find(|(released, _)| *released == job).expect("it was released");
                late = late.max(record.at.saturating_since(*deadline));
            }
            Event::Stolen { duration, .. } => stolen += duration,
            _ => {}
        }
    }
    (late, stolen)
}

/// Hard and sporadic budgets: without them the looping job, due at 20 ms, would keep the CPU for 50 ms.
#[test]
fn code_that_loops_for_ten_budgets_is_throttled_by_each_and_the_others_keep_their_deadlines() {
    for kind in ["cbs_hard", "sporadic"] {
        for attempt in 0.. {
            let Some(records) = run(&beside(kind), ms(50), ms(350)) else { return };
            let sleeps = count(&records, |event| matches!(event, Event::Suspend { job: LOOPS, .. }));
            let wakes = count(&records, |event| matches!(event, Event::Resume { job: LOOPS, .. }));
            assert!(sleeps >= 2 && sleeps == wakes, "{kind}: throttled {sleeps} times, resumed {wakes}");
            let beside = completed_beside(&records);
            assert!(beside >= 4, "{kind}: {beside} jobs were complete beside it");
            let (late, stolen) = latest(&records);
            println!("{kind}: throttled {sleeps} times, {beside} jobs beside it, late by {late}, stolen {stolen}");
            if late == Nanos::ZERO {
                break;
            }
            if attempt == 4 {
                skip(format_args!("{kind}: this machine is too busy: late by {late}, {stolen} stolen"));
                break;
            }
        }
    }
}

/// A soft budget is replaced at once, due later: the steady job preempts.
#[test]
fn code_that_loops_in_a_soft_server_is_postponed_by_each_budget() {
    let Some(records) = run(&beside("cbs_soft"), ms(50), ms(350)) else { return };
    assert_eq!(count(&records, |event| matches!(event, Event::Suspend { job: LOOPS, .. })), 0, "it is never throttled");
    let budgets = count(&records, |event| matches!(event, Event::Replenish { task: TaskId(0), .. }));
    assert!(budgets >= 10, "it is given {budgets}");
    let beside = completed_beside(&records);
    assert!(beside >= 4, "{beside} jobs were complete beside it");
}

/// In a section it goes on, and is charged at its end; after that it is throttled amid its code.
#[test]
fn code_in_a_section_is_throttled_after_it() {
    let workload = workload(
        r#"
scheduler = "G-EDF"
[platform]
cpus = 1
[[resource]]
name = "map"
[[task]]
name = "loops"
period = "400 ms"
server = { kind = "cbs_hard", budget = "10 ms", period = "40 ms" }
body = [{ critical = "map", body = [{ cpu = "15 ms" }] }, { cpu = "15 ms" }, { nonpreemptive = "15 ms" }]
"#,
    );
    let Some(records) = run(&workload, ms(15), ms(350)) else { return };
    let (mut depth, mut sleeps) = (0, 0);
    for record in &records {
        match record.event {
            Event::Grant { job: LOOPS, .. } | Event::NonPreemptiveBegin { job: LOOPS, .. } => depth += 1,
            Event::Unlock { job: LOOPS, .. } | Event::NonPreemptiveEnd { job: LOOPS, .. } => depth -= 1,
            Event::Suspend { job: LOOPS, .. } => {
                assert_eq!(depth, 0, "no section is interrupted");
                sleeps += 1;
            }
            _ => {}
        }
    }
    assert!(sleeps >= 2, "after the first section, and amid the code after it: {sleeps}");
    assert!(records.iter().any(|record| matches!(record.event, Event::Complete { job: LOOPS, .. })));
}

/// A run that is stopped while the code has no budget ends.
#[test]
fn a_run_is_stopped_while_its_code_is_throttled() {
    let workload = workload(
        r#"
scheduler = "G-EDF"
[platform]
cpus = 1
[[task]]
name = "loops"
period = "100 s"
wcet = "20 s"
server = { kind = "cbs_hard", budget = "5 ms", period = "50 s" }
"#,
    );
    let options =
        Options { scheduler: workload.scheduler, linux: Some(LinuxScheduler::Laxity), seed: SEED, duration: ms(100) };
    let _alone = Alone::with_the_scheduler();
    let mut plan = match LivePlan::new(&workload, &options) {
        Ok(plan) => plan,
        Err(refusal) => return skip(refusal),
    };
    let make = |_: &str, _: &Edges| Ok(Box::new(Loops(ms(50))) as Box<dyn Code>);
    plan.bind("loops", Arc::new(make), false).expect("a task");
    let run = match start(&plan) {
        Ok(run) => run,
        Err(refusal) => return skip(refusal),
    };
    let (mut records, mut looks) = (Vec::new(), 0);
    let ended = run.carry_on(&mut records, |_, records: &mut Vec<Record>, _| {
        let is_throttled = |record: &Record| matches!(record.event, Event::Suspend { job: LOOPS, .. });
        looks += u32::from(records.iter().any(is_throttled));
        // 200 ms later its code has returned, or has been preempted since: its budget comes in 50 s.
        Next::stop_if(looks > 10)
    });
    assert_eq!(ended.failed, Ok(()));
    assert!(!records.iter().any(|record| matches!(record.event, Event::Complete { job: LOOPS, .. })));
}

/// A program that computes for tens of milliseconds, in budgets of 5: it is stopped for each, and its job suspended.
#[test]
fn a_program_that_is_started_for_a_job_is_charged_and_stopped() {
    let workload = workload(
        r#"
scheduler = "P-EDF"
[platform]
cpus = 1
[[task]]
name = "loops"
period = "50 ms"
wcet = "50 ms"
budget = "5 ms"
run = { command = ["sh", "-c", "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"] }
"#,
    );
    let options =
        Options { scheduler: workload.scheduler, linux: Some(LinuxScheduler::Other), seed: SEED, duration: ms(10) };
    let mut plan = LivePlan::new(&workload, &options).expect("permitted everywhere");
    plan.load_code(Path::new(".")).expect("there is a shell");
    let mut records = Vec::new();
    let ended = start(&plan).expect("it starts").carry_on(&mut records, |_, _, _| Next::GoOn);
    assert_eq!(ended.failed, Ok(()));
    let mut legality = LegalityCheck::new(plan.header()).with_all_jobs();
    records.iter().for_each(|record| legality.record(record.at, record.event));
    let report = legality.finish();
    assert!(report.is_clean(), "{:?}", report.violations);
    let sleeps = count(&records, |event| matches!(event, Event::Suspend { job: LOOPS, .. }));
    let budgets = count(&records, |event| matches!(event, Event::Replenish { task: TaskId(0), .. }));
    assert!(sleeps >= 2 && budgets > sleeps, "{sleeps} stops, {budgets} budgets");
    let end = records.iter().find(|record| matches!(record.event, Event::Complete { job: LOOPS, .. }));
    assert!(end.expect("it ends").at > Instant::ZERO + ms(100), "two budgets, each 50 ms after the one before");
}
