//! Random event sequences into every CPU policy, with lagging process scheduling: the invariants hold after every
//! decision, and event-driven policies link exactly the m most urgent jobs that may run: the ready ones, but of an owner
//! and the interrupt threads that work for it only the one that goes first. The fair class links as many as it can.

use laxity_model::{CpuId, Instant, Invocation, Nanos, PriorityRule, Quanta, ReadyQueueKind, Scheduler, Task, TaskId};
use laxity_policy::cpu::ready::BinomialHeap;
use laxity_policy::cpu::{Action, CpuPolicy, Event, EventDriven, Priority, Ranking, build, fair};
use proptest::prelude::*;

const TASKS: usize = 9;
/// So short that slices end and threads are behind within a few steps, which take a nanosecond each.
const TUNABLES: fair::Parameters =
    fair::Parameters { latency: Nanos(12), min_granularity: Nanos(2), wakeup_granularity: Nanos(3) };
/// Interrupt threads are numbered after the tasks.
const THREADS: usize = 3;
const ALL: usize = TASKS + THREADS;

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
    /// The same policy, if it is event-driven, saved after each decision and loaded into a scheduler that knows nothing.
    twin: Option<EventDriven<BinomialHeap>>,
    ranking: Ranking,
    event_driven: bool,
    fair: bool,
    now: Instant,
    quantum: u64,
    jobs: [Job; ALL],
    /// The task that each active interrupt thread works for.
    owners: [Option<usize>; ALL],
    /// The thread that goes before each task.
    first: [Option<usize>; TASKS],
    links: Vec<Option<TaskId>>,
    processes: Vec<Option<TaskId>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Release {
        task: usize,
        cpu: usize,
        deadline: u64,
    },
    Complete {
        cpu: usize,
    },
    Suspend {
        cpu: usize,
    },
    Resume {
        task: usize,
        cpu: usize,
    },
    Prioritize {
        task: usize,
        level: (u64, u32),
    },
    Wake {
        thread: usize,
        owner: Option<usize>,
        cpu: usize,
        level: (u64, u32),
    },
    /// A job that has no CPU completes: live, Linux lets it run where a linked job waits for something unknown.
    CompleteUnlinked {
        task: usize,
        cpu: usize,
    },
    Tick {
        cpu: usize,
    },
    Enact {
        cpu: usize,
    },
    Decide,
}

impl Driver {
    fn new(scheduler: &Scheduler, cpus: usize) -> Self {
        let tasks: Vec<Task> =
            (0..ALL).map(|task| Task::periodic("t", Nanos(1), Nanos(1 + (task as u64 * 5) % 7))).collect();
        let ranking = Ranking::new(scheduler.rule, &tasks);
        let is_saved = scheduler.invocation == Invocation::EventDriven && scheduler.rule != PriorityRule::Fair;
        Driver {
            policy: build(scheduler, TUNABLES, ranking.clone(), ALL, cpus),
            twin: is_saved.then(|| EventDriven::new(ranking.clone(), ALL, cpus)),
            ranking,
            event_driven: scheduler.invocation == Invocation::EventDriven,
            fair: scheduler.rule == PriorityRule::Fair,
            now: Instant::ZERO,
            quantum: 0,
            jobs: [Job::Inactive; ALL],
            owners: [None; ALL],
            first: [None; TASKS],
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
                let deadline = self.now + Nanos(deadline);
                self.jobs[task] = Job::Ready(self.ranking.priority(id(task), deadline));
                self.tell(Event::Released { cpu: local(cpu), task: id(task), deadline });
            }
            Step::Complete { cpu } => {
                if let Some(task) = self.leave(cpu % cpus) {
                    self.jobs[task.index()] = Job::Inactive;
                    self.retire(task.index());
                    self.tell(Event::Completed { cpu: local(cpu), task });
                }
            }
            Step::CompleteUnlinked { task, cpu } if self.event_driven && !self.fair => {
                self.decide();
                let is_placed = self.processes.contains(&Some(id(task)));
                if matches!(self.jobs[task], Job::Ready(_)) && self.goes_first(task) && !is_placed {
                    let linked = self.links.iter().position(|&link| link == Some(id(task)));
                    linked.into_iter().for_each(|cpu| self.links[cpu] = None);
                    self.jobs[task] = Job::Inactive;
                    self.retire(task);
                    self.tell(Event::Completed { cpu: local(linked.unwrap_or(cpu)), task: id(task) });
                }
            }
            // Interrupt threads do not suspend themselves.
            Step::Suspend { cpu } if self.processes[cpu % cpus].is_some_and(|task| task.index() < TASKS) => {
                if let Some(task) = self.leave(cpu % cpus) {
                    let Job::Ready(priority) = self.jobs[task.index()] else { panic!("what runs is ready") };
                    self.jobs[task.index()] = Job::Suspended(priority);
                    self.tell(Event::Suspended { cpu: local(cpu), task });
                }
            }
            Step::Resume { task, cpu } => {
                if let Job::Suspended(priority) = self.jobs[task] {
                    self.jobs[task] = Job::Ready(priority);
                    self.tell(Event::Resumed { cpu: local(cpu), task: id(task) });
                }
            }
            Step::Prioritize { task, level: (major, tie) } => {
                let priority = Priority { major, tie, task: id(task) };
                self.jobs[task] = match self.jobs[task] {
                    Job::Inactive => return,
                    Job::Ready(_) => Job::Ready(priority),
                    Job::Suspended(_) => Job::Suspended(priority),
                };
                self.tell(Event::Prioritized { task: id(task), level: (major, tie) });
            }
            Step::Wake { thread, owner, cpu, level: (major, tie) } if self.jobs[thread] == Job::Inactive => {
                // Quantum-driven scheduling has threads without owners only: no CPU is handed over within a quantum. Nor
                // does the fair class know owners.
                let owner = owner.filter(|_| self.event_driven && !self.fair);
                self.jobs[thread] = Job::Ready(Priority { major, tie, task: id(thread) });
                self.owners[thread] = owner;
                if let Some(owner) = owner {
                    self.first[owner].get_or_insert(thread);
                }
                let (owner, level) = (owner.map(id), (major, tie));
                self.tell(Event::Woken { cpu: local(cpu), thread: id(thread), owner, level });
            }
            Step::Tick { cpu } => {
                self.quantum += 1;
                self.tell(Event::Tick { cpu: local(cpu), quantum: self.quantum });
            }
            // Links are enacted only after the decision of this instant.
            Step::Enact { cpu } => {
                self.decide();
                let cpu = cpu % cpus;
                if self.links[cpu] != self.processes[cpu] {
                    self.processes[cpu] = self.links[cpu];
                    self.tell(Event::Switched { cpu: local(cpu), task: self.links[cpu] });
                }
            }
            Step::Decide => self.decide(),
            Step::Release { .. } | Step::Suspend { .. } | Step::Wake { .. } | Step::CompleteUnlinked { .. } => {}
        }
    }

    /// If `task` is a thread that went before its owner, the next thread that works for that does, if there is one.
    fn retire(&mut self, task: usize) {
        if let Some(owner) = self.owners[task].take() {
            self.first[owner] = (TASKS..ALL).find(|&thread| self.owners[thread] == Some(owner));
        }
    }

    /// Whether no other member of its entity goes before `task`.
    fn goes_first(&self, task: usize) -> bool {
        match self.owners[task] {
            Some(owner) => self.first[owner] == Some(task),
            None => task >= TASKS || self.first[task].is_none(),
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

    fn tell(&mut self, event: Event) {
        self.policy.handle(self.now, event);
        if let Some(twin) = &mut self.twin {
            twin.handle(self.now, event);
        }
    }

    /// The twin decides alike, and whatever takes over from what it saved will.
    fn decide_twin(&mut self, expected: &[Action]) {
        let Some(twin) = &mut self.twin else { return };
        let (mut actions, mut numbers, mut again) = (Vec::new(), Vec::new(), Vec::new());
        twin.decide(self.now, &mut actions);
        assert_eq!(actions, expected, "a scheduler that is loaded after each decision decides alike");
        twin.save(&mut numbers);
        assert!(numbers.len() <= twin.saved_max(), "as many numbers as it said");
        let mut next = EventDriven::new(self.ranking.clone(), ALL, self.links.len());
        next.load(&numbers).expect("what was saved can be loaded");
        next.assert_invariants();
        next.save(&mut again);
        assert_eq!(again, numbers, "nothing is lost");
        // And into one that has a state already.
        twin.load(&numbers).expect("what was saved can be loaded");
        twin.assert_invariants();
        self.twin = Some(next);
    }

    fn decide(&mut self) {
        let mut actions = Vec::new();
        self.policy.decide(self.now, &mut actions);
        self.decide_twin(&actions);
        self.now += Nanos(1);
        for Action::Link { cpu, task } in actions {
            self.links[cpu.index()] = task;
        }
        self.policy.assert_invariants();
        let mut linked: Vec<TaskId> = self.links.iter().flatten().copied().collect();
        linked.sort();
        for &task in &linked {
            assert!(matches!(self.jobs[task.index()], Job::Ready(_)), "{task} is linked but not ready");
            assert!(self.goes_first(task.index()), "{task} is linked beside the one that goes before it");
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
        if self.fair {
            let ready = self.jobs.iter().filter(|job| matches!(job, Job::Ready(_))).count();
            assert_eq!(linked.len(), ready.min(self.links.len()), "no CPU idles while jobs wait");
        } else if self.event_driven {
            let first = (0..ALL).filter(|&task| self.goes_first(task)).map(|task| self.jobs[task]);
            let ready = first.filter_map(|job| if let Job::Ready(priority) = job { Some(priority) } else { None });
            let mut ready: Vec<Priority> = ready.collect();
            ready.sort();
            ready.truncate(self.links.len());
            let mut expected: Vec<TaskId> = ready.iter().map(|priority| priority.task).collect();
            expected.sort();
            assert_eq!(linked, expected, "the m most urgent ready jobs are linked");
        }
    }
}

fn fair_scheduler() -> impl Strategy<Value = Scheduler> {
    Just(Scheduler { rule: PriorityRule::Fair, ..Scheduler::GLOBAL_EDF })
}

fn step() -> impl Strategy<Value = Step> {
    // As of deadlines, boosted jobs and fixed priorities above and below all; ties with tasks and among themselves.
    let level = || (prop_oneof![6 => 0..120u64, 1 => Just(u64::MAX - 1)], 0..ALL as u32);
    let owner = || prop::option::weighted(0.8, 0..TASKS);
    prop_oneof![
        4 => (0..TASKS, 0..4usize, 1..60u64).prop_map(|(task, cpu, deadline)| Step::Release { task, cpu, deadline }),
        2 => (0..4usize).prop_map(|cpu| Step::Complete { cpu }),
        1 => (0..4usize).prop_map(|cpu| Step::Suspend { cpu }),
        2 => (0..TASKS, 0..4usize).prop_map(|(task, cpu)| Step::Resume { task, cpu }),
        2 => (0..ALL, level()).prop_map(|(task, level)| Step::Prioritize { task, level }),
        2 => (TASKS..ALL, owner(), 0..4usize, level())
            .prop_map(|(thread, owner, cpu, level)| Step::Wake { thread, owner, cpu, level }),
        1 => (0..ALL, 0..4usize).prop_map(|(task, cpu)| Step::CompleteUnlinked { task, cpu }),
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
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn numbers_that_are_no_state_are_refused_and_never_break_a_policy(
        numbers in prop::collection::vec(prop_oneof![0..20u64, Just(1 << 32), Just(2 << 32), any::<u64>()], 0..40),
        tasks in 1usize..6,
        cpus in 1usize..4,
    ) {
        let mut policy: EventDriven<BinomialHeap> =
            EventDriven::new(Ranking::of_unknown(PriorityRule::Edf, tasks), tasks, cpus);
        // Either it is a state or no job is pending.
        let _ = policy.load(&numbers);
        policy.assert_invariants();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_event_sequence_breaks_a_policy(
        scheduler in prop_oneof![3 => scheduler(), 1 => fair_scheduler()],
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
