//! Any of the tests: a set is schedulable if one of them says so.

use super::{
    BarVariant, SpeedGrid, bak, bar, bcl, bcl_iterative, check_feasible, ffdbf, ffdbf_grid, gfb, rta, rta_slack,
    trivial, uniprocessor_edf, uniprocessor_edf_interrupts,
};
use crate::soft::bounded_tardiness;
use crate::{Limits, Outcome, Precondition, TaskSet, Test, TestSet, Verdict, edf, fixed_priority};

/// Which tests are combined, and whether the first acceptance ends the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HardMode {
    /// The strongest, in order of cost, until one accepts: trivial, GFB, BAK, RTA, FF-DBF, BAR. On one CPU the exact
    /// test alone.
    FirstAcceptance,
    /// All of these, and BCL and iterative BCL, to see which accept.
    AllTests,
    /// The five of paper 002, section 4.1: GFB, BAK, BCL, iterative BCL, BAR. The paper left BAR out where tasks are
    /// light because it took too long; `without_bar` does the same.
    PaperParity {
        /// Leave BAR out.
        without_bar: bool,
    },
}

/// What the combination found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HardReport {
    /// The verdict that decides: the first acceptance, else an infeasibility, else the last test's answer (a resource
    /// limit before a "not proven": it might have accepted).
    pub verdict: Verdict,
    /// All verdicts, in the order of the tests.
    pub verdicts: Vec<Verdict>,
    /// The tests that accept, of those that ran.
    pub accepted: TestSet,
}

/// Hard schedulability under global EDF by any of several tests.
pub fn hard(set: &TaskSet, mode: HardMode, limits: &Limits) -> HardReport {
    let mut report = HardReport { verdict: first(set), verdicts: Vec::new(), accepted: TestSet::NONE };
    if matches!(report.verdict.outcome, Outcome::Infeasible(_)) {
        report.verdicts.push(report.verdict.clone());
        return report;
    }
    for &test in tests(set, mode) {
        report.add(run_test(set, test, limits));
        if mode == HardMode::FirstAcceptance && !report.accepted.is_empty() {
            break;
        }
    }
    report
}

/// The answer of one test with default options, by name.
pub fn run_test(set: &TaskSet, test: Test, limits: &Limits) -> Verdict {
    match test {
        Test::Trivial => trivial(set),
        Test::Gfb => gfb(set),
        Test::Bak => bak(set),
        Test::Bcl => bcl(set),
        Test::BclIterative => bcl_iterative(set, limits),
        Test::Rta => rta(set, limits),
        Test::RtaSlack => rta_slack(set, None, limits),
        Test::FfDbf => ffdbf(set, limits),
        Test::FfDbfGrid => ffdbf_grid(set, &SpeedGrid::default(), limits),
        Test::Bar => bar(set, BarVariant::Integer, limits),
        Test::BarDense => bar(set, BarVariant::Dense, limits),
        Test::BarLe => bar(set, BarVariant::NonStrict, limits),
        Test::BarPrintedUnsound => bar(set, BarVariant::PrintedUnsound, limits),
        Test::UniprocessorEdf => uniprocessor_edf(set, limits),
        Test::BoundedTardiness => bounded_tardiness(set),
        Test::GlobalFixedPriority => fixed_priority::global(set, limits),
        Test::SuspensionAware => crate::suspension::suspension_aware(set, limits),
        Test::UniprocessorFixedPriority => fixed_priority::uniprocessor(set, &vec![0; set.tasks().len()], limits),
        Test::UniprocessorEdfInterrupts => uniprocessor_edf_interrupts(set, &[], limits),
        Test::BusyPeriod => crate::busy_period::busy_period(set, limits),
        Test::UniprocessorEdfDemand | Test::UniprocessorEdfResponse => edf::of_set(set, test, limits),
        Test::LevelBusyPeriod => fixed_priority::level_busy_period(set, limits),
        Test::UniprocessorFixedPriorityInterrupts => fixed_priority::uniprocessor_interrupts(set, &[], &[], limits),
    }
}

fn tests(set: &TaskSet, mode: HardMode) -> &'static [Test] {
    use Test::{Bak, Bar, Bcl, BclIterative, FfDbf, Gfb, Rta, Trivial, UniprocessorEdf};
    match mode {
        HardMode::FirstAcceptance if set.cpus() == 1 => &[UniprocessorEdf],
        HardMode::FirstAcceptance => &[Trivial, Gfb, Bak, Rta, FfDbf, Bar],
        HardMode::AllTests if set.cpus() == 1 => &[UniprocessorEdf, Gfb, Bak, Bcl, BclIterative, Rta, Bar],
        HardMode::AllTests => &[Trivial, Gfb, Bak, Bcl, BclIterative, Rta, FfDbf, Bar],
        HardMode::PaperParity { without_bar: true } => &[Gfb, Bak, Bcl, BclIterative],
        HardMode::PaperParity { without_bar: false } => &[Gfb, Bak, Bcl, BclIterative, Bar],
    }
}

/// What holds before any test has run.
fn first(set: &TaskSet) -> Verdict {
    let outcome = check_feasible(set).err();
    Verdict::new(Test::Trivial, outcome.unwrap_or(Outcome::NotApplicable(Precondition::NoMoreTasksThanCpus)))
}

impl HardReport {
    fn add(&mut self, verdict: Verdict) {
        if verdict.is_schedulable() {
            self.accepted.insert(verdict.test);
        }
        if rank(&verdict.outcome) >= rank(&self.verdict.outcome) && !self.verdict.is_schedulable() {
            self.verdict = verdict.clone();
        }
        self.verdicts.push(verdict);
    }
}

/// How much an outcome says about the set.
fn rank(outcome: &Outcome) -> u8 {
    match outcome {
        Outcome::NotApplicable(_) => 0,
        Outcome::NotProven(_) => 1,
        Outcome::ResourceLimit { .. } => 2,
        Outcome::Infeasible(_) => 3,
        Outcome::Schedulable(_) => 4,
    }
}
