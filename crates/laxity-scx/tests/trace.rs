//! Notes of the kernel become a trace that the checkers judge: the order within a cluster is that of the lock, and what was lost
//! is said.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, Scheduler, TaskId};
use laxity_scx::notes::{Happening, Note, OUTSIDE};
use laxity_scx::trace::{QUANTUM, RecordedTask, Recording, header, phase};
use laxity_trace::{Event, Record, TaskKind, check};

const MS: u64 = 1_000_000;
/// The scheduler's start, on the monotonic clock.
const START: u64 = 7_000 * MS;

struct Script {
    notes: Vec<Note>,
}

impl Script {
    fn new() -> Script {
        Script { notes: Vec::new() }
    }

    /// At `at` ms something happens on CPU `cpu` of cluster 0.
    fn note(&mut self, at: u64, event: Happening, cpu: u16, task: u16, links: &[(u16, Option<u16>)]) {
        let sequence = self.notes.len() as u64;
        let at = START + at * MS;
        self.notes.push(Note { sequence, at, event: Some(event), cluster: 0, cpu, task, links: links.to_vec() });
    }

    fn release(&mut self, at: u64, due: u64, deadline: u64, task: u16, links: &[(u16, Option<u16>)]) {
        let release = Happening::Release { release: START + due * MS, rank: START + deadline * MS };
        self.note(at, release, 0, task, links);
    }
}

/// One CPU: a job with the earlier deadline has preempted another.
fn preempted() -> Script {
    let mut script = Script::new();
    script.release(0, 0, 20, 0, &[(0, Some(0))]);
    script.note(0, Happening::Run, 0, 0, &[]);
    script.release(2, 2, 10, 1, &[(0, Some(1))]);
    script.note(2, Happening::Stop, 0, 0, &[]);
    script.note(2, Happening::Run, 0, 1, &[]);
    script
}

/// It completes, and so does the other.
fn preemption() -> Script {
    let mut script = preempted();
    script.note(5, Happening::Complete, 0, 1, &[(0, Some(0))]);
    script.note(5, Happening::Run, 0, 0, &[]);
    script.note(9, Happening::Complete, 0, 0, &[]);
    script
}

fn tasks() -> Vec<RecordedTask> {
    let task = |name: &str, period, level| RecordedTask {
        name: name.to_owned(),
        period: Nanos(period * MS),
        deadline: Nanos(period * MS),
        wcet: Nanos(5 * MS),
        cluster: 0,
        level,
        kind: TaskKind::Task,
        has_budget: true,
    };
    vec![task("slow", 20, 2), task("fast", 8, 1)]
}

fn recording(notes: Vec<Note>, clusters: &[Vec<usize>], start: Instant) -> Recording {
    laxity_scx::trace::recording(Scheduler::GLOBAL_EDF, notes, clusters, &tasks(), start)
}

fn judge(policy: &str, clusters: &[Vec<usize>], records: &[Record]) -> (u64, u64) {
    let scheduler: Scheduler = policy.parse().expect("a policy");
    let header = header(scheduler, clusters, &tasks());
    (check::legality(&header, records, |_| None).count(), check::policy(&header, records).count())
}

#[test]
fn a_preemption_is_a_legal_schedule_that_follows_edf() {
    let clusters = [vec![3]];
    let recording = recording(preemption().notes, &clusters, Instant(START));
    assert_eq!(recording.left_out, 0);
    assert_eq!(judge("G-EDF", &clusters, &recording.records), (0, 0));
    let job = JobId { task: TaskId(1), index: 0 };
    let dispatched = Record { at: Instant(2 * MS), event: Event::Dispatch { cpu: CpuId(3), job } };
    assert!(recording.records.contains(&dispatched), "on the CPU that the cluster's first one is: {recording:?}");
    assert_eq!(recording.records.last().map(|last| last.event), Some(Event::End));
}

#[test]
fn a_link_that_the_policy_does_not_have_is_found() {
    let mut script = preemption();
    // The later deadline gets the CPU back.
    script.notes[2].links = Vec::new();
    script.notes.truncate(3);
    script.note(6, Happening::Complete, 0, 0, &[]);
    let clusters = [vec![0]];
    let recording = recording(script.notes, &clusters, Instant(START));
    assert!(judge("G-EDF", &clusters, &recording.records).1 > 0, "an inversion");
}

/// One CPU: a job with the earlier deadline waits until a non-preemptive section ends.
fn section() -> Script {
    let mut script = Script::new();
    script.release(0, 0, 20, 0, &[(0, Some(0))]);
    script.note(0, Happening::Run, 0, 0, &[]);
    script.release(2, 2, 10, 1, &[(0, Some(1))]);
    script.note(2, Happening::Enter, 0, 0, &[]);
    script.note(4, Happening::Exit, 0, 0, &[]);
    script.note(4, Happening::Stop, 0, 0, &[]);
    script.note(4, Happening::Run, 0, 1, &[]);
    script.note(7, Happening::Complete, 0, 1, &[(0, Some(0))]);
    script.note(7, Happening::Run, 0, 0, &[]);
    script.note(9, Happening::Complete, 0, 0, &[]);
    script
}

#[test]
fn links_move_at_once_and_a_section_keeps_its_cpu() {
    let clusters = [vec![0]];
    let recording = recording(section().notes, &clusters, Instant(START));
    assert_eq!(judge("G-EDF", &clusters, &recording.records), (0, 0));
    let job = JobId { task: TaskId(0), index: 0 };
    let begun = Record { at: Instant(2 * MS), event: Event::NonPreemptiveBegin { cpu: CpuId(0), job } };
    assert!(recording.records.contains(&begun));
}

#[test]
fn a_preemption_in_a_section_is_found() {
    let mut script = section();
    // The section ends after the preemption.
    script.notes[4].event = Some(Happening::Stop);
    script.notes[5].event = Some(Happening::Exit);
    let clusters = [vec![0]];
    let recording = recording(script.notes, &clusters, Instant(START));
    assert!(judge("G-EDF", &clusters, &recording.records).0 > 0);
}

#[test]
fn a_job_with_a_new_budget_ranks_by_its_postponed_deadline() {
    let mut script = Script::new();
    script.release(0, 0, 20, 0, &[(0, Some(0))]);
    script.note(0, Happening::Run, 0, 0, &[]);
    script.release(2, 2, 10, 1, &[]);
    // Its budget is used up: it stands still, and goes on with a deadline that is later than that of the other.
    script.note(2, Happening::Suspend, 0, 0, &[(0, Some(1))]);
    script.note(2, Happening::Run, 0, 1, &[]);
    script.note(4, Happening::Priority { urgency: START + 40 * MS, of: 0 }, 0, 0, &[]);
    script.note(4, Happening::Resume, 0, 0, &[]);
    script.note(5, Happening::Complete, 0, 1, &[(0, Some(0))]);
    script.note(5, Happening::Run, 0, 0, &[]);
    script.note(6, Happening::Complete, 0, 0, &[]);
    let clusters = [vec![0]];
    let records = recording(script.notes.clone(), &clusters, Instant(START)).records;
    assert_eq!(judge("G-EDF", &clusters, &records), (0, 0));
    script.notes[5].event = Some(Happening::Priority { urgency: START + 8 * MS, of: 0 });
    let records = recording(script.notes, &clusters, Instant(START)).records;
    assert!(judge("G-EDF", &clusters, &records).1 > 0, "it would have to preempt");
}

#[test]
fn notes_of_many_cpus_are_put_into_the_order_of_the_lock() {
    let (ordered, mut mixed) = (preemption().notes, preemption().notes);
    mixed.reverse();
    let clusters = [vec![0]];
    assert_eq!(recording(mixed, &clusters, Instant(START)), recording(ordered, &clusters, Instant(START)));
}

#[test]
fn a_clock_read_before_the_lock_never_has_time_go_back() {
    let mut script = preemption();
    // The CPU that completed the job read the clock, and waited for the lock.
    script.notes[5].at = START + MS;
    let clusters = [vec![0]];
    let recording = recording(script.notes, &clusters, Instant(START));
    assert!(recording.records.is_sorted_by_key(|record| record.at));
    assert_eq!(judge("G-EDF", &clusters, &recording.records), (0, 0));
}

#[test]
fn a_release_has_the_time_for_which_it_was_due_and_its_job_is_ready_when_that_was_handled() {
    let mut script = Script::new();
    script.release(3, 1, 21, 0, &[(0, Some(0))]);
    let recording = recording(script.notes, &[vec![0]], Instant(START));
    let job = JobId { task: TaskId(0), index: 0 };
    let release = Event::Release { job, deadline: Instant(21 * MS) };
    assert_eq!(recording.records[0], Record { at: Instant(MS), event: release });
    assert_eq!(recording.records[1], Record { at: Instant(3 * MS), event: Event::Ready { job, cpu: CpuId(0) } });
}

#[test]
fn a_late_job_ranks_by_the_deadline_of_the_budget_that_it_goes_on_with() {
    let mut script = Script::new();
    script.release(3, 1, 41, 0, &[(0, Some(0))]);
    let recording = recording(script.notes, &[vec![0]], Instant(START));
    let (job, of) = (JobId { task: TaskId(0), index: 0 }, TaskId(0));
    let events: Vec<Event> = recording.records.iter().map(|record| record.event).collect();
    let release = Event::Release { job, deadline: Instant(21 * MS) };
    assert_eq!(events[..2], [release, Event::Priority { job, level: 41 * MS, of }]);
}

/// Events come faster than a task's period: its jobs are due a period apart, and execute at once.
#[test]
fn a_job_without_a_budget_is_due_as_it_ranks_and_one_of_an_event_may_be_early() {
    let mut script = Script::new();
    script.release(0, 0, 8, 0, &[(0, Some(0))]);
    script.note(0, Happening::Run, 0, 0, &[]);
    script.note(1, Happening::Complete, 0, 0, &[(0, None)]);
    script.release(2, 2, 16, 0, &[(0, Some(0))]);
    script.note(2, Happening::Run, 0, 0, &[]);
    script.note(3, Happening::Complete, 0, 0, &[(0, None)]);
    let of_kind = |kind| {
        let tasks = [RecordedTask { kind, has_budget: false, ..tasks()[1].clone() }];
        let recording = laxity_scx::trace::recording(
            Scheduler::GLOBAL_EDF,
            script.notes.clone(),
            &[vec![0]],
            &tasks,
            Instant(START),
        );
        let job = JobId { task: TaskId(0), index: 1 };
        let second = Record { at: Instant(2 * MS), event: Event::Release { job, deadline: Instant(16 * MS) } };
        assert!(recording.records.contains(&second));
        let header = header(Scheduler::GLOBAL_EDF, &[vec![0]], &tasks);
        let policy = check::policy(&header, &recording.records).count();
        (check::legality(&header, &recording.records, |_| None).count(), policy)
    };
    assert_eq!(of_kind(TaskKind::Event), (0, 0));
    assert_eq!(of_kind(TaskKind::Task), (1, 0), "it arrives at 8 ms");
}

#[test]
fn a_trace_ends_at_the_first_note_that_was_lost() {
    let mut script = preemption();
    script.notes.remove(4);
    let recording = recording(script.notes, &[vec![0]], Instant(START));
    assert_eq!(recording.left_out, 3);
    assert!(recording.records.iter().all(|record| record.event != Event::End), "it looks cut off");
    assert_eq!(judge("G-EDF", &[vec![0]], &recording.records).0, 0);
}

#[test]
fn under_fixed_priorities_the_rank_follows_the_level_and_not_the_order() {
    let scheduler: Scheduler = "P-RM".parse().expect("a policy");
    let of = |scheduler| -> Vec<u32> {
        header(scheduler, &[vec![0]], &tasks()).tasks.iter().map(|task| task.rank).collect()
    };
    assert_eq!(of(scheduler), [1, 0]);
    assert_eq!(of("G-EDF".parse().expect("a policy")), [0, 1]);
}

#[test]
fn bytes_that_are_no_note_are_none() {
    let mut bytes: Vec<u8> = [5_u64, START, 30, 20, 0].iter().flat_map(|number| number.to_ne_bytes()).collect();
    // Kind, cluster, CPU, task; state, linked to, news, links; then the links.
    bytes.extend([0_u16, 2, 1, 9, 0, 0, 1, 1, 1, 9, 0, 0, 0, 0, 0, 0].iter().flat_map(|number| number.to_ne_bytes()));
    assert_eq!(bytes.len(), Note::SIZE);
    let note = Note::read(&bytes).expect("a note");
    assert_eq!((note.sequence, note.cluster, note.cpu, note.task), (5, 2, 1, 9));
    assert_eq!(note.event, Some(Happening::Release { release: 20, rank: 30 }));
    assert_eq!(note.links, [(1, Some(9))]);
    for length in 0..56 {
        assert_eq!(Note::read(&bytes[..length]), None, "{length} bytes");
    }
}

#[test]
fn a_tick_has_the_links_of_as_many_cpus_as_there_are() {
    let mut bytes: Vec<u8> = [7_u64, START, 9, 0, 0].iter().flat_map(|number| number.to_ne_bytes()).collect();
    bytes.extend([14_u16, 0, 0, 0, 0, 0, 1, 6].iter().flat_map(|number| number.to_ne_bytes()));
    let links: Vec<(u16, Option<u16>)> = (0..6).map(|cpu| (cpu, (cpu != 3).then_some(cpu + 20))).collect();
    bytes.extend(links.iter().flat_map(|&(cpu, task)| [cpu, task.unwrap_or(0xffff)]).flat_map(u16::to_ne_bytes));
    let note = Note::read(&bytes).expect("a note");
    assert_eq!((note.event, note.links), (Some(Happening::Tick), links));
    assert_eq!(Note::read(&bytes[..bytes.len() - 1]), None);
}

/// One CPU under fixed priorities: the slow task has what the fast one waits for.
#[test]
fn a_job_that_inherits_has_the_rank_of_the_task_that_waits() {
    let mut script = preempted();
    script.note(3, Happening::Suspend, 0, 1, &[(0, Some(0))]);
    // Levels 2 and 1: ranks 1 and 0.
    script.note(3, Happening::Priority { urgency: 1, of: 1 }, 0, 0, &[]);
    script.note(3, Happening::Run, 0, 0, &[]);
    script.note(5, Happening::Priority { urgency: 2, of: 0 }, 0, 0, &[]);
    script.note(5, Happening::Resume, 0, 1, &[(0, Some(1))]);
    let policy: Scheduler = "G-FP".parse().expect("a policy");
    let records = laxity_scx::trace::recording(policy, script.notes, &[vec![0]], &tasks(), Instant(START)).records;
    let levels = records.iter().filter_map(|record| match record.event {
        Event::Priority { job, level, of } => Some((job.task.0, level, of.0)),
        _ => None,
    });
    assert_eq!(levels.collect::<Vec<_>>(), [(0, 1, 1), (0, 2, 0)]);
    assert_eq!(judge("G-FP", &[vec![0]], &records), (0, 0));
}

/// The scheduler ends, and so do the tasks one by one.
#[test]
fn a_job_is_suspended_by_the_end_of_its_task_and_one_that_waits_for_a_cpu_ends_the_trace() {
    let mut script = preempted();
    script.note(3, Happening::Forget, 0, 1, &[(0, Some(0))]);
    let mut all = script.notes.clone();
    let records = recording(script.notes, &[vec![0]], Instant(START)).records;
    assert_eq!(judge("G-EDF", &[vec![0]], &records), (0, 0), "{records:?}");
    let job = JobId { task: TaskId(1), index: 0 };
    assert!(records.contains(&Record { at: Instant(3 * MS), event: Event::Suspend { cpu: CpuId(0), job } }));

    // The other job has the link, and its thread is not there yet.
    let last = all.last().expect("there are some").clone();
    all.push(Note { sequence: last.sequence + 1, task: 0, links: vec![(0, None)], ..last });
    let Recording { records: cut, left_out } = recording(all, &[vec![0]], Instant(START));
    assert_eq!(left_out, 1);
    assert_eq!(cut, records[..records.len() - 1], "without the end");
    assert_eq!(judge("G-EDF", &[vec![0]], &cut), (0, 0), "{cut:?}");
}

#[test]
fn between_two_jobs_the_end_of_a_task_changes_nothing() {
    let mut script = Script::new();
    script.release(0, 0, 20, 0, &[(0, Some(0))]);
    script.note(0, Happening::Run, 0, 0, &[]);
    script.note(4, Happening::Complete, 0, 0, &[(0, None)]);
    let without = recording(script.notes.clone(), &[vec![0]], Instant(START));
    script.note(4, Happening::Forget, 0, 0, &[]);
    assert_eq!(recording(script.notes, &[vec![0]], Instant(START)), without);
}

/// Two CPUs: the fast task waits for its device, whose interrupt thread, number 2, then works for it.
fn interrupt() -> Script {
    let mut script = Script::new();
    script.release(0, 0, 20, 0, &[(0, Some(0))]);
    script.note(0, Happening::Run, 0, 0, &[]);
    script.release(2, 2, 10, 1, &[(1, Some(1))]);
    script.note(2, Happening::Run, 1, 1, &[]);
    script.note(3, Happening::Suspend, 1, 1, &[]);
    let work = Happening::Work { owner: Some(1), urgency: START + 10 * MS, of: 1 };
    script.note(5, work, 0, 2, &[(1, Some(2))]);
    script.note(5, Happening::Run, 1, 2, &[]);
    // The device has woken it, and the thread is not through yet.
    script.note(6, Happening::Resume, 0, 1, &[]);
    script.note(7, Happening::Complete, 1, 2, &[(1, Some(1))]);
    script.note(7, Happening::Run, 1, 1, &[]);
    script.note(8, Happening::Complete, 1, 1, &[]);
    script.note(9, Happening::Complete, 0, 0, &[]);
    script
}

/// The records, and how they are judged.
fn judged_with_interrupts(script: Script) -> (Vec<Record>, (u64, u64)) {
    let mut tasks = tasks();
    let name = "irq/16-device".to_owned();
    tasks.push(RecordedTask { name, level: 3, kind: TaskKind::Thread, ..tasks[1].clone() });
    let clusters = [vec![0, 1]];
    let records =
        laxity_scx::trace::recording(Scheduler::GLOBAL_EDF, script.notes, &clusters, &tasks, Instant(START)).records;
    let header = header(Scheduler::GLOBAL_EDF, &clusters, &tasks);
    assert_eq!(header.devices.len(), 1);
    let legality = check::legality(&header, &records, |_| None).count();
    let policy = check::policy(&header, &records).count();
    (records, (legality, policy))
}

#[test]
fn an_interrupt_thread_has_the_priority_of_its_owner_and_the_owner_waits_for_its_end() {
    let (records, found) = judged_with_interrupts(interrupt());
    assert_eq!(found, (0, 0), "{records:?}");
    let [owner, thread] = [1, 2].map(|task| JobId { task: TaskId(task), index: 0 });
    let at = |event| records.contains(&Record { at: Instant(5 * MS), event });
    assert!(at(Event::Release { job: thread, deadline: Instant(10 * MS) }));
    assert!(at(Event::Serve { thread, device: laxity_trace::DeviceId(0), job: Some(owner) }));
    assert!(at(Event::Priority { job: thread, level: 10 * MS, of: TaskId(1) }));
}

#[test]
fn an_owner_beside_its_interrupt_thread_is_found() {
    let mut script = interrupt();
    // The owner gets the other CPU: the only one that is less urgent.
    script.notes[7].links = vec![(0, Some(1))];
    script.notes.truncate(8);
    script.note(6, Happening::Stop, 0, 0, &[]);
    script.note(6, Happening::Run, 0, 1, &[]);
    script.note(8, Happening::Complete, 0, 1, &[(0, Some(0))]);
    let (records, (legality, _)) = judged_with_interrupts(script);
    assert!(legality > 0, "{records:?}");
}

#[test]
fn an_interrupt_thread_that_waits_for_less_urgent_jobs_is_found() {
    let mut script = interrupt();
    script.notes[5].links = Vec::new();
    script.notes.truncate(6);
    script.note(9, Happening::Complete, 0, 0, &[(0, Some(2))]);
    assert!(judged_with_interrupts(script).1.1 > 0);
}

#[test]
fn interrupt_threads_follow_the_priority_of_their_owner() {
    let mut script = interrupt();
    script.notes.truncate(8);
    // Another task waits for what the owner has.
    script.note(6, Happening::Priority { urgency: START + 6 * MS, of: 0 }, 0, 1, &[]);
    let (records, found) = judged_with_interrupts(script);
    assert_eq!(found, (0, 0));
    let levels = records.iter().filter_map(|record| match record.event {
        Event::Priority { job, level, .. } if record.at == Instant(6 * MS) => Some((job.task.0, level / MS)),
        _ => None,
    });
    assert_eq!(levels.collect::<Vec<_>>(), [(2, 6), (1, 6)]);
}

#[test]
fn the_owner_of_work_is_in_place_of_its_cpu() {
    let mut bytes: Vec<u8> = [5_u64, START, 30, 1, 0].iter().flat_map(|number| number.to_ne_bytes()).collect();
    bytes.extend([11_u16, 0, 7, 9, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0].iter().flat_map(|number| number.to_ne_bytes()));
    let read = |bytes: &[u8]| Note::read(bytes).expect("a note");
    assert_eq!(read(&bytes).event, Some(Happening::Work { owner: Some(7), urgency: 30, of: 1 }));
    assert_eq!(read(&bytes).cpu, 0);
    bytes[44..46].copy_from_slice(&[0xff; 2]);
    assert_eq!(read(&bytes).event, Some(Happening::Work { owner: None, urgency: 30, of: 1 }));
}

/// One CPU: a job waits for a quantum to begin.
#[test]
fn the_links_of_a_quantum_follow_its_tick() {
    let mut script = Script::new();
    script.release(0, 0, 20, 0, &[]);
    script.note(1, Happening::Tick, 0, 0, &[(0, Some(0))]);
    script.note(1, Happening::Run, 0, 0, &[]);
    script.release(2, 2, 10, 1, &[]);
    script.note(3, Happening::Tick, 0, 0, &[(0, Some(1))]);
    let clusters = [vec![3]];
    let records = recording(script.notes.clone(), &clusters, Instant(START)).records;
    assert_eq!(judge("G-EDF/CQm", &clusters, &records), (0, 0), "{records:?}");
    let tick = Event::Overhead { cpu: CpuId(3), kind: OverheadKind::Tick, duration: Nanos::ZERO };
    let at = records.iter().position(|record| *record == Record { at: Instant(MS), event: tick });
    let job = Some(JobId { task: TaskId(0), index: 0 });
    assert_eq!(records[at.expect("a tick") + 1].event, Event::Link { cpu: CpuId(3), job });
    // A tick that leaves the more urgent job waiting.
    script.notes[4].links.clear();
    script.note(4, Happening::Complete, 0, 0, &[]);
    let records = recording(script.notes, &clusters, Instant(START)).records;
    assert_eq!(judge("G-EDF/CQm", &clusters, &records), (0, 1), "{records:?}");
}

#[test]
fn a_job_is_ready_where_its_release_was_handled_if_the_trace_has_that_cpu() {
    for (place, cpu) in [(1, 3), (OUTSIDE, 0), (OUTSIDE | 1, 1), (OUTSIDE | 9, 2)] {
        let mut script = Script::new();
        script.release(0, 0, 20, 0, &[]);
        script.notes[0].cpu = place;
        let records = recording(script.notes, &[vec![2, 3]], Instant(START)).records;
        let ready = records.iter().find_map(|record| match record.event {
            Event::Ready { cpu, .. } => Some(cpu),
            _ => None,
        });
        assert_eq!(ready, Some(CpuId(cpu)), "{place:#x}");
    }
}

#[test]
fn staggered_quanta_are_as_late_as_the_checker_takes_them_to_be() {
    let of = |policy: &str, clusters: &[Vec<usize>], cpu| phase(&policy.parse().expect("a policy"), clusters, cpu);
    assert_eq!(of("CQm", &[vec![0, 1]], 1), Nanos::ZERO);
    let quarters = [0, 1, 2, 3].map(|cpu| of("S-CQm", &[vec![0, 1, 2, 3]], cpu).0);
    assert_eq!(quarters, [0, 1, 2, 3].map(|quarter| quarter * QUANTUM.0 / 4));
    assert_eq!(of("S-CQ1", &[vec![1], vec![2]], 2), Nanos(666_666));
}
