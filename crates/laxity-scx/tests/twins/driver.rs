//! One cluster twice, in Rust and in C, with the same random events, and what both must say after each.

use laxity_model::{CpuId, Instant, TaskId};
use laxity_policy::cpu::{Action, CpuPolicy, Event};
use laxity_scx::native::{Core, Invocation, Refusal};
use laxity_testing::Random;

use crate::early::Early;
use crate::setup::{Cluster, Ranked};

/// A task's job, as a driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    Inactive,
    Ready,
    Suspended,
}

/// Kinds of events from here on happen to processes alone: in the kernel there is no decision after them.
const PROCESSES: u64 = 19;

/// What Rust and C said differently.
pub type Difference = String;

pub struct Twins {
    pub cluster: Cluster,
    rust: Box<dyn CpuPolicy>,
    pub c: Core,
    now: u64,
    quantum: u64,
    pub jobs: Vec<Job>,
    /// Their effective priorities.
    pub levels: Vec<(u64, u32)>,
    /// Arrivals that C knows of, in part, and Rust does not.
    pub early: Vec<Early>,
    /// The task that each active interrupt thread works for, and the thread that goes before each task.
    owners: Vec<Option<usize>>,
    pub first: Vec<Option<usize>>,
    pub links: Vec<Option<usize>>,
    processes: Vec<Option<usize>>,
    is_non_preemptive: Vec<bool>,
    /// CPUs whose quantum began since the last decision.
    ticked: u64,
    /// Whether each event has its decision, of one round unless it is a tick: as in the kernel.
    is_as_in_kernel: bool,
}

pub fn id(task: usize) -> TaskId {
    TaskId(task as u32)
}

pub fn must(outcome: Result<(), Refusal>) -> Result<(), Difference> {
    outcome.map_err(|refusal| format!("C refuses the event: {refusal}"))
}

impl Twins {
    pub fn new(cluster: Cluster, mutant: Option<u32>, is_as_in_kernel: bool) -> Twins {
        let (all, cpus) = (cluster.tasks + cluster.threads, cluster.cpus);
        let (rust, c) = (cluster.rust(), cluster.c(mutant).expect("a system of that size"));
        Twins {
            cluster,
            rust,
            c,
            now: 1,
            quantum: 0,
            jobs: vec![Job::Inactive; all],
            levels: vec![(0, 0); all],
            early: Vec::new(),
            owners: vec![None; all],
            first: vec![None; all],
            links: vec![None; cpus],
            processes: vec![None; cpus],
            is_non_preemptive: vec![false; all],
            ticked: 0,
            is_as_in_kernel,
        }
    }

    /// One random event, if it makes sense now, and mostly a decision; whether there was an event.
    pub fn step(&mut self, random: &mut Random) -> Result<bool, Difference> {
        if let Some(happened) = self.arrive_early(random)? {
            if happened {
                self.compare()?;
                self.decide()?;
            }
            return Ok(happened);
        }
        let (tasks, all) = (self.cluster.tasks, self.jobs.len());
        let cpu = random.below(self.links.len() as u64) as usize;
        let task = random.below(all as u64) as usize;
        let kind = random.below(25);
        let happened = match kind {
            0..5 => self.release(random.below(tasks as u64) as usize, cpu, random)?,
            5..8 => self.leave(cpu, false)?,
            8..10 => self.leave(cpu, true)?,
            10..12 => self.resume(random.below(tasks as u64) as usize, cpu)?,
            12..14 => self.prioritize(task, random)?,
            14..16 => self.wake(tasks + random.below(self.cluster.threads as u64) as usize, cpu, random)?,
            16 => self.leave_without_cpu(task, cpu)?,
            17..19 => self.tick(cpu, random)?,
            PROCESSES => self.section(cpu)?,
            _ => self.enact(cpu)?,
        };
        if happened {
            self.compare()?;
            if self.is_as_in_kernel && kind >= PROCESSES {
                self.decides_nothing()?;
            } else if self.is_as_in_kernel || random.below(4) > 0 {
                // Some events share an instant.
                self.decide()?;
            }
        }
        Ok(happened)
    }

    pub fn tell(&mut self, event: Event) {
        self.rust.handle(Instant(self.now), event);
    }

    fn release(&mut self, task: usize, cpu: usize, random: &mut Random) -> Result<bool, Difference> {
        if self.jobs[task] != Job::Inactive || self.is_early(task) {
            return Ok(false);
        }
        let major = self.drawn_major(random);
        self.jobs[task] = Job::Ready;
        self.levels[task] = self.cluster.level(task, major);
        self.tell(Event::Released { cpu: CpuId(cpu as u16), task: id(task), deadline: Instant(major) });
        must(self.c.release(task as u32, major)).map(|()| true)
    }

    /// By which a job is released.
    pub fn drawn_major(&self, random: &mut Random) -> u64 {
        match self.cluster.policy.ranked {
            Ranked::ByJob => random.below(20),
            _ => self.now + 1 + random.below(40),
        }
    }

    /// The job whose process is on `cpu` completes or suspends itself.
    fn leave(&mut self, cpu: usize, suspends: bool) -> Result<bool, Difference> {
        // Interrupt threads do not suspend themselves.
        let on = self.processes[cpu].filter(|&task| !suspends || task < self.cluster.tasks);
        let Some(task) = on else { return Ok(false) };
        self.processes[cpu] = None;
        self.is_non_preemptive[task] = false;
        self.gone(cpu, task, suspends).map(|()| true)
    }

    /// A job that has no CPU ends: live, Linux lets it run where a linked job waits for something unknown.
    fn leave_without_cpu(&mut self, task: usize, cpu: usize) -> Result<bool, Difference> {
        self.decide()?;
        let is_placed = self.processes.contains(&Some(task));
        if self.jobs[task] != Job::Ready || !self.goes_first(task) || is_placed {
            return Ok(false);
        }
        let linked = self.links.iter().position(|&link| link == Some(task));
        self.gone(linked.unwrap_or(cpu), task, false).map(|()| true)
    }

    fn gone(&mut self, cpu: usize, task: usize, suspends: bool) -> Result<(), Difference> {
        if self.links[cpu] == Some(task) {
            self.links[cpu] = None;
        }
        let (at, c) = (CpuId(cpu as u16), cpu as u32);
        if suspends {
            self.jobs[task] = Job::Suspended;
            self.tell(Event::Suspended { cpu: at, task: id(task) });
            return must(self.c.suspend(c, task as u32));
        }
        self.jobs[task] = Job::Inactive;
        if let Some(owner) = self.owners[task].take() {
            self.first[owner] = self.owners.iter().position(|&it| it == Some(owner));
        }
        self.tell(Event::Completed { cpu: at, task: id(task) });
        must(self.c.complete(c, task as u32))
    }

    fn resume(&mut self, task: usize, cpu: usize) -> Result<bool, Difference> {
        if self.jobs[task] != Job::Suspended || self.is_early(task) {
            return Ok(false);
        }
        self.jobs[task] = Job::Ready;
        self.tell(Event::Resumed { cpu: CpuId(cpu as u16), task: id(task) });
        must(self.c.resume(task as u32)).map(|()| true)
    }

    /// As of jobs, boosted jobs and jobs below all; ties with tasks and among themselves.
    pub fn level(&self, random: &mut Random) -> (u64, u32) {
        let base = if self.cluster.policy.ranked == Ranked::Edf { self.now } else { 0 };
        let major = match random.below(10) {
            0 => 0,
            1 => u64::MAX - 1,
            _ => base + random.below(30),
        };
        (major, random.below(self.jobs.len() as u64) as u32)
    }

    fn prioritize(&mut self, task: usize, random: &mut Random) -> Result<bool, Difference> {
        if self.jobs[task] == Job::Inactive {
            return Ok(false);
        }
        let level = self.level(random);
        self.levels[task] = level;
        self.tell(Event::Prioritized { task: id(task), level });
        if self.first[task].is_none() || random.below(2) == 0 {
            return must(self.c.prioritize(task as u32, level)).map(|()| true);
        }
        // With all that work for it.
        let threads: Vec<usize> = (0..self.owners.len()).filter(|&it| self.owners[it] == Some(task)).collect();
        for thread in threads {
            self.levels[thread] = level;
            self.tell(Event::Prioritized { task: id(thread), level });
        }
        must(self.c.lead(task as u32, level)).map(|()| true)
    }

    fn wake(&mut self, thread: usize, cpu: usize, random: &mut Random) -> Result<bool, Difference> {
        if self.jobs[thread] != Job::Inactive || self.is_early(thread) {
            return Ok(false);
        }
        // Quantum-driven scheduling has threads without owners only. Few owners, so that threads wait for one another.
        let has_owner = self.cluster.policy.invocation == Invocation::EventDriven && random.below(5) > 0;
        let owner = has_owner.then(|| random.below(3) as usize);
        let level = self.level(random);
        self.jobs[thread] = Job::Ready;
        self.levels[thread] = level;
        self.owners[thread] = owner;
        if let Some(owner) = owner {
            self.first[owner].get_or_insert(thread);
        }
        self.tell(Event::Woken { cpu: CpuId(cpu as u16), thread: id(thread), owner: owner.map(id), level });
        must(self.c.wake(thread as u32, owner.map(|owner| owner as u32), level)).map(|()| true)
    }

    /// Whether no other member of its entity goes before `task`.
    fn goes_first(&self, task: usize) -> bool {
        match self.owners[task] {
            Some(owner) => self.first[owner] == Some(task),
            None => self.first[task].is_none(),
        }
    }

    fn tick(&mut self, cpu: usize, random: &mut Random) -> Result<bool, Difference> {
        // A CPU's quanta begin at different instants.
        if self.ticked >> cpu & 1 == 1 {
            self.decide()?;
        }
        self.ticked |= 1 << cpu;
        self.quantum += random.below(2);
        self.tell(Event::Tick { cpu: CpuId(cpu as u16), quantum: self.quantum });
        must(self.c.tick(cpu as u32, self.quantum)).map(|()| true)
    }

    /// The process on `cpu` enters a non-preemptive section, or leaves it.
    fn section(&mut self, cpu: usize) -> Result<bool, Difference> {
        let Some(task) = self.processes[cpu] else { return Ok(false) };
        self.decide()?;
        self.is_non_preemptive[task] ^= true;
        if self.is_non_preemptive[task] {
            return must(self.c.enter(task as u32)).map(|()| true);
        }
        let is_due =
            self.c.exit(task as u32).map_err(|refusal| format!("C refuses the end of a section: {refusal}"))?;
        let expected = self.links[cpu] != Some(task);
        if is_due != expected {
            return Err(format!("a section of task {task} ends on cpu {cpu}: switch {expected}, but C says {is_due}"));
        }
        Ok(true)
    }

    /// The task that runs next on `cpu`: the linked one, unless the process there must not be preempted.
    fn next(&self, cpu: usize) -> Option<usize> {
        self.processes[cpu].filter(|&task| self.is_non_preemptive[task]).or(self.links[cpu])
    }

    /// Links are carried out only after the decision of this instant, and however late.
    fn enact(&mut self, cpu: usize) -> Result<bool, Difference> {
        self.decide()?;
        let next = self.next(cpu);
        if next == self.processes[cpu] {
            return Ok(false);
        }
        self.processes[cpu] = next;
        self.tell(Event::Switched { cpu: CpuId(cpu as u16), task: next.map(id) });
        must(self.c.switch(cpu as u32, next.map(|task| task as u32))).map(|()| true)
    }

    /// A decision would change no link.
    fn decides_nothing(&mut self) -> Result<(), Difference> {
        let mut actions = Vec::new();
        self.rust.decide(Instant(self.now), &mut actions);
        self.now += 1;
        if actions.is_empty() {
            Ok(())
        } else {
            Err(format!("Rust links after what happens to processes: {actions:?}"))
        }
    }

    fn decide(&mut self) -> Result<(), Difference> {
        let mut actions = Vec::new();
        self.rust.decide(Instant(self.now), &mut actions);
        let is_one_round = self.is_as_in_kernel && self.ticked == 0;
        let changed = if is_one_round { self.c.decide_after_event() } else { self.c.decide() };
        (self.now, self.ticked) = (self.now + 1, 0);
        let mut expected = 0;
        for Action::Link { cpu, task } in actions {
            self.links[cpu.index()] = task.map(TaskId::index);
            expected |= 1u64 << cpu.index();
        }
        if changed != expected {
            return Err(format!("links of CPUs {expected:#b} changed, but C says {changed:#b}"));
        }
        let kicks = self.c.kicks(changed);
        for cpu in 0..self.links.len() {
            let (c, next) = (self.c.next(cpu as u32), self.next(cpu));
            if c != next.map(|task| task as u32) {
                return Err(format!("cpu {cpu} runs {next:?} next, but C says {c:?}"));
            }
            let is_kicked = expected >> cpu & 1 == 1 && next != self.processes[cpu];
            if is_kicked != (kicks >> cpu & 1 == 1) {
                return Err(format!("cpu {cpu} is kicked: {is_kicked}, but C says {kicks:#b}"));
            }
        }
        self.compare()
    }

    /// The links, of every CPU.
    fn compare(&mut self) -> Result<(), Difference> {
        for cpu in 0..self.links.len() {
            let rust = self.rust.linked(CpuId(cpu as u16)).map(|job| job.task.0);
            let c = self.c.linked(cpu as u32);
            if rust != c {
                return Err(format!("cpu {cpu} is linked to {rust:?} in Rust and to {c:?} in C"));
            }
        }
        Ok(())
    }
}
