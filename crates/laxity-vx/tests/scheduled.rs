//! Vision graphs that Laxity's own scheduler schedules.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex};

use laxity_device::{Device, DeviceOptions, Management, Scheduling};
use laxity_model::{EngineOrder, GpuSync, Instant, JobId, LockId, Nanos, TaskId};
use laxity_sched::{BeginError, Config, LockConfig, Parameters, Registry, Rule, System};
use laxity_sys::scheduling;
use laxity_testing::{Alone, skip};
use laxity_trace::check::{LegalityCheck, PolicyCheck};
use laxity_trace::codec::TraceReader;
use laxity_trace::{Event, Record, Sink, TraceHeader};
use laxity_vx::{Action, Bytes, Context, Parameter, Policy, SpawnError, SpawnOptions, Status, Value, Verified};
use support::{Place, frames, server};

const BYTES: usize = 2048;

/// A system alone on the CPUs; nothing, which is said, if this user may not have real-time threads.
fn system(place: &Place, config: Config) -> Option<(Alone, System)> {
    let alone = Alone::with_the_scheduler();
    let system = Registry::at(place.path()).create("s", &config).expect("a new name");
    match system.begin(Parameters::periodic("permission", Nanos::from_secs(1))) {
        Ok(task) => drop(task),
        Err(error @ BeginError::Refused { .. }) => {
            skip(error);
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some((alone, system))
}

fn cpus() -> Vec<u16> {
    scheduling::usable_cpus().expect("Linux says").into_iter().map(|cpu| cpu as u16).collect()
}

/// What a frame is made of, in a graph or in a loop.
fn shade(frame: u64) -> u8 {
    (frame * 7 + 3) as u8
}

/// What becomes of a frame, the one before it, and what the last result was: the back-edge.
fn mix(now: &[u8], before: &[u8], last: u64) -> u64 {
    let sum = now
        .iter()
        .zip(before)
        .fold(last, |sum, (&now, &before)| sum.wrapping_mul(31).wrapping_add(u64::from(now) << 8 | u64::from(before)));
    sum ^ sum >> 17
}

/// The results of a plain loop.
fn of_a_loop(frames: u64) -> Vec<u64> {
    let image = |frame: u64| vec![shade(frame); BYTES];
    let mut results: Vec<u64> = Vec::new();
    for frame in 0..frames {
        let before = frame.checked_sub(1).map_or(vec![0; BYTES], image);
        results.push(mix(&image(frame), &before, results.last().copied().unwrap_or(0)));
    }
    results
}

type Results = Arc<Mutex<Vec<u64>>>;

/// How many nodes only take time, and how long each, in turns of a loop: together they keep two CPUs busy, so that jobs of
/// several frames are ready at once and the policy has to choose.
const BUSY: [&str; 4] = ["busy 0", "busy 1", "busy 2", "busy 3"];
const TURNS: u64 = 800_000;

/// input -> copy -> mix, which reads its own last result and the last frame, -> output; and beside them busy nodes. It ends
/// by itself after so many frames.
fn mixing(context: &Context, name: &str, results: &Results, end: u64) -> Verified {
    let mut graph = context.graph(name);
    let raw = graph.object("raw", Bytes(BYTES));
    let image = graph.delay("image", Bytes(BYTES), 2);
    let mixed = graph.delay("mixed", Value::<u64>::new(), 2);
    graph.input([Parameter::output(raw)], move |job| {
        if job.index() == end {
            return Ok(Action::End);
        }
        let shade = shade(job.index());
        job.write(raw)?.fill(shade);
        Ok(Action::Continue)
    });
    graph.node("copy", [Parameter::input(raw), Parameter::output(image)], move |job| {
        let (inputs, mut outputs) = job.objects();
        outputs.write(image)?.copy_from_slice(inputs.read(raw)?);
        Ok(())
    });
    for name in BUSY {
        graph.node(name, [Parameter::input(raw)], move |job| {
            let first = u64::from(job.read(raw)?[0]);
            std::hint::black_box((0..TURNS).fold(first, |sum, turn| sum.wrapping_mul(31) ^ std::hint::black_box(turn)));
            Ok(())
        });
    }
    let parameters = [
        Parameter::input(image),
        Parameter::input(image.ago(1)),
        Parameter::input(mixed.ago(1)),
        Parameter::output(mixed),
    ];
    graph.node("mix", parameters, move |job| {
        let (inputs, mut outputs) = job.objects();
        let last = *inputs.read(mixed.ago(1))?;
        *outputs.write(mixed)? = mix(inputs.read(image)?, inputs.read(image.ago(1))?, last);
        Ok(())
    });
    let results = results.clone();
    graph.output([Parameter::input(mixed)], move |job| {
        results.lock().expect("no panic").push(*job.read(mixed)?);
        Ok(())
    });
    graph.verify().expect("it can be")
}

fn read(path: &Path) -> (TraceHeader, Vec<Record>) {
    let reader = TraceReader::new(BufReader::new(File::open(path).expect("the trace"))).expect("a trace");
    (reader.header().clone(), reader.map(|record| record.expect("whole")).collect())
}

/// Whether all is as it was: no task is left, and this thread is none.
fn assert_nothing_is_left(system: &System, place: &Place) {
    assert!(system.snapshot().expect("whole").tasks.is_empty(), "tasks end with their graph");
    let policy = scheduling::policy().expect("it may ask");
    assert!(matches!(policy, scheduling::Policy::Another { .. }), "SCHED_OTHER, as before: {policy:?}");
    let names = std::fs::read_dir(place.path()).expect("it exists").map(|entry| entry.expect("one").file_name());
    let left: Vec<String> =
        names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.contains("mix")).collect();
    assert_eq!(left, Vec::<String>::new());
}

fn assert_is_its_policys(header: &TraceHeader, records: &[Record]) {
    let (mut legal, mut policy) = (LegalityCheck::new(header), PolicyCheck::new(header));
    for record in records {
        legal.record(record.at, record.event);
        policy.record(record.at, record.event);
    }
    let (legal, policy) = (legal.finish(), policy.finish());
    assert!(legal.is_clean(), "{}: {:?}", header.scheduler, legal.violations);
    assert!(policy.is_clean(), "{}: {:?}", header.scheduler, policy.violations);
}

/// Under EDF on all CPUs, and on one, where the order of nodes is the policy's alone.
#[test]
fn a_graph_under_laxitys_scheduler_computes_what_a_loop_does_and_its_trace_is_its_policys() {
    let own = cpus();
    if own.len() < 2 {
        return skip("a trace shows clusters of all CPUs, and there is one");
    }
    let place = Place::new("scheduled");
    for rule in [Rule::Edf, Rule::DeadlineMonotonic] {
        let Some((_alone, system)) = system(&place, Config::new(rule, vec![own.clone()])) else { return };
        let results = Results::default();
        let graph = mixing(&place.context(), "mixing", &results, u64::MAX);
        let path = place.path().join("trace.lxt");
        let options = SpawnOptions {
            period: Nanos::from_millis(2),
            policy: Policy::Laxity { cluster: 0 },
            system: Some(system.clone()),
            trace: Some(path.clone()),
            ..frames(60)
        };
        let times = graph.spawn(&options).unwrap_or_else(|error| panic!("{error}")).wait();
        let times = times.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(times.completed, 60);
        assert_eq!(*results.lock().expect("no panic"), of_a_loop(60));
        drop(graph);
        let (header, records) = read(&path);
        assert!(header.is_linked && header.tasks.len() == 4 + BUSY.len());
        assert_is_its_policys(&header, &records);
        let mut completed: BTreeMap<TaskId, u64> = BTreeMap::new();
        let mut links = 0_u64;
        for record in &records {
            match record.event {
                Event::Complete { job, .. } => *completed.entry(job.task).or_default() += 1,
                Event::Link { job: Some(_), .. } => links += 1,
                _ => {}
            }
        }
        assert_eq!(completed.values().copied().collect::<Vec<_>>(), [60; 4 + BUSY.len()]);
        assert!(links >= 60 * (4 + BUSY.len() as u64), "every job was linked: {links}");
        assert_nothing_is_left(&system, &place);
    }
}

/// The graph's input finds that there is no frame while busy nodes of earlier ones, which are more urgent, have all CPUs: a
/// trace without word of that has a job which is released for ever, and no policy leaves a CPU idle beside it.
#[test]
fn the_trace_of_a_graph_that_ends_by_itself_is_its_policys() {
    const FRAMES: u64 = 12;
    let own = cpus();
    if own.len() < 2 {
        return skip("a trace shows clusters of all CPUs, and there is one");
    }
    let place = Place::new("scheduled-ends");
    let Some((_alone, system)) = system(&place, Config::new(Rule::Edf, vec![own])) else { return };
    let results = Results::default();
    let graph = mixing(&place.context(), "mixing", &results, FRAMES);
    let path = place.path().join("trace.lxt");
    let options = SpawnOptions {
        period: Nanos::from_micros(500),
        policy: Policy::Laxity { cluster: 0 },
        system: Some(system.clone()),
        trace: Some(path.clone()),
        frames: None,
        ..frames(1)
    };
    let times = graph.spawn(&options).unwrap_or_else(|error| panic!("{error}")).wait();
    assert_eq!(times.unwrap_or_else(|failure| panic!("{failure}")).completed, FRAMES);
    drop(graph);
    let (header, records) = read(&path);
    assert_is_its_policys(&header, &records);
    let completed = |record: &&Record| matches!(record.event, Event::Complete { job, .. } if job.task == TaskId(0));
    assert_eq!(records.iter().filter(completed).count() as u64, FRAMES + 1, "the last found no frame");
    assert_nothing_is_left(&system, &place);
}

/// GPUs with one token each, so that nodes of consecutive frames wait for them: what they compute does not depend on it. The trace
/// has links, grants, engines and interrupts, and all of that is the policy's.
#[test]
fn nodes_get_tokens_and_engines_of_their_system_and_give_all_of_them_back() {
    const FRAMES: u64 = 40;
    let place = Place::new("scheduled-gpu");
    let sync = GpuSync { tokens: 1, fifo_length: Some(6), fifo_requests: Some(6), ..GpuSync::DEFAULT };
    for (order, gpus) in [(Some(EngineOrder::Fifo), 1), (Some(EngineOrder::Priority), 2), (None, 1)] {
        let engines = order.map(|order| vec![LockConfig::engine(order); usize::from(3 * gpus)]);
        let tokens = order.map(|_| LockConfig::tokens(&sync, gpus, 6));
        let locks: Vec<LockConfig> = tokens.into_iter().chain(engines.into_iter().flatten()).collect();
        let config = Config { locks, ..Config::global_edf(cpus()) };
        let Some((_alone, system)) = system(&place, config) else { return };
        let management = order.map(|_| Management { tokens: LockId(0), chunk: Some(512) });
        let mut options = DeviceOptions::new(&format!("vx-{}-scheduled", std::process::id()));
        options.gpus = gpus;
        options.gpu.memory = 1 << 20;
        options.gpu.linger = Nanos::from_millis(50);
        options.server = Some(server());
        options.scheduling = Some(Scheduling { system: system.clone(), cluster: 0, management });
        let device = Device::open(&options).unwrap_or_else(|error| panic!("{error}"));
        let graph = inverting(&place.context(), &device);
        let path = place.path().join("trace.lxt");
        let spawned = SpawnOptions {
            period: Nanos::from_millis(1),
            policy: Policy::Laxity { cluster: 0 },
            system: Some(system.clone()),
            gpu: Some(device.clone()),
            trace: (cpus().len() > 1).then(|| path.clone()),
            ..frames(FRAMES)
        };
        let times = graph.spawn(&spawned).unwrap_or_else(|error| panic!("{error}")).wait();
        assert_eq!(times.unwrap_or_else(|failure| panic!("{failure}")).completed, FRAMES);
        let tasks = system.snapshot().expect("whole").tasks;
        assert_eq!(tasks.len(), usize::from(gpus), "the threads that handle interrupts: {tasks:?}");
        let operations = FRAMES * 2 * if management.is_some() { 4 + 1 + 4 } else { 3 };
        let handled: u64 = tasks.iter().map(|task| task.completed).sum();
        assert_eq!(handled, operations, "each operation's interrupt is a job of one of them");
        drop((graph, device, spawned, options));
        assert_nothing_is_left(&system, &place);
        if cpus().len() > 1 {
            let of_tokens = if management.is_some() { FRAMES * 2 } else { 0 };
            assert_shows_gpus(&read(&path), gpus, operations, of_tokens);
        }
    }
}

/// Each operation had its engine, if that is locked at all, and its interrupt was handled for the job that waited.
fn assert_shows_gpus((header, records): &(TraceHeader, Vec<Record>), gpus: u16, operations: u64, of_tokens: u64) {
    // With the input and output that every graph has.
    const NODES: usize = 6;
    assert_is_its_policys(header, records);
    assert_eq!((header.gpus.len(), header.tasks.len()), (usize::from(gpus), NODES + usize::from(gpus)));
    let count = |wanted: fn(&Event) -> bool| records.iter().filter(|record| wanted(&record.event)).count() as u64;
    let grants = if of_tokens == 0 { 0 } else { of_tokens + operations };
    assert_eq!(count(|event| matches!(event, Event::Grant { .. })), grants);
    assert_eq!(count(|event| matches!(event, Event::Unlock { .. })), grants);
    assert_eq!(count(|event| matches!(event, Event::EngineEnd { .. })), operations);
    let is_for_a_node =
        |event: &Event| matches!(event, Event::Serve { job: Some(job), .. } if job.task.index() < NODES);
    assert_eq!(count(is_for_a_node), operations);
    let linked = records.iter().filter_map(|record| match record.event {
        Event::Link { job: Some(job), .. } if job.task.index() >= NODES => Some(job),
        _ => None,
    });
    let linked: BTreeSet<JobId> = linked.collect();
    assert_eq!(linked.len() as u64, operations, "a thread that handles an interrupt is linked for it");
}

/// Where the system schedules a task that is none of the graph's, the run says that its trace lacks that.
#[test]
fn a_trace_tells_of_no_task_but_the_nodes() {
    let own = cpus();
    if own.len() < 2 {
        return skip("a trace shows clusters of all CPUs, and there is one");
    }
    let place = Place::new("scheduled-stranger");
    let Some((_alone, system)) = system(&place, Config::new(Rule::Edf, vec![own])) else { return };
    let graph = mixing(&place.context(), "mixing", &Results::default(), u64::MAX);
    let options = SpawnOptions {
        period: Nanos::from_millis(2),
        policy: Policy::Laxity { cluster: 0 },
        system: Some(system.clone()),
        trace: Some(place.path().join("trace.lxt")),
        // Until the stranger is there, however long that takes beside other load.
        frames: None,
        ..frames(60)
    };
    let mut run = graph.spawn(&options).unwrap_or_else(|error| panic!("{error}"));
    run.wait_for_frames(5, Instant::NEVER);
    let stranger = system.begin(Parameters::periodic("stranger", Nanos::from_millis(1))).expect("there is room");
    stranger.wait_for_next_job().expect("its job");
    run.stop();
    let failure = run.wait().map(drop).expect_err("the trace lacks the stranger");
    drop(stranger);
    let expected = "trace.lxt: task stranger of system s is none of the graph's, so that the trace lacks what it does; give \
                    the graph a system of its own";
    assert!(failure.to_string().ends_with(expected), "{failure}");
    drop((run, graph));
    assert_nothing_is_left(&system, &place);
}

/// What a GPU kernel makes of a byte.
type Change = fn(u8) -> u8;

/// fill -> two nodes that invert and add on the GPU -> a check.
fn inverting(context: &Context, device: &Device) -> Verified {
    let mut graph = context.graph("mixing");
    let [raw, inverted, added] = ["raw", "inverted", "added"].map(|name| graph.object(name, Bytes(BYTES)));
    graph.node("fill", [Parameter::output(raw)], move |job| {
        let shade = shade(job.index());
        job.write(raw)?.fill(shade);
        Ok(())
    });
    let invert: Change = |byte| !byte;
    let add: Change = |byte| byte.wrapping_add(1);
    let is_managed = device.scheduling().is_some_and(|scheduling| scheduling.management.is_some());
    let last = device.gpus().len() as u16 - 1;
    let nodes = [("invert", raw, inverted, invert, 0), ("add", inverted, added, add, last)];
    for (name, from, to, change, on) in nodes {
        let buffer = device.alloc_on(on, BYTES).expect("memory");
        graph.node(name, [Parameter::input(from), Parameter::output(to)], move |job| {
            let (inputs, mut outputs, gpu) = job.objects_and_gpu()?;
            gpu.use_gpu(Some(on))?;
            gpu.copy_in(&buffer, 0, inputs.read(from)?)?;
            let of_kernel = buffer.clone();
            gpu.launch_for(Nanos::from_micros(50), move |view| {
                view.write(&of_kernel, 0..BYTES)?.iter_mut().for_each(|byte| *byte = change(*byte));
                Ok(())
            })?;
            assert_eq!(gpu.holds_token(), is_managed, "from the first operation on");
            gpu.copy_out(&buffer, 0, outputs.write(to)?)?;
            if name == "invert" {
                gpu.release();
                assert!(!gpu.holds_token());
            }
            Ok(())
        });
    }
    graph.node("check", [Parameter::input(added)], move |job| {
        let expected = (!shade(job.index())).wrapping_add(1);
        let wrong = job.read(added)?.iter().filter(|&&byte| byte != expected).count();
        if wrong == 0 { Ok(()) } else { Err(format!("{wrong} bytes are not {expected}").into()) }
    });
    graph.verify().expect("it can be")
}

/// A kernel that fails while its job is linked and holds a token leaves neither.
#[test]
fn a_node_that_fails_in_its_job_leaves_no_task() {
    let place = Place::new("scheduled-fails");
    let Some((_alone, system)) = system(&place, Config::global_edf(cpus())) else { return };
    let mut graph = place.context().graph("mixing");
    graph.node("fails", [], |job| if job.index() == 3 { Err("no more".into()) } else { Ok(()) });
    let graph = graph.verify().expect("it can be");
    let options = SpawnOptions { policy: Policy::Laxity { cluster: 0 }, system: Some(system.clone()), ..frames(20) };
    let failure = graph.spawn(&options).unwrap_or_else(|error| panic!("{error}")).wait().expect_err("it fails");
    assert_eq!(failure.to_string(), "graph mixing: node fails, frame 3: no more");
    drop(graph);
    assert_nothing_is_left(&system, &place);
}

#[test]
fn what_does_not_go_together_is_refused_with_the_way_out() {
    let place = Place::new("scheduled-refused");
    let mut graph = place.context().graph("mixing");
    graph.node("n", [], |_| Ok(()));
    let graph = graph.verify().expect("it can be");
    let text = |options: &SpawnOptions| {
        let error = graph.spawn(options).expect_err("it cannot be");
        (error.status(), error.to_string())
    };
    let ours = SpawnOptions { policy: Policy::Laxity { cluster: 0 }, ..frames(1) };
    let (status, said) = text(&ours);
    assert_eq!(status, Status::InvalidValue);
    assert_eq!(said, "Laxity's scheduler has no system; name the system whose tasks the nodes are");
    let Some((_alone, system)) = system(&place, Config::new(Rule::Edf, vec![vec![cpus()[0]]])) else { return };
    let ours = SpawnOptions { system: Some(system.clone()), ..ours };
    assert!(text(&SpawnOptions { recorder: 0, ..ours.clone() }).1.contains("recorder is 0"));
    assert!(text(&SpawnOptions { cpus: vec![0], ..ours.clone() }).1.contains("the system's clusters say"));
    assert!(
        text(&SpawnOptions { policy: Policy::Other, ..ours.clone() }).1.contains("is not to schedule; leave it out")
    );
    let elsewhere = SpawnOptions { policy: Policy::Laxity { cluster: 3 }, ..ours.clone() };
    assert!(matches!(graph.spawn(&elsewhere), Err(SpawnError::Task { .. })));
    assert!(text(&elsewhere).1.contains("cluster 3 is not one of the system's 1"), "{}", text(&elsewhere).1);
    if cpus().len() > 1 {
        let traced = SpawnOptions { trace: Some(place.path().join("t.lxt")), ..ours };
        assert!(text(&traced).1.contains("other clusters than one of all CPUs"), "{}", text(&traced).1);
    }
    assert!(system.snapshot().expect("whole").tasks.is_empty());
}
