//! What event- and quantum-driven scheduling share: the ready queue, the processor mapping, and how a job is linked.

mod entities;
mod saved;

use laxity_model::{CpuId, Instant, TaskId};

use super::policy::{Action, Event};
use super::ready::ReadyQueue;
use super::{Priority, ProcessorMapping, Ranking};
use entities::EntityLinks;

/// Where a task's current job is, or an interrupt thread's current work.
///
/// ```text
///             Released             link                Completed
///   Inactive ----------> Ready ----------> Linked(cpu) ----------> Inactive
///              Woken     | ^ ^---displace----'   | Suspended
///                        | '------ Resumed ---- Suspended
///                        v ^
///                        Held    while another member of its entity goes first
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No job is pending.
    Inactive,
    /// In the ready queue, or about to be merged into it.
    Ready,
    /// Assigned to this CPU.
    Linked(u16),
    /// Waiting for something that is no CPU.
    Suspended,
    /// It could run, but an interrupt thread that works on behalf of the same job goes first.
    Held,
}

/// Where a task's current job is, for drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No job is pending.
    Inactive,
    /// It waits for a CPU.
    Ready,
    /// It is assigned to this CPU.
    Linked(CpuId),
    /// It waits for something that is no CPU.
    Suspended,
    /// An interrupt thread that works on behalf of the same job goes first.
    Held,
}

#[derive(Clone, Copy, Debug)]
struct TaskState {
    state: State,
    priority: Priority,
    /// The CPU its process occupies, linked there or not.
    scheduled_on: Option<u16>,
    /// The CPU its process last occupied.
    last_cpu: u16,
}

/// The state of one cluster's job scheduling.
#[derive(Clone, Debug)]
pub(super) struct Core<Q> {
    ranking: Ranking,
    ready: Q,
    /// Jobs that became ready since the last merge.
    arrived: Vec<Priority>,
    /// The CPU on whose behalf the next merge happens.
    arrived_on: usize,
    mapping: ProcessorMapping,
    tasks: Vec<TaskState>,
    /// By task; empty until a thread first works for one, so that most systems never look.
    entities: Vec<EntityLinks>,
    /// The task whose process occupies each CPU.
    scheduled: Vec<Option<TaskId>>,
    /// The link last announced for each CPU, and the CPUs touched since.
    announced: Vec<Option<TaskId>>,
    touched: Vec<u16>,
}

impl<Q: ReadyQueue> Core<Q> {
    pub fn new(ranking: Ranking, tasks: usize, cpus: usize) -> Self {
        let task = |index| TaskState {
            state: State::Inactive,
            priority: Priority::of(0, TaskId(index)),
            scheduled_on: None,
            last_cpu: 0,
        };
        Core {
            ranking,
            ready: Q::with_capacity(tasks, cpus),
            arrived: Vec::with_capacity(tasks),
            arrived_on: 0,
            mapping: ProcessorMapping::idle(cpus),
            tasks: (0..tasks as u32).map(task).collect(),
            entities: Vec::new(),
            scheduled: vec![None; cpus],
            announced: vec![None; cpus],
            touched: Vec::with_capacity(2 * cpus),
        }
    }

    /// Everything but ticks, which are the business of quantum-driven scheduling.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Released { cpu, task, deadline } => self.released(cpu, task, deadline),
            Event::Completed { cpu, task } => self.left(cpu, task, State::Inactive),
            Event::Suspended { cpu, task } => self.left(cpu, task, State::Suspended),
            Event::Resumed { cpu, task } => {
                assert_eq!(self.tasks[task.index()].state, State::Suspended, "only a suspended job resumes");
                self.make_ready(cpu, task);
            }
            Event::Switched { cpu, task } => self.switched(cpu, task),
            Event::Prioritized { task, level } => self.prioritize(task, level),
            Event::Woken { cpu, thread, owner, level } => self.wake(cpu, thread, owner, level),
            Event::Tick { .. } => {}
        }
    }

    fn released(&mut self, cpu: CpuId, task: TaskId, deadline: Instant) {
        assert_eq!(self.tasks[task.index()].state, State::Inactive, "jobs of a task are sequential");
        self.tasks[task.index()].priority = self.ranking.priority(task, deadline);
        self.make_ready(cpu, task);
    }

    fn make_ready(&mut self, cpu: CpuId, task: TaskId) {
        let is_held = self.occupant(task).is_some();
        let state = &mut self.tasks[task.index()];
        if is_held {
            state.state = State::Held;
            return;
        }
        state.state = State::Ready;
        self.arrived.push(state.priority);
        self.arrived_on = cpu.index();
    }

    fn prioritize(&mut self, task: TaskId, (major, tie): (u64, u32)) {
        let priority = Priority { major, tie, task };
        let state = &mut self.tasks[task.index()];
        state.priority = priority;
        match state.state {
            State::Ready => {
                self.withdraw(task);
                self.arrived.push(priority);
            }
            State::Linked(cpu) => {
                self.mapping.set(usize::from(cpu), Some(priority));
            }
            State::Inactive | State::Suspended | State::Held => {}
        }
    }

    /// The job of `task` completed or suspended on `cpu`; it may have lost its link there in the meantime. Live, Linux
    /// may run a job that has no link, or whose CPU is still another's, on a CPU that is idle although it is linked.
    fn left(&mut self, cpu: CpuId, task: TaskId, to: State) {
        let was_scheduled = self.tasks[task.index()].scheduled_on == Some(cpu.0);
        match self.tasks[task.index()].state {
            State::Linked(linked) => {
                assert_eq!(linked, cpu.0, "a linked job is never on another CPU");
                self.set_link(cpu.index(), None);
                self.announced[cpu.index()] = None;
            }
            State::Ready => self.withdraw(task),
            // Its process was not switched out yet when its interrupt thread took over.
            State::Held => {}
            State::Inactive | State::Suspended => panic!("only a ready or linked job can leave its CPU"),
        }
        let state = &mut self.tasks[task.index()];
        state.state = to;
        state.scheduled_on = None;
        state.last_cpu = cpu.0;
        if was_scheduled {
            self.scheduled[cpu.index()] = None;
        }
        self.retire(cpu, task);
    }

    fn withdraw(&mut self, task: TaskId) {
        if self.ready.remove(task).is_none() {
            let at = self.arrived.iter().position(|job| job.task == task);
            self.arrived.swap_remove(at.expect("a ready job is queued or about to be"));
        }
    }

    fn switched(&mut self, cpu: CpuId, task: Option<TaskId>) {
        if let Some(before) = self.scheduled[cpu.index()] {
            self.tasks[before.index()].scheduled_on = None;
            self.tasks[before.index()].last_cpu = cpu.0;
        }
        self.scheduled[cpu.index()] = task;
        if let Some(task) = task {
            let state = &mut self.tasks[task.index()];
            assert_eq!(state.scheduled_on, None, "a process occupies one CPU at a time");
            state.scheduled_on = Some(cpu.0);
            state.last_cpu = cpu.0;
        }
    }

    /// Moves the jobs that became ready into the ready queue.
    pub fn merge_arrived(&mut self) {
        if !self.arrived.is_empty() {
            self.ready.merge(self.arrived_on, &mut self.arrived);
        }
    }

    /// Links the most urgent ready jobs until no CPU has a less urgent one.
    pub fn assign_all(&mut self) {
        while let Some(top) = self.ready.peek() {
            let (cpu, lowest) = self.mapping.lowest();
            if lowest.is_some_and(|lowest| lowest < top) {
                return;
            }
            self.ready.pop();
            // Any idle CPU will do, and the job's last one still has its cache.
            let last = usize::from(self.tasks[top.task.index()].last_cpu);
            let at_last = lowest.is_none() && self.mapping.linked(last).is_none();
            self.link(top, if at_last { last } else { cpu });
        }
    }

    /// Links the most urgent ready job to `cpu` if that is idle or has a less urgent one.
    pub fn assign(&mut self, cpu: CpuId) {
        let Some(top) = self.ready.peek() else { return };
        if self.mapping.linked(cpu.index()).is_none_or(|linked| top < linked) {
            self.ready.pop();
            self.link(top, cpu.index());
        }
    }

    /// Links `job`, just taken from the ready queue, in place of what is linked to `cpu`.
    fn link(&mut self, job: Priority, cpu: usize) {
        let displaced = self.mapping.linked(cpu);
        match self.occupied_by(job.task).map(usize::from) {
            // Its process still occupies another CPU (a preemption on its way there, or a non-preemptive section):
            // it can only go on there, so what is linked there moves here instead. That one has not started yet.
            Some(occupied) if occupied != cpu => {
                let moved = self.mapping.linked(occupied);
                self.set_link(occupied, Some(job));
                self.set_link(cpu, moved);
            }
            _ => self.set_link(cpu, Some(job)),
        }
        if let Some(displaced) = displaced {
            self.tasks[displaced.task.index()].state = State::Ready;
            self.ready.insert(cpu, displaced);
        }
    }

    fn set_link(&mut self, cpu: usize, job: Option<Priority>) {
        if let Some(job) = job {
            self.tasks[job.task.index()].state = State::Linked(cpu as u16);
        }
        self.mapping.set(cpu, job);
        self.touched.push(cpu as u16);
    }

    pub fn lowest(&self) -> (CpuId, Option<Priority>) {
        let (cpu, priority) = self.mapping.lowest();
        (CpuId(cpu as u16), priority)
    }

    pub fn linked(&self, cpu: CpuId) -> Option<Priority> {
        self.mapping.linked(cpu.index())
    }

    /// Appends the links that differ from those announced before.
    pub fn announce(&mut self, actions: &mut Vec<Action>) {
        for at in 0..self.touched.len() {
            let cpu = self.touched[at];
            let task = self.mapping.linked(usize::from(cpu)).map(|job| job.task);
            if self.announced[usize::from(cpu)] != task {
                self.announced[usize::from(cpu)] = task;
                actions.push(Action::Link { cpu: CpuId(cpu), task });
            }
        }
        self.touched.clear();
    }

    pub fn assert_invariants(&self) {
        self.mapping.assert_invariants();
        let mut queued = self.arrived.len();
        for (index, task) in self.tasks.iter().enumerate() {
            let id = TaskId(index as u32);
            if let State::Linked(cpu) = task.state {
                assert_eq!(
                    self.mapping.linked(usize::from(cpu)),
                    Some(task.priority),
                    "links agree in both directions"
                );
                assert!(self.occupied_by(id).is_none_or(|on| on == cpu), "a job is linked where its process is");
                assert_eq!(self.occupant(id), None, "an owner is never linked beside its interrupt thread");
            }
            if let Some(occupant) = self.occupant(id) {
                assert_eq!(self.owner(occupant), Some(id), "entities agree in both directions");
                let state = self.tasks[occupant.index()].state;
                assert!(matches!(state, State::Ready | State::Linked(_)), "the member that goes first is not held");
                assert_ne!(task.state, State::Ready, "an owner is held back while its interrupt thread has work");
            }
            if let Some(cpu) = task.scheduled_on {
                assert_eq!(self.scheduled[usize::from(cpu)], Some(id), "processes agree in both directions");
            }
            if task.state == State::Ready && self.arrived.iter().all(|job| job.task != id) {
                queued += 1;
            }
        }
        assert_eq!(queued, self.ready.len() + self.arrived.len(), "every ready job is queued once");
        let linked = (0..self.mapping.cpus()).filter(|&cpu| self.mapping.linked(cpu).is_some()).count();
        let states = self.tasks.iter().filter(|task| matches!(task.state, State::Linked(_))).count();
        assert_eq!(linked, states, "every linked CPU has its own job");
    }
}
