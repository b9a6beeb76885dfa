//! The fair class as a [`CpuPolicy`] of one cluster: where threads wait, which are linked, which move.

mod accounts;
mod balancing;
mod class;
mod picking;
mod waking;

use laxity_model::{CpuId, Factor, Instant, Nanos, TaskId};

use super::loads::Loads;
use super::run_queue::RunQueue;
use super::{Entity, Parameters};
use crate::cpu::{Action, CpuPolicy, Event, Priority};

pub use class::FairThread;

/// How long a busy CPU waits before it looks again whether others have more to do: 1 ms for each CPU that could
/// (`sd->balance_interval`), times `busy_factor`.
const BUSY_FACTOR: u64 = 32;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    /// Not runnable since then.
    Asleep(Instant),
    /// In the queue of this CPU.
    Waiting(u16),
    /// Assigned to this CPU.
    Linked(u16),
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    state: ThreadState,
    entity: Entity,
    /// An interrupt thread with real-time priority, above the fair class.
    is_above: bool,
    /// The CPU it is on, or was on last: its virtual time is counted from that one's clock.
    cpu: u16,
    /// The only CPU that it may be on.
    pinned: Option<u16>,
    /// The CPU that its process occupies, linked there or not: it can go on nowhere else.
    occupies: Option<u16>,
}

/// CFS on the CPUs of one cluster, or TFS.
#[derive(Clone, Debug)]
pub struct Fair {
    parameters: Parameters,
    /// What a thread is charged for the time in which its CPU was throttled because of it; none under CFS.
    punishment: Factor,
    balance_interval: Nanos,
    threads: Vec<Thread>,
    queues: Vec<RunQueue>,
    /// Whether a thread may be kept where it is, or a CPU from its threads.
    is_restricted: bool,
    loads: Loads,
    /// Whose process occupies each CPU, and up to when that is charged.
    executing: Vec<Option<(TaskId, Instant)>>,
    /// The link last announced for each CPU, and the CPUs touched since.
    announced: Vec<Option<TaskId>>,
    touched: Vec<u16>,
}

impl Fair {
    /// A scheduler of `tasks` tasks, all of nice value 0, on `cpus` CPUs.
    pub fn new(parameters: Parameters, tasks: usize, cpus: usize) -> Fair {
        Fair::with_threads(parameters, Factor::ZERO, &vec![FairThread::default(); tasks], cpus)
    }

    /// A scheduler of `threads` on `cpus` CPUs; `punishment` is that of TFS, and zero under CFS.
    pub fn with_threads(parameters: Parameters, punishment: Factor, threads: &[FairThread], cpus: usize) -> Fair {
        let balance_interval = Nanos::from_millis(BUSY_FACTOR * cpus as u64);
        let thread = |(task, thread): (usize, &FairThread)| Thread {
            state: ThreadState::Asleep(Instant::ZERO),
            entity: Entity::new(thread.weight),
            is_above: false,
            cpu: thread.cpu.map_or((task % cpus.max(1)) as u16, |cpu| cpu.0),
            pinned: thread.cpu.map(|cpu| cpu.0),
            occupies: None,
        };
        Fair {
            parameters,
            punishment,
            balance_interval,
            is_restricted: threads.iter().any(|thread| thread.cpu.is_some()),
            threads: threads.iter().enumerate().map(thread).collect(),
            queues: vec![RunQueue::new(Instant::ZERO + balance_interval); cpus],
            loads: Loads::all_idle(cpus),
            executing: vec![None; cpus],
            announced: vec![None; cpus],
            touched: Vec::with_capacity(2 * cpus),
        }
    }

    /// The account of `task`.
    pub fn entity(&self, task: TaskId) -> &Entity {
        &self.threads[task.index()].entity
    }
}

impl CpuPolicy for Fair {
    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Released { task, .. } | Event::Resumed { task, .. } => self.wake(now, task, false),
            // Owners matter to klmirqd only, which needs priorities.
            Event::Woken { thread, level, .. } => self.wake(now, thread, level.0 == Priority::HIGHEST.0),
            Event::Completed { cpu, task } | Event::Suspended { cpu, task } => self.leave(now, cpu, task),
            Event::Tick { cpu, .. } => self.tick(now, cpu.0),
            Event::Switched { cpu, task } => self.switched(now, cpu, task),
            // Jobs inherit priorities, and the fair class has none.
            Event::Prioritized { .. } => {}
        }
    }

    fn decide(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.settle(now);
        self.announce(actions);
    }

    fn lowest(&self) -> (CpuId, Option<Priority>) {
        if let Some(idle) = self.loads.first_idle() {
            return (CpuId(idle), None);
        }
        let standing = |cpu: usize| (self.linked(CpuId(cpu as u16)), cpu);
        let last = (0..self.queues.len()).max_by_key(|&cpu| standing(cpu)).unwrap_or(0);
        (CpuId(last as u16), self.linked(CpuId(last as u16)))
    }

    fn linked(&self, cpu: CpuId) -> Option<Priority> {
        self.queues[cpu.index()].linked.map(|task| self.standing(task))
    }

    fn heeds_ticks(&self) -> bool {
        let waits = |queue: &RunQueue| queue.linked.is_some() && !queue.waiting.is_empty();
        self.loads.busiest().is_some() || self.is_restricted && self.queues.iter().any(waits)
    }

    fn assert_invariants(&self) {
        let mut runnable = 0;
        for (at, queue) in self.queues.iter().enumerate() {
            let cpu = at as u16;
            let members = || queue.waiting.iter().map(|key| key.task).chain(queue.linked);
            runnable += queue.runnable();
            assert_eq!(queue.load, members().map(|task| self.weight(task)).sum::<u64>(), "loads are sums of weights");
            let is_idle = queue.runnable() == 0 && !queue.blocked.at_all();
            assert_eq!(self.loads.is_idle(cpu), is_idle, "an idle CPU is known to be idle");
            assert!(!queue.blocked.at_all() || queue.linked.is_none(), "a CPU that is not to be had has no link");
            for key in &queue.waiting {
                assert_eq!(self.key(key.task), *key, "a queue is ordered by what its members have now");
                assert_eq!(self.threads[key.task.index()].state, ThreadState::Waiting(cpu), "places agree with queues");
            }
            if let Some(linked) = queue.linked {
                assert_eq!(self.threads[linked.index()].state, ThreadState::Linked(cpu), "places agree with links");
            }
            for task in members() {
                let occupies = self.threads[task.index()].occupies;
                assert!(occupies.is_none_or(|on| on == cpu), "a thread is where its process is");
                let pinned = self.threads[task.index()].pinned;
                assert!(pinned.is_none_or(|only| only == cpu), "a pinned thread is on its CPU");
            }
            if let Some((task, _)) = self.executing[at] {
                assert_eq!(self.threads[task.index()].occupies, Some(cpu), "processes agree in both directions");
            }
        }
        let awake = self.threads.iter().filter(|thread| !matches!(thread.state, ThreadState::Asleep(_))).count();
        assert_eq!(runnable, awake, "every runnable thread is in one queue");
        let both = self.loads.first_idle().is_some() && self.loads.busiest().is_some();
        assert!(!both, "no CPU idles while threads wait that it may take");
    }
}
