//! Devices that raise interrupts: first the GPUs, then those that serve no job.

use laxity_model::{Arrival, CpuId, Device, Distribution, ExecutionTime, Gpu, Nanos, Workload};
use laxity_trace::GpuInfo;

use crate::clusters::Assignment;

/// A device that raises interrupts.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    /// The CPUs that its interrupts may be routed to.
    pub cpus: Vec<CpuId>,
    /// How long the interrupt handler takes.
    pub top_half: ExecutionTime,
    /// How long the rest takes, which the handler defers.
    pub bottom_half: ExecutionTime,
    /// How its interrupts arrive; those of GPUs follow from the operations of jobs.
    pub arrivals: Option<DeviceArrivals>,
}

/// How the interrupts of a device arrive, the first at time 0.
#[derive(Clone, Debug)]
pub struct DeviceArrivals {
    /// The least separation of two interrupts.
    pub period: Nanos,
    /// Extra separation of sporadic ones.
    pub gap: Option<Distribution>,
}

/// The names of all devices, in the order of their numbers.
pub(crate) fn names(workload: &Workload) -> impl Iterator<Item = &str> {
    let platform = &workload.platform;
    let gpus = platform.gpus.iter().map(|gpu| gpu.name.as_str());
    gpus.chain(platform.devices.iter().map(|device| device.name.as_str()))
}

/// Every device; overheads are those of `tasks` tasks.
pub(crate) fn plans(workload: &Workload, tasks: usize) -> Vec<DevicePlan> {
    let management = &workload.gpu_management;
    let costs = workload.platform.overheads.at(tasks);
    let or_constant =
        |time: &Option<ExecutionTime>, constant| time.clone().unwrap_or_else(|| ExecutionTime::constant(constant));
    let gpu = |gpu: &Gpu| DevicePlan {
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

fn arrivals(device: &Device) -> DeviceArrivals {
    let gap = match &device.arrival {
        Arrival::Periodic => None,
        Arrival::Sporadic { gap } => Some(gap.clone()),
    };
    DeviceArrivals { period: device.period, gap }
}

/// What the trace says of the GPUs.
pub(crate) fn gpu_infos(gpus: &[Gpu], clusters: &Assignment) -> Vec<GpuInfo> {
    let info = |gpu: &Gpu| GpuInfo {
        name: gpu.name.clone(),
        cluster: clusters.cluster_of_cpus(&gpu.interrupt_cpus),
        copy_engines: gpu.copy_engines,
    };
    gpus.iter().map(info).collect()
}
