//! From a chunk to counts: draw, pack onto clusters, iterate.

use laxity_analysis::klmirqd::{Costs, GpuTask, Handling, Unschedulable, analyze_blocked, blocking_ticks};
use laxity_analysis::partition::{Fit, Overflow, partition};
use laxity_analysis::{Limits, Rational, rational};
use laxity_gen::{Decimal, GeneratedSet, GeneratorSpec, Utilization, UtilizationDistribution, generate, task_set_seed};
use laxity_model::{GpuWork, Step, Task};

use super::{CLUSTER_CPUS, CLUSTER_GPUS, CLUSTERS, CriticalSection, INTERRUPTS, Options, SPEEDUPS, Tardiness};
use crate::{Answer, Chunk, Counts, Curve, Study, StudyError};

/// First word of every seed; scenarios count on from it.
const EXPERIMENT: u64 = 2012_0000;

const HANDLINGS: [(&str, Handling); 3] =
    [("SLIH", Handling::Slih), ("PAI", Handling::Pai), ("klmirqd", Handling::Klmirqd)];

const BANDS: usize = GeneratorSpec::KLMIRQD_BANDS.len();

/// Width of a bin of effective utilizations in thousandths of a CPU, for each of [`SPEEDUPS`].
const BINS: [u64; 4] = [100, 250, 500, 1_000];

/// The exact blocking bound is searched for up to this many GPU-using tasks in a cluster, with so many nodes a task;
/// beyond, an upper bound on it stands in, never above equation 1 and the closer the more tasks there are.
const SEARCHED_TASKS_MAX: usize = 16;
const SEARCH_NODES: u64 = 2_000;

/// The study with its options.
#[derive(Clone, Debug, Default)]
pub struct KlmirqdStudy {
    options: Options,
}

/// The tasks of a cluster, for one use of a GPU by each GPU-using job.
struct Cluster {
    tasks: Vec<GpuTask>,
    /// Bounds on blocking by the k-FMLP, in ticks; they do not depend on how interrupts are handled.
    blocking: Vec<u64>,
}

impl KlmirqdStudy {
    /// The study under `options`.
    pub fn new(options: Options) -> Self {
        KlmirqdStudy { options }
    }

    /// How the task sets of a scenario are drawn at a cap in thousandths of a CPU.
    ///
    /// # Errors
    /// If there is no such scenario.
    pub fn spec(&self, scenario: u32, cap: u64) -> Result<GeneratorSpec, StudyError> {
        let distributions = GeneratorSpec::KLMIRQD_DISTRIBUTIONS;
        let (index, scenarios) = (scenario as usize, distributions.len() * BANDS);
        let distribution = distributions.get(index / BANDS).ok_or(StudyError::Scenario { scenario, scenarios })?;
        let cap = Decimal::from_billionths(cap.saturating_mul(1_000_000));
        // The number of interrupts has no influence on what is drawn: all three are judged on the same sets.
        Ok(GeneratorSpec::klmirqd_schedulability(*distribution, GeneratorSpec::KLMIRQD_BANDS[index % BANDS], 1, cap))
    }

    /// Whether every cluster has bounded tardiness.
    fn judge(&self, clusters: &[Cluster], interrupts: u32, handling: Handling) -> Answer {
        // One round is the check without tardiness; what it leaves unsettled passed it.
        let (limits, unsettled) = match self.options.tardiness {
            Tardiness::FixedPoint => (Limits::default(), Answer::Undecided),
            Tardiness::None => (Limits { rounds: 1, ..Limits::default() }, Answer::Accepted),
        };
        for cluster in clusters {
            let task = |task: &GpuTask| GpuTask { uses: task.uses * interrupts, ..*task };
            let tasks: Vec<GpuTask> = cluster.tasks.iter().map(task).collect();
            let (blocking, costs) = (cluster.blocking.clone(), &Costs::PUBLISHED);
            match analyze_blocked(&tasks, CLUSTER_CPUS, blocking, costs, handling, &limits) {
                Ok(_) => {}
                Err(Unschedulable::Rounds { .. }) if unsettled == Answer::Accepted => {}
                Err(Unschedulable::Rounds { .. }) => return unsettled,
                Err(_) => return Answer::Rejected,
            }
        }
        Answer::Accepted
    }

    /// A cluster of these tasks, with their blocking bounds.
    fn cluster(&self, tasks: Vec<GpuTask>) -> Result<Cluster, Unschedulable> {
        let searched = tasks.iter().filter(|task| task.uses_gpu()).count() <= SEARCHED_TASKS_MAX;
        let limits = Limits { steps: if searched { SEARCH_NODES } else { 0 }, ..Limits::default() };
        let blocking = blocking_ticks(&tasks, CLUSTER_GPUS, self.options.blocking, &limits)?;
        Ok(Cluster { tasks, blocking })
    }

    /// The tasks of each cluster, for one use of a GPU by each GPU-using job.
    ///
    /// Two passes of worst fit, GPU-using tasks first. Loads are utilizations as drawn: their sums are exact and short,
    /// and they differ from `(e + s) / p` by less than a nanosecond of execution.
    fn pack(&self, drawn: &GeneratedSet) -> Vec<Cluster> {
        let tasks: Vec<GpuTask> = drawn.tasks.iter().map(|task| self.gpu_task(task)).collect();
        let exact = |utilization: &Utilization| rational(utilization.units(), Utilization::ONE.units());
        let utilizations: Vec<Rational> = drawn.utilizations.iter().map(exact).collect();
        let passes: Vec<u32> = tasks.iter().map(|task| u32::from(!task.uses_gpu())).collect();
        let capacities = [CLUSTER_CPUS; CLUSTERS];
        let order = self.options.order;
        let packed = partition(&utilizations, &passes, &capacities, Fit::Worst, order, Overflow::Allow);
        let packed = packed.expect("a task that fits nowhere goes to the least loaded cluster");
        let mut clusters = vec![Vec::new(); CLUSTERS];
        for (task, cluster) in tasks.into_iter().zip(packed.clusters) {
            clusters[cluster].push(task);
        }
        let cluster = |tasks| self.cluster(tasks).expect("every cluster has GPUs");
        clusters.into_iter().map(cluster).collect()
    }

    /// The drawn task as the analysis sees it: its GPU part is the paper's s, its own interrupt handling included.
    fn gpu_task(&self, task: &Task) -> GpuTask {
        let (cpu, gpu) = (task.wcet().0, gpu_time(task));
        let critical_section = match self.options.critical_section {
            _ if gpu == 0 => 0,
            CriticalSection::GpuTime => gpu,
            CriticalSection::WholeJob => cpu + gpu,
        };
        GpuTask { cpu, gpu, critical_section, uses: u32::from(gpu > 0), period: task.period.0 }
    }
}

impl Study for KlmirqdStudy {
    fn name(&self) -> &'static str {
        "elliott2012klmirqd"
    }

    fn options(&self) -> String {
        self.options.to_string()
    }

    fn scenarios(&self) -> Vec<String> {
        let names = GeneratorSpec::KLMIRQD_DISTRIBUTIONS.map(distribution_name);
        let band = |band: (Decimal, Decimal)| {
            format!("gpu={}-{}%", band.0.billionths() / 10_000_000, band.1.billionths() / 10_000_000)
        };
        names.iter().flat_map(|name| GeneratorSpec::KLMIRQD_BANDS.map(|b| format!("{name}/{}", band(b)))).collect()
    }

    fn curves(&self) -> Vec<Curve> {
        let curve =
            |speedup, interrupts, name| Curve { graph: format!("R={speedup}"), name: format!("{name} i={interrupts}") };
        SPEEDUPS
            .iter()
            .flat_map(|speedup| INTERRUPTS.map(|i| HANDLINGS.map(|handling| curve(speedup, i, handling.0))))
            .flatten()
            .collect()
    }

    /// 1.0, 1.1 ... 12.0, caps on what CPUs and GPUs execute together. The figures' x-axes are bins of the sets' own
    /// utilizations.
    fn points(&self) -> Vec<u64> {
        (1_000..=12_000).step_by(100).collect()
    }

    fn replicates(&self) -> u64 {
        1_000
    }

    fn evaluate(&self, chunk: &Chunk) -> Result<Counts, StudyError> {
        let spec = self.spec(chunk.scenario, chunk.point)?;
        let mut counts = Counts::default();
        for replicate in chunk.first..chunk.first.saturating_add(chunk.count) {
            let seed = task_set_seed(EXPERIMENT + u64::from(chunk.scenario), chunk.point, replicate);
            let drawn = generate(&spec, seed)?;
            let clusters = self.pack(&drawn);
            let answers =
                INTERRUPTS.map(|interrupts| HANDLINGS.map(|handling| self.judge(&clusters, interrupts, handling.1)));
            let mut curve = 0;
            for (speedup, width) in SPEEDUPS.into_iter().zip(BINS) {
                let effective = effective_utilization(&drawn, speedup);
                let bin = thousandths(effective) / width * width + width / 2;
                for answer in answers.as_flattened() {
                    counts.add(chunk.scenario, curve, bin, effective, *answer);
                    curve += 1;
                }
            }
        }
        Ok(counts)
    }
}

fn distribution_name(distribution: UtilizationDistribution) -> String {
    match distribution {
        UtilizationDistribution::Uniform { min, max } => format!("uniform({min},{max})"),
        UtilizationDistribution::Exponential { mean } => format!("exponential({mean})"),
        UtilizationDistribution::Bimodal { light_ninths } => format!("bimodal({light_ninths}/9)"),
    }
}

/// Worst-case time of a job on the GPU.
fn gpu_time(task: &Task) -> u64 {
    let on_gpu = |step: &Step| match step {
        Step::Gpu(operation) => match &operation.work {
            GpuWork::Kernel(time) | GpuWork::Copy { time: Some(time), .. } => time.wcet.0,
            GpuWork::Copy { time: None, .. } => 0,
        },
        _ => 0,
    };
    task.body.iter().map(on_gpu).sum()
}

/// `sum((e + R * s) / p)`, each term rounded down to 2^-53.
///
/// Cannot overflow: fewer than 10^4 tasks of at most 16 CPUs each.
fn effective_utilization(drawn: &GeneratedSet, speedup: u32) -> Utilization {
    let share = |task: &Task| {
        let demand = u128::from(task.wcet().0) + u128::from(speedup) * u128::from(gpu_time(task));
        ((demand << Utilization::BITS) / u128::from(task.period.0)) as u64
    };
    Utilization::from_units(drawn.tasks.iter().map(share).fold(0, u64::saturating_add))
}

fn thousandths(utilization: Utilization) -> u64 {
    ((u128::from(utilization.units()) * 1_000) >> Utilization::BITS) as u64
}
