//! What a thread requests, and why it is not granted.

use std::fmt;

use laxity_model::{Engine, Instant, Nanos};

use crate::state_lock::StateError;

/// A request for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRequest {
    /// The only GPU that will do; `None`: any.
    pub gpu: Option<u16>,
    /// Bound on how long the token will be held, for the prediction of waiting times.
    pub length: Nanos,
    /// How long to wait: [`Instant::NEVER`] to wait for ever, [`Instant::ZERO`] not to wait at all.
    pub deadline: Instant,
}

impl Default for TokenRequest {
    fn default() -> Self {
        TokenRequest { gpu: None, length: Nanos::ZERO, deadline: Instant::NEVER }
    }
}

/// What can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A token of any GPU, or of this one.
    Token {
        /// The only one that will do.
        gpu: Option<u16>,
    },
    /// An engine.
    Engine {
        /// Of this GPU.
        gpu: u16,
        /// Which.
        engine: Engine,
    },
}

/// Why nothing was granted.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The deadline passed, or the resource was not free and the request had no time to wait.
    #[error("{what}: not granted in time; wait longer or try again")]
    TimedOut {
        /// What was requested.
        what: Resource,
    },
    /// There is no such GPU.
    #[error("GPU {gpu}: the arbitration has {gpus}, counted from 0; ask for one of them")]
    NoSuchGpu {
        /// The GPU that was requested.
        gpu: u16,
        /// How many there are.
        gpus: u16,
    },
    /// A copy from a GPU to itself occupies no copy engine.
    #[error("copy from GPU {gpu} to itself: occupies no copy engine; take the execution engine")]
    SameGpu {
        /// Which.
        gpu: u16,
    },
    /// This thread holds it, or a token, or an engine that comes later.
    #[error(
        "{what}: this thread holds it or what comes after it; take a token, then engines in the order of GPUs and of EE, \
         CE0, CE1"
    )]
    Order {
        /// What was requested.
        what: Resource,
    },
    /// The thread is in no section of the bandwidth lock.
    #[error("the bandwidth lock: this thread is in no section that could end; lock it before")]
    NoSection,
    /// This process was forked from the one that registered.
    #[error("this process was forked from the one that registered; attach and register here")]
    Forked,
    /// The state of the arbitration.
    #[error("{0}")]
    State(#[source] StateError),
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Token { gpu: None } => write!(f, "a token of any GPU"),
            Resource::Token { gpu: Some(gpu) } => write!(f, "a token of GPU {gpu}"),
            Resource::Engine { gpu, engine } => write!(f, "engine {} of GPU {gpu}", engine.name()),
        }
    }
}
