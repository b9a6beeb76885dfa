//! Random systems with servers and devices, alone or beside other features.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Arrival, CpuId, Device, Distribution, ExecutionTime, GpuArbitration, Nanos, OverheadCosts, OverheadProfile,
    Scheduler, Scope, Server, ServerKind, Step, TaskServer, Workload,
};

use crate::features::Feature;
use crate::graphs::{self, Kind};
use crate::systems::{self, UNIT, pick};

/// Devices that serve no job.
pub(crate) fn add_devices(workload: &mut Workload, rng: &mut SplitMix64) {
    let cpus = workload.platform.cpus as u64;
    for index in 0..rng.between(1, 3) {
        let wcet = Nanos(rng.between(1, 3 * UNIT));
        let actual = pick(rng, &[true, false]);
        let half = ExecutionTime {
            wcet,
            actual: match actual {
                true => Distribution::Uniform { min: Nanos(wcet.0 / 4 + 1), max: wcet },
                false => Distribution::WorstCase,
            },
        };
        let budget = Nanos(rng.between(1, 4) * UNIT);
        let server = Server {
            kind: pick(rng, &[ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic]),
            budget,
            period: Nanos(budget.0 * rng.between(2, 20)),
            priority: None,
        };
        let first = CpuId(rng.below(cpus) as u16);
        let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos(20 * UNIT) };
        let arrival = pick(rng, &[0, 1]);
        workload.platform.devices.push(Device {
            name: format!("d{index}"),
            cluster: workload.platform.clusters.iter().position(|cpus| cpus.contains(&first)).unwrap_or(0),
            arrival: if arrival == 0 { Arrival::Periodic } else { Arrival::Sporadic { gap } },
            period: Nanos(rng.between(4, 60) * UNIT),
            top_half: ExecutionTime::constant(Nanos(rng.below(UNIT / 4))),
            bottom_half: half,
            interrupt_cpus: vec![first],
            server: (rng.below(3) > 0).then_some(server),
        });
    }
}

/// Most tasks are servers, whose budgets are over before the next job comes.
pub(crate) fn serve(workload: &mut Workload, rng: &mut SplitMix64) {
    // They would count against budgets.
    without_cache_delay(workload);
    if workload.gpu_management.arbitration == GpuArbitration::DriverSpinning {
        workload.gpu_management.arbitration = GpuArbitration::Driver;
    }
    if rng.below(2) == 0 {
        workload.platform.overheads = OverheadProfile::constant("none", OverheadCosts::default());
    }
    for task in &mut workload.tasks {
        if rng.below(4) == 0 {
            continue;
        }
        let budgets = rng.between(1, 4);
        let period = Nanos((task.period.0 - task.jitter.0) * rng.between(50, 100) / 100 / budgets);
        let budget = Nanos((period.0 * rng.between(3, 40) / 100).max(1));
        let kind = pick(rng, &[ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic]);
        task.server = Some(TaskServer { kind, budget, period: Some(period) });
        if budgets > 1 || rng.below(2) == 0 {
            let wcet = Nanos(budget.0 * rng.between(50, 100 * budgets) / 100 + 1);
            let min = Nanos(rng.below(wcet.0));
            let actual = pick(rng, &[true, false]);
            let actual = if actual { Distribution::WorstCase } else { Distribution::Uniform { min, max: wcet } };
            task.body = vec![Step::Cpu(ExecutionTime { wcet, actual })];
        }
    }
}

fn without_cache_delay(workload: &mut Workload) {
    let costs = workload.platform.overheads.at(1);
    let costs = OverheadCosts { cache_preemption: Nanos::ZERO, cache_migration: Nanos::ZERO, ..costs };
    workload.platform.overheads = OverheadProfile::constant("test", costs);
}

/// A system of another feature, to which others are added.
pub(crate) fn mixed(seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(seed ^ 0x3317);
    let base = Feature::ALL[rng.below(Feature::ALL.len() as u64 - 1) as usize];
    let (mut workload, scheduler) = base.system(seed);
    let clusters = workload.platform.clusters.len().max(1) as u64;
    if rng.below(2) == 0 {
        let kind = pick(rng, &[Kind::Copies, Kind::Rates, Kind::Spread, Kind::Served]);
        let suspends = rng.below(2) == 0;
        let mut graph = graphs::graph(rng, kind, "more".to_owned(), suspends);
        for node in &mut graph.nodes {
            node.cluster = (scheduler.scope != Scope::Global).then(|| rng.below(clusters) as usize);
        }
        workload.graphs.push(graph);
    }
    if rng.below(2) == 0 && base != Feature::Devices {
        add_devices(&mut workload, rng);
    }
    if rng.below(2) == 0 {
        serve(&mut workload, rng);
    }
    (workload, scheduler)
}

/// A system from `seed`, some tasks of which need more than their budgets from time to time: of odd seeds with periods of
/// their own, overheads and jitter; of even ones with none of that, and periodic arrivals.
pub fn outrunning(seed: u64) -> (Workload, Scheduler) {
    let size = systems::Size { cpus: 1 + seed % 3, gpus: 1, tasks: 2 + seed % 5, stretch: 1 };
    let (mut workload, scheduler) = systems::sized(seed, &size);
    let rng = &mut SplitMix64::new(!seed);
    let has_period = seed % 2 == 1;
    without_cache_delay(&mut workload);
    if !has_period || rng.below(2) == 0 {
        workload.platform.overheads = OverheadProfile::constant("none", OverheadCosts::default());
    }
    if !has_period {
        workload.graphs.clear();
    }
    if workload.gpu_management.arbitration == GpuArbitration::DriverSpinning {
        workload.gpu_management.arbitration = GpuArbitration::Driver;
    }
    for node in workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
        if rng.below(2) == 0 {
            continue;
        }
        let period = node.period.unwrap_or(Nanos(8 * UNIT)).0 * rng.between(20, 130) / 100;
        let budget = Nanos(period * rng.between(2, 30) / 100);
        let wcet = Nanos(budget.0 * rng.between(50, 400) / 100 + 1);
        let actual = match rng.below(2) {
            0 => Distribution::WorstCase,
            _ => Distribution::Uniform { min: Nanos(wcet.0 / 8), max: wcet },
        };
        node.body = vec![Step::Cpu(ExecutionTime { wcet, actual })];
        let kind = pick(rng, &[ServerKind::CbsHard, ServerKind::Sporadic]);
        node.server = Some(TaskServer { kind, budget, period: Some(Nanos(period)) });
    }
    for task in &mut workload.tasks {
        if rng.below(2) == 0 {
            continue;
        }
        let period = has_period.then(|| Nanos(task.period.0 * rng.between(20, 130) / 100));
        if !has_period {
            task.jitter = Nanos::ZERO;
        }
        let budget = Nanos(period.unwrap_or(task.period).0 * rng.between(2, 30) / 100);
        let wcet = Nanos((budget.0 * rng.between(101, 500) / 100).min(task.deadline.0));
        let actual = pick(rng, &[true, false]);
        let min = Nanos(rng.below(wcet.0));
        let actual = if actual { Distribution::WorstCase } else { Distribution::Uniform { min, max: wcet } };
        task.body = vec![Step::Cpu(ExecutionTime { wcet, actual })];
        let kind = pick(rng, &[ServerKind::CbsHard, ServerKind::Sporadic]);
        task.server = Some(TaskServer { kind, budget, period });
    }
    (workload, scheduler)
}
