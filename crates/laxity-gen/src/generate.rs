//! From a description and a seed to a task set.

use laxity_model::rng::SplitMix64;
use laxity_model::{Nanos, Task};

use crate::{
    Decimal, GenerateError, GeneratorSpec, PeriodDistribution, Provenance, TASKS_MAX, Utilization,
    UtilizationDistribution, UtilizationRule,
};

/// A task set and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSet {
    /// Generator, version, seed and parameters: store it with every result.
    pub provenance: Provenance,
    /// The utilization drawn for each task, GPU work included; the task's cost is this times its period, rounded down.
    pub utilizations: Vec<Utilization>,
    /// The tasks `t0`, `t1`, ...: periodic, with implicit deadlines, no phase and constant execution times.
    pub tasks: Vec<Task>,
}

/// What is drawn for a task before it gets a body.
pub(crate) struct Draft {
    pub(crate) utilization: Utilization,
    pub(crate) period: Nanos,
}

impl GeneratedSet {
    /// Sum of the utilizations drawn; exact.
    pub fn total_utilization(&self) -> Utilization {
        Utilization::from_units(self.utilizations.iter().map(|drawn| drawn.units()).sum())
    }
}

/// The task set that `spec` and `seed` name. One random stream; nothing else enters.
///
/// # Errors
///
/// Parameters that admit no task set, more than [`TASKS_MAX`] tasks, or a method that discards everything it draws.
pub fn generate(spec: &GeneratorSpec, seed: u64) -> Result<GeneratedSet, GenerateError> {
    spec.validate()?;
    let mut rng = SplitMix64::new(seed);
    let drafts = match &spec.utilizations {
        UtilizationRule::UntilCap { distribution, cap } => until_cap(*distribution, &spec.periods, *cap, &mut rng)?,
        UtilizationRule::FixedSum(fixed) => {
            let drawn = fixed.draw(&mut rng)?;
            drawn.into_iter().map(|utilization| Draft { utilization, period: spec.periods.draw(&mut rng) }).collect()
        }
    };
    let utilizations = drafts.iter().map(|draft| draft.utilization).collect();
    let mut tasks: Vec<Task> = drafts
        .iter()
        .enumerate()
        .map(|(index, draft)| Task::periodic(format!("t{index}"), draft.utilization.cost(draft.period), draft.period))
        .collect();
    if let Some(gpu) = &spec.gpu {
        gpu.apply(&mut tasks, &mut rng);
    }
    Ok(GeneratedSet { provenance: Provenance::new(spec.clone(), seed), utilizations, tasks })
}

/// Draws tasks, the period before the utilization, until the next would lift the total above the cap (spec H.2).
fn until_cap(
    distribution: UtilizationDistribution,
    periods: &PeriodDistribution,
    cap: Decimal,
    rng: &mut SplitMix64,
) -> Result<Vec<Draft>, GenerateError> {
    let mut left = cap.utilization().units();
    let mut drafts = Vec::new();
    loop {
        let period = periods.draw(rng);
        let utilization = distribution.draw(rng);
        let Some(rest) = left.checked_sub(utilization.units()) else { return Ok(drafts) };
        if drafts.len() == TASKS_MAX {
            return Err(GenerateError::TooManyTasks { cap });
        }
        left = rest;
        drafts.push(Draft { utilization, period });
    }
}
