//! Camera -> filter -> display: three processes and two rings. Each image is written, filtered and shown in place.
//! Start them in any order.
//!
//! ```console
//! $ cargo run -p laxity-examples --bin pipeline camera &
//! $ cargo run -p laxity-examples --bin pipeline filter &
//! $ cargo run -p laxity-examples --bin pipeline display
//! 10 images, 45 is the sum of their first pixels, doubled: 90
//! ```

use std::env;
use std::error::Error;

use laxity_graph::{Channel, Graph, Job, Node, Registry, Spec, WaitError};
use laxity_model::{self as model, Nanos};

const IMAGES: u8 = 10;
const IMAGE: u32 = 640 * 480;
/// The edges, by their places in the description.
const RAW: usize = 0;
const FILTERED: usize = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::var("LAXITY_DIRECTORY").unwrap_or_else(|_| "/dev/shm".to_owned());
    // All three describe the graph; the first one creates it.
    let graph = Registry::at(directory).create_or_attach(&spec()?)?;
    match env::args().nth(1).as_deref() {
        Some("camera") => camera(&graph),
        Some("filter") => filter(&graph),
        Some("display") => display(&graph),
        _ => Err("usage: pipeline camera|filter|display".into()),
    }
}

fn spec() -> Result<Spec, Box<dyn Error>> {
    let nodes = vec![
        model::Node::new("camera", Some(Nanos::from_millis(33))),
        model::Node::new("filter", None),
        model::Node::new("display", None),
    ];
    let graph = model::Graph::new("pipeline-example", nodes, vec![model::Edge::new(0, 1), model::Edge::new(1, 2)]);
    Ok(Spec::with_channels(graph, vec![Channel::Ring { message: IMAGE, capacity: 4 }; 2])?)
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

fn camera(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let mut node = graph.claim("camera")?;
    for image in 0..IMAGES {
        let Some(mut job) = next(&mut node)? else { break }; // waits for room
        job.output(RAW, 0)?.fill(image);
        job.complete();
    }
    // The others have attached: without them the rings would have filled up. They get the remaining messages.
    node.terminate();
    Ok(())
}

fn filter(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let mut node = graph.claim("filter")?;
    while let Some(mut job) = next(&mut node)? {
        let (inputs, mut outputs) = job.messages();
        for (filtered, raw) in outputs.get(FILTERED, 0)?.iter_mut().zip(inputs.get(RAW, 0)?) {
            *filtered = 2 * raw;
        }
        job.complete();
    }
    Ok(())
}

fn display(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let mut node = graph.claim("display")?;
    let (mut images, mut sum) = (0, 0);
    while let Some(mut job) = next(&mut node)? {
        images += 1;
        sum += u32::from(job.input(FILTERED, 0)?[0]);
        job.complete();
    }
    println!("{images} images, {} is the sum of their first pixels, doubled: {sum}", sum / 2);
    Ok(())
}
