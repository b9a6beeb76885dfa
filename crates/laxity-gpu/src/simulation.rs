//! Whole arbitrations under a deterministic schedule ([`laxity_testing::simulation`]): several processes, any interleaving
//! of their steps, kills at any step, late sleepers, threads that are stopped, budgets that are exhausted and replenished
//! meanwhile, and a check of what must hold.
//!
//! Each process is a thread, and one that is killed ends by the bare system call: Linux marks its robust mutexes, and
//! nothing of it is dropped. Another process takes its place. Seeds repeat schedules.

use std::sync::{Arc, Mutex};

use laxity_model::{Engine, GpuArbitration, GpuSync, Instant, Nanos};
use laxity_sys::clock;
use laxity_testing::simulation::{Pause, Played, Simulation};
use laxity_testing::{Random, TestRegistry, schedules};

use crate::step::Simulated;
use crate::{Arbitration, Base, Budget, Client, Config, LockError, Registry, TokenRequest};

/// Tokens that each requests before it is done.
const TURNS: u32 = 6;
/// Times that the budget of a client is exhausted in one schedule.
const OVERRUNS: u32 = 12;

/// What holders hold, by their own account, and the budgets of clients that live.
#[derive(Debug, Default)]
struct Witness {
    held: Mutex<Vec<(Held, usize)>>,
    budgets: Mutex<Vec<(usize, Budget)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Token(u16),
    Engine(Engine),
}

impl Witness {
    fn enter(&self, held: Held, actor: usize) {
        let mut all = self.held.lock().expect("no thread panicked");
        let other = all.iter().find(|(other, _)| *other == held);
        assert_eq!(other, None, "{held:?} has two holders: {actor} and the other one");
        all.push((held, actor));
    }

    fn leave(&self, held: Held, actor: usize) {
        self.held.lock().expect("no thread panicked").retain(|&entry| entry != (held, actor));
    }

    /// `actor` was killed, and with it the thread that watched its budget.
    fn forget(&self, actor: usize) {
        self.held.lock().expect("no thread panicked").retain(|&(_, holder)| holder != actor);
        self.watch(actor, None);
    }

    /// The budget of `actor` is this from now on.
    fn watch(&self, actor: usize, budget: Option<Budget>) {
        let mut all = self.budgets.lock().expect("no thread panicked");
        all.retain(|&(owner, _)| owner != actor);
        all.extend(budget.map(|budget| (actor, budget)));
    }

    fn budget(&self, actor: usize) -> Option<Budget> {
        let all = self.budgets.lock().expect("no thread panicked");
        all.iter().find(|&&(owner, _)| owner == actor).map(|(_, budget)| budget.clone())
    }
}

/// What a process does: takes tokens and engines, waits for ever or not, and now and then registers anew.
fn use_gpus(arbitration: &Arbitration, number: usize, witness: &Witness) {
    let mut random = Random::of(31 * number as u64 + 7);
    let register = |random: &mut Random| {
        let base = if random.below(2) == 0 { Base::Background } else { Base::Fixed(1 + random.below(3) as u8) };
        arbitration.register("client", base).expect("there is room")
    };
    let mut client = register(&mut random);
    witness.watch(number, Some(client.budget()));
    for _ in 0..TURNS {
        if random.below(4) == 0 {
            drop(client);
            client = register(&mut random);
            witness.watch(number, Some(client.budget()));
        }
        turn(&client, number, witness, &mut random);
    }
    witness.watch(number, None);
}

/// The thread of a process that watches the budget of its client `owner`: exhausts it, and replenishes it after a while.
fn watch_budget(owner: usize, number: usize, witness: &Witness) {
    let mut random = Random::of(17 * number as u64 + 3);
    for _ in 0..OVERRUNS {
        (0..random.below(60)).for_each(|_| crate::step::point());
        let Some(budget) = witness.budget(owner) else { continue };
        budget.exhaust().expect("whole");
        (0..random.below(60)).for_each(|_| crate::step::point());
        budget.replenish().expect("whole");
    }
}

fn turn(client: &Client, number: usize, witness: &Witness, random: &mut Random) {
    let deadline = match random.below(4) {
        0 => Instant::ZERO,
        // Of the simulation's clock, which decides by itself when it is late.
        1 => clock::now().saturating_add(Nanos::from_secs(3600)),
        _ => Instant::NEVER,
    };
    let token = match client.request(TokenRequest { deadline, ..TokenRequest::default() }) {
        Ok(token) => token,
        Err(LockError::TimedOut { .. }) => return,
        Err(error) => panic!("{error}"),
    };
    let held = Held::Token(token.replica().0);
    witness.enter(held, number);
    crate::step::point();
    if random.below(2) == 0 {
        let engine = token.engine(Engine::Execution, Instant::NEVER).expect("granted some day");
        witness.enter(Held::Engine(engine.engine()), number);
        crate::step::point();
        witness.leave(Held::Engine(engine.engine()), number);
    }
    witness.leave(held, number);
}

/// An arbitration and the threads that use it.
struct Scene<'a> {
    simulation: Simulation,
    place: &'a TestRegistry<Registry>,
    witness: Arc<Witness>,
    /// The threads of each process, of which the first has a client.
    processes: Vec<Vec<usize>>,
    has_budgets: bool,
    kills: u64,
}

impl Scene<'_> {
    /// Starts a thread with an arbitration of its own.
    fn start(&mut self, body: fn(&Arbitration, usize, &Witness)) -> usize {
        let (arbitration, witness) = (self.place.attach("g").expect("it was created"), self.witness.clone());
        self.simulation.start(move |number| body(&arbitration, number, &witness))
    }

    fn start_process(&mut self) {
        let mut threads = vec![self.start(use_gpus)];
        if self.has_budgets {
            let (witness, owner) = (self.witness.clone(), threads[0]);
            threads.push(self.simulation.start(move |number| watch_budget(owner, number, &witness)));
        }
        self.processes.push(threads);
    }

    /// Kills a process where it is. Another one comes, and one sees to the dead.
    fn kill(&mut self) {
        let living = self.simulation.living();
        self.processes.retain(|threads| living.contains(&threads[0]));
        if self.processes.is_empty() {
            return;
        }
        let which = self.simulation.below(self.processes.len() as u64) as usize;
        for number in self.processes.swap_remove(which) {
            self.simulation.kill(number);
            self.witness.forget(number);
        }
        self.kills += 1;
        self.start(|arbitration, _, _| {
            arbitration.membership().shared.retire_ended(|_| false).expect("whole");
        });
        self.start_process();
    }
}

/// One schedule. Two processes mostly park behind each other; more need the arbiter. Answers how it went, and how many
/// were killed.
fn simulate(seed: u64) -> (Played, u64) {
    let _no_looks = Simulated::begin();
    let (processes, tokens) = (2 + seed % 3, if seed.is_multiple_of(5) { 2 } else { 1 });
    let kills = if seed.is_multiple_of(8) { 0 } else { 25 };
    let place: TestRegistry<Registry> = TestRegistry::new(&format!("simulated-{seed}"));
    let sync = GpuSync { tokens, ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), clients: 16, ..Config::new(2, 1) };
    let arbitration = place.create("g", &config).expect("the name is free");
    let simulation = Simulation::new(seed, kills, 30, Box::new(|_| ()));
    let (witness, has_budgets) = (Arc::default(), seed.is_multiple_of(3));
    let mut scene = Scene { simulation, place: &place, witness, processes: Vec::new(), has_budgets, kills: 0 };
    (0..processes).for_each(|_| scene.start_process());
    while scene.simulation.go_on() == Pause::Event {
        scene.kill();
    }
    let snapshot = arbitration.snapshot().expect("whole");
    assert!(snapshot.clients.is_empty(), "{snapshot}");
    let client = arbitration.register("last", Base::Background).expect("there is room");
    drop(client.try_token().expect("it is free").execute_engine().expect("it is free"));
    (scene.simulation.played(), scene.kills)
}

#[test]
fn no_schedule_of_steps_and_kills_loses_a_grant_or_gives_a_lock_to_two() {
    schedules::play_all(1..81, 600_000, simulate);
}

/// By the fast path, just before the watcher of its budget closes that.
#[test]
fn a_holder_may_let_go_of_its_token_while_another_thread_finds_its_budget_exhausted() {
    simulate(1032);
}

#[test]
fn a_seed_repeats_its_schedule_to_the_last_step() {
    schedules::assert_repeats(903, simulate);
}

#[test]
#[ignore = "a quarter of a minute; make test-kill"]
fn none_of_many_schedules_loses_a_grant_or_gives_a_lock_to_two() {
    schedules::play_all(1000..1140, 1_200_000, simulate);
}
