//! The holders and waiters of all locks: the registry of GPU owners (paper 000, section IV).

use std::fmt;
use std::sync::atomic::Ordering;

use laxity_model::text::printable;
use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::lock::{Arbiter, Standing};
use serde::Serialize;

use crate::activity::Activity;
use crate::arbiter_cache::ArbiterCache;
use crate::arbitration::Base;
use crate::config::{Config, TOKEN};
use crate::follower_state::FollowerState;
use crate::layout::NAME_MAX;
use crate::shared::Shared;
use crate::state_lock::StateError;

/// An arbitration at one moment. (The owners of an open lock and its waiter may be those of an instant later or earlier
/// than the rest.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The name of the arbitration.
    pub name: String,
    /// What is arbitrated.
    pub config: Config,
    /// The registered threads, ascending by their number.
    pub clients: Vec<ClientState>,
    /// The tokens: token `r` belongs to GPU `r` modulo the GPUs.
    pub tokens: LockState,
    /// The engines of each GPU, in the order of [`Config::engines`].
    pub engines: Vec<Vec<LockState>>,
    /// The threads that work on behalf of holders, as Linux schedules them just after the rest was read.
    pub followers: Vec<FollowerState>,
}

/// A registered thread. Serialized, it is a client of the JSON that `docs/reference/json.md` describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClientState {
    /// What holders, waiters and donees are called in this snapshot.
    #[serde(rename = "client")]
    pub id: TaskId,
    /// As it registered.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub thread: u32,
    /// How urgent it is by itself.
    pub base: Base,
    /// And with what it inherits.
    pub effective: Base,
    /// The client that it inherits from, at the end of the chain.
    pub inherits_from: Option<TaskId>,
    /// While it holds the bandwidth lock: what it leaves to each regulated CPU, bytes a second.
    pub bandwidth: Option<u64>,
    /// What it said of its operations.
    #[serde(flatten)]
    pub activity: Activity,
    /// Why Linux did not let it be raised when it inherited last: an error number.
    #[serde(rename = "refused_errno")]
    pub refused: Option<i32>,
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockState {
    /// The holder of each of its replicas.
    pub holders: Vec<Option<TaskId>>,
    /// The waiters and where each waits, those of a queue in its order.
    pub waiting: Vec<(TaskId, Standing)>,
}

impl Snapshot {
    pub(crate) fn of(shared: &Shared) -> Result<Snapshot, StateError> {
        let arbiter = Arbiter::new(shared.config.clients.into(), &shared.config.locks());
        let mut cache = ArbiterCache::new(arbiter, shared.locks.len(), shared.config.clients);
        let snapshot = cache.peek(shared, |cache| Self::read(shared, cache)).map_err(StateError::Damaged)?;
        // Linux is asked once, not each time that the state changed meanwhile.
        Ok(Snapshot { followers: FollowerState::all(shared), ..snapshot })
    }

    fn read(shared: &Shared, cache: &mut ArbiterCache) -> Snapshot {
        // As if the arbiter decided about all.
        for lock in shared.lock_ids() {
            if cache.is_open(lock) {
                cache.adopt(shared, Instant::ZERO, lock);
            }
        }
        let cache = &*cache;
        let lock = |lock| LockState::read(shared, cache, lock);
        let engines = |gpu| {
            let engines = shared.config.engines().iter();
            engines.map(|&engine| lock(shared.config.engine_lock(gpu, engine))).collect()
        };
        Snapshot {
            name: shared.name.clone(),
            config: shared.config,
            clients: shared.tasks().filter_map(|task| ClientState::read(shared, cache, task)).collect(),
            tokens: lock(TOKEN),
            engines: (0..shared.config.gpus).map(engines).collect(),
            followers: Vec::new(),
        }
    }

    /// The thread called `id`.
    pub fn client(&self, id: TaskId) -> Option<&ClientState> {
        self.clients.iter().find(|client| client.id == id)
    }
}

impl ClientState {
    fn read(shared: &Shared, cache: &ArbiterCache, id: TaskId) -> Option<ClientState> {
        if !cache.is_registered(id) {
            return None;
        }
        // Tasks unknown to the arbiter neither inherit nor lend.
        let known = cache.arbiter.base(id).zip(cache.arbiter.priority(id));
        let (base, effective) = known.unwrap_or((shared.published_base(id), shared.published_base(id)));
        let words = shared.client(id);
        let number = |offset| shared.segment.u32(offset).load(Ordering::Relaxed);
        let length = (number(words.name_length) as usize).min(NAME_MAX);
        let name = shared.segment.load_bytes(words.name..words.name + length);
        Some(ClientState {
            id,
            name: String::from_utf8_lossy(&name).into_owned(),
            pid: number(words.pid),
            thread: number(words.thread),
            base: Base::of_level(base.major),
            effective: Base::of_level(effective.major),
            // Ties are broken by the task whose priority it is.
            inherits_from: (base != effective).then_some(TaskId(effective.tie)),
            bandwidth: shared.bandwidth_of(id),
            activity: shared.activity(id),
            refused: Some(number(words.refused) as i32).filter(|&error| error != 0),
        })
    }
}

impl LockState {
    /// Whether it, or one of its replicas, is held.
    pub fn is_held(&self) -> bool {
        self.holders.iter().any(Option::is_some)
    }

    fn read(shared: &Shared, cache: &ArbiterCache, lock: LockId) -> LockState {
        let replicas = shared.replicas(lock);
        let mut waiting = Vec::new();
        cache.arbiter.standings(lock, |task, standing| waiting.push((task, standing)));
        LockState { holders: replicas.map(|replica| cache.arbiter.holder(lock, replica)).collect(), waiting }
    }
}

impl fmt::Display for Snapshot {
    /// A line for each token and each engine, then one for each client and each thread that follows holders.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot { name, config, clients, tokens, engines, followers } = self;
        let waiting: usize = engines.iter().flatten().chain([tokens]).map(|lock| lock.waiting.len()).sum();
        writeln!(f, "{name}: {} GPUs, {} clients, {waiting} waiting", config.gpus, clients.len())?;
        for (gpu, engines) in engines.iter().enumerate() {
            let of_gpu = tokens.holders.iter().enumerate().skip(gpu).step_by(config.gpus.into());
            for (replica, &holder) in of_gpu {
                let queued = self.names(tokens, Standing::Fifo(ReplicaId(replica as u16)));
                writeln!(f, "  GPU {gpu} token {:<3} {:<16} {queued}", replica, self.name(holder))?;
            }
            for (engine, lock) in config.engines().iter().zip(engines) {
                let queued = self.names(lock, Standing::Queue);
                writeln!(f, "  GPU {gpu} {:<9} {:<16} {queued}", engine.name(), self.name(lock.holders[0]))?;
            }
        }
        self.write_outside(f)?;
        for ClientState { id, name, pid, thread, base, effective, inherits_from, bandwidth, activity, refused } in
            clients
        {
            write!(f, "  {id} {name}: process {pid}, thread {thread}, priority {base}")?;
            if let Some(operation) = &activity.operation {
                write!(f, ", last {}", printable(operation))?;
            }
            if let Some(from) = inherits_from {
                write!(f, ", inherits {effective} from {}", self.name(Some(*from)))?;
            }
            if let Some(budget) = bandwidth {
                write!(f, ", holds the bandwidth lock with {}", laxity_model::write_rate(*budget))?;
            }
            if let Some(error) = refused {
                let error = std::io::Error::from_raw_os_error(*error);
                write!(f, ", which Linux refused: {error}")?;
            }
            writeln!(f)?;
        }
        for FollowerState { gpu, pid, thread, name, priority, refused } in followers {
            write!(f, "  {name} follows holders of GPU {gpu}: process {pid}, thread {thread}")?;
            match priority {
                Some(priority) => write!(f, ", priority {priority}")?,
                None => write!(f, ", no fixed priority")?,
            }
            if let Some(error) = refused {
                let error = std::io::Error::from_raw_os_error(*error);
                write!(f, ", another was refused by Linux: {error}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl Snapshot {
    fn write_outside(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(task, standing) in &self.tokens.waiting {
            match standing {
                Standing::Queue | Standing::Fifo(_) => {}
                Standing::Outside => writeln!(f, "  outside          {}", self.name(Some(task)))?,
                Standing::Donor { donee } => {
                    writeln!(f, "  outside          {} donates to {}", self.name(Some(task)), self.name(Some(donee)))?;
                }
            }
        }
        Ok(())
    }

    /// The names of the waiters there.
    fn names(&self, lock: &LockState, standing: Standing) -> String {
        let there = lock.waiting.iter().filter(|(_, at)| *at == standing);
        let names: Vec<String> = there.map(|&(task, _)| self.name(Some(task))).collect();
        if names.is_empty() { String::new() } else { format!("< {}", names.join(", ")) }
    }

    fn name(&self, task: Option<TaskId>) -> String {
        let Some(task) = task else { return "-".to_owned() };
        self.client(task).map_or_else(|| task.to_string(), |client| client.name.clone())
    }
}
