//! Floating-point filter for preemption-centric accounting: schedulability studies inflate millions of sets, and the
//! exact share of a CPU that hundreds of different periods leave is a fraction of a thousand digits.

use super::System;
use crate::AnalysisTask;
use crate::exact::Rational;
use num_traits::ToPrimitive;

/// An interval that contains `e' = (e + fixed) / left + constant` for each task of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proportional {
    fixed: f64,
    left: f64,
    left_error: f64,
    constant: f64,
    /// Of everything but `left`.
    relative_error: f64,
}

impl Proportional {
    /// `None` if it is not clear that interrupts leave time to jobs. `dispatch`: all that a job pays per execution;
    /// `constant`: what it pays whatever interrupts leave.
    pub(super) fn new(
        system: &System,
        tasks: &[AnalysisTask],
        dispatch: &Rational,
        constant: &Rational,
    ) -> Option<Self> {
        let costs = &system.costs;
        let (count, tick, release) = (tasks.len() as f64, costs.tick.0 as f64, costs.release.0 as f64);
        let (rate, released) = match system.is_dedicated() {
            true => (0.0, 0.0),
            false => (tasks.iter().map(|task| 1.0 / task.period as f64).sum(), count * release),
        };
        let share = tick / system.quantum.0 as f64 + release * rate;
        // n quotients and n - 1 additions are each off by at most one unit of 2^-53, the few other operations too;
        // (n + 32) * 2^-52 is more than twice that, here and below.
        let relative_error = (count + 32.0) * f64::EPSILON;
        let (left, left_error) = (1.0 - share, relative_error * (share + 1.0));
        let preemption = tick + released + system.event_latency.0 as f64 * share;
        let fixed = dispatch.to_f64()? + 2.0 * preemption;
        let clear = system.quantum.0 > 0 && left > 2.0 * left_error;
        clear.then_some(Proportional { fixed, left, left_error, constant: constant.to_f64()?, relative_error })
    }

    /// The least integer not below e', if the interval leaves no doubt about it.
    pub(super) fn ceil(&self, wcet: u64) -> Option<u64> {
        let demand = wcet as f64 + self.fixed;
        let low = demand / (self.left + self.left_error) + self.constant;
        let high = demand / (self.left - self.left_error) + self.constant;
        let (low, high) = (low * (1.0 - self.relative_error), high * (1.0 + self.relative_error));
        (low.ceil() == high.ceil()).then_some(high.ceil() as u64)
    }
}
