//! Each rule of a valid workload, broken once.

use laxity_model::{
    CpuId, Distribution, ErrorKind, ExecutionTime, Factor, GpuOperation, GpuWork, Nanos, OverheadKind, OverheadTable,
    Scope, ServerKind, Step, TaskServer, Waiting, Warning, Workload,
};

use crate::examples::example;

/// The complete example, which has one of everything, after `change`; returns what validation says.
fn broken(change: impl FnOnce(&mut Workload)) -> Vec<(ErrorKind, String, String)> {
    broken_in("stabilizer.toml", change)
}

fn broken_in(file: &str, change: impl FnOnce(&mut Workload)) -> Vec<(ErrorKind, String, String)> {
    let mut workload = example(file);
    change(&mut workload);
    let errors = workload.validate().expect_err("a broken rule").into_vec();
    errors.into_iter().map(|error| (error.kind, error.path.to_string(), error.message)).collect()
}

/// Checks that `change` breaks exactly one rule, at `path`, with a message that contains `words`.
#[track_caller]
pub fn breaks(kind: ErrorKind, path: &str, words: &str, change: impl FnOnce(&mut Workload)) {
    breaks_in("stabilizer.toml", kind, path, words, change);
}

/// As [`breaks`], for another example.
#[track_caller]
pub fn breaks_in(file: &str, kind: ErrorKind, path: &str, words: &str, change: impl FnOnce(&mut Workload)) {
    let found = broken_in(file, change);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1.as_str()), (kind, path), "{found:?}");
    assert!(found[0].2.contains(words), "`{words}` is not in: {}", found[0].2);
}

use ErrorKind::{BadValue, Contradiction, Duplicate, Infeasible, UnknownName};

const TOO_LONG: Nanos = Nanos(Nanos::LONGEST.0 + 1);

#[test]
fn names_are_unique_and_printable() {
    breaks(BadValue, "name", "empty", |w| w.name = " ".to_owned());
    breaks(BadValue, "task[0].name", "control character", |w| w.tasks[0].name = "a\nb".to_owned());
    breaks(Duplicate, "best_effort[0].name", "\"health\" is taken by `task[0]`", |w| {
        w.best_effort[0].name = "health".to_owned();
    });
    breaks(Duplicate, "resource[1].name", "resource[0]", |w| w.resources[1].name = w.resources[0].name.clone());
    breaks(Duplicate, "platform.gpu[1].name", "platform.gpu[0]", |w| {
        w.platform.gpus[1].name = w.platform.gpus[0].name.clone();
    });
    breaks(Duplicate, "graph[0].node[1].name", "graph[0].node[0]", |w| {
        w.graphs[0].nodes[1].name = w.graphs[0].nodes[0].name.clone();
    });
}

#[test]
fn the_platform_is_consistent() {
    breaks(Contradiction, "platform.clusters[1]", "cpu0 is in cluster 0 and in cluster 1", |w| {
        w.platform.clusters[1].push(CpuId(0));
    });
    breaks(Contradiction, "platform.clusters", "hold 7 of 8 CPUs; add CPU 7 to one", |w| {
        w.platform.clusters[1].pop();
    });
    breaks(UnknownName, "platform.clusters[1]", "no cpu8: the platform has 8", |w| {
        w.platform.clusters[1].push(CpuId(8));
    });
    breaks(BadValue, "platform.clusters[2]", "no CPU", |w| w.platform.clusters.push(Vec::new()));
    breaks(Contradiction, "platform.quantum", "quantum 2.5 ms is no multiple of tick 1 ms", |w| {
        w.platform.quantum = Nanos(2_500_000);
    });
    breaks(BadValue, "platform.tick", "at least 1 ns", |w| w.platform.tick = Nanos::ZERO);
    breaks(BadValue, "platform.quantum", "at least 1 ns", |w| w.platform.quantum = Nanos::ZERO);
    breaks(BadValue, "platform.cpus", "1 to 1024", |w| {
        *w = Workload::new("w", laxity_model::Platform::identical(1), Vec::new());
        w.platform.cpus = 0;
        w.platform.clusters.clear();
    });
    breaks(Contradiction, "scheduler", "at least 2 CPUs", |w| {
        *w = Workload::new("w", laxity_model::Platform::identical(1), Vec::new());
        w.scheduler = "CE1".parse().expect("a scheduler");
    });
}

#[test]
fn gpus_are_where_they_can_be_used() {
    breaks(UnknownName, "platform.gpu[1].cluster", "no cluster 2: the platform has 2", |w| {
        w.scheduler.scope = Scope::Global;
        w.platform.gpus[1].cluster = 2;
    });
    breaks(BadValue, "platform.gpu[0].copy_engines", "is 3", |w| w.platform.gpus[0].copy_engines = 3);
    breaks(BadValue, "platform.gpu[0].bandwidth", "0 B/s", |w| w.platform.gpus[0].bandwidth = 0);
    breaks(BadValue, "platform.gpu[0].interrupt_cpus", "empty", |w| w.platform.gpus[0].interrupt_cpus.clear());
    breaks(UnknownName, "platform.gpu[0].interrupt_cpus", "no cpu9", |w| {
        w.platform.gpus[0].interrupt_cpus.push(CpuId(9));
    });
    breaks(Duplicate, "platform.gpu[0].interrupt_cpus", "cpu1 is listed twice", |w| {
        w.platform.gpus[0].interrupt_cpus.push(CpuId(1));
    });
    breaks(
        Contradiction,
        "graph[0].node[3].body[1].gpu",
        "belongs to cluster 0, but the task runs in cluster 1",
        |w| {
            let Step::Gpu(operation) = &mut w.graphs[0].nodes[3].body[1] else { panic!("a copy") };
            operation.gpu = Some(0);
        },
    );
    breaks(UnknownName, "graph[0].node[3].body[1].gpu", "no GPU 2", |w| {
        let Step::Gpu(operation) = &mut w.graphs[0].nodes[3].body[1] else { panic!("a copy") };
        operation.gpu = Some(2);
    });
    breaks(Contradiction, "task[0].body[4]", "cluster 1 has no GPU", |w| {
        w.platform.gpus[1].cluster = 0;
        w.graphs[0].nodes[3].body.truncate(1);
        w.tasks[0].body.push(kernel(Nanos(1)));
    });
}

fn kernel(wcet: Nanos) -> Step {
    Step::Gpu(GpuOperation {
        gpu: None,
        work: GpuWork::Kernel(ExecutionTime::constant(wcet)),
        waiting: Waiting::Synchronous,
        interrupts: 1,
        memory: Factor::ZERO,
    })
}

#[test]
fn overhead_tables_ascend() {
    let table = |w: &mut Workload, points: &[(u32, u64)]| {
        w.platform.overheads.tables[OverheadKind::Scheduling as usize] = OverheadTable::Points(points.to_vec());
    };
    breaks(BadValue, "platform.overheads.scheduling", "no point", |w| table(w, &[]));
    breaks(Contradiction, "platform.overheads.scheduling[1]", "50 tasks come after 50", |w| {
        table(w, &[(50, 1), (50, 2)]);
    });
    breaks(BadValue, "platform.overheads.scheduling[0]", "exceed 1 h", |w| table(w, &[(50, u64::MAX)]));
    breaks(BadValue, "platform.overheads.tick", "exceeds 1 h", |w| {
        w.platform.overheads.tables[OverheadKind::Tick as usize] = OverheadTable::Constant(Nanos::from_secs(3_601));
    });
}

#[test]
fn spans_of_tasks_are_positive_and_not_too_long() {
    breaks(BadValue, "task[0].budget", "write at least 1 ns", |w| {
        w.tasks[0].server = Some(TaskServer::hard(Nanos::ZERO));
    });
    breaks(Contradiction, "task[0].budget", "exceeds the period", |w| {
        w.tasks[0].server = Some(TaskServer::hard(w.tasks[0].period + Nanos(1)));
    });
    let server = |budget, period| Some(TaskServer { kind: ServerKind::CbsSoft, budget, period });
    let (one, many) = (Nanos(1), Nanos::from_secs(1));
    breaks(BadValue, "task[0].server.budget", "write at least 1 ns", |w| w.tasks[0].server = server(Nanos::ZERO, None));
    breaks(BadValue, "task[0].server.period", "at least 1 ns", |w| w.tasks[0].server = server(one, Some(Nanos::ZERO)));
    breaks(Contradiction, "task[0].server.budget", "1 s exceeds the server's period 999.999999 ms", |w| {
        w.tasks[0].server = server(many, Some(many - one));
    });
    breaks(Contradiction, "task[0].server.budget", "exceeds the period", |w| w.tasks[0].server = server(many, None));
    breaks(BadValue, "task[0].jitter", "exceeds the longest span, 315360000 s", |w| w.tasks[0].jitter = TOO_LONG);
    breaks(BadValue, "task[0].phase", "exceeds the longest span", |w| w.tasks[0].phase = TOO_LONG);
    breaks(BadValue, "task[0].deadline", "exceeds the longest span", |w| w.tasks[0].deadline = TOO_LONG);
    breaks(BadValue, "task[0].period", "at least 1 ns", |w| w.tasks[0].period = Nanos::ZERO);
    let zero = broken(|w| w.tasks[0].deadline = Nanos::ZERO);
    assert_eq!(zero.iter().map(|found| found.0).collect::<Vec<_>>(), [BadValue, Infeasible]);
}

#[test]
fn a_job_that_cannot_be_in_time_alone_is_refused() {
    let ms = Nanos::from_millis;
    // CPU 1.6 ms and a suspension of 5 ms.
    breaks(Infeasible, "task[0].deadline", "wcet 1.6 ms exceeds relative deadline 1.5 ms", |w| {
        w.tasks[0].deadline = Nanos::from_micros(1_500);
    });
    breaks(Infeasible, "task[0].deadline", "wcet 1.6 ms and 5 ms of waiting", |w| w.tasks[0].deadline = ms(6));
    breaks(Infeasible, "graph[0].node[0].deadline", "deadline 33.333333 ms", |w| {
        w.graphs[0].nodes[0].body = vec![Step::Cpu(ExecutionTime::constant(ms(34)))];
    });
    // A node's period follows from its producers' rates.
    breaks(Infeasible, "graph[0].node[2].deadline", "deadline 33.333333 ms", |w| {
        w.graphs[0].nodes[2].deadline = None;
        w.graphs[0].nodes[2].body = vec![Step::Cpu(ExecutionTime::constant(ms(34)))];
    });
    breaks(BadValue, "task[0].deadline", "more than the longest span", |w| {
        let mut step = kernel(Nanos::LONGEST);
        let Step::Gpu(operation) = &mut step else { unreachable!() };
        operation.waiting = Waiting::Asynchronous;
        w.tasks[0].body.push(step);
    });
}

#[test]
fn a_job_may_take_exactly_until_its_deadline() {
    let task = |wcet| laxity_model::Task::periodic("t", Nanos(wcet), Nanos(10));
    let validate = |wcet| Workload::new("w", laxity_model::Platform::identical(1), vec![task(wcet)]).validate();
    assert_eq!(validate(10), Ok(()));
    assert!(validate(11).is_err());
}

/// Node B of the pipeline runs 4 times in 28 ms, hence once in 7.
#[test]
fn a_node_is_due_after_its_share_of_the_window() {
    let with_wcet = |wcet| {
        let mut workload = example("pipeline.toml");
        workload.graphs[0].nodes[1].body = vec![Step::Cpu(ExecutionTime::constant(wcet))];
        workload.validate()
    };
    assert_eq!(with_wcet(Nanos::from_millis(7)), Ok(()));
    let error = with_wcet(Nanos(7_000_001)).expect_err("a job longer than its period");
    assert!(error.to_string().contains("wcet 7.000001 ms exceeds relative deadline 7 ms"), "{error}");
}

#[test]
fn fixed_priorities_and_clusters_fit_the_scheduler() {
    breaks(Contradiction, "task[0].priority", "which C-FP ranks jobs by", |w| w.tasks[0].priority = None);
    breaks(Contradiction, "graph[0].node[1].priority", "missing", |w| w.graphs[0].nodes[1].priority = None);
    breaks(UnknownName, "task[0].cluster", "no cluster 2: the platform has 2", |w| w.tasks[0].cluster = Some(2));
    breaks(UnknownName, "task[0].cluster", "no CPU 8: under partitioned", |w| {
        w.scheduler.scope = Scope::Partitioned;
        w.tasks[0].cluster = Some(8);
        w.graphs.clear();
    });
    breaks(Contradiction, "task[0].cluster", "CPU 0 alone, which handles interrupts", |w| {
        w.scheduler = "P-EDF/CE1".parse().expect("a scheduler");
        w.tasks[0].cluster = Some(0);
        w.graphs.clear();
    });
    breaks(BadValue, "best_effort[0].weight", "at least 1", |w| w.best_effort[0].weight = 0);
    breaks(UnknownName, "best_effort[0].cpu", "no CPU 8", |w| w.best_effort[0].cpu = Some(8));
    breaks(BadValue, "resource[0].replicas", "at least 1", |w| w.resources[0].replicas = 0);
}

#[test]
fn bodies_make_sense() {
    let ns = |nanos| ExecutionTime::constant(Nanos(nanos));
    breaks(BadValue, "task[0].body", "empty", |w| w.tasks[0].body.clear());
    breaks(BadValue, "task[0].body", "no CPU time", |w| w.tasks[0].body = vec![Step::Suspend(ns(1))]);
    breaks(BadValue, "task[0].wcet", "`wcet` is 0 ms", |w| w.tasks[0].body = vec![Step::Cpu(ns(0))]);
    breaks(BadValue, "task[0].body[2].suspend", "0 ms", |w| w.tasks[0].body[2] = Step::Suspend(ns(0)));
    breaks(UnknownName, "task[0].body[1].critical", "no resource 2", |w| {
        w.tasks[0].body[1] = Step::Critical { resource: 2, body: vec![Step::Cpu(ns(1))] };
    });
    breaks(BadValue, "task[0].body[1].body", "say what is done", |w| {
        w.tasks[0].body[1] = Step::Critical { resource: 0, body: Vec::new() };
    });
    breaks(Contradiction, "task[0].body[1].body[0].critical", "\"log\" is held already", |w| {
        let inner = Step::Critical { resource: 1, body: vec![Step::Cpu(ns(1))] };
        w.tasks[0].body[1] = Step::Critical { resource: 1, body: vec![inner] };
    });
    breaks(BadValue, "graph[0].node[3].body[1].copy_in", "0 B", |w| {
        let Step::Gpu(operation) = &mut w.graphs[0].nodes[3].body[1] else { panic!("a copy") };
        let GpuWork::Copy { bytes, .. } = &mut operation.work else { panic!("a copy") };
        *bytes = 0;
    });
    breaks(Contradiction, "graph[0].node[1].body[1].body[2].copy_out", "longer than the longest span", |w| {
        let Step::Critical { body, .. } = &mut w.graphs[0].nodes[1].body[1] else { panic!("a section") };
        let Step::Gpu(operation) = &mut body[2] else { panic!("a copy") };
        let GpuWork::Copy { bytes, .. } = &mut operation.work else { panic!("a copy") };
        *bytes = u64::MAX;
        // Nothing else is to complain: only this copy may take so long, and the job need not wait for it.
        w.platform.gpus[0].bandwidth = 58_000_000_000;
        w.platform.gpus[0].latency = Nanos::ZERO;
    });
}

#[test]
fn critical_sections_nest_to_a_limit_and_not_beyond() {
    let nested = |depth: usize| {
        let inner = vec![Step::Cpu(ExecutionTime::constant(Nanos(1)))];
        (0..depth).fold(inner, |body, resource| vec![Step::Critical { resource, body }])
    };
    let mut workload = example("stabilizer.toml");
    let resource = workload.resources[1].clone();
    workload
        .resources
        .extend((2..10_000).map(|n| laxity_model::Resource { name: format!("r{n}"), ..resource.clone() }));
    workload.tasks[0].body = nested(16);
    assert_eq!(workload.validate(), Ok(()));
    assert_eq!(Workload::from_toml(&workload.to_toml(), "f.toml").as_ref(), Ok(&workload), "TOML can nest as deep");
    workload.tasks[0].body = nested(17);
    let error = workload.validate().expect_err("one too deep");
    assert!(error.to_string().contains("nest deeper than 16"), "{error}");
}

#[test]
fn distributions_stay_below_their_worst_case() {
    let with = |actual: Distribution| {
        move |w: &mut Workload| {
            w.tasks[0].body = vec![Step::Cpu(ExecutionTime { wcet: Nanos(10), actual })];
        }
    };
    let bin = |min, max, weight| laxity_model::Bin { min: Nanos(min), max: Nanos(max), weight };
    breaks(
        Contradiction,
        "task[0].actual",
        "`actual` 11 ns exceeds the wcet, 10 ns",
        with(Distribution::Constant(Nanos(11))),
    );
    let uniform = |min, max| Distribution::Uniform { min: Nanos(min), max: Nanos(max) };
    breaks(Contradiction, "task[0].actual.uniform", "min 5 ns exceeds max 4 ns", with(uniform(5, 4)));
    breaks(Contradiction, "task[0].actual.uniform", "exceeds the wcet", with(uniform(5, 11)));
    breaks(BadValue, "task[0].actual.histogram", "add up to 0", with(Distribution::Histogram(Vec::new())));
    breaks(BadValue, "task[0].actual.histogram", "add up to 0", with(Distribution::Histogram(vec![bin(1, 2, 0)])));
    let heavy = vec![bin(1, 2, u64::MAX), bin(1, 2, u64::MAX)];
    breaks(BadValue, "task[0].actual.histogram", "divide them all", with(Distribution::Histogram(heavy)));
    let long = Distribution::Histogram(vec![bin(1, 2, 1), bin(3, 11, 1)]);
    breaks(Contradiction, "task[0].actual.histogram[1]", "11 ns exceeds the wcet", with(long));
    breaks(BadValue, "task[0].actual.recorded", "at least one", with(Distribution::Recorded(Vec::new())));
    let recorded = Distribution::Recorded(vec![Nanos(1), Nanos(11)]);
    breaks(Contradiction, "task[0].actual.recorded[1]", "11 ns exceeds the wcet", with(recorded));
    breaks(Contradiction, "task[0].gap", "exceeds the longest span", |w| {
        w.tasks[0].arrival = laxity_model::Arrival::Sporadic { gap: Distribution::Constant(TOO_LONG) };
    });
}

#[test]
fn graphs_are_sound() {
    // Nodes: 0 camera, 1 track, 2 smooth, 3 display. Edges: 0->1, 1->2, 2->2 back, 2->3.
    breaks(BadValue, "graph[0].node", "no node", |w| {
        w.graphs[0].nodes.clear();
        w.graphs[0].edges.clear();
    });
    breaks(UnknownName, "graph[0].edge[3].to", "no node 4", |w| {
        w.graphs[0].edges[3].consumer = 4;
        w.graphs[0].nodes[3].period = Some(Nanos::from_millis(40));
    });
    breaks(BadValue, "graph[0].edge[1].produce", "at least 1 token", |w| w.graphs[0].edges[1].produce = 0);
    breaks(BadValue, "graph[0].edge[1].consume", "at least 1 token", |w| w.graphs[0].edges[1].consume = 0);
    breaks(Contradiction, "graph[0].edge[1].threshold", "threshold 1 is below consume 2", |w| {
        w.graphs[0].edges[1].consume = 2;
    });
    breaks(Contradiction, "graph[0].edge[2].initial", "0 initial tokens and threshold 1", |w| {
        w.graphs[0].edges[2].initial = 0;
    });
    breaks(Contradiction, "graph[0].edge[3].back_edge", "closes no cycle", |w| {
        w.graphs[0].edges[3].back_edge = true;
        w.graphs[0].edges[3].initial = 1;
        w.graphs[0].nodes[3].period = w.graphs[0].nodes[0].period;
    });
    breaks(Contradiction, "graph[0].edge[2]", "part of a cycle", |w| w.graphs[0].edges[2].back_edge = false);
    breaks(Contradiction, "graph[0].node[0].period", "missing", |w| w.graphs[0].nodes[0].period = None);
    breaks(Contradiction, "graph[0].node[1].period", "contradicts the tokens", |w| {
        w.graphs[0].nodes[1].period = Some(Nanos::from_millis(50));
    });
    breaks(Contradiction, "graph[0].node[1].phase", "for sources", |w| w.graphs[0].nodes[1].phase = Nanos(1));
    breaks(Contradiction, "graph[0].edge[4]", "by this edge but 1 job in 33.333333 ms by its other edges", |w| {
        let mut edge = w.graphs[0].edges[0].clone();
        (edge.producer, edge.consumer, edge.produce) = (0, 2, 2);
        w.graphs[0].edges.push(edge);
    });
    breaks(Contradiction, "graph[0].edge[2]", "produces 3 tokens in 33.333333 ms but", |w| {
        w.graphs[0].edges[2].produce = 3;
    });
}

#[test]
fn there_are_at_most_65535_tasks() {
    let task = laxity_model::Task::periodic("t", Nanos(1), Nanos::from_secs(1));
    let tasks = |count: usize| (0..count).map(|n| laxity_model::Task { name: n.to_string(), ..task.clone() }).collect();
    let workload = |count| Workload::new("w", laxity_model::Platform::identical(1), tasks(count));
    assert_eq!(workload(65_535).validate(), Ok(()));
    let error = workload(65_536).validate().expect_err("one too many");
    assert_eq!(error.to_string(), "65536 tasks and 0 graph nodes are more than 65535 together; split the file");
}

#[test]
fn a_built_workload_names_its_items_as_a_file_does() {
    let mut workload = example("stabilizer.toml");
    workload.graphs[0].nodes[2].body = vec![Step::Cpu(ExecutionTime::constant(Nanos::ZERO))];
    let error = workload.validate().expect_err("a broken rule");
    assert_eq!(error.to_string(), "graph 0 \"vision\" node 2 \"smooth\": `wcet` is 0 ms; write at least 1 ns");
}

#[test]
fn warnings_tell_of_overload_and_nothing_else() {
    let mut workload = example("paper002_fig1.toml");
    assert_eq!(workload.warnings(), []);
    workload.tasks[0].deadline = Nanos::from_millis(20);
    workload.tasks[0].body = vec![Step::Cpu(ExecutionTime::constant(Nanos::from_millis(10)))];
    assert_eq!(workload.validate(), Ok(()));
    // 10/8 + 6/11 + 6.5/12 = 2.337...
    assert_eq!(
        workload.warnings(),
        [
            Warning::TaskOverload {
                task: "T1".to_owned(),
                wcet: Nanos::from_millis(10),
                period: Nanos::from_millis(8)
            },
            Warning::CpuOverload { permille: 2337, cpus: 2 },
        ]
    );
    assert_eq!(
        workload.warnings()[1].to_string(),
        "the tasks need 2.337 CPUs and 2 run jobs; tardiness grows without bound"
    );
    workload.tasks.remove(0);
    workload.scheduler = "CE1".parse().expect("a scheduler");
    assert_eq!(workload.warnings(), [Warning::CpuOverload { permille: 1087, cpus: 1 }], "CPU 0 runs no job");
}
