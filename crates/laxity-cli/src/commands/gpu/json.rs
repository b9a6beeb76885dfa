//! An arbitration as JSON.

use laxity_gpu::{ClientState, FollowerState, LockState, Snapshot, Standing};
use laxity_model::{Instant, ReplicaId, TaskId};
use serde::Serialize;

use super::view;

/// The fields are described in `docs/reference/json.md` and are stable. Clients are numbers.
#[derive(Serialize)]
struct Look<'a> {
    laxity: &'static str,
    arbitration: &'a str,
    at_ns: Instant,
    gpus: Vec<Gpu>,
    outside: Vec<TaskId>,
    donors: Vec<Donor>,
    clients: &'a [ClientState],
    followers: &'a [FollowerState],
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
    holder: Option<TaskId>,
    waiting: Vec<TaskId>,
}

#[derive(Serialize)]
struct Engine {
    engine: &'static str,
    holder: Option<TaskId>,
    waiting: Vec<TaskId>,
}

#[derive(Serialize)]
struct Donor {
    donor: TaskId,
    donee: TaskId,
}

/// A line.
pub fn line(look: &Snapshot, now: Instant) -> String {
    let look = Look {
        laxity: env!("CARGO_PKG_VERSION"),
        arbitration: &look.name,
        at_ns: now,
        gpus: (0..look.config.gpus).map(|gpu| Gpu::of(look, gpu)).collect(),
        outside: waiting(&look.tokens, Standing::Outside),
        donors: view::donors(look).map(|(donor, donee)| Donor { donor, donee }).collect(),
        clients: &look.clients,
        followers: &look.followers,
    };
    serde_json::to_string(&look).expect("numbers, texts and lists are JSON")
}

impl Gpu {
    fn of(look: &Snapshot, gpu: u16) -> Self {
        let holder = |lock: &LockState, replica: usize| lock.holders.get(replica).copied().flatten();
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

/// The clients that wait for `lock`, the next one first.
fn waiting(lock: &LockState, there: Standing) -> Vec<TaskId> {
    lock.waiting.iter().filter(|(_, standing)| *standing == there).map(|&(task, _)| task).collect()
}
