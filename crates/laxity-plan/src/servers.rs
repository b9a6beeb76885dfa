//! Which tasks and interrupt threads are bandwidth servers.

use laxity_model::{Device, InterruptHandling, Nanos, Server, Task, TaskId, TaskServer, Workload};
use laxity_policy::cpu::Ranking;
use laxity_policy::server::{Config, ServerLevel};
use laxity_trace::ServerInfo;
use serde::{Deserialize, Serialize};

use crate::threads::Threads;

/// A bandwidth server.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ServerPlan {
    /// Its budget and period, and what follows when the budget is exhausted.
    pub config: Config,
    /// The level at which it competes.
    pub level: ServerLevel,
}

/// The servers of threads as tasks, for their ranks: they follow the tasks of the workload.
pub(crate) fn as_tasks(workload: &Workload) -> Vec<Task> {
    let task = |(device, server): (&Device, Server)| Task {
        priority: server.priority,
        ..Task::periodic(&device.name, server.budget, server.period)
    };
    served(workload).map(|(_, device, server)| task((device, server))).collect()
}

/// The server that `task`, number `index`, is. One with a period of its own competes by its own deadlines.
pub(crate) fn of_task(index: usize, task: &Task, ranking: &Ranking) -> Option<ServerPlan> {
    let TaskServer { kind, budget, .. } = task.server?;
    let (period, deadline) = task.ranked_by();
    let config = Config { budget, period, kind: kind.into() };
    Some(ServerPlan { config, level: level(ranking, index, period, deadline) })
}

/// What a trace says of the servers that `tasks`, nodes of graphs among them, and the `threads` of devices are.
pub(crate) fn infos(workload: &Workload, tasks: &[Task], threads: &Threads) -> Vec<ServerInfo> {
    let info = |(index, task): (usize, &Task)| {
        let TaskServer { kind, budget, .. } = task.server?;
        Some(ServerInfo { task: TaskId(index as u32), kind, budget, period: task.ranked_by().0 })
    };
    let of_thread = |(device, _, Server { kind, budget, period, .. }): (usize, &Device, Server)| {
        let task = TaskId((threads.first_task + threads.of_device[device]) as u32);
        ServerInfo { task, kind, budget, period }
    };
    tasks.iter().enumerate().filter_map(info).chain(served(workload).map(of_thread)).collect()
}

/// The server of each interrupt thread; the servers come after all tasks in `ranking`.
pub(crate) fn of_threads(workload: &Workload, threads: &Threads, ranking: &Ranking) -> Vec<Option<ServerPlan>> {
    let mut plans = vec![None; threads.first_callback];
    for (position, (device, _, server)) in served(workload).enumerate() {
        let level = level(ranking, threads.first_task + position, server.period, server.period);
        plans[threads.of_device[device]] = Some(ServerPlan { config: config(server), level });
    }
    plans
}

/// The devices, with their numbers, whose threads are scheduled by servers. Only klmirqd has such threads.
fn served(workload: &Workload) -> impl Iterator<Item = (usize, &Device, Server)> {
    let platform = &workload.platform;
    let has_servers = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
    let numbered = platform.devices.iter().zip(platform.gpus.len()..).filter(move |_| has_servers);
    numbered.filter_map(|(device, number)| Some((number, device, device.server?)))
}

fn config(server: Server) -> Config {
    Config { budget: server.budget, period: server.period, kind: server.kind.into() }
}

/// The level of the server that is number `index` in `ranking`.
fn level(ranking: &Ranking, index: usize, period: Nanos, relative: Nanos) -> ServerLevel {
    match ranking.fixed_level(TaskId(index as u32)) {
        Some(level) => ServerLevel::Fixed(level),
        None => ServerLevel::Deadline { period, relative },
    }
}

impl ServerPlan {
    /// The rank among all tasks that it has under fixed priorities.
    pub(crate) fn rank(&self) -> Option<u32> {
        match self.level {
            ServerLevel::Fixed(level) => Some((level - 1) as u32),
            ServerLevel::Deadline { .. } => None,
        }
    }
}
