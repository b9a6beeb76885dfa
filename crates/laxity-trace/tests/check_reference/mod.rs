//! A scheduler simple enough to be believed: it looks at every unit of time, knows no overheads, and writes a trace.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod hand;
pub mod strange;

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadCosts, PriorityRule, Quanta, Scheduler, TaskId};
use laxity_model::{Invocation, Scope};
use laxity_trace::{Event, Origin, Record, TaskInfo, TaskKind, TraceHeader};
use proptest::prelude::*;

/// One unit of the reference scheduler's time.
pub const UNIT: Nanos = Nanos::from_millis(1);

/// `units` units after the start.
pub fn at(units: u64) -> Instant {
    Instant(units * UNIT.0)
}

/// A task, in units of time.
#[derive(Clone, Debug)]
pub struct Task {
    pub wcet: u64,
    pub period: u64,
    pub deadline: u64,
    pub phase: u64,
    pub cluster: usize,
    /// What its jobs need, in turn.
    pub costs: Vec<u64>,
}

/// What the reference scheduler schedules.
#[derive(Clone, Debug)]
pub struct Setup {
    pub tasks: Vec<Task>,
    /// CPUs of each cluster.
    pub clusters: Vec<u16>,
    pub rule: PriorityRule,
    /// Units in a quantum; `None`: event-driven.
    pub quantum: Option<u64>,
    pub quanta: Quanta,
    pub horizon: u64,
}

impl Setup {
    /// Implicit-deadline tasks `(wcet, period)` under event-driven EDF on one cluster.
    pub fn edf(cpus: u16, tasks: &[(u64, u64)], horizon: u64) -> Self {
        let task = |&(wcet, period)| Task { wcet, period, deadline: period, phase: 0, cluster: 0, costs: vec![wcet] };
        Setup {
            tasks: tasks.iter().map(task).collect(),
            clusters: vec![cpus],
            rule: PriorityRule::Edf,
            quantum: None,
            quanta: Quanta::Aligned,
            horizon,
        }
    }

    pub fn cpus(&self) -> u16 {
        self.clusters.iter().sum()
    }

    pub fn cost(&self, job: JobId) -> Nanos {
        Nanos(self.cost_units(job) * UNIT.0)
    }

    fn cost_units(&self, job: JobId) -> u64 {
        let costs = &self.tasks[job.task.index()].costs;
        costs[job.index as usize % costs.len()]
    }

    pub fn header(&self) -> TraceHeader {
        let mut first = 0;
        let cluster = |&cpus: &u16| {
            first += cpus;
            (first - cpus..first).map(CpuId).collect()
        };
        let clusters = self.clusters.iter().map(cluster).collect();
        TraceHeader {
            origin: Origin::Simulated,
            workload: "reference".to_owned(),
            cpus: usize::from(self.cpus()),
            clusters,
            scheduler: Scheduler {
                rule: self.rule,
                scope: Scope::Clustered,
                invocation: if self.quantum.is_some() { Invocation::QuantumDriven } else { Invocation::EventDriven },
                quanta: self.quanta,
                ..Scheduler::GLOBAL_EDF
            },
            quantum: Nanos(self.quantum.unwrap_or(1) * UNIT.0),
            costs: OverheadCosts::default(),
            seed: 0,
            tasks: self.tasks.iter().enumerate().map(|(index, task)| self.info(index, task)).collect(),
            ..TraceHeader::new(Origin::Simulated, "reference", 1, Scheduler::GLOBAL_EDF)
        }
    }

    fn info(&self, index: usize, task: &Task) -> TaskInfo {
        // Ranks in reverse of the task order, so that fixed priorities differ from the tie order.
        let rank = if self.rule == PriorityRule::Edf { index } else { self.tasks.len() - 1 - index };
        TaskInfo {
            name: format!("task{index}"),
            period: Nanos(task.period * UNIT.0),
            deadline: Nanos(task.deadline * UNIT.0),
            wcet: Nanos(task.wcet * UNIT.0),
            cluster: task.cluster,
            rank: rank as u32,
            kind: TaskKind::Task,
        }
    }

    /// The trace.
    pub fn schedule(&self) -> Vec<Record> {
        let mut run = Run {
            setup: self,
            header: self.header(),
            released: vec![0; self.tasks.len()],
            current: vec![None; self.tasks.len()],
            completed: vec![0; self.tasks.len()],
            running: vec![None; usize::from(self.cpus())],
            records: Vec::new(),
        };
        for now in 0..self.horizon {
            run.step(now);
        }
        run.write(self.horizon, Event::End);
        run.records
    }
}

struct Run<'a> {
    setup: &'a Setup,
    header: TraceHeader,
    released: Vec<u32>,
    completed: Vec<u32>,
    /// Remaining cost of each task's ready job.
    current: Vec<Option<u64>>,
    /// The task on each CPU.
    running: Vec<Option<usize>>,
    records: Vec<Record>,
}

impl Run<'_> {
    fn write(&mut self, now: u64, event: Event) {
        self.records.push(Record { at: at(now), event });
    }

    fn job(&self, task: usize) -> JobId {
        JobId { task: TaskId(task as u32), index: self.completed[task] }
    }

    fn step(&mut self, now: u64) {
        for cpu in 0..self.running.len() {
            if let Some(task) = self.running[cpu].filter(|&task| self.current[task] == Some(0)) {
                let (id, job) = (CpuId(cpu as u16), self.job(task));
                self.write(now, Event::Complete { cpu: id, job });
                self.write(now, Event::Link { cpu: id, job: None });
                self.running[cpu] = None;
                self.current[task] = None;
                self.completed[task] += 1;
            }
        }
        for task in 0..self.setup.tasks.len() {
            self.release(now, task);
        }
        for cluster in 0..self.header.clusters.len() {
            self.assign(now, cluster);
        }
        for task in self.running.iter().flatten() {
            *self.current[*task].as_mut().expect("a running job has work left") -= 1;
        }
    }

    fn release(&mut self, now: u64, task: usize) {
        let info = &self.setup.tasks[task];
        if now >= info.phase && (now - info.phase).is_multiple_of(info.period) {
            let job = JobId { task: TaskId(task as u32), index: self.released[task] };
            self.released[task] += 1;
            self.write(now, Event::Release { job, deadline: at(now + info.deadline) });
        }
        if self.current[task].is_none() && self.completed[task] < self.released[task] {
            let job = self.job(task);
            self.current[task] = Some(self.setup.cost_units(job));
            self.write(now, Event::Ready { job, cpu: CpuId(0) });
        }
    }

    fn urgency(&self, task: usize) -> (u64, usize) {
        let info = &self.setup.tasks[task];
        match self.setup.rule {
            PriorityRule::Edf => (info.phase + u64::from(self.completed[task]) * info.period + info.deadline, task),
            _ => (u64::from(self.header.tasks[task].rank), task),
        }
    }

    fn assign(&mut self, now: u64, cluster: usize) {
        let cpus: Vec<usize> = self.header.clusters[cluster].iter().map(|cpu| cpu.index()).collect();
        match (self.setup.quantum, self.setup.quanta) {
            (Some(quantum), Quanta::Aligned) if !now.is_multiple_of(quantum) => {}
            (None, _) | (Some(_), Quanta::Aligned) => self.assign_to(now, cluster, &cpus),
            (Some(quantum), Quanta::Staggered) => {
                for cpu in cpus {
                    // The tests choose quanta that the number of CPUs divides.
                    if now % quantum == quantum * cpu as u64 / u64::from(self.setup.cpus()) {
                        self.assign_to(now, cluster, &[cpu]);
                    }
                }
            }
        }
    }

    /// The most urgent of the cluster's ready jobs that no other CPU has get `cpus`.
    fn assign_to(&mut self, now: u64, cluster: usize, cpus: &[usize]) {
        let elsewhere =
            |task: usize| (0..self.running.len()).any(|cpu| !cpus.contains(&cpu) && self.running[cpu] == Some(task));
        let mut chosen: Vec<usize> = (0..self.setup.tasks.len())
            .filter(|&task| {
                self.setup.tasks[task].cluster == cluster && self.current[task].is_some() && !elsewhere(task)
            })
            .collect();
        chosen.sort_by_key(|&task| self.urgency(task));
        chosen.truncate(cpus.len());
        let mut arriving: Vec<usize> =
            chosen.iter().copied().filter(|task| !self.running.contains(&Some(*task))).collect();
        arriving.reverse();
        for &cpu in cpus {
            let id = CpuId(cpu as u16);
            if self.running[cpu].is_some_and(|task| chosen.contains(&task)) {
                continue;
            }
            let Some(task) = arriving.pop() else { continue };
            if let Some(old) = self.running[cpu].replace(task) {
                let job = self.job(old);
                self.write(now, Event::Preempt { cpu: id, job });
            }
            let job = self.job(task);
            self.write(now, Event::Link { cpu: id, job: Some(job) });
            self.write(now, Event::Dispatch { cpu: id, job });
        }
    }
}

/// Small setups of every kind, overloaded ones among them.
pub fn any_setup() -> impl Strategy<Value = Setup> {
    let rule = prop_oneof![Just(PriorityRule::Edf), Just(PriorityRule::Given)];
    let quantum = prop_oneof![Just(None), (1..4u64).prop_map(Some)];
    (prop::collection::vec(any_task(), 1..6), prop::collection::vec(1..4u16, 1..3), rule, quantum, any::<bool>())
        .prop_map(|(mut tasks, clusters, rule, quantum, staggered)| {
            for task in &mut tasks {
                task.cluster %= clusters.len();
            }
            let cpus = u64::from(clusters.iter().sum::<u16>());
            let quanta = if staggered { Quanta::Staggered } else { Quanta::Aligned };
            let quantum = quantum.map(|quantum| if staggered { quantum * cpus } else { quantum });
            Setup { tasks, clusters, rule, quantum, quanta, horizon: 40 }
        })
}

fn any_task() -> impl Strategy<Value = Task> {
    (1..8u64, 1..8u64, 0..6u64, 0..2usize, prop::collection::vec(1..8u64, 1..4), 1..10u64).prop_map(
        |(wcet, period, phase, cluster, costs, deadline)| {
            let costs = costs.into_iter().map(|cost| cost.min(wcet)).collect();
            Task { wcet, period, deadline, phase, cluster, costs }
        },
    )
}
