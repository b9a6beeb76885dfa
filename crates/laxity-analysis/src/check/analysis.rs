//! One configuration, from workload to report.

use laxity_model::{Nanos, PriorityRule, Scheduler, SignedNanos, Workload};

use super::analysed_task::{AnalysedTask, analysed_tasks};
use super::assign::{Cluster, Part, assign};
use super::chains;
use super::context::{Context, Inflation, Machine};
use super::coupled::Flow;
use super::edf::{self, Decision};
use super::graphs::graphs;
use super::hard::{Hard, hard, infeasible};
use super::memory::without_memory;
use super::regions::regions;
use super::scaling::scaling;
use super::served::{self, Fate, Jobs, Judged, judge};
use super::settled::{hard_by_response_times, may_be_late, unproven, waits};
use super::sharing::Sharing;
use super::soft::{Late, Soft, soft};
use super::unsupported::UnsupportedFeatures;
use super::{
    Bound, BoundSource, ChargedOverheads, ClusterReport, Finding, Load, Options, Refusal, Report, Status, TaskReport,
};
use crate::exact::{Rational, sum_for_people};
use crate::{Limits, Test};

/// What is analysed, and where.
pub(super) struct Analysis<'a> {
    pub machine: Machine,
    pub workload: &'a Workload,
    /// Those whose jobs wait for one another are one.
    pub clusters: Vec<Cluster>,
    pub tasks: &'a [AnalysedTask],
    /// The tokens of its graphs.
    pub flows: Vec<Flow>,
}

/// What was found about one cluster.
pub(super) struct Found {
    pub hard: Finding,
    pub soft: Finding,
    /// The accounting under which the bounds hold, or the hard one if there are none.
    pub inflation: Option<Inflation>,
    /// Response times of the members that tests bound, in ticks; `None` for one that has no bound.
    pub bounds: Option<(Vec<Option<u64>>, BoundSource)>,
    /// For how long the part of the machine that it is of may be busy ([`busy_period`](super::busy_period)).
    pub busy: Option<u64>,
}

/// See [`super::check`].
pub(super) fn check(workload: &Workload, scheduler: &Scheduler, options: &Options) -> Report {
    let mut refusals = Vec::new();
    let lowered = without_memory(workload, scheduler, &mut refusals);
    let workload = &*lowered;
    let tasks = analysed_tasks(workload, scheduler, &mut refusals);
    let clusters = assign(workload, scheduler, &tasks, &mut refusals);
    let clusters = regions(workload, scheduler, options.accounting, clusters, &tasks);
    let sharing = Sharing::new(workload, scheduler, &clusters, &tasks);
    let (accounting, refusing) = (options.accounting, &mut refusals);
    UnsupportedFeatures {
        workload,
        scheduler,
        accounting,
        clusters: &clusters,
        analysed: &tasks,
        sharing: &sharing,
        refusals: refusing,
    }
    .refuse();
    let machine = Machine::new(workload, scheduler, accounting, &clusters, sharing);
    refuse_suspensions(&machine, &tasks, &mut refusals);
    let flows = if refusals.is_empty() { Flow::all(workload) } else { Vec::new() };
    let analysis = Analysis { machine, workload, clusters, tasks: &tasks, flows };
    let management = (!workload.platform.gpus.is_empty()).then_some(&workload.gpu_management);
    let mut report = Report {
        scheduler: *scheduler,
        arbitration: management.map(|management| management.arbitration),
        handling: management.map(|management| management.handling),
        overheads: ChargedOverheads {
            profile: workload.platform.overheads.name.clone(),
            costs: workload.platform.overheads.at(tasks.len()),
        },
        accounting: options.accounting,
        refusals,
        hard: Finding::refused(),
        soft: Finding::refused(),
        clusters: Vec::new(),
        tasks: Vec::new(),
        graphs: Vec::new(),
        chains: Vec::new(),
        load: Load { before: utilization(&tasks, 0..tasks.len()), after: None },
        scaling: None,
    };
    if report.refusals.is_empty() {
        analysis.report(workload, options, &mut report);
    }
    report
}

/// Wake-ups queue on a dedicated CPU beside releases, and no bound here covers how many may come at once.
fn refuse_suspensions(machine: &Machine, analysed: &[AnalysedTask], refusals: &mut Vec<Refusal>) {
    for task in analysed.iter().filter(|task| machine.is_dedicated && task.suspensions > 0) {
        let reason = "its wake-ups would queue on the CPU dedicated to interrupts, which is not analysed; take \
                      interrupts on all CPUs (m instead of 1)";
        refusals.push(Refusal { subject: format!("task \"{}\"", task.name), reason: reason.to_owned() });
    }
}

impl<'a> Analysis<'a> {
    /// The clusters, with budgets in place of jobs that use them up.
    pub fn contexts<'c>(
        &'c self,
        analysed: &'c [AnalysedTask],
        clusters: &'c [Cluster],
    ) -> impl Iterator<Item = Context<'c>> {
        let context = move |(index, cluster)| Context { machine: &self.machine, index, cluster, analysed };
        clusters.iter().enumerate().map(context)
    }

    /// The tasks with execution times of `permille` thousandths.
    pub fn scaled(&self, permille: u64) -> Vec<AnalysedTask> {
        self.tasks.iter().map(|task| task.scaled(permille)).collect()
    }

    /// The hard verdict on a cluster, and the accounting if there is one.
    fn hard_of(context: &Context<'_>, limits: &Limits, with_bounds: bool) -> (Judged, Option<Inflation>) {
        let unknown = served::unknown(context);
        if !unknown.is_empty() {
            return (Judged::failed(unknown), None);
        }
        if let Some(decision) = edf::hard(context, limits, with_bounds) {
            return Self::by_busy_periods(context, limits, decision);
        }
        if !waits(context) {
            return Self::hard_without_waits(context, limits, with_bounds);
        }
        match hard_by_response_times(context, limits) {
            Ok((hard, inflation)) => (judge(context, hard), Some(inflation)),
            Err(failure) if context.keeps_waits_apart() => {
                let hard = infeasible(context).map_or_else(|| unproven(failure), Hard::infeasible);
                (judge(context, hard), context.inflate(None).ok())
            }
            Err(failure) => {
                let (mut judged, inflation) = Self::hard_as_execution(context, limits, with_bounds);
                if judged.finding.status == Status::NotProven && failure.test.is_some() {
                    judged.finding.failures.push(failure);
                }
                (judged, inflation)
            }
        }
    }

    /// What is decided about one CPU under EDF: where that is nothing, jobs that wait may still be bounded apart.
    fn by_busy_periods(context: &Context<'_>, limits: &Limits, decision: Decision) -> (Judged, Option<Inflation>) {
        let (mut finding, inflation) = match decision {
            Ok((hard, inflation)) => return (judge(context, hard), Some(inflation)),
            Err(failed) => failed,
        };
        if finding.status == Status::NotProven && waits(context) {
            match hard_by_response_times(context, limits) {
                Ok((hard, inflation)) => return (judge(context, hard), Some(inflation)),
                Err(failure) => finding.failures.extend(failure.test.is_some().then_some(failure)),
            }
        }
        let hard = Hard { finding, bounds: None, inflation: None };
        (judge(context, hard), Some(inflation))
    }

    /// The same of jobs that never wait: the analysis of those that do may still know more of them.
    fn hard_without_waits(context: &Context<'_>, limits: &Limits, with_bounds: bool) -> (Judged, Option<Inflation>) {
        let found = Self::hard_as_execution(context, limits, with_bounds);
        let is_open = found.0.finding.status == Status::NotProven && context.machine.rule != PriorityRule::Edf;
        if is_open
            && may_be_late(context)
            && let Ok((hard, inflation)) = hard_by_response_times(context, limits)
        {
            return (judge(context, hard), Some(inflation));
        }
        found
    }

    /// The same if all waits count as execution.
    fn hard_as_execution(context: &Context<'_>, limits: &Limits, with_bounds: bool) -> (Judged, Option<Inflation>) {
        // A job is complete when its last budget is used up, not when that is due.
        let with_bounds = with_bounds || context.has_servers();
        match context.inflate(None) {
            Ok(inflation) => {
                let mut hard = hard(context, &inflation, limits, with_bounds);
                let proving = hard.inflation.take().unwrap_or(inflation);
                (judge(context, hard), Some(proving))
            }
            Err(failure) => (Judged::failed(vec![failure]), None),
        }
    }

    fn report(&self, workload: &Workload, options: &Options, report: &mut Report) {
        let solution = self.solve(1_000, &options.limits, true);
        let (mut clusters, mut inflated) = (Vec::new(), Vec::<Option<Vec<(i128, u128)>>>::new());
        for (context, found) in self.contexts(&solution.analysed, &solution.clusters).zip(&solution.found) {
            for part in &context.cluster.parts {
                let demand = found.inflation.as_ref().map(|inflation| inflated_demand(&context, part, inflation));
                let cluster = ClusterReport {
                    cpus: part.cpus.clone(),
                    tasks: part.members.clone(),
                    load: Load {
                        before: utilization(self.tasks, part.members.iter().copied()),
                        after: demand.clone().map(|demand| sum_for_people(demand.into_iter())),
                    },
                    hard: found.hard_of(&context, part),
                    soft: found.soft.clone(),
                };
                clusters.push((part.number, cluster));
                inflated.push(demand);
            }
        }
        clusters.sort_by_key(|(number, _)| *number);
        report.clusters = clusters.into_iter().map(|(_, cluster)| cluster).collect();
        report.hard = Finding::of_all(solution.found.iter().map(|found| &found.hard));
        report.soft = Finding::of_all(solution.found.iter().map(|found| &found.soft));
        let all: Option<Vec<_>> = inflated.into_iter().collect();
        report.load.after = all.map(|all| sum_for_people(all.into_iter().flatten()));
        report.tasks = self.task_reports(&solution);
        report.graphs = graphs(workload, &report.tasks, &solution.together);
        report.chains = chains::chains(workload, &report.tasks, &solution.together);
        chains::judge(&report.chains, &report.tasks, &mut report.hard);
        let is_proven = report.finding(options.criterion).is_schedulable();
        report.scaling = options.scaling.then(|| scaling(self, options, is_proven));
    }
}

/// What is found about one cluster; bounds of jobs that meet their deadlines only if `with_bounds`.
pub(super) fn find(context: &Context<'_>, limits: &Limits, with_bounds: bool) -> Found {
    let (judged, inflation) = Analysis::hard_of(context, limits, with_bounds);
    let is_bounded = judged.soft();
    let Judged { finding: hard, bounds, .. } = judged;
    if hard.is_schedulable() {
        let deadlines = || context.members().map(|task| Some(task.raw().2)).collect();
        let bounds = bounds.unwrap_or_else(|| (deadlines(), BoundSource::Deadline));
        // Deadlines that are met bound tardiness by 0.
        let soft = Finding { tests: hard.tests.clone(), ..Finding::proven(Test::BoundedTardiness) };
        return Found { hard, soft, inflation, bounds: Some(bounds), busy: None };
    }
    if let Some(bounds) = bounds {
        // Budgets are in time, and some jobs that wait for them are not.
        let soft = is_bounded.unwrap_or_else(|| Finding::failed(Status::NotProven, hard.failures.clone()));
        return Found { hard, soft, inflation, bounds: Some(bounds), busy: None };
    }
    let Soft { finding, bounds } = soft(context, limits);
    let (inflation, bounds) = match bounds {
        None => (inflation, None),
        Some((Late { times, source }, inflation)) => {
            (Some(inflation), Some((times.into_iter().map(Some).collect(), source)))
        }
    };
    Found { hard, soft: finding, inflation, bounds, busy: None }
}

/// `member`: which of the members it is, if it is one.
pub(super) fn task_report(context: &Context<'_>, found: &Found, index: usize, member: Option<usize>) -> TaskReport {
    let task = &context.analysed[index];
    let (wcet, period, deadline) = match &task.jobs {
        Some(jobs) => (jobs.wcet, jobs.period, jobs.deadline),
        None => (task.wcet, task.period, task.deadline),
    };
    let terms = found.inflation.as_ref().zip(member).map(|(inflation, member)| inflation.terms[member]);
    let terms = terms.map(|terms| match &task.jobs {
        Some(Jobs { fate: Fate::Served { budgets, .. }, .. }) => terms.of_budgets(*budgets, wcet),
        _ => terms,
    });
    let bound = member.and_then(|member| found.bound(member, task));
    let bound = bound.map(|(time, by)| Bound { time: Nanos(time), by });
    let laxity = |bound: Bound| {
        let left = i128::from(deadline) - i128::from(bound.time.0);
        SignedNanos(i64::try_from(left).unwrap_or(i64::MIN))
    };
    TaskReport {
        name: task.name.clone(),
        cluster: context.cluster.number_of(index),
        period: Nanos(period),
        deadline: Nanos(deadline),
        wcet: Nanos(wcet),
        inflated_wcet: terms.map(|terms| Nanos(terms.total())),
        terms,
        response_time: bound,
        tardiness: bound.map(|bound| Nanos(bound.time.0.saturating_sub(deadline))),
        laxity: bound.map(laxity),
    }
}

fn utilization(analysed: &[AnalysedTask], members: impl Iterator<Item = usize>) -> Rational {
    sum_for_people(members.map(|index| (analysed[index].wcet.into(), analysed[index].period.into())))
}

/// Inflated execution times over periods, of the tasks of a part of the cluster.
fn inflated_demand(context: &Context<'_>, part: &Part, inflation: &Inflation) -> Vec<(i128, u128)> {
    let is_there = |index: usize| part.members.binary_search(&index).is_ok();
    let members = context.cluster.members.iter().zip(&inflation.terms).filter(|&(&index, _)| is_there(index));
    let terms = members.map(|(&index, terms)| (terms.total().into(), context.analysed[index].period.into()));
    let isolated = context.cluster.isolated.iter().filter(|&&index| is_there(index));
    let beside = inflation.beside.iter().map(|stream| (stream.cost.into(), stream.period.into()));
    terms.chain(isolated.map(|&index| served::share(&context.analysed[index]))).chain(beside).collect()
}
