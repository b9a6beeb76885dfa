//! `check` on workloads small enough to work out by hand.

use laxity_analysis::check::{
    Accounting, Bound, BoundSource, Criterion, Failure, Options, Report, Scaling, Status, Term, check,
};
use laxity_analysis::overheads::{InterruptLag, System, Windows, task_centric};
use laxity_analysis::{AnalysisTask, Test, rational};
use laxity_model::{
    Arrival, Distribution, Edge, ExecutionTime, Graph, Nanos, Node, OverheadCosts, OverheadProfile, Platform,
    ReleaseInterrupts, Scheduler, ServerKind, SignedNanos, Step, Task, TaskServer, Workload,
};

const US: u64 = 1_000;

fn task(name: &str, wcet: u64, period: u64) -> Task {
    Task::periodic(name, Nanos(wcet), Nanos(period))
}

fn workload(cpus: usize, tasks: Vec<Task>) -> Workload {
    Workload::new("w", Platform::identical(cpus), tasks)
}

fn costly(mut workload: Workload) -> Workload {
    let costs = OverheadCosts {
        release: Nanos(7 * US),
        scheduling: Nanos(5 * US),
        context_switch: Nanos(3 * US),
        ipi_latency: Nanos(2 * US),
        tick: Nanos(11 * US),
        timer_rearming: Nanos(US),
        cache_preemption: Nanos(13 * US),
        cache_migration: Nanos(17 * US),
        ..OverheadCosts::default()
    };
    workload.platform.overheads = OverheadProfile::constant("test", costs);
    workload
}

fn checked(workload: &Workload, scheduler: &str) -> Report {
    let options = Options { scaling: false, ..Options::default() };
    check(workload, &scheduler.parse().expect("a scheduler"), &options)
}

fn bounds(report: &Report) -> Vec<Option<Bound>> {
    report.tasks.iter().map(|task| task.response_time).collect()
}

fn first_failure(report: &Report) -> &Failure {
    report.hard.failures.first().expect("a failure is explained")
}

/// A set of four tasks: GFB accepts, response-time analysis yields 3, 4, 7, 6.
#[test]
fn the_deciding_test_is_named_and_bounds_come_from_response_time_analysis() {
    let tasks = vec![task("a", 1, 4), task("b", 2, 5), task("c", 3, 10), task("d", 2, 8)];
    let report = checked(&workload(2, tasks), "G-EDF");
    assert_eq!((report.hard.status, &report.hard.tests[..]), (Status::Schedulable, &[Test::Gfb][..]));
    assert_eq!((report.soft.status, &report.soft.tests[..]), (Status::Schedulable, &[Test::Gfb][..]));
    let by_rta = |time| Some(Bound { time: Nanos(time), by: BoundSource::Test(Test::Rta) });
    assert_eq!(bounds(&report), [3, 4, 7, 6].map(by_rta));
    let laxities: Vec<_> = report.tasks.iter().map(|task| task.laxity).collect();
    assert_eq!(laxities, [1, 1, 3, 2].map(|left| Some(SignedNanos(left))));
    assert!(report.tasks.iter().all(|task| task.tardiness == Some(Nanos::ZERO)));
    assert_eq!(report.load.before, rational(6, 5));
    assert_eq!(report.load.after, Some(rational(6, 5)), "there are no overheads");
}

/// Three tasks of utilization 2/3 fill two CPUs: some job may be late, but none by more than its own 2 us.
#[test]
fn a_set_that_may_miss_gets_tardiness_bounds_and_the_task_and_interval_of_the_failure() {
    let tasks = ["a", "b", "c"].map(|name| task(name, 2 * US, 3 * US)).to_vec();
    let report = checked(&workload(2, tasks), "G-EDF");
    assert_eq!((report.hard.status, report.soft.status), (Status::NotProven, Status::Schedulable));
    assert_eq!(report.soft.tests, [Test::BoundedTardiness]);
    // Devi & Anderson: U = 2, so x = (2 - 2) / 2 = 0, and a job is at most its own 2 us late.
    let bound = Bound { time: Nanos(5 * US), by: BoundSource::Tardiness };
    assert_eq!(bounds(&report), [Some(bound); 3]);
    assert!(report.tasks.iter().all(|task| task.laxity == Some(SignedNanos(-2_000))));
    let failed: Vec<_> = report.hard.failures.iter().map(|failure| failure.test).collect();
    for test in [Test::Gfb, Test::Rta] {
        assert!(failed.contains(&Some(test)), "{failed:?}");
    }
    assert_eq!(first_failure(&report).cluster, 0);
    let rta = report.hard.failures.iter().find(|failure| failure.test == Some(Test::Rta)).expect("RTA was asked");
    assert_eq!(rta.message, "task \"a\": no response-time bound within the 3 us it has");
}

#[test]
fn a_demand_test_names_the_interval_in_which_others_may_execute_for_too_long() {
    let with_deadline = |name, wcet, period, deadline| Task { deadline: Nanos(deadline), ..task(name, wcet, period) };
    let tasks = vec![with_deadline("a", 3, 10, 3), with_deadline("b", 3, 10, 3), with_deadline("c", 1, 10, 3)];
    let report = checked(&workload(2, tasks), "G-EDF");
    let failure = first_failure(&report);
    assert_eq!((failure.test, failure.task, failure.interval), (Some(Test::Bar), Some(0), Some(Nanos(3))));
    assert_eq!(
        failure.message,
        "task \"a\": in an interval of 3 ns up to its deadline others may execute for 2 ns; it needs less than 2 ns"
    );
}

#[test]
fn infeasible_is_said_only_where_no_overhead_is_needed_to_see_it() {
    let too_long = Task { deadline: Nanos(4), ..task("a", 5, 9) };
    let report = checked(&workload(2, vec![too_long]), "G-EDF");
    assert_eq!((report.hard.status, report.soft.status), (Status::Infeasible, Status::Schedulable));
    assert_eq!(first_failure(&report).message, "task \"a\": it needs 5 ns and has 4 ns; lower its execution time");

    let overload = workload(1, vec![task("a", 3, 5), task("b", 3, 5)]);
    let report = checked(&overload, "G-EDF");
    assert_eq!((report.hard.status, report.soft.status), (Status::Infeasible, Status::Infeasible));
    assert_eq!(first_failure(&report).message, "utilization 1.200 exceeds 1 CPU, overheads not counted");

    let full = costly(workload(1, vec![task("a", 500 * US, 1_000 * US), task("b", 500 * US, 1_000 * US)]));
    let report = checked(&full, "G-EDF");
    assert_eq!((report.hard.status, report.soft.status), (Status::NotProven, Status::NotProven));
}

/// dbf(2) = 3 > 2 if both arrive at once, which they never do with phases 0 and 2.
#[test]
fn an_exact_test_calls_infeasible_only_what_may_arrive_at_once() {
    let pair = |phase: u64, arrival: Arrival| {
        let short = Task { deadline: Nanos(2), ..task("a", 1, 4) };
        let other = Task { deadline: Nanos(2), phase: Nanos(phase), arrival, ..task("b", 2, 4) };
        checked(&workload(1, vec![short, other]), "P-EDF").hard.status
    };
    assert_eq!(pair(0, Arrival::Periodic), Status::Infeasible);
    assert_eq!(pair(2, Arrival::Periodic), Status::NotProven);
    let sporadic = Arrival::Sporadic { gap: Distribution::Constant(Nanos(1)) };
    assert_eq!(pair(2, sporadic), Status::Infeasible);
}

/// R = 1, 3, 10 as in any textbook: the third waits for three jobs of the first and two of the second.
#[test]
fn fixed_priorities_on_one_cpu_get_exact_response_times_with_blocking_beside() {
    let mut tasks = vec![task("low", 3, 12), task("high", 1, 4), task("middle", 2, 6)];
    let times = |tasks: &[Task]| {
        let report = checked(&workload(1, tasks.to_vec()), "P-RM");
        assert_eq!(report.hard.tests, [Test::UniprocessorFixedPriority]);
        bounds(&report).into_iter().map(|bound| bound.expect("it is schedulable").time.0).collect::<Vec<_>>()
    };
    assert_eq!(times(&tasks), [10, 1, 3]);
    tasks[0].body =
        vec![Step::NonPreemptive(ExecutionTime::constant(Nanos(1))), Step::Cpu(ExecutionTime::constant(Nanos(2)))];
    assert_eq!(times(&tasks), [10, 2, 4], "each waits for the section once; the last has no task below it");
}

/// Every term by hand: two tasks on two CPUs, event-driven. One piece of scheduler code takes 5 + 1 + 3 = 9 us.
#[test]
fn the_safe_accounting_charges_what_may_delay_a_job() {
    let mut tasks = vec![task("a", 400 * US, 5_000 * US), task("b", 900 * US, 9_500 * US)];
    tasks[1].jitter = Nanos(30 * US);
    tasks[1].body = vec![
        Step::Cpu(ExecutionTime::constant(Nanos(700 * US))),
        Step::Suspend(ExecutionTime::constant(Nanos(100 * US))),
        Step::NonPreemptive(ExecutionTime::constant(Nanos(200 * US))),
    ];
    let report = checked(&costly(workload(2, tasks)), "G-EDF/CEm");
    let terms = |index: usize| {
        let terms = report.tasks[index].terms.expect("accounted for");
        terms.iter().filter(|(_, time)| !time.is_zero()).map(|(term, time)| (term, time.0 / US)).collect::<Vec<_>>()
    };
    // Lag: 9 + tick 11 + one release each 14 + one resumption of b 7 = 41 us. Windows: response times, and that.
    let expected_a = vec![
        (Term::Execution, 400),
        (Term::Blocking, 217), // 200, and 17 of cache delay where it resumes into the section
        (Term::Scheduling, 10),
        (Term::TimerRearming, 2),
        (Term::ContextSwitches, 6),
        (Term::HoldOff, 18),
        (Term::IpiLatency, 2),
        (Term::OwnReleases, 7),
        (Term::OtherReleases, 14), // b: 1 release, 1 resumption
        (Term::Ticks, 11),         // 1 of 1 ms in 0.762 ms
        (Term::Cache, 34),         // b may resume twice; it is due 4.5 ms later, so no release of it preempts
    ];
    assert_eq!(terms(0), expected_a);
    let expected_b = vec![
        (Term::Execution, 900),
        (Term::Suspension, 100),
        (Term::Jitter, 30),
        (Term::Scheduling, 20),
        (Term::TimerRearming, 4),
        (Term::ContextSwitches, 12),
        (Term::HoldOff, 36),
        (Term::IpiLatency, 4),
        (Term::OwnReleases, 14),
        (Term::OtherReleases, 14), // a: 1 release; b: 1 resumption
        (Term::Ticks, 22),         // 2 in 1.214 ms
        (Term::Cache, 17),         // one job of a arrives in the 4.5 ms before which it is due no later
    ];
    assert_eq!(terms(1), expected_b);
    let total: u64 = expected_b.iter().map(|(_, time)| time * US).sum();
    assert_eq!(report.tasks[1].inflated_wcet, Some(Nanos(total)));
}

#[test]
fn quantum_driven_execution_is_rounded_up_to_whole_quanta() {
    let tasks = vec![task("a", 1_500 * US, 20_000 * US)];
    let report = checked(&costly(workload(1, tasks)), "G-EDF/CQm");
    let terms = report.tasks[0].terms.expect("accounted for");
    // 1500 + 4 pairs of 9 + release 7, and the next release in a window of 20 ms and a bit: 1550 us in quanta of 989.
    assert_eq!(report.tasks[0].inflated_wcet, Some(Nanos::from_millis(2)));
    assert_eq!(terms.get(Term::Ticks), Nanos(22 * US));
    assert_eq!(terms.get(Term::Rounding), Nanos(428 * US));
    assert_eq!(terms.get(Term::IpiLatency), Nanos::ZERO);
    // Two quanta, and one until the first boundary.
    let bound = report.tasks[0].response_time.expect("schedulable");
    assert_eq!(bound.time, Nanos::from_millis(3));
}

#[test]
fn the_published_accounting_is_that_of_the_overheads_module() {
    let tasks = vec![task("a", 400 * US, 5_000 * US), task("b", 900 * US, 9_500 * US), task("c", 50 * US, 3_000 * US)];
    let workload = costly(workload(4, tasks));
    for (name, interrupts) in [("CEm", ReleaseInterrupts::Global), ("CE1", ReleaseInterrupts::Dedicated)] {
        let scheduler: Scheduler = name.parse().expect("a realization");
        let options = Options { accounting: Accounting::Published, scaling: false, ..Options::default() };
        let report = check(&workload, &scheduler, &options);
        let (costs, quantum) = (workload.platform.overheads.at(3), Nanos::from_millis(1));
        let system = System { cpus: 4, interrupts, costs, quantum, event_latency: Nanos::ZERO };
        let tasks: Vec<AnalysisTask> = workload.tasks.iter().map(AnalysisTask::from).collect();
        let expected = task_centric(&system, &tasks, Windows::Deadlines, InterruptLag::None, false).expect("light");
        let ours: Vec<u64> = report.tasks.iter().map(|task| task.inflated_wcet.expect("accounted for").0).collect();
        let theirs: Vec<u64> = expected.tasks.iter().map(|task| task.wcet).collect();
        assert_eq!(ours, theirs, "{name}");
        let safe = checked(&workload, name);
        assert!(safe.tasks.iter().zip(&theirs).all(|(task, &published)| task.inflated_wcet > Some(Nanos(published))));
    }
}

fn scaling_of(workload: &Workload, criterion: Criterion) -> Scaling {
    let options = Options { criterion, ..Options::default() };
    check(workload, &Scheduler::GLOBAL_EDF, &options).scaling.expect("asked for")
}

#[test]
fn the_scaling_factor_is_exact_where_the_test_is() {
    let hard = |tasks| scaling_of(&workload(1, tasks), Criterion::Hard);
    let found = |permille, is_capped| Scaling { criterion: Criterion::Hard, permille, is_capped };
    // 1000/3333 of a CPU: 3.333 times fits.
    assert_eq!(hard(vec![task("a", 1_000, 3_333)]), found(Some(3_333), false));
    assert_eq!(hard(vec![task("a", 6_000, 10_000), task("b", 6_000, 10_000)]), found(Some(833), false));
    assert_eq!(hard(vec![task("a", 1, 1_000_000)]), found(Some(100_000), true));
    let overheads_alone = costly(workload(1, vec![task("a", 1, 20 * US)]));
    assert_eq!(scaling_of(&overheads_alone, Criterion::Hard), found(None, false));
}

#[test]
fn bounded_tardiness_leaves_more_room_than_deadlines() {
    let set = workload(2, ["a", "b", "c"].map(|name| task(name, 1_000, 3_000)).to_vec());
    assert_eq!(scaling_of(&set, Criterion::Soft).permille, Some(2_000), "up to a utilization of 2");
    assert_eq!(scaling_of(&set, Criterion::Hard).permille, Some(1_500), "GFB: 3u <= 2 - u");
}

#[test]
fn what_cannot_be_treated_is_refused_by_name() {
    let mut set = workload(2, vec![task("camera", 1, 9), task("lidar", 1, 9), task("radio", 1, 9)]);
    set.resources.push(laxity_model::Resource {
        name: "log".to_owned(),
        protocol: laxity_model::ResourceProtocol::Fifo,
        replicas: 2,
    });
    let cpu = || Step::Cpu(ExecutionTime::constant(Nanos(1)));
    set.tasks[0].body.push(Step::Critical { resource: 0, body: vec![cpu()] });
    set.tasks[2].body.extend([Step::Suspend(ExecutionTime::constant(Nanos(1))), cpu()]);
    let report = checked(&set, "CE1");
    let refused: Vec<String> = report.refusals.iter().map(|refusal| refusal.subject.clone()).collect();
    assert_eq!(refused, ["task \"camera\"", "task \"radio\""]);
    assert!(report.refusals[0].reason.contains("dedicated"));
    assert_eq!((report.hard.status, report.soft.status), (Status::Refused, Status::Refused));
    assert!(report.tasks.is_empty() && report.scaling.is_none());
    assert_eq!(checked(&set, "CEm").refusals.len(), 0, "without a dedicated CPU suspensions are fine");
    let alone = checked(&workload(1, vec![task("a", 1, 9)]), "CE1");
    assert!(alone.refusals[0].reason.contains("leaves none for jobs"));
}

/// A task within its budget is judged as one without; of one that is not nothing is known, and others have bounds.
#[test]
fn a_budget_that_jobs_outrun_bounds_what_others_see() {
    let with = |budget: Option<u64>, costs: OverheadCosts| {
        let mut set = workload(1, vec![task("camera", 4, 9), task("lidar", 1, 9)]);
        set.platform.overheads = OverheadProfile::constant("given", costs);
        set.tasks[0].server = budget.map(|budget| TaskServer::hard(Nanos(budget)));
        checked(&set, "CEm")
    };
    let free = OverheadCosts::default();
    assert_eq!(with(Some(4), free), with(None, free));
    let report = with(Some(3), free);
    assert_eq!((report.hard.status, report.soft.status), (Status::NotProven, Status::NotProven));
    let reason = &report.hard.failures[0].message;
    assert!(reason.contains("\"camera\": its jobs may need 4 ns in 9 ns, and its server gives them 3 ns"), "{reason}");
    let bounds: Vec<_> = report.tasks.iter().map(|task| task.response_time.map(|bound| bound.time.0)).collect();
    assert!(bounds[0].is_none() && bounds[1].is_some_and(|bound| (4..=9).contains(&bound)), "{bounds:?}");
    let costly = OverheadCosts { cache_preemption: Nanos(1), ..free };
    assert!(with(Some(4), costly).refusals[0].reason.contains("cache-related delay"));
}

/// A job of 15 in budgets of 2 in 10 is complete by the end of the eighth: 70 after it arrived, and 2 and what a more urgent
/// task takes.
#[test]
fn a_job_of_several_budgets_is_complete_when_the_last_is_used_up() {
    let ms = Nanos::from_millis;
    let with = |kind, period: u64, policy: &str| {
        let mapping = Task {
            server: Some(TaskServer { kind, budget: ms(2), period: Some(ms(period)) }),
            ..Task::periodic("mapping", ms(15), ms(100))
        };
        let set =
            workload(1, vec![Task::periodic("urgent", ms(1), ms(5)), mapping, Task::periodic("low", ms(4), ms(40))]);
        let scheduler: Scheduler = policy.parse().expect("a scheduler");
        check(&set, &scheduler, &Options { scaling: false, ..Options::default() })
    };
    let bounds = |report: &Report| -> Vec<_> {
        report.tasks.iter().map(|task| task.response_time.map(|bound| bound.time.0 / 1_000_000)).collect()
    };
    for kind in [ServerKind::CbsHard, ServerKind::Sporadic] {
        let report = with(kind, 10, "G-RM");
        assert!(report.hard.is_schedulable(), "{:?}", report.hard);
        assert_eq!(bounds(&report), [Some(1), Some(73), Some(8)]);
        let (inflated, wcet) = (report.tasks[1].inflated_wcet, report.tasks[1].wcet);
        assert_eq!((inflated, wcet), (Some(ms(15)), ms(15)));
    }
    // It is a task like others where it has a fixed priority, and keeps the one that its server's period gives it.
    assert_eq!(bounds(&with(ServerKind::CbsSoft, 10, "G-RM")), [Some(1), Some(19), Some(24)]);
    for kind in [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic] {
        let report = with(kind, 10, "G-EDF");
        assert!(report.hard.is_schedulable(), "{kind:?}: {:?}", report.hard);
        let bound = bounds(&report)[1].expect("it is proven");
        assert!((72..=80).contains(&bound), "{kind:?}: {bound} ms; the last budget begins at 70 and is due at 80");
    }
    let report = with(ServerKind::CbsHard, 13, "G-EDF");
    assert_eq!(report.hard.status, Status::NotProven);
    let reason = &report.hard.failures[0].message;
    assert!(reason.contains("8 budgets") && reason.contains("a period of 12.5 ms at most"), "{reason}");
}

fn node(name: &str, wcet: u64, period: Option<u64>) -> Node {
    Node { body: vec![Step::Cpu(ExecutionTime::constant(Nanos(wcet)))], ..Node::new(name, period.map(Nanos)) }
}

fn edge(producer: usize, consumer: usize, produce: u32, consume: u32) -> Edge {
    Edge::rated(producer, consumer, produce, consume)
}

/// Every node has a CPU of its own, so that it responds in its execution time.
#[test]
fn a_chain_of_equal_rates_takes_the_sum_of_its_response_times() {
    let mut set = workload(3, Vec::new());
    let nodes = vec![node("in", 10, Some(100)), node("work", 70, None), node("out", 20, None)];
    set.graphs.push(Graph::new("g", nodes, vec![edge(0, 1, 1, 1), edge(1, 2, 1, 1)]));
    let report = checked(&set, "G-EDF");
    assert_eq!(report.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["g/in", "g/work", "g/out"]);
    assert_eq!(report.graphs[0].end_to_end, Some(Nanos(100)));
    let nodes = report.graphs[0].nodes.as_ref().expect("bounded");
    assert_eq!(nodes.iter().map(|node| node.offset.0).collect::<Vec<_>>(), [0, 10, 80]);
    assert_eq!(nodes.iter().map(|node| node.is_sink).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_node_of_another_rate_has_the_period_that_its_tokens_give_it_rounded_down() {
    let mut set = workload(2, Vec::new());
    let nodes = vec![node("in", 10, Some(100)), node("work", 70, None)];
    set.graphs.push(Graph::new("g", nodes, vec![edge(0, 1, 3, 4)]));
    let report = checked(&set, "G-EDF");
    assert_eq!((report.tasks[1].period, report.tasks[1].deadline), (Nanos(133), Nanos(133)));
    // Four tokens come with the second job at latest: shift 100, response times 10 and 70.
    let nodes = report.graphs[0].nodes.as_ref().expect("bounded");
    assert_eq!(nodes[1].completion, Nanos(180));
    // The oldest of them may be of a job 100 * 2 / 3 before that which it counts from.
    assert_eq!(report.graphs[0].end_to_end, Some(Nanos(247)));
}

/// Two chains of three on a CPU: each node may wait for the three of the other chain, but a chain for no more than once. Nothing is
/// said of busy periods where a CPU may be idle while a job waits: for a quantum, or for budget.
#[test]
fn what_is_pending_is_complete_when_nothing_is() {
    let chain = |name: &str| {
        let nodes = vec![node("a", 1, Some(20)), node("b", 1, None), node("c", 1, None)];
        Graph::new(name, nodes, vec![edge(0, 1, 1, 1), edge(1, 2, 1, 1)])
    };
    let mut both = workload(1, vec![]);
    both.graphs = vec![chain("one"), chain("other")];
    let longest = |workload: &Workload, scheduler: &str| {
        let report = checked(workload, scheduler);
        assert!(report.hard.is_schedulable(), "{:?}", report.hard);
        report.graphs.iter().map(|graph| graph.end_to_end.expect("a bound").0).max()
    };
    assert_eq!(longest(&both, "P-EDF"), Some(6));
    let mut beside = both.clone();
    beside.graphs[0].nodes[0].server = Some(TaskServer::hard(Nanos(2)));
    assert!(longest(&beside, "P-EDF") > Some(6));
    assert!(checked(&both, "P-EDF").tasks.iter().all(|task| task.response_time.is_some_and(|bound| bound.time.0 <= 6)));
}

/// A source is served as a task is. Jobs of a node that waits for tokens may begin early, so that they have no bound; the task
/// beside it has, whatever they need.
#[test]
fn nodes_are_servers_as_tasks_are_unless_they_wait_for_tokens() {
    let ms = Nanos::from_millis;
    let server = Some(TaskServer { kind: ServerKind::CbsHard, budget: ms(2), period: Some(ms(10)) });
    let body = |time: u64| vec![Step::Cpu(ExecutionTime::constant(ms(time)))];
    let mapping = Node { server, body: body(15), ..Node::new("mapping", Some(ms(100))) };
    let plan = Node { server, body: body(60), ..Node::new("plan", None) };
    let with = |nodes: Vec<Node>, edges| {
        let mut set = workload(1, vec![Task::periodic("urgent", ms(1), ms(5)), Task::periodic("low", ms(4), ms(40))]);
        set.graphs.push(Graph::new("g", nodes, edges));
        check(&set, &"G-RM".parse().expect("a scheduler"), &Options { scaling: false, ..Options::default() })
    };
    let bounds = |report: &Report| -> Vec<_> {
        report.tasks.iter().map(|task| task.response_time.map(|bound| bound.time.0 / 1_000_000)).collect()
    };
    let alone = with(vec![mapping.clone()], Vec::new());
    assert_eq!(bounds(&alone), [Some(1), Some(8), Some(73)], "as the task of the test above");
    let report = with(vec![mapping, plan], vec![Edge::new(0, 1)]);
    assert!(matches!(bounds(&report)[..], [Some(1), Some(8..40), Some(73..), None]), "{:?}", bounds(&report));
    assert!(!report.hard.is_schedulable());
}
