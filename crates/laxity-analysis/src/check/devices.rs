//! Devices that serve no job: what their interrupts keep from the jobs of a cluster. Proof: `docs/decisions/0078-devices.md`.
//!
//! | Handling | A bottom half delays |
//! | --- | --- |
//! | standard Linux, process-aware (it has no owner) | the job that the interrupted CPU would run |
//! | PREEMPT_RT, high | any job, from a thread above all of them |
//! | PREEMPT_RT, low; klmirqd without a server | none: its thread runs where no job wants a CPU |
//! | klmirqd with a server | any job that is not above the server: for as long as the server's budgets last |
//!
//! A soft constant bandwidth server may use budget after budget at once where it was starved: then only busy periods of
//! the machine say anything, which have all that arrives in them (`docs/decisions/0142-where-only-busy-periods-tell.md`).

use laxity_model::{
    Device, Distribution, ExecutionTime, InterruptHandling, PriorityRule, Scheduler, ServerKind, ThreadPriority,
    Workload,
};

use super::analysed_task::AnalysedTask;
use super::assign::Cluster;
use super::context::Context;

/// A device that serves no job. Times in ticks (nanoseconds).
#[derive(Clone, Debug)]
pub(super) struct DeviceLoad {
    name: String,
    /// Least separation of its interrupts.
    period: u64,
    /// The top half, with the delivery of the bottom half.
    top_half: u64,
    bottom_half: u64,
    /// The shortest that a bottom half takes.
    shortest: u64,
    /// The clusters whose CPUs it may interrupt.
    interrupted: Vec<usize>,
    bottom_halves: Bottom,
}

/// Where bottom halves are executed.
#[derive(Clone, Copy, Debug)]
enum Bottom {
    /// On the stack of what was interrupted.
    Stack,
    /// In a thread above all jobs of that cluster.
    Above { cluster: usize },
    /// In a thread below all jobs.
    Below,
    /// In a thread of that cluster, by a server.
    Served { cluster: usize, server: Budgets },
}

/// The budgets of a server.
#[derive(Clone, Copy, Debug)]
struct Budgets {
    kind: ServerKind,
    budget: u64,
    period: u64,
    priority: Option<u32>,
}

/// What a device may keep from jobs in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceDelay {
    pub top_halves: u64,
    pub bottom_halves: u64,
    /// How often a thread is given a CPU.
    pub dispatches: u64,
}

impl DeviceLoad {
    /// Those of a workload.
    pub fn all(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster], tasks: usize) -> Vec<DeviceLoad> {
        let handling = workload.gpu_management.handling;
        let release = workload.platform.overheads.at(tasks).thread_release.0;
        let load = |device: &Device| {
            let has = |cluster: &Cluster, cpu| cluster.cpus.contains(cpu);
            let interrupted = (0..clusters.len())
                .filter(|&cluster| device.interrupt_cpus.iter().any(|cpu| has(&clusters[cluster], cpu)))
                .collect();
            let first = device.interrupt_cpus.first();
            let cluster = clusters.iter().position(|cluster| first.is_some_and(|cpu| has(cluster, cpu))).unwrap_or(0);
            let bottom_halves = match (handling, device.server) {
                (InterruptHandling::Linux | InterruptHandling::ProcessAware, _) => Bottom::Stack,
                (InterruptHandling::PreemptRt(ThreadPriority::High), _) => Bottom::Above { cluster },
                (InterruptHandling::PreemptRt(ThreadPriority::Low), _) => Bottom::Below,
                (InterruptHandling::Klmirqd { .. }, None) => Bottom::Below,
                (InterruptHandling::Klmirqd { .. }, Some(server)) => {
                    let (budget, period, priority) = (server.budget.0, server.period.0.max(1), server.priority);
                    let given = (scheduler.rule == PriorityRule::Given).then_some(priority).flatten();
                    Bottom::Served { cluster, server: Budgets { kind: server.kind, budget, period, priority: given } }
                }
            };
            let delivery = if matches!(bottom_halves, Bottom::Stack) { 0 } else { release };
            DeviceLoad {
                name: device.name.clone(),
                period: device.period.0.max(1),
                top_half: longest(&device.top_half).saturating_add(delivery),
                bottom_half: longest(&device.bottom_half),
                shortest: shortest(&device.bottom_half),
                interrupted,
                bottom_halves,
            }
        };
        workload.platform.devices.iter().map(load).collect()
    }

    /// Interrupts that arrive in a window and may hit a CPU of `cluster`.
    fn interrupts(&self, cluster: usize, length: u64) -> u64 {
        if self.interrupted.contains(&cluster) { length.div_ceil(self.period) } else { 0 }
    }

    /// Bottom halves that are to be executed on the stacks of a cluster's CPUs.
    pub fn on_stacks(&self, cluster: usize, length: u64) -> u64 {
        match self.bottom_halves {
            Bottom::Stack => self.interrupts(cluster, length),
            _ => 0,
        }
    }

    /// Time that handlers of its interrupts take from a CPU of the cluster, and a thread above all jobs, which is given
    /// a CPU for `dispatch` each time.
    pub fn handlers(&self, cluster: usize, length: u64, dispatch: u64) -> u64 {
        let top = self.interrupts(cluster, length).saturating_mul(self.top_half);
        let bottom = match self.bottom_halves {
            Bottom::Above { cluster: of } if of == cluster => {
                length.div_ceil(self.period).saturating_mul(self.bottom_half.saturating_add(dispatch))
            }
            _ => self.on_stacks(cluster, length).saturating_mul(self.bottom_half),
        };
        top.saturating_add(bottom)
    }

    /// Whether a thread above all jobs of the cluster executes its bottom halves.
    pub fn is_above(&self, cluster: usize) -> bool {
        matches!(self.bottom_halves, Bottom::Above { cluster: of } if of == cluster)
    }

    /// Whether its bottom halves are executed where no job wants a CPU.
    pub fn is_below(&self) -> bool {
        matches!(self.bottom_halves, Bottom::Below)
    }

    /// Its name, if a soft server executes its bottom halves in that cluster.
    pub fn softly_served(&self, cluster: usize) -> Option<&str> {
        let is_soft = |server: &Budgets| server.kind == ServerKind::CbsSoft;
        matches!(&self.bottom_halves, Bottom::Served { cluster: of, server } if *of == cluster && is_soft(server))
            .then_some(&*self.name)
    }

    /// What a busy period of that length holds of it, in the clusters that are `there`. `change`: that a thread becomes ready, gets a CPU,
    /// and leaves it again. A bottom half that waits for a budget keeps nothing busy.
    pub fn in_busy_period(&self, there: impl Fn(usize) -> bool, change: u64, length: u64) -> u64 {
        let arriving = length.div_ceil(self.period);
        let interrupts = self.interrupted.iter().any(|&cluster| there(cluster));
        let top = if interrupts { self.top_half.saturating_add(change) } else { 0 };
        let bottom = match self.bottom_halves {
            Bottom::Stack if interrupts => self.bottom_half,
            Bottom::Above { cluster } if there(cluster) => self.bottom_half.saturating_add(change),
            Bottom::Served { cluster, server } if there(cluster) => {
                if server.kind != ServerKind::CbsSoft {
                    let (most, dispatches) = self.served(&server, length);
                    let served = most.saturating_add(dispatches.saturating_mul(change));
                    return arriving.saturating_mul(top).saturating_add(served);
                }
                // Its deadline changes with each budget that is used up, two of them in part.
                let budgets = (self.bottom_half / server.budget.max(1)).saturating_add(2);
                self.bottom_half.saturating_add(change.saturating_mul(budgets))
            }
            _ => 0,
        };
        arriving.saturating_mul(top.saturating_add(bottom))
    }

    /// For how long a server that waits for its budgets executes in a window, whatever arrived; and how often its thread is given a CPU: for
    /// each bottom half, of which any number may be waiting, and for each budget.
    fn served(&self, server: &Budgets, length: u64) -> (u64, u64) {
        let most = server.most(length);
        let halves = most.checked_div(self.shortest).unwrap_or(u64::MAX).saturating_add(1);
        (most, halves.saturating_add((length / server.period).saturating_add(2)))
    }

    /// What it may keep from a job of `task`, of the cluster of `context`, in a window.
    pub fn delay(&self, context: &Context<'_>, task: &AnalysedTask, length: u64) -> DeviceDelay {
        let here = context.index;
        let top_halves = self.interrupts(here, length).saturating_mul(self.top_half);
        let bottom = |count: u64| count.saturating_mul(self.bottom_half);
        // The window includes what may be pending when it begins.
        let arriving = length.div_ceil(self.period).saturating_add(1);
        match self.bottom_halves {
            Bottom::Stack => {
                DeviceDelay { top_halves, bottom_halves: bottom(self.on_stacks(here, length)), dispatches: 0 }
            }
            Bottom::Above { cluster } if cluster == here => {
                DeviceDelay { top_halves, bottom_halves: bottom(arriving), dispatches: arriving }
            }
            Bottom::Served { cluster, server } if cluster == here && !server.is_below(context, task) => {
                let (bottom_halves, dispatches) = self.served(&server, length);
                DeviceDelay { top_halves, bottom_halves, dispatches }
            }
            _ => DeviceDelay { top_halves, ..DeviceDelay::default() },
        }
    }
}

fn longest(time: &ExecutionTime) -> u64 {
    time.wcet.max(time.actual.max(time.wcet)).0
}

/// The shortest that may be drawn.
pub(super) fn shortest(time: &ExecutionTime) -> u64 {
    match &time.actual {
        Distribution::WorstCase => time.wcet.0,
        Distribution::Constant(span) => span.0,
        Distribution::Uniform { min, .. } => min.0,
        Distribution::Histogram(bins) => bins.iter().map(|bin| bin.min.0).min().unwrap_or(0),
        Distribution::Recorded(values) => values.iter().map(|value| value.0).min().unwrap_or(0),
    }
}

/// The longest that a hard constant bandwidth server or a sporadic one runs in a window, scheduled in whatever way.
pub(super) fn most(kind: ServerKind, budget: u64, period: u64, length: u64) -> u64 {
    let (budget, period, window) = (u128::from(budget), u128::from(period), u128::from(length));
    let most = match kind {
        // One budget late, at once the next, and its bandwidth from then on.
        ServerKind::CbsHard | ServerKind::CbsSoft => {
            let after = window.saturating_sub(2 * budget);
            2 * budget + (after * budget).div_ceil(period)
        }
        ServerKind::Sporadic => budget * (1 + window.div_ceil(period)),
    };
    u64::try_from(most.min(window)).unwrap_or(length)
}

impl Budgets {
    fn most(&self, length: u64) -> u64 {
        most(self.kind, self.budget, self.period, length)
    }

    /// Whether its fixed priority is below that of `task`.
    fn is_below(&self, context: &Context<'_>, task: &AnalysedTask) -> bool {
        if context.machine.sharing.leaves_behind(context.index, task) {
            return false;
        }
        match context.machine.rule {
            PriorityRule::Edf | PriorityRule::Fair => false,
            PriorityRule::RateMonotonic => task.ranked_by.0 < self.period,
            PriorityRule::DeadlineMonotonic => task.ranked_by.1 < self.period,
            PriorityRule::Given => {
                let ranks = task.priority.zip(self.priority);
                ranks.is_some_and(|(task, server)| task < server)
            }
        }
    }
}
