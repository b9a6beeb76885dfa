//! The thread that carries out a node, in this process or in one of its own.
//!
//! ```text
//!        start                 claimed                  begin                    the node ends
//! (new) ------> (claims it) -----------> (is ready) ----------> (runs its jobs) --------------> (over)
//!                    | cannot                |  who starts it is gone                              ^
//!                    +-----------------------+-----------------------------------------------------+
//! ```

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, Builder, JoinHandle};

use laxity_graph::{Graph, Job, Node, Releasing, WaitError};
use laxity_model::Instant;
use laxity_sys::clock;
use laxity_sys::journal::Journal;

use super::control::Control;
use super::orders::Orders;
use super::record::Record;
use super::work::Work;

/// A thread that carries out a node.
#[derive(Debug)]
pub struct Worker {
    graph: Graph,
    node: usize,
    control: Arc<Control>,
    /// Says that it has the node, or why not.
    readiness: Receiver<Result<(), String>>,
    begin: Sender<Instant>,
    thread: JoinHandle<Result<(), String>>,
}

/// What the thread has.
struct Task {
    graph: Graph,
    orders: Orders,
    journal: Journal,
    control: Arc<Control>,
}

impl Worker {
    /// Starts a thread for the node at `node`, which writes down in `journal` when its jobs complete.
    ///
    /// # Errors
    /// That there can be no more threads.
    pub fn start(graph: &Graph, node: usize, orders: Orders, journal: Journal) -> Result<Worker, String> {
        let control = Arc::new(Control::default());
        let task = Task { graph: graph.clone(), orders, journal, control: Arc::clone(&control) };
        let (ready, readiness) = mpsc::channel();
        let (begin, begins) = mpsc::channel();
        let name = &graph.spec().graph().nodes[node].name;
        // Linux shows the first 15 bytes; names of threads end at a NUL.
        let thread = Builder::new().name(name.replace('\0', " ")).spawn(move || task.run(node, &ready, &begins));
        let thread = thread.map_err(|error| format!("cannot start a thread for each node: {error}"))?;
        Ok(Worker { graph: graph.clone(), node, control, readiness, begin, thread })
    }

    /// Waits until it has its node.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn ready(&self) -> Result<(), String> {
        self.readiness.recv().unwrap_or_else(|_| Err("its thread ended".to_owned()))
    }

    /// Lets it begin: `start` is the arrival of the first job of a source without phase.
    pub fn begin(&self, start: Instant) {
        // If it is over already, there is nothing to begin.
        let _ = self.begin.send(start);
    }

    /// Whether it is at work.
    pub fn is_at_work(&self) -> bool {
        !self.thread.is_finished()
    }

    /// Ends it in the middle of its job.
    pub fn stop(&self) {
        self.control.stop();
        self.graph.terminate(self.node);
    }

    /// What became of it. Waits until it is over; lets go of its node if it did not begin.
    ///
    /// # Errors
    /// Why it could not go on.
    pub fn join(self) -> Result<(), String> {
        drop(self.begin);
        self.thread.join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
    }
}

impl Task {
    fn run(self, node: usize, ready: &Sender<Result<(), String>>, begins: &Receiver<Instant>) -> Result<(), String> {
        let prepared = self.prepare(node);
        // Whoever no longer listens ends the channel of the begin, too.
        let (mut node, mut work) = match prepared {
            Ok(prepared) => {
                let _ = ready.send(Ok(()));
                prepared
            }
            Err(error) => {
                let _ = ready.send(Err(error.clone()));
                return Err(error);
            }
        };
        let Ok(start) = begins.recv() else { return Ok(()) };
        self.wait_for_releases(&mut node)?;
        // Tokens from the start arrive then, too.
        let mut outcome = Ok(self.control.suspend_until(start));
        while outcome == Ok(true) && self.has_job(&node, start) {
            outcome = self.next_job(&mut node, &mut work);
        }
        node.terminate();
        outcome.map(|_| ())
    }

    /// The node and what its jobs work on. Claiming comes last: a claimed node is ready.
    fn prepare(&self, node: usize) -> Result<(Node, Work), String> {
        let (spec, attributes) = (self.graph.spec(), &self.orders.attributes);
        let work = Work::new(self.orders.working_set)?;
        attributes.apply(spec, node)?;
        let mut node = self.graph.claim(&spec.graph().nodes[node].name).map_err(|error| error.to_string())?;
        attributes.boost(spec, &mut node)?;
        Ok((node, work))
    }

    /// Has the jobs of a source, and any others that should, wait for their releases. The graph has its start.
    fn wait_for_releases(&self, node: &mut Node) -> Result<(), String> {
        let is_source = self.graph.spec().plan().nodes()[node.position()].is_source;
        let releasing = if is_source || self.orders.on_time { Releasing::OnTime } else { Releasing::Early };
        node.set_releasing(releasing).map_err(|error| error.to_string())
    }

    /// Whether the next job of a source is released before the end; other nodes end when their producers have.
    fn has_job(&self, node: &Node, start: Instant) -> bool {
        let (plan, node) = (self.graph.spec().plan(), node.position());
        let index = self.graph.status(node).completed;
        !plan.nodes()[node].is_source || self.orders.releases.release(plan, start, node, index).is_some()
    }

    /// Waits for a job's tokens and its release, and does it. Answers whether there may be another.
    fn next_job(&self, node: &mut Node, work: &mut Work) -> Result<bool, String> {
        let position = node.position();
        let mut job = match node.wait() {
            Ok(job) => job,
            // Whoever looks after the run claims the node again, or ends it.
            Err(WaitError::Lost { .. }) => return Ok(true),
            Err(_) => return Ok(false),
        };
        self.touch(position, &mut job);
        if !self.orders.body.carry_out(self.orders.seed, position, job.index(), work, &self.control) {
            return Ok(false);
        }
        // Before the tokens are there, so that no consumer completes earlier than its producer.
        let record = Record { index: job.index(), completion: clock::now() };
        record.append_to(&self.journal).map_err(|error| format!("cannot write down when a job completes: {error}"))?;
        job.complete();
        Ok(true)
    }

    /// Reads all messages and writes all, as users of rings do.
    fn touch(&self, node: usize, job: &mut Job<'_>) {
        let spec = self.graph.spec();
        let byte = job.index() as u8;
        let (inputs, mut outputs) = job.messages();
        for (position, edge) in spec.graph().edges.iter().enumerate() {
            // Those of edges that carry no messages are errors that say so.
            for number in (0..edge.threshold).take_while(|_| edge.consumer == node) {
                let Ok(message) = inputs.get(position, number) else { break };
                std::hint::black_box(message.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)));
            }
            for number in (0..edge.produce).take_while(|_| edge.producer == node) {
                let Ok(message) = outputs.get(position, number) else { break };
                message.fill(byte);
            }
        }
    }
}

/// How often to look after workers.
pub const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

/// Waits until the next look.
pub fn pause() {
    thread::sleep(LOOK);
}
