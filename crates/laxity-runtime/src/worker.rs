//! A thread that executes the jobs of one task or of one node of a graph: the only executor that Laxity has.
//!
//! ```text
//!        start                  ready           begin              no more jobs, or stopped
//! (new) ------> (gets ready) --------> (waits) -------> (executes) ------------------------> (over)
//!                    |   cannot             |   the starting thread is gone                     ^
//!                    '----------------------+---------------------------------------------------'
//! ```
//!
//! A job carries out its [`Body`]: the steps of a workload, or the kernel of a vision graph.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use laxity_graph::{ClaimError, Graph, Node, Releasing, WaitError};
use laxity_model::{Instant, Nanos};
use laxity_plan::Release;
use laxity_sys::process::forks;
use laxity_sys::scheduling;
use thiserror::Error;

use crate::attributes::Attributes;
use crate::stop::StopSignal;

/// Until a thread that is not ready is looked at again.
const LOOK: Duration = Duration::from_millis(20);

/// The body of a worker: it executes jobs. It is made on the worker's thread and stays there.
pub trait Body {
    /// Why it cannot go on.
    type Error: From<WaitError>;

    /// Executes one job. That of a node is to be completed, too.
    ///
    /// # Errors
    /// Why the worker ends with this job.
    fn execute(&mut self, job: Job<'_>) -> Result<(), Interrupted<Self::Error>>;

    /// Waits for a job that a timer releases at `release`, and which is due at `_deadline`. Answers whether there is to be one,
    /// rather than the end of the worker.
    ///
    /// # Errors
    /// Why the worker ends.
    fn await_release(&mut self, release: Instant, _deadline: Instant, stop: &StopSignal) -> Result<bool, Self::Error> {
        Ok(stop.suspend_until(release))
    }

    /// The jobs of a node are executed from `_start` on. Answers whether [`Body::await_node`] waits for that, too.
    fn begin_node(&mut self, _start: Instant) -> bool {
        false
    }

    /// Waits for what releases the next job of `_node`, if this has to know of that; else the node's own wait does. Answers whether
    /// there may be such a job, rather than the end of the worker.
    ///
    /// # Errors
    /// Why the worker ends.
    fn await_node(&mut self, _node: &mut Node) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// A job of `node` is complete.
    ///
    /// # Errors
    /// Why the worker ends.
    fn after_job(&mut self, _node: &mut Node) -> Result<(), Interrupted<Self::Error>> {
        Ok(())
    }

    /// The worker ends, or could not even begin. Answers what [`Started::join`] says.
    ///
    /// # Errors
    /// As `outcome`, in words, unless the error went elsewhere.
    fn end(self, outcome: Result<(), Self::Error>) -> Result<(), String>;
}

/// A job that a worker executes.
#[derive(Debug)]
pub enum Job<'a> {
    /// A timer released it.
    Timer {
        /// Its number.
        index: u32,
        /// Its absolute deadline, on the monotonic clock.
        deadline: Instant,
    },
    /// It has its tokens.
    Node(laxity_graph::Job<'a>),
}

/// Why a job did not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted<E> {
    /// The worker was stopped, or there are to be no more jobs.
    Stopped,
    /// The worker cannot go on.
    Failed(E),
}

impl<E> From<E> for Interrupted<E> {
    fn from(error: E) -> Self {
        Interrupted::Failed(error)
    }
}

/// A worker that is to be started.
#[derive(Debug)]
pub struct Worker {
    /// Of its thread.
    pub name: String,
    /// The thread's stack, if not that of Rust's threads.
    pub stack: Option<usize>,
    /// The CPUs that it keeps to, numbered as Linux does; `None`: it may use all.
    pub cpus: Option<Vec<usize>>,
    /// How Linux schedules it.
    pub attributes: Attributes,
    /// What releases its jobs.
    pub trigger: Trigger,
    /// What ends it.
    pub stop: Arc<StopSignal>,
}

/// The trigger of a worker's jobs.
pub enum Trigger {
    /// Timers.
    Timer(ReleaseTimes),
    /// Timers, and there must be room: a source of a graph.
    Source(Graph, usize, ReleaseTimes),
    /// Tokens: any other node.
    Tokens(Graph, usize, Releasing),
    /// What another thread sends, until it ends.
    Calls(Receiver<Call>),
}

/// A job that another thread has for a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub index: u32,
    /// Its absolute deadline, on the monotonic clock.
    pub deadline: Instant,
}

/// Releases from the start, in order.
pub type ReleaseTimes = Box<dyn Iterator<Item = Release> + Send>;

/// A worker that is ready.
#[derive(Debug)]
pub struct Started {
    /// Dropped, it tells a worker that has not begun to end.
    begin: Option<Sender<Instant>>,
    thread: Option<JoinHandle<Result<(), String>>>,
    /// [`forks`] of the thread's process.
    forks: u32,
    /// The number of the thread in Linux.
    number: u32,
}

/// Why a worker is not ready.
#[derive(Debug, Error)]
pub enum StartError {
    /// There can be no more threads.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// Linux does not let it keep to its CPUs.
    #[error("cannot keep to CPUs {cpus:?}: {error}")]
    Cpus {
        /// Those asked for.
        cpus: Vec<usize>,
        /// Why not.
        error: io::Error,
    },
    /// Linux does not schedule it as asked.
    #[error("{}", crate::linux::refused(*.attributes, .error))]
    Scheduling {
        /// What was asked for.
        attributes: Attributes,
        /// Why not.
        error: io::Error,
    },
    /// Its node cannot be claimed.
    #[error(transparent)]
    Claim(ClaimError),
    /// Its body cannot be made.
    #[error("{0}")]
    Body(String),
}

impl Worker {
    /// Starts the thread, which makes its body by `make`, and waits until it is ready.
    ///
    /// # Errors
    /// Why it is not. No thread is left then.
    pub fn start<B: Body>(
        self,
        make: impl FnOnce() -> Result<B, String> + Send + 'static,
    ) -> Result<Started, StartError> {
        self.start_watched(make, || None)
    }

    /// As [`Worker::start`], unless `crashed` says that the thread will never be ready: it is left behind then.
    ///
    /// # Errors
    /// As [`Worker::start`], or how it crashed.
    pub(crate) fn start_watched<B: Body>(
        self,
        make: impl FnOnce() -> Result<B, String> + Send + 'static,
        crashed: impl Fn() -> Option<String>,
    ) -> Result<Started, StartError> {
        let (ready, readiness) = mpsc::channel();
        let (begin, begins) = mpsc::channel();
        // Linux shows the first 15 bytes; names of threads end at a NUL.
        let builder = Builder::new().name(self.name.replace('\0', " "));
        let builder = self.stack.into_iter().fold(builder, Builder::stack_size);
        let life = move || {
            let (mut body, node) = match self.prepare(make) {
                Ok(prepared) => prepared,
                Err(error) => {
                    // If the starting thread no longer listens, it has ended.
                    let _ = ready.send(Err(error));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(scheduling::current_thread()));
            let outcome = match begins.recv() {
                Ok(start) => self.run(&mut body, node, start),
                Err(_) => Ok(()),
            };
            body.end(outcome)
        };
        let thread = builder.spawn(life).map_err(StartError::Thread)?;
        // If it is not ready this is dropped, which waits for the thread: then nothing of the worker is left.
        let mut started = Started { begin: Some(begin), thread: Some(thread), forks: forks(), number: 0 };
        loop {
            match readiness.recv_timeout(LOOK) {
                Ok(Ok(number)) => {
                    started.number = number;
                    return Ok(started);
                }
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Disconnected) => return Err(StartError::Body("its thread ended".to_owned())),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(crash) = crashed() {
                started.abandon();
                return Err(StartError::Body(crash));
            }
        }
    }

    /// Makes the calling thread that of the worker. Claiming comes last: a claimed node is ready.
    fn prepare<B>(&self, make: impl FnOnce() -> Result<B, String>) -> Result<(B, Option<Node>), StartError> {
        // For threads that are not real-time; if it cannot be, they are woken a little later.
        let _ = scheduling::expire_on_time();
        if let Some(cpus) = &self.cpus {
            scheduling::keep_on(cpus).map_err(|error| StartError::Cpus { cpus: cpus.clone(), error })?;
        }
        let attributes = self.attributes;
        let refused = |error| StartError::Scheduling { attributes, error };
        attributes.apply().map_err(refused)?;
        // After Linux schedules the thread as it will: arbitrations of GPUs ask for that when a thread registers.
        let body = make().map_err(StartError::Body)?;
        let (Trigger::Source(graph, node, _) | Trigger::Tokens(graph, node, _)) = &self.trigger else {
            return Ok((body, None));
        };
        let mut node = graph.claim(&graph.spec().graph().nodes[*node].name).map_err(StartError::Claim)?;
        if attributes.boosts() {
            node.schedule_by(attributes).map_err(|error| refused(error.error))?;
        }
        Ok((body, Some(node)))
    }

    /// Executes all jobs, the first no earlier than `start`, unless the worker is stopped. A worker that fails stops all.
    fn run<B: Body>(self, body: &mut B, mut node: Option<Node>, start: Instant) -> Result<(), B::Error> {
        let stop = StopAtPanic(self.stop);
        let outcome = match (self.trigger, &mut node) {
            (Trigger::Timer(releases), _) => execute_timed(body, releases, start, &stop.0),
            (Trigger::Source(graph, position, releases), Some(node)) => {
                // A worker that takes the place of one that was killed goes on where that ended.
                let done = usize::try_from(graph.status(position).completed).unwrap_or(usize::MAX);
                execute_source(body, node, Box::new(releases.skip(done)), start, &stop.0)
            }
            (Trigger::Tokens(_, _, releasing), Some(node)) => execute_node(body, node, releasing, start, &stop.0),
            (Trigger::Calls(calls), _) => execute_called(body, &calls),
            (Trigger::Source(..) | Trigger::Tokens(..), None) => unreachable!("a worker of a node has claimed it"),
        };
        let outcome = match outcome {
            Ok(()) | Err(Interrupted::Stopped) => Ok(()),
            Err(Interrupted::Failed(error)) => {
                stop.0.stop();
                Err(error)
            }
        };
        // Its consumers end when they have used what it produced.
        node.into_iter().for_each(Node::terminate);
        outcome
    }
}

fn execute_timed<B: Body>(
    body: &mut B,
    releases: ReleaseTimes,
    start: Instant,
    stop: &StopSignal,
) -> Result<(), Interrupted<B::Error>> {
    for Release { index, at, deadline } in releases {
        let deadline = after(start, deadline);
        if !body.await_release(after(start, at), deadline, stop)? {
            return Err(Interrupted::Stopped);
        }
        body.execute(Job::Timer { index, deadline })?;
    }
    Ok(())
}

fn execute_called<B: Body>(body: &mut B, calls: &Receiver<Call>) -> Result<(), Interrupted<B::Error>> {
    while let Ok(Call { index, deadline }) = calls.recv() {
        body.execute(Job::Timer { index, deadline })?;
    }
    Ok(())
}

fn execute_source<B: Body>(
    body: &mut B,
    node: &mut Node,
    releases: ReleaseTimes,
    start: Instant,
    stop: &StopSignal,
) -> Result<(), Interrupted<B::Error>> {
    // A graph with a recorder knows the releases. Of one without, this thread has to wait for them.
    let is_timed = node.set_releasing(Releasing::OnTime).is_ok();
    body.begin_node(start);
    for Release { at, .. } in releases {
        if !is_timed && !stop.sleep_until_release(after(start, at)) || !execute_next(body, node)? {
            break;
        }
    }
    Ok(())
}

fn execute_node<B: Body>(
    body: &mut B,
    node: &mut Node,
    releasing: Releasing,
    start: Instant,
    stop: &StopSignal,
) -> Result<(), Interrupted<B::Error>> {
    // Without a recorder there are no releases to wait for.
    let _ = node.set_releasing(releasing);
    // Tokens from the start arrive then, too.
    if !body.begin_node(start) && !stop.sleep_until_start(start) {
        return Err(Interrupted::Stopped);
    }
    while execute_next(body, node)? {}
    Ok(())
}

/// Waits for the tokens of the node's next job, and for room, and executes it. Answers whether there was one.
fn execute_next<B: Body>(body: &mut B, node: &mut Node) -> Result<bool, Interrupted<B::Error>> {
    if !body.await_node(node)? {
        return Ok(false);
    }
    let job = loop {
        match node.wait() {
            Ok(job) => break job,
            // Its producers have ended, or it was ended from outside.
            Err(WaitError::Terminated { .. }) => return Ok(false),
            // The process of another node was killed. Either a new one claims the node, or the graph ends.
            Err(WaitError::Lost { .. } | WaitError::TimedOut { .. }) => {}
            Err(error @ WaitError::Unreachable { .. }) => return Err(Interrupted::Failed(error.into())),
        }
    };
    body.execute(Job::Node(job))?;
    body.after_job(node)?;
    Ok(true)
}

impl Started {
    /// Lets it begin: time 0 is `start`.
    pub fn begin(&self, start: Instant) {
        // If it is over already, there is nothing to begin.
        self.begin.iter().for_each(|begin| _ = begin.send(start));
    }

    /// The number of its thread in Linux.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether its thread has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until it is over. A worker that did not begin lets go of its node.
    ///
    /// # Errors
    /// Why it could not go on.
    pub fn join(mut self) -> Result<(), String> {
        self.wait()
    }

    /// Leaves it behind, if it cannot end: it stays until the process ends.
    pub(crate) fn abandon(mut self) {
        self.begin = None;
        drop(self.thread.take());
    }

    fn wait(&mut self) -> Result<(), String> {
        self.begin = None;
        let ended = self.thread.take().map_or(Ok(Ok(())), JoinHandle::join);
        ended.unwrap_or_else(|_| Err("a thread panicked".to_owned()))
    }
}

impl Drop for Started {
    /// No worker outlives what started it; one that has begun is to be stopped before.
    fn drop(&mut self) {
        if forks() != self.forks {
            // A child made by `fork` has no such thread, and is not to tell it anything.
            std::mem::forget((self.begin.take(), self.thread.take()));
            return;
        }
        let _ = self.wait();
    }
}

/// Time `at` of a run that begins at `start`.
fn after(start: Instant, at: Instant) -> Instant {
    start.saturating_add(Nanos(at.0))
}

/// Stops all workers if this one panics: the others would wait for it.
struct StopAtPanic(Arc<StopSignal>);

impl Drop for StopAtPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

impl std::fmt::Debug for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trigger::Timer(_) => f.debug_tuple("Timer").finish_non_exhaustive(),
            Trigger::Calls(_) => f.debug_tuple("Calls").finish_non_exhaustive(),
            Trigger::Source(_, node, _) => f.debug_tuple("Source").field(node).finish_non_exhaustive(),
            Trigger::Tokens(_, node, releasing) => f.debug_tuple("Tokens").field(node).field(releasing).finish(),
        }
    }
}
