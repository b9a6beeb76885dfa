//! For how long a part of the machine may be busy without a break: whatever is pending is complete by then.
//!
//! Clusters of which graphs have nodes are one part; each other cluster is one of its own. A part is busy while one of its jobs is
//! pending, once its timer is due or its tokens are there, or one of its interrupts. At each such instant something of what
//! busy periods consist of proceeds:
//!
//! - A pending job executes, suspends itself for a time, or has an operation on an engine. Or it waits: for a CPU of its cluster, which
//!   executes other jobs or handlers; for its predecessor, for a replica of data, for a lock or an engine, and then what it waits
//!   for is pending itself. Jobs never wait in a circle, so that somewhere there is one that proceeds. Whether priorities are
//!   inherited, and which queues are FIFO, does not matter.
//! - Handlers, bottom halves in any thread, those of devices that serve no job among them, decisions of the scheduler, context switches, interrupts between processors, and
//!   cache-related delay are there as often as there are events: jobs that become ready, threads that do, requests for locks.
//!
//! So a busy period lasts no longer than the sum of all that, over all jobs that become ready in it, on however many CPUs. Which are
//! these follows from the arrivals at sources alone, since nothing was pending when it began: not where sources wait for tokens or
//! for replicas of data, and after that for their next period while nothing is pending. It is the least `B > 0` with
//!
//! ```text
//! B = sum over tasks of ceil((B + J + U) / p) * C + CPUs * ceil(B / tick) * tick's cost
//!
//! (`B + 1` on the right where a job may have nothing left but an instant, and be pending when all else is complete)
//!
//! C    all that a job does, on CPUs and GPUs, with what its events cost
//! J    its release jitter
//! U    of a node: how unevenly its tokens come, if jobs take no time
//! ```
//!
//! Of branches of a graph that may execute side by side only the longest counts ([`branches`](super::branches)). For one pipeline on a machine
//! that it cannot use in parallel this is exact but for overheads, where a sum of response times of nodes counts in each what
//! delays only one of them. Proof: `docs/decisions/0135-busy-periods-of-the-machine.md`.

use laxity_model::{InterruptHandling, Nanos, OverheadCosts};

use super::Accounting;
use super::analysed_task::{AnalysedTask, UNBOUNDED};
use super::analysis::{Analysis, Found};
use super::assign::{Cluster, Part};
use super::branches::{Job, Load};
use super::context::Context;
use super::devices::DeviceLoad;
use super::halves::Halves;
use super::safe;
use super::settled::pends_longer;
use super::{BoundSource, Failure, Finding, Status, explain};
use crate::Test;
use crate::busy_period::least;

/// Rounds after which a part is taken to be busy for ever.
const ROUNDS_MAX: u32 = 1_000;

/// The longest response time that is told, in deadlines and periods. Where the load nears one CPU busy periods grow without end, and
/// say no more of a job than that it is tardy.
const LONGEST_OF_USE: u64 = 5;

impl Analysis<'_> {
    /// Of each cluster: for how long the part of the machine that it is of may be busy. `None`: no bound is known.
    pub fn busy_periods(&self, tasks: &[AnalysedTask]) -> Vec<Option<u64>> {
        let machine = &self.machine;
        // Under quanta CPUs wait for a boundary, and servers for budget.
        let may_idle = machine.is_quantum_driven || tasks.iter().any(|task| task.server.is_some());
        if may_idle || machine.accounting != Accounting::Safe {
            return vec![None; self.clusters.len()];
        }
        let mut uneven = vec![0; tasks.len()];
        for flow in &self.flows {
            flow.write_unevenness(&mut uneven);
        }
        let parts = self.parts();
        let mut found = vec![None; self.clusters.len()];
        for part in 0..found.len() {
            let members = || (0..found.len()).filter(|&cluster| parts[cluster] == part);
            if members().next() == Some(part) && !(members().count() == 1 && self.is_served_well(tasks, part)) {
                let period = self.busy_period(tasks, &uneven, members());
                let period = period.filter(|&busy| members().all(|index| self.leaves_no_half(tasks, index, busy)));
                members().collect::<Vec<_>>().into_iter().for_each(|cluster| found[cluster] = period);
            }
        }
        found
    }

    /// Takes back those of parts with graphs whose jobs may wait for a replica of their data (`waits`).
    pub fn refute_busy_periods(&self, waits: &[bool], busy: &mut [Option<u64>]) {
        let (parts, mut first) = (self.parts(), self.workload.tasks.len());
        for (graph, &waits) in self.workload.graphs.iter().zip(waits) {
            let has_nodes = |cluster: &Cluster| cluster.members.contains(&first);
            let part = self.clusters.iter().position(has_nodes).map(|cluster| parts[cluster]).filter(|_| waits);
            let of_part = busy.iter_mut().zip(&parts).filter(|(_, of)| Some(**of) == part);
            of_part.for_each(|(busy, _)| *busy = None);
            first += graph.nodes.len();
        }
    }

    /// Of each cluster: the first of its part.
    fn parts(&self) -> Vec<usize> {
        // A CPU that is dedicated to interrupts handles those of all.
        if self.machine.is_dedicated {
            return vec![0; self.clusters.len()];
        }
        let mut parts: Vec<usize> = (0..self.clusters.len()).collect();
        for flow in &self.flows {
            let has_nodes =
                |cluster: &usize| self.clusters[*cluster].members.iter().any(|task| flow.nodes().contains(task));
            let joined: Vec<usize> = (0..parts.len()).filter(has_nodes).map(|cluster| parts[cluster]).collect();
            let Some(&first) = joined.iter().min() else { continue };
            parts.iter_mut().filter(|part| joined.contains(part)).for_each(|part| *part = first);
        }
        parts
    }

    /// Whether the tests of one CPU say all of a cluster that there is to say: they are exact but for overheads.
    fn is_served_well(&self, tasks: &[AnalysedTask], index: usize) -> bool {
        let context = Context { machine: &self.machine, index, cluster: &self.clusters[index], analysed: tasks };
        let is_alone =
            context.cpus() == 1 && !pends_longer(&context) && context.members().all(|task| task.node.is_none());
        is_alone && beyond_tests(&context).is_none()
    }

    /// Whether Linux executes bottom halves itself, and leaves none to a daemon that waits for other threads of the machine.
    fn leaves_no_half(&self, tasks: &[AnalysedTask], index: usize, busy: u64) -> bool {
        let context = Context { machine: &self.machine, index, cluster: &self.clusters[index], analysed: tasks };
        let pending: Vec<u64> = context.members().map(|task| task.within(busy)).collect();
        let has_halves = context.uses_gpus() || !self.machine.sharing.devices.is_empty();
        !has_halves || safe::lag(&context, &pending).is_ok()
    }

    fn busy_period(
        &self,
        tasks: &[AnalysedTask],
        uneven: &[u64],
        clusters: impl Iterator<Item = usize> + Clone,
    ) -> Option<u64> {
        // A handler that waits for a coarse lock waits for another handler.
        let costs = self.workload.platform.overheads.at(tasks.len());
        let devices = &self.machine.sharing.devices;
        let is_shared = !self.workload.best_effort.is_empty() || devices.iter().any(DeviceLoad::is_below);
        let context =
            |index: usize| Context { machine: &self.machine, index, cluster: &self.clusters[index], analysed: tasks };
        let works: Vec<(Context<'_>, Work)> = clusters
            .clone()
            .map(context)
            .map(|context| (context, Work::of_jobs(&context, &costs, is_shared)))
            .collect();
        let of = |(context, work): &(Context<'_>, Work)| {
            let job = |&member: &usize| (member, Job::of(context, member, &tasks[member], work.of(&tasks[member])));
            context.cluster.members.iter().map(job).collect::<Vec<_>>()
        };
        let change = works.iter().map(|(_, work)| work.readiness).max().unwrap_or(0);
        let there = |cluster: usize| clusters.clone().any(|of| of == cluster);
        let mut jobs: Vec<(usize, Job)> = works.iter().flat_map(of).collect();
        if jobs.iter().any(|&(task, _)| uneven[task] >= UNBOUNDED) {
            return None;
        }
        jobs.sort_unstable_by_key(|&(task, _)| task);
        let load = Load::new(jobs, &self.flows, uneven);
        let cpus = works.iter().map(|(context, _)| context.cluster.cpus.len() as u64).sum::<u64>();
        let tick = costs.tick.0.saturating_mul(cpus + u64::from(self.machine.is_dedicated));
        let is_closed = works.iter().any(|(context, _)| context.members().any(|task| !task.uses.ends_executing));
        let demand = |length: u64| {
            let length = length.saturating_add(is_closed.into());
            let ticks = length.div_ceil(self.machine.tick).saturating_mul(tick);
            let count = |index: usize| {
                let task = &tasks[index];
                length.saturating_add(task.jitter).saturating_add(uneven[index]).div_ceil(task.period)
            };
            let of_devices = devices.iter().map(|device| device.in_busy_period(there, change, length));
            of_devices.fold(ticks, u64::saturating_add).saturating_add(load.length(count))
        };
        least(demand, ROUNDS_MAX)
    }
}

/// What it costs that jobs of a cluster do what they do.
struct Work {
    /// What an interrupt of a GPU takes, with all that follows it.
    interrupt: u64,
    /// Threads that become ready after one.
    threads: u64,
    /// That a job or a thread becomes ready, gets a CPU, and leaves it again.
    readiness: u64,
    /// What follows from a request for a lock: others become as urgent, and later no longer.
    request: u64,
}

impl Work {
    /// `is_shared`: whether best-effort tasks use the CPUs when they are idle otherwise.
    fn of_jobs(context: &Context<'_>, costs: &OverheadCosts, is_shared: bool) -> Work {
        let sharing = &context.machine.sharing;
        let check = if sharing.handling == InterruptHandling::ProcessAware { costs.pai_check } else { Nanos::ZERO };
        let sum = |parts: &[Nanos]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.0));
        let decision = sum(&[costs.scheduling, check, costs.timer_rearming, costs.context_switch]);
        // A decision about best-effort tasks, which no interrupt ends.
        let below = if is_shared { decision } else { 0 };
        // Another CPU may have to be told, and the job that is displaced finds its cache cold when it resumes.
        let change = decision.saturating_add(costs.ipi_latency.0).saturating_add(context.machine.cache_delay());
        let nested = context.members().flat_map(|task| &task.uses.requests).map(|request| request.depth as u64 + 1);
        // The holder of what it waits for, that of what this one waits for, and so on to an engine; with the thread of each.
        let raised = nested.max().unwrap_or(0).saturating_add(1).saturating_mul(2);
        Work {
            interrupt: Halves::new(context, &[]).top().saturating_add(sharing.after_top_half()).saturating_add(below),
            threads: sharing.schedulings_of_a_half(),
            readiness: costs.release.0.saturating_add(change).saturating_add(decision).saturating_add(below),
            request: change.saturating_mul(raised).saturating_mul(2),
        }
    }

    /// All that a job of `task` does.
    fn of(&self, task: &AnalysedTask) -> u64 {
        // Its tokens may release others on other CPUs, each with an interrupt of its own.
        let ready = task.wakeups().saturating_add(task.interrupts.saturating_mul(self.threads)).saturating_add(1);
        [
            task.wcet,
            task.suspension,
            task.uses.demand.gpu(),
            task.interrupts.saturating_mul(self.interrupt),
            ready.saturating_mul(self.readiness),
            task.lock_requests.saturating_mul(self.request),
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }
}

impl AnalysedTask {
    /// By when a job is complete, counted from its arrival, if all that is pending is complete within `busy`.
    pub fn within(&self, busy: u64) -> u64 {
        busy.saturating_add(self.jitter)
    }

    /// The same if there is such a time.
    pub fn within_busy(&self, busy: Option<u64>) -> Option<u64> {
        busy.map(|busy| self.within(busy))
    }

    /// The same if that is of use to anyone.
    fn usefully_within(&self, busy: u64) -> Option<u64> {
        let time = self.within(busy);
        (time <= self.deadline.max(self.period).saturating_mul(LONGEST_OF_USE)).then_some(time)
    }
}

impl Found {
    /// By when jobs of a member, which is `task`, are complete, counted from their arrival.
    pub fn time(&self, member: usize, task: &AnalysedTask) -> Option<u64> {
        let by_test = self.bounds.as_ref().and_then(|(times, _)| times[member]);
        by_test.into_iter().chain(task.within_busy(self.busy)).min()
    }

    /// The same where that is of use, and where it comes from.
    pub fn bound(&self, member: usize, task: &AnalysedTask) -> Option<(u64, BoundSource)> {
        let by_test = self.bounds.as_ref().and_then(|(times, by)| Some((times[member]?, *by)));
        let together = self.busy.and_then(|busy| task.usefully_within(busy));
        let together = together.map(|time| (time, BoundSource::Test(Test::BusyPeriod)));
        by_test.into_iter().chain(together).min_by_key(|&(time, _)| time)
    }

    /// Says what follows from all bounds together: that of each task is the least, wherever it comes from.
    pub fn conclude(&mut self, context: &Context<'_>) {
        if let Some(busy) = self.busy {
            if !self.hard.is_schedulable() && is_in_time(context, busy) {
                self.hard = Finding::proven(Test::BusyPeriod);
            }
            if !self.soft.is_schedulable() && is_of_use(context, busy) {
                self.soft = Finding::proven(Test::BusyPeriod);
            }
        }
        if self.hard.status == Status::NotProven && self.meets_deadlines(context, &context.cluster.members) {
            self.hard = self.by_bounds(context);
        }
        if self.hard.status == Status::NotProven {
            let untold = context.cluster.parts.iter().filter_map(|part| self.untold(context, part));
            self.hard.failures.extend(untold.collect::<Vec<_>>());
        }
    }

    /// The hard verdict on a part of a cluster whose parts are analysed together: its deadlines may be proven where those of others
    /// are not.
    pub fn hard_of(&self, context: &Context<'_>, part: &Part) -> Finding {
        let is_proven = self.hard.status == Status::NotProven && self.meets_deadlines(context, &part.members);
        if is_proven { self.by_bounds(context) } else { self.hard.clone() }
    }

    /// Why the deadlines of a part are not proven, if all failures that were found are those of other parts.
    fn untold(&self, context: &Context<'_>, part: &Part) -> Option<Failure> {
        let is_told = self.hard.failures.iter().any(|failure| failure.cluster == part.number);
        if is_told || self.meets_deadlines(context, &part.members) {
            return None;
        }
        let other = self.hard.failures.first()?.cluster;
        let message = format!(
            "its jobs and those of cluster {other} may wait for one another, and these are not proven to meet their deadlines"
        );
        Some(Failure { cluster: part.number, test: None, task: None, interval: None, message })
    }

    /// Whether the bounds of some members are within their deadlines, which proves these: bounds hold whatever they are for. The published
    /// accounting of soft deadlines counts less than that of hard ones, so that it does not tell.
    fn meets_deadlines(&self, context: &Context<'_>, some: &[usize]) -> bool {
        let is_met = |&index: &usize| {
            let task = &context.analysed[index];
            self.time(context.member(index), task).is_some_and(|time| time <= task.raw().2)
        };
        context.machine.accounting == Accounting::Safe && !context.has_servers() && some.iter().all(is_met)
    }

    /// That deadlines are met, by the tests that bound responses.
    fn by_bounds(&self, context: &Context<'_>) -> Finding {
        let mut tests = self.soft.tests.clone();
        let by_test = |member: usize| self.bounds.as_ref().and_then(|(times, _)| times[member]);
        let is_busy = |(member, task): (usize, &AnalysedTask)| self.time(member, task) != by_test(member);
        if context.members().enumerate().any(is_busy) && !tests.contains(&Test::BusyPeriod) {
            tests.push(Test::BusyPeriod);
        }
        Finding { tests, ..Finding::proven(Test::BusyPeriod) }
    }
}

/// Why nothing but its busy periods bounds what a cluster's jobs are kept by, if so.
pub(super) fn beyond_tests(context: &Context<'_>) -> Option<Failure> {
    let sharing = &context.machine.sharing;
    if let Some(task) = sharing.forgotten[context.index] {
        let message = "an operation raises several interrupts on several CPUs, so that one of them may come after the job is \
                       complete, and its handling knows no owner of it any more; route the GPU's interrupts to one CPU";
        return Some(explain::of_task(context, task, message.to_owned()));
    }
    let name = sharing.devices.iter().find_map(|device| device.softly_served(context.index))?;
    let message = format!(
        "device \"{name}\": its server may use budget after budget at once, with later deadlines, so that no test bounds what one \
         that was starved takes then; take \"cbs_hard\" or \"sporadic\""
    );
    Some(Failure { cluster: context.cluster.parts[0].number, test: None, task: None, interval: None, message })
}

/// Whether all jobs of a cluster meet their deadlines if all that is pending is complete within `busy`.
fn is_in_time(context: &Context<'_>, busy: u64) -> bool {
    context.members().all(|task| task.within(busy) <= task.deadline)
}

/// Whether that bounds the tardiness of each job of a cluster by what is of use.
fn is_of_use(context: &Context<'_>, busy: u64) -> bool {
    context.members().all(|task| task.usefully_within(busy).is_some())
}
