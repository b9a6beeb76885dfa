//! From a chunk to counts: draw, inflate, test.

use laxity_analysis::gedf::run_test;
use laxity_analysis::overheads::{
    Beyond, Inflated, InterruptLag, OverheadError, QuantumInterrupts, QuantumTiming, System, Windows, interpolate,
    preemption_centric, quantum, task_centric,
};
use laxity_analysis::{AnalysisTask, Limits, Outcome, TaskSet, Test};
use laxity_gen::{
    Decimal, GeneratorSpec, PeriodDistribution, UtilizationDistribution, UtilizationRule, generate, task_set_seed,
};
use laxity_model::{Nanos, OverheadCosts, OverheadKind, OverheadProfile, ReleaseInterrupts, Scheduler};

use super::{Accounting, CPUS, Criterion, GedfCurve, InterruptCpu, Options, StaggeredCpus, Waiting};
use crate::{Answer, Chunk, Counts, Curve, Study, StudyError};

/// Distance of ticks and length of the scheduling quantum.
const QUANTUM: Nanos = Nanos::from_millis(1);

/// First word of every seed; scenarios count on from it.
const EXPERIMENT: u64 = 2009_0000;

/// The paper's five tests, in order of cost. All inflated sets have implicit deadlines, where BAK accepts nothing that
/// GFB does not, and BCL nothing that iterative BCL does not; a test keeps that leaving them out changes nothing.
const PAPER: &[Test] = &[Test::Gfb, Test::BclIterative, Test::Bar];
/// Without BAR for uniform light utilizations, where it took too long (section 4.2).
const PAPER_UNIFORM_LIGHT: &[Test] = &[Test::Gfb, Test::BclIterative];
/// Tests that may accept sets that the others do not. For implicit deadlines FF-DBF is GFB.
const STRONGER: &[Test] = &[Test::Trivial, Test::Rta];
const STRONGER_UNIFORM_LIGHT: &[Test] = &[Test::Trivial, Test::Bar, Test::Rta];

/// The hard graphs: judged by the paper's tests, and by these and stronger ones.
const STRONGEST: &str = "hard-strongest";

/// The study with its options.
#[derive(Clone, Debug)]
pub struct GedfStudy {
    name: &'static str,
    options: Options,
    curves: Vec<GedfCurve>,
    limits: Limits,
}

impl GedfStudy {
    /// The study under `options`.
    pub fn new(options: Options) -> Self {
        GedfStudy { name: "brandenburg2009gedf", options, curves: GedfCurve::all(), limits: Limits::default() }
    }

    /// The same task sets and tests, with the overheads of Laxity's scheduler in the kernel.
    pub fn in_kernel(options: Options, waiting: Waiting) -> Self {
        let name = match waiting {
            Waiting::Nothing => "brandenburg2009gedf_kernel",
            Waiting::Longest => "brandenburg2009gedf_kernel_waiting",
        };
        GedfStudy { name, options, curves: GedfCurve::in_kernel(waiting), limits: Limits::default() }
    }

    /// How the task sets of a scenario are drawn at a cap in thousandths of a CPU.
    ///
    /// # Errors
    /// If there is no such scenario.
    pub fn spec(&self, scenario: u32, cap: u64) -> Result<GeneratorSpec, StudyError> {
        let (scenarios, cap) = (18, Decimal::from_billionths(cap.saturating_mul(1_000_000)));
        GeneratorSpec::edf_scenarios(cap).nth(scenario as usize).ok_or(StudyError::Scenario { scenario, scenarios })
    }

    /// Judges one task set under every curve.
    fn judge(&self, tasks: &[AnalysisTask], [paper, stronger]: [&[Test]; 2]) -> Vec<Answer> {
        let mut answers = Vec::with_capacity(self.curves.len() * 2);
        let mut strongest = Vec::with_capacity(self.curves.len());
        for curve in &self.curves {
            // An accounting that leaves no time to jobs, or no window to one of them, leaves nothing to test.
            let set = self.inflate(curve, tasks).ok().and_then(|inflated| inflated.task_set().ok());
            let by_any = |tests| set.as_ref().map_or(Answer::Rejected, |set| self.any(set, tests));
            match curve.criterion {
                Criterion::Soft => answers.push(by_any(&[Test::BoundedTardiness])),
                Criterion::Hard => {
                    let by_paper = by_any(paper);
                    answers.push(by_paper);
                    strongest.push(match by_paper {
                        Answer::Accepted => Answer::Accepted,
                        _ => by_any(stronger).or(by_paper),
                    });
                }
            }
        }
        answers.append(&mut strongest);
        answers
    }

    /// Whether one of `tests` accepts; stops at the first that does, or that finds the set infeasible.
    fn any(&self, set: &TaskSet, tests: &[Test]) -> Answer {
        let mut answer = Answer::Rejected;
        for &test in tests {
            match run_test(set, test, &self.limits).outcome {
                Outcome::Schedulable(_) => return Answer::Accepted,
                Outcome::Infeasible(_) => return Answer::Rejected,
                Outcome::ResourceLimit { .. } => answer = Answer::Undecided,
                Outcome::NotProven(_) | Outcome::NotApplicable(_) => {}
            }
        }
        answer
    }

    /// The tasks to test in place of the given ones.
    fn inflate(&self, curve: &GedfCurve, tasks: &[AnalysisTask]) -> Result<Inflated, OverheadError> {
        let Some((scheduler, profile)) = &curve.realization else {
            return Ok(Inflated { cpus: CPUS, tasks: tasks.to_vec(), charges: Vec::new() });
        };
        let system = System {
            cpus: CPUS,
            interrupts: scheduler.interrupts,
            costs: self.costs(profile, tasks.len()),
            quantum: QUANTUM,
            event_latency: Nanos::ZERO,
        };
        let (accounting, timing) = match curve.criterion {
            Criterion::Hard => (self.options.hard, QuantumTiming::Hard),
            Criterion::Soft => (self.options.soft, QuantumTiming::Soft),
        };
        let lag = InterruptLag::None;
        match (curve.is_quantum_driven(), accounting) {
            (true, accounting) => self.inflate_quantum(&system, scheduler, tasks, timing, accounting),
            (false, Accounting::TaskCentric) => {
                task_centric(&self.as_jobs_see_it(system), tasks, Windows::Deadlines, lag, false)
            }
            (false, Accounting::PreemptionCentric) => preemption_centric(&self.as_jobs_see_it(system), tasks),
        }
    }

    /// A dedicated CPU that keeps up is, to the others, a machine with a CPU less, no release interrupts, and a release
    /// that takes longer to be heard of: the analysis would refuse sets with more releases than it can handle. (The
    /// releases of quantum-driven plugins take 1 or 2 us, far from that.)
    fn as_jobs_see_it(&self, system: System) -> System {
        if !system.is_dedicated() || self.options.interrupt_cpu == InterruptCpu::Checked {
            return system;
        }
        let OverheadCosts { release, ipi_latency, .. } = system.costs;
        let costs = OverheadCosts { release: Nanos::ZERO, ipi_latency: ipi_latency + release, ..system.costs };
        System { cpus: system.cpus - 1, interrupts: ReleaseInterrupts::Global, costs, ..system }
    }

    fn inflate_quantum(
        &self,
        system: &System,
        scheduler: &Scheduler,
        tasks: &[AnalysisTask],
        timing: QuantumTiming,
        accounting: Accounting,
    ) -> Result<Inflated, OverheadError> {
        let interrupts = match accounting {
            Accounting::TaskCentric => QuantumInterrupts::TaskCentric(InterruptLag::None),
            Accounting::PreemptionCentric => QuantumInterrupts::QuantumCentric,
        };
        let staggered = match self.options.staggered_cpus {
            StaggeredCpus::All => CPUS,
            StaggeredCpus::Scheduling => system.capacity()?,
        };
        quantum(system, tasks, Windows::Deadlines, scheduler.quanta, timing, interrupts, staggered)
    }

    fn costs(&self, profile: &OverheadProfile, tasks: usize) -> OverheadCosts {
        let Options { below, above, cache_delay, .. } = self.options;
        let costs = match (below, above) {
            (Beyond::Hold, Beyond::Extrapolate) => profile.at(tasks),
            _ => interpolated(profile, tasks, below, above),
        };
        OverheadCosts { cache_preemption: cache_delay, cache_migration: cache_delay, ..costs }
    }
}

impl Study for GedfStudy {
    fn name(&self) -> &'static str {
        self.name
    }

    fn options(&self) -> String {
        self.options.to_string()
    }

    fn scenarios(&self) -> Vec<String> {
        let utilizations = UtilizationDistribution::NAMED[..6].iter().map(|named| named.0);
        let periods = &PeriodDistribution::NAMED[..3];
        utilizations
            .flat_map(|utilization| periods.iter().map(move |named| format!("{utilization}/{}", named.0)))
            .collect()
    }

    fn curves(&self) -> Vec<Curve> {
        let hard = self.curves.iter().filter(|curve| curve.criterion == Criterion::Hard);
        let strongest = hard.map(|curve| Curve { graph: STRONGEST.to_owned(), ..curve.curve() });
        self.curves.iter().map(GedfCurve::curve).chain(strongest).collect()
    }

    /// 1.0, 1.2 ... 32.0: 156 points. The paper has "on average over 150 a graph", denser where its curves change; 0.2
    /// CPUs everywhere is as dense as that, and needs no first pass.
    fn points(&self) -> Vec<u64> {
        (1_000..=32_000).step_by(200).collect()
    }

    fn replicates(&self) -> u64 {
        1_000
    }

    fn evaluate(&self, chunk: &Chunk) -> Result<Counts, StudyError> {
        let spec = self.spec(chunk.scenario, chunk.point)?;
        let tests = tests(&spec);
        let mut counts = Counts::default();
        for replicate in chunk.first..chunk.first.saturating_add(chunk.count) {
            let seed = task_set_seed(EXPERIMENT + u64::from(chunk.scenario), chunk.point, replicate);
            let drawn = generate(&spec, seed)?;
            let tasks: Vec<AnalysisTask> = drawn.tasks.iter().map(AnalysisTask::from).collect();
            for (curve, answer) in (0..).zip(self.judge(&tasks, tests)) {
                counts.add(chunk.scenario, curve, chunk.point, drawn.total_utilization(), answer);
            }
        }
        Ok(counts)
    }
}

/// The paper's tests, and those beyond it.
fn tests(spec: &GeneratorSpec) -> [&'static [Test]; 2] {
    let light = UtilizationDistribution::NAMED[0].1;
    match &spec.utilizations {
        UtilizationRule::UntilCap { distribution, .. } if *distribution == light => {
            [PAPER_UNIFORM_LIGHT, STRONGER_UNIFORM_LIGHT]
        }
        _ => [PAPER, STRONGER],
    }
}

/// The costs with a choice of what lies beyond the measured numbers of tasks, rounded up to the nanosecond.
fn interpolated(profile: &OverheadProfile, tasks: usize, below: Beyond, above: Beyond) -> OverheadCosts {
    let cost = |kind: OverheadKind| {
        let picos = interpolate(&profile.tables[kind as usize], tasks as u64, below, above);
        let picos = u128::try_from(picos.ceil().to_integer()).unwrap_or(u128::MAX);
        Nanos(u64::try_from(picos.div_ceil(1_000)).unwrap_or(u64::MAX))
    };
    OverheadCosts {
        release: cost(OverheadKind::Release),
        scheduling: cost(OverheadKind::Scheduling),
        context_switch: cost(OverheadKind::ContextSwitch),
        ipi_latency: cost(OverheadKind::IpiLatency),
        tick: cost(OverheadKind::Tick),
        timer_rearming: cost(OverheadKind::TimerRearming),
        ..OverheadCosts::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dedicated_cpu_that_keeps_up_costs_jobs_the_same_whether_asked_or_not() {
        let tasks: Vec<AnalysisTask> =
            (1..=40).map(|k| AnalysisTask::implicit(k * 100_000, (20 + k) * 1_000_000)).collect();
        let mut compared = 0;
        for accounting in ["hard=task-centric soft=preemption-centric", "hard=preemption-centric soft=task-centric"] {
            let study = |asked: &str| GedfStudy::new(format!("{accounting} {asked}").parse().expect("options"));
            let (checked, granted) = (study("interrupt-cpu=checked"), study("interrupt-cpu=keeps-up"));
            for curve in &checked.curves {
                let [checked, granted] = [&checked, &granted].map(|study| study.inflate(curve, &tasks).expect("fits"));
                assert_eq!((checked.cpus, &checked.tasks), (granted.cpus, &granted.tasks), "{}", curve.name);
                compared += usize::from(granted.cpus == CPUS - 1);
            }
        }
        assert_eq!(compared, 14, "CE1, FE1, CQ1 and S-CQ1 hard, the first three soft, twice");
    }
}
