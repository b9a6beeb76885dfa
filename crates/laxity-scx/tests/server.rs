//! Budgets in the kernel are those of laxity-policy: the C of `bpf/server.h` beside the server in Rust, on the same random events.

use laxity_model::{Instant, Nanos};
use laxity_policy::server::{Action, Config, Kind};
use laxity_scx::native::Server;
use laxity_testing::Random;

/// Both servers, and the time.
struct Twins {
    rust: Box<dyn laxity_policy::server::Server>,
    c: Server,
    period: u64,
    now: u64,
    actions: Vec<Action>,
}

impl Twins {
    fn new(budget: u64, period: u64) -> Twins {
        let config = Config { budget: Nanos(budget), period: Nanos(period), kind: Kind::HardCbs };
        let rust = config.build().expect("a server");
        Twins { rust, c: Server::new(budget), period, now: 0, actions: Vec::new() }
    }

    /// Work comes to both.
    fn wake(&mut self) {
        self.c.begin(self.period, self.now);
        self.rust.wake(Instant(self.now), &mut self.actions);
        self.compare();
    }

    /// Both execute for `span`, if they have a budget.
    fn execute(&mut self, span: u64) {
        if self.c.from() > self.now {
            return;
        }
        self.rust.run(Instant(self.now));
        self.now += span;
        self.c.charge(self.period, span, self.now);
        self.rust.stop(Instant(self.now), &mut self.actions);
        self.compare();
    }

    /// Time passes in which they have no CPU.
    fn pass(&mut self, span: u64) {
        self.now += span;
        if self.rust.next_timeout().is_some_and(|at| at.0 <= self.now) {
            self.rust.timeout(Instant(self.now), &mut self.actions);
        }
        self.compare();
    }

    /// What the one in Rust said last is so with the one in C.
    fn compare(&mut self) {
        for action in self.actions.drain(..) {
            match action {
                Action::Ready { deadline } => assert_eq!((deadline.0, true), (self.c.due(), self.c.from() <= self.now)),
                Action::Throttled { until } => assert_eq!(until.0, self.c.from()),
                Action::Replenished { budget, deadline } => {
                    assert_eq!((budget.0, deadline.0), (self.c.left(), self.c.due()));
                }
            }
        }
    }
}

/// Mostly short times, sometimes very long ones, and often those that matter.
fn span(random: &mut Random, twins: &Twins) -> u64 {
    let c = &twins.c;
    match random.below(6) {
        0 => c.left(),
        1 => c.due().saturating_sub(twins.now),
        2 => c.left().saturating_sub(1),
        3 => random.below(twins.period * 4) + 1,
        _ => random.below(twins.period) + 1,
    }
}

#[test]
fn budgets_in_c_are_those_of_the_policy() {
    // The longest are those of a year, whose products take 128 bits.
    for (periods, seed) in [10, 1_000, 1_000_000_000, 31_536_000_000_000_000_u64].into_iter().zip(1..) {
        let mut random = Random::of(seed);
        for _ in 0..300 {
            let period = random.below(periods) + 1;
            let budget = random.below(period) + 1;
            let mut twins = Twins::new(budget, period);
            for _ in 0..60 {
                // From time to time it has no work.
                if twins.now > u64::MAX / 64 {
                    break;
                }
                let gap = span(&mut random, &twins);
                twins.now += gap;
                twins.wake();
                for _ in 0..random.below(6) {
                    let length = span(&mut random, &twins);
                    if random.below(2) == 0 { twins.execute(length) } else { twins.pass(length) }
                }
                twins.rust.idle(Instant(twins.now));
            }
        }
    }
}

#[test]
fn a_task_uses_no_more_than_its_budgets_however_it_is_called() {
    let (budget, period) = (3, 10);
    let (mut server, mut used, mut now) = (Server::new(budget), 0, 100);
    server.begin(period, now);
    for _ in 0..1_000 {
        now = now.max(server.from()) + 1;
        server.charge(period, 1, now);
        used += 1;
        let span = now - 100;
        assert!(used <= 2 * budget + span * budget / period, "{used} in {span}");
    }
}
