//! What nodes tell schedulers: flags, releases and deadlines, when to boost.

mod support;

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use laxity_graph::hooks::{Deadline, Fifo, FifoError, HookError, Hooks};
use laxity_graph::{Collector, Graph, Node, NodeStatus, Releasing, WaitError};
use laxity_model::{DataObject, Instant, Nanos, Replicas};
use laxity_policy::graph::{Action, Event, Tokens};
use laxity_sys::clock::now;
use laxity_sys::scheduling::{self, Policy};
use laxity_trace as trace;
use proptest::prelude::*;
use support::random::{Case, case, run};
use support::{Place, back, edge, graph, spec};

fn claim(graph: &Graph, name: &str) -> Node {
    graph.claim(name).expect("it is free")
}

/// Runs the node's next job; its release and deadline.
fn times(node: &mut Node) -> (Instant, Instant) {
    let job = node.try_wait().expect("its tokens are there");
    let times = (job.release().expect("recorded"), job.deadline().expect("recorded"));
    job.complete();
    times
}

/// Each of the node's releases and deadlines by the rule of the simulator, given when its jobs completed.
fn recomputed(case: &Case, start: Instant, records: &[trace::Record], origin: Instant) -> Vec<Vec<(Instant, Instant)>> {
    let plan = case.spec.plan().clone();
    let mut tokens = Tokens::new(plan.clone(), Releasing::Early);
    let mut actions = Vec::new();
    tokens.handle(start, Event::Started, &mut actions);
    let mut arrivals: Vec<(Instant, usize)> = Vec::new();
    for (node, rule) in plan.nodes().iter().enumerate().filter(|(_, rule)| rule.is_source) {
        let arrival = |index| (start.saturating_add(rule.phase).saturating_add(rule.period.times(index)), node);
        arrivals.extend((0..case.jobs[node]).map(arrival));
    }
    arrivals.sort_unstable();
    let mut arrivals = arrivals.into_iter().peekable();
    let mut arrive = |until: Instant, tokens: &mut Tokens, actions: &mut Vec<Action>| {
        while let Some((at, node)) = arrivals.next_if(|&(at, _)| at <= until) {
            tokens.handle(at, Event::Arrived { node, at }, actions);
        }
    };
    for record in records {
        if let trace::Event::Complete { job, .. } = record.event {
            let at = Instant(origin.0 + record.at.0);
            arrive(at, &mut tokens, &mut actions);
            tokens.handle(at, Event::Completed { node: job.task.index() }, &mut actions);
        }
    }
    tokens.timeout(Instant::NEVER, &mut actions);
    let mut releases = vec![Vec::new(); plan.nodes().len()];
    for action in actions {
        if let Action::Released { node, arrival, deadline, .. } = action {
            releases[node].push((arrival, deadline));
        }
    }
    releases
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Sources are released by time; all that came late shifts the deadlines after it. The oracle is the state machine
    /// that the simulator runs, which sees when jobs completed and nothing else.
    #[test]
    fn live_releases_and_deadlines_are_those_of_the_simulators_rule(case in case(Nanos::from_millis(3))) {
        let place = Place::new("releases");
        let graph = place.create(&case.spec).expect("the name is free");
        let start = graph.start(now().saturating_add(Nanos::from_millis(1)));
        let on_time = |node: &mut Node| {
            if case.spec.plan().nodes()[node.position()].is_source {
                node.set_releasing(Releasing::OnTime).expect("it has a recorder");
            }
        };
        let live = run(&case, &graph, on_time, |job| (job.release().expect("known"), job.deadline().expect("known")));
        let collector = Collector::new(&graph).expect("it has a recorder");
        let (origin, mut records) = (collector.origin(), Vec::new());
        prop_assert_eq!(collector.finish(&mut records).lost, 0);
        let recomputed = recomputed(&case, start, &records, origin);
        for (node, live) in live.iter().enumerate() {
            prop_assert_eq!(live, &recomputed[node][..live.len()], "node {}", node);
        }
    }
}

/// Period 10 ms. Job 0 of b is released by a's first completion, job 1 a period later although its token is there, and
/// a job whose token comes later than that when the token comes: its deadline shifts.
#[test]
fn tokens_that_come_late_shift_deadlines_and_early_ones_do_not() {
    let place = Place::new("shift");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [mut a, mut b] = ["a", "b"].map(|name| claim(&graph, name));
    let period = Nanos::from_millis(10);
    times(&mut a);
    times(&mut a);
    let completed = now();
    let first = times(&mut b);
    assert!(first.0 <= completed, "its token came before");
    assert_eq!(first.1, first.0 + period);
    assert_eq!(times(&mut b), (first.0 + period, first.1 + period), "released early, due as if it had not been");
    thread::sleep(std::time::Duration::from_millis(25));
    let before = now();
    times(&mut a);
    let late = times(&mut b);
    assert!(late.0 >= before && late.0 <= now() && late.1 == late.0 + period);
}

/// By up to ten jobs: more than the instants that a producer has at hand, and fewer than it remembers.
#[test]
fn a_consumer_that_is_behind_knows_when_its_tokens_came() {
    let place = Place::new("behind");
    let mut described = graph(&["a", "b"], vec![edge(0, 1)]);
    // So short that tokens come later than that.
    described.nodes[0].period = Some(Nanos::from_micros(1));
    let graph = place.create(&laxity_graph::Spec::new(described).expect("it can be")).expect("the name is free");
    let [mut a, mut b] = ["a", "b"].map(|name| claim(&graph, name));
    let sent: Vec<(Instant, Instant)> = (0..10)
        .map(|_| {
            thread::sleep(std::time::Duration::from_micros(100));
            let before = now();
            times(&mut a);
            (before, now())
        })
        .collect();
    for (before, after) in sent {
        let (release, _) = times(&mut b);
        assert!(before <= release && release <= after, "{before} <= {release} <= {after}");
    }
}

/// Four jobs are remembered, and the token of job 3 was sent before: then a period counts.
#[test]
fn what_a_consumer_forgot_makes_it_no_later() {
    let place = Place::new("too-far-behind");
    let small = spec(&["a", "b"], vec![edge(0, 1)]).with_recorder(4).expect("few");
    let graph = place.create(&small).expect("the name is free");
    let [mut a, mut b] = ["a", "b"].map(|name| claim(&graph, name));
    times(&mut a);
    let (first, _) = times(&mut b);
    thread::sleep(std::time::Duration::from_millis(15));
    for _ in 0..9 {
        times(&mut a);
    }
    assert_eq!(times(&mut b).0, first + Nanos::from_millis(10));
}

/// The replica of b's object is free again only when b is done, which delays a but not its release.
#[test]
fn feedback_tokens_delay_a_job_but_not_its_release() {
    let place = Place::new("feedback");
    let mut described = graph(&["a", "b"], vec![edge(0, 1)]);
    described.objects = vec![DataObject { name: "o".to_owned(), accessors: vec![0, 1], delay: 0 }];
    described.replicas = Replicas::Count(1);
    let graph = place.create(&laxity_graph::Spec::new(described).expect("it can be")).expect("the name is free");
    let start = graph.start(now());
    let [mut a, mut b] = ["a", "b"].map(|name| claim(&graph, name));
    times(&mut a);
    assert!(matches!(a.try_wait(), Err(WaitError::TimedOut { .. })));
    thread::sleep(std::time::Duration::from_millis(15));
    times(&mut b);
    assert_eq!(times(&mut a).0, start + Nanos::from_millis(10));
}

#[test]
fn a_job_on_time_waits_for_its_release_and_can_be_given_up_meanwhile() {
    let place = Place::new("on-time");
    let graph = place.create(&spec(&["a"], vec![])).expect("the name is free");
    let mut a = claim(&graph, "a");
    let start = graph.start(now());
    assert_eq!(graph.start(Instant(1)), start, "settled once");
    a.set_releasing(Releasing::OnTime).expect("it has a recorder");
    for index in 0..3 {
        let job = a.wait().expect("its time comes");
        assert_eq!(job.release(), Some(start + Nanos::from_millis(10 * index)));
        assert!(now() >= job.release().expect("just seen"));
        job.complete();
    }
    // A wait that has no time for that says so, and so does the wait of a node that is ended.
    let far = place.create(&named("far", Nanos::from_secs(1000))).expect("the name is free");
    let mut a = claim(&far, "a");
    a.set_releasing(Releasing::OnTime).expect("it has a recorder");
    a.wait().expect("the first").complete();
    assert_eq!(a.wait_for(Nanos(1)).err(), Some(WaitError::TimedOut { node: "a".to_owned(), in_flight: None }));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| a.wait().map(|_| ()));
        until_it_waits(&far, 0);
        far.terminate(0);
        assert_eq!(waiting.join().expect("no panic"), Err(WaitError::Terminated { node: "a".to_owned(), edge: None }));
    });
}

fn named(name: &str, period: Nanos) -> laxity_graph::Spec {
    let mut described = graph(&["a"], vec![]);
    described.name = name.to_owned();
    described.nodes[0].period = Some(period);
    laxity_graph::Spec::new(described).expect("it can be")
}

/// However long that takes: nothing else happens.
fn until_it_waits(graph: &Graph, node: usize) {
    while !graph.status(node).is_waiting {
        thread::yield_now();
    }
}

#[test]
fn the_flag_of_a_node_that_waits_is_set_until_its_tokens_come() {
    let place = Place::new("flag");
    let graph = place.create(&spec(&["a", "b"], vec![edge(0, 1)])).expect("the name is free");
    let [mut a, mut b] = ["a", "b"].map(|name| claim(&graph, name));
    assert!(!graph.status(1).is_waiting);
    assert!(graph.flags_offset(1).is_multiple_of(4) && graph.flags_offset(1) < graph.memory());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| b.wait().map(laxity_graph::Job::complete));
        until_it_waits(&graph, 1);
        times(&mut a);
        waiting.join().expect("no panic").expect("its token came");
    });
    assert!(!graph.status(1).is_waiting);
}

/// Writes down what it hears, and what the node's status was.
#[derive(Debug)]
struct Heard {
    graph: Graph,
    heard: Arc<Mutex<Vec<(&'static str, NodeStatus)>>>,
}

impl Heard {
    fn note(&self, what: &'static str) {
        self.heard.lock().expect("no panic").push((what, self.graph.status(0)));
    }
}

impl Hooks for Heard {
    fn begin(&mut self, release: Option<Instant>, deadline: Option<Instant>) {
        assert!(release < deadline);
        self.note("begin");
    }

    fn boost(&mut self) {
        self.note("boost");
    }

    fn restore(&mut self) {
        self.note("restore");
    }
}

/// What the job of `name` tells, all jobs before which are complete.
fn heard(graph: &Graph, name: &str) -> Vec<(&'static str, NodeStatus)> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut node = claim(graph, name);
    node.schedule_by(Heard { graph: graph.clone(), heard: heard.clone() }).expect("it takes anything");
    node.try_wait().expect("its tokens are there").complete();
    std::mem::take(&mut *heard.lock().expect("no panic"))
}

/// The flag is set while the tokens are not yet there, and cleared before the priority is lowered.
#[test]
fn a_producer_is_boosted_from_before_its_tokens_are_there_until_all_consumers_know() {
    let place = Place::new("boost");
    let graph = place.create(&spec(&["a", "b", "c"], vec![edge(0, 1), edge(0, 2)])).expect("the name is free");
    let seen: Vec<_> =
        heard(&graph, "a").into_iter().map(|(what, status)| (what, status.is_sending, status.completed)).collect();
    assert_eq!(seen, [("begin", false, 0), ("boost", true, 0), ("restore", false, 1)]);
}

#[test]
fn one_consumer_needs_no_boost_whatever_the_edges_and_feedback_does_not_count() {
    let place = Place::new("one");
    let mut described = graph(&["a", "b", "c"], vec![edge(0, 1), edge(0, 1), back(0, 0, 1), edge(1, 2)]);
    // b tells a that the object is free again.
    described.objects = vec![DataObject { name: "o".to_owned(), accessors: vec![0, 1], delay: 0 }];
    described.replicas = Replicas::Count(2);
    let graph = place.create(&laxity_graph::Spec::new(described).expect("it can be")).expect("the name is free");
    for name in ["a", "b"] {
        let seen: Vec<_> = heard(&graph, name).into_iter().map(|(what, _)| what).collect();
        assert_eq!(seen, ["begin"], "of {name}");
    }
}

/// ```text
/// a -> b -> d      depth 0, 1, 2
///  `-> c ---^
/// ```
#[test]
fn fifo_priorities_grow_down_the_graph_and_ceilings_are_those_of_consumers() {
    let edges = vec![edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3), edge(0, 3), back(3, 0, 4)];
    let spec = spec(&["a", "b", "c", "d"], edges);
    let of = |node| Fifo::of(&spec, node, 10).map(|fifo| (fifo.priority(), fifo.ceiling()));
    assert_eq!([0, 1, 2, 3].map(of), [Ok((10, 12)), Ok((11, 12)), Ok((11, 12)), Ok((12, 12))]);
    assert_eq!(Fifo::of(&spec, 0, 0), Err(FifoError { base: 0, deepest: 2 }));
    assert_eq!(Fifo::of(&spec, 0, 96), Err(FifoError { base: 96, deepest: 98 }));
    assert!(Fifo::of(&spec, 0, 95).is_ok());
}

/// What Linux says of the thread at each call.
#[derive(Debug)]
struct Observed {
    fifo: Fifo,
    seen: Arc<Mutex<Vec<Policy>>>,
}

impl Observed {
    fn look(&self) {
        self.seen.lock().expect("no panic").push(scheduling::policy().expect("one may ask"));
    }
}

impl Hooks for Observed {
    fn enter(&mut self) -> io::Result<()> {
        self.fifo.enter()
    }

    fn begin(&mut self, _: Option<Instant>, _: Option<Instant>) {
        self.look();
    }

    fn boost(&mut self) {
        self.fifo.boost();
        self.look();
    }

    fn restore(&mut self) {
        self.fifo.restore();
        self.look();
    }
}

/// Where this user may not have priorities, being refused plainly is what there is to see.
#[test]
fn a_fifo_producer_has_the_priority_of_its_consumers_while_it_tells_them() {
    let place = Place::new("fifo");
    let spec = spec(&["a", "b", "c"], vec![edge(0, 1), edge(0, 2)]);
    let graph = place.create(&spec).expect("the name is free");
    let fifo = Fifo::of(&spec, 0, 10).expect("it fits");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let before = scheduling::policy().expect("one may ask");
    let mut a = claim(&graph, "a");
    match a.schedule_by(Observed { fifo, seen: seen.clone() }) {
        Ok(()) => {
            a.wait().expect("a source").complete();
            let seen = seen.lock().expect("no panic");
            assert_eq!(*seen, [10, 11, 10].map(|priority| Policy::Fifo { priority }));
        }
        Err(HookError { node, error, .. }) => {
            assert_eq!((node.as_str(), error.kind()), ("a", io::ErrorKind::PermissionDenied));
            assert_eq!(scheduling::policy().expect("one may ask"), before);
        }
    }
}

#[test]
fn a_deadline_thread_has_its_nodes_period_or_is_told_why_not() {
    let place = Place::new("deadline");
    let spec = spec(&["a"], vec![]);
    let graph = place.create(&spec).expect("the name is free");
    let mut a = claim(&graph, "a");
    // More than its period can never be.
    let refused = a.schedule_by(Deadline::of(&spec, 0, Nanos::from_millis(11))).expect_err("too much");
    assert_eq!(refused.node, "a");
    assert!(refused.to_string().contains("SCHED_DEADLINE with 11 ms in each period of "), "{refused}");
    let runtime = Nanos::from_micros(100);
    match a.schedule_by(Deadline::of(&spec, 0, runtime)) {
        Ok(()) => assert_eq!(scheduling::policy().expect("one may ask"), Policy::Deadline { runtime, reclaims: true }),
        Err(refused) => assert_eq!(refused.error.kind(), io::ErrorKind::PermissionDenied),
    }
}
