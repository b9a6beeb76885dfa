//! Live graphs against what Linux offers: a raw futex and an eventfd.
//!
//! All are measured in turn in every round, and ratios are taken within a round, so that a machine that is busy at
//! times slows them all. Threads are kept on their CPUs, under `SCHED_FIFO` where this user may. Graphs have no
//! recorder but where it is said: `tracing_ratio` is with it against without.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use clap::Parser;
use laxity_graph::{Channel, Graph, Node, RECORDER_DEFAULT, Registry, Spec};
use laxity_model::{self as model, Edge, Instant, Nanos};
use laxity_sys::clock::now;
use laxity_sys::event::Event;
use laxity_sys::segment::{Format, HEADER, Segment};
use laxity_sys::{futex, scheduling};

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

/// The CPUs of the two threads.
type Cpus = [usize; 2];

const SAME: Cpus = [0, 0];
const CROSS: Cpus = [0, 1];
const PRIORITY: u8 = 50;
/// More than a wake-up takes across CPUs, so that a spinning thread never parks while the other answers.
const SPIN: Nanos = Nanos::from_micros(200);

/// One round, in microseconds and per second.
struct Round {
    /// In memory of this process.
    futex: [f64; 2],
    /// In memory with a name, as that of graphs, where Linux takes longer to find out which word is meant.
    shared: [f64; 2],
    eventfd: [f64; 2],
    graph: [f64; 2],
    /// The same with the recorder on, as it is unless turned off.
    traced: [f64; 2],
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
        futex: [SAME, CROSS].map(|cpus| futex_trip([&own[0], &own[1]], cpus, trips)),
        shared: [SAME, CROSS].map(|cpus| futex_trip(shared, cpus, trips)),
        graph: [
            graph_trip(registry, &counter, SAME, park, trips)?,
            graph_trip(registry, &counter, CROSS, park, trips)?,
        ],
        traced: [graph_trip(registry, &traced, SAME, park, trips)?, graph_trip(registry, &traced, CROSS, park, trips)?],
        eventfd: [eventfd_trip(SAME, trips)?, eventfd_trip(CROSS, trips)?],
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
    row("raw futex, shared memory", &|round| round.shared);
    row("eventfd", &|round| round.eventfd);
    row("graph, parking", &|round| round.graph);
    row("graph, parking, recorder on", &|round| round.traced);
    println!("{:<28} {:>10} {:>12.2}", "graph, spinning", "-", of(&|round| round.spin));
    println!("{:<28} {:>10} {:>12.2}", "graph, spinning, recorder on", "-", of(&|round| round.spin_traced));
    println!("{:<28} {:>10} {:>12.2}", "64 B message, spinning", "-", of(&|round| round.small));
    println!("{:<28} {:>10} {:>12.2}", "1 MiB message, spinning", "-", of(&|round| round.large));
    println!(
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
}

/// `a` to `b`, and if they take turns back again, over edges that carry `channel`; nothing is recorded.
fn spec(channel: Channel, take_turns: bool) -> Result<Spec, Box<dyn Error>> {
    let node = |name: &str, period| model::Node {
        name: name.to_owned(),
        period,
        phase: Nanos::ZERO,
        deadline: None,
        priority: None,
        cluster: None,
        body: Vec::new(),
    };
    let edge = |producer, consumer, back_edge| Edge {
        producer,
        consumer,
        produce: 1,
        consume: 1,
        threshold: 1,
        initial: u32::from(back_edge),
        back_edge,
        delay: 0,
    };
    let edges = if take_turns { vec![edge(0, 1, false), edge(1, 0, true)] } else { vec![edge(0, 1, false)] };
    let name = format!("bench-{}", std::process::id());
    let nodes = vec![node("a", Some(Nanos::from_millis(1))), node("b", None)];
    let channels = vec![channel; edges.len()];
    Ok(Spec::with_channels(model::Graph::new(name, nodes, edges), channels)?.with_recorder(0)?)
}

/// Median time of a trip in microseconds, by when the first thread's `trips + 1` turns began.
fn trip(turns: &[Instant]) -> f64 {
    median(turns.windows(2).map(|turns| turns[1].saturating_since(turns[0]).0 as f64 / 1000.0).collect())
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

/// Two threads that take turns: `give` says that it is the other's turn, `take` waits for one's own.
fn turns(cpus: Cpus, trips: usize, give: impl Fn(usize) + Sync, take: impl Fn(usize) + Sync) -> f64 {
    thread::scope(|scope| {
        let (give, take) = (&give, &take);
        scope.spawn(move || {
            settle(cpus[1]);
            for _ in 0..=trips {
                take(1);
                give(0);
            }
        });
        let first = scope.spawn(move || {
            settle(cpus[0]);
            let mut turns = Vec::with_capacity(trips + 1);
            for _ in 0..=trips {
                give(1);
                take(0);
                turns.push(now());
            }
            turns
        });
        trip(&first.join().expect("no panic")[1..])
    })
}

fn futex_trip(words: [&AtomicU32; 2], cpus: Cpus, trips: usize) -> f64 {
    words.iter().for_each(|word| word.store(0, Ordering::SeqCst));
    let give = |whom: usize| {
        words[whom].store(1, Ordering::SeqCst);
        futex::wake_one(words[whom]);
    };
    let take = |who: usize| {
        while words[who].swap(0, Ordering::SeqCst) == 0 {
            futex::wait(words[who], 0, Instant::NEVER);
        }
    };
    turns(cpus, trips, give, take)
}

fn eventfd_trip(cpus: Cpus, trips: usize) -> Result<f64, Box<dyn Error>> {
    let events = [Event::new()?, Event::new()?];
    Ok(turns(cpus, trips, |whom| events[whom].signal(), |who| events[who].wait()))
}

fn settle(cpu: usize) {
    scheduling::pin(cpu).expect("there are as many CPUs");
    // Told at the start where it may not.
    let _ = scheduling::set_fifo(PRIORITY);
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
