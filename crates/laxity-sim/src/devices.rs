//! GPUs as the simulator runs them: operations are issued, occupy engines, and end in interrupts.

use std::cmp::Reverse;

use laxity_model::{CpuId, Engine, GpuId, JobId, Nanos, TaskId};
use laxity_policy::gpu::{Action, Engines, Operation as Issued};
use laxity_policy::interrupt::Threads;
use laxity_trace::{DeviceId, Event, Sink};

use crate::Simulator;
use crate::halves::Half;
use crate::interrupt::{Interrupt, TopHalf};
use crate::simulator::{Timer, TimerKind, Wait};
use laxity_plan::draws::DeviceDraws;
use laxity_plan::{GpuChoice, Op, OperationTime, Plan};

/// The GPUs and their interrupts.
pub(crate) struct Devices {
    gpus: Vec<Engines<Tag>>,
    /// How many interrupts each device has raised.
    raised: Vec<u32>,
    pub(crate) threads: Threads<Half>,
    /// How often each callback thread was called.
    called: Vec<u32>,
    actions: Vec<Action<Tag>>,
}

/// An operation, as the engines know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    job: JobId,
    interrupts: u32,
}

impl Devices {
    pub fn new(plan: &Plan) -> Self {
        Devices {
            gpus: plan.gpus.iter().map(|gpu| Engines::new(gpu.copy_engines)).collect(),
            raised: vec![0; plan.devices.len()],
            threads: Threads::new(plan.threads.of_device.clone(), plan.threads.callbacks.len()),
            called: vec![0; plan.threads.callbacks.len()],
            actions: Vec::new(),
        }
    }
}

impl<S: Sink> Simulator<S> {
    /// The job of `task` hands the operation of its current step to its GPU.
    #[inline(never)]
    pub(crate) fn issue(&mut self, task: TaskId) {
        let run = &self.tasks[task.index()];
        let Op::Issue(operation) = &self.plan.tasks[task.index()].ops[run.op as usize] else {
            unreachable!("the current step issues an operation")
        };
        let gpu = match operation.gpu {
            GpuChoice::Gpu(gpu) => gpu,
            GpuChoice::Granted => run.sharing.gpu.expect("the lock's grant comes first"),
            GpuChoice::Left => run.sharing.left.expect("only who moved copies its state"),
        };
        let plan = &self.plan.gpus[gpu.index()];
        let duration = match &operation.time {
            OperationTime::Given(time) => self.draw_time(task, run.op as usize, time),
            OperationTime::Bytes(bytes) => plan.copy_time(*bytes),
        };
        let tag = Tag { job: self.job_id(task), interrupts: operation.interrupts };
        let engine = operation.engine.on(plan.copy_engines);
        self.tasks[task.index()].sharing.outstanding += 1;
        let mut actions = std::mem::take(&mut self.devices.actions);
        let issued = Issued { stream: task.0, engine, duration, what: tag };
        self.devices.gpus[gpu.index()].issue(issued, &mut actions);
        self.begin_operations(gpu, actions);
    }

    fn begin_operations(&mut self, gpu: GpuId, mut actions: Vec<Action<Tag>>) {
        for Action::Begin { engine, what, duration } in actions.drain(..) {
            self.sink.record(self.now, Event::EngineBegin { gpu, engine, job: what.job });
            self.timers.push(Reverse(Timer { at: self.now + duration, kind: TimerKind::Engine(gpu, engine) }));
            // The interrupts of an operation are spread over it, the last one at its end.
            for index in 1..what.interrupts {
                let after = u128::from(duration.0) * u128::from(index) / u128::from(what.interrupts);
                let kind = TimerKind::Partial(gpu, engine);
                self.timers.push(Reverse(Timer { at: self.now + Nanos(after as u64), kind }));
            }
        }
        self.devices.actions = actions;
    }

    #[inline(never)]
    pub(crate) fn engine_done(&mut self, gpu: GpuId, engine: Engine) {
        let mut actions = std::mem::take(&mut self.devices.actions);
        let Tag { job, interrupts } = self.devices.gpus[gpu.index()].complete(engine, &mut actions);
        self.sink.record(self.now, Event::EngineEnd { gpu, engine, job });
        self.begin_operations(gpu, actions);
        if interrupts == 0 {
            // Nobody is told: the driver polls, at no cost that is modelled.
            let cpu = self.tasks[job.task.index()].timer_cpu;
            self.operation_done(cpu, job);
        } else {
            self.raise_device(DeviceId(gpu.0), Some(job), true);
        }
    }

    #[inline(never)]
    pub(crate) fn partial_interrupt(&mut self, gpu: GpuId, engine: Engine) {
        let tag = *self.devices.gpus[gpu.index()].busy(engine).expect("its operation lasts until after this");
        self.raise_device(DeviceId(gpu.0), Some(tag.job), false);
    }

    /// Every device that serves no job raises its first interrupt at time 0.
    pub(crate) fn plan_first_arrivals(&mut self) {
        for (device, plan) in self.plan.devices.iter().enumerate() {
            if plan.arrivals.is_some() {
                let kind = TimerKind::Arrival(DeviceId(device as u16));
                self.timers.push(Reverse(Timer { at: self.now, kind }));
            }
        }
    }

    /// An interrupt of a device that serves no job.
    #[inline(never)]
    pub(crate) fn device_arrival(&mut self, device: DeviceId) {
        let Some(arrivals) = &self.plan.devices[device.index()].arrivals else { return };
        let index = self.devices.raised[device.index()];
        let draws = DeviceDraws::new(self.plan.header.seed, device.index());
        let gap = arrivals.gap.as_ref().map_or(Nanos::ZERO, |gap| draws.gap(gap, index));
        let at = self.now.saturating_add(arrivals.period).saturating_add(gap);
        self.timers.push(Reverse(Timer { at, kind: TimerKind::Arrival(device) }));
        self.raise_device(device, None, true);
    }

    /// `device` interrupts a CPU on behalf of `job`; the `last` interrupt of an operation completes it.
    #[inline(never)]
    fn raise_device(&mut self, device: DeviceId, job: Option<JobId>, last: bool) {
        let plan = &self.plan.devices[device.index()];
        let count = &mut self.devices.raised[device.index()];
        let index = *count;
        *count = count.wrapping_add(1);
        let draws = DeviceDraws::new(self.plan.header.seed, device.index());
        let cpu = self.plan.dedicated.unwrap_or_else(|| draws.route(&plan.cpus, index));
        let time = draws.top_half(&plan.top_half, index);
        let bottom = draws.bottom_half(&plan.bottom_half, index);
        self.sink.record(self.now, Event::Interrupt { cpu, device, job });
        let half = Half { device, job, last, time: bottom };
        self.raise(cpu, Interrupt::TopHalf(TopHalf { half, time }));
    }

    /// The last bottom half of an operation of `job` on `device` is done, as `cpu` knows: the run-time library is told,
    /// if it has a thread for that, and else the job.
    #[inline(never)]
    pub(crate) fn operation_handled(&mut self, cpu: CpuId, device: DeviceId, job: JobId) {
        let callbacks = &self.plan.threads.callbacks;
        let Some(&Some(callback)) = callbacks.of_task.get(job.task.index()) else {
            return self.operation_done(cpu, job);
        };
        let count = &mut self.devices.called[callback];
        let draws = DeviceDraws::new(self.plan.header.seed, callback);
        let time = callbacks.time.as_ref().map_or(Nanos::ZERO, |time| draws.callback(time, *count));
        *count = count.wrapping_add(1);
        let thread = self.plan.threads.first_callback + callback;
        if self.devices.threads.submit_to(thread, Half { device, job: Some(job), last: true, time }) {
            self.wake_thread(cpu, thread);
        }
    }

    /// An operation of `job` is complete, and `cpu` knows.
    #[inline(never)]
    pub(crate) fn operation_done(&mut self, cpu: CpuId, job: JobId) {
        let run = &mut self.tasks[job.task.index()];
        assert_eq!(run.job, job.index, "a job does not end before its operations");
        run.sharing.outstanding -= 1;
        if run.sharing.outstanding > 0 {
            return;
        }
        if run.spinning {
            self.stop_spinning(job.task);
        } else if run.wait == Wait::Gpu {
            self.wake(cpu, job.task);
        }
    }
}
