//! A graph carried out by threads of this process, one a node.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Builder, ScopedJoinHandle};
use std::time::Duration;

use laxity_graph::{Graph, Job, Node};
use laxity_model::{Instant, Nanos};
use laxity_sys::{clock, futex};

use super::super::live;
use super::body::{Body, suspend_until};
use super::measure::arrival;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// How often to look for Ctrl-C and for the end.
const LOOK: Duration = Duration::from_millis(20);

/// Until the first release: as long as it may take to start the threads.
const LEAD: Nanos = Nanos::from_millis(2);

/// What to carry out besides the graph.
pub struct Setup {
    /// What the jobs of each node do.
    pub bodies: Vec<Body>,
    /// Sources are released for so long.
    pub duration: Nanos,
    /// Of execution times.
    pub seed: u64,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The arrival of the first job of a source without phase.
    pub start: Instant,
    /// For each node when its jobs completed.
    pub completions: Vec<Vec<Instant>>,
    /// The last of all.
    pub end: Instant,
    /// Whether it was interrupted.
    pub is_cut_short: bool,
}

/// What the threads share.
struct Run<'a> {
    graph: &'a Graph,
    setup: &'a Setup,
    start: Instant,
    /// Not 0 when all is to end at once. A word of memory, as threads sleep on it.
    stop: AtomicU32,
}

/// Runs `graph`, no node of which anyone has claimed, to its end.
pub fn carry_out(
    graph: &Graph,
    setup: &Setup,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<Recording, CliError> {
    let names = graph.spec().graph().nodes.iter().map(|node| node.name.as_str());
    let nodes: Vec<Node> = names.map(|name| graph.claim(name)).collect::<Result<_, _>>().map_err(live)?;
    let run = Run { graph, setup, start: clock::now().saturating_add(LEAD), stop: AtomicU32::new(0) };
    let completions = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(nodes.len());
        for node in nodes {
            // Linux shows the first 15 bytes; names of threads end at a NUL.
            let name = graph.spec().graph().nodes[node.position()].name.replace('\0', " ");
            match Builder::new().name(name).spawn_scoped(scope, || run.drive(node)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    run.stop_all();
                    return Err(CliError::Live { message: format!("cannot start a thread for each node: {error}") });
                }
            }
        }
        run.watch(&threads, progress, interrupt);
        Ok(threads.into_iter().map(|thread| thread.join().expect("nodes do not panic")).collect())
    })?;
    let is_cut_short = run.stop.load(Ordering::Relaxed) != 0;
    Ok(Recording { start: run.start, completions, end: clock::now(), is_cut_short })
}

impl Run<'_> {
    /// Until all threads have ended.
    fn watch(&self, threads: &[ScopedJoinHandle<'_, Vec<Instant>>], progress: &Progress, interrupt: &Interrupt) {
        while threads.iter().any(|thread| !thread.is_finished()) {
            if interrupt.is_requested() && self.stop.load(Ordering::Relaxed) == 0 {
                self.stop_all();
            }
            let elapsed = clock::now().saturating_since(self.start).min(self.setup.duration);
            let completed = (0..threads.len()).map(|node| self.graph.status(node).completed).sum();
            progress.update(Instant::ZERO.saturating_add(elapsed), completed);
            thread::sleep(LOOK);
        }
    }

    /// Ends all nodes, whatever they are doing.
    fn stop_all(&self) {
        self.stop.store(1, Ordering::Relaxed);
        futex::wake_all(&self.stop);
        (0..self.setup.bodies.len()).for_each(|node| self.graph.terminate(node));
    }

    /// The jobs of a node, until it ends.
    fn drive(&self, mut node: Node) -> Vec<Instant> {
        let mut completions = Vec::new();
        while self.is_released(node.position(), completions.len() as u64) {
            match self.next_job(&mut node) {
                Some(completion) => completions.push(completion),
                None => break,
            }
        }
        node.terminate();
        completions
    }

    /// Waits for the release of job `index` of a source. Answers whether it comes before the end.
    fn is_released(&self, node: usize, index: u64) -> bool {
        let plan = self.graph.spec().plan();
        if !plan.nodes()[node].is_source {
            return true;
        }
        let release = arrival(plan, self.start, node, index);
        release < self.start.saturating_add(self.setup.duration) && suspend_until(release, &self.stop)
    }

    /// Waits for a job's tokens and does it. Answers when it was complete; nothing if the node has ended.
    fn next_job(&self, node: &mut Node) -> Option<Instant> {
        let position = node.position();
        // Whatever the error, this node has ended or the graph will: all nodes are claimed here, and none comes back.
        let mut job = node.wait().ok()?;
        self.touch(position, &mut job);
        if !self.setup.bodies[position].carry_out(self.setup.seed, position, job.index(), &self.stop) {
            return None;
        }
        // Before the tokens are there, so that no consumer completes earlier than its producer.
        let completion = clock::now();
        job.complete();
        Some(completion)
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
