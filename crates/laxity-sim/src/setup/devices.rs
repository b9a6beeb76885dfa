//! Devices that raise interrupts: first the GPUs, then those that serve no job.

use laxity_model::{Arrival, Device, ExecutionTime, Workload};

use super::{Arrivals, DevicePlan};

/// The names of all devices, in the order of their numbers.
pub(super) fn names(workload: &Workload) -> impl Iterator<Item = &str> {
    let platform = &workload.platform;
    let gpus = platform.gpus.iter().map(|gpu| gpu.name.as_str());
    gpus.chain(platform.devices.iter().map(|device| device.name.as_str()))
}

/// What the simulator knows of every device; overheads are those of `tasks` tasks.
pub(super) fn plans(workload: &Workload, tasks: usize) -> Vec<DevicePlan> {
    let management = &workload.gpu_management;
    let costs = workload.platform.overheads.at(tasks);
    let or_constant =
        |time: &Option<ExecutionTime>, constant| time.clone().unwrap_or_else(|| ExecutionTime::constant(constant));
    let gpu = |gpu: &laxity_model::Gpu| DevicePlan {
        cpus: gpu.interrupt_cpus.clone(),
        top_half: or_constant(&management.top_half, costs.top_half),
        bottom_half: or_constant(&management.bottom_half, costs.bottom_half),
        arrivals: None,
    };
    let device = |device: &Device| DevicePlan {
        cpus: device.interrupt_cpus.clone(),
        top_half: device.top_half.clone(),
        bottom_half: device.bottom_half.clone(),
        arrivals: Some(arrivals(device)),
    };
    let platform = &workload.platform;
    platform.gpus.iter().map(gpu).chain(platform.devices.iter().map(device)).collect()
}

fn arrivals(device: &Device) -> Arrivals {
    let gap = match &device.arrival {
        Arrival::Periodic => None,
        Arrival::Sporadic { gap } => Some(gap.clone()),
    };
    Arrivals { period: device.period, gap }
}
