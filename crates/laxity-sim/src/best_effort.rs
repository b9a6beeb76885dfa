//! Best-effort tasks: their scheduler, below those of real-time jobs.

use laxity_model::{CpuId, Instant, Nanos, TaskId};
use laxity_plan::Plan;
use laxity_policy::cpu::fair::Fair;
use laxity_policy::cpu::{Action, CpuPolicy, Event};

/// The fair class on all CPUs that run jobs.
pub(crate) struct BestEffort {
    /// Decides which task runs where no real-time job does.
    policy: Fair,
    /// Whether the policy has news, or a link above it has changed.
    pub must_decide: bool,
    first_task: usize,
    tasks: usize,
    /// Its CPUs, by their number in the policy.
    cpus: Vec<CpuId>,
    /// By CPU.
    places: Vec<Place>,
    /// CPUs whose link may have changed.
    changed: Vec<CpuId>,
    actions: Vec<Action>,
}

/// What a CPU is to run, and for whose sake it stands still.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Its number in the policy.
    local: Option<CpuId>,
    /// The real-time job that is linked to it.
    above: Option<TaskId>,
    /// The best-effort task that is.
    own: Option<TaskId>,
    /// The one of the two that counts, as announced.
    announced: Option<TaskId>,
    /// The task because of which it is throttled.
    throttled: Option<TaskId>,
}

impl BestEffort {
    /// `None` without best-effort tasks.
    pub fn new(plan: &Plan) -> Option<BestEffort> {
        let plan_of = &plan.best_effort;
        if plan_of.is_empty() {
            return None;
        }
        let mut places = vec![Place::default(); plan.header.cpus];
        for (local, cpu) in plan_of.cpus.iter().enumerate() {
            places[cpu.index()].local = Some(CpuId(local as u16));
        }
        Some(BestEffort {
            policy: Fair::with_threads(plan_of.parameters, plan_of.punishment, &plan_of.threads, plan_of.cpus.len()),
            must_decide: false,
            first_task: plan_of.first_task,
            tasks: plan_of.threads.len(),
            cpus: plan_of.cpus.clone(),
            places,
            changed: Vec::new(),
            actions: Vec::new(),
        })
    }

    /// Its tasks.
    pub fn all(&self) -> impl Iterator<Item = TaskId> + use<> {
        (self.first_task..self.first_task + self.tasks).map(|task| TaskId(task as u32))
    }

    /// Whether `task` is one of them.
    pub fn has(&self, task: TaskId) -> bool {
        (self.first_task..self.first_task + self.tasks).contains(&task.index())
    }

    /// The first of its CPUs.
    pub fn first_cpu(&self) -> CpuId {
        self.cpus[0]
    }

    /// The virtual time of `task`, in nanoseconds of a thread of nice value 0, counted from the clock of its CPU.
    pub fn virtual_time(&self, task: TaskId) -> i64 {
        self.policy.entity(self.local(task)).virtual_time()
    }

    /// Whether a tick could change anything now.
    pub fn heeds_ticks(&self) -> bool {
        self.policy.heeds_ticks()
    }

    /// The job of `task` is ready.
    pub fn start(&mut self, now: Instant, task: TaskId) {
        let event = Event::Released { cpu: CpuId(0), task: self.local(task), deadline: Instant::NEVER };
        self.handle(now, event);
    }

    /// The job of `task`, on `cpu`, is complete.
    pub fn complete(&mut self, now: Instant, cpu: CpuId, task: TaskId) {
        let Some(local) = self.places[cpu.index()].local else { return };
        let task = self.local(task);
        self.handle(now, Event::Completed { cpu: local, task });
    }

    /// A tick on `cpu`.
    pub fn tick(&mut self, now: Instant, cpu: CpuId) {
        if let Some(cpu) = self.places[cpu.index()].local {
            self.handle(now, Event::Tick { cpu, quantum: 0 });
        }
    }

    /// The process of `to`, of whatever kind, is on `cpu` now instead of that of `from`.
    pub fn switch(&mut self, now: Instant, cpu: CpuId, from: Option<TaskId>, to: Option<TaskId>) {
        let [from, to] = [from, to].map(|task| task.filter(|&task| self.has(task)));
        if let (Some(cpu), true) = (self.places[cpu.index()].local, from != to) {
            let task = to.map(|task| self.local(task));
            self.handle(now, Event::Switched { cpu, task });
        }
    }

    /// The real-time job of `task`, or none, is linked to `cpu` from now on.
    pub fn link_above(&mut self, now: Instant, cpu: CpuId, task: Option<TaskId>) {
        let place = &mut self.places[cpu.index()];
        let before = std::mem::replace(&mut place.above, task);
        self.changed.push(cpu);
        self.must_decide = true;
        let Some(local) = place.local else { return };
        match (before, task) {
            (None, Some(_)) => self.policy.take(now, local),
            (Some(_), None) => self.policy.give_back(now, local),
            _ => {}
        }
    }

    /// The job of `task`, of whatever kind, needs `cpu` no longer.
    pub fn vacate(&mut self, now: Instant, cpu: CpuId, task: TaskId) {
        let place = &mut self.places[cpu.index()];
        if place.announced == Some(task) {
            place.announced = None;
        }
        if place.own == Some(task) {
            place.own = None;
        }
        if place.above == Some(task) {
            self.link_above(now, cpu, None);
        }
        self.changed.push(cpu);
        self.must_decide = true;
    }

    /// `cpu` is throttled from now on; answers because of which task.
    pub fn throttle(&mut self, now: Instant, cpu: CpuId) -> Option<TaskId> {
        let local = self.places[cpu.index()].local?;
        let task = self.policy.throttle(now, local).map(|task| self.global(task));
        self.places[cpu.index()].throttled = task;
        self.must_decide = true;
        task
    }

    /// `cpu` is throttled no longer, as it was for `lost`; answers because of which task it was.
    pub fn unthrottle(&mut self, now: Instant, cpu: CpuId, lost: Nanos) -> Option<TaskId> {
        let local = self.places[cpu.index()].local?;
        let task = self.places[cpu.index()].throttled.take();
        self.policy.unthrottle(now, local, task.map(|task| self.local(task)), lost);
        self.must_decide = true;
        task
    }

    /// Appends the links that changed, of best-effort tasks or of real-time jobs above them, by CPU.
    pub fn decide(&mut self, now: Instant, links: &mut Vec<(CpuId, Option<TaskId>)>) {
        self.must_decide = false;
        self.policy.decide(now, &mut self.actions);
        for Action::Link { cpu, task } in std::mem::take(&mut self.actions) {
            let cpu = self.cpus[cpu.index()];
            self.places[cpu.index()].own = task.map(|task| self.global(task));
            self.changed.push(cpu);
        }
        self.changed.sort_unstable();
        self.changed.dedup();
        for cpu in self.changed.drain(..) {
            let place = &mut self.places[cpu.index()];
            let link = place.above.or(place.own);
            if std::mem::replace(&mut place.announced, link) != link {
                links.push((cpu, link));
            }
        }
    }

    fn handle(&mut self, now: Instant, event: Event) {
        self.policy.handle(now, event);
        self.must_decide = true;
    }

    fn local(&self, task: TaskId) -> TaskId {
        TaskId((task.index() - self.first_task) as u32)
    }

    fn global(&self, task: TaskId) -> TaskId {
        TaskId((task.index() + self.first_task) as u32)
    }
}
