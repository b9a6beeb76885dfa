//! Workers that are processes, one a node, which this process starts and looks after.
//!
//! The standard input of a process gets its [orders](crate::member) and then the start; its standard output is its log; its
//! standard error is read when it ends.

use std::fmt;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use laxity_graph::{Graph, Ownership};
use laxity_model::Instant;
use laxity_sched::System;
use laxity_sys::{clock, process};

use crate::log::{self, Reader};
use crate::member;
use crate::plan::LivePlan;

/// How to start a process for each node.
pub struct ProcessOptions {
    /// The program that becomes the node of this name with [`Member`](crate::Member).
    pub command: Box<dyn Fn(&str) -> Command + Send>,
    /// A folder of a file system in memory, for logs; nothing there gets a name.
    pub folder: PathBuf,
    /// Whether another process takes the place of one that is killed.
    pub restarts: bool,
    /// Whether the user wants to end before all processes are ready.
    pub is_interrupted: Box<dyn Fn() -> bool + Send>,
}

/// Processes, one a node.
pub(crate) struct Processes {
    options: ProcessOptions,
    graph: Graph,
    /// For each node what its process is told, and the file of its log.
    orders: Vec<String>,
    logs: Vec<OwnedFd>,
    /// The processes that are not over.
    members: Vec<Option<Member>>,
    start: Option<Instant>,
    losses: Vec<u64>,
    state: State,
    /// Where Laxity's scheduler schedules them.
    trust: Option<Trust>,
}

/// Until when the logs of the processes have all that their scheduler decided: a member of the system that notices a death
/// decides what follows, and has no log.
#[derive(Debug)]
struct Trust {
    system: System,
    /// Until then no process had died.
    until: Instant,
    /// Whether one has.
    is_over: bool,
}

/// How the run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// A node was lost for good.
    Broken,
    Stopped,
}

#[derive(Debug)]
struct Member {
    child: Child,
    /// Where it learns of the start.
    input: Option<ChildStdin>,
}

/// Until processes are looked at again.
const LOOK: Duration = Duration::from_millis(20);

impl Processes {
    /// Starts a process for each node of the only graph of `plan`, and waits until each has its node. Answers with the
    /// logs, too.
    ///
    /// # Errors
    /// Which node cannot be executed, and why.
    pub fn start(
        plan: &LivePlan,
        graphs: &[Graph],
        options: ProcessOptions,
        system: Option<System>,
    ) -> Result<(Processes, Vec<Reader>), String> {
        if system.is_some() && options.restarts {
            // The members of a system that notice a death decide what follows from it, and have no log here.
            return Err(
                "under Laxity's scheduler no process takes the place of one that is killed, as a trace would lack \
                        what is decided meanwhile; leave out --restart, or leave out --scheduler laxity and have Linux \
                        schedule"
                    .to_owned(),
            );
        }
        let graph = graphs.first().expect("nodes are those of a graph").clone();
        let name = system.as_ref().map(System::name);
        let orders = plan.tasks.iter().map(|task| member::orders(task, name)).collect::<Result<Vec<_>, _>>()?;
        let no_log = |error| format!("cannot share memory with the process of each node: {error}");
        let logs =
            orders.iter().map(|_| log::shared_log(&options.folder)).collect::<Result<Vec<_>, _>>().map_err(no_log)?;
        let (logs, readers): (Vec<_>, Vec<_>) = logs.into_iter().unzip();
        let nodes = orders.len();
        let (members, losses) = (Vec::with_capacity(nodes), vec![0; nodes]);
        let trust = system.map(|system| Trust { system, until: Instant::ZERO, is_over: false });
        let mut processes =
            Processes { options, graph, orders, logs, members, start: None, losses, state: State::Running, trust };
        for node in 0..nodes {
            let member = processes.launch(node)?;
            processes.members.push(Some(member));
        }
        while !(processes.options.is_interrupted)() && !processes.are_ready()? {
            thread::sleep(LOOK);
        }
        Ok((processes, readers))
    }

    fn launch(&self, node: usize) -> Result<Member, String> {
        let name = self.name(node);
        let failed = |error: std::io::Error| format!("node {name}: cannot start a process: {error}");
        let log = self.logs[node].try_clone().map_err(failed)?;
        let mut command = (self.options.command)(name);
        command.stdin(Stdio::piped()).stdout(log).stderr(Stdio::piped());
        // Ctrl-C is for this process, which then ends the others.
        let mut child = command.process_group(0).spawn().map_err(failed)?;
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            // If it ended already, that is found out elsewhere, with the reason.
            let _ = writeln!(input, "{}", self.orders[node]);
        }
        Ok(Member { child, input })
    }

    fn are_ready(&mut self) -> Result<bool, String> {
        let mut are_ready = true;
        for node in 0..self.members.len() {
            let Some(member) = &mut self.members[node] else { continue };
            if let Ok(Some(status)) = member.child.try_wait() {
                return Err(format!("node {}: {}", self.graph.spec().graph().nodes[node].name, reason(member, status)));
            }
            let ours = Ownership::Claimed { pid: member.child.id() };
            are_ready &= self.graph.status(node).ownership == ours;
        }
        Ok(are_ready)
    }

    /// The numbers of those that run.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.members.iter().flatten().map(|member| member.child.id())
    }

    /// Lets all begin; each has its node.
    pub fn begin(&mut self, start: Instant) {
        self.start = Some(start);
        self.members.iter_mut().flatten().for_each(|member| member.begin(start));
    }

    /// Takes note of processes that ended: what its user should be warned of goes to `warnings`, and `has_died` is told
    /// of nodes whose process was killed.
    pub fn look_after(&mut self, warnings: &mut Vec<String>, has_died: &mut dyn FnMut(usize)) {
        for node in 0..self.members.len() {
            let Some(member) = &mut self.members[node] else { continue };
            // A child of ours can be waited for; if not, it is tried again.
            let Ok(Some(status)) = member.child.try_wait() else { continue };
            has_died(node);
            if let Some(member) = self.members[node].take() {
                self.part_with(node, member, status, warnings);
            }
        }
    }

    /// Until when the logs have all that happened.
    pub fn known_until(&mut self) -> Instant {
        let Some(trust) = &mut self.trust else { return Instant::NEVER };
        let now = clock::now();
        // A task that is there now has not been ended before. One that is gone is that of a process which ended, and it
        // will be seen how.
        let are_there = || {
            let snapshot = trust.system.snapshot().ok()?;
            let is_there = |node: usize| snapshot.tasks.iter().any(|task| task.id.index() == node);
            let living = self.members.iter().enumerate().filter(|(_, member)| member.is_some());
            Some({ living }.all(|(node, _)| is_there(node)))
        };
        if !trust.is_over && are_there() == Some(true) {
            trust.until = now;
        }
        trust.until
    }

    /// Whether the logs lack what happened after that.
    pub fn lack_the_end(&self) -> bool {
        self.trust.as_ref().is_some_and(|trust| trust.is_over)
    }

    /// Whether all processes are over.
    pub fn are_over(&self) -> bool {
        self.members.iter().all(Option::is_none)
    }

    /// For each node how often its process was lost in the middle of the run.
    pub fn losses(&self) -> &[u64] {
        &self.losses
    }

    /// Whether a node was lost for good, and the graph therefore ended.
    pub fn is_broken(&self) -> bool {
        self.state == State::Broken
    }

    /// Ends all of them, whatever they are doing.
    pub fn stop(&mut self) {
        if self.state == State::Running {
            self.state = State::Stopped;
        }
        self.end_graph();
        for member in self.members.iter_mut().flatten() {
            // One that has not begun ends when nothing more can come.
            member.input = None;
            // It was not waited for, so the number is still its own.
            let _ = process::ask_to_end(member.child.id());
        }
    }

    /// Waits until all are over.
    pub fn wait(&mut self) {
        for member in self.members.iter_mut().flatten() {
            let _ = member.child.wait();
        }
    }

    /// The process of `node` ended.
    fn part_with(&mut self, node: usize, mut member: Member, status: ExitStatus, warnings: &mut Vec<String>) {
        // One that is killed when its node has ended takes nothing with it.
        let is_killed = status.signal().is_some();
        let is_asked = self.state == State::Stopped;
        if let Some(trust) = self.trust.as_mut().filter(|_| is_killed) {
            trust.is_over = true;
        }
        if status.success() || is_asked || (is_killed && self.graph.status(node).has_terminated) {
            return;
        }
        self.losses[node] += 1;
        let what = format!("node {}: {}", self.name(node), reason(&mut member, status));
        // A process that ended by itself with an error would do so again.
        if self.options.restarts && is_killed {
            match self.launch(node) {
                Ok(mut member) => {
                    warnings.push(format!("{what}; process {} goes on", member.child.id()));
                    self.start.iter().for_each(|&start| member.begin(start));
                    self.members[node] = Some(member);
                    return;
                }
                Err(error) => warnings.push(error),
            }
        }
        let way_out = if is_killed && !self.options.restarts { " (--restart would start another)" } else { "" };
        warnings.push(format!("{what}; the graph ends{way_out}"));
        self.state = State::Broken;
        self.end_graph();
    }

    /// Ends all nodes; those in the middle of a job still complete it.
    fn end_graph(&self) {
        (0..self.members.len()).for_each(|node| self.graph.terminate(node));
    }

    fn name(&self, node: usize) -> &str {
        &self.graph.spec().graph().nodes[node].name
    }
}

impl Drop for Processes {
    /// No process outlives the run, also if that cannot begin.
    fn drop(&mut self) {
        self.stop();
        self.wait();
    }
}

impl Member {
    fn begin(&mut self, start: Instant) {
        if let Some(mut input) = self.input.take() {
            let _ = writeln!(input, "{}", start.0);
        }
    }
}

/// How a process ended, in its own words if it had any.
fn reason(member: &mut Member, status: ExitStatus) -> String {
    let mut words = String::new();
    if let Some(errors) = &mut member.child.stderr {
        let _ = errors.read_to_string(&mut words);
    }
    let pid = member.child.id();
    match status.signal() {
        // As Linux and its tools call it: `signal: 9 (SIGKILL)`.
        Some(_) => format!("process {pid} was killed by {}", status.to_string().replace("signal: ", "signal ")),
        None => match words.trim().trim_start_matches("error: ") {
            "" => format!("process {pid} failed: {status}"),
            words => words.to_owned(),
        },
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Processes { members, losses, state, .. } = self;
        f.debug_struct("Processes")
            .field("members", members)
            .field("losses", losses)
            .field("state", state)
            .finish_non_exhaustive()
    }
}
