//! Notes of the kernel as a trace in Laxity's vocabulary.

use laxity_model::{
    CpuId, Instant, InterruptHandling, JobId, Nanos, OverheadKind, PriorityRule, Quanta, Scheduler, TaskId,
};
use laxity_trace::{DeviceId, DeviceInfo, Event, Origin, Record, TaskInfo, TaskKind, TraceHeader};

use crate::notes::{Happening, Note, OUTSIDE};

/// How long a quantum is, as in paper 002.
pub const QUANTUM: Nanos = Nanos::from_millis(1);

/// How late the quanta of `cpu` are: if they are staggered over the CPUs of a trace, which has all CPUs up to the last one.
pub fn phase(scheduler: &Scheduler, clusters: &[Vec<usize>], cpu: usize) -> Nanos {
    match scheduler.quanta {
        Quanta::Aligned => Nanos::ZERO,
        Quanta::Staggered => Nanos(QUANTUM.0 * cpu as u64 / cpu_count(clusters) as u64),
    }
}

/// How many CPUs a trace has.
fn cpu_count(clusters: &[Vec<usize>]) -> usize {
    clusters.iter().flatten().max().map_or(1, |&last| last + 1)
}

/// A task of a recording. Its number in the kernel is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTask {
    /// Its name.
    pub name: String,
    /// From one release to the next.
    pub period: Nanos,
    /// From a release on.
    pub deadline: Nanos,
    /// CPU time of each job at most, as its process says.
    pub wcet: Nanos,
    /// Its cluster.
    pub cluster: usize,
    /// Under fixed priorities; the smaller first, ties by the order of the list.
    pub level: u64,
    /// A task, one whose jobs events release, or a thread of the kernel that handles interrupts: a device of the trace.
    pub kind: TaskKind,
    /// Whether it has a budget, by which its jobs rank.
    pub has_budget: bool,
}

impl RecordedTask {
    fn is_interrupt(&self) -> bool {
        self.kind == TaskKind::Thread
    }
}

/// Records in the order in which they happened, and whether some are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// What happened, up to the first loss.
    pub records: Vec<Record>,
    /// Notes that came after a lost one, which are left out.
    pub left_out: usize,
}

/// The header of a trace of the scheduler in the kernel.
pub fn header(scheduler: Scheduler, clusters: &[Vec<usize>], tasks: &[RecordedTask]) -> TraceHeader {
    let infos = tasks.iter().zip(ranks(scheduler, tasks)).map(|(task, rank)| TaskInfo {
        name: task.name.clone(),
        period: task.period,
        deadline: task.deadline,
        wcet: task.wcet,
        cluster: task.cluster,
        rank,
        kind: task.kind,
    });
    let devices: Vec<DeviceInfo> =
        tasks.iter().filter(|task| task.is_interrupt()).map(|task| DeviceInfo { name: task.name.clone() }).collect();
    let handling = match u32::try_from(devices.len()) {
        Ok(0) | Err(_) => InterruptHandling::default(),
        Ok(threads) => InterruptHandling::Klmirqd { threads: Some(threads) },
    };
    TraceHeader {
        clusters: clusters.iter().map(|cpus| cpus.iter().map(|&cpu| cpu_id(cpu)).collect()).collect(),
        quantum: QUANTUM,
        is_linked: true,
        tasks: infos.collect(),
        handling,
        devices,
        ..TraceHeader::new(Origin::Live, "tasks of the scheduler in the kernel", cpu_count(clusters), scheduler)
    }
}

/// The rank of each task: its place in the order of levels, or of the list under EDF.
fn ranks(scheduler: Scheduler, tasks: &[RecordedTask]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    if scheduler.rule != PriorityRule::Edf {
        order.sort_by_key(|&task| tasks[task].level);
    }
    let mut ranks = vec![0; tasks.len()];
    for (rank, task) in (0..).zip(order) {
        ranks[task] = rank;
    }
    ranks
}

/// The records of `notes`, in any order, of `tasks` on the CPUs in `clusters`; times count from `start`.
///
/// Within a cluster the order is that in which events took its lock. The kernel reads the clock just before, so that a later
/// event may have the earlier time; it then gets the time of the one before it. A release has the time for which it was due,
/// and its job is ready when the kernel handled it.
pub fn recording(
    scheduler: Scheduler,
    mut notes: Vec<Note>,
    clusters: &[Vec<usize>],
    tasks: &[RecordedTask],
    start: Instant,
) -> Recording {
    let ranks = if scheduler.rule == PriorityRule::Edf { Vec::new() } else { ranks(scheduler, tasks) };
    notes.sort_by_key(|note| (note.cluster, note.sequence));
    let (mut records, mut left_out) = (Vec::new(), 0);
    for of_cluster in notes.chunk_by(|a, b| a.cluster == b.cluster) {
        let Some(cpus) = clusters.get(usize::from(of_cluster[0].cluster)) else {
            left_out += of_cluster.len();
            continue;
        };
        let whole = (0..).zip(of_cluster).take_while(|(expected, note)| note.sequence == *expected).count();
        left_out += of_cluster.len() - whole;
        let (ranks, records) = (&ranks[..], &mut records);
        let is_edf = scheduler.rule == PriorityRule::Edf;
        let (last, serving, known) = (Vec::new(), Vec::new(), cpu_count(clusters));
        let mut cluster = Cluster { cpus, known, tasks, is_edf, ranks, start: start.0, now: 0, last, serving, records };
        let taken = of_cluster[..whole].iter().take_while(|note| cluster.take(note)).count();
        left_out += whole - taken;
    }
    records.sort_by_key(|record| record.at);
    if left_out == 0 {
        let at = records.last().map_or(Instant::ZERO, |last| last.at);
        records.push(Record { at, event: Event::End });
    }
    Recording { records, left_out }
}

fn cpu_id(cpu: usize) -> CpuId {
    CpuId(u16::try_from(cpu).expect("the kernel's side knows 64 CPUs"))
}

/// The notes of one cluster, one after another.
struct Cluster<'a> {
    cpus: &'a [usize],
    /// How many CPUs the trace has.
    known: usize,
    /// All tasks.
    tasks: &'a [RecordedTask],
    is_edf: bool,
    /// Of all tasks; none under EDF.
    ranks: &'a [u32],
    start: u64,
    now: u64,
    /// The last job of each task.
    last: Vec<Last>,
    /// Interrupt threads that have work, and the tasks that they work for.
    serving: Vec<(u16, u16)>,
    records: &'a mut Vec<Record>,
}

/// The last job of a task.
#[derive(Clone, Copy, Default)]
struct Last {
    /// Jobs so far.
    released: u32,
    /// Its deadline, from the scheduler's start on.
    deadline: Instant,
    state: State,
}

/// As far as was noted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Complete or suspended, or there is none.
    #[default]
    Idle,
    Ready,
    Executes,
}

impl Cluster<'_> {
    /// Whether the trace has it: a job that waits for a CPU when its task ends has no event that says so, and nothing after it
    /// could be judged.
    fn take(&mut self, note: &Note) -> bool {
        self.now = self.now.max(note.at.saturating_sub(self.start));
        let now = Instant(self.now);
        let cpu = self.cpu(note.cpu);
        if let Some(Happening::Release { release, rank }) = note.event {
            self.last(note.task).released += 1;
            let job = self.job(note.task);
            let due = Instant(release.saturating_sub(self.start).min(self.now));
            // Without a budget a job ranks by its own deadline.
            let with_budget = self.tasks.get(usize::from(note.task)).filter(|task| task.has_budget);
            let deadline = with_budget.map_or(rank, |task| release.saturating_add(task.deadline.0));
            let of = job.task;
            let [deadline_at, level] = [deadline, rank].map(|at| at.saturating_sub(self.start));
            let deadline_at = Instant(deadline_at);
            self.last(note.task).deadline = deadline_at;
            self.records.push(Record { at: due, event: Event::Release { job, deadline: deadline_at } });
            if self.is_edf && rank != deadline {
                // It goes on with the budget of the one before.
                self.records.push(Record { at: now, event: Event::Priority { job, level, of } });
            }
        }
        if let Some(Happening::Work { owner, urgency, of }) = note.event {
            self.begin_work(note.task, owner, urgency, of);
        }
        let job = self.job(note.task);
        let was = self.change(note);
        if matches!(note.event, Some(Happening::Complete | Happening::Forget)) {
            self.serving.retain(|&(thread, _)| thread != note.task);
        }
        let is_end = note.event == Some(Happening::Forget);
        if is_end && was == State::Ready {
            return false;
        }
        let event = note.event.filter(|_| !is_end || was == State::Executes);
        let event = event.map(|event| match event {
            // What its task began is suspended for ever.
            Happening::Forget => Event::Suspend { cpu, job },
            Happening::Release { .. } => Event::Ready { job, cpu: self.machine(note.cpu) },
            Happening::Work { .. } => Event::Ready { job, cpu },
            Happening::Complete => Event::Complete { cpu, job },
            Happening::Suspend => Event::Suspend { cpu, job },
            Happening::Resume => Event::Resume { cpu, job },
            Happening::Run => Event::Dispatch { cpu, job },
            Happening::Stop => Event::Preempt { cpu, job },
            Happening::Priority { urgency, of } => {
                // As have those that work for it.
                let threads: Vec<u16> = self.serving.iter().filter(|it| it.1 == note.task).map(|it| it.0).collect();
                for thread in threads {
                    let event = self.priority(thread, urgency, of);
                    self.records.push(Record { at: now, event });
                }
                self.priority(note.task, urgency, of)
            }
            Happening::Enter => Event::NonPreemptiveBegin { cpu, job },
            Happening::Exit => Event::NonPreemptiveEnd { cpu, job },
            // How long its handler took is not known.
            Happening::Tick => Event::Overhead { cpu, kind: OverheadKind::Tick, duration: Nanos::ZERO },
        });
        self.records.extend(event.map(|event| Record { at: now, event }));
        for &(cpu, task) in &note.links {
            let (cpu, job) = (self.cpu(cpu), task.map(|task| self.job(task)));
            self.records.push(Record { at: now, event: Event::Link { cpu, job } });
        }
        true
    }

    /// An interrupt thread has work: a job of it.
    fn begin_work(&mut self, thread: u16, owner: Option<u16>, urgency: u64, of: u16) {
        let at = Instant(self.now);
        self.last(thread).released += 1;
        let job = self.job(thread);
        let deadline = owner.map_or(at, |owner| self.last(owner).deadline);
        let device = self.tasks.iter().take(usize::from(thread)).filter(|before| before.is_interrupt()).count();
        let owner_job = owner.map(|owner| self.job(owner));
        self.serving.extend(owner.map(|owner| (thread, owner)));
        let priority = self.priority(thread, urgency, of);
        let device = DeviceId(u16::try_from(device).expect("the kernel's side knows 256 tasks"));
        let events = [Event::Release { job, deadline }, Event::Serve { thread: job, device, job: owner_job }, priority];
        self.records.extend(events.map(|event| Record { at, event }));
    }

    fn priority(&mut self, task: u16, urgency: u64, of: u16) -> Event {
        let rank = self.ranks.get(usize::from(of)).map(|&rank| u64::from(rank) + 1);
        let level = rank.unwrap_or(urgency.saturating_sub(self.start));
        Event::Priority { job: self.job(task), level, of: TaskId(u32::from(of)) }
    }

    /// Changes the state of the note's task. Returns the one before.
    fn change(&mut self, note: &Note) -> State {
        let last = self.last(note.task);
        let to = match note.event {
            Some(Happening::Release { .. } | Happening::Work { .. } | Happening::Resume | Happening::Stop) => {
                State::Ready
            }
            Some(Happening::Run) => State::Executes,
            Some(Happening::Complete | Happening::Suspend | Happening::Forget) => State::Idle,
            _ => last.state,
        };
        std::mem::replace(&mut last.state, to)
    }

    /// A CPU, also one outside the cluster that the trace has.
    fn machine(&self, place: u16) -> CpuId {
        let is_outside = place & OUTSIDE != 0 && usize::from(place & !OUTSIDE) < self.known;
        if is_outside { CpuId(place & !OUTSIDE) } else { self.cpu(place) }
    }

    /// A CPU of the cluster; events that happened on another one are noted at its first.
    fn cpu(&self, local: u16) -> CpuId {
        cpu_id(self.cpus.get(usize::from(local)).or(self.cpus.first()).copied().unwrap_or(0))
    }

    fn last(&mut self, task: u16) -> &mut Last {
        let at = usize::from(task);
        if self.last.len() <= at {
            self.last.resize(at + 1, Last::default());
        }
        &mut self.last[at]
    }

    fn job(&mut self, task: u16) -> JobId {
        let index = self.last(task).released.saturating_sub(1);
        JobId { task: TaskId(u32::from(task)), index }
    }
}
