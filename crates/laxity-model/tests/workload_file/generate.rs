//! Arbitrary valid workloads: every type, every variant, odd names and odd numbers, from a seed.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Arrival, BestEffortTask, Bin, CopyDirection, CpuId, DataObject, Device, Distribution, Edge, EngineOrder,
    ExecutionTime, Gpu, GpuArbitration, GpuManagement, GpuOperation, GpuSync, GpuWork, Graph, InterruptHandling,
    MigrationPath, Nanos, Node, OverheadKind, OverheadProfile, OverheadTable, Platform, Replicas, Resource,
    ResourceProtocol, Scheduler, Scope, Server, ServerKind, Step, Task, ThreadPriority, TokenHold, Waiting, Workload,
};

/// A valid workload; the same for the same seed. Up to `size` of everything.
pub fn workload(seed: u64, size: u64) -> Workload {
    let mut source = Source { rng: SplitMix64::new(seed), size };
    let platform = source.platform();
    let resources = source.several(|source, index| source.resource(index));
    let mut workload = Workload { resources, ..Workload::new(source.name(0), platform, Vec::new()) };
    workload.scheduler = source.scheduler(workload.platform.cpus);
    workload.gpu_management = source.gpu_management();
    workload.tasks = source.several(|source, index| source.task(index, &workload));
    workload.best_effort = source.several(|source, index| source.best_effort(index, &workload));
    workload.graphs = source.several(|source, index| source.graph(index, &workload));
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

    fn platform(&mut self) -> Platform {
        let cpus = self.below(2 * self.size + 1) as usize + 1;
        let mut platform = Platform::identical(cpus);
        if self.chance() {
            let mut all = platform.clusters.remove(0);
            if self.chance() {
                self.shuffle(&mut all);
            }
            while !all.is_empty() {
                let rest = all.split_off(self.below(all.len() as u64) as usize + 1);
                platform.clusters.push(std::mem::replace(&mut all, rest));
            }
        }
        platform.tick = self.span(30);
        platform.quantum = Nanos(platform.tick.0 * (1 + self.below(5)));
        platform.overheads = self.overheads();
        platform.gpus = self.several(|source, index| source.gpu(index, cpus));
        for gpu in &mut platform.gpus {
            gpu.cluster = self.below(platform.clusters.len() as u64) as usize;
            if self.chance() {
                gpu.interrupt_cpus = platform.clusters[gpu.cluster].clone();
            }
        }
        platform.devices = self.several(|source, index| source.device(index, &platform));
        platform
    }

    fn device(&mut self, index: usize, platform: &Platform) -> Device {
        let cluster = self.below(platform.clusters.len() as u64) as usize;
        Device {
            name: self.name(index),
            cluster,
            arrival: self.arrival(),
            period: self.span(57),
            top_half: self.execution(),
            bottom_half: self.execution(),
            interrupt_cpus: match self.chance() {
                true => platform.clusters[cluster].clone(),
                false => vec![CpuId(self.below(platform.cpus as u64) as u16)],
            },
            server: self.maybe(Self::server),
        }
    }

    fn server(&mut self) -> Server {
        let period = self.span(40);
        Server {
            kind: self.pick(&[ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic]),
            budget: Nanos(self.rng.between(1, period.0)),
            period,
            priority: Some(self.below(1 << 32) as u32),
        }
    }

    fn gpu_management(&mut self) -> GpuManagement {
        let gpusync = self.gpusync();
        let arbitration = self.pick(&[
            GpuArbitration::Driver,
            GpuArbitration::DriverSpinning,
            GpuArbitration::Semaphore,
            GpuArbitration::KFmlp { length_aware: false },
            GpuArbitration::KFmlp { length_aware: true },
            GpuArbitration::GpuSync(GpuSync::DEFAULT),
            GpuArbitration::GpuSync(gpusync),
        ]);
        let threads = self.count();
        let handling = self.pick(&[
            InterruptHandling::Linux,
            InterruptHandling::PreemptRt(ThreadPriority::Low),
            InterruptHandling::PreemptRt(ThreadPriority::High),
            InterruptHandling::ProcessAware,
            InterruptHandling::Klmirqd { threads: None },
            InterruptHandling::Klmirqd { threads: Some(threads) },
        ]);
        let [top_half, bottom_half, callback] = std::array::from_fn(|_| self.maybe(Self::execution));
        GpuManagement { arbitration, handling, top_half, bottom_half, callback }
    }

    /// A GPU has at least as much room in its queues as there may be requests.
    fn gpusync(&mut self) -> GpuSync {
        let (tokens, fifo_length) = (self.count(), self.maybe(Self::count));
        let room = u64::from(tokens) * u64::from(fifo_length.unwrap_or(u32::MAX));
        let migration = self.maybe(Self::span_or_zero);
        let paths: &[MigrationPath] =
            if migration.is_some() { &[MigrationPath::Peer, MigrationPath::Host] } else { &[MigrationPath::Peer] };
        GpuSync {
            tokens,
            fifo_length,
            fifo_requests: self.maybe(|source| source.rng.between(1, room.min(1 << 30)) as u32),
            engine_order: self.pick(&[EngineOrder::Fifo, EngineOrder::Priority]),
            chunk: self.maybe(|source| source.rng.next_u64().max(1)),
            hold: self.pick(&[TokenHold::Job, TokenHold::Section]),
            migration,
            migration_path: self.pick(paths),
        }
    }

    /// Of something that there is at least one of.
    fn count(&mut self) -> u32 {
        1 + self.below(u64::from(u32::MAX)) as u32
    }

    fn gpu(&mut self, index: usize, cpus: usize) -> Gpu {
        let mut interrupt_cpus: Vec<CpuId> = (0..cpus).map(|cpu| CpuId(cpu as u16)).collect();
        self.shuffle(&mut interrupt_cpus);
        interrupt_cpus.truncate(self.below(cpus as u64) as usize + 1);
        Gpu {
            name: self.name(index),
            cluster: 0,
            copy_engines: 1 + self.below(2) as u8,
            bandwidth: self.span(40).0,
            latency: self.span_or_zero(),
            interrupt_cpus,
        }
    }

    fn overheads(&mut self) -> OverheadProfile {
        match self.below(3) {
            0 => OverheadProfile::zero(),
            1 => {
                let name = self.pick(&OverheadProfile::published_names());
                OverheadProfile::published(&name).expect("a published name")
            }
            _ => OverheadProfile {
                name: self.pick(&["none", "mine", "elliott2012-klmirqd", "brandenburg2009-worst"]).to_owned(),
                tables: OverheadKind::ALL.map(|_| self.overhead_table()),
            },
        }
    }

    fn overhead_table(&mut self) -> OverheadTable {
        if self.chance() {
            return OverheadTable::Constant(self.span_or_zero());
        }
        let mut tasks = 0;
        let points = (0..=self.below(4)).map(|_| {
            tasks += 1 + self.below(1_000) as u32;
            (tasks, self.span(50).0)
        });
        OverheadTable::Points(points.collect())
    }

    fn scheduler(&mut self, cpus: usize) -> Scheduler {
        let scope = self.pick(&["G", "C", "P"]);
        let rule = self.pick(&["EDF", "RM", "DM", "FP"]);
        let stagger = self.pick(&["", "S-"]);
        let queue = self.pick(&["C", "F", "H"]);
        let invocation = self.pick(&["E", "Q"]);
        // A platform of one CPU cannot spare it.
        let interrupts = if cpus < 2 { "m" } else { self.pick(&["m", "1"]) };
        let name = format!("{scope}-{rule}/{stagger}{queue}{invocation}{interrupts}");
        Scheduler { coarse_lock: self.chance(), ..name.parse().expect("a scheduler") }
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
            budget: self.maybe(|source| Nanos(1 + source.below(period.0))),
            body: self.body(workload, cluster),
        }
    }

    fn best_effort(&mut self, index: usize, workload: &Workload) -> BestEffortTask {
        BestEffortTask {
            name: format!("best effort {}", self.name(index)),
            weight: 1 + self.below(u64::from(u32::MAX)) as u32,
            memory_demand: self.rng.next_u64() >> self.below(64),
            cpu: self.maybe(|source| source.below(workload.platform.cpus as u64) as usize),
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
        Graph { name: self.name(index), nodes, edges, objects, replicas }
    }

    fn node(&mut self, index: usize, workload: &Workload) -> Node {
        let cluster = self.cluster(workload);
        let is_source = index == 0;
        Node {
            name: self.name(index),
            period: is_source.then(|| self.long_span()),
            phase: if is_source { self.span_or_zero() } else { Nanos::ZERO },
            deadline: self.maybe(Self::long_span),
            priority: Some(self.below(100) as u32),
            cluster,
            body: self.body(workload, cluster),
        }
    }

    fn edge(&mut self, producer: usize, consumer: usize, back_edge: bool) -> Edge {
        let tokens = 1 + self.below(u64::from(u32::MAX >> 1)) as u32;
        let threshold = tokens + self.below(3) as u32;
        let initial = if back_edge { threshold + self.below(3) as u32 } else { self.below(3) as u32 };
        let delay = self.below(3) as u32;
        Edge { producer, consumer, produce: tokens, consume: tokens, threshold, initial, back_edge, delay }
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
