//! Arbitrary valid workloads: every type, every variant, odd names and odd numbers, from a seed.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Arrival, BestEffortTask, Bin, CopyDirection, CpuId, Distribution, Edge, ExecutionTime, Gpu, GpuOperation, GpuWork,
    Graph, Nanos, Node, OverheadKind, OverheadProfile, OverheadTable, Platform, Resource, ResourceProtocol, Scheduler,
    Scope, Step, Task, Waiting, Workload,
};

/// A valid workload; the same for the same seed. Up to `size` of everything.
pub fn workload(seed: u64, size: u64) -> Workload {
    let mut source = Source { rng: SplitMix64::new(seed), size };
    let platform = source.platform();
    let resources = source.several(|source, index| source.resource(index));
    let mut workload = Workload { resources, ..Workload::new(source.name(0), platform, Vec::new()) };
    workload.scheduler = source.scheduler(workload.platform.cpus);
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
        platform
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

    fn task(&mut self, index: usize, workload: &Workload) -> Task {
        let cluster = self.cluster(workload);
        let period = self.span(57);
        let longest = Nanos::from_secs(1);
        Task {
            name: format!("task {}", self.name(index)),
            arrival: match self.chance() {
                true => Arrival::Periodic,
                false => Arrival::Sporadic { gap: self.distribution(longest) },
            },
            period,
            deadline: self.long_span(),
            phase: self.span_or_zero(),
            jitter: self.span_or_zero(),
            priority: Some(self.below(1 << 32) as u32),
            cluster,
            working_set: self.maybe(|source| source.rng.next_u64()),
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
        Graph { name: self.name(index), nodes, edges }
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
    ] {
        assert!(seen.contains(feature), "no generated workload has `{feature}`");
    }
}
