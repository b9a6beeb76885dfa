//! What an accounting reads and yields: machine, cluster, and execution times inflated by overheads.

use laxity_model::{Invocation, Nanos, OverheadCosts, PriorityRule, Quanta, ReleaseInterrupts, Scheduler, Workload};

use super::assign::Cluster;
use super::explain;
use super::sharing::Sharing;
use super::subject::Subject;
use super::terms::{Term, Terms};
use super::{Accounting, Failure, published, safe};
use crate::{AnalysisTask, LONGEST_TICKS, TaskSet};

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
    /// All subjects, of other clusters too.
    pub subjects: &'a [Subject],
}

/// The execution times of a cluster, inflated.
#[derive(Clone, Debug)]
pub(super) struct Inflation {
    /// What makes up each member's.
    pub terms: Vec<Terms>,
    /// How late the scheduler may notice a release, and so act on it: quantum-driven only.
    pub late: u64,
}

/// How the lateness of a quantum-driven scheduler enters a task set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lateness {
    /// Not at all.
    Ignored,
    /// Periods and deadlines are shorter by it: what is left once a release was noticed.
    Shortens,
    /// It counts as execution.
    Charged,
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
            machine.wait_for_lock(clusters);
        }
        machine
    }

    /// Under a coarse FIFO lock per cluster a handler waits for one other of each CPU that takes part.
    fn wait_for_lock(&mut self, clusters: &[Cluster]) {
        let cpus = clusters.iter().map(|cluster| cluster.cpus.len()).max().unwrap_or(0) as u64;
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

    /// The larger of the delays of a preempted job that resumes on its own and on another CPU.
    pub fn cache_delay(&self) -> u64 {
        self.costs.cache_preemption.max(self.costs.cache_migration).0
    }

    /// The order of `members` by falling priority under fixed priorities; as given under EDF.
    pub fn by_priority(&self, members: &[usize], subjects: &[Subject]) -> Vec<usize> {
        let mut order = members.to_vec();
        let key = |&index: &usize| {
            let subject = &subjects[index];
            let rank = match self.rule {
                PriorityRule::Edf | PriorityRule::Fair => 0,
                PriorityRule::RateMonotonic => subject.period,
                PriorityRule::DeadlineMonotonic => subject.deadline,
                PriorityRule::Given => subject.priority.map_or(u64::MAX, u64::from),
            };
            (rank, index)
        };
        order.sort_by_key(key);
        order
    }
}

impl<'a> Context<'a> {
    /// CPUs that run its jobs.
    pub fn cpus(&self) -> u32 {
        self.cluster.cpus.len() as u32
    }

    /// The subjects of the cluster.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &'a Subject> + Clone + use<'a> {
        let subjects = self.subjects;
        self.cluster.members.iter().map(move |&index| &subjects[index])
    }

    /// Whether members wait for resources or GPUs, and so for one another.
    pub fn shares(&self) -> bool {
        self.members().any(|task| task.uses_gpu() || !task.uses.requests.is_empty())
    }

    /// Whether members use GPUs.
    pub fn uses_gpus(&self) -> bool {
        self.members().any(Subject::uses_gpu)
    }

    /// Whether the accounting of blocking is left to the test: response-time analysis on one CPU takes it per task.
    ///
    /// Not under quanta, where a job that was blocked ends amid a quantum, so that blocking also delays those below it.
    pub fn tests_blocking(&self) -> bool {
        self.machine.rule != PriorityRule::Edf && self.cpus() == 1 && !self.machine.is_quantum_driven
    }

    /// Inflates the members: for hard deadlines, or for jobs that are pending up to their deadline and `tardiness`
    /// beyond (one bound a member).
    ///
    /// # Errors
    /// Why no accounting is possible: interrupts leave no time, or a time cannot be written.
    pub fn inflate(&self, tardiness: Option<&[u64]>) -> Result<Inflation, Failure> {
        let mut inflation = match self.machine.accounting {
            Accounting::Safe => safe::inflate(self, tardiness),
            Accounting::Published => published::inflate(self, tardiness),
        }
        .map_err(|message| explain::of_cluster(self, message))?;
        self.add_early_jobs(&mut inflation.terms);
        match inflation.terms.iter().position(|terms| terms.total() > LONGEST_TICKS) {
            None => Ok(inflation),
            Some(member) => {
                let message = "the inflated execution time exceeds 36 years; lower the overheads".to_owned();
                Err(explain::of_task(self, self.cluster.members[member], message))
            }
        }
    }

    /// A node's job may run before it arrives, one at a time (paper 003, section 5.2.3). Under EDF its deadline is still
    /// that of its arrival; at a fixed priority it is one job more than in any window.
    fn add_early_jobs(&self, terms: &mut [Terms]) {
        if self.machine.rule == PriorityRule::Edf {
            return;
        }
        let mut early = 0u64;
        for index in self.machine.by_priority(&self.cluster.members, self.subjects) {
            let own = &mut terms[self.member(index)];
            let execution = if self.tests_blocking() { own.without(Term::Blocking) } else { *own }.total();
            own.add(Term::EarlyJobs, early);
            if self.subjects[index].is_early {
                early = early.saturating_add(execution);
            }
        }
    }

    /// The task set to test, its members in `order` (indices of subjects).
    ///
    /// # Errors
    /// For which task nothing of its period or deadline is left.
    pub fn task_set(&self, inflation: &Inflation, order: &[usize], lateness: Lateness) -> Result<TaskSet, Failure> {
        let mut tasks = Vec::with_capacity(order.len());
        for &index in order {
            let subject = &self.subjects[index];
            let terms = inflation.terms[self.member(index)];
            let charged = if self.tests_blocking() { terms.without(Term::Blocking) } else { terms };
            let (more, less) = match lateness {
                Lateness::Ignored => (0, 0),
                Lateness::Shortens => (0, inflation.late),
                Lateness::Charged => (inflation.late, 0),
            };
            let window = subject.period.min(subject.deadline);
            if window <= less {
                let message = format!(
                    "a release may be acted upon {} late, and its period or deadline is {}; shorten the quantum",
                    Nanos(less),
                    Nanos(window)
                );
                return Err(explain::of_task(self, index, message));
            }
            let wcet = charged.total().saturating_add(more).max(1);
            tasks.push(AnalysisTask::new(wcet, subject.period - less, subject.deadline - less));
        }
        TaskSet::new(self.cpus(), tasks).map_err(|error| explain::of_cluster(self, error.to_string()))
    }

    /// The place of a subject among the members.
    pub fn member(&self, subject: usize) -> usize {
        self.cluster.members.binary_search(&subject).expect("members are ascending and the subject is one")
    }
}
