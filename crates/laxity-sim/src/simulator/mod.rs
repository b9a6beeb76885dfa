//! The event loop: it owns the time, lets the parts of the simulator act, and carries out what they return.

mod best_effort;
mod bottom_halves;
mod dispatch;
mod interrupts;
mod jobs;
mod memory;
mod sharing;

use laxity_model::{CpuId, Instant, Invocation, JobId, Nanos, TaskId};
use laxity_plan::{NextRelease, Plan};
use laxity_policy::cpu::{self, Action, ReleaseQueue};
use laxity_policy::graph::LatestValues;
use laxity_policy::interrupt::Threads;
use laxity_trace::{Event, Sink};

use crate::best_effort::BestEffort;
use crate::bottom_halves::BottomHalf;
use crate::cluster::Cluster;
use crate::context::{Context, TimerKind};
use crate::cpu::{Activity, Cpu, Due, Interrupt};
use crate::cpu_set::CpuSet;
use crate::devices::{self, Devices};
use crate::ends::Ends;
use crate::graphs::{self, Graphs};
use crate::locks::Locks;
use crate::memory::Memory;
use crate::servers::Server;
use crate::task::TaskRun;
use crate::ticks::Ticks;

/// A simulation in progress.
pub struct Simulator<S> {
    cx: Context<S>,
    plan: Plan,
    tasks: Vec<TaskRun>,
    cpus: Vec<Cpu>,
    ends: Ends,
    clusters: Vec<Cluster>,
    releases: ReleaseQueue,
    ticks: Option<Ticks>,
    /// CPUs that must act at this instant.
    touched: CpuSet,
    /// Clusters whose policy must decide at this instant.
    undecided: Vec<usize>,
    actions: Vec<Action>,
    /// Empty batches for reuse: a release allocates nothing.
    spare_batches: Vec<Vec<TaskId>>,
    /// Scratch space: CPUs whose segment ends now.
    ending: Vec<CpuId>,
    /// Scratch space: jobs that tokens have made ready.
    ready: Vec<graphs::Ready>,
    /// The CPU whose handler ran last; sends the inter-processor interrupts.
    handler: CpuId,
    devices: Devices,
    /// The threads of the system, and what each has to do.
    threads: Threads<BottomHalf>,
    /// `None` where priorities are base priorities and nothing is locked.
    locks: Option<Box<Locks>>,
    graphs: Graphs,
    /// `None` without latest-value edges.
    latest: Option<Box<LatestValues>>,
    /// The bandwidth server of each task and thread; empty if there is none.
    servers: Vec<Option<Server>>,
    /// The scheduler of best-effort tasks; `None` where there are none.
    best_effort: Option<Box<BestEffort>>,
    /// Traffic and its regulators; `None` where traffic slows nothing down and no lock is held.
    memory: Option<Box<Memory>>,
}

impl<S: Sink> Simulator<S> {
    /// A simulator of `plan` at time 0 that writes to `sink`.
    pub fn new(plan: &Plan, sink: S) -> Self {
        let clusters = Cluster::all(plan);
        let cpus = Cpu::all(plan);
        let mut simulator = Simulator {
            cx: Context::new(sink),
            tasks: Vec::with_capacity(plan.tasks.len()),
            ends: Ends::new(cpus.len()),
            touched: CpuSet::new(cpus.len()),
            ending: Vec::with_capacity(cpus.len()),
            cpus,
            releases: ReleaseQueue::with_capacity(plan.tasks.len()),
            ticks: Ticks::new(plan),
            undecided: Vec::with_capacity(clusters.len()),
            clusters,
            actions: Vec::new(),
            spare_batches: Vec::new(),
            ready: Vec::new(),
            handler: CpuId(0),
            devices: Devices::new(plan),
            threads: Threads::new(plan.threads.of_device.clone(), plan.threads.callbacks.len()),
            locks: Locks::new(plan).map(Box::new),
            graphs: Graphs::new(plan),
            latest: (!plan.latest.is_empty()).then(|| Box::new(LatestValues::new(&plan.latest, plan.tasks.len()))),
            servers: Server::all(plan),
            best_effort: BestEffort::new(plan).map(Box::new),
            memory: Memory::new(plan).map(Box::new),
            plan: plan.clone(),
        };
        simulator.plan_first_releases();
        simulator.devices.start(&mut simulator.cx, plan);
        simulator.graphs.plan_starts(&mut simulator.cx);
        simulator.start_best_effort();
        simulator
    }

    /// The time reached.
    pub fn now(&self) -> Instant {
        self.cx.now
    }

    /// The sink.
    pub fn sink(&self) -> &S {
        &self.cx.sink
    }

    /// Handles every event before `end`. May be called again with a later `end`; the records do not depend on how a
    /// simulation is cut into calls.
    pub fn run_until(&mut self, end: Instant) {
        while !self.run_instants(end, u32::MAX) {}
    }

    /// As [`run_until`](Simulator::run_until), but handles the events of `most` instants at most. Answers whether it got to `end`.
    pub fn run_instants(&mut self, end: Instant, most: u32) -> bool {
        for _ in 0..most {
            let segments_end = self.ends.next();
            let at = self.next_instant(segments_end);
            if at >= end {
                self.cx.now = self.cx.now.max(end);
                return true;
            }
            self.cx.now = at;
            self.end_due(segments_end);
            self.release_due();
            self.tick_due();
            self.settle();
        }
        false
    }

    /// Ends the simulation at the time reached: jobs whose last instruction ends exactly now complete, nothing else
    /// happens any more. Returns the sink.
    pub fn finish(mut self) -> S {
        for cpu in self.take_ending() {
            if self.cpus[cpu.index()].activity == Activity::Job {
                self.end_of_step(cpu);
            }
        }
        self.cx.record(Event::End);
        self.cx.sink
    }

    /// When something happens next; `segments_end`: when the next segment ends.
    #[inline]
    fn next_instant(&self, segments_end: Instant) -> Instant {
        let mut at = segments_end;
        if let Some(release) = self.releases.next() {
            at = at.min(release);
        }
        at = at.min(self.cx.next_timer());
        if let Some(ticks) = &self.ticks {
            at = at.min(ticks.next);
        }
        at
    }

    /// What ends now, completions before timeouts. A timeout may end the step of a job that has only spun until then: that
    /// job, too, is complete before anything is released and before a quantum begins. `segments_end`: when the next segment
    /// ends.
    #[inline]
    fn end_due(&mut self, mut segments_end: Instant) {
        loop {
            if segments_end == self.cx.now {
                self.end_segments();
            }
            let Some(timer) = self.cx.take_due_timer() else { return };
            self.fire(timer);
            while let Some(timer) = self.cx.take_due_timer() {
                self.fire(timer);
            }
            segments_end = self.ends.next();
        }
    }

    /// First the jobs whose step ends, by job; then the ends of scheduler and interrupt code, by CPU.
    fn end_segments(&mut self) {
        let mut ending = self.take_ending();
        for cpu in ending.drain(..) {
            self.touch(cpu);
            match self.cpus[cpu.index()].activity {
                Activity::Job => self.end_of_step(cpu),
                Activity::BottomHalf(place) => self.end_of_bottom_half(cpu, place),
                Activity::Open | Activity::Scheduler(_) => self.end_of_work(cpu),
            }
        }
        self.ending = ending;
    }

    /// The CPUs whose segment ends now, in the order of [`Simulator::end_segments`]; to be put back into `ending`.
    fn take_ending(&mut self) -> Vec<CpuId> {
        let mut ending = std::mem::take(&mut self.ending);
        self.ends.all_at(self.cx.now, &mut ending);
        if ending.len() > 1 {
            ending.sort_by_key(|&cpu| {
                let state = &self.cpus[cpu.index()];
                let job = state.process.task().filter(|_| state.activity == Activity::Job);
                (job.is_none(), job)
            });
        }
        ending
    }

    fn fire(&mut self, timer: TimerKind) {
        match timer {
            TimerKind::Resume(task) => {
                let cpu = self.plan.dedicated.unwrap_or(self.tasks[task.index()].timer_cpu);
                self.raise(cpu, Interrupt::Resume(task));
            }
            TimerKind::Engine(gpu, engine) => {
                if let Some(effect) = self.devices.end_operation(&mut self.cx, &self.plan, gpu, engine) {
                    self.follow_device(effect);
                }
            }
            TimerKind::Partial(gpu, engine) => {
                if let Some(effect) = self.devices.partial_interrupt(&mut self.cx, &self.plan, gpu, engine) {
                    self.follow_device(effect);
                }
            }
            TimerKind::Arrival(device) => {
                let effect = self.devices.arrive(&mut self.cx, &self.plan, device);
                self.follow_device(effect);
            }
            TimerKind::Ipi(cpu) => {
                if self.cpus[cpu.index()].receive_ipi() {
                    self.touch(cpu);
                }
            }
            TimerKind::Replenish(task) => self.replenish(task),
            TimerKind::Regulator(cpu) => self.regulator_timeout(cpu),
            TimerKind::GraphStart(graph) => {
                self.with_tokens(None, |graphs, cx, ready| graphs.start(cx, graph as usize, ready));
            }
            TimerKind::GraphTimeout(graph) => {
                self.with_tokens(None, |graphs, cx, ready| graphs.timeout(cx, graph as usize, ready));
            }
        }
    }

    fn follow_device(&mut self, effect: devices::Effect) {
        match effect {
            devices::Effect::Interrupt { cpu, top_half } => self.raise(cpu, Interrupt::TopHalf(top_half)),
            devices::Effect::Complete(job) => {
                let cpu = self.tasks[job.task.index()].timer_cpu;
                self.operation_done(cpu, job);
            }
        }
    }

    fn tick_due(&mut self) {
        let now = self.cx.now;
        while let Some(ticks) = self.ticks.as_mut().filter(|ticks| ticks.next == now) {
            let (cpus, quantum) = ticks.take();
            for cpu in cpus {
                if self.tick_matters(cpu) {
                    self.raise(CpuId(cpu as u16), Interrupt::Tick { quantum });
                }
            }
        }
    }

    /// Whether a tick on `cpu` could cost or change anything.
    fn tick_matters(&self, cpu: usize) -> bool {
        let heeds = |(cluster, _): (usize, CpuId)| self.clusters[cluster].policy.heeds_ticks();
        self.best_effort.as_ref().is_some_and(|best_effort| best_effort.heeds_ticks())
            || !self.plan.header.costs.tick.is_zero()
            || self.cpus[cpu].cluster.is_some_and(heeds)
    }

    /// Lets policies decide and CPUs act until nothing more happens at this instant.
    fn settle(&mut self) {
        loop {
            while let Some(cluster) = self.undecided.pop() {
                self.decide(cluster);
            }
            if self.best_effort.as_ref().is_some_and(|best_effort| best_effort.must_decide) {
                self.decide_best_effort();
            }
            match self.touched.pop_first() {
                Some(cpu) => self.act(cpu),
                None if self.memory.is_some() && self.follow_traffic() => {}
                None => return,
            }
        }
    }

    /// `cpu` must act before time goes on.
    fn touch(&mut self, cpu: CpuId) {
        self.touched.insert(cpu);
    }

    /// Hands `event` to the policy of `cluster`, which must decide before CPUs act.
    fn notify_policy(&mut self, cluster: usize, event: cpu::Event) {
        let state = &mut self.clusters[cluster];
        state.policy.handle(self.cx.now, event);
        if !state.must_decide {
            state.must_decide = true;
            self.undecided.push(cluster);
        }
    }

    fn decide(&mut self, cluster: usize) {
        self.clusters[cluster].must_decide = false;
        let mut actions = std::mem::take(&mut self.actions);
        self.clusters[cluster].policy.decide(self.cx.now, &mut actions);
        for Action::Link { cpu, task } in actions.drain(..) {
            let plan = &self.plan.clusters[cluster];
            let (cpu, task) = (plan.cpus[cpu.index()], task.map(|task| plan.tasks[task.index()]));
            if let Some(best_effort) = &mut self.best_effort {
                best_effort.link_above(self.cx.now, cpu, task);
                continue;
            }
            let job = task.map(|task| self.job_id(task));
            self.cx.record(Event::Link { cpu, job });
            self.cpus[cpu.index()].link = task;
            self.deliver_link(cpu);
        }
        self.actions = actions;
    }

    /// Makes `cpu` notice that its link changed.
    fn deliver_link(&mut self, cpu: CpuId) {
        let state = &mut self.cpus[cpu.index()];
        if self.plan.header.scheduler.invocation == Invocation::QuantumDriven || !state.link_is_new() {
            return; // Noticed in the CPU's own tick handler; or nothing to enact.
        }
        let latency = self.plan.header.costs.ipi_latency;
        if state.handled_at == self.cx.now || latency.is_zero() {
            state.due.add(Due::SCHEDULE);
            self.touch(cpu);
        } else {
            self.send_ipi(cpu, latency);
        }
    }

    /// Asks `cpu` to run its scheduler, unless that is under way already.
    fn send_ipi(&mut self, cpu: CpuId, latency: Nanos) {
        let state = &mut self.cpus[cpu.index()];
        if !state.will_schedule() {
            state.due.add(Due::IPI);
            self.cx.set_timer(self.cx.now + latency, TimerKind::Ipi(cpu));
            self.cx.record(Event::Ipi { from: self.handler, to: cpu, latency });
        }
    }

    fn plan_first_releases(&mut self) {
        for (index, plan) in self.plan.tasks.iter().enumerate() {
            let task = TaskId(index as u32);
            // Of a best-effort task the cluster means nothing, and neither does the CPU of its timer.
            let cpus = &self.plan.clusters[usize::from(plan.cluster)].cpus;
            let timer_cpu = cpus[plan.local.index() % cpus.len()];
            let next = NextRelease::first(&plan.releases, self.plan.draws(task));
            self.tasks.push(TaskRun::new(next, timer_cpu));
            if plan.released_by.has_timer() {
                self.releases.set(task, next.at, timer_cpu.index());
            }
        }
    }

    /// The current job of `task`.
    fn job_id(&self, task: TaskId) -> JobId {
        JobId { task, index: self.tasks[task.index()].job }
    }

    /// The cluster of `task` and its number there.
    fn local(&self, task: TaskId) -> (usize, TaskId) {
        let plan = &self.plan.tasks[task.index()];
        (usize::from(plan.cluster), plan.local)
    }

    /// The number of `cpu` in `cluster`; a CPU outside (dedicated to interrupts) acts through the first.
    fn local_cpu(&self, cpu: CpuId, cluster: usize) -> CpuId {
        match self.cpus[cpu.index()].cluster {
            Some((own, local)) if own == cluster => local,
            _ => CpuId(0),
        }
    }
}
