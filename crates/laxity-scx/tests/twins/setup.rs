//! Which system is scheduled: policy, clusters, tasks.

use laxity_model::{Invocation, Nanos, PriorityRule, Quanta, ReadyQueueKind, Scheduler, Task, TaskId};
use laxity_policy::cpu::{CpuPolicy, Ranking, build, fair};
use laxity_scx::native::{Core, Queue, Refusal, Rule};
use laxity_testing::Random;

/// How jobs rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranked {
    Edf,
    RateMonotonic,
    DeadlineMonotonic,
    Given,
    /// Job-level priorities: each release comes with any number.
    ByJob,
}

/// How CPUs share jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    Globally,
    InClusters,
    Not,
}

/// A policy: as users name it, G-EDF event-driven, say.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    pub ranked: Ranked,
    pub shared: Shared,
    pub invocation: laxity_scx::native::Invocation,
}

/// Every policy.
pub fn policies() -> Vec<Policy> {
    use laxity_scx::native::Invocation::{Aligned, EventDriven, Staggered};
    let mut all = Vec::new();
    for ranked in [Ranked::Edf, Ranked::RateMonotonic, Ranked::DeadlineMonotonic, Ranked::Given, Ranked::ByJob] {
        for shared in [Shared::Globally, Shared::InClusters, Shared::Not] {
            for invocation in [EventDriven, Aligned, Staggered] {
                all.push(Policy { ranked, shared, invocation });
            }
        }
    }
    all
}

/// One cluster of a system.
pub struct Cluster {
    pub policy: Policy,
    pub cpus: usize,
    /// Tasks that have jobs; interrupt threads are numbered after them.
    pub tasks: usize,
    pub threads: usize,
    /// In C; in Rust any.
    pub queue: Queue,
    rust: Ranking,
    scheduler: Scheduler,
}

/// A system of random size: its clusters, over whose tasks ties are broken as over one list.
pub fn clusters(policy: Policy, random: &mut Random) -> Vec<Cluster> {
    let (count, cpus) = match (policy.shared, random.below(20)) {
        (Shared::Globally, 0) => (1, 64),
        (Shared::Globally, _) => (1, 1 + random.below(5) as usize),
        (Shared::InClusters, 0) => (3, 9),
        (Shared::InClusters, _) => (2, 1 + random.below(3) as usize),
        (Shared::Not, _) => (1 + random.below(4) as usize, 1),
    };
    let (tasks, threads) = if random.below(20) == 0 { (150 + random.below(100) as usize, 6) } else { (9, 3) };
    // Few periods and deadlines, so that there are ties; the lists of the clusters are interleaved, some backwards.
    let all: Vec<Task> = (0..(tasks + threads) * count)
        .map(|_| Task {
            deadline: Nanos(1 + random.below(6)),
            priority: (random.below(4) > 0).then(|| random.below(7) as u32),
            ..Task::periodic("t", Nanos(1), Nanos(6 + random.below(6)))
        })
        .collect();
    let rule = match policy.ranked {
        Ranked::Edf | Ranked::ByJob => PriorityRule::Edf,
        Ranked::RateMonotonic => PriorityRule::RateMonotonic,
        Ranked::DeadlineMonotonic => PriorityRule::DeadlineMonotonic,
        Ranked::Given => PriorityRule::Given,
    };
    let of_all = Ranking::new(rule, &all);
    let queues = [ReadyQueueKind::Coarse, ReadyQueueKind::Fine, ReadyQueueKind::Hierarchical];
    let (invocation, quanta) = match policy.invocation {
        laxity_scx::native::Invocation::EventDriven => (Invocation::EventDriven, Quanta::Aligned),
        laxity_scx::native::Invocation::Aligned => (Invocation::QuantumDriven, Quanta::Aligned),
        laxity_scx::native::Invocation::Staggered => (Invocation::QuantumDriven, Quanta::Staggered),
    };
    let ready_queue = queues[random.below(3) as usize];
    let queue = [Queue::Coarse, Queue::Fine, Queue::Hierarchical][random.below(3) as usize];
    let scheduler = Scheduler { rule, invocation, quanta, ready_queue, ..Scheduler::GLOBAL_EDF };
    (0..count)
        .map(|cluster| {
            let mut members: Vec<TaskId> =
                (0..tasks + threads).map(|task| TaskId((task * count + cluster) as u32)).collect();
            if random.below(2) == 0 {
                members.reverse();
            }
            Cluster { policy, cpus, tasks, threads, queue, rust: of_all.among(&members), scheduler }
        })
        .collect()
}

impl Cluster {
    /// The policy in Rust.
    pub fn rust(&self) -> Box<dyn CpuPolicy> {
        let tunables = fair::Parameters::of_linux(self.cpus);
        build(&self.scheduler, tunables, self.rust.clone(), self.tasks + self.threads, self.cpus)
    }

    /// The effective priority with which a job of `task` is released by `major`.
    pub fn level(&self, task: usize, major: u64) -> (u64, u32) {
        let task = TaskId(task as u32);
        let tie = self.rust.priority(task, laxity_model::Instant(1)).tie;
        (self.rust.fixed_level(task).unwrap_or(major), tie)
    }

    /// The policy in C, with a rule broken if `mutant` has its number; `None`: the build without that choice.
    pub fn c(&self, mutant: Option<u32>) -> Result<Core, Refusal> {
        let (tasks, cpus) = ((self.tasks + self.threads) as u32, self.cpus as u32);
        let levels: Option<Vec<u64>> = (0..tasks).map(|task| self.rust.fixed_level(TaskId(task))).collect();
        let rule = if levels.is_some() { Rule::ByTask } else { Rule::ByJob };
        let invocation = self.policy.invocation;
        let mut core = match mutant {
            Some(mutant) => Core::broken(tasks, cpus, rule, invocation, self.queue, mutant)?,
            None => Core::queued(tasks, cpus, rule, invocation, self.queue)?,
        };
        for task in 0..tasks {
            let level = levels.as_ref().map_or(1, |levels| levels[task as usize]);
            let position = self.rust.priority(TaskId(task), laxity_model::Instant(1)).tie;
            core.set_rank(task, level, position)?;
        }
        Ok(core)
    }
}
