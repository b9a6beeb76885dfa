//! What jobs spend their time with, read off drawn schedules.

mod budgets;
#[path = "../check_reference/mod.rs"]
mod check_reference;
mod outside;

use check_reference::hand::*;
use check_reference::strange::any_records;
use check_reference::{Setup, any_setup};
use laxity_model::{CpuId, Engine, EngineOrder, GpuId, Instant, JobId, Nanos, OverheadKind};
use laxity_trace::why::{Account, Explainer, Wanted, explain, job_name, line, row, wanted, worst, worth_explaining};
use laxity_trace::{
    DeviceInfo, EdgeInfo, EdgeKind, Event, GpuInfo, GraphInfo, LockInfo, LockKind, Origin, TaskKind, TraceHeader,
};
use proptest::prelude::*;

const A: JobId = job(0, 0);
const B: JobId = job(1, 0);
const C: JobId = job(2, 0);

/// Three tasks under global EDF, a GPU, a resource with the number 0 and an engine lock with the number 1.
fn header(cpus: u16) -> TraceHeader {
    let mut header = Setup::edf(cpus, &[(9, 10), (9, 20), (9, 40)], 0).header();
    header.gpus = vec![GpuInfo { name: "gpu0".to_owned(), cluster: 0, copy_engines: 1 }];
    header.devices = vec![DeviceInfo { name: "gpu0".to_owned() }];
    let engine = LockKind::Engine { gpu: GpuId(0), engine: Engine::Execution, order: EngineOrder::Fifo };
    let resource = LockKind::Resource { order: EngineOrder::Priority };
    header.locks = vec![
        LockInfo { name: "map".to_owned(), kind: resource, replicas: 1 },
        LockInfo { name: "EE".to_owned(), kind: engine, replicas: 1 },
    ];
    header
}

fn account(header: &TraceHeader, events: &[(u64, Event)], wanted: JobId) -> Account {
    let mut accounts = explain(header, &trace(events), |job| job == wanted).expect("a sound trace");
    assert_eq!(accounts.len(), 1, "one job is wanted");
    accounts.remove(0)
}

/// The pieces, as `from-to what`, in units.
fn told(header: &TraceHeader, account: &Account) -> Vec<String> {
    let unit = |at: u64| at / check_reference::UNIT.0;
    let causes = |piece: &laxity_trace::why::Piece| {
        piece.causes.iter().map(|cause| cause.blame().describe(header)).collect::<Vec<_>>().join(" & ")
    };
    account
        .pieces
        .iter()
        .map(|piece| format!("{}-{} {}", unit(piece.from.0), unit(piece.to.0), causes(piece)))
        .collect()
}

/// ```text
///   cpu0   ~ C A A x B B C C     ~ release overhead, x context switch
///          0 1 2 3 4 5 6 7 8 9
/// ```
#[test]
fn more_urgent_jobs_and_overheads_have_the_cpu_of_a_job_that_waits() {
    let header = header(1);
    let events = [
        (0, release(C, 40)),
        (0, overhead(0, OverheadKind::Release, 1)),
        (1, ready(C)),
        (1, dispatch(0, C)),
        (2, release(A, 12)),
        (2, ready(A)),
        (2, preempt(0, C)),
        (2, dispatch(0, A)),
        (3, release(B, 23)),
        (3, ready(B)),
        (4, complete(0, A)),
        (4, overhead(0, OverheadKind::ContextSwitch, 1)),
        (4, dispatch(0, B)),
        (7, complete(0, B)),
        (7, dispatch(0, C)),
        (9, complete(0, C)),
        (9, Event::End),
    ];
    let account = account(&header, &events, C);
    assert_eq!(
        told(&header, &account),
        [
            "0-1 its release: not handled yet",
            "1-2 executes",
            "2-4 waits for a CPU: task0 has it, more urgent",
            "4-5 overhead: context switch",
            "5-7 waits for a CPU: task1 has it, more urgent",
            "7-9 executes",
        ]
    );
    let parts: Vec<(String, u64)> = account
        .parts()
        .iter()
        .map(|part| (part.blame.describe(&header), part.time.0 / check_reference::UNIT.0))
        .collect();
    assert_eq!(parts[0], ("executes".to_owned(), 3));
    assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), 9);
    let line = line(&account, 9);
    assert_eq!((line.cells.as_str(), line.deadline), ("·█AA▒BB██", None));
}

/// ```text
///   cpu0   # # C # # C      # stolen from all threads: seen at 2 and at 5
///          0 1 2 3 4 5
/// ```
#[test]
fn time_that_is_stolen_from_all_threads_is_nobodys_execution() {
    let header = header(2);
    let stolen = |cpu, units| Event::Stolen { cpu: CpuId(cpu), duration: Nanos(units * check_reference::UNIT.0) };
    let events = [
        (0, release(C, 40)),
        (2, stolen(0, 2)),
        (2, ready(C)),
        (2, dispatch(0, C)),
        // The other CPU is none of C's business.
        (4, stolen(1, 4)),
        (5, stolen(0, 2)),
        (6, complete(0, C)),
        (6, Event::End),
    ];
    let account = account(&header, &events, C);
    let by = "its CPU is stolen: by hypervisor, firmware or interrupts";
    assert_eq!(
        told(&header, &account),
        [format!("0-2 {by}"), "2-3 executes".to_owned(), format!("3-5 {by}"), "5-6 executes".to_owned()]
    );
    let total: u64 = account.parts().iter().map(|part| part.time.0).sum();
    assert_eq!(total, 6 * check_reference::UNIT.0, "each nanosecond is accounted for once");
}

/// On two CPUs, both of which have more urgent jobs, each has half of the blame; an idle CPU has all of it, and so has a
/// less urgent job in a non-preemptive section.
///
/// ```text
///   cpu0   A A A . C      C waits until 4
///   cpu1   B B . . .
///
///   cpu0   C C C A        C is not preemptive until 3; A, released at 1, is more urgent, and B more than A
///   cpu1   B B B B
/// ```
#[test]
fn the_cpus_that_a_job_might_have_share_the_blame_unless_one_alone_is_at_fault() {
    let header = header(2);
    let events = [
        (0, release(A, 10)),
        (0, release(B, 20)),
        (0, release(C, 40)),
        (0, ready(A)),
        (0, ready(B)),
        (0, ready(C)),
        (0, dispatch(0, A)),
        (0, dispatch(1, B)),
        (2, suspend(1, B)),
        (3, complete(0, A)),
        (4, dispatch(0, C)),
        (5, complete(0, C)),
        (5, Event::End),
    ];
    let account_of_c = account(&header, &events, C);
    assert_eq!(
        told(&header, &account_of_c),
        [
            "0-2 waits for a CPU: task0 has it, more urgent & waits for a CPU: task1 has it, more urgent",
            "2-3 waits for the scheduler: a CPU is idle",
            "3-4 waits for the scheduler: a CPU is idle",
            "4-5 executes",
        ]
    );
    let odd = laxity_trace::why::Piece { to: laxity_model::Instant(7), ..account_of_c.pieces[0].clone() };
    assert_eq!(odd.shares().map(|(_, share)| share.0).collect::<Vec<_>>(), [4, 3], "no nanosecond is lost");
    let events = [
        (0, release(B, 10)),
        (0, release(C, 40)),
        (0, ready(B)),
        (0, ready(C)),
        (0, dispatch(0, C)),
        (0, dispatch(1, B)),
        (0, section_begin(0, C)),
        (1, release(A, 11)),
        (1, ready(A)),
        (3, section_end(0, C)),
        (3, preempt(0, C)),
        (3, dispatch(0, A)),
        (4, complete(0, A)),
        (4, Event::End),
    ];
    assert_eq!(
        told(&header, &account(&header, &events, A)),
        ["1-3 waits for a CPU: task2 has it, less urgent, not preemptive", "3-4 executes"]
    );
}

/// ```text
///   A   # ? ? # .         waits for the lock that B holds, and is woken up
///   B   # # # . .
/// ```
#[test]
fn a_lock_is_blamed_with_its_holder_until_it_is_granted() {
    let header = header(2);
    let events = [
        (0, release(A, 10)),
        (0, release(B, 20)),
        (0, ready(A)),
        (0, ready(B)),
        (0, dispatch(0, A)),
        (0, dispatch(1, B)),
        (0, request(B, 0)),
        (0, grant(B, 0, 0)),
        (1, request(A, 0)),
        (1, suspend(0, A)),
        (3, unlock(B, 0, 0)),
        (3, grant(A, 0, 0)),
        (4, resume(A)),
        (4, dispatch(0, A)),
        (5, complete(0, A)),
        (5, Event::End),
    ];
    let account = account(&header, &events, A);
    assert_eq!(
        told(&header, &account),
        [
            "0-1 executes",
            "1-3 waits for a lock: map, held by task1",
            "3-4 is woken up: its lock is granted, or its budget is there",
            "4-5 executes",
        ]
    );
    assert_eq!(account.pieces[1].causes[0].other_job(), Some(B));
    let json = serde_json::to_value(row(&header, &account)).expect("JSON");
    assert_eq!(json["pieces"][1]["causes"][0]["other_job"], "task1#0");
    assert_eq!(json["time_ns"], 5 * check_reference::UNIT.0);
}

/// The driver runs A's kernel once B's is complete: only then does the trace say what A waited for.
///
/// ```text
///   EE   B B B A A . .
///   A    # - - - - i #       i: its interrupt
/// ```
#[test]
fn a_suspended_job_waits_for_the_engine_on_which_its_operation_then_begins() {
    let header = header(2);
    let events = [
        (0, release(A, 10)),
        (0, release(B, 20)),
        (0, ready(A)),
        (0, ready(B)),
        (0, dispatch(0, A)),
        (0, dispatch(1, B)),
        (0, engine_begin(0, Engine::Execution, B)),
        (1, suspend(0, A)),
        (3, engine_end(0, Engine::Execution, B)),
        (3, engine_begin(0, Engine::Execution, A)),
        (5, engine_end(0, Engine::Execution, A)),
        (6, resume(A)),
        (6, dispatch(0, A)),
        (7, suspend(0, A)),
        (8, resume(A)),
        (8, dispatch(0, A)),
        (9, complete(0, A)),
        (9, Event::End),
    ];
    assert_eq!(
        told(&header, &account(&header, &events, A)),
        [
            "0-1 executes",
            "1-3 GPU operation waits: gpu0 EE, where task1 is",
            "3-5 own GPU operation: gpu0 EE",
            "5-6 is woken up: its operation on gpu0 is complete",
            "6-7 executes",
            "7-8 suspended",
            "8-9 executes",
        ]
    );
}

/// Live, a thread notes that it is ready once it has a CPU: until then, what is there has it, or no job of the trace.
#[test]
fn a_live_job_waits_for_a_cpu_from_its_release() {
    let header = TraceHeader { origin: Origin::Live, ..header(1) };
    let events = [
        (0, release(B, 20)),
        (0, ready(B)),
        (0, dispatch(0, B)),
        (1, release(A, 11)),
        (2, complete(0, B)),
        (4, ready(A)),
        (4, dispatch(0, A)),
        (5, complete(0, A)),
        (5, Event::End),
    ];
    assert_eq!(
        told(&header, &account(&header, &events, A)),
        [
            "1-2 waits for a CPU: task1 has it, less urgent",
            "2-4 waits for a CPU: no job of the trace has it: other threads or the hypervisor",
            "4-5 executes",
        ]
    );
}

/// A node's job whose feedback token is missing waits for it; once it has taken its tokens it waits for the rest of its release.
#[test]
fn a_job_of_a_node_waits_for_tokens_until_it_takes_them() {
    let mut header = header(2);
    for (index, source) in [(0, true), (1, false)] {
        header.tasks[index].kind = TaskKind::Node { graph: 0, source };
    }
    let (producer, consumer) = (A.task, B.task);
    let kind = EdgeKind::Token;
    header.edges = vec![EdgeInfo { producer, consumer, produce: 1, consume: 1, threshold: 1, initial: 0, kind }];
    header.graphs = vec![GraphInfo { name: "graph".to_owned(), nodes: vec![producer, consumer] }];
    let events = [
        (0, release(B, 20)),
        (2, produce(A, 0, 1)),
        (2, consume(B, 0, 1)),
        (3, ready(B)),
        (3, dispatch(1, B)),
        (5, complete(1, B)),
        (5, Event::End),
    ];
    assert_eq!(
        told(&header, &account(&header, &events, B)),
        ["0-2 waits for tokens: from task0", "2-3 its release: not handled yet", "3-5 executes"]
    );
}

#[test]
fn the_worst_jobs_are_the_latest_and_those_that_never_completed() {
    let header = header(1);
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, dispatch(0, A)),
        (2, release(B, 3)),
        (5, complete(0, A)),
        (9, release(C, 40)),
        (9, Event::End),
    ];
    let found = worst(&header, &trace(&events), |_| true);
    let found: Vec<(JobId, bool)> = found.iter().map(|candidate| (candidate.job, candidate.completed)).collect();
    assert_eq!(found, [(B, false), (A, true)], "C is pending, and not late");
}

/// A log of a program whose jobs have no deadlines says ten years.
#[test]
fn jobs_of_programs_without_deadlines_are_explained_by_what_they_took() {
    let mut header = header(1);
    header.tasks.iter_mut().for_each(|task| task.deadline = Nanos::LONGEST);
    let due = |job| Event::Release { job, deadline: Instant(Nanos::LONGEST.0) };
    let events = [
        (0, due(A)),
        (0, ready(A)),
        (0, dispatch(0, A)),
        (1, due(B)),
        (5, complete(0, A)),
        (5, ready(B)),
        (5, dispatch(0, B)),
        (9, complete(0, B)),
        (9, Event::End),
    ];
    let records = trace(&events);
    assert_eq!(worth_explaining(&header, &records, None, false, 2), [B, A]);
    let row = row(&header, &account(&header, &events, B));
    assert_eq!((row.deadline_ns, row.lateness_ns), (None, None));
    header.tasks[0].deadline = Nanos::from_millis(3);
    assert_eq!(worth_explaining(&header, &records, None, false, 2), [A], "only that has a deadline");
}

#[test]
fn jobs_are_named_by_task_and_number_even_where_a_task_has_a_number_sign_in_its_name() {
    let mut header = header(1);
    header.tasks[1].name = "lane#2".to_owned();
    assert_eq!(job_name(&header, job(1, 7)), "lane#2#7");
    assert_eq!(wanted(&header, "lane#2"), Ok(Wanted::Task(B.task)));
    assert_eq!(wanted(&header, "lane#2#7"), Ok(Wanted::Job(job(1, 7))));
    assert_eq!(wanted(&header, "T2.3"), Ok(Wanted::Job(job(2, 3))));
    let error = wanted(&header, "task9#3").expect_err("no such task").to_string();
    assert_eq!(error, "no task is called `task9`; the trace has task0, lane#2, task2");
}

proptest! {
    #[test]
    fn the_parts_sum_to_the_response_time_on_any_cpus(setup in any_setup()) {
        let header = setup.header();
        for account in explain(&header, &setup.schedule(), |_| true).expect("a sound trace") {
            let sum: u64 = account.parts().iter().map(|part| part.time.0).sum();
            prop_assert_eq!(sum, account.time().0);
            let line = line(&account, 37);
            prop_assert_eq!(line.cells.chars().count() as u64, account.time().0.div_ceil(line.step.0));
        }
    }

    /// Whatever the records say, the parts of a job sum to its time.
    #[test]
    fn records_that_make_no_sense_are_accounted_for(records in any_records()) {
        let header = header(2);
        let mut explainer = Explainer::new(&header, |_| true);
        let mut accounts: Vec<Account> =
            records.iter().filter_map(|record| explainer.follow(record).ok().flatten()).collect();
        accounts.extend(explainer.finish());
        for account in accounts {
            let sum: u64 = account.parts().iter().map(|part| part.time.0).sum();
            prop_assert_eq!(sum, account.time().0);
        }
    }
}
