//! Devices that serve no job: the interrupts that a timer raises in place of each, and the thread of its bottom halves.

use laxity_model::{Instant, InterruptHandling, Nanos, TaskId, ThreadPriority, Workload};
use laxity_plan::draws::{DeviceDraws, TaskDraws};
use laxity_plan::{DevicePlan, Op, ServerPlan};
use laxity_sched::{Parameters, Urgency};

use super::{CodeEdges, Handles, Messages, TaskPlan, Trigger, truncated};
use crate::attributes::Attributes;
use crate::linux::{LinuxScheduler, PRIORITY_MAX};
use crate::placement::Placement;

/// A device that serves no job.
#[derive(Clone, Debug)]
pub(crate) struct LiveDevice {
    pub name: String,
    /// Its number among all devices.
    pub number: u16,
    /// When it interrupts which CPUs, and for how long.
    pub plan: DevicePlan,
    pub draws: DeviceDraws,
    /// Interrupts come before it, from the start.
    pub end: Instant,
    /// The thread of its bottom halves.
    pub task: TaskPlan,
}

/// How the tasks of the run are scheduled.
pub(crate) struct Schedule<'a> {
    pub linux: LinuxScheduler,
    /// Whether Laxity's scheduler schedules threads that handle interrupts, too.
    pub is_linked: bool,
    pub placement: &'a Placement,
    pub seed: u64,
    pub end: Instant,
}

impl LiveDevice {
    /// Those of `workload`, the thread of the first of which is task `first`.
    pub fn all(
        workload: &Workload,
        compiled: &laxity_plan::Plan,
        first: usize,
        schedule: &Schedule<'_>,
    ) -> Vec<LiveDevice> {
        let gpus = workload.platform.gpus.len();
        let device = |(position, device): (usize, &laxity_model::Device)| {
            let number = gpus + position;
            let thread = first + position;
            let plan = compiled.devices[number].clone();
            let draws = DeviceDraws::new(schedule.seed, number);
            let task = bottom_halves(workload.gpu_management.handling, compiled, (thread, draws, &plan), schedule);
            LiveDevice { name: device.name.clone(), number: number as u16, plan, draws, end: schedule.end, task }
        };
        workload.platform.devices.iter().enumerate().map(device).collect()
    }
}

/// The thread, task number `thread`, of the bottom halves of `device`.
fn bottom_halves(
    handling: InterruptHandling,
    compiled: &laxity_plan::Plan,
    (thread, draws, device): (usize, DeviceDraws, &DevicePlan),
    Schedule { linux, is_linked, placement, seed, .. }: &Schedule<'_>,
) -> TaskPlan {
    let info = &compiled.header.tasks[thread];
    // Without a server they have what tasks leave.
    let is_above = match handling {
        InterruptHandling::Linux
        | InterruptHandling::ProcessAware
        | InterruptHandling::PreemptRt(ThreadPriority::High) => true,
        InterruptHandling::PreemptRt(ThreadPriority::Low) | InterruptHandling::Klmirqd { .. } => false,
    };
    let server: Option<ServerPlan> = compiled.tasks[thread].server.as_deref().copied();
    let deadline = server.map_or(Nanos::ZERO, |server| server.config.period);
    let is_fixed = !compiled.header.scheduler.rule.goes_by_deadline();
    let parameters = Parameters {
        cluster: info.cluster,
        // As the simulator ranks it: level 0 is above all jobs.
        level: (is_fixed && server.is_some()).then(|| u64::from(info.rank) + 1),
        // Jobs without a server have no deadlines of their own.
        ..Parameters::periodic(truncated(&info.name), server.map_or(Nanos::from_secs(1), |_| deadline))
    };
    let is_fifo = is_above && *linux != LinuxScheduler::Other && !is_linked;
    TaskPlan {
        name: info.name.clone(),
        messages: Messages::default(),
        run: None,
        code: None,
        edges: CodeEdges::default(),
        ops: [Op::Run(device.bottom_half.clone())].into(),
        draws: TaskDraws { seed: *seed, task: TaskId(thread as u32) },
        trigger: Trigger::Interrupts,
        working_set: 0,
        cpus: (!is_linked).then(|| placement.cpus(thread)),
        attributes: if is_fifo { Attributes::fifo(PRIORITY_MAX) } else { Attributes::Other },
        urgency: None,
        spins: false,
        raised: None,
        bandwidth: None,
        deadline,
        server,
        handles: Some(Handles { draws, urgency: if is_above { Urgency::Fixed } else { Urgency::Owner } }),
        scheduled: is_linked.then_some((thread, parameters)),
        in_kernel: None,
    }
}
