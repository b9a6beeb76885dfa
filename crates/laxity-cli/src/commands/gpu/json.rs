//! An arbitration as JSON.

use laxity_gpu::{Base, ClientState, FollowerState, LockState, Snapshot, Standing};
use laxity_model::{Instant, ReplicaId, TaskId};
use serde::Serialize;

use super::view;

/// The fields are described in `docs/reference/json.md` and are stable. Clients are numbers.
#[derive(Serialize)]
struct Look<'a> {
    laxity: &'static str,
    arbitration: &'a str,
    at_ns: u64,
    gpus: Vec<Gpu>,
    outside: Vec<u32>,
    donors: Vec<Donor>,
    clients: Vec<Client<'a>>,
    followers: Vec<Follower<'a>>,
}

#[derive(Serialize)]
struct Gpu {
    gpu: u16,
    tokens: Vec<Token>,
    engines: Vec<Engine>,
}

#[derive(Serialize)]
struct Token {
    token: usize,
    holder: Option<u32>,
    waiting: Vec<u32>,
}

#[derive(Serialize)]
struct Engine {
    engine: &'static str,
    holder: Option<u32>,
    waiting: Vec<u32>,
}

#[derive(Serialize)]
struct Donor {
    donor: u32,
    donee: u32,
}

#[derive(Serialize)]
struct Client<'a> {
    client: u32,
    name: &'a str,
    pid: u32,
    thread: u32,
    base: Priority,
    effective: Priority,
    inherits_from: Option<u32>,
    refused_errno: Option<i32>,
}

/// A thread that works on behalf of holders.
#[derive(Serialize)]
struct Follower<'a> {
    gpu: u16,
    name: &'a str,
    pid: u32,
    thread: u32,
    fixed: Option<u8>,
    refused_errno: Option<i32>,
}

/// Both `None`: background.
#[derive(Serialize)]
struct Priority {
    fixed: Option<u8>,
    deadline_ns: Option<u64>,
}

/// A line.
pub fn line(look: &Snapshot, now: Instant) -> String {
    let donors = view::donors(look).map(|(donor, donee)| Donor { donor: donor.0, donee: donee.0 });
    let look = Look {
        laxity: env!("CARGO_PKG_VERSION"),
        arbitration: &look.name,
        at_ns: now.0,
        gpus: (0..look.config.gpus).map(|gpu| Gpu::of(look, gpu)).collect(),
        outside: waiting(&look.tokens, Standing::Outside),
        donors: donors.collect(),
        clients: look.clients.iter().map(Client::of).collect(),
        followers: look.followers.iter().map(Follower::of).collect(),
    };
    serde_json::to_string(&look).expect("numbers, texts and lists are JSON")
}

impl Gpu {
    fn of(look: &Snapshot, gpu: u16) -> Self {
        let holder = |lock: &LockState, replica: usize| lock.holders.get(replica).copied().flatten().map(number);
        let token = |token: usize| {
            let waiting = waiting(&look.tokens, Standing::Fifo(ReplicaId(token as u16)));
            Token { token, holder: holder(&look.tokens, token), waiting }
        };
        let engines = look.config.engines().iter().zip(&look.engines[usize::from(gpu)]);
        let engines = engines.map(|(engine, lock)| {
            let waiting = waiting(lock, Standing::Queue);
            Engine { engine: engine.name(), holder: holder(lock, 0), waiting }
        });
        let tokens = (gpu.into()..look.tokens.holders.len()).step_by(look.config.gpus.into());
        Gpu { gpu, tokens: tokens.map(token).collect(), engines: engines.collect() }
    }
}

impl<'a> Client<'a> {
    fn of(client: &'a ClientState) -> Self {
        Client {
            client: client.id.0,
            name: &client.name,
            pid: client.pid,
            thread: client.thread,
            base: Priority::of(client.base),
            effective: Priority::of(client.effective),
            inherits_from: client.inherits_from.map(number),
            refused_errno: client.refused,
        }
    }
}

impl<'a> Follower<'a> {
    fn of(follower: &'a FollowerState) -> Self {
        let FollowerState { gpu, pid, thread, ref name, priority, refused } = *follower;
        Follower { gpu, name, pid, thread, fixed: priority, refused_errno: refused }
    }
}

impl Priority {
    fn of(base: Base) -> Self {
        let (fixed, deadline_ns) = match base {
            Base::Fixed(priority) => (Some(priority), None),
            Base::Deadline(deadline) => (None, Some(deadline.0)),
            Base::Background => (None, None),
        };
        Priority { fixed, deadline_ns }
    }
}

/// The clients that wait for `lock`, the next one first.
fn waiting(lock: &LockState, there: Standing) -> Vec<u32> {
    lock.waiting.iter().filter(|(_, standing)| *standing == there).map(|&(task, _)| number(task)).collect()
}

fn number(task: TaskId) -> u32 {
    task.0
}
