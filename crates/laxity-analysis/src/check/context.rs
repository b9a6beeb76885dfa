//! What an accounting reads and yields: machine, cluster, and execution times inflated by overheads.

use laxity_model::{Invocation, Nanos, OverheadCosts, PriorityRule, Quanta, ReleaseInterrupts, Scheduler, Workload};

use super::Accounting;
use super::analysed_task::AnalysedTask;
use super::assign::Cluster;
use super::edf::OwnSection;
use super::levels::Levels;
use super::occupancy::Apart;
use super::sharing::Sharing;
use super::terms::Terms;
use crate::overheads::InterruptStream;

/// The machine and the scheduler, as far as they concern overheads. Times in ticks (nanoseconds).
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub accounting: Accounting,
    pub rule: PriorityRule,
    pub is_quantum_driven: bool,
    pub is_staggered: bool,
    pub is_dedicated: bool,
    /// All CPUs of the platform.
    pub cpus: u32,
    pub tick: u64,
    pub quantum: u64,
    /// With the time that handlers wait for a coarse lock, where there is one.
    pub costs: OverheadCosts,
    /// How resources and GPUs are shared.
    pub sharing: Sharing,
}

/// One cluster on the machine.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub machine: &'a Machine,
    /// Its number.
    pub index: usize,
    pub cluster: &'a Cluster,
    /// All analysed, of other clusters too.
    pub analysed: &'a [AnalysedTask],
}

/// The execution times of a cluster, inflated.
#[derive(Clone, Debug)]
pub(super) struct Inflation {
    /// What makes up each member's.
    pub terms: Vec<Terms>,
    /// The members with their waits apart; `None` where the accounting does not keep them apart.
    pub waiting: Option<Apart>,
    /// The members of a CPU under fixed priorities, busy period by busy period; `None` where that is not argued.
    pub levels: Option<Levels>,
    /// How late the scheduler may notice a release, and so act on it: quantum-driven only.
    pub late: u64,
    /// What its interrupts take of the CPU beside the jobs, where that is not in their terms.
    pub beside: Vec<InterruptStream>,
    /// Sections that jobs due earlier may have to wait for, where they count once in each busy period.
    pub sections: Vec<OwnSection>,
}

impl Machine {
    pub fn new(
        workload: &Workload,
        scheduler: &Scheduler,
        accounting: Accounting,
        clusters: &[Cluster],
        sharing: Sharing,
    ) -> Machine {
        let tasks = workload.tasks.len() + workload.graphs.iter().map(|graph| graph.nodes.len()).sum::<usize>();
        let platform = &workload.platform;
        let mut machine = Machine {
            accounting,
            rule: scheduler.rule,
            is_quantum_driven: scheduler.invocation == Invocation::QuantumDriven,
            is_staggered: scheduler.quanta == Quanta::Staggered,
            is_dedicated: scheduler.interrupts == ReleaseInterrupts::Dedicated,
            cpus: platform.cpus as u32,
            tick: platform.tick.0.max(1),
            quantum: platform.quantum.0.max(1),
            costs: platform.overheads.at(tasks),
            sharing,
        };
        if scheduler.coarse_lock {
            machine.wait_for_lock(clusters, spans_clusters(workload, clusters));
        }
        machine
    }

    /// Under a coarse FIFO lock per cluster a handler waits for one other of each CPU that takes part: all, where nodes of one
    /// cluster release those of another.
    fn wait_for_lock(&mut self, clusters: &[Cluster], is_spanned: bool) {
        let cpus = clusters.iter().map(|cluster| cluster.cpus.len());
        let cpus = if is_spanned { cpus.sum() } else { cpus.max().unwrap_or(0) } as u64;
        let others = cpus.saturating_sub(1) + u64::from(self.is_dedicated);
        let costs = &mut self.costs;
        let mut guarded = vec![&mut costs.release, &mut costs.scheduling];
        if self.is_quantum_driven {
            guarded.push(&mut costs.tick);
        }
        let longest = guarded.iter().map(|cost| cost.0).max().unwrap_or(0);
        for cost in guarded.into_iter().filter(|cost| !cost.is_zero()) {
            *cost = Nanos(cost.0.saturating_add(others.saturating_mul(longest)));
        }
    }

    /// How late a release may be acted upon, and with staggered quanta a displaced job be switched in elsewhere.
    pub fn lateness(&self) -> u64 {
        match self.is_quantum_driven {
            true => self.quantum.saturating_add(self.stagger()),
            false => 0,
        }
    }

    /// The distance of the first CPU's quanta from the last's, rounded up.
    pub fn stagger(&self) -> u64 {
        if !self.is_quantum_driven || !self.is_staggered {
            return 0;
        }
        let cpus = u128::from(self.cpus);
        (u128::from(self.quantum) * (cpus - 1)).div_ceil(cpus) as u64
    }

    /// What the ticks of a quantum cost together.
    pub fn ticks_per_quantum(&self) -> u64 {
        self.costs.tick.0.saturating_mul(self.quantum.div_ceil(self.tick))
    }

    /// What ticks leave of a quantum, if anything.
    pub fn left_of_a_quantum(&self) -> Option<u64> {
        self.quantum.checked_sub(self.ticks_per_quantum()).filter(|&left| left > 0)
    }

    /// How long whole quanta last that leave `time` to jobs.
    pub fn in_quanta(&self, time: u64) -> u64 {
        time.div_ceil(self.left_of_a_quantum().unwrap_or(1)).saturating_mul(self.quantum)
    }

    /// The larger of the delays of a preempted job that resumes on its own and on another CPU.
    pub fn cache_delay(&self) -> u64 {
        self.costs.cache_preemption.max(self.costs.cache_migration).0
    }

    /// The order of `members` by falling priority under fixed priorities; as given under EDF.
    pub fn by_priority(&self, members: &[usize], analysed: &[AnalysedTask]) -> Vec<usize> {
        let mut order = members.to_vec();
        order.sort_by_key(|&index| self.rank(index, analysed));
        order
    }

    /// The place of a task in that order: the smaller comes first.
    pub fn rank(&self, index: usize, analysed: &[AnalysedTask]) -> (u64, usize) {
        let task = &analysed[index];
        let rank = match self.rule {
            PriorityRule::Edf | PriorityRule::Fair => 0,
            PriorityRule::RateMonotonic => task.ranked_by.0,
            PriorityRule::DeadlineMonotonic => task.ranked_by.1,
            PriorityRule::Given => task.priority.map_or(u64::MAX, u64::from),
        };
        (rank, index)
    }
}

/// Whether a graph has nodes in several clusters.
fn spans_clusters(workload: &Workload, clusters: &[Cluster]) -> bool {
    let mut first = workload.tasks.len();
    workload.graphs.iter().any(|graph| {
        let nodes = first..first + graph.nodes.len();
        first = nodes.end;
        clusters.iter().filter(|cluster| cluster.members.iter().any(|member| nodes.contains(member))).count() > 1
    })
}

impl<'a> Context<'a> {
    /// CPUs that run its jobs.
    pub fn cpus(&self) -> u32 {
        self.cluster.cpus.len() as u32
    }

    /// The analysed of the cluster.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &'a AnalysedTask> + Clone + use<'a> {
        let analysed = self.analysed;
        self.cluster.members.iter().map(move |&index| &analysed[index])
    }

    /// Tasks beside the members whose servers are charged to these.
    pub fn isolated(&self) -> impl Iterator<Item = &'a AnalysedTask> + use<'a> {
        let analysed = self.analysed;
        self.cluster.isolated.iter().map(move |&index| &analysed[index])
    }

    /// Whether some tasks are bandwidth servers whose budgets are analysed in place of their jobs.
    pub fn has_servers(&self) -> bool {
        !self.cluster.isolated.is_empty() || self.members().any(|task| task.jobs.is_some())
    }

    /// Whether members wait for resources or GPUs, and so for one another.
    pub fn shares(&self) -> bool {
        self.members().any(|task| task.uses_gpu() || !task.uses.requests.is_empty())
    }

    /// Whether waits of members are bounded only if they are kept apart from execution: what they wait for may not follow their
    /// priority at once, or not in their ready queue.
    pub fn keeps_waits_apart(&self) -> bool {
        let is_shared_late = self.machine.is_quantum_driven && self.shares();
        is_shared_late || self.cluster.parts.len() > 1 || self.machine.sharing.keeps_waits_apart(self.index)
    }

    /// Whether members use GPUs.
    pub fn uses_gpus(&self) -> bool {
        self.members().any(AnalysedTask::uses_gpu)
    }

    /// Whether the accounting of blocking is left to the test: response-time analysis on one CPU takes it per task.
    ///
    /// Not under quanta, where a job that was blocked ends amid a quantum, so that blocking also delays those below it.
    pub fn tests_blocking(&self) -> bool {
        self.machine.rule != PriorityRule::Edf && self.cpus() == 1 && !self.machine.is_quantum_driven
    }

    /// The place of a task among the members.
    pub fn member(&self, task: usize) -> usize {
        self.cluster.members.binary_search(&task).expect("members are ascending and the task is one")
    }
}
