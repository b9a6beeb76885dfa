//! A control loop with a delay: the heating that a controller orders takes effect two steps later.
//!
//! ```text
//!     room --temperature--> controller          cargo run -p laxity-examples --bin feedback
//!      ^                        |
//!      '------- heating --------'               Prints the temperature, step by step.
//!       back-edge, 2 at the start
//! ```
//!
//! The two initial tokens are the delay: job n of the room reads what job n - 2 of the controller wrote, and zeros
//! before.

use std::env;
use std::error::Error;
use std::thread;

use laxity_graph::{Channel, Job, Node, Registry, Spec, WaitError};
use laxity_model::{self as model, Nanos};

const STEPS: usize = 20;
const DELAY: u32 = 2;
const WANTED: i32 = 200;
/// The edges, by their places in the description.
const TEMPERATURE: usize = 0;
const HEATING: usize = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = env::var("LAXITY_DIRECTORY").unwrap_or_else(|_| "/dev/shm".to_owned());
    let graph = Registry::at(directory).create(&spec()?)?;
    let controller_node = graph.claim("controller")?;
    let controller = thread::spawn(move || controller(controller_node).map_err(|error| error.to_string()));
    let temperatures = room(graph.claim("room")?)?;
    controller.join().map_err(|_| "the controller panicked")??;
    println!("{}", temperatures.join(" "));
    Ok(())
}

fn spec() -> Result<Spec, Box<dyn Error>> {
    let nodes = vec![model::Node::new("room", Some(Nanos::from_millis(1))), model::Node::new("controller", None)];
    let forward = model::Edge::new(0, 1);
    let back = model::Edge { producer: 1, consumer: 0, initial: DELAY, back_edge: true, ..forward.clone() };
    let name = format!("feedback-{}", std::process::id());
    let number = |capacity| Channel::Ring { message: 4, capacity };
    let channels = vec![number(1), number(DELAY + 1)];
    Ok(Spec::with_channels(model::Graph::new(name, nodes, vec![forward, back]), channels)?)
}

fn read(job: &mut Job<'_>, edge: usize) -> Result<i32, Box<dyn Error>> {
    Ok(i32::from_ne_bytes(job.input(edge, 0)?.try_into()?))
}

fn write(job: &mut Job<'_>, edge: usize, value: i32) -> Result<(), Box<dyn Error>> {
    job.output(edge, 0)?.copy_from_slice(&value.to_ne_bytes());
    Ok(())
}

fn controller(mut node: Node) -> Result<(), Box<dyn Error>> {
    loop {
        match node.wait() {
            Ok(mut job) => {
                let temperature = read(&mut job, TEMPERATURE)?;
                write(&mut job, HEATING, (WANTED - temperature) / 4)?;
                job.complete();
            }
            Err(WaitError::Terminated { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn room(mut node: Node) -> Result<Vec<String>, Box<dyn Error>> {
    let mut temperature = 0;
    let mut temperatures = Vec::with_capacity(STEPS);
    for _ in 0..STEPS {
        let mut job = node.wait()?;
        temperature += read(&mut job, HEATING)?;
        write(&mut job, TEMPERATURE, temperature)?;
        job.complete();
        temperatures.push(temperature.to_string());
    }
    node.terminate();
    Ok(temperatures)
}
