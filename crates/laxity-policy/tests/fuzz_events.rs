//! Random event sequences into every CPU policy, with lagging process scheduling: the invariants hold after every
//! decision, and event-driven policies link exactly the m most urgent ready jobs.

use laxity_model::{CpuId, Instant, Invocation, PriorityRule, Quanta, ReadyQueueKind, Scheduler, Task, TaskId};
use laxity_policy::cpu::{Action, CpuPolicy, Event, Priority, Ranking, build};
use proptest::prelude::*;

const TASKS: usize = 9;

/// What a driver knows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Inactive,
    Ready(Priority),
    Suspended(Priority),
}

/// A driver that enacts links whenever the fuzzer says so, however late.
struct Driver {
    policy: Box<dyn CpuPolicy>,
    ranking: Ranking,
    event_driven: bool,
    now: Instant,
    quantum: u64,
    jobs: [Job; TASKS],
    links: Vec<Option<TaskId>>,
    processes: Vec<Option<TaskId>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Release { task: usize, cpu: usize, deadline: u64 },
    Complete { cpu: usize },
    Suspend { cpu: usize },
    Resume { task: usize, cpu: usize },
    Tick { cpu: usize },
    Enact { cpu: usize },
    Decide,
}

impl Driver {
    fn new(scheduler: &Scheduler, cpus: usize) -> Self {
        let tasks: Vec<Task> = (0..TASKS)
            .map(|task| Task::periodic("t", laxity_model::Nanos(1), laxity_model::Nanos(1 + (task as u64 * 5) % 7)))
            .collect();
        let ranking = Ranking::new(scheduler.rule, &tasks);
        Driver {
            policy: build(scheduler, ranking.clone(), TASKS, cpus),
            ranking,
            event_driven: scheduler.invocation == Invocation::EventDriven,
            now: Instant::ZERO,
            quantum: 0,
            jobs: [Job::Inactive; TASKS],
            links: vec![None; cpus],
            processes: vec![None; cpus],
        }
    }

    /// Carries out `step` if it makes sense now.
    fn step(&mut self, step: Step) {
        let cpus = self.links.len();
        let id = |task: usize| TaskId(task as u32);
        let local = |cpu: usize| CpuId((cpu % cpus) as u16);
        match step {
            Step::Release { task, cpu, deadline } if self.jobs[task] == Job::Inactive => {
                let deadline = self.now + laxity_model::Nanos(deadline);
                self.jobs[task] = Job::Ready(self.ranking.priority(id(task), deadline));
                self.policy.handle(self.now, Event::Released { cpu: local(cpu), task: id(task), deadline });
            }
            Step::Complete { cpu } => {
                if let Some(task) = self.leave(cpu % cpus) {
                    self.jobs[task.index()] = Job::Inactive;
                    self.policy.handle(self.now, Event::Completed { cpu: local(cpu), task });
                }
            }
            Step::Suspend { cpu } => {
                if let Some(task) = self.leave(cpu % cpus) {
                    let Job::Ready(priority) = self.jobs[task.index()] else { panic!("what runs is ready") };
                    self.jobs[task.index()] = Job::Suspended(priority);
                    self.policy.handle(self.now, Event::Suspended { cpu: local(cpu), task });
                }
            }
            Step::Resume { task, cpu } => {
                if let Job::Suspended(priority) = self.jobs[task] {
                    self.jobs[task] = Job::Ready(priority);
                    self.policy.handle(self.now, Event::Resumed { cpu: local(cpu), task: id(task) });
                }
            }
            Step::Tick { cpu } => {
                self.quantum += 1;
                self.policy.handle(self.now, Event::Tick { cpu: local(cpu), quantum: self.quantum });
            }
            // Links are enacted only after the decision of this instant.
            Step::Enact { cpu } => {
                self.decide();
                let cpu = cpu % cpus;
                if self.links[cpu] != self.processes[cpu] {
                    self.processes[cpu] = self.links[cpu];
                    self.policy.handle(self.now, Event::Switched { cpu: local(cpu), task: self.links[cpu] });
                }
            }
            Step::Decide => self.decide(),
            Step::Release { .. } => {}
        }
    }

    /// The job whose process is on `cpu` leaves it.
    fn leave(&mut self, cpu: usize) -> Option<TaskId> {
        let task = self.processes[cpu].take()?;
        if self.links[cpu] == Some(task) {
            self.links[cpu] = None;
        }
        Some(task)
    }

    fn decide(&mut self) {
        let mut actions = Vec::new();
        self.policy.decide(self.now, &mut actions);
        self.now += laxity_model::Nanos(1);
        for Action::Link { cpu, task } in actions {
            self.links[cpu.index()] = task;
        }
        self.policy.assert_invariants();
        let mut linked: Vec<TaskId> = self.links.iter().flatten().copied().collect();
        linked.sort();
        for &task in &linked {
            assert!(matches!(self.jobs[task.index()], Job::Ready(_)), "{task} is linked but not ready");
        }
        let distinct = linked.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(distinct, "a job is linked to one CPU: {linked:?}");
        for (cpu, process) in self.processes.iter().enumerate() {
            let elsewhere = self.links.iter().enumerate().any(|(other, link)| other != cpu && link == process);
            assert!(
                process.is_none() || !elsewhere,
                "{process:?} is linked away from cpu{cpu}, which its process holds"
            );
        }
        if self.event_driven {
            let mut ready: Vec<Priority> = self
                .jobs
                .iter()
                .filter_map(|job| if let Job::Ready(priority) = job { Some(*priority) } else { None })
                .collect();
            ready.sort();
            ready.truncate(self.links.len());
            let mut expected: Vec<TaskId> = ready.iter().map(|priority| priority.task).collect();
            expected.sort();
            assert_eq!(linked, expected, "the m most urgent ready jobs are linked");
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..TASKS, 0..4usize, 1..60u64).prop_map(|(task, cpu, deadline)| Step::Release { task, cpu, deadline }),
        2 => (0..4usize).prop_map(|cpu| Step::Complete { cpu }),
        1 => (0..4usize).prop_map(|cpu| Step::Suspend { cpu }),
        2 => (0..TASKS, 0..4usize).prop_map(|(task, cpu)| Step::Resume { task, cpu }),
        2 => (0..4usize).prop_map(|cpu| Step::Tick { cpu }),
        4 => (0..4usize).prop_map(|cpu| Step::Enact { cpu }),
        2 => Just(Step::Decide),
    ]
}

fn scheduler() -> impl Strategy<Value = Scheduler> {
    use prop::sample::select;
    (
        select(vec![PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic]),
        select(vec![Invocation::EventDriven, Invocation::QuantumDriven]),
        select(vec![Quanta::Aligned, Quanta::Staggered]),
        select(vec![ReadyQueueKind::Coarse, ReadyQueueKind::Fine, ReadyQueueKind::Hierarchical]),
    )
        .prop_map(|(rule, invocation, quanta, ready_queue)| Scheduler {
            rule,
            invocation,
            quanta,
            ready_queue,
            ..Scheduler::GLOBAL_EDF
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_event_sequence_breaks_a_policy(
        scheduler in scheduler(),
        cpus in 1usize..5,
        steps in prop::collection::vec(step(), 1..250),
    ) {
        let mut driver = Driver::new(&scheduler, cpus);
        for step in steps {
            driver.step(step);
        }
        driver.decide();
    }
}
