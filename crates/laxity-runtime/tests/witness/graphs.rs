//! Graphs: the same firings simulated and live.

use laxity_graph::Spec;
use laxity_model::{Instant, JobId, Nanos, TaskId};
use laxity_runtime::{GraphOptions, LivePlan, Next, NodeOptions};
use laxity_testing::{Alone, skip};
use laxity_trace::check::PolicyCheck;
use laxity_trace::{Event, Record, Sink};

use crate::harness::{SEED, completions, live, ms, releases, same_live, simulated, start, workload};

/// camera forks into two that are joined; track needs every other of sense's, and a plain task runs beside.
const VISION: &str = r#"
[platform]
cpus = 1
[[task]]
name = "control"
period = "200 ms"
wcet = "1 ms"
[[graph]]
name = "NAME"
edge = ["camera -> left", "camera -> right", "left -> join", "right -> join", { from = "join", to = "log", consume = 2 }]
replicas = REPLICAS
[[graph.node]]
name = "camera"
period = "200 ms"
wcet = "1 ms"
[[graph.node]]
name = "left"
body = [{ cpu = "1 us" }, { suspend = "60 ms" }, { cpu = "1 us" }]
[[graph.node]]
name = "right"
body = [{ cpu = "1 us" }, { suspend = "120 ms" }, { cpu = "1 us" }]
[[graph.node]]
name = "join"
wcet = "1 ms"
[[graph.node]]
name = "log"
wcet = "1 ms"
"#;

/// The nodes' jobs in the order of their completions. Two that are released by one token may begin in any order.
fn completed(records: &[Record]) -> Vec<JobId> {
    let completed = |record: &Record| match record.event {
        Event::Complete { job, .. } if job.task != TaskId(0) => Some(job),
        _ => None,
    };
    records.iter().filter_map(completed).collect()
}

/// What happened to tokens.
fn moved(records: &[Record]) -> Vec<Event> {
    let moves = |record: &Record| {
        let is_token = matches!(record.event, Event::Produce { .. } | Event::Consume { .. });
        is_token.then_some(record.event)
    };
    records.iter().filter_map(moves).collect()
}

#[test]
fn a_graph_that_forks_and_joins_fires_in_the_simulated_order_beside_a_task() {
    // Rates are not to be pipelined: no replicas.
    let name = format!("fork-{}", std::process::id());
    let text = VISION.replace("NAME", &name).replace("replicas = REPLICAS\n", "");
    let workload = workload(&text);
    let simulation = simulated(&workload, ms(750));
    let Some(records) = same_live(&workload, ms(750), ms(25), |records| (completed(records), moved(records))) else {
        return;
    };
    assert_eq!(completions(&records).len(), completions(&simulation).len());
    let sources = |records: &[Record]| -> Vec<(JobId, Instant, Instant)> {
        releases(records).into_iter().filter(|(job, ..)| job.task.0 <= 1).collect()
    };
    assert_eq!(
        sources(&records),
        sources(&simulation)[..sources(&records).len()],
        "time releases them to the nanosecond"
    );
}

/// With one replica of what all touch, a frame waits until the one before it is through.
#[test]
fn a_frame_waits_for_a_replica() {
    let name = format!("replicas-{}", std::process::id());
    let object = r#"object = [{ name = "frame", nodes = ["camera", "left", "right", "join", "log"] }]"#;
    let text = VISION
        .replace("NAME", &name)
        .replace("REPLICAS", &format!("1\n{object}"))
        .replace(r#""right -> join", { from = "join", to = "log", consume = 2 }"#, r#""right -> join", "join -> log""#);
    let longer = text.replace(r#"name = "right""#, "name = \"right\"\ndeadline = \"1 s\"");
    let workload = workload(&longer.replace(r#"suspend = "120 ms""#, r#"suspend = "260 ms""#));
    let records = live(&workload, ms(500));
    let at = |wanted: &dyn Fn(Event) -> bool| records.iter().find(|record| wanted(record.event)).expect("it did").at;
    let (camera, right) = (TaskId(1), TaskId(3));
    let begun = at(&|event| matches!(event, Event::Ready { job, .. } if job == JobId { task: camera, index: 1 }));
    let done = at(&|event| matches!(event, Event::Complete { job, .. } if job == JobId { task: right, index: 0 }));
    assert!(begun >= done, "at {begun} the second frame came, and the first was there until {done}");
    assert_eq!(completions(&records).len(), 3 + 5 * 3);
}

/// The rule of releases: no two jobs of a node are due closer than its period.
#[test]
fn deadlines_of_nodes_are_a_period_apart_however_their_tokens_come() {
    let name = format!("bursts-{}", std::process::id());
    let workload = workload(&format!(
        r#"
[platform]
cpus = 1
[[graph]]
name = "{name}"
edge = [{{ from = "burst", to = "steady", produce = 4 }}]
[[graph.node]]
name = "burst"
period = "80 ms"
wcet = "1 ms"
[[graph.node]]
name = "steady"
wcet = "1 ms"
"#
    ));
    let records = live(&workload, ms(240));
    let due: Vec<Instant> =
        releases(&records).into_iter().filter(|(job, ..)| job.task == TaskId(1)).map(|(_, _, due)| due).collect();
    assert_eq!(due.len(), 12);
    assert!(due.windows(2).all(|pair| pair[1].saturating_since(pair[0]) >= Nanos::from_millis(20)), "{due:?}");
}

/// A chain whose second node is due beyond its period: no class of Linux has that.
#[test]
fn a_graph_by_itself_is_scheduled_by_laxity_as_its_policy_says() {
    let name = format!("ours-{}", std::process::id());
    let workload = workload(&format!(
        r#"
[platform]
cpus = 1
[[graph]]
name = "{name}"
edge = ["camera -> show"]
[[graph.node]]
name = "camera"
period = "20 ms"
wcet = "2 ms"
[[graph.node]]
name = "show"
deadline = "30 ms"
wcet = "2 ms"
"#
    ));
    let _alone = Alone::with_the_scheduler();
    let options = GraphOptions {
        graph: workload.graphs[0].clone(),
        spec: Spec::new(workload.graphs[0].clone()).expect("it can be"),
        nodes: vec![NodeOptions::default(); 2],
        first_task: 0,
        seed: SEED,
        duration: ms(200),
        jobs: 6,
        on_time: false,
        laxity: Some(workload.scheduler),
        in_kernel: false,
    };
    let plan = match LivePlan::of_graph(&workload, &options) {
        Ok(plan) => plan,
        Err(refusal) if refusal.to_string().contains("is not permitted") => return skip(refusal),
        Err(refusal) => panic!("{refusal}"),
    };
    assert!(plan.header().is_linked);
    let mut records = Vec::new();
    let ended = start(&plan).expect("threads").carry_on(&mut records, |_, _, _| Next::GoOn);
    assert!(ended.failed.is_ok() && ended.outcome.is_whole, "{ended:?}");
    assert_eq!(completions(&records).len(), 12, "six of each node");
    let mut check = PolicyCheck::new(plan.header());
    records.iter().for_each(|record| check.record(record.at, record.event));
    let report = check.finish();
    assert!(report.is_clean(), "{:?}", report.violations);
}
