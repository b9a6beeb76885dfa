//! Live graphs against what Linux offers, a raw futex and an eventfd, and against iceoryx2 (with the feature of that
//! name).
//!
//! All are measured in turn in every round, and ratios are taken within a round, so that a machine that is busy at
//! times slows them all. Threads are kept on their CPUs, under `SCHED_FIFO` where this user may. Graphs have no
//! recorder but where it is said: `tracing_ratio` is with it against without.

use std::error::Error;
use std::sync::atomic::AtomicU32;
use std::thread;

use clap::Parser;
use laxity_graph::{Channel, Graph, Node, RECORDER_DEFAULT, Registry, Spec};
use laxity_model::{self as model, Edge, Instant, Nanos};
use laxity_sys::clock::now;
use laxity_sys::event::Event;
use laxity_sys::scheduling;
use laxity_sys::segment::{Format, HEADER, Segment};
use turns::{CROSS, Called, Cpus, Futex, PRIORITY, SAME, Side, median, settle, trip, turns};

#[cfg(feature = "iceoryx2")]
mod iceoryx;
#[cfg(not(feature = "iceoryx2"))]
#[path = "no_iceoryx.rs"]
mod iceoryx;
mod turns;

/// Measures round trips between two threads, and how many tokens and messages pass in a second.
#[derive(Parser)]
struct Arguments {
    /// Rounds.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Round trips of each kind in a round.
    #[arg(long, default_value_t = 1000)]
    trips: usize,
    /// Tokens, and messages, in a round.
    #[arg(long, default_value_t = 1_000_000)]
    tokens: u64,
}

const FORMAT: Format = Format { magic: *b"laxbench", version: 1 };

/// More than a wake-up takes across CPUs, so that a spinning thread never parks while the other answers.
const SPIN: Nanos = Nanos::from_micros(200);

/// One round, in microseconds and per second.
struct Round {
    /// In memory of this process.
    futex: [f64; 2],
    /// The same, the system calls being in the loop itself; see [`Called`].
    in_loop: [f64; 2],
    /// In memory with a name, as that of graphs, where Linux takes longer to find out which word is meant.
    shared: [f64; 2],
    eventfd: [f64; 2],
    graph: [f64; 2],
    /// The same with the recorder on, as it is unless turned off.
    traced: [f64; 2],
    /// Of iceoryx2, if it is there.
    event: Option<[f64; 2]>,
    publish: Option<f64>,
    spin: f64,
    spin_traced: f64,
    small: f64,
    large: f64,
    tokens: f64,
    messages: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let may = thread::spawn(|| scheduling::set_fifo(PRIORITY)).join().expect("no panic");
    println!("scheduling: {}", if may.is_ok() { "SCHED_FIFO" } else { "SCHED_OTHER, as this user may not use FIFO" });
    if thread::available_parallelism()?.get() < 2 {
        return Err("needs two CPUs to measure across them".into());
    }
    let registry = Registry::default();
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        rounds.push(round(&registry, &arguments)?);
    }
    report(&rounds);
    Ok(())
}

fn round(registry: &Registry, arguments: &Arguments) -> Result<Round, Box<dyn Error>> {
    let trips = arguments.trips;
    let counter = spec(Channel::Counter, true)?;
    let ring = |message| spec(Channel::Ring { message, capacity: 2 }, true);
    let many = spec(Channel::Ring { message: 64, capacity: 1024 }, false)?;
    let traced = counter.clone().with_recorder(RECORDER_DEFAULT)?;
    let park = Nanos::ZERO;
    let own = [AtomicU32::new(0), AtomicU32::new(0)];
    let memory = Segment::draft(&registry.directory().join("words"), FORMAT, 4096)?;
    let shared = [memory.u32(HEADER), memory.u32(HEADER + 1024)];
    Ok(Round {
        futex: [SAME, CROSS].map(|cpus| turns(cpus, trips, |side| Called(Futex::new([&own[0], &own[1]], side)))),
        in_loop: [SAME, CROSS].map(|cpus| turns(cpus, trips, |side| Futex::new([&own[0], &own[1]], side))),
        shared: [SAME, CROSS].map(|cpus| turns(cpus, trips, |side| Called(Futex::new(shared, side)))),
        graph: [
            graph_trip(registry, &counter, SAME, park, trips)?,
            graph_trip(registry, &counter, CROSS, park, trips)?,
        ],
        traced: [graph_trip(registry, &traced, SAME, park, trips)?, graph_trip(registry, &traced, CROSS, park, trips)?],
        eventfd: [eventfd_trip(SAME, trips)?, eventfd_trip(CROSS, trips)?],
        event: iceoryx::event_trips(&[SAME, CROSS], trips)?,
        publish: iceoryx::publish_trip(CROSS, trips * 10)?,
        spin: graph_trip(registry, &counter, CROSS, SPIN, trips * 10)?,
        spin_traced: graph_trip(registry, &traced, CROSS, SPIN, trips * 10)?,
        small: graph_trip(registry, &ring(64)?, CROSS, SPIN, trips * 10)?,
        large: graph_trip(registry, &ring(1 << 20)?, CROSS, SPIN, trips * 10)?,
        tokens: throughput(registry, &spec(Channel::Counter, false)?, arguments.tokens)?,
        messages: throughput(registry, &many, arguments.tokens)?,
    })
}

fn report(rounds: &[Round]) {
    let of = |value: &dyn Fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    println!("round trips, median us        same core   other core");
    let row = |name: &str, value: &dyn Fn(&Round) -> [f64; 2]| {
        println!("{name:<28} {:>10.2} {:>12.2}", of(&|round| value(round)[0]), of(&|round| value(round)[1]));
    };
    row("raw futex", &|round| round.futex);
    row("raw futex, within the loop", &|round| round.in_loop);
    row("raw futex, shared memory", &|round| round.shared);
    row("eventfd", &|round| round.eventfd);
    row("graph, parking", &|round| round.graph);
    row("graph, parking, recorder on", &|round| round.traced);
    let is_event = rounds.iter().all(|round| round.event.is_some());
    if is_event {
        row("iceoryx2 0.10, event", &|round| round.event.unwrap_or_default());
    }
    if rounds.iter().all(|round| round.publish.is_some()) {
        let polling = of(&|round| round.publish.unwrap_or_default());
        println!("{:<28} {:>10} {polling:>12.2}", "iceoryx2 0.10, polling", "-");
    }
    println!("{:<28} {:>10} {:>12.2}", "graph, spinning", "-", of(&|round| round.spin));
    println!("{:<28} {:>10} {:>12.2}", "graph, spinning, recorder on", "-", of(&|round| round.spin_traced));
    println!("{:<28} {:>10} {:>12.2}", "64 B message, spinning", "-", of(&|round| round.small));
    println!("{:<28} {:>10} {:>12.2}", "1 MiB message, spinning", "-", of(&|round| round.large));
    print!(
        "graph same_core_ratio={:.2} cross_core_ratio={:.2} spin_us={:.2} counter_tokens_per_s={:.0} \
         ring64_per_s={:.0} zero_copy_1MiB_ratio={:.2} tracing_ratio={:.3} cross_core_tracing_ratio={:.3} \
         spin_traced_us={:.2}",
        of(&|round| round.graph[0] / round.futex[0]),
        of(&|round| round.graph[1] / round.futex[1]),
        of(&|round| round.spin),
        of(&|round| round.tokens),
        of(&|round| round.messages),
        of(&|round| round.large / round.small),
        of(&|round| round.traced[0] / round.graph[0]),
        of(&|round| round.traced[1] / round.graph[1]),
        of(&|round| round.spin_traced),
    );
    if is_event {
        let ratio = of(&|round| round.graph[0] / round.event.map_or(f64::NAN, |event| event[0]));
        print!(" iceoryx2_event_ratio={ratio:.2}");
    }
    println!(" same_core_loop_ratio={:.2}", of(&|round| round.graph[0] / round.in_loop[0]));
}

/// `a` to `b`, and if they take turns back again, over edges that carry `channel`; nothing is recorded.
fn spec(channel: Channel, take_turns: bool) -> Result<Spec, Box<dyn Error>> {
    let edge = |producer, consumer, back_edge| Edge {
        initial: u32::from(back_edge),
        back_edge,
        ..Edge::new(producer, consumer)
    };
    let edges = if take_turns { vec![edge(0, 1, false), edge(1, 0, true)] } else { vec![edge(0, 1, false)] };
    let name = format!("bench-{}", std::process::id());
    let nodes = vec![model::Node::new("a", Some(Nanos::from_millis(1))), model::Node::new("b", None)];
    let channels = vec![channel; edges.len()];
    Ok(Spec::with_channels(model::Graph::new(name, nodes, edges), channels)?.with_recorder(0)?)
}

fn graph_trip(registry: &Registry, spec: &Spec, cpus: Cpus, spin: Nanos, trips: usize) -> Result<f64, Box<dyn Error>> {
    let graph = registry.create(spec)?;
    let has_data = spec.channels()[0] != Channel::Counter;
    let turn = |node: &mut Node| {
        let mut job = node.wait().expect("the other thread goes on");
        if has_data {
            let (inputs, mut outputs) = job.messages();
            // Only the ownership of the message moves, and a word that says which it is.
            let (inbound, outbound) = if outputs.get(0, 0).is_ok() { (1, 0) } else { (0, 1) };
            let number = inputs.get(inbound, 0).expect("its own")[0];
            outputs.get(outbound, 0).expect("its own")[0] = number.wrapping_add(1);
        }
        job.complete();
    };
    let run = |name: &str, cpu: usize| {
        settle(cpu);
        let mut node = graph.claim(name).expect("it is free");
        node.spin_for(spin);
        turn(&mut node);
        let mut turns = Vec::with_capacity(trips);
        for _ in 0..trips {
            turn(&mut node);
            turns.push(now());
        }
        turns
    };
    Ok(thread::scope(|scope| {
        scope.spawn(|| run("b", cpus[1]));
        trip(&scope.spawn(|| run("a", cpus[0])).join().expect("no panic"))
    }))
}

/// Tokens, or messages, a second from a thread on one CPU to one on another.
fn throughput(registry: &Registry, spec: &Spec, count: u64) -> Result<f64, Box<dyn Error>> {
    let graph: Graph = registry.create(spec)?;
    let has_data = spec.channels()[0] != Channel::Counter;
    let run = |name: &str, cpu: usize, is_producer: bool| {
        settle(cpu);
        let mut node = graph.claim(name).expect("it is free");
        node.spin_for(SPIN);
        let mut sum = 0u64;
        let mut start = Instant::ZERO;
        for number in 0..count {
            let mut job = node.wait().expect("the other thread goes on");
            if number == 0 {
                start = now();
            }
            match (has_data, is_producer) {
                (true, true) => job.output(0, 0).expect("its own").copy_from_slice(&[number as u8; 64]),
                (true, false) => {
                    sum += job.input(0, 0).expect("its own").iter().map(|&byte| u64::from(byte)).sum::<u64>();
                }
                (false, _) => {}
            }
            job.complete();
        }
        std::hint::black_box(sum);
        now().saturating_since(start).as_secs_f64()
    };
    Ok(thread::scope(|scope| {
        scope.spawn(|| run("a", CROSS[0], true));
        count as f64 / scope.spawn(|| run("b", CROSS[1], false)).join().expect("no panic")
    }))
}

struct Eventfd<'a> {
    own: &'a Event,
    other: &'a Event,
}

impl Side for Eventfd<'_> {
    fn give(&mut self) {
        self.other.signal();
    }

    fn take(&mut self) {
        self.own.wait();
    }
}

fn eventfd_trip(cpus: Cpus, trips: usize) -> Result<f64, Box<dyn Error>> {
    let events = [Event::new()?, Event::new()?];
    Ok(turns(cpus, trips, |side| Called(Eventfd { own: &events[side], other: &events[1 - side] })))
}
