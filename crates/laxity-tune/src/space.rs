//! What can be chosen.

use laxity_model::{
    EngineOrder, GpuArbitration, GpuSync, GpuWork, Graph, InterruptHandling, PriorityRule, Replicas, Scheduler, Scope,
    Step, TokenHold, Workload,
};

use crate::edit::{Edit, places};

/// Placements of single tasks are tried if there are no more than this.
const PLACEMENTS_MAX: usize = 64;

/// One choice of each dimension, by number; all 0 is the file's own configuration.
pub type Setting = Vec<u16>;

/// A choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// In words.
    pub label: String,
    /// The change.
    pub edit: Edit,
}

/// Choices of which one is taken. The first changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// What is chosen.
    pub name: String,
    /// The choices.
    pub choices: Vec<Choice>,
}

/// All configurations of a workload.
#[derive(Clone, Debug)]
pub struct Space {
    workload: Workload,
    dimensions: Vec<Dimension>,
}

impl Space {
    /// The configurations of `workload`, which must be valid. Dimensions of which it has only one choice are left out.
    pub fn of(workload: Workload) -> Space {
        let mut dimensions = vec![schedulers(&workload), priorities(&workload), packings(&workload)];
        dimensions.extend(devices(&workload));
        dimensions.extend(graphs(&workload));
        dimensions.push(placements(&workload));
        dimensions.retain(|dimension| dimension.choices.len() > 1);
        Space { workload, dimensions }
    }

    /// What can be chosen, in the order in which changes are applied.
    pub fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The file's own configuration.
    pub fn base(&self) -> Setting {
        vec![0; self.dimensions.len()]
    }

    /// How many settings there are; saturates.
    pub fn size(&self) -> u64 {
        self.dimensions.iter().fold(1, |size, dimension| size.saturating_mul(dimension.choices.len() as u64))
    }

    /// The workload in a setting.
    pub fn workload(&self, setting: &Setting) -> Workload {
        let mut workload = self.workload.clone();
        for (dimension, &choice) in self.dimensions.iter().zip(setting) {
            dimension.choices[usize::from(choice)].edit.apply(&mut workload);
        }
        workload
    }

    /// The choices that differ from the file's: what is chosen and how, and which dimension that is.
    pub fn changes<'a>(&'a self, setting: &'a Setting) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
        let chosen = self.dimensions.iter().zip(setting).enumerate().filter(|(_, (_, choice))| **choice != 0);
        chosen.map(|(index, (dimension, &choice))| {
            (index, dimension.name.as_str(), dimension.choices[usize::from(choice)].label.as_str())
        })
    }
}

fn dimension(name: impl Into<String>, changes: Vec<(String, Edit)>) -> Dimension {
    let keep = Choice { label: "as the file has it".to_owned(), edit: Edit::Keep };
    let changes = changes.into_iter().map(|(label, edit)| Choice { label, edit });
    Dimension { name: name.into(), choices: std::iter::once(keep).chain(changes).collect() }
}

/// Every rule and scope but the file's own. The fair class is left out: it has no bounds, and no priorities for locks.
fn schedulers(workload: &Workload) -> Dimension {
    let own = workload.scheduler;
    let has_priorities = workload.tasks.iter().all(|task| task.priority.is_some())
        && workload.graphs.iter().flat_map(|graph| &graph.nodes).all(|node| node.priority.is_some());
    let rules = [
        Some(PriorityRule::Edf),
        Some(PriorityRule::RateMonotonic),
        Some(PriorityRule::DeadlineMonotonic),
        has_priorities.then_some(PriorityRule::Given),
    ];
    let is_one_cpu = workload.platform.cpus == 1;
    let scopes = [
        Some(Scope::Global),
        (workload.platform.clusters.len() > 1).then_some(Scope::Clustered),
        (!is_one_cpu).then_some(Scope::Partitioned),
    ];
    let all = rules.into_iter().flatten().flat_map(|rule| scopes.into_iter().flatten().map(move |scope| (rule, scope)));
    let others = all.filter(|&(rule, scope)| (rule, scope) != (own.rule, own.scope));
    let change = |(rule, scope)| (Scheduler { rule, scope, ..own }.to_string(), Edit::Scheduler(rule, scope));
    dimension("scheduler", others.map(change).collect())
}

fn priorities(workload: &Workload) -> Dimension {
    let count = workload.tasks.len() + workload.graphs.iter().map(|graph| graph.nodes.len()).sum::<usize>();
    let mut changes = Vec::new();
    if count > 1 {
        changes.push(("fixed, by deadline minus worst case".to_owned(), Edit::SlackMonotonic));
        changes.push(("fixed, in Audsley's order".to_owned(), Edit::Audsley));
    }
    dimension("priorities", changes)
}

fn packings(workload: &Workload) -> Dimension {
    let mut changes = Vec::new();
    if workload.platform.cpus > 1 && workload.tasks.len() > 1 {
        changes.push(("first fit, largest first".to_owned(), Edit::FirstFit));
        changes.push(("worst fit, largest first".to_owned(), Edit::WorstFit));
    }
    dimension("packing", changes)
}

/// One task or node elsewhere. Last, so that it corrects what the others did.
fn placements(workload: &Workload) -> Dimension {
    let count = match places(workload).len() {
        0 => workload.platform.cpus,
        count => count,
    };
    let nodes = workload.graphs.iter().flat_map(|graph| graph.nodes.iter().map(move |node| (graph, node)));
    let names = workload.tasks.iter().map(|task| task.name.clone());
    let names: Vec<String> = names.chain(nodes.map(|(graph, node)| format!("{}/{}", graph.name, node.name))).collect();
    let mut changes = Vec::new();
    if count > 1 && names.len() * count <= PLACEMENTS_MAX {
        for (task, name) in names.iter().enumerate() {
            for cluster in 0..count {
                changes.push((format!("{name} to {cluster}"), Edit::Place { task, cluster }));
            }
        }
    }
    dimension("one task moved", changes)
}

/// Arbitration, chunks, tokens, interrupts, bandwidth.
fn devices(workload: &Workload) -> Vec<Dimension> {
    let mut dimensions = Vec::new();
    let management = &workload.gpu_management;
    if !workload.platform.gpus.is_empty() {
        let own = management.arbitration;
        let others = arbitrations(own).into_iter().filter(|&arbitration| arbitration != own);
        let change = |arbitration| (describe(arbitration), Edit::Arbitration(arbitration));
        dimensions.push(dimension("arbitration", others.map(change).collect()));
        if has_copies(workload) {
            let chunk = |kib: u64| (format!("{kib} KiB"), Edit::Chunk(Some(kib << 10)));
            let mut chunks: Vec<(String, Edit)> = [256, 1_024, 4_096].map(chunk).into();
            chunks.push(("whole copies".to_owned(), Edit::Chunk(None)));
            dimensions.push(dimension("chunks of copies", chunks));
        }
        let holds = [("the GPU section", TokenHold::Section), ("the job", TokenHold::Job)];
        let holds = holds.map(|(label, hold)| (format!("held to the end of {label}"), Edit::Hold(hold)));
        dimensions.push(dimension("tokens", holds.into()));
    }
    if !workload.platform.gpus.is_empty() || !workload.platform.devices.is_empty() {
        let others = InterruptHandling::ALL.into_iter().filter(|&handling| handling != management.handling);
        let change = |handling: InterruptHandling| (handling.name().to_owned(), Edit::Handling(handling));
        dimensions.push(dimension("bottom halves", others.map(change).collect()));
    }
    if let Some(lock) = &management.bandwidth_lock {
        let budgets = [(1, 4), (1, 2), (2, 1), (4, 1)];
        let change = |(times, part): (u64, u64)| {
            let budget = (lock.budget.saturating_mul(times) / part).max(1);
            (format!("{} MB/s", budget / 1_000_000), Edit::Budget(budget))
        };
        dimensions.push(dimension("bandwidth budget", budgets.map(change).into()));
    }
    dimensions
}

/// The driver, the k-FMLP, and GPUSync's tokens and queues: rho of 1, 2, 3 and 6, f from 1 to 3 and m / (rho g), both orders (paper 003,
/// section 5.5.3 tries these). GPUSync's other parameters stay as the file has them.
fn arbitrations(own: GpuArbitration) -> Vec<GpuArbitration> {
    let own_sync = match own {
        GpuArbitration::GpuSync(sync) => sync,
        _ => GpuSync::DEFAULT,
    };
    let mut all = vec![GpuArbitration::Driver, GpuArbitration::KFmlp { length_aware: false }];
    for tokens in [1, 2, 3, 6] {
        for fifo_length in [Some(1), Some(2), Some(3), None] {
            for engine_order in [EngineOrder::Fifo, EngineOrder::Priority] {
                all.push(GpuArbitration::GpuSync(GpuSync { tokens, fifo_length, engine_order, ..own_sync }));
            }
        }
    }
    all
}

/// `gpusync (3,2,FIFO)` as paper 003 writes it, or the arbitration's name.
fn describe(arbitration: GpuArbitration) -> String {
    let GpuArbitration::GpuSync(sync) = arbitration else { return arbitration.name().to_owned() };
    let f = sync.fifo_length.map_or("m/rho g".to_owned(), |length| length.to_string());
    let order = match sync.engine_order {
        EngineOrder::Fifo => "FIFO",
        EngineOrder::Priority => "PRIO",
    };
    format!("gpusync ({},{f},{order})", sync.tokens)
}

/// The replicas of each graph; of many graphs together, as one dimension for each would be most of the space.
fn graphs(workload: &Workload) -> Vec<Dimension> {
    const APART_MAX: usize = 3;
    // Without replicas the workload says how its objects are guarded.
    let chosen = |graph: &Graph| !graph.objects.is_empty() && graph.replicas != Replicas::None;
    let graphs: Vec<usize> =
        workload.graphs.iter().enumerate().filter(|(_, graph)| chosen(graph)).map(|(index, _)| index).collect();
    let groups: Vec<(String, Vec<usize>)> = match graphs.len() {
        0..=APART_MAX => {
            graphs.iter().map(|&graph| (format!("replicas of {}", workload.graphs[graph].name), vec![graph])).collect()
        }
        _ => vec![("replicas of all graphs".to_owned(), graphs)],
    };
    let dimension_of = |(name, graphs): (String, Vec<usize>)| {
        let depth = graphs.iter().map(|&graph| workload.graphs[graph].nodes.len()).max().unwrap_or(1);
        let change = |count: u32| (count.to_string(), Edit::Replicas { graphs: graphs.clone(), count });
        dimension(name, (1..=depth.min(6) as u32).map(change).collect())
    };
    groups.into_iter().map(dimension_of).collect()
}

fn has_copies(workload: &Workload) -> bool {
    fn any(body: &[Step]) -> bool {
        body.iter().any(|step| match step {
            Step::Critical { body, .. } | Step::GpuSection { body } => any(body),
            Step::Gpu(operation) => matches!(operation.work, GpuWork::Copy { .. }),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
        })
    }
    workload.tasks.iter().any(|task| any(&task.body))
        || workload.graphs.iter().flat_map(|graph| &graph.nodes).any(|node| any(&node.body))
}
