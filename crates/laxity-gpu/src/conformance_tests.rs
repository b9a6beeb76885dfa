//! Random requests through the live arbitration and, side by side, through the pure arbiter that the simulator uses:
//! the same grants, in the same order, the same queues and the same effective priorities.

use laxity_model::{EngineOrder, GpuArbitration, GpuSync, Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Arbiter, Event};
use laxity_testing::TestRegistry;
use proptest::prelude::*;

use crate::arbiter_cache::ArbiterCache;
use crate::client::Client;
use crate::config::{Config, TOKEN};
use crate::request::{LockError, Resource, TokenRequest};
use crate::{Arbitration, Base, Registry};

const CLIENTS: usize = 9;

fn config() -> impl Strategy<Value = Config> {
    let sync = (1..4_u32, prop::option::of(1..4_u32), prop::option::of(1..9_u32), any::<bool>()).prop_map(
        |(tokens, fifo_length, fifo_requests, is_fifo)| {
            let engine_order = if is_fifo { EngineOrder::Fifo } else { EngineOrder::Priority };
            GpuArbitration::GpuSync(GpuSync { tokens, fifo_length, fifo_requests, engine_order, ..GpuSync::DEFAULT })
        },
    );
    let arbitration = prop_oneof![
        1 => any::<bool>().prop_map(|length_aware| GpuArbitration::KFmlp { length_aware }),
        3 => sync,
    ];
    // Up to 12 tokens: more than one word of owners says.
    (1..6_u16, 1..5_u16, 1..3_u8, arbitration).prop_map(|(cpus, gpus, copy_engines, arbitration)| Config {
        copy_engines,
        arbitration,
        clients: CLIENTS as u16,
        ..Config::new(cpus, gpus)
    })
}

/// What a client is to do next, if it can.
#[derive(Clone, Copy, Debug)]
struct Step {
    client: usize,
    gives_up: bool,
    lock: usize,
    length: u64,
    only: Option<u16>,
    tries: bool,
    /// The budget of its job is exhausted, and replenished at once.
    exhausts: bool,
    /// Another process took part meanwhile: what this one remembers is old.
    forgets: bool,
    /// Its next job, with this priority, begins if it holds nothing and waits for nothing.
    begins: Option<u8>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let only = prop_oneof![3 => Just(None), 1 => (0..4_u16).prop_map(Some)];
    let few = || prop::bool::weighted(0.15);
    let step = (0..CLIENTS, prop::bool::weighted(0.4), 0..6_usize, 0..9_u64, only, few(), few(), few());
    let step = (step, prop::option::weighted(0.3, 1..=5_u8));
    let step = step.prop_map(|((client, gives_up, lock, length, only, tries, exhausts, forgets), begins)| Step {
        client,
        gives_up,
        lock,
        length,
        only,
        tries,
        exhausts,
        forgets,
        begins,
    });
    prop::collection::vec(step, 0..120)
}

/// Live and pure, side by side.
struct Both<'a> {
    config: Config,
    arbitration: &'a Arbitration,
    clients: Vec<Client>,
    pure: Arbiter,
    now: Instant,
}

impl Both<'_> {
    fn step(&mut self, step: Step) {
        let task = TaskId(step.client as u32);
        self.now += Nanos(1);
        if step.forgets {
            self.clients[0].shared().cache.lock().expect("no thread panicked").version = None;
        }
        let held: Vec<LockId> = self.pure.holds(task).map(|(lock, _)| lock).collect();
        if let Some(base) = step.begins.filter(|_| held.is_empty() && self.pure.waits_for(task).is_none()) {
            self.clients[step.client].rebase(Base::Fixed(base)).expect("how Linux schedules it stays the same");
            self.expect(Event::Rebase { priority: Priority::of(Base::Fixed(base).level(), task) }, None);
        }
        if step.exhausts {
            return self.exhaust(task);
        }
        if let Some(lock) = self.pure.waits_for(task) {
            if step.gives_up {
                assert_eq!(self.clients[step.client].give_up(lock).expect("whole"), None, "it was not granted");
                self.expect(Event::Withdraw { task, lock }, None);
            }
        } else if step.gives_up {
            let Some(&lock) = held.last() else { return };
            let (_, replica) = self.pure.holds(task).find(|&(held, _)| held == lock).expect("it is held");
            self.clients[step.client].release(lock, replica);
            self.expect(Event::Unlock { task, lock }, None);
        } else {
            let lock =
                if held.is_empty() { TOKEN } else { LockId((1 + step.lock % (self.config.locks().len() - 1)) as u16) };
            if held.iter().all(|&held| held < lock) {
                self.request(task, lock, step);
            }
        }
    }

    /// By the rules of `laxity_policy::lock::budget`.
    fn exhaust(&mut self, task: TaskId) {
        let (budget, waits) = (self.clients[task.index()].budget(), self.pure.waits_for(task));
        let holds = self.pure.holds(task).any(|(lock, _)| lock == TOKEN);
        budget.exhaust().expect("whole");
        if holds {
            self.expect(Event::Overrun { task, lock: TOKEN }, None);
        } else if let Some(lock) = waits {
            self.expect(Event::Withdraw { task, lock }, None);
        }
        self.now += Nanos(1);
        budget.replenish().expect("whole");
        if let Some(lock) = waits.filter(|_| !holds) {
            let (length, only) = self.clients[task.index()].shared().published_request(task, lock);
            self.expect(Event::Request { task, lock, length, only }, None);
        }
    }

    fn request(&mut self, task: TaskId, lock: LockId, step: Step) {
        let (only, length) = match lock {
            TOKEN => (step.only.map(|gpu| gpu % self.config.gpus), Nanos(step.length)),
            _ => (None, Nanos::ZERO),
        };
        let deadline = if step.tries { Instant::ZERO } else { Instant::NEVER };
        let what = Resource::Token { gpu: only };
        let asked = self.clients[step.client].request_lock(lock, TokenRequest { gpu: only, length, deadline }, what);
        let request = Event::Request { task, lock, length, only };
        match asked {
            Ok(granted) => self.expect(request, granted.map(|replica| (task, lock, replica))),
            Err(LockError::TimedOut { .. }) => {
                assert!(step.tries);
                self.expect(request, None);
                assert_eq!(self.pure.waits_for(task), Some(lock), "the pure arbiter would have granted it");
                self.expect(Event::Withdraw { task, lock }, None);
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The pure arbiter handles `event`, and grants what was granted live.
    fn expect(&mut self, event: Event, mut told: Option<(TaskId, LockId, ReplicaId)>) {
        let mut actions = Vec::new();
        self.pure.handle(self.now, event, &mut actions);
        for action in actions {
            let Action::Grant { task, lock, replica } = action else { continue };
            let live = told.take().or_else(|| Some((task, lock, self.clients[task.index()].granted()?)));
            assert_eq!(live, Some((task, lock, replica)));
        }
        assert_eq!(told, None, "granted live only");
    }

    /// The priority of `task` in the live arbiter, which is the one that it really runs at. The arbiter knows nothing of
    /// parked waiters.
    fn known(&self, task: TaskId) -> u64 {
        let shared = self.clients[0].shared();
        let mut cache =
            ArbiterCache::new(Arbiter::new(CLIENTS, &self.config.locks()), shared.locks.len(), CLIENTS as u16);
        let known = cache.peek(shared, |cache| cache.arbiter.priority(task)).expect("whole");
        known.unwrap_or(shared.published_base(task)).major
    }

    /// A snapshot shows the same.
    fn check(&self) {
        let snapshot = self.arbitration.snapshot().expect("whole");
        let engines = snapshot.engines.iter().flatten();
        for (index, lock) in [&snapshot.tokens].into_iter().chain(engines).enumerate() {
            let id = LockId(index as u16);
            let holders = (0..lock.holders.len() as u16).map(|replica| self.pure.holder(id, ReplicaId(replica)));
            assert!(lock.holders.iter().copied().eq(holders), "{id:?} has other holders");
            let mut waiting = Vec::new();
            self.pure.standings(id, |task, standing| waiting.push((task, standing)));
            assert_eq!(lock.waiting, waiting, "{id:?}");
        }
        for client in &snapshot.clients {
            let pure = self.pure.priority(client.id).expect("pending");
            assert_eq!(client.effective.level(), pure.major, "{}", client.name);
            let lender = (self.pure.base(client.id) != Some(pure)).then_some(TaskId(pure.tie));
            assert_eq!(client.inherits_from, lender, "{}", client.name);
            assert_eq!(self.known(client.id), pure.major, "{} is as urgent as its waiters need", client.name);
        }
        assert!(self.clients.iter().all(|client| client.granted().is_none()), "granted live only");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn live_and_pure_grant_the_same_in_the_same_order(
        config in config(),
        bases in prop::collection::vec(1..=5_u8, CLIENTS),
        steps in steps(),
    ) {
        let place: TestRegistry<Registry> = TestRegistry::new("conformance");
        let arbitration = place.create("g", &config).expect("the name is free");
        let mut pure = Arbiter::new(CLIENTS, &config.locks());
        let mut clients = Vec::new();
        for (task, &base) in bases.iter().enumerate() {
            let client = arbitration.register(&format!("c{task}"), Base::Fixed(base)).expect("there is room");
            prop_assert_eq!(client.id(), TaskId(task as u32));
            clients.push(client);
            let priority = Priority::of(Base::Fixed(base).level(), TaskId(task as u32));
            pure.handle(Instant::ZERO, Event::Pending { priority }, &mut Vec::new());
        }
        let mut both = Both { config, arbitration: &arbitration, clients, pure, now: Instant(1) };
        for step in steps {
            both.step(step);
            both.check();
        }
        // Whatever they hold goes with the clients.
        both.clients.clear();
        let snapshot = arbitration.snapshot().expect("whole");
        prop_assert!(snapshot.clients.is_empty());
        prop_assert!(!snapshot.engines.iter().flatten().chain([&snapshot.tokens]).any(|lock| lock.is_held()));
    }
}
