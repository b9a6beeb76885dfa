//! Blocking under GPUSync: tokens and engine locks, suspension-oblivious. Elliott, Ward & Anderson, RTSS 2013; the
//! bounds are derived for the protocol as the simulator implements it, and checked against it.
//!
//! A cluster has c CPUs and g GPUs of rho tokens each, so `K = rho * g` replicas with a FIFO queue of at most f
//! requests (holder included); overflow waits in a priority queue, with donors.
//!
//! **Displaced requests.** The bounds on token blocking hold for a request that, from when it is among the c highest
//! unfinished requests of its cluster, remains so until it has a place in a FIFO queue or a token. A request in the
//! priority queue that c higher ones come to precede is *displaced*: it donates no longer, another takes the place that
//! would have been its own, and it begins anew when it is among the c highest again. Each time may cost
//! [`displacement_requests`](TokenConfiguration::displacement_requests) more. Few systems show it: six in a million
//! random ones.

use crate::exact::sign_of_sum;
use std::cmp::Ordering;

/// Sizes of a cluster's token allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenConfiguration {
    /// CPUs of the cluster, c.
    pub cpus: u32,
    /// GPUs of the cluster, g.
    pub gpus: u32,
    /// Tokens per GPU, rho.
    pub tokens: u32,
    /// Longest FIFO queue, holder included, f.
    pub fifo: u32,
}

/// Why there is no bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuSyncError {
    /// A size is zero.
    #[error("cpus, gpus, tokens and fifo length must be at least 1")]
    Zero,
    /// The FIFO queues together hold fewer requests than there are CPUs: no bound is known.
    #[error("the fifo queues hold {places} requests for {cpus} cpus; lengthen them or add tokens")]
    ShortFifos {
        /// What they hold, rho * g * f.
        places: u64,
        /// CPUs of the cluster.
        cpus: u32,
    },
}

/// An engine-lock bound under priority order did not settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operations of higher priority may keep the engine busy for ever; use fifo order")]
pub struct Unbounded;

impl TokenConfiguration {
    /// The configuration in which the FIFO queues together hold exactly one request per CPU, as many as matter under
    /// suspension-oblivious analysis; `None` unless `rho * g` divides c.
    pub fn balanced(cpus: u32, gpus: u32, tokens: u32) -> Option<Self> {
        let replicas = gpus.checked_mul(tokens).filter(|&replicas| replicas > 0)?;
        (cpus > 0 && cpus.is_multiple_of(replicas)).then(|| Self { cpus, gpus, tokens, fifo: cpus / replicas })
    }

    /// Requests that may block one token request that is not displaced: a donor phase of at most f critical sections,
    /// then at most f - 1 in the FIFO, so `2 f - 1`. `requesters` tasks ever request; queues longer than
    /// `ceil(requesters / K)` never fill.
    ///
    /// # Errors
    /// [`GpuSyncError`] if a size is 0 or the queues hold fewer than c requests.
    pub fn blocking_requests(&self, requesters: usize) -> Result<u64, GpuSyncError> {
        if [self.cpus, self.gpus, self.tokens, self.fifo].contains(&0) {
            return Err(GpuSyncError::Zero);
        }
        let replicas = u64::from(self.gpus) * u64::from(self.tokens);
        let places = replicas.saturating_mul(self.fifo.into());
        if places < u64::from(self.cpus) {
            return Err(GpuSyncError::ShortFifos { places, cpus: self.cpus });
        }
        Ok(2 * self.filled(requesters, replicas) - 1)
    }

    /// Requests that may block a token request in addition each time it is displaced: another donor phase, so f.
    ///
    /// # Errors
    /// As [`blocking_requests`](Self::blocking_requests).
    pub fn displacement_requests(&self, requesters: usize) -> Result<u64, GpuSyncError> {
        Ok(self.blocking_requests(requesters)?.div_ceil(2))
    }

    /// Blocking of a token request that is not displaced, in ticks, coarse: every blocking request may be the longest.
    ///
    /// # Errors
    /// As [`blocking_requests`](Self::blocking_requests).
    pub fn token_blocking(&self, longest: u64, requesters: usize) -> Result<u128, GpuSyncError> {
        Ok(u128::from(self.blocking_requests(requesters)?) * u128::from(longest))
    }

    /// Blocking of a token request of task `own` that is not displaced, in ticks, fine: the longest holds of other tasks,
    /// one of each. Valid if no other task can issue a second request while this one waits.
    ///
    /// # Errors
    /// As [`blocking_requests`](Self::blocking_requests).
    pub fn token_blocking_fine(&self, holds: &[u64], own: usize) -> Result<u128, GpuSyncError> {
        let requests = self.blocking_requests(holds.iter().filter(|&&hold| hold > 0).count())?;
        let others = holds.iter().enumerate().filter(|&(task, _)| task != own);
        Ok(largest(others.map(|(_, &hold)| hold).collect(), requests))
    }

    /// How many requests there ever are in a queue: where queues never fill, no request donates and fewer are ahead.
    fn filled(&self, requesters: usize, replicas: u64) -> u64 {
        u64::from(self.fifo).min((requesters as u64).div_ceil(replicas).max(1))
    }
}

/// Engine blocking of one operation of task `own` under FIFO order, in ticks: of the other token holders of that GPU,
/// at most rho - 1, each has at most one operation ahead, its longest on that engine. 0 for one token.
pub fn engine_blocking_fifo(longest_operations: &[u64], own: usize, tokens: u32) -> u128 {
    let others = longest_operations.iter().enumerate().filter(|&(task, _)| task != own);
    largest(others.map(|(_, &operation)| operation).collect(), u64::from(tokens.saturating_sub(1)))
}

/// What no blocking comes near that means anything; leaves room for sums.
const BLOCKING_MAX: u128 = 1 << 100;

/// A task of higher priority that competes for an engine, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EngineCompetitor {
    /// Its operations on the engine in one job, in all.
    pub operations: u64,
    /// Its period.
    pub period: u64,
    /// Its response-time bound.
    pub response_time: u64,
}

/// Engine blocking of one operation of length `operation` under priority order, in ticks: the longest operation of
/// lower priority, then everything higher priorities may issue in the window, by fixed point:
/// `B = lower + sum ceil((B + operation + R_j) / p_j) * operations_j`. In the worst case worse than FIFO.
///
/// # Errors
/// [`Unbounded`] if higher priorities may keep the engine busy for ever, or for 2^100 ticks.
pub fn engine_blocking_priority(operation: u64, lower: u64, higher: &[EngineCompetitor]) -> Result<u128, Unbounded> {
    let load = higher.iter().map(|task| (i128::from(task.operations), u128::from(task.period.max(1))));
    if sign_of_sum(load.chain([(-1, 1)])) != Ordering::Less {
        return Err(Unbounded);
    }
    let mut blocking = u128::from(lower);
    loop {
        let window = |task: &EngineCompetitor| blocking + u128::from(operation) + u128::from(task.response_time);
        let demand = |task: &EngineCompetitor| {
            window(task).div_ceil(u128::from(task.period.max(1))).saturating_mul(u128::from(task.operations))
        };
        let next = higher.iter().map(demand).fold(u128::from(lower), u128::saturating_add);
        if next > BLOCKING_MAX {
            return Err(Unbounded);
        }
        if next <= blocking {
            return Ok(blocking);
        }
        blocking = next;
    }
}

/// How long a job holds a token, in ticks (saturating): CPU time inside the section, each operation with its blocking, and
/// `dispatch` for each suspension around an operation.
pub fn token_hold(cpu: u64, operations: &[(u64, u128)], dispatch: u64) -> u128 {
    let operation =
        |&(length, blocking): &(u64, u128)| blocking.saturating_add(u128::from(length) + u128::from(dispatch));
    operations.iter().map(operation).fold(u128::from(cpu), u128::saturating_add)
}

fn largest(mut values: Vec<u64>, count: u64) -> u128 {
    values.sort_unstable_by(|a, b| b.cmp(a));
    values.into_iter().take(usize::try_from(count).unwrap_or(usize::MAX)).map(u128::from).sum()
}
