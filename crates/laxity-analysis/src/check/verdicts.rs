//! Every test of global EDF on one task set: for comparison with other tools and for measurements.

use super::soft::response_times;
use crate::gedf::run_test;
use crate::{AnalysisTask, Limits, Outcome, TaskSet, Test};

/// What each test says about a set. `None`: it does not apply, or it gave up ([`SetVerdicts::gave_up`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetVerdicts {
    /// The tests of [`SetVerdicts::TESTS`], in that order.
    pub verdicts: [Option<bool>; SetVerdicts::TESTS.len()],
    /// Tests that reached a limit on their work; with more they might answer.
    pub gave_up: Vec<Test>,
    /// Tardiness bounds in ticks, where tardiness is bounded.
    pub tardiness: Option<Vec<u64>>,
}

impl SetVerdicts {
    /// The tests that are asked.
    pub const TESTS: [Test; 10] = [
        Test::Gfb,
        Test::Bak,
        Test::Bcl,
        Test::BclIterative,
        Test::Bar,
        Test::BarLe,
        Test::Rta,
        Test::RtaSlack,
        Test::FfDbf,
        Test::BoundedTardiness,
    ];

    /// Asks each test, without the trivial acceptance of sets that have a CPU for each task.
    pub fn of(set: &TaskSet, limits: &Limits) -> SetVerdicts {
        let mut gave_up = Vec::new();
        let verdicts = Self::TESTS.map(|test| match run_test(set, test, limits).outcome {
            Outcome::Schedulable(_) => Some(true),
            Outcome::NotProven(_) | Outcome::Infeasible(_) => Some(false),
            Outcome::NotApplicable(_) => None,
            Outcome::ResourceLimit { .. } => {
                gave_up.push(test);
                None
            }
        });
        let late = |(task, time): (&AnalysisTask, u64)| time.saturating_sub(task.deadline);
        let tardiness = response_times(set, limits).ok();
        let tardiness = tardiness.map(|times| set.tasks().iter().zip(times).map(late).collect());
        SetVerdicts { verdicts, gave_up, tardiness }
    }
}
