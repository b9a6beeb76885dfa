//! Devices that raise interrupts: first the GPUs, then those that serve no job.

use laxity_model::{Arrival, Device, ExecutionTime, InterruptHandling, Server, ServerKind, Task, TaskId, Workload};
use laxity_policy::cpu::Ranking;
use laxity_policy::server::{Config, Kind};

use super::{Arrivals, DevicePlan, ServerPlan};

/// Replenishments of a sporadic server that may be pending: as many as keep interrupts that come one by one apart, and
/// more than POSIX guarantees (`_POSIX_SS_REPL_MAX`, 4).
const REPLENISHMENTS: u16 = 32;

/// The names of all devices, in the order of their numbers.
pub(super) fn names(workload: &Workload) -> impl Iterator<Item = &str> {
    let platform = &workload.platform;
    let gpus = platform.gpus.iter().map(|gpu| gpu.name.as_str());
    gpus.chain(platform.devices.iter().map(|device| device.name.as_str()))
}

/// The servers as tasks, for their ranks: they follow the tasks of the workload.
pub(super) fn server_tasks(workload: &Workload) -> Vec<Task> {
    let task = |(device, server): (&Device, Server)| Task {
        priority: server.priority,
        ..Task::periodic(&device.name, server.budget, server.period)
    };
    served(workload).map(task).collect()
}

/// The devices whose threads are scheduled by servers. Only klmirqd has such threads.
fn served(workload: &Workload) -> impl Iterator<Item = (&Device, Server)> {
    let has_servers = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
    let devices = workload.platform.devices.iter().filter(move |_| has_servers);
    devices.filter_map(|device| Some((device, device.server?)))
}

/// What the simulator knows of every device; `tasks` tasks come before the servers in `ranking`.
pub(super) fn plans(workload: &Workload, ranking: &Ranking, tasks: usize) -> Vec<DevicePlan> {
    let management = &workload.gpu_management;
    let costs = workload.platform.overheads.at(tasks);
    let or_constant =
        |time: &Option<ExecutionTime>, constant| time.clone().unwrap_or_else(|| ExecutionTime::constant(constant));
    let gpu = |gpu: &laxity_model::Gpu| DevicePlan {
        cpus: gpu.interrupt_cpus.clone(),
        top_half: or_constant(&management.top_half, costs.top_half),
        bottom_half: or_constant(&management.bottom_half, costs.bottom_half),
        arrivals: None,
        server: None,
    };
    let mut ranked = tasks..;
    let mut device = |device: &Device| DevicePlan {
        cpus: device.interrupt_cpus.clone(),
        top_half: device.top_half.clone(),
        bottom_half: device.bottom_half.clone(),
        arrivals: Some(arrivals(device)),
        server: served(workload).find(|(one, _)| std::ptr::eq(*one, device)).map(|(_, server)| {
            let rank = ranked.next().expect("endless");
            ServerPlan { config: config(server), level: ranking.fixed_level(TaskId(rank as u32)) }
        }),
    };
    let platform = &workload.platform;
    let mut plans: Vec<DevicePlan> = platform.gpus.iter().map(gpu).collect();
    plans.extend(platform.devices.iter().map(&mut device));
    plans
}

fn arrivals(device: &Device) -> Arrivals {
    let gap = match &device.arrival {
        Arrival::Periodic => None,
        Arrival::Sporadic { gap } => Some(gap.clone()),
    };
    Arrivals { period: device.period, gap }
}

fn config(server: Server) -> Config {
    let kind = match server.kind {
        ServerKind::CbsHard => Kind::HardCbs,
        ServerKind::CbsSoft => Kind::SoftCbs,
        ServerKind::Sporadic => Kind::Sporadic { replenishments: REPLENISHMENTS },
    };
    Config { budget: server.budget, period: server.period, kind }
}

impl DevicePlan {
    /// The rank among all tasks that its server gives its thread under fixed priorities.
    pub(super) fn rank(&self) -> Option<u32> {
        let level = self.server?.level?;
        Some((level - 1) as u32)
    }
}
