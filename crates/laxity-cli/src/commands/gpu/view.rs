//! An arbitration as a table.

use laxity_gpu::{Activity, Base, ClientState, Config, FollowerState, LockState, Snapshot, Standing};
use laxity_model::{GpuArbitration, Instant, ReplicaId, TaskId};

use laxity_sys::process;

use crate::quantity::{counted, short};
use crate::table::{Cell, Table};

/// How many clients wait for something.
pub fn waiting(look: &Snapshot) -> usize {
    look.engines.iter().flatten().chain([&look.tokens]).map(|lock| lock.waiting.len()).sum()
}

/// How many tokens are held.
pub fn held(look: &Snapshot) -> usize {
    look.tokens.holders.iter().flatten().count()
}

/// What is shared, in words.
pub fn rules(config: &Config) -> String {
    let gpus = counted(config.gpus.into(), "GPU");
    let rules = config.arbitration.name();
    let shared = format!("{gpus} for the threads of {} under {rules}", counted(config.cpus.into(), "CPU"));
    match config.arbitration {
        GpuArbitration::GpuSync(sync) => format!("{shared}, {} each", counted(sync.tokens.into(), "token")),
        _ => shared,
    }
}

/// A row for each token and each engine, by GPU, one for those outside all queues, one for each client that holds the
/// bandwidth lock, one for each that counts its operations, with how long it waited for all of them, and one for each thread that follows holders; but for those beyond `rows`. The holder of an engine has the
/// name of its last operation, if it said one. `a ← b`: b donates its priority to a. `20 → 50`: the holder inherits.
pub fn table(look: &Snapshot, now: Instant, rows: usize) -> Table {
    let names = Names { look, now };
    let table = Table::of("GPU").text("lock").text("holder").group("process", &[""]).text("priority");
    let table = table.text("operation").text("waiting");
    let tokens = |gpu: u16| {
        let of_gpu = look.tokens.holders.iter().enumerate().skip(gpu.into()).step_by(look.config.gpus.into());
        of_gpu.map(|(token, &holder)| {
            let queue = names.queue(&look.tokens, Standing::Fifo(ReplicaId(token as u16)));
            (format!("token {token}"), holder, String::new(), queue)
        })
    };
    let engines = |gpu: u16| {
        let locks = look.config.engines().iter().zip(&look.engines[usize::from(gpu)]);
        locks.map(|(engine, lock)| {
            let holder = lock.holders.first().copied().flatten();
            (engine.name().to_owned(), holder, names.operation(holder), names.queue(lock, Standing::Queue))
        })
    };
    let of_gpu = |gpu: u16| tokens(gpu).chain(engines(gpu)).map(move |row| (gpu, row));
    let locks = (0..look.config.gpus).flat_map(of_gpu);
    let mut table = locks.take(rows).fold(table, |mut table, (gpu, (lock, holder, operation, queue))| {
        let mut row = vec![gpu.to_string().into(), lock.into()];
        row.extend(names.holder(holder));
        row.extend([operation.into(), queue.into()]);
        table.row(row);
        table
    });
    let outside = names.queue(&look.tokens, Standing::Outside);
    if !outside.is_empty() {
        let empty = || Cell::from("");
        table.row(vec!["any".into(), Cell::faint("outside"), empty(), empty(), empty(), empty(), outside.into()]);
    }
    let left = rows.saturating_sub(table.height());
    let protected = look.clients.iter().filter_map(|client| Some((client, client.bandwidth?)));
    for (client, budget) in protected.take(left) {
        let budget = laxity_model::write_rate(budget);
        let (lock, pid) = (Cell::faint("bandwidth"), client.pid.to_string());
        let row =
            vec!["any".into(), lock, client.name.clone().into(), pid.into(), names.priority(client), budget.into()];
        table.row(row);
    }
    let left = rows.saturating_sub(table.height());
    let waits = |client: &ClientState| {
        let locks = look.engines.iter().flatten().chain([&look.tokens]);
        locks.flat_map(|lock| &lock.waiting).any(|&(task, _)| task == client.id)
    };
    for client in look.clients.iter().filter(|client| client.activity.operations > 0).take(left) {
        let Activity { operation, operations, waited } = &client.activity;
        let (name, pid) = (client.name.clone(), client.pid.to_string());
        let last = operation.clone().unwrap_or_default();
        let waits = if waits(client) { ", waits" } else { "" };
        let told = format!("{}, waited {}{waits}", counted(*operations, "operation"), short(*waited));
        let lock = Cell::faint("program");
        table.row(vec!["".into(), lock, name.into(), pid.into(), names.priority(client), last.into(), told.into()]);
    }
    let left = rows.saturating_sub(table.height());
    look.followers.iter().take(left).fold(table, |mut table, follower| {
        table.row(following(follower));
        table
    })
}

/// A thread that follows holders, in the columns of the table.
fn following(follower: &FollowerState) -> Vec<Cell> {
    let FollowerState { gpu, pid, thread, name, priority, refused } = follower;
    let priority = priority.map_or_else(|| "-".to_owned(), |priority| priority.to_string());
    let priority = match refused {
        Some(_) => Cell::bad(format!("{priority}, refused")),
        None => priority.into(),
    };
    let thread = format!("{name} {thread}").trim_start().to_owned();
    vec![gpu.to_string().into(), Cell::faint("follows"), thread.into(), pid.to_string().into(), priority]
}

/// What clients are called, and what is said of them.
struct Names<'a> {
    look: &'a Snapshot,
    now: Instant,
}

impl Names<'_> {
    /// Holder, process and priority.
    fn holder(&self, holder: Option<TaskId>) -> [Cell; 3] {
        let Some(task) = holder else { return [Cell::faint("-"), Cell::faint("-"), Cell::faint("-")] };
        let Some(client) = self.look.client(task) else { return [task.to_string().into(), "".into(), "".into()] };
        // It unlocks nothing, and loses nothing by its hold limit, until it goes on.
        let process = match process::is_stopped(client.pid) {
            true => Cell::bad(format!("{} stopped", client.pid)),
            false => client.pid.to_string().into(),
        };
        [self.with_donor(task).into(), process, self.priority(client)]
    }

    /// What the holder of an engine does.
    fn operation(&self, holder: Option<TaskId>) -> String {
        let client = holder.and_then(|task| self.look.client(task));
        client.and_then(|client| client.activity.operation.clone()).unwrap_or_default()
    }

    fn priority(&self, client: &ClientState) -> Cell {
        let base = self.base(client.base);
        match (client.inherits_from, client.refused) {
            (None, _) => base.into(),
            (Some(_), None) => format!("{base} → {}", self.base(client.effective)).into(),
            (Some(_), Some(_)) => Cell::bad(format!("{base} → {}, refused", self.base(client.effective))),
        }
    }

    fn base(&self, base: Base) -> String {
        match base {
            Base::Deadline(deadline) if deadline >= self.now => {
                format!("due in {}", short(deadline.saturating_since(self.now)))
            }
            Base::Deadline(deadline) => format!("late by {}", short(self.now.saturating_since(deadline))),
            Base::Fixed(_) | Base::Background => base.to_string(),
        }
    }

    /// The clients that wait for `lock`, the next one first.
    fn queue(&self, lock: &LockState, there: Standing) -> String {
        let waiting = lock.waiting.iter().filter(|(_, standing)| *standing == there);
        waiting.map(|&(task, _)| self.with_donor(task)).collect::<Vec<_>>().join(", ")
    }

    fn with_donor(&self, task: TaskId) -> String {
        match donors(self.look).find(|&(_, donee)| donee == task) {
            Some((donor, _)) => format!("{} ← {}", self.name(task), self.name(donor)),
            None => self.name(task),
        }
    }

    fn name(&self, task: TaskId) -> String {
        self.look.client(task).map_or_else(|| task.to_string(), |client| client.name.clone())
    }
}

/// Each donor, with the client that it donates to.
pub fn donors(look: &Snapshot) -> impl Iterator<Item = (TaskId, TaskId)> {
    look.tokens.waiting.iter().filter_map(|&(task, standing)| match standing {
        Standing::Donor { donee } => Some((task, donee)),
        Standing::Queue | Standing::Fifo(_) | Standing::Outside => None,
    })
}
