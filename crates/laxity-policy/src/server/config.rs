//! What a server may use, and by which rules.

use laxity_model::{Nanos, ServerKind};
use serde::{Deserialize, Serialize};

use super::{Cbs, Server, SporadicServer};

/// Configuration of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Q: what it may run in a period.
    pub budget: Nanos,
    /// P.
    pub period: Nanos,
    /// The rules.
    pub kind: Kind,
}

/// The rules of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Constant bandwidth server that goes on with a later deadline when its budget is exhausted.
    SoftCbs,
    /// Constant bandwidth server that is throttled until its deadline when its budget is exhausted.
    HardCbs,
    /// Sporadic server.
    Sporadic {
        /// Most replenishments that may be pending, at least 1.
        replenishments: u16,
    },
}

/// Replenishments of a sporadic server that may be pending, where none are said: as many as keep interrupts that come one by
/// one apart, and more than POSIX guarantees (`_POSIX_SS_REPL_MAX`, 4).
const REPLENISHMENTS: u16 = 32;

impl From<ServerKind> for Kind {
    fn from(kind: ServerKind) -> Kind {
        match kind {
            ServerKind::CbsHard => Kind::HardCbs,
            ServerKind::CbsSoft => Kind::SoftCbs,
            ServerKind::Sporadic => Kind::Sporadic { replenishments: REPLENISHMENTS },
        }
    }
}

/// Why there is no such server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No budget, or more than a period.
    #[error("server budget {budget} in period {period}; it must be above 0 and at most the period")]
    Budget {
        /// Q.
        budget: Nanos,
        /// P.
        period: Nanos,
    },
    /// A sporadic server that can never be replenished.
    #[error("0 pending replenishments; a sporadic server needs at least 1 to get its budget back")]
    NoReplenishments,
}

impl Config {
    /// The server, idle.
    pub fn build(self) -> Result<Box<dyn Server>, ConfigError> {
        if self.budget.is_zero() || self.budget > self.period {
            return Err(ConfigError::Budget { budget: self.budget, period: self.period });
        }
        Ok(match self.kind {
            Kind::SoftCbs => Box::new(Cbs::soft(self.budget, self.period)),
            Kind::HardCbs => Box::new(Cbs::hard(self.budget, self.period)),
            Kind::Sporadic { replenishments: 0 } => return Err(ConfigError::NoReplenishments),
            Kind::Sporadic { replenishments } => {
                Box::new(SporadicServer::new(self.budget, self.period, replenishments.into()))
            }
        })
    }
}
