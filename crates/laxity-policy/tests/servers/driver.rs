//! A driver for one server: work arrives, the CPU is there or not, time passes in units of 1 ns.

use laxity_model::{Instant, Nanos};
use laxity_policy::server::{Action, Config, Kind, Server};

/// A budget that was given: when, how much, by when it is due, and what was used of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    pub at: u64,
    pub budget: u64,
    pub deadline: u64,
    pub used: u64,
}

/// What a server did.
pub struct Run {
    /// `#` it ran, `:` it was ready, `x` throttled, `.` idle; a character for each unit of time.
    pub drawn: String,
    pub given: Vec<Given>,
    pub actions: Vec<(u64, Action)>,
}

impl Run {
    /// Whether it ran, for each unit of time.
    pub fn served(&self) -> Vec<bool> {
        self.drawn.bytes().map(|it| it == b'#').collect()
    }
}

pub fn server(budget: u64, period: u64, kind: Kind) -> Box<dyn Server> {
    Config { budget: Nanos(budget), period: Nanos(period), kind }.build().expect("a sound configuration")
}

/// Runs `server`, to which `work(now)` units of work arrive at `now`, where `has_cpu(now)` says whether it gets the
/// CPU.
pub fn run(
    mut server: Box<dyn Server>,
    horizon: u64,
    mut work: impl FnMut(u64) -> u64,
    mut has_cpu: impl FnMut(u64) -> bool,
) -> Run {
    let mut run = Run { drawn: String::new(), given: Vec::new(), actions: Vec::new() };
    let (mut left, mut is_throttled, mut runs) = (0, false, false);
    let mut actions = Vec::new();
    for tick in 0..horizon {
        let now = Instant(tick);
        if runs && left == 0 {
            server.idle(now);
            runs = false;
        }
        let gets_cpu = has_cpu(tick);
        if runs && !gets_cpu {
            server.stop(now, &mut actions);
            runs = false;
        }
        while server.next_timeout().is_some_and(|at| at <= now) {
            server.timeout(now, &mut actions);
        }
        let arriving = work(tick);
        if left == 0 && arriving > 0 {
            server.wake(now, &mut actions);
        }
        left += arriving;
        for action in actions.drain(..) {
            run.actions.push((tick, action));
            match action {
                Action::Throttled { until } => {
                    assert!(until > now, "throttled until a time to come");
                    (is_throttled, runs) = (true, false);
                }
                Action::Ready { deadline } => {
                    is_throttled = false;
                    assert_eq!(run.given.last().map(|given| given.deadline), Some(deadline.0), "one deadline");
                }
                Action::Replenished { budget, deadline } => {
                    run.given.push(Given { at: tick, budget: budget.0, deadline: deadline.0, used: 0 });
                }
            }
        }
        server.assert_invariants();
        if left > 0 && !is_throttled && gets_cpu && !runs {
            server.run(now);
            runs = true;
        }
        if runs {
            left -= 1;
            run.given.last_mut().expect("it runs on a budget").used += 1;
        }
        run.drawn.push(match (left > 0, is_throttled) {
            _ if runs => '#',
            (true, true) => 'x',
            (true, false) => ':',
            (false, _) => '.',
        });
    }
    run
}
