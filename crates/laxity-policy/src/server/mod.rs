//! Bandwidth servers: work of unknown arrival and length that may not take more than a budget in every period.
//!
//! ```text
//!            wake                run                    budget exhausted
//!  (idle) ----------> (ready) <-------> (runs) ------------------------------> (throttled)
//!    ^     no budget: throttled   stop    |         soft: goes on, later deadline    |
//!    +------------------------------------+                                          |
//!                    idle                       (ready) <----------------------------+
//!                                                                     timeout
//! ```

mod budget;
mod cbs;
mod config;
mod sporadic;

pub use budget::{Budget, ServerLevel};
pub use cbs::Cbs;
pub use config::{Config, ConfigError, Kind};
pub use sporadic::SporadicServer;

use laxity_model::{Instant, Nanos};

/// What follows from an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The server has work and budget: it competes with this deadline from now on. If it runs, it goes on.
    Ready {
        /// Absolute deadline.
        deadline: Instant,
    },
    /// The server has no budget left: it loses the CPU if it had it, without [`Server::stop`].
    Throttled {
        /// When it will have some.
        until: Instant,
    },
    /// The server was given a budget to use by a deadline.
    Replenished {
        /// What it may run before it is throttled or its deadline is postponed.
        budget: Nanos,
        /// Absolute deadline.
        deadline: Instant,
    },
}

/// A bandwidth server. The driver tells it of its work and of the CPU, and calls [`Server::timeout`] when asked to; a
/// timeout that comes late finds the server overrun, which is paid back later. `now` never decreases. Of one instant
/// come first `idle` and `stop`, then timeouts, then `wake` and `run`.
///
/// A call that does not fit the server's state (`wake` though it has work, `stop` though it does not run) does nothing.
pub trait Server: std::fmt::Debug + Send {
    /// Work arrived at an idle server.
    fn wake(&mut self, now: Instant, actions: &mut Vec<Action>);

    /// The server, which is ready, gets the CPU.
    fn run(&mut self, now: Instant);

    /// It loses the CPU and still has work.
    fn stop(&mut self, now: Instant, actions: &mut Vec<Action>);

    /// It has no more work; the CPU is taken from it if it had it.
    fn idle(&mut self, now: Instant);

    /// When the server must be told the time, as things stand.
    fn next_timeout(&self) -> Option<Instant>;

    /// The budget is exhausted, or there is one again.
    fn timeout(&mut self, now: Instant, actions: &mut Vec<Action>);

    /// Panics if an invariant does not hold; for tests and fuzzing.
    fn assert_invariants(&self);
}

/// What a server does. Throttled implies that there is work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Ready,
    Runs { since: Instant },
    Throttled,
}
