//! What a job does, carried out on a CPU.

use laxity_model::rng::SplitMix64;
use laxity_model::{Distribution, ExecutionTime, Nanos, Step};
use serde::{Deserialize, Serialize};

use super::control::Control;
use super::work::Work;

/// The steps of a job that can be carried out anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    steps: Vec<Action>,
    #[serde(skip)]
    leaves_out: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Cpu(Time),
    Suspend(Time),
}

/// How long a step takes. Between processes it is what a file has after `actual =`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Time(Distribution);

impl From<&ExecutionTime> for Time {
    fn from(time: &ExecutionTime) -> Self {
        match &time.actual {
            Distribution::WorstCase => Time(Distribution::Constant(time.wcet)),
            actual => Time(actual.clone()),
        }
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.0.to_toml().expect("the worst case was replaced by what it is")
    }
}

impl TryFrom<String> for Time {
    type Error = laxity_model::ParseDistributionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Time)
    }
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
                Step::Cpu(time) | Step::NonPreemptive(time) => self.steps.push(Action::Cpu(time.into())),
                Step::Suspend(time) => self.steps.push(Action::Suspend(time.into())),
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

    /// The most CPU time that it takes.
    pub fn cost(&self) -> Nanos {
        let cost = |action: &Action| match action {
            Action::Cpu(Time(time)) => time.max(Nanos::ZERO),
            Action::Suspend(_) => Nanos::ZERO,
        };
        self.steps.iter().map(cost).sum()
    }

    /// Does it once, as job `index` of the node at `node`. Answers whether it came to its end before it was stopped.
    pub fn carry_out(&self, seed: u64, node: usize, index: u64, work: &mut Work, control: &Control) -> bool {
        work.begin_job();
        let is_done = self.steps.iter().enumerate().all(|(step, action)| {
            let mut rng = SplitMix64::keyed([seed, node as u64, index, step as u64]);
            // Jobs are numbered in 32 bits where times are replayed, which begin again anyway.
            let mut draw = |Time(time): &Time| time.draw(Nanos::ZERO, index as u32, &mut rng);
            match action {
                Action::Cpu(time) => work.execute(draw(time), control),
                Action::Suspend(time) => control.suspend_for(draw(time)),
            }
        });
        work.end_job();
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_the_same_on_the_other_side_of_a_process_boundary() {
        let uniform = Distribution::Uniform { min: Nanos(1), max: Nanos(5_000_000) };
        let steps = [
            Step::Cpu(ExecutionTime::constant(Nanos(1_234_567))),
            Step::Suspend(ExecutionTime { wcet: Nanos(5_000_000), actual: uniform }),
        ];
        let body = Body::of(&steps);
        let text = serde_json::to_string(&body).expect("JSON");
        assert_eq!(serde_json::from_str::<Body>(&text).expect(&text), body);
        assert!(!text.contains('\n'), "it is sent as a line");
    }
}
