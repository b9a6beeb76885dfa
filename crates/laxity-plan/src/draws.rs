//! Random quantities. Each is drawn from a generator of its own, keyed by the seed, by the task and job (or device and
//! interrupt) that it belongs to, and by its purpose: it does not depend on the order of events, so two schedulers, and a
//! simulation and a live run, see the same jobs (decision 4).

use laxity_model::rng::SplitMix64;
use laxity_model::{CpuId, Distribution, ExecutionTime, Nanos, TaskId};

/// Purposes of a draw of a job; step `op` has number `STEP + op`.
mod job {
    pub const JITTER: u64 = 0;
    pub const GAP: u64 = 1;
    pub const STEP: u64 = 2;
}

/// Purposes of a draw of an interrupt.
mod interrupt {
    pub const ROUTE: u64 = 0;
    pub const TOP_HALF: u64 = 1;
    pub const BOTTOM_HALF: u64 = 2;
    pub const GAP: u64 = 3;
    pub const CALLBACK: u64 = 4;
}

/// The draws of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskDraws {
    /// Seed of the run.
    pub seed: u64,
    /// The task.
    pub task: TaskId,
}

impl TaskDraws {
    /// How long job number `job` takes for step number `op`, whose time is `time`.
    #[inline]
    pub fn step(self, time: &ExecutionTime, job: u32, op: usize) -> Nanos {
        self.draw(&time.actual, time.wcet, job, job::STEP + op as u64)
    }

    /// The extra separation between job number `job` and the next one.
    #[inline]
    pub fn gap(self, gap: &Distribution, job: u32) -> Nanos {
        self.draw(gap, Nanos::ZERO, job, job::GAP)
    }

    /// The time from the arrival of job number `job` to its release: at most `max`.
    #[inline]
    pub fn jitter(self, max: Nanos, job: u32) -> Nanos {
        if max.is_zero() {
            return Nanos::ZERO;
        }
        self.draw(&Distribution::Uniform { min: Nanos::ZERO, max }, Nanos::ZERO, job, job::JITTER)
    }

    #[inline]
    fn draw(self, from: &Distribution, worst_case: Nanos, job: u32, purpose: u64) -> Nanos {
        match from {
            Distribution::WorstCase => worst_case,
            random => {
                let key = [self.seed, u64::from(self.task.0), u64::from(job), purpose];
                random.draw(worst_case, job, &mut SplitMix64::keyed(key))
            }
        }
    }
}

/// The draws of one device, or of one callback thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceDraws {
    seed: u64,
    source: u64,
}

impl DeviceDraws {
    /// The first word of a device's keys is the number of no task: tasks have 32-bit numbers.
    const DEVICES: u64 = 1 << 40;

    /// Those of device, or callback thread, number `number`.
    pub fn new(seed: u64, number: usize) -> DeviceDraws {
        DeviceDraws { seed, source: Self::DEVICES | number as u64 }
    }

    /// The CPU among `cpus` that takes interrupt number `index`.
    pub fn route(self, cpus: &[CpuId], index: u32) -> CpuId {
        cpus[self.generator(index, interrupt::ROUTE).below(cpus.len() as u64) as usize]
    }

    /// How long the top half of interrupt number `index` takes.
    pub fn top_half(self, time: &ExecutionTime, index: u32) -> Nanos {
        time.draw(index, &mut self.generator(index, interrupt::TOP_HALF))
    }

    /// How long its bottom half takes.
    pub fn bottom_half(self, time: &ExecutionTime, index: u32) -> Nanos {
        time.draw(index, &mut self.generator(index, interrupt::BOTTOM_HALF))
    }

    /// The extra separation between interrupt number `index` and the next one.
    pub fn gap(self, gap: &Distribution, index: u32) -> Nanos {
        gap.draw(Nanos::ZERO, index, &mut self.generator(index, interrupt::GAP))
    }

    /// How long call number `index` of a callback thread takes.
    pub fn callback(self, time: &ExecutionTime, index: u32) -> Nanos {
        time.draw(index, &mut self.generator(index, interrupt::CALLBACK))
    }

    fn generator(self, index: u32, purpose: u64) -> SplitMix64 {
        SplitMix64::keyed([self.seed, self.source, u64::from(index), purpose])
    }
}
