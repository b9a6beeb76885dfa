//! What a job does, carried out on a CPU.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::rng::SplitMix64;
use laxity_model::{ExecutionTime, Nanos, Step};
use laxity_sys::{clock, futex};

/// The steps of a job that can be carried out anywhere.
#[derive(Clone, Debug, Default)]
pub struct Body {
    steps: Vec<Action>,
    leaves_out: bool,
}

#[derive(Clone, Debug)]
enum Action {
    Execute(ExecutionTime),
    Suspend(ExecutionTime),
}

impl Body {
    /// What of `steps` can be carried out.
    pub fn of(steps: &[Step]) -> Self {
        let mut body = Body::default();
        body.extend(steps);
        body
    }

    fn extend(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Cpu(time) | Step::NonPreemptive(time) => self.steps.push(Action::Execute(time.clone())),
                Step::Suspend(time) => self.steps.push(Action::Suspend(time.clone())),
                Step::Critical { body, .. } | Step::GpuSection { body } => {
                    self.leaves_out = true;
                    self.extend(body);
                }
                Step::Gpu(_) => self.leaves_out = true,
            }
        }
    }

    /// Whether there is more to it than can be carried out here: devices, locks.
    pub fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    /// Does it once, as job `index` of `node`. Answers whether it came to its end before `stop` was set.
    pub fn carry_out(&self, seed: u64, node: usize, index: u64, stop: &AtomicU32) -> bool {
        self.steps.iter().enumerate().all(|(step, action)| {
            let mut rng = SplitMix64::keyed([seed, node as u64, index, step as u64]);
            // Jobs are numbered in 32 bits where times are replayed, which begin again anyway.
            let draw = |time: &ExecutionTime, rng: &mut SplitMix64| time.draw(index as u32, rng);
            match action {
                Action::Execute(time) => execute(draw(time, &mut rng), stop),
                Action::Suspend(time) => suspend_until(clock::now().saturating_add(draw(time, &mut rng)), stop),
            }
        })
    }
}

/// Uses the CPU for `span`, preempted or not. (A loop that is calibrated once would be wrong whenever the CPU's frequency
/// changes.)
fn execute(span: Nanos, stop: &AtomicU32) -> bool {
    if span.is_zero() {
        return true;
    }
    let start = clock::thread_cpu_time();
    while clock::thread_cpu_time() - start < span {
        if stop.load(Ordering::Relaxed) != 0 {
            return false;
        }
        // To ask for the time costs more than a look.
        (0..16).for_each(|_| std::hint::spin_loop());
    }
    true
}

/// Sleeps until `instant`. Answers whether it came before `stop` was set.
pub fn suspend_until(instant: laxity_model::Instant, stop: &AtomicU32) -> bool {
    while stop.load(Ordering::Relaxed) == 0 {
        if futex::wait(stop, 0, instant) == futex::Ended::TimedOut {
            return true;
        }
    }
    false
}
