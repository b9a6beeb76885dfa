//! Priority inversions that bottom halves cause, read off drawn schedules.

mod check_reference;

use check_reference::hand::*;
use check_reference::{Setup, UNIT, any_setup, at};
use laxity_model::{CpuId, JobId, Nanos, OverheadKind, PriorityRule};
use laxity_trace::metrics::{Inversion, InversionKind, Inversions, Lengths};
use laxity_trace::{DeviceId, DeviceInfo, Event, Record, Sink, TaskKind, TraceHeader};
use proptest::prelude::*;

/// High, medium and low priority: deadlines 10, 20 and 30. `B` is the interrupt thread.
const H: JobId = job(0, 0);
const M: JobId = job(1, 0);
const L: JobId = job(2, 0);
const B: JobId = job(3, 0);

fn header(cpus: u16) -> TraceHeader {
    let mut header = Setup::edf(cpus, &[(9, 10), (9, 20), (9, 30), (9, 40)], 0).header();
    header.tasks[3].kind = TaskKind::Thread;
    header.devices = vec![DeviceInfo { name: "gpu0".to_owned() }];
    header.costs.top_half = UNIT;
    header
}

/// All three are released and ready at 0; the first ones of `running` get the CPUs.
fn start(running: &[JobId]) -> Vec<(u64, Event)> {
    let mut events = Vec::new();
    for (job, deadline) in [(H, 10), (M, 20), (L, 30)] {
        events.extend([(0, release(job, deadline)), (0, ready(job))]);
    }
    for (cpu, &job) in running.iter().enumerate() {
        events.extend([(0, link(cpu as u16, job)), (0, dispatch(cpu as u16, job))]);
    }
    events
}

fn all(cpus: u16, events: &[(u64, Event)], end: u64) -> Vec<Inversion> {
    let mut inversions = Inversions::new(&header(cpus), Vec::new());
    trace(events).iter().for_each(|record| inversions.record(record.at, record.event));
    inversions.finish(at(end))
}

/// `(job, since, length, kind)`, times in units.
fn found(cpus: u16, events: &[(u64, Event)], end: u64) -> Vec<(JobId, u64, u64, InversionKind)> {
    let units =
        |inversion: Inversion| (inversion.job, inversion.since.0 / UNIT.0, inversion.length.0 / UNIT.0, inversion.kind);
    all(cpus, events, end).into_iter().map(units).collect()
}

fn with(mut events: Vec<(u64, Event)>, more: &[(u64, Event)]) -> Vec<(u64, Event)> {
    events.extend_from_slice(more);
    events
}

/// ```text
///          0 1 2 3 4 5 6
///   cpu0   H H H H H H H        b: bottom half of H, on the stack of M
///   cpu1   M M b b b M M
/// ```
/// Paper 000, Fig. 1: under the single-threaded model M should have cpu1.
#[test]
fn an_owner_beside_its_bottom_half_inverts_the_job_that_would_have_the_second_cpu() {
    let events = with(start(&[H, M]), &[(2, half_begin(1, H)), (5, half_end(1, H))]);
    assert_eq!(found(2, &events, 7), [(M, 2, 3, InversionKind::CoScheduled)]);
}

/// ```text
///          0 1 2 3 4 5 6
///   cpu0   H H h h h H H        h: bottom half of H, on its own stack
///   cpu1   M M M M M M M
/// ```
#[test]
fn an_owner_under_its_own_bottom_half_is_one_entity_on_one_cpu() {
    let events = with(start(&[H, M]), &[(2, half_begin(0, H)), (5, half_end(0, H))]);
    assert_eq!(found(2, &events, 7), []);
}

/// ```text
///          0 1 2 3 4 5 6
///   cpu0   H H l l l H H        l: bottom half of L, which waits for a CPU
/// ```
/// M waits as well, but would wait without the bottom half, too.
#[test]
fn a_bottom_half_overtakes_jobs_of_higher_priority_than_its_owner() {
    let events = with(start(&[H]), &[(2, half_begin(0, L)), (5, half_end(0, L))]);
    let both = [(H, 2, 3, InversionKind::BlockedStack), (M, 2, 3, InversionKind::Overtaken)];
    assert_eq!(found(1, &events, 7), both);
    let mut entitled = Inversions::new(&header(1), Vec::new()).entitled_only();
    trace(&events).iter().for_each(|record| entitled.record(record.at, record.event));
    let entitled: Vec<JobId> = entitled.finish(at(7)).iter().map(|inversion| inversion.job).collect();
    assert_eq!(entitled, [H]);
}

/// ```text
///          0 1 2 3 4 5 6 7
///   cpu0   H H H H . L L L      H completes at 4, L gets its CPU, M cannot: its stack is borrowed until 6
///   cpu1   M M h h h h M M      h: bottom half of H
/// ```
/// Paper 000, section VII, on process-aware interrupts.
#[test]
fn a_job_whose_stack_is_borrowed_is_inverted_once_something_lower_runs() {
    let events = with(
        start(&[H, M]),
        &[(2, half_begin(1, H)), (4, complete(0, H)), (5, link(0, L)), (5, dispatch(0, L)), (6, half_end(1, H))],
    );
    let expected = [(M, 2, 2, InversionKind::CoScheduled), (M, 5, 1, InversionKind::BlockedStack)];
    assert_eq!(found(2, &events, 8), expected);
}

/// ```text
///          0 1 2 3 4 5 6 7
///   cpu0   H ^ t s b b H        H suspends at 1 for its GPU; ^ interrupt; t top half until 3, s scheduler
///   cpu1   M M M M M M M        b: thread that serves H
/// ```
/// The bottom half of H waits from the end of the top half until its thread is dispatched while M runs.
#[test]
fn a_bottom_half_waits_from_the_end_of_its_top_half_to_its_dispatch() {
    let events = with(
        start(&[H, M]),
        &[
            (1, suspend(0, H)),
            (2, interrupt(0, H)),
            (2, overhead(0, OverheadKind::TopHalf, 1)),
            (3, release(B, 40)),
            (3, serve(B, H)),
            (3, priority(B, 10, 0)),
            (3, ready(B)),
            (3, link(0, B)),
            (3, overhead(0, OverheadKind::Scheduling, 1)),
            (4, dispatch(0, B)),
            (6, complete(0, B)),
            (6, resume(H)),
            (6, dispatch(0, H)),
        ],
    );
    assert_eq!(found(2, &events, 8), [(H, 3, 1, InversionKind::WaitingBottomHalf)]);
}

/// ```text
///          0 1 2 3 4 5 6
///   cpu0   H ^ t t . h h        a queued bottom half (process-aware interrupts): no record until it begins at 5
///   cpu1   M M M M M M M
/// ```
#[test]
fn a_queued_bottom_half_waits_without_a_record_of_its_own() {
    let events = with(
        start(&[H, M]),
        &[
            (1, suspend(0, H)),
            (2, interrupt(0, H)),
            (2, overhead(0, OverheadKind::TopHalf, 2)),
            (5, half_begin(0, H)),
            (6, half_end(0, H)),
        ],
    );
    assert_eq!(found(2, &events, 8), [(H, 4, 1, InversionKind::WaitingBottomHalf)]);
    let free = with(start(&[H, M]), &[(1, suspend(0, H)), (2, interrupt(0, H)), (5, half_begin(0, H))]);
    let mut header = header(2);
    header.costs.top_half = Nanos::ZERO;
    let mut inversions = Inversions::new(&header, Lengths::default());
    trace(&free).iter().for_each(|record| inversions.record(record.at, record.event));
    assert_eq!(inversions.finish(at(8)).sorted(), [Nanos(3 * UNIT.0)], "a top half that costs nothing is over at once");
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   H H H H H b          klmirqd holds the thread back until H suspends at 5
///   cpu1   M M M M M M
/// ```
#[test]
fn a_bottom_half_held_back_by_its_owner_does_not_wait() {
    let events = with(
        start(&[H, M]),
        &[
            (1, interrupt(1, H)),
            (1, overhead(1, OverheadKind::TopHalf, 1)),
            (2, release(B, 40)),
            (2, serve(B, H)),
            (2, ready(B)),
            (5, suspend(0, H)),
            (5, link(0, B)),
            (5, dispatch(0, B)),
        ],
    );
    assert_eq!(found(2, &events, 6), []);
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   M M s s H H          H becomes ready at 2 and is linked at once; its context switch takes 2
///   cpu1   . . l l l L          l: bottom half of L
/// ```
#[test]
fn a_job_that_is_being_switched_in_waits_for_overheads_only() {
    let events = [
        (0, release(M, 20)),
        (0, ready(M)),
        (0, link(0, M)),
        (0, dispatch(0, M)),
        (0, release(L, 30)),
        (2, half_begin(1, L)),
        (2, release(H, 10)),
        (2, ready(H)),
        (2, link(0, H)),
        (2, preempt(0, M)),
        (4, dispatch(0, H)),
        (5, half_end(1, L)),
    ];
    assert_eq!(found(2, &events, 6), [(M, 2, 3, InversionKind::Overtaken)]);
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   M M M l l H          L inherits the deadline of H, which waits for its lock, from 1 to 4
/// ```
#[test]
fn a_bottom_half_has_the_effective_priority_of_its_owner() {
    let begin = [
        (0, release(M, 20)),
        (0, ready(M)),
        (0, dispatch(0, M)),
        (0, release(L, 30)),
        (1, priority(L, 10, 0)),
        (3, half_begin(0, L)),
    ];
    let inherits = with(begin.to_vec(), &[(5, half_end(0, L))]);
    assert_eq!(found(1, &inherits, 6), []);
    let no_longer = with(begin.to_vec(), &[(4, priority(L, 30, 2)), (5, half_end(0, L))]);
    assert_eq!(found(1, &no_longer, 6), [(M, 4, 1, InversionKind::BlockedStack)]);
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   H b b b b H          the thread has the highest priority of all, but it works for L
/// ```
#[test]
fn a_thread_counts_with_its_owners_priority_whatever_its_own() {
    let events = with(
        start(&[H]),
        &[
            (1, release(B, 40)),
            (1, serve(B, L)),
            (1, priority(B, 0, 3)),
            (1, ready(B)),
            (1, link(0, B)),
            (1, preempt(0, H)),
            (1, dispatch(0, B)),
            (5, complete(0, B)),
            (5, dispatch(0, H)),
        ],
    );
    let expected = [(H, 1, 4, InversionKind::Overtaken), (M, 1, 4, InversionKind::Overtaken)];
    assert_eq!(found(1, &events, 6), expected);
}

#[test]
fn a_bottom_half_without_owner_is_below_every_job() {
    let anonymous = Event::BottomHalfBegin { cpu: CpuId(0), device: DeviceId(0), job: None };
    let end = Event::BottomHalfEnd { cpu: CpuId(0), device: DeviceId(0), job: None };
    let events = [(0, release(L, 30)), (0, ready(L)), (0, dispatch(0, L)), (1, anonymous), (2, end)];
    assert_eq!(found(1, &events, 6), [(L, 1, 1, InversionKind::BlockedStack)]);
}

/// ```text
///          0 1 2 3 4 5
///   cpu0   L L L L L H          L is in a non-preemptive section: no bottom half is about
/// ```
#[test]
fn what_jobs_alone_cause_is_not_reported() {
    let events = [
        (0, release(L, 30)),
        (0, ready(L)),
        (0, dispatch(0, L)),
        (0, section_begin(0, L)),
        (1, release(H, 11)),
        (1, ready(H)),
        (5, section_end(0, L)),
        (5, preempt(0, L)),
        (5, dispatch(0, H)),
    ];
    assert_eq!(found(1, &events, 6), []);
}

#[test]
fn an_inversion_that_goes_on_at_the_end_ends_there() {
    let events = with(start(&[H]), &[(2, half_begin(0, L))]);
    assert_eq!(all(1, &events, 9).iter().map(|inversion| inversion.length.0 / UNIT.0).collect::<Vec<_>>(), [7, 7]);
}

#[test]
fn lengths_are_sorted_and_add_up() {
    let events =
        with(start(&[H]), &[(2, half_begin(0, L)), (5, half_end(0, L)), (6, half_begin(0, L)), (7, half_end(0, L))]);
    let mut inversions = Inversions::new(&header(1), Lengths::default()).entitled_only();
    trace(&events).iter().for_each(|record| inversions.record(record.at, record.event));
    let lengths = inversions.finish(at(9));
    assert_eq!((lengths.count(), lengths.total()), (2, Nanos(4 * UNIT.0)));
    assert_eq!(lengths.sorted(), [Nanos(UNIT.0), Nanos(3 * UNIT.0)]);
}

/// What the naive scan knows at the end of an instant: jobs by task, CPUs with what was dispatched there and the owner
/// of the bottom half on the stack.
#[derive(Default)]
struct Naive {
    released: Vec<(JobId, u64)>,
    ready: Vec<JobId>,
    running: Vec<Option<JobId>>,
    halves: Vec<Option<JobId>>,
}

impl Naive {
    fn at(header: &TraceHeader, records: &[Record], now: u64) -> Self {
        let empty = vec![None; header.cpus];
        let mut naive = Naive { running: empty.clone(), halves: empty, ..Naive::default() };
        for record in records.iter().filter(|record| record.at <= at(now)) {
            match record.event {
                Event::Release { job, deadline } => naive.released.push((job, deadline.0)),
                Event::Ready { job, .. } => naive.ready.push(job),
                Event::Dispatch { cpu, job } => naive.running[cpu.index()] = Some(job),
                Event::Preempt { cpu, .. } => naive.running[cpu.index()] = None,
                Event::Complete { cpu, job } => {
                    naive.running[cpu.index()] = None;
                    naive.ready.retain(|&ready| ready != job);
                }
                Event::BottomHalfBegin { cpu, job, .. } => naive.halves[cpu.index()] = job,
                Event::BottomHalfEnd { cpu, .. } => naive.halves[cpu.index()] = None,
                _ => {}
            }
        }
        naive
    }

    fn key(&self, header: &TraceHeader, job: JobId) -> (u64, u32) {
        let deadline = self.released.iter().find(|(released, _)| *released == job).expect("it was released").1;
        let edf = header.scheduler.rule == PriorityRule::Edf;
        let rank = u64::from(header.tasks[job.task.index()].rank);
        (if edf { deadline } else { rank }, job.task.0)
    }

    /// The tasks that are inverted in `cluster`, by the definition read out aloud.
    fn inverted(&self, header: &TraceHeader, cluster: usize) -> Vec<u32> {
        let cpus: Vec<usize> = header.clusters[cluster].iter().map(|cpu| cpu.index()).collect();
        let key = |job: JobId| self.key(header, job);
        let runs = |cpu: usize| self.halves[cpu].or(self.running[cpu]);
        let lower = |than: (u64, u32)| cpus.iter().any(|&cpu| runs(cpu).is_some_and(|job| key(job) > than));
        let lower_half = |than: (u64, u32)| cpus.iter().any(|&cpu| self.halves[cpu].is_some_and(|job| key(job) > than));
        let mut entities: Vec<((u64, u32), u32)> = Vec::new();
        for (task, info) in header.tasks.iter().enumerate().filter(|(_, info)| info.cluster == cluster) {
            let parts = self.ready.iter().copied().chain(self.halves.iter().copied().flatten());
            let task = task as u32;
            let most_urgent = parts.filter(|job| job.task.0 == task).map(key).min();
            entities.extend(most_urgent.map(|key| (key, task)));
            assert_eq!(info.cluster, cluster);
        }
        entities.sort_unstable();
        let count = |task: u32| cpus.iter().filter(|&&cpu| runs(cpu).is_some_and(|job| job.task.0 == task)).count();
        let everywhere = |task: u32| (0..header.cpus).any(|cpu| runs(cpu).is_some_and(|job| job.task.0 == task));
        let tasks = 0..header.tasks.len() as u32;
        let mut surplus: usize = tasks.map(|task| count(task).saturating_sub(1)).sum();
        let mut inverted = Vec::new();
        for (rank, &(key, task)) in entities.iter().enumerate().filter(|&(_, &(_, task))| !everywhere(task)) {
            let blocked = (0..header.cpus)
                .any(|cpu| self.halves[cpu].is_some() && self.running[cpu].is_some_and(|job| job.task.0 == task));
            if blocked && lower(key) || lower_half(key) {
                inverted.push(task);
            } else if rank < cpus.len() && surplus > 0 {
                surplus -= 1;
                inverted.push(task);
            }
        }
        inverted
    }
}

/// The reference schedule with bottom halves `(from, length, cpu, task)` on top of it, on behalf of that task's oldest
/// pending job; those without owner or on a stack that is taken are left out.
fn with_bottom_halves(setup: &Setup, halves: &[(u64, u64, u16, usize)]) -> Vec<Record> {
    let mut records = setup.schedule();
    let mut taken: Vec<(u64, u64, u16)> = Vec::new();
    for &(from, length, cpu, task) in halves {
        let (cpu, task) = (cpu % setup.cpus(), (task % setup.tasks.len()) as u32);
        let state = Naive::at(&setup.header(), &records, from);
        let owner = state.ready.iter().copied().find(|job| job.task.0 == task);
        let overlaps = taken.iter().any(|&(begin, end, on)| on == cpu && begin <= from + length && from <= end);
        let Some(owner) = owner.filter(|_| !overlaps) else { continue };
        taken.push((from, from + length, cpu));
        let end = records.len() - 1;
        let begin = Record { at: at(from), event: half_begin(cpu, owner) };
        let half = Record { at: at(from + length), event: half_end(cpu, owner) };
        records.splice(end..end, [begin, half]);
        // Stable: at equal times the schedule comes first.
        records.sort_by_key(|record| record.at);
    }
    records
}

proptest! {
    #[test]
    fn inversions_are_those_of_a_scan_over_every_unit_of_time(
        setup in any_setup(),
        halves in prop::collection::vec((0..36u64, 1..3u64, any::<u16>(), any::<usize>()), 1..12),
    ) {
        let mut header = setup.header();
        header.devices = vec![DeviceInfo { name: "gpu0".to_owned() }];
        let records = with_bottom_halves(&setup, &halves);
        let mut inversions = Inversions::new(&header, Vec::new());
        records.iter().for_each(|record| inversions.record(record.at, record.event));
        let mut found = vec![vec![0u64; header.tasks.len()]; setup.horizon as usize];
        for inversion in inversions.finish(at(setup.horizon)) {
            let from = inversion.since.0 / UNIT.0;
            for unit in from..from + inversion.length.0 / UNIT.0 {
                found[unit as usize][inversion.job.task.index()] += 1;
            }
        }
        for (unit, found) in found.iter().enumerate() {
            let naive = Naive::at(&header, &records, unit as u64);
            let mut expected = vec![0; header.tasks.len()];
            for cluster in 0..header.clusters.len() {
                naive.inverted(&header, cluster).into_iter().for_each(|task| expected[task as usize] += 1);
            }
            prop_assert_eq!(found, &expected, "at {}", unit);
        }
    }
}
