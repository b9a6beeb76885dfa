//! What is legal but probably not meant: load that the platform cannot carry, settings without effect.

use std::fmt;

use crate::{
    Device, GpuArbitration, GpuManagement, GpuWork, InterruptHandling, Nanos, Platform, ReleaseInterrupts, Step, Task,
    Workload,
};

/// Something to tell the user about a valid workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A task needs more than its period in every period: its tardiness grows without bound on any platform.
    TaskOverload {
        /// The task's name.
        task: String,
        /// Worst-case CPU time of a job.
        wcet: Nanos,
        /// Its period.
        period: Nanos,
    },
    /// The tasks need more CPU time than there is.
    CpuOverload {
        /// Utilization in thousandths of a CPU, rounded to the nearest that is too much.
        permille: u64,
        /// CPUs that run jobs.
        cpus: usize,
    },
    /// The GPU kernels need more time than the execution engines have.
    GpuOverload {
        /// Utilization in thousandths of an execution engine, rounded to the nearest that is too much.
        permille: u64,
        /// Execution engines.
        gpus: usize,
    },
    /// An interrupt of a device takes longer than the next is away.
    DeviceOverload {
        /// The device's name.
        device: String,
        /// Worst-case time of its top and bottom half.
        wcet: Nanos,
        /// The separation of its interrupts.
        period: Nanos,
    },
    /// GPU management is configured but there is no GPU.
    NoGpu,
    /// A task has a memory budget, and there is no bandwidth lock that it could be the budget of.
    NoBandwidthLock {
        /// The task's name.
        task: String,
    },
    /// A server is configured that the handling of interrupts has no use for.
    UnusedServer {
        /// The name of the device.
        device: String,
        /// The name of the handling.
        handling: &'static str,
    },
}

impl Workload {
    /// Overloads of tasks and devices, which are legal to simulate, and settings without effect. Graph nodes are not
    /// counted.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for task in self.tasks.iter().filter(|task| task.wcet() > task.period) {
            let (wcet, period) = (task.wcet(), task.period);
            warnings.push(Warning::TaskOverload { task: task.name.clone(), wcet, period });
        }
        let dedicated = usize::from(self.scheduler.interrupts == ReleaseInterrupts::Dedicated);
        let cpus = self.platform.cpus.saturating_sub(dedicated);
        if let Some(permille) = overload(self.tasks.iter().map(|task| (task.wcet(), task)), cpus) {
            warnings.push(Warning::CpuOverload { permille, cpus });
        }
        let gpus = self.platform.gpus.len();
        if let Some(permille) = overload(self.tasks.iter().map(|task| (kernel_time(&task.body), task)), gpus) {
            warnings.push(Warning::GpuOverload { permille, gpus });
        }
        self.warn_of_devices(&mut warnings);
        if self.gpu_management.bandwidth_lock.is_none() {
            let budgeted = self.tasks.iter().filter(|task| task.memory_budget.is_some());
            warnings.extend(budgeted.map(|task| Warning::NoBandwidthLock { task: task.name.clone() }));
        }
        warnings
    }

    fn warn_of_devices(&self, warnings: &mut Vec<Warning>) {
        let Platform { gpus, devices, .. } = &self.platform;
        let GpuManagement { arbitration, handling, top_half, bottom_half, callback, bandwidth_lock } =
            &self.gpu_management;
        let times = [top_half, bottom_half, callback];
        let has_lock = bandwidth_lock.is_some();
        let for_gpus = *arbitration != GpuArbitration::Driver || has_lock || times.iter().any(|time| time.is_some());
        let for_any_device = *handling != InterruptHandling::Linux;
        if gpus.is_empty() && (for_gpus || for_any_device && devices.is_empty()) {
            warnings.push(Warning::NoGpu);
        }
        let uses_servers = matches!(handling, InterruptHandling::Klmirqd { .. });
        for Device { name, period, top_half, bottom_half, server, .. } in devices {
            let wcet = Nanos(top_half.wcet.0.saturating_add(bottom_half.wcet.0));
            if wcet > *period {
                warnings.push(Warning::DeviceOverload { device: name.clone(), wcet, period: *period });
            }
            if server.is_some() && !uses_servers {
                warnings.push(Warning::UnusedServer { device: name.clone(), handling: handling.name() });
            }
        }
    }
}

fn kernel_time(body: &[Step]) -> Nanos {
    let time = |step: &Step| match step {
        Step::Gpu(operation) => match &operation.work {
            GpuWork::Kernel(time) => time.wcet,
            GpuWork::Copy { .. } => Nanos::ZERO,
        },
        Step::Critical { body, .. } | Step::GpuSection { body } => kernel_time(body),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => Nanos::ZERO,
    };
    body.iter().map(time).sum()
}

/// The total utilization in thousandths if it surely exceeds `capacity`.
///
/// Each task's share is rounded down to 2^-40, so that what is reported is really too much; spans are below 2^59, hence
/// a share is below 2^99 and the sum of all below 2^115. The thousandths are rounded to the nearest, as those of `laxity check` are,
/// but never to `capacity` itself.
fn overload<'w>(costs: impl Iterator<Item = (Nanos, &'w Task)>, capacity: usize) -> Option<u64> {
    const ONE: u128 = 1 << 40;
    let share = |(cost, task): (Nanos, &Task)| u128::from(cost.0) * ONE / u128::from(task.period.0.max(1));
    let total: u128 = costs.map(share).sum();
    let nearest = (((total >> 10) * 1_000 + (1 << 29)) >> 30).max(capacity as u128 * 1_000 + 1);
    (total > capacity as u128 * ONE).then(|| u64::try_from(nearest).unwrap_or(u64::MAX))
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = |permille: &u64| format!("{}.{:03}", permille / 1_000, permille % 1_000);
        match self {
            Warning::TaskOverload { task, wcet, period } => {
                write!(f, "task \"{task}\" needs {wcet} every {period}; its tardiness grows without bound")
            }
            Warning::CpuOverload { permille, cpus } => {
                write!(f, "the tasks need {} CPUs and {cpus} run jobs; tardiness grows without bound", parts(permille))
            }
            Warning::GpuOverload { permille, gpus } => write!(
                f,
                "the GPU kernels need {} execution engines and there are {gpus}; their queue grows without bound",
                parts(permille)
            ),
            Warning::DeviceOverload { device, wcet, period } => {
                write!(
                    f,
                    "the interrupts of device \"{device}\" need {wcet} every {period}; they pile up without bound"
                )
            }
            Warning::NoGpu => f.write_str("`gpu_management` has no effect: the platform has no GPU"),
            Warning::NoBandwidthLock { task } => write!(
                f,
                "the memory budget of task \"{task}\" has no effect: there is no `bandwidth_lock` in `gpu_management`"
            ),
            Warning::UnusedServer { device, handling } => write!(
                f,
                "the server of device \"{device}\" has no effect: only klmirqd threads have one, and bottom halves are \
                 handled by {handling}"
            ),
        }
    }
}
