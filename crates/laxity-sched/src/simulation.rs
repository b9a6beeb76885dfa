//! Whole systems under a deterministic schedule ([`laxity_testing::simulation`]): several processes whose threads are tasks, any
//! interleaving of their steps, kills at any step, threads that are stopped, budgets that end amid code, and a check of
//! what must hold.
//!
//! Each process is a thread, and one that is killed ends by the bare system call: Linux marks its robust mutexes, and nothing
//! of it is dropped. Another process takes its place. Linux's scheduler is simulated by what it was told last about each
//! thread. Seeds repeat schedules.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use laxity_model::{EngineOrder, Instant, LockId, Nanos, TaskId};
use laxity_policy::cpu::CpuPolicy;
use laxity_policy::lock;
use laxity_testing::simulation::{Pause, Played, Simulation};
use laxity_testing::{Random, TestRegistry, schedules};

use crate::cluster_cache::ClusterCache;
use crate::delegate::Delegate;
use crate::placement::Placement;
use crate::shared::Shared;
use crate::step::{self, linux};
use crate::{Config, Job, LockRequest, Parameters, Registry, Rule, Service, System, Task, Urgency};

/// Jobs of each process.
const JOBS: u64 = 5;
/// Times that a supervisor looks whether it may act.
const LOOKS: u32 = 40;
/// More steps than others take until a thread is placed as is demanded, though some may be stopped meanwhile.
const PATIENCE: u32 = 60_000;
const DOOR: LockId = LockId(0);
const START: Instant = Instant(1_000_000_000);

/// What tasks have, by their own account, that no other may have.
#[derive(Debug, Default)]
struct Witness(Mutex<Vec<(Held, usize)>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// A CPU of a cluster, in a non-preemptive section.
    Cpu(usize, u16),
    /// A replica of the lock.
    Door(u16),
}

impl Witness {
    fn enter(&self, held: Held, actor: usize) {
        let mut all = self.0.lock().expect("no thread panicked");
        let other = all.iter().find(|(other, _)| *other == held);
        assert_eq!(other, None, "{held:?} is had by two: {actor} and the other one");
        all.push((held, actor));
    }

    fn leave(&self, held: Held, actor: usize) {
        self.0.lock().expect("no thread panicked").retain(|&entry| entry != (held, actor));
    }

    fn forget(&self, actor: usize) {
        self.0.lock().expect("no thread panicked").retain(|&(_, holder)| holder != actor);
    }
}

/// Whose turn it is: the task's thread, or while that is in code of its own its supervisor. As in the executor of live runs.
#[derive(Debug, Default)]
struct Custody {
    turn: AtomicU32,
    is_over: AtomicBool,
    delegate: Mutex<Option<(Delegate, Nanos)>>,
}

const OWN: u32 = 0;
const LENT: u32 = 1;
const ACTS: u32 = 2;
const THROTTLED: u32 = 3;

impl Custody {
    fn take(&self, from: u32, to: u32) -> bool {
        step::point();
        self.turn.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn pass(&self, to: u32) {
        step::point();
        self.turn.store(to, Ordering::SeqCst);
    }
}

/// A process with a thread that is a task.
struct Member {
    system: System,
    number: usize,
    witness: Arc<Witness>,
    custody: Arc<Custody>,
    random: Random,
}

impl Member {
    fn begin(&mut self) -> Task {
        let period = Nanos::from_millis(1 + self.random.below(50));
        let cluster = self.random.below(self.system.config().clusters.len() as u64) as usize;
        let task = Parameters { cluster, ..Parameters::periodic("task", period) };
        self.system.begin(task).expect("there is room")
    }

    fn run(mut self) {
        let mut task = self.begin();
        for index in 0..JOBS {
            if self.random.below(4) == 0 {
                drop(task);
                task = self.begin();
            }
            if self.random.below(4) == 0 {
                self.serve(&task, index);
                continue;
            }
            let release = START.saturating_add(Nanos::from_millis(self.random.below(50)));
            let deadline = release.saturating_add(Nanos::from_millis(1 + self.random.below(50)));
            task.release(Job { index, release, deadline }).expect("it has no job");
            for _ in 0..1 + self.random.below(3) {
                self.act(&task);
            }
            task.complete().expect("it has a job");
            self.await_placement(&task);
        }
        self.custody.is_over.store(true, Ordering::SeqCst);
    }

    /// The thread works for another task, or for none, which sleeps from its next event on until that is done.
    fn serve(&mut self, task: &Task, index: u64) {
        // Tasks have the lowest numbers that are free.
        let owner = Some(TaskId(self.random.below(4) as u32)).filter(|&owner| owner != task.id());
        task.serve(index, Service { owner, urgency: Urgency::Owner }, &mut ()).expect("it has no job");
        (0..self.random.below(60)).for_each(|_| step::point());
        task.complete().expect("it serves");
        self.await_placement(task);
    }

    fn act(&mut self, task: &Task) {
        match self.random.below(5) {
            0 => {
                task.enter_section().expect("it has a job");
                let demand = self.demand(task);
                let cpu = demand.cpu.expect("a section begins on a CPU").0;
                let held = Held::Cpu(task.parameters().cluster, cpu);
                self.witness.enter(held, self.number);
                (0..self.random.below(20)).for_each(|_| step::point());
                assert_eq!(self.demand(task), demand, "no thread takes the CPU of a section");
                self.witness.leave(held, self.number);
                task.leave_section().expect("it is in one");
            }
            1 => {
                task.suspend().expect("it has a job");
                self.await_placement(task);
                task.resume().expect("it is suspended");
            }
            2 if !self.system.config().locks.is_empty() => {
                let replica = task.lock(LockRequest::of(DOOR), &mut ()).expect("granted some day");
                let held = Held::Door(replica.0);
                self.witness.enter(held, self.number);
                (0..self.random.below(20)).for_each(|_| step::point());
                self.witness.leave(held, self.number);
                task.unlock(DOOR, &mut ()).expect("it has it");
            }
            3 => {
                let lent = (task.delegate(), Nanos::from_millis(1 + self.random.below(50)));
                *self.custody.delegate.lock().expect("no thread panicked") = Some(lent);
                self.custody.pass(LENT);
                (0..self.random.below(200)).for_each(|_| step::point());
                while !self.custody.take(LENT, OWN) {}
            }
            _ => self.await_placement(task),
        }
    }

    fn demand(&self, task: &Task) -> Placement {
        Placement::of_word(self.system.shared().demand(task.id()).load(Ordering::SeqCst))
    }

    /// Sooner or later, and without doing anything for that, the thread is placed as is demanded.
    fn await_placement(&self, task: &Task) {
        let shared = self.system.shared();
        for _ in 0..PATIENCE {
            let demand = self.demand(task);
            let expected = shared.attributes(demand.class);
            let cpus: Vec<usize> = shared.cpus(task.parameters().cluster, demand.cpu).cpus().collect();
            if linux::placed() == (Some(expected), cpus) {
                return;
            }
            step::point();
        }
        panic!("Linux has {:?}, and {:?} is demanded", linux::placed(), self.demand(task));
    }
}

/// The supervisor of a member's budget: ends it, and gives another one after a while.
fn supervise(custody: &Custody, number: usize) {
    let mut random = Random::of(17 * number as u64 + 3);
    for _ in 0..LOOKS {
        (0..random.below(60)).for_each(|_| step::point());
        if custody.is_over.load(Ordering::SeqCst) {
            return;
        }
        if !custody.take(LENT, ACTS) {
            continue;
        }
        let (delegate, more) = custody.delegate.lock().expect("no thread panicked").clone().expect("it was lent");
        let deadline = START.saturating_add(Nanos(3 * more.0));
        if random.below(3) == 0 || !delegate.throttle(&mut ()).expect("it is a task") {
            delegate.postpone(deadline, &mut ()).expect("it is a task");
            custody.pass(LENT);
            continue;
        }
        custody.pass(THROTTLED);
        (0..random.below(100)).for_each(|_| step::point());
        assert!(custody.take(THROTTLED, ACTS), "no other thread takes this turn");
        delegate.postpone(deadline, &mut ()).expect("it is a task");
        delegate.resume(&mut ()).expect("it is throttled");
        custody.pass(LENT);
    }
}

/// A system and the threads that use it.
struct Scene<'a> {
    simulation: Simulation,
    place: &'a TestRegistry<Registry>,
    witness: Arc<Witness>,
    /// The threads of each process, of which the first is a task, and its member slot.
    processes: Vec<([usize; 2], usize)>,
    /// The slots of those that were killed.
    dead: Arc<Mutex<Vec<usize>>>,
    kills: u64,
}

impl Scene<'_> {
    fn start_process(&mut self) {
        let (system, witness) = (self.place.attach("s").expect("it was created"), self.witness.clone());
        let (custody, slot): (Arc<Custody>, _) = (Arc::default(), system.slot());
        let of_member = custody.clone();
        let task = self.simulation.start(move |number| {
            let random = Random::of(31 * number as u64 + 7);
            Member { system, number, witness, custody: of_member, random }.run();
        });
        let supervisor = self.simulation.start(move |number| supervise(&custody, number));
        self.processes.push(([task, supervisor], slot));
    }

    /// Kills a process where it is. Another one comes, and one sees to the dead.
    fn kill(&mut self) {
        let living = self.simulation.living();
        self.processes.retain(|(threads, _)| living.contains(&threads[0]));
        if self.processes.is_empty() {
            return;
        }
        let which = self.simulation.below(self.processes.len() as u64) as usize;
        let (threads, slot) = self.processes.swap_remove(which);
        for number in threads {
            self.simulation.kill(number);
            self.witness.forget(number);
        }
        self.kills += 1;
        self.dead.lock().expect("no thread panicked").push(slot);
        let (system, dead) = (self.place.attach("s").expect("it was created"), self.dead.clone());
        self.simulation.start(move |_| {
            let shared = system.shared();
            let is_dead = |slot| dead.lock().expect("no thread panicked").contains(&slot);
            for cluster in shared.clusters() {
                shared.retire_ended(cluster, is_dead).expect("whole");
            }
        });
        self.start_process();
    }
}

/// One schedule. Answers how it went, and how many were killed.
fn simulate(seed: u64) -> (Played, u64) {
    let processes = 2 + seed % 3;
    let kills = if seed.is_multiple_of(8) { 0 } else { 25 };
    let place: TestRegistry<Registry> = TestRegistry::new(&format!("simulated-{seed}"));
    let clusters = match seed % 4 {
        0 => vec![vec![0]],
        1 => vec![vec![0, 1]],
        2 => vec![vec![0], vec![1]],
        _ => vec![vec![0, 1, 2]],
    };
    let door = lock::Config::Queue {
        replicas: 1 + u16::from(seed.is_multiple_of(5)),
        order: EngineOrder::Priority,
        progress: lock::Progress::Inheritance,
    };
    let locks = if seed.is_multiple_of(3) { Vec::new() } else { vec![door] };
    let rule = if seed.is_multiple_of(7) { Rule::RateMonotonic } else { Rule::Edf };
    let config = Config { tasks: 16, locks, ..Config::new(rule, clusters) };
    let system = place.create("s", &config).expect("the name is free");
    let shared = system.shared().clone();
    let look = move |_: &mut dyn Iterator<Item = u64>| is_whole(&shared);
    let simulation = Simulation::new(seed, kills, 60, Box::new(look));
    let mut scene = Scene {
        simulation,
        place: &place,
        witness: Arc::default(),
        processes: Vec::new(),
        dead: Arc::default(),
        kills: 0,
    };
    (0..processes).for_each(|_| scene.start_process());
    while scene.simulation.go_on() == Pause::Event {
        scene.kill();
    }
    let snapshot = system.snapshot().expect("whole");
    assert_eq!(snapshot.tasks.len(), 0, "{snapshot:?}");
    (scene.simulation.played(), scene.kills)
}

/// After each step the state that counts is one of the policy, in which no CPU has two tasks.
fn is_whole(shared: &Shared) {
    for cluster in shared.clusters() {
        let mut cache = ClusterCache::new(&shared.config, shared.config.clusters[cluster].len());
        cache.peek(shared, cluster, |cache| cache.policy.assert_invariants()).expect("a state of the policy");
    }
}

#[test]
fn no_schedule_of_steps_and_kills_leaves_a_thread_behind_or_gives_a_cpu_to_two_sections() {
    schedules::play_all(1..41, 600_000, simulate);
}

#[test]
fn a_seed_repeats_its_schedule_to_the_last_step() {
    schedules::assert_repeats(903, simulate);
}

#[test]
#[ignore = "half a minute; make test-kill"]
fn none_of_many_schedules_leaves_a_thread_behind_or_gives_a_cpu_to_two_sections() {
    schedules::play_all(1000..1140, 2_000_000, simulate);
}
