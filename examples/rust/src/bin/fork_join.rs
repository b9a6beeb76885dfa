//! Two processes: one splits numbers over two edges, the other joins them four at a time. Start them in any order.
//!
//! ```text
//!                  left                    cargo run -p laxity-examples --bin fork_join split &
//!               .-------> sum              cargo run -p laxity-examples --bin fork_join join
//!     split ----'            \
//!          \                  > join       The second prints "joined 25 times: sum 4950, count 100".
//!           `--> count ------'
//! ```
//!
//! `split` begins a job for each number. `sum` and `count` wait for four tokens (the threshold), and take them away.

use std::env;
use std::error::Error;

use laxity_graph::{Channel, Graph, Job, Node, Registry, Spec, WaitError};
use laxity_model::{self as model, Nanos};

const NUMBERS: u64 = 100;
const TOGETHER: u32 = 4;
/// The edges, by their places in the description.
const TO_SUM: usize = 0;
const FROM_SUM: usize = 2;
const FROM_COUNT: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::var("LAXITY_DIRECTORY").unwrap_or_else(|_| "/dev/shm".to_owned());
    // Both processes describe the graph; the first one creates it.
    let graph = Registry::at(directory).create_or_attach(&spec()?)?;
    match env::args().nth(1).as_deref() {
        Some("split") => split(&graph),
        Some("join") => join(&graph),
        _ => Err("usage: fork_join split|join".into()),
    }
}

fn spec() -> Result<Spec, Box<dyn Error>> {
    let nodes = ["split", "sum", "count", "join"];
    let nodes = nodes.map(|name| model::Node::new(name, (name == "split").then_some(Nanos::from_millis(1))));
    let edge = |producer, consumer, consume| model::Edge {
        consume,
        threshold: consume,
        ..model::Edge::new(producer, consumer)
    };
    let edges = vec![edge(0, 1, TOGETHER), edge(0, 2, TOGETHER), edge(1, 3, 1), edge(2, 3, 1)];
    let numbers = |capacity| Channel::Ring { message: 8, capacity };
    let channels = vec![numbers(2 * TOGETHER), Channel::Counter, numbers(2), numbers(2)];
    Ok(Spec::with_channels(model::Graph::new("fork-join-example", nodes.into(), edges), channels)?)
}

/// The next job, or nothing if there will be none. Goes on when a lost process comes back.
fn next(node: &mut Node) -> Result<Option<Job<'_>>, WaitError> {
    loop {
        match node.wait() {
            Ok(_) => break,
            Err(WaitError::Terminated { .. }) => return Ok(None),
            Err(error @ WaitError::Lost { .. }) => eprintln!("{error}"),
            Err(error) => return Err(error),
        }
    }
    Ok(node.job())
}

fn read(job: &mut Job<'_>, edge: usize, number: u32) -> Result<u64, Box<dyn Error>> {
    Ok(u64::from_ne_bytes(job.input(edge, number)?.try_into()?))
}

fn write(job: &mut Job<'_>, edge: usize, value: u64) -> Result<(), Box<dyn Error>> {
    job.output(edge, 0)?.copy_from_slice(&value.to_ne_bytes());
    Ok(())
}

fn split(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let mut node = graph.claim("split")?;
    for number in 0..NUMBERS {
        let Some(mut job) = next(&mut node)? else { break };
        write(&mut job, TO_SUM, number)?;
        job.complete();
    }
    // The other process has attached: without it the ring would have filled up. It gets the remaining messages.
    node.terminate();
    Ok(())
}

/// One thread has three nodes: it knows in which order they can run.
fn join(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let mut sum = graph.claim("sum")?;
    let mut count = graph.claim("count")?;
    let mut both = graph.claim("join")?;
    let (mut times, mut total, mut counted) = (0, 0, 0);
    while let Some(mut job) = next(&mut sum)? {
        let mut partial = 0;
        for number in 0..TOGETHER {
            partial += read(&mut job, TO_SUM, number)?;
        }
        write(&mut job, FROM_SUM, partial)?;
        job.complete();

        let mut job = next(&mut count)?.ok_or("as many tokens go to `count`")?;
        write(&mut job, FROM_COUNT, TOGETHER.into())?;
        job.complete();

        let mut job = next(&mut both)?.ok_or("both were complete")?;
        total += read(&mut job, FROM_SUM, 0)?;
        counted += read(&mut job, FROM_COUNT, 0)?;
        times += 1;
        job.complete();
    }
    println!("joined {times} times: sum {total}, count {counted}");
    Ok(())
}
