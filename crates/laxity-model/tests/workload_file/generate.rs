//! Arbitrary valid workloads: every type, every variant, odd names and odd numbers, from a seed.

mod platform;

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Arrival, BestEffortTask, Bin, Chain, CodeSource, CopyDirection, CpuId, DataObject, Distribution, Edge,
    ExecutionTime, Factor, GpuOperation, GpuWork, Graph, LatestEdge, Nanos, Node, OwnCode, Replicas, Resource,
    ResourceProtocol, Scope, ServerKind, Step, Task, TaskServer, Waiting, Workload,
};

/// A valid workload; the same for the same seed. Up to `size` of everything.
pub fn workload(seed: u64, size: u64) -> Workload {
    let mut source = Source { rng: SplitMix64::new(seed), size };
    let platform = source.platform();
    let resources = source.several(|source, index| source.resource(index));
    let mut workload = Workload { resources, ..Workload::new(source.name(0), platform, Vec::new()) };
    workload.scheduler = source.scheduler(workload.platform.cpus);
    workload.gpu_management = source.gpu_management();
    workload.best_effort_scheduler = source.best_effort_scheduler();
    workload.tasks = source.several(|source, index| source.task(index, &workload));
    workload.best_effort = source.several(|source, index| source.best_effort(index, &workload));
    workload.graphs = source.several(|source, index| source.graph(index, &workload));
    workload.chains = source.chains(&workload.graphs);
    workload
}

struct Source {
    rng: SplitMix64,
    size: u64,
}

impl Source {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance() { Some(make(self)) } else { None }
    }

    fn several<T>(&mut self, mut make: impl FnMut(&mut Self, usize) -> T) -> Vec<T> {
        let count = self.below(self.size + 1) as usize;
        (0..count).map(|index| make(self, index)).collect()
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    /// Unique per index, and full of what quoting gets wrong.
    fn name(&mut self, index: usize) -> String {
        let tail = ["", "a", " b ", "\"", "\\", "'", "é", "µ", "𝄞", "->", "#", "\\u0041", "{}", "\u{2028}", "]", "="];
        format!("{}{index}{}", self.pick(&tail), self.pick(&tail))
    }

    /// From 1 ns to about `2^bits` ns, every magnitude equally likely.
    fn span(&mut self, bits: u64) -> Nanos {
        let magnitude = self.below(bits) + 1;
        Nanos(self.rng.between(1, 1 << magnitude))
    }

    fn span_or_zero(&mut self) -> Nanos {
        self.maybe(|source| source.span(40)).unwrap_or_default()
    }

    fn shuffle<T>(&mut self, list: &mut [T]) {
        for index in (1..list.len()).rev() {
            list.swap(index, self.below(index as u64 + 1) as usize);
        }
    }

    /// Somewhere that jobs may run.
    fn cluster(&mut self, workload: &Workload) -> Option<usize> {
        let choices = match workload.scheduler.scope {
            Scope::Partitioned => workload.platform.cpus,
            Scope::Global | Scope::Clustered => workload.platform.clusters.len(),
        };
        let index = self.maybe(|source| source.below(choices as u64) as usize)?;
        let only_cpu_0 = match workload.scheduler.scope {
            Scope::Partitioned => index == 0,
            _ => workload.platform.clusters[index] == [CpuId(0)],
        };
        (!only_cpu_0).then_some(index)
    }

    fn resource(&mut self, index: usize) -> Resource {
        use ResourceProtocol::{Fifo, PriorityCeiling, PriorityInheritance};
        Resource {
            name: self.name(index),
            protocol: self.pick(&[Fifo, PriorityCeiling, PriorityInheritance]),
            replicas: 1 + self.below(3) as u32,
        }
    }

    fn distribution(&mut self, max: Nanos) -> Distribution {
        let pair = |source: &mut Self| {
            let (a, b) = (source.rng.between(0, max.0), source.rng.between(0, max.0));
            (Nanos(a.min(b)), Nanos(a.max(b)))
        };
        match self.below(5) {
            0 => Distribution::WorstCase,
            1 => Distribution::Constant(pair(self).0),
            2 => {
                let (min, max) = pair(self);
                Distribution::Uniform { min, max }
            }
            3 => {
                let mut bins = self.several(|source, _| {
                    let (min, max) = pair(source);
                    Bin { min, max, weight: source.below(1 << 50) }
                });
                bins.push(Bin { min: max, max, weight: 1 });
                Distribution::Histogram(bins)
            }
            _ => {
                let mut values = self.several(|source, _| pair(source).1);
                values.push(max);
                Distribution::Recorded(values)
            }
        }
    }

    fn execution(&mut self) -> ExecutionTime {
        let wcet = self.span(40);
        ExecutionTime { wcet, actual: self.distribution(wcet) }
    }

    /// A body with at least one CPU step; `gpus` are those that it may name.
    fn body(&mut self, workload: &Workload, cluster: Option<usize>) -> Vec<Step> {
        let home = match (workload.scheduler.scope, cluster) {
            (Scope::Global, _) | (_, None) => None,
            (Scope::Clustered, Some(index)) => Some(index),
            (Scope::Partitioned, Some(cpu)) => {
                workload.platform.clusters.iter().position(|cpus| cpus.contains(&CpuId(cpu as u16)))
            }
        };
        let is_near = |&index: &usize| home.is_none_or(|home| workload.platform.gpus[index].cluster == home);
        let gpus: Vec<usize> = (0..workload.platform.gpus.len()).filter(is_near).collect();
        let mut steps = self.several(|source, _| source.step(workload.resources.len(), &gpus));
        let at = self.below(steps.len() as u64 + 1) as usize;
        steps.insert(at, Step::Cpu(self.execution()));
        if !gpus.is_empty() && self.chance() {
            self.section(&mut steps);
        }
        steps
    }

    /// Critical sections nest by descending index, so that none holds a resource twice.
    fn step(&mut self, resources: usize, gpus: &[usize]) -> Step {
        match self.below(5) {
            0 => Step::NonPreemptive(self.execution()),
            1 => Step::Suspend(self.execution()),
            2 if !gpus.is_empty() => Step::Gpu(self.gpu_operation(gpus)),
            3 if resources > 0 => {
                let resource = self.below(resources as u64) as usize;
                let mut body = self.several(|source, _| source.step(resource, gpus));
                body.push(Step::Cpu(self.execution()));
                Step::Critical { resource, body }
            }
            _ => Step::Cpu(self.execution()),
        }
    }

    /// One GPU section around some steps, with all operations of the body and on one GPU.
    fn section(&mut self, steps: &mut Vec<Step>) {
        let gpu = steps.iter().find_map(named_gpu);
        steps.iter_mut().for_each(|step| rename_gpu(step, gpu));
        let uses = |step: &Step| operations(std::slice::from_ref(step)) > 0;
        let after = steps.iter().rposition(uses).map_or(0, |last| last + 1);
        let last = self.rng.between(after.max(1) as u64, steps.len() as u64) as usize;
        let first = steps.iter().position(uses).unwrap_or(last - 1);
        let first = self.below(first as u64 + 1) as usize;
        let body = steps.drain(first..last).collect();
        steps.insert(first, Step::GpuSection { body });
    }

    fn gpu_operation(&mut self, gpus: &[usize]) -> GpuOperation {
        let work = if self.chance() {
            GpuWork::Kernel(self.execution())
        } else {
            // Short enough at any bandwidth: 2^27 B at 1 B/s.
            let bytes = self.span(27).0;
            let direction = self.pick(&[CopyDirection::In, CopyDirection::Out]);
            GpuWork::Copy { direction, bytes, time: self.maybe(Self::execution) }
        };
        GpuOperation {
            gpu: self.maybe(|source| source.pick(gpus)),
            work,
            waiting: self.pick(&[Waiting::Synchronous, Waiting::Asynchronous]),
            interrupts: self.below(3) as u32,
            memory: Factor(self.below(1_000_001)),
        }
    }

    /// Longer than any body of these sizes can take, and different every time.
    fn long_span(&mut self) -> Nanos {
        Nanos((1 << 57) + self.span(57).0)
    }

    fn arrival(&mut self) -> Arrival {
        match self.chance() {
            true => Arrival::Periodic,
            false => Arrival::Sporadic { gap: self.distribution(Nanos::from_secs(1)) },
        }
    }

    fn task(&mut self, index: usize, workload: &Workload) -> Task {
        let cluster = self.cluster(workload);
        let period = self.span(57);
        Task {
            name: format!("task {}", self.name(index)),
            arrival: self.arrival(),
            period,
            deadline: self.long_span(),
            phase: self.span_or_zero(),
            jitter: self.span_or_zero(),
            priority: Some(self.below(1 << 32) as u32),
            cluster,
            working_set: self.maybe(|source| source.rng.next_u64()),
            server: self.maybe(|source| source.task_server(period)),
            memory_demand: if self.chance() { 0 } else { self.rate() },
            memory_budget: self.maybe(Source::rate),
            body: self.body(workload, cluster),
            run: self.maybe(Source::own_code),
        }
    }

    fn task_server(&mut self, period: Nanos) -> TaskServer {
        let own = self.maybe(|source| source.span(57));
        let kinds = [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic];
        TaskServer {
            kind: kinds[self.below(3) as usize],
            budget: Nanos(1 + self.below(own.unwrap_or(period).0)),
            period: own,
        }
    }

    /// No command, which goes with bodies of one step only.
    fn own_code(&mut self) -> OwnCode {
        let source = match self.chance() {
            true => CodeSource::Python { function: "a.b:c".to_owned() },
            false => CodeSource::Library {
                library: format!("lib{}.so", self.name(0)),
                symbol: self.name(1),
                init: self.maybe(|source| source.name(2)),
                exit: self.maybe(|source| source.name(3)),
            },
        };
        OwnCode { source, warm: self.chance() }
    }

    fn best_effort(&mut self, index: usize, workload: &Workload) -> BestEffortTask {
        BestEffortTask {
            name: format!("best effort {}", self.name(index)),
            weight: 1 + self.below(u64::from(u32::MAX)) as u32,
            memory_demand: self.rng.next_u64() >> self.below(64),
            cpu: self.maybe(|source| source.below(workload.platform.cpus as u64) as usize),
            work: self.maybe(|source| source.span(57)),
        }
    }

    /// Node 0 is the source; every other node has one or two producers before it, all at the same rate.
    fn graph(&mut self, index: usize, workload: &Workload) -> Graph {
        let count = self.below(self.size + 1) as usize + 1;
        let nodes = (0..count).map(|index| self.node(index, workload)).collect();
        let mut edges = Vec::new();
        for consumer in 1..count {
            for _ in 0..=self.below(2) {
                let producer = self.below(consumer as u64) as usize;
                edges.push(self.edge(producer, consumer, false));
            }
            if self.chance() {
                edges.push(self.edge(consumer, consumer, true));
            }
        }
        // Edges lead to later nodes, so that the order of the nodes is one of access.
        let objects = self.several(|source, index| {
            let mut accessors: Vec<usize> = (0..count).filter(|_| source.chance()).collect();
            if accessors.is_empty() {
                accessors.push(source.below(count as u64) as usize);
            }
            DataObject { name: source.name(index), accessors, delay: source.below(3) as u32 }
        });
        let copies = self.count();
        let replicas = match objects.is_empty() {
            true => Replicas::None,
            false => self.pick(&[Replicas::None, Replicas::Auto, Replicas::Count(copies)]),
        };
        if replicas != Replicas::None {
            // Jobs of equal index share one.
            for edge in &mut edges {
                (edge.produce, edge.consume, edge.threshold) = (1, 1, 1);
                edge.delay = edge.delay.max(edge.back_edge.into());
                edge.initial = edge.initial.min(edge.delay);
            }
        }
        // From each node to the next, and back: that closes no cycle of waits.
        let pairs = (1..count).flat_map(|node| [(node - 1, node), (node, node - 1)]);
        let latest = pairs.filter(|_| self.chance()).map(|(producer, consumer)| LatestEdge { producer, consumer });
        let latest = latest.collect();
        Graph { name: self.name(index), nodes, edges, latest, objects, replicas }
    }

    /// One for some of the graphs, along the only edge from node 0 to another.
    fn chains(&mut self, graphs: &[Graph]) -> Vec<Chain> {
        let mut chains = Vec::new();
        for (index, graph) in graphs.iter().enumerate() {
            let tokens = graph.edges.iter().map(|edge| (edge.producer, edge.consumer));
            let pairs: Vec<_> = tokens.chain(graph.latest.iter().map(|edge| (edge.producer, edge.consumer))).collect();
            let is_only = |to: &usize| pairs.iter().filter(|&&pair| pair == (0, *to)).count() == 1;
            let Some(next) = (1..graph.nodes.len()).find(is_only).filter(|_| self.chance()) else { continue };
            let (data_age_max, reaction_time_max) = (self.maybe(Self::long_span), self.maybe(Self::long_span));
            let name = self.name(index);
            chains.push(Chain { name, graph: index, path: vec![0, next], data_age_max, reaction_time_max });
        }
        chains
    }

    fn node(&mut self, index: usize, workload: &Workload) -> Node {
        let cluster = self.cluster(workload);
        let is_source = index == 0;
        let period = is_source.then(|| self.long_span());
        Node {
            name: self.name(index),
            period,
            phase: if is_source { self.span_or_zero() } else { Nanos::ZERO },
            deadline: self.maybe(Self::long_span),
            priority: Some(self.below(100) as u32),
            cluster,
            // The periods of other nodes follow from rates, so that no budget is sure to fit.
            server: period.and_then(|period| self.maybe(|source| source.task_server(period))),
            body: self.body(workload, cluster),
            run: self.maybe(Source::own_code),
        }
    }

    fn edge(&mut self, producer: usize, consumer: usize, back_edge: bool) -> Edge {
        let tokens = 1 + self.below(u64::from(u32::MAX >> 1)) as u32;
        let threshold = tokens + self.below(3) as u32;
        let initial = if back_edge { threshold + self.below(3) as u32 } else { self.below(3) as u32 };
        let delay = self.below(3) as u32;
        let message = self.maybe(|source| source.rng.next_u64() as u32).unwrap_or(0);
        Edge { producer, consumer, produce: tokens, consume: tokens, threshold, initial, back_edge, delay, message }
    }
}

/// GPU operations of a body.
fn operations(steps: &[Step]) -> usize {
    let count = |step: &Step| match step {
        Step::Gpu(_) => 1,
        Step::Critical { body, .. } | Step::GpuSection { body } => operations(body),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => 0,
    };
    steps.iter().map(count).sum()
}

/// The first GPU that operations of a step name.
fn named_gpu(step: &Step) -> Option<usize> {
    match step {
        Step::Gpu(operation) => operation.gpu,
        Step::Critical { body, .. } | Step::GpuSection { body } => body.iter().find_map(named_gpu),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => None,
    }
}

/// Lets operations that name a GPU name this one.
fn rename_gpu(step: &mut Step, gpu: Option<usize>) {
    match step {
        Step::Gpu(operation) => operation.gpu = operation.gpu.and(gpu),
        Step::Critical { body, .. } | Step::GpuSection { body } => {
            body.iter_mut().for_each(|step| rename_gpu(step, gpu));
        }
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => {}
    }
}

#[test]
fn generated_workloads_are_valid_and_varied() {
    let mut seen = String::new();
    for seed in 0..200 {
        let workload = workload(seed, seed % 5);
        assert_eq!(workload.validate(), Ok(()), "seed {seed}");
        seen += &workload.to_toml();
    }
    for feature in [
        "uniform",
        "histogram",
        "recorded",
        "sporadic",
        "critical",
        "kernel",
        "copy_in",
        "copy_out",
        "asynchronous",
        "suspend",
        "nonpreemptive",
        "back_edge",
        "clusters",
        "interrupt_cpus",
        "coarse_lock",
        "[platform.overheads]",
        "overheads = \"brandenburg2009",
        "working_set",
        "best_effort",
        "fifo",
        "[gpu_management]",
        "arbitration = \"gpusync\"",
        "arbitration = { protocol = \"gpusync\"",
        "arbitration = { protocol = \"k_fmlp\", length_aware = true }",
        "fifo_requests",
        "handling = { method = \"klmirqd\"",
        "handling = \"pai\"",
        "bottom_half = {",
        "[[platform.device]]",
        "server = { kind = \"cbs_hard\"",
        "gpu_section",
        "object = [",
        "replicas = \"auto\"",
    ] {
        assert!(seen.contains(feature), "no generated workload has `{feature}`");
    }
}
