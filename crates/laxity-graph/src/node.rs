//! A claimed node: waiting for its jobs, and completing them.

mod next;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::{Instant, Nanos};
use laxity_policy::graph::Arrival;
use laxity_sys::scheduling;

use crate::flags::{TOKEN_SENDING, TOKEN_WAIT};
use crate::graph::{ClaimError, Membership};
use crate::hooks::{self, HookError, Hooks};
use crate::objects::{ObjectInputs, ObjectOutputs, ObjectPorts};
use crate::owner::Owner;
use crate::parking;
use crate::peer_progress::{self, PeerProgress, look, spin_until};
use crate::poll::PollBell;
use crate::registers::Registers;
use crate::releases::{NoRecorder, Releases, Releasing};
use crate::ring::{Inputs, Outputs, Ports};
use crate::shared::Shared;
use crate::step;
use crate::wait_error::WaitError;

/// A claimed node. Dropping it releases the node; in the middle of a job that counts as a loss.
#[derive(Debug)]
pub struct Node {
    membership: Arc<Membership>,
    node: usize,
    owner: Owner,
    /// The job that was begun before this claim.
    interrupted: Option<u64>,
    /// The job that comes next, or was begun: as many are complete, which the owner alone writes.
    index: u64,
    /// Jobs below this one may run without another look, by what was seen of all peers.
    ready: u64,
    /// Whether a wait of this claim answered with a job that is not complete.
    is_begun: bool,
    /// What is known of that job.
    begun: Begun,
    /// For each condition what was seen of its peer last.
    peers: Vec<PeerProgress>,
    /// Whether the wait that ran out of looks last got what it waited for without suspending.
    spins: bool,
    ports: Ports,
    objects: ObjectPorts,
    registers: Registers,
    /// How long to look before parking.
    spin: Nanos,
    /// If it polls.
    pub(crate) bell: Option<PollBell>,
    /// If the graph has a recorder.
    releases: Option<Releases>,
    hooks: Option<Box<dyn Hooks>>,
    /// Whether a job that completes may have to wake two consumers or more.
    has_consumers: bool,
}

/// A job that began.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    is_resumed: bool,
    /// If the graph has a recorder.
    release: Option<Instant>,
}

/// How long a spinning node leaves a peer alone that is just ahead of it: some transfers of a cache line between far CPUs.
const LEAD: Nanos = Nanos(300);

/// A job that has its tokens, and room for what it produces. Dropped without [`Job::complete`] it has not been: its
/// tokens are still there, and the next wait answers with the same job.
#[derive(Debug)]
pub struct Job<'a> {
    node: &'a mut Node,
}

impl Node {
    pub(crate) fn new(membership: Arc<Membership>, node: usize, owner: Owner) -> Result<Self, ClaimError> {
        let shared = &membership.shared;
        let completed = shared.completed(node);
        let interrupted = (shared.started(node) > completed).then_some(completed);
        let peers = shared.conditions(node).iter().map(|condition| PeerProgress::first(&condition.rule)).collect();
        let ports = Ports::new(shared, node);
        let objects = ObjectPorts::new(shared, node);
        let registers = Registers::new(shared, node);
        let releases = (shared.recorded() != 0).then(|| Releases::of(shared, node));
        // Its last owner may have been killed while they were set.
        shared.flags(node).store(0, Ordering::Relaxed);
        let has_consumers = hooks::consumers(&shared.spec, node).len() > 1;
        let mut node = Node {
            node,
            owner,
            interrupted,
            index: completed,
            ready: 0,
            is_begun: false,
            begun: Begun::default(),
            peers,
            spins: false,
            ports,
            objects,
            registers,
            spin: Nanos::ZERO,
            bell: None,
            releases,
            hooks: None,
            has_consumers,
            membership,
        };
        // Its last owner may have had one.
        node.note_bell(0);
        // If that fails the node is dropped, and so released.
        node.ports.links.open(&node.membership.shared, &node.membership.channels, node.node)?;
        node.note_cpu();
        Ok(node)
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared {
        &self.membership.shared
    }

    /// Its position in the graph.
    pub fn position(&self) -> usize {
        self.node
    }

    /// The job that a former owner had begun and not completed, and that this one therefore gets. Effects of that
    /// owner outside the graph may have happened already.
    pub fn interrupted(&self) -> Option<u64> {
        self.interrupted
    }

    /// From now on a wait looks for `span` before it suspends, if all that it waits for was last seen on other CPUs:
    /// about as long as a wake-up takes, for threads that are kept on CPUs of their own. Nothing, at first.
    pub fn spin_for(&mut self, span: Nanos) {
        self.spin = span;
        self.spins = false;
    }

    /// From now on jobs are released as `releasing` says: [`Releasing::Early`], as at first, or
    /// [`Releasing::OnTime`], when a wait ends no sooner than the job's release. The first source for which that is said
    /// [starts](crate::Graph::start) the graph now, unless it was started.
    ///
    /// # Errors
    /// [`NoRecorder`] if the graph knows no releases.
    pub fn set_releasing(&mut self, releasing: Releasing) -> Result<(), NoRecorder> {
        let shared = &self.membership.shared;
        let graph = || shared.spec.graph().name.clone();
        let releases = self.releases.as_mut().ok_or_else(|| NoRecorder { graph: graph() })?;
        releases.set_releasing(shared, releasing);
        Ok(())
    }

    /// From now on the calling thread runs the node, and `hooks` hear of it what schedulers should know. However the
    /// thread is scheduled then, it stays so when it releases the node.
    ///
    /// # Errors
    /// [`HookError`] if Linux refuses; the hooks then hear nothing.
    pub fn schedule_by(&mut self, mut hooks: impl Hooks + 'static) -> Result<(), HookError> {
        hooks.enter().map_err(|error| {
            let node = self.shared().name(self.node);
            HookError { node, hooks: hooks.describe(), error }
        })?;
        self.hooks = Some(Box::new(hooks));
        Ok(())
    }

    /// Waits for the next job, for ever if need be.
    ///
    /// # Errors
    /// [`WaitError`], but no time-out.
    #[inline]
    pub fn wait(&mut self) -> Result<Job<'_>, WaitError> {
        self.wait_until(Instant::NEVER)
    }

    /// Waits for the next job for `span`.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn wait_for(&mut self, span: Nanos) -> Result<Job<'_>, WaitError> {
        self.wait_until(step::now().saturating_add(span))
    }

    /// The next job if it may run now.
    ///
    /// # Errors
    /// [`WaitError`].
    pub fn try_wait(&mut self) -> Result<Job<'_>, WaitError> {
        self.wait_until(Instant::ZERO)
    }

    /// Waits for the next job until `deadline`, an instant of the monotonic clock: for tokens on all inbound edges and
    /// room on all outbound ones, with one suspension.
    ///
    /// # Errors
    /// [`WaitError`]. Whatever it is, no token is lost, and one may wait again.
    #[inline]
    pub fn wait_until(&mut self, deadline: Instant) -> Result<Job<'_>, WaitError> {
        // Most jobs of a node that is behind are known to be ready, and pay for nothing but their beginning.
        if self.index >= self.ready {
            self.await_ready(deadline)?;
        }
        self.begin(deadline)
    }

    /// Waits until the next job may run.
    #[inline(never)]
    fn await_ready(&mut self, deadline: Instant) -> Result<(), WaitError> {
        let (shared, node, index, peers) = (&self.membership.shared, self.node, self.index, &mut self.peers);
        if self.spins
            && deadline != Instant::ZERO
            && peers.iter().any(|progress| progress.jobs <= index && progress.is_close_behind())
        {
            let _: Option<()> = spin_until(deadline.min(step::now().saturating_add(LEAD)), || None);
        }
        let links = &mut self.ports.links;
        let mut look = || look(shared, node, index, peers, links, deadline).transpose();
        let mut found = look();
        if found.is_none() && deadline != Instant::ZERO {
            if !self.spin.is_zero() && peer_progress::are_elsewhere(shared, node, index) {
                found = spin_until(deadline.min(step::now().saturating_add(self.spin)), &mut look);
            }
            self.spins = found.is_some();
            if found.is_none() {
                found = park(shared, node, deadline, &mut look);
                note_cpu(shared, node);
            }
        }
        if let Some(bell) = &mut self.bell {
            bell.after_wait(shared, node, &mut found, look);
        }
        found.unwrap_or_else(|| Err(WaitError::TimedOut { node: shared.name(node), in_flight: None }))?;
        // Bells and channels of Linux want to be looked after for each job.
        if self.bell.is_none() && self.ports.links.outboxes.is_empty() {
            self.ready = self.peers.iter().map(|progress| progress.jobs).min().unwrap_or(u64::MAX);
        }
        Ok(())
    }

    /// The next wait looks at its peers again.
    pub(crate) fn look_each_time(&mut self) {
        self.ready = 0;
    }

    /// The job that a wait answered with and that is not complete, as it is: for languages in which a [`Job`] cannot
    /// borrow its node from its beginning to its end.
    pub fn job(&mut self) -> Option<Job<'_>> {
        self.is_begun.then_some(Job { node: self })
    }

    /// The next job, all of whose tokens and room are there, begins: at its release, if it has to wait for that.
    #[inline]
    fn begin(&mut self, deadline: Instant) -> Result<Job<'_>, WaitError> {
        if !self.ports.links.inboxes.is_empty() {
            self.fetch(deadline)?;
        }
        let arrival = if self.releases.is_some() { Some(self.await_release(deadline)?) } else { None };
        let Some(is_resumed) = self.membership.shared.begin(self.node, self.index) else { return Err(self.ended()) };
        self.begun = Begun { is_resumed, release: None };
        if let Some((arrival, now)) = arrival {
            self.note_begin(arrival, now);
        }
        self.ports.begin(&self.membership.shared, self.index);
        if !self.registers.is_empty() {
            self.registers.begin(&self.membership.shared);
        }
        if self.hooks.is_some() {
            self.tell_hooks();
        }
        self.is_begun = true;
        Ok(Job { node: self })
    }

    /// Takes the messages of the next job out of channels of Linux.
    #[inline(never)]
    fn fetch(&mut self, deadline: Instant) -> Result<(), WaitError> {
        let shared = &self.membership.shared;
        let in_flight = |edge| WaitError::TimedOut { node: shared.name(self.node), in_flight: Some(shared.ends(edge)) };
        self.ports.links.fetch(shared, self.index, deadline).map_err(in_flight)
    }

    /// The release of the next job, there being a recorder, and now: not before the release if jobs have to wait for it.
    #[inline(never)]
    fn await_release(&mut self, deadline: Instant) -> Result<(Arrival, Instant), WaitError> {
        let shared = &self.membership.shared;
        let releases = self.releases.as_ref().expect("asked for where there is a recorder");
        let mut now = step::now();
        let arrival = releases.arrival(shared, self.index, now);
        if releases.is_too_early(arrival, now) {
            now = await_release(shared, self.node, arrival.at, deadline)?;
        }
        Ok((arrival, now))
    }

    /// The job has begun.
    #[inline(never)]
    fn tell_hooks(&mut self) {
        let (shared, node, release) = (&self.membership.shared, self.node, self.begun.release);
        let deadline = release.map(|release| deadline_of(shared, node, release));
        self.hooks.iter_mut().for_each(|hooks| hooks.begin(release, deadline));
    }

    /// The job was begun that has this release.
    #[inline(never)]
    fn note_begin(&mut self, arrival: Arrival, now: Instant) {
        self.membership.shared.record_begin(self.node, self.index, arrival, now, current_cpu());
        self.releases.iter_mut().for_each(|releases| releases.begun(self.index, arrival));
        self.begun.release = Some(arrival.at);
    }

    #[cold]
    fn ended(&self) -> WaitError {
        WaitError::Terminated { node: self.shared().name(self.node), edge: None }
    }

    /// Job `index` is complete, of a node that may have to wake several consumers.
    #[inline(never)]
    fn tell_consumers(&mut self, index: u64) {
        let set = |node: &Node, flags| node.shared().flags(node.node).store(flags, Ordering::Relaxed);
        set(self, TOKEN_SENDING);
        self.hooks.iter_mut().for_each(|hooks| hooks.boost());
        self.publish(index);
        // Before the priority: a thread that loses that may be preempted at once.
        set(self, 0);
        self.hooks.iter_mut().for_each(|hooks| hooks.restore());
    }

    /// Threads move when they are woken, if ever.
    fn note_cpu(&self) {
        note_cpu(self.shared(), self.node);
    }

    /// Ends this node: its consumers end when they have used what it produced.
    pub fn terminate(self) {
        self.shared().terminate(self.node);
    }

    /// Lets go of the node, so that someone else can claim it.
    pub fn release(self) {}
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.membership.is_ours() {
            self.note_bell(0);
            self.ports.links.close(&self.membership.shared);
            self.shared().release(self.node, self.owner);
        }
    }
}

/// Suspends until `look` finds something; until the deadline.
fn park<T>(shared: &Shared, node: usize, deadline: Instant, look: impl FnMut() -> Option<T>) -> Option<T> {
    shared.flags(node).store(TOKEN_WAIT, Ordering::Relaxed);
    let found = parking::wait_until(&shared.parked(node), deadline, look);
    shared.flags(node).store(0, Ordering::Relaxed);
    found
}

/// Suspends until `release`, and answers with the time. Tokens that come meanwhile wake it, as its job could run, and it
/// goes on waiting.
fn await_release(shared: &Shared, node: usize, release: Instant, deadline: Instant) -> Result<Instant, WaitError> {
    let has_ended = || shared.has_terminated(node).then_some(());
    if park(shared, node, release.min(deadline), has_ended).is_some() {
        return Err(WaitError::Terminated { node: shared.name(node), edge: None });
    }
    let now = step::now();
    if now < release { Err(WaitError::TimedOut { node: shared.name(node), in_flight: None }) } else { Ok(now) }
}

fn deadline_of(shared: &Shared, node: usize, release: Instant) -> Instant {
    release.saturating_add(shared.spec.plan().nodes()[node].deadline)
}

/// Job `index` of `node` completes, there being a recorder.
#[inline(never)]
fn note_completion(shared: &Shared, node: usize, index: u64) {
    shared.record_completion(node, index, step::now(), current_cpu());
}

/// As recorders have it.
fn current_cpu() -> u16 {
    u16::try_from(scheduling::current_cpu()).unwrap_or(u16::MAX)
}

fn note_cpu(shared: &Shared, node: usize) {
    let cpu = u32::try_from(scheduling::current_cpu()).map_or(0, |cpu| cpu.saturating_add(1));
    shared.segment.u32(shared.words(node).cpu).store(cpu, Ordering::Relaxed);
}

impl Job<'_> {
    /// Its number, from 0.
    pub fn index(&self) -> u64 {
        self.node.index
    }

    /// Whether it was begun before and not completed: by an owner that died or released the node, or because the job
    /// was dropped. Its inputs are as they were; objects that it changes in place may be half changed.
    pub fn is_resumed(&self) -> bool {
        self.node.begun.is_resumed
    }

    /// What its deadline is counted from: `r(j) = max(r(j - 1) + p, f)`, f being the completion that brought the last of
    /// its tokens, or a source's time (paper 003, section 5.2.3). Before now if the job is late, and after if it is
    /// released early. Nothing if the graph has no recorder.
    ///
    /// If the node is behind a producer by more jobs than the recorder is deep, f is forgotten, and the release is no
    /// later than by this rule; that of a first job is then when it begins.
    pub fn release(&self) -> Option<Instant> {
        self.node.begun.release
    }

    /// When it should be complete: its release and the node's relative deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.release().map(|release| deadline_of(self.node.shared(), self.node.node, release))
    }

    /// The messages it reads, and those it writes.
    #[inline]
    pub fn messages(&mut self) -> (Inputs<'_>, Outputs<'_>) {
        let Node { membership, ports, .. } = &mut *self.node;
        ports.messages(&membership.shared)
    }

    /// The data objects that it only reads, and those that it writes or changes.
    pub fn objects(&mut self) -> (ObjectInputs<'_>, ObjectOutputs<'_>) {
        let Node { membership, objects, index, .. } = &mut *self.node;
        objects.of_job(&membership.shared, *index)
    }

    /// As [`Job::messages`] and [`Job::objects`], at the same time.
    pub fn messages_and_objects(&mut self) -> ((Inputs<'_>, Outputs<'_>), (ObjectInputs<'_>, ObjectOutputs<'_>)) {
        let Node { membership, ports, objects, index, .. } = &mut *self.node;
        (ports.messages(&membership.shared), objects.of_job(&membership.shared, *index))
    }

    /// The latest-value edges at its node, and its rings and channels.
    pub(crate) fn registers(&mut self) -> (&mut Registers, &mut Ports, &Shared) {
        let Node { membership, registers, ports, .. } = &mut *self.node;
        (registers, ports, &membership.shared)
    }

    /// The rings and channels at its node.
    pub(crate) fn ports(&mut self) -> &mut Ports {
        &mut self.node.ports
    }

    pub(crate) fn object_inputs(&self) -> ObjectInputs<'_> {
        self.node.objects.inputs_of(self.node.shared(), self.node.index)
    }

    /// Message `number`, from 0, that came over `edge`: as [`Inputs::get`].
    ///
    /// # Errors
    /// [`MessageError`](crate::MessageError).
    #[inline]
    pub fn input(&mut self, edge: usize, number: u32) -> Result<&[u8], crate::MessageError> {
        self.messages().0.get(edge, number)
    }

    /// Message `number`, from 0, that goes over `edge`: as [`Outputs::get`].
    ///
    /// # Errors
    /// [`MessageError`](crate::MessageError).
    #[inline]
    pub fn output(&mut self, edge: usize, number: u32) -> Result<&mut [u8], crate::MessageError> {
        self.messages().1.into_message(edge, number)
    }

    /// Completes the job: what it read is gone, and what it wrote and its tokens are there for its consumers, all at
    /// once. Messages it did not ask for are empty.
    #[inline]
    pub fn complete(self) {
        let Job { node } = self;
        let index = node.index;
        node.interrupted = None;
        node.is_begun = false;
        node.index = index + 1;
        let shared = &node.membership.shared;
        node.ports.complete(shared, index);
        if !node.registers.is_empty() {
            node.registers.complete(shared, index);
        }
        if node.releases.is_some() {
            note_completion(shared, node.node, index);
        }
        if node.has_consumers {
            node.tell_consumers(index);
        } else if node.hooks.is_some() {
            node.publish(index);
        } else {
            shared.complete(node.node, index);
        }
    }
}
