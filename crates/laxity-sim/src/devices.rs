//! GPUs and other devices: operations are issued, occupy engines, and end in interrupts.

use laxity_model::{CpuId, Engine, Factor, GpuId, JobId, Nanos};
use laxity_plan::draws::DeviceDraws;
use laxity_plan::{Operation, Plan};
use laxity_policy::gpu::{self, Action, Engines};
use laxity_trace::{DeviceId, Event, Sink};

use crate::bottom_halves::{BottomHalf, TopHalf};
use crate::context::{Context, TimerKind};
use crate::progress::Progress;

/// All devices.
pub(crate) struct Devices {
    gpus: Vec<Engines<Issued>>,
    /// How many interrupts each device has raised.
    raised: Vec<u32>,
    /// How often each callback thread was called.
    called: Vec<u32>,
    actions: Vec<Action<Issued>>,
    /// How far each operation has come, where that depends on memory traffic.
    progress: Option<Progress>,
}

/// An operation, as the engines know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Issued {
    job: JobId,
    interrupts: u32,
    memory: Factor,
}

/// What a device does to others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It interrupts `cpu`.
    Interrupt { cpu: CpuId, top_half: TopHalf },
    /// An operation of this job is complete and interrupts no CPU: the driver polls, at no cost that is modelled.
    Complete(JobId),
}

impl Devices {
    pub fn new(plan: &Plan) -> Self {
        Devices {
            gpus: plan.gpus.iter().map(|gpu| Engines::new(gpu.copy_engines)).collect(),
            raised: vec![0; plan.devices.len()],
            called: vec![0; plan.threads.callbacks.len()],
            actions: Vec::new(),
            progress: Progress::new(plan),
        }
    }

    /// Every device that serves no job raises its first interrupt at time 0.
    pub fn start<S: Sink>(&self, cx: &mut Context<S>, plan: &Plan) {
        for (device, plan) in plan.devices.iter().enumerate() {
            if plan.arrivals.is_some() {
                cx.set_timer(cx.now, TimerKind::Arrival(DeviceId(device as u16)));
            }
        }
    }

    /// `job` hands `operation`, which takes `duration`, to `gpu`.
    pub fn issue<S: Sink>(
        &mut self,
        cx: &mut Context<S>,
        plan: &Plan,
        job: JobId,
        (gpu, operation): (GpuId, &Operation),
        duration: Nanos,
    ) {
        let engine = operation.engine.on(plan.gpus[gpu.index()].copy_engines);
        let what = Issued { job, interrupts: operation.interrupts, memory: operation.memory };
        let operation = gpu::Operation { stream: job.task.0, engine, duration, what };
        self.gpus[gpu.index()].issue(operation, &mut self.actions);
        self.begin_operations(cx, gpu);
    }

    fn begin_operations<S: Sink>(&mut self, cx: &mut Context<S>, gpu: GpuId) {
        for Action::Begin { engine, what, duration } in self.actions.drain(..) {
            cx.record(Event::EngineBegin { gpu, engine, job: what.job });
            if let Some(progress) = &mut self.progress {
                progress.begin(cx, (gpu, engine), duration, (what.interrupts, what.memory));
                continue;
            }
            cx.set_timer(cx.now + duration, TimerKind::Engine(gpu, engine));
            // The interrupts of an operation are spread over it, the last one at its end.
            for index in 1..what.interrupts {
                let after = u128::from(duration.0) * u128::from(index) / u128::from(what.interrupts);
                cx.set_timer(cx.now + Nanos(after as u64), TimerKind::Partial(gpu, engine));
            }
        }
    }

    /// The operation on `engine` of `gpu` ends, unless it has been slowed down since the timer was set.
    pub fn end_operation<S: Sink>(
        &mut self,
        cx: &mut Context<S>,
        plan: &Plan,
        gpu: GpuId,
        engine: Engine,
    ) -> Option<Effect> {
        if self.progress.as_mut().is_some_and(|progress| !progress.end(cx.now, (gpu, engine))) {
            return None;
        }
        let Issued { job, interrupts, .. } = self.gpus[gpu.index()].complete(engine, &mut self.actions);
        cx.record(Event::EngineEnd { gpu, engine, job });
        self.begin_operations(cx, gpu);
        if interrupts == 0 {
            return Some(Effect::Complete(job));
        }
        Some(self.interrupt(cx, plan, DeviceId(gpu.0), Some(job), true))
    }

    /// The operation on `engine` of `gpu` raises an interrupt before its end, unless it has been slowed down since.
    pub fn partial_interrupt<S: Sink>(
        &mut self,
        cx: &mut Context<S>,
        plan: &Plan,
        gpu: GpuId,
        engine: Engine,
    ) -> Option<Effect> {
        if self.progress.as_mut().is_some_and(|progress| !progress.pass(cx, (gpu, engine))) {
            return None;
        }
        let issued = self.gpus[gpu.index()].busy(engine).expect("its operation lasts until after this");
        let job = issued.job;
        Some(self.interrupt(cx, plan, DeviceId(gpu.0), Some(job), false))
    }

    /// The CPUs cause `traffic`, in bytes a second, from now on.
    pub fn follow_traffic<S: Sink>(&mut self, cx: &mut Context<S>, traffic: u64) {
        if let Some(progress) = &mut self.progress {
            progress.follow(cx, traffic);
        }
    }

    /// `device`, which serves no job, raises an interrupt; its next one is planned.
    pub fn arrive<S: Sink>(&mut self, cx: &mut Context<S>, plan: &Plan, device: DeviceId) -> Effect {
        let arrivals = plan.devices[device.index()].arrivals.as_ref().expect("only such devices have arrivals");
        let index = self.raised[device.index()];
        let draws = DeviceDraws::new(plan.header.seed, device.index());
        let gap = arrivals.gap.as_ref().map_or(Nanos::ZERO, |gap| draws.gap(gap, index));
        let at = cx.now.saturating_add(arrivals.period).saturating_add(gap);
        cx.set_timer(at, TimerKind::Arrival(device));
        self.interrupt(cx, plan, device, None, true)
    }

    /// `device` interrupts a CPU on behalf of `job`; the `last` interrupt of an operation completes it.
    fn interrupt<S: Sink>(
        &mut self,
        cx: &mut Context<S>,
        plan: &Plan,
        device: DeviceId,
        job: Option<JobId>,
        last: bool,
    ) -> Effect {
        let count = &mut self.raised[device.index()];
        let index = *count;
        *count = count.wrapping_add(1);
        let draws = DeviceDraws::new(plan.header.seed, device.index());
        let times = &plan.devices[device.index()];
        let cpu = plan.dedicated.unwrap_or_else(|| draws.route(&times.cpus, index));
        cx.record(Event::Interrupt { cpu, device, job });
        let deferred = BottomHalf { device, job, last, time: draws.bottom_half(&times.bottom_half, index) };
        Effect::Interrupt { cpu, top_half: TopHalf { deferred, time: draws.top_half(&times.top_half, index) } }
    }

    /// A callback thread is called; answers how long the call takes.
    pub fn call(&mut self, plan: &Plan, callback: usize) -> Nanos {
        let count = &mut self.called[callback];
        let index = *count;
        *count = count.wrapping_add(1);
        let draws = DeviceDraws::new(plan.header.seed, callback);
        plan.threads.callbacks.time.as_ref().map_or(Nanos::ZERO, |time| draws.callback(time, index))
    }
}
