//! Random systems in which every job uses a GPU.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    CopyDirection, CpuId, Distribution, ExecutionTime, Factor, Gpu, GpuArbitration, GpuManagement, GpuOperation,
    GpuWork, Instant, InterruptHandling, Nanos, Platform, PriorityRule, Scheduler, Step, Task, ThreadPriority, Waiting,
    Workload,
};
use laxity_tests::simulate;
use laxity_trace::{Record, TraceHeader};

/// What a random system is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub tasks: usize,
    pub cpus: usize,
    pub gpus: usize,
    pub arbitration: GpuArbitration,
    /// How long a bottom half takes. It runs in a thread that nothing preempts.
    pub bottom_half: u64,
    /// Whether all sections are one GPU kernel, of the same length: the worst that sections of their length can do.
    pub is_uniform: bool,
}

/// A task's GPU section, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// What is done on a CPU.
    pub cpu: u64,
    /// The operations; whether each is a GPU kernel.
    pub operations: Vec<(u64, bool)>,
}

/// A system, and the worst case of each task's section.
pub struct System {
    pub workload: Workload,
    pub sections: Vec<Section>,
    scheduler: Scheduler,
    end: Instant,
}

impl Section {
    /// Without waiting for others.
    pub fn length(&self) -> u64 {
        self.cpu + self.operations.iter().map(|&(time, _)| time).sum::<u64>()
    }

    /// The longest operation of that kind.
    pub fn longest(&self, kernels: bool) -> u64 {
        let of_kind = self.operations.iter().filter(|&&(_, kernel)| kernel == kernels);
        of_kind.map(|&(time, _)| time).max().unwrap_or(0)
    }
}

impl System {
    /// Periods from much load to little: with one load, either no job waits or no job completes.
    pub fn random(rng: &mut SplitMix64, shape: &Shape) -> Self {
        let longest = rng.between(1, 9);
        let period = rng.between(2, 4 * shape.tasks as u64) * longest;
        let (mut tasks, mut sections) = (Vec::new(), Vec::new());
        for task in 0..shape.tasks {
            let (section, body) = if shape.is_uniform {
                uniform_section(longest, shape.bottom_half)
            } else {
                random_section(rng, longest, shape.bottom_half)
            };
            let [before, after] = [(); 2].map(|()| {
                let wcet = rng.below(longest);
                Step::Cpu(varying(rng, wcet))
            });
            tasks.push(Task {
                phase: Nanos(rng.below(period)),
                body: vec![before, Step::GpuSection { body }, after],
                ..Task::periodic(format!("t{task}"), Nanos(0), Nanos(period + rng.below(2 * period)))
            });
            sections.push(section);
        }
        let interrupts = if shape.bottom_half > 0 { 1 } else { 0 };
        let gpu = |index| Gpu {
            name: format!("gpu{index}"),
            cluster: 0,
            copy_engines: 1,
            bandwidth: 1,
            latency: Nanos::ZERO,
            interrupt_cpus: vec![CpuId(0)],
        };
        let mut workload = Workload::new("bounds", Platform::identical(shape.cpus), tasks);
        workload.platform.gpus = (0..shape.gpus).map(gpu).collect();
        workload.gpu_management = GpuManagement {
            arbitration: shape.arbitration,
            handling: InterruptHandling::PreemptRt(ThreadPriority::High),
            bottom_half: Some(ExecutionTime::constant(Nanos(shape.bottom_half))),
            ..GpuManagement::default()
        };
        for task in &mut workload.tasks {
            set_interrupts(&mut task.body, interrupts);
        }
        let rule = if rng.below(2) == 0 { PriorityRule::Edf } else { PriorityRule::RateMonotonic };
        let scheduler = Scheduler { rule, ..Scheduler::GLOBAL_EDF };
        System { workload, sections, scheduler, end: Instant(8 * period) }
    }

    pub fn run(&self, seed: u64) -> (TraceHeader, Vec<Record>) {
        simulate(&self.workload, &self.scheduler, self.end, seed)
    }
}

fn uniform_section(length: u64, bottom_half: u64) -> (Section, Vec<Step>) {
    let work = GpuWork::Kernel(ExecutionTime::constant(Nanos(length)));
    let body = vec![Step::Gpu(GpuOperation {
        gpu: None,
        work,
        waiting: Waiting::Synchronous,
        interrupts: 0,
        memory: Factor::ZERO,
    })];
    (Section { cpu: 0, operations: vec![(length + bottom_half, true)] }, body)
}

fn random_section(rng: &mut SplitMix64, longest: u64, bottom_half: u64) -> (Section, Vec<Step>) {
    let (mut section, mut body) = (Section::default(), Vec::new());
    for _ in 0..rng.between(1, 3) {
        let wcet = rng.between(1, longest);
        let is_kernel = rng.below(2) == 0;
        section.operations.push((wcet + bottom_half, is_kernel));
        let time = varying(rng, wcet);
        let work = if is_kernel {
            GpuWork::Kernel(time)
        } else {
            let direction = if rng.below(2) == 0 { CopyDirection::In } else { CopyDirection::Out };
            GpuWork::Copy { direction, bytes: 1, time: Some(time) }
        };
        body.push(Step::Gpu(GpuOperation {
            gpu: None,
            work,
            waiting: Waiting::Synchronous,
            interrupts: 0,
            memory: Factor::ZERO,
        }));
        let cpu = rng.below(longest);
        section.cpu += cpu;
        body.push(Step::Cpu(varying(rng, cpu)));
    }
    (section, body)
}

/// Half of all steps take their worst case: else bounds are never attained.
fn varying(rng: &mut SplitMix64, wcet: u64) -> ExecutionTime {
    let shorter = Distribution::Uniform { min: Nanos(wcet.min(1)), max: Nanos(wcet) };
    let actual = if rng.below(2) == 0 { Distribution::WorstCase } else { shorter };
    ExecutionTime { wcet: Nanos(wcet), actual }
}

fn set_interrupts(body: &mut [Step], count: u32) {
    for step in body {
        match step {
            Step::Gpu(operation) => operation.interrupts = count,
            Step::GpuSection { body } | Step::Critical { body, .. } => set_interrupts(body, count),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => {}
        }
    }
}
