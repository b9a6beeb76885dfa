//! The simulator's state and its main loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use laxity_model::{CpuId, Engine, GpuId, Instant, Invocation, LockId, Nanos, PriorityRule, Quanta, ReplicaId, TaskId};
use laxity_policy::cpu::{Action, CpuPolicy, ReleaseQueue, build, fair};
use laxity_policy::interrupt::ProcessAware;
use laxity_trace::{DeviceId, Event, Sink};

use crate::cpu_set::CpuSet;
use crate::devices::Devices;
use crate::graphs::Graphs;
use crate::halves::{CpuHalves, Half};
use crate::interrupt::Interrupt;
use crate::locking::Locking;
use crate::servers::Served;
use laxity_plan::{NextRelease, Plan};

/// A simulation in progress.
pub struct Simulator<S> {
    pub(crate) now: Instant,
    pub(crate) plan: Plan,
    pub(crate) sink: S,
    pub(crate) tasks: Vec<TaskRun>,
    pub(crate) cpus: Vec<Cpu>,
    /// When the current segment of each CPU ends: a dense array, scanned for its minimum.
    pub(crate) ends: Vec<Instant>,
    pub(crate) clusters: Vec<Cluster>,
    pub(crate) releases: ReleaseQueue,
    pub(crate) timers: BinaryHeap<Reverse<Timer>>,
    ticks: Option<Ticks>,
    /// CPUs that must act at this instant.
    touched: CpuSet,
    /// Clusters whose policy must decide at this instant.
    dirty: Vec<usize>,
    actions: Vec<Action>,
    /// Empty batches for reuse: a release allocates nothing.
    pub(crate) spare_batches: Vec<Vec<TaskId>>,
    /// Scratch space: CPUs whose segment ends now.
    ending: Vec<u16>,
    /// The CPU whose handler ran last; sends the inter-processor interrupts.
    pub(crate) handler: CpuId,
    /// GPUs, and the bottom halves of their interrupts.
    pub(crate) devices: Devices,
    /// Locks and effective priorities; `None` where priorities are base priorities and nothing is locked.
    pub(crate) locking: Option<Box<Locking>>,
    /// The tokens of graphs.
    pub(crate) graphs: Graphs,
    /// The bandwidth server of each task and thread; empty if there is none.
    pub(crate) servers: Vec<Option<Served>>,
}

/// A task's run-time state, in whole cache lines, as tasks take turns: what a job needs while it executes, and what its
/// release needs.
#[repr(C, align(64))]
pub(crate) struct TaskRun {
    /// Whether a job is pending and known to the policy.
    pub active: bool,
    /// Whether the job is inside a non-preemptive section.
    pub non_preemptive: bool,
    /// Whether it waits spinning for its GPU operations.
    pub spinning: bool,
    /// What a suspended job waits for.
    pub wait: Wait,
    /// Index of the current job, or of the next if none is active.
    pub job: u32,
    /// Position in the body.
    pub op: u32,
    /// The CPU on which the job was last dispatched, once it was preempted.
    pub preempted_on: Option<CpuId>,
    /// What is left of the current step.
    pub remaining: u64,
    /// The absolute deadline of the current job.
    pub deadline: Instant,
    /// What tasks without locks, GPUs, graphs and servers never need; apart, so that those stay small.
    pub sharing: Box<Sharing>,
    /// The CPU that takes the task's release interrupt: the one that completed its last job and armed the timer.
    pub timer_cpu: CpuId,
    /// The job to be released next.
    pub next: NextRelease,
    /// Deadlines of released jobs that wait for their predecessor.
    pub backlog: VecDeque<Instant>,
}

const _: () = assert!(size_of::<TaskRun>() == 2 * 64);

/// What a task shares with others.
#[derive(Default)]
pub(crate) struct Sharing {
    /// GPU operations issued by the current job that are not complete.
    pub outstanding: u32,
    /// The GPU it was granted.
    pub gpu: Option<GpuId>,
    /// The one it was granted the time before, if that is another.
    pub left: Option<GpuId>,
    /// The locks it holds.
    pub held: Vec<(LockId, ReplicaId)>,
    /// Of an interrupt thread or a server: the level it was last given.
    pub level: (u64, u32),
    /// Deadlines of released jobs of a node that wait for feedback tokens or their predecessor.
    pub announced: VecDeque<Instant>,
}

/// What a suspended job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing, or the end of its suspension.
    Timer,
    /// A lock.
    Lock,
    /// Its GPU operations.
    Gpu,
}

/// A CPU's process scheduling.
pub(crate) struct Cpu {
    /// Its cluster and its number there; a dedicated interrupt CPU has none.
    pub cluster: Option<(usize, CpuId)>,
    pub activity: Activity,
    /// The task whose process is switched in and has a job to run.
    pub process: Option<TaskId>,
    /// The task that job scheduling assigned to this CPU.
    pub link: Option<TaskId>,
    /// The task whose job completed or suspended here and whose process must still be switched out.
    pub vacated: Option<TaskId>,
    /// Whether the process has executed since it was switched in.
    pub dispatched: bool,
    /// The scheduler must run here.
    pub reschedule: bool,
    /// The scheduler ran; the link must be enacted.
    pub pick: bool,
    /// The process was switched; what follows a switch is due.
    pub switched: bool,
    /// A completion left a timer to be armed after the next switch.
    pub rearm: bool,
    /// A quantum began here at this instant: enact the link.
    pub boundary: bool,
    pub ipi_in_flight: bool,
    /// When the job's execution began or went on.
    pub since: Instant,
    /// When a handler last ended or a job last left here: links made then are enacted without an interrupt.
    pub handled_at: Instant,
    /// Interrupts that wait for the current one, or for the scheduler, to end.
    pub interrupts: VecDeque<Interrupt>,
    /// Bottom halves; apart, so that CPUs without them stay small.
    pub halves: Box<CpuHalves>,
    /// A process-aware bottom half wants the scheduler to run here.
    pub wanted: bool,
}

/// What a CPU does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// Runs the job of its process, or nothing.
    Job,
    /// Runs a bottom half on the stack of its process.
    Half,
    /// Runs a tasklet of the daemon, as it has nothing else to do.
    Daemon,
    /// Between two things, at this instant only.
    Open,
    /// Scheduler or interrupt code, until its segment ends.
    Scheduler(Work),
}

/// A piece of scheduler or interrupt code; not interruptible.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Waits for the cluster's lock before the work it guards.
    Lock(Box<Work>),
    Interrupt(Interrupt),
    Schedule,
    /// Looks for a bottom half to be run instead of the job picked.
    PaiCheck,
    ContextSwitch,
    RearmTimer,
}

/// A cluster's job scheduling.
pub(crate) struct Cluster {
    pub policy: Box<dyn CpuPolicy>,
    pub dirty: bool,
    /// When its scheduler lock is free again, if that is modelled.
    pub lock_free: Instant,
    /// Tasks released at this instant, and the CPU that takes their interrupt.
    pub batch: Vec<TaskId>,
    pub batch_cpu: CpuId,
    /// Bottom halves that wait for their owner's priority to suffice.
    pub waiting_halves: ProcessAware<Half>,
}

/// A one-shot timer, ordered by time, then kind, then number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub at: Instant,
    pub kind: TimerKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    /// A suspension ends.
    Resume(TaskId),
    /// An operation that raises several interrupts raises one of them; before it is complete, though it take no time.
    Partial(GpuId, Engine),
    /// The operation on an engine is complete.
    Engine(GpuId, Engine),
    /// An inter-processor interrupt arrives.
    Ipi(CpuId),
    /// A device that serves no job raises an interrupt.
    Arrival(DeviceId),
    /// A bandwidth server has a budget again.
    Replenish(TaskId),
    /// A graph starts.
    GraphStart(u32),
    /// A node of the graph need not wait any longer for its time.
    GraphTimeout(u32),
}

/// The ticks to come: tick number `count`, on all CPUs (aligned) or on `cpu` (staggered).
struct Ticks {
    next: Instant,
    count: u64,
    cpu: usize,
    /// Every how many ticks a scheduling quantum begins; `None`: the scheduler is event-driven.
    per_quantum: Option<u64>,
    /// The distance of two ticks of a CPU.
    period: u64,
    quantum: u64,
    quanta: Quanta,
}

impl<S: Sink> Simulator<S> {
    /// A simulator of `plan` at time 0 that writes to `sink`.
    pub fn new(plan: &Plan, sink: S) -> Self {
        let header = &plan.header;
        let tunables = fair::Parameters::of_linux(header.cpus);
        let clusters = plan
            .clusters
            .iter()
            .map(|plan| Cluster {
                policy: build(&header.scheduler, tunables, plan.ranking.clone(), plan.tasks.len(), plan.cpus.len()),
                dirty: false,
                lock_free: Instant::ZERO,
                batch: Vec::new(),
                batch_cpu: CpuId(0),
                waiting_halves: ProcessAware::new(),
            })
            .collect::<Vec<_>>();
        let mut cpus: Vec<Cpu> = (0..header.cpus).map(|_| Cpu::idle()).collect();
        for (cluster, plan) in plan.clusters.iter().enumerate() {
            for (local, cpu) in plan.cpus.iter().enumerate() {
                cpus[cpu.index()].cluster = Some((cluster, CpuId(local as u16)));
            }
        }
        let mut simulator = Simulator {
            now: Instant::ZERO,
            sink,
            tasks: Vec::with_capacity(plan.tasks.len()),
            ends: vec![Instant::NEVER; cpus.len()],
            touched: CpuSet::new(cpus.len()),
            ending: Vec::with_capacity(cpus.len()),
            cpus,
            releases: ReleaseQueue::with_capacity(plan.tasks.len()),
            timers: BinaryHeap::new(),
            ticks: Ticks::new(plan),
            dirty: Vec::with_capacity(clusters.len()),
            clusters,
            actions: Vec::new(),
            spare_batches: Vec::new(),
            handler: CpuId(0),
            devices: Devices::new(plan),
            locking: Locking::new(plan).map(Box::new),
            graphs: Graphs::new(plan),
            servers: Served::all(plan),
            plan: plan.clone(),
        };
        simulator.plan_first_releases();
        simulator.plan_first_arrivals();
        simulator.plan_graphs();
        simulator
    }

    /// The time reached.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Handles every event before `end`. May be called again with a later `end`; the records do not depend on how a
    /// simulation is cut into calls.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let at = self.next_instant();
            if at >= end {
                self.now = self.now.max(end);
                return;
            }
            self.now = at;
            self.end_segments();
            self.fire_timers();
            self.release_due();
            self.tick_due();
            self.settle();
        }
    }

    /// Ends the simulation at the time reached: jobs whose last instruction ends exactly now complete, nothing else
    /// happens any more. Returns the sink.
    pub fn finish(mut self) -> S {
        for cpu in self.take_ending() {
            if self.cpus[usize::from(cpu)].activity == Activity::Job {
                self.end_of_step(CpuId(cpu));
            }
        }
        self.sink.record(self.now, Event::End);
        self.sink
    }

    fn next_instant(&self) -> Instant {
        // Of numbers, not of `Instant`s: without a branch for each CPU.
        let mut at = Instant(self.ends.iter().fold(Instant::NEVER.0, |least, end| least.min(end.0)));
        if let Some(release) = self.releases.next() {
            at = at.min(release);
        }
        if let Some(Reverse(timer)) = self.timers.peek() {
            at = at.min(timer.at);
        }
        if let Some(ticks) = &self.ticks {
            at = at.min(ticks.next);
        }
        at
    }

    /// First the jobs whose step ends, by job; then the ends of scheduler and interrupt code, by CPU.
    fn end_segments(&mut self) {
        let mut ending = self.take_ending();
        for cpu in ending.drain(..).map(CpuId) {
            self.touch(cpu);
            match self.cpus[cpu.index()].activity {
                Activity::Job => self.end_of_step(cpu),
                Activity::Half | Activity::Daemon => self.end_of_half(cpu),
                Activity::Open | Activity::Scheduler(_) => self.end_of_work(cpu),
            }
        }
        self.ending = ending;
    }

    /// The CPUs whose segment ends now, in the order of [`Simulator::end_segments`]; to be put back into `ending`.
    fn take_ending(&mut self) -> Vec<u16> {
        let mut ending = std::mem::take(&mut self.ending);
        ending.extend((0..self.ends.len() as u16).filter(|&cpu| self.ends[usize::from(cpu)] == self.now));
        if ending.len() > 1 {
            ending.sort_by_key(|&cpu| {
                let state = &self.cpus[usize::from(cpu)];
                let job = state.process.filter(|_| state.activity == Activity::Job);
                (job.is_none(), job)
            });
        }
        ending
    }

    fn fire_timers(&mut self) {
        while let Some(&Reverse(timer)) = self.timers.peek() {
            if timer.at > self.now {
                return;
            }
            self.timers.pop();
            match timer.kind {
                TimerKind::Resume(task) => {
                    let cpu = self.plan.dedicated.unwrap_or(self.tasks[task.index()].timer_cpu);
                    self.raise(cpu, Interrupt::Resume(task));
                }
                TimerKind::Engine(gpu, engine) => self.engine_done(gpu, engine),
                TimerKind::Partial(gpu, engine) => self.partial_interrupt(gpu, engine),
                TimerKind::Ipi(cpu) => self.receive_ipi(cpu),
                TimerKind::Arrival(device) => self.device_arrival(device),
                TimerKind::Replenish(task) => self.replenish(task),
                TimerKind::GraphStart(graph) => self.start_graph(graph as usize),
                TimerKind::GraphTimeout(graph) => self.graph_timeout(graph as usize),
            }
        }
    }

    fn tick_due(&mut self) {
        while let Some(ticks) = self.ticks.as_mut().filter(|ticks| ticks.next == self.now) {
            let (cpus, quantum) = ticks.take(self.cpus.len());
            for cpu in cpus {
                if self.is_heeded(cpu) {
                    self.raise(CpuId(cpu as u16), Interrupt::Tick { quantum });
                }
            }
        }
    }

    /// Whether a tick on `cpu` could cost or change anything.
    fn is_heeded(&self, cpu: usize) -> bool {
        let heeds = |(cluster, _): (usize, CpuId)| self.clusters[cluster].policy.heeds_ticks();
        !self.plan.header.costs.tick.is_zero() || self.cpus[cpu].cluster.is_some_and(heeds)
    }

    /// Lets policies decide and CPUs act until nothing more happens at this instant.
    fn settle(&mut self) {
        loop {
            while let Some(cluster) = self.dirty.pop() {
                self.decide(cluster);
            }
            let Some(cpu) = self.touched.pop_first() else { return };
            self.act(cpu);
        }
    }

    /// `cpu` must act before time goes on.
    pub(crate) fn touch(&mut self, cpu: CpuId) {
        self.touched.insert(cpu);
    }

    /// The policy of `cluster` has news and must decide before CPUs act.
    pub(crate) fn mark_dirty(&mut self, cluster: usize) {
        if !self.clusters[cluster].dirty {
            self.clusters[cluster].dirty = true;
            self.dirty.push(cluster);
        }
    }

    fn decide(&mut self, cluster: usize) {
        self.clusters[cluster].dirty = false;
        let mut actions = std::mem::take(&mut self.actions);
        self.clusters[cluster].policy.decide(self.now, &mut actions);
        for Action::Link { cpu, task } in actions.drain(..) {
            let plan = &self.plan.clusters[cluster];
            let (cpu, task) = (plan.cpus[cpu.index()], task.map(|task| plan.tasks[task.index()]));
            let job = task.map(|task| self.job_id(task));
            self.sink.record(self.now, Event::Link { cpu, job });
            self.cpus[cpu.index()].link = task;
            self.deliver_link(cpu);
        }
        self.actions = actions;
    }

    /// Makes `cpu` notice that its link changed.
    fn deliver_link(&mut self, cpu: CpuId) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        if self.plan.header.scheduler.invocation == Invocation::QuantumDriven || state.link == state.process {
            return; // Noticed in the CPU's own tick handler; or nothing to enact.
        }
        let latency = self.plan.header.costs.ipi_latency;
        if state.handled_at == now || latency.is_zero() {
            state.reschedule = true;
            self.touch(cpu);
        } else {
            self.send_ipi(cpu, latency);
        }
    }

    /// Asks `cpu` to run its scheduler, unless that is under way already.
    pub(crate) fn send_ipi(&mut self, cpu: CpuId, latency: Nanos) {
        let now = self.now;
        let state = &mut self.cpus[cpu.index()];
        if matches!(state.activity, Activity::Scheduler(Work::Schedule | Work::PaiCheck)) || state.ipi_in_flight {
            // The scheduler running there, or the interrupt on its way, will see the new link.
        } else {
            state.ipi_in_flight = true;
            self.timers.push(Reverse(Timer { at: now + latency, kind: TimerKind::Ipi(cpu) }));
            self.sink.record(now, Event::Ipi { from: self.handler, to: cpu, latency });
        }
    }

    fn receive_ipi(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        state.ipi_in_flight = false;
        if std::mem::take(&mut state.wanted) || state.link != state.process {
            state.reschedule = true;
            self.touch(cpu);
        }
    }
}

impl Cpu {
    fn idle() -> Self {
        Cpu {
            cluster: None,
            activity: Activity::Job,
            process: None,
            link: None,
            vacated: None,
            dispatched: false,
            reschedule: false,
            pick: false,
            switched: false,
            rearm: false,
            boundary: false,
            ipi_in_flight: false,
            since: Instant::ZERO,
            handled_at: Instant::NEVER,
            interrupts: VecDeque::new(),
            halves: Box::default(),
            wanted: false,
        }
    }
}

impl Ticks {
    /// `None` if ticks would neither cost nor decide anything.
    fn new(plan: &Plan) -> Option<Ticks> {
        let scheduler = &plan.header.scheduler;
        let (tick, quantum) = (plan.tick.as_nanos(), plan.header.quantum.as_nanos());
        let quantum_driven = scheduler.invocation == Invocation::QuantumDriven;
        let (period, per_quantum) = match (plan.header.costs.tick.is_zero(), quantum_driven) {
            // Slices of the fair class end at ticks.
            _ if scheduler.rule == PriorityRule::Fair => (tick, Some(1)),
            (true, false) => return None,
            (true, true) => (quantum, Some(1)),
            (false, false) => (tick, None),
            (false, true) => (tick, Some(quantum / tick)),
        };
        Some(Ticks { next: Instant::ZERO, count: 0, cpu: 0, per_quantum, period, quantum, quanta: scheduler.quanta })
    }

    /// The CPUs whose tick is due and the scheduling quantum that begins there; moves on to the next.
    fn take(&mut self, cpus: usize) -> (std::ops::Range<usize>, Option<u64>) {
        let quantum =
            self.per_quantum.filter(|&every| self.count.is_multiple_of(every)).map(|every| self.count / every);
        let due = match self.quanta {
            Quanta::Aligned => 0..cpus,
            Quanta::Staggered => self.cpu..self.cpu + 1,
        };
        self.cpu = due.end % cpus;
        if self.cpu == 0 {
            self.count += 1;
        }
        // CPU c of m lags c/m of a quantum (of a tick where ticks are shorter, so that their order stays).
        let offset = self.quantum.min(self.period) as u128 * self.cpu as u128 / cpus as u128;
        self.next = Instant(self.count * self.period + offset as u64);
        (due, quantum)
    }
}
