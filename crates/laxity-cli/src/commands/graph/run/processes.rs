//! A graph carried out by processes, one a node, which this one starts and looks after.
//!
//! Each executes this program with the command that [`super::member`] is. Its orders go to its standard input, and then
//! the start; its standard output is the journal of its node, and what it writes to standard error is read when it ends.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use laxity_graph::{Graph, Ownership};
use laxity_model::Instant;
use laxity_sys::journal::Journal;
use laxity_sys::process;

use super::crew::Crew;
use super::orders::Orders;
use super::worker::pause;
use crate::interrupt::Interrupt;

/// Processes, one a node.
pub struct Processes<'a> {
    folder: &'a Path,
    graph: Graph,
    orders: &'a [Orders],
    journals: Vec<Journal>,
    /// Those that are not over.
    members: Vec<Option<Member>>,
    restart: bool,
    start: Option<Instant>,
    losses: Vec<u64>,
    is_broken: bool,
    is_stopped: bool,
}

struct Member {
    child: Child,
    /// Where it learns of the start.
    orders: Option<ChildStdin>,
}

impl<'a> Processes<'a> {
    /// Starts a process for each node of `graph`, whose name is in `folder`, and waits until each has its node.
    ///
    /// # Errors
    /// Which node cannot be carried out, and why.
    pub fn start(
        folder: &'a Path,
        graph: &Graph,
        orders: &'a [Orders],
        journals: Vec<Journal>,
        restart: bool,
        interrupt: &Interrupt,
    ) -> Result<Processes<'a>, String> {
        let nodes = orders.len();
        let mut processes = Processes {
            folder,
            graph: graph.clone(),
            orders,
            journals,
            members: Vec::with_capacity(nodes),
            restart,
            start: None,
            losses: vec![0; nodes],
            is_broken: false,
            is_stopped: false,
        };
        for node in 0..nodes {
            let member = processes.launch(node)?;
            processes.members.push(Some(member));
        }
        while !interrupt.is_requested() && !processes.are_ready()? {
            pause();
        }
        Ok(processes)
    }

    fn launch(&self, node: usize) -> Result<Member, String> {
        let name = self.name(node);
        let failed = |error: std::io::Error| format!("node {name}: cannot start a process: {error}");
        let mut command = Command::new("/proc/self/exe");
        command.arg0("laxity").arg("graph").arg("--folder").arg(self.folder).arg("member");
        command.arg(format!("--graph={}", self.graph.spec().graph().name)).arg(format!("--node={name}"));
        command.arg(format!("--parent={}", std::process::id()));
        let journal = self.journals[node].share().map_err(failed)?;
        command.stdin(Stdio::piped()).stdout(journal).stderr(Stdio::piped());
        // Ctrl-C is for this process, which then ends the others.
        let mut child = command.process_group(0).spawn().map_err(failed)?;
        let mut orders = child.stdin.take();
        if let Some(orders) = &mut orders {
            let text = serde_json::to_string(&self.orders[node]).expect("numbers and texts are JSON");
            // If it ended already, that is found out elsewhere, with the reason.
            let _ = writeln!(orders, "{text}");
        }
        Ok(Member { child, orders })
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

    /// The process of `node` ended.
    fn part_with(&mut self, node: usize, mut member: Member, status: ExitStatus, tell: &mut dyn FnMut(String)) {
        // One that is killed when its node has ended takes nothing with it.
        let is_killed = status.signal().is_some();
        if status.success() || self.is_stopped || (is_killed && self.graph.status(node).has_terminated) {
            return;
        }
        self.losses[node] += 1;
        let what = format!("node {}: {}", self.name(node), reason(&mut member, status));
        // What ends by itself with an error would do so again.
        if self.restart && is_killed {
            match self.launch(node) {
                Ok(mut member) => {
                    tell(format!("{what}; process {} goes on", member.child.id()));
                    self.start.iter().for_each(|&start| member.begin(start));
                    self.members[node] = Some(member);
                    return;
                }
                Err(error) => tell(error),
            }
        }
        let way_out = if is_killed && !self.restart { " (--restart would start another)" } else { "" };
        tell(format!("{what}; the graph ends{way_out}"));
        self.is_broken = true;
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

impl Crew for Processes<'_> {
    fn begin(&mut self, start: Instant) {
        self.start = Some(start);
        self.members.iter_mut().flatten().for_each(|member| member.begin(start));
    }

    fn look_after(&mut self, tell: &mut dyn FnMut(String)) -> bool {
        for node in 0..self.members.len() {
            let Some(member) = &mut self.members[node] else { continue };
            // That a child of ours cannot be waited for would be news; it is looked at again.
            let Ok(Some(status)) = member.child.try_wait() else { continue };
            if let Some(member) = self.members[node].take() {
                self.part_with(node, member, status, tell);
            }
        }
        self.members.iter().any(Option::is_some)
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.end_graph();
        for member in self.members.iter_mut().flatten() {
            // One that has not begun ends when nothing more can come.
            member.orders = None;
            // It was not waited for, so the number is still its own.
            let _ = process::ask_to_end(member.child.id());
        }
    }

    fn losses(&self) -> &[u64] {
        &self.losses
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }
}

impl Drop for Processes<'_> {
    /// No process outlives the run, also if that cannot begin.
    fn drop(&mut self) {
        self.stop();
        for member in self.members.iter_mut().flatten() {
            let _ = member.child.wait();
        }
    }
}

impl Member {
    fn begin(&mut self, start: Instant) {
        if let Some(mut orders) = self.orders.take() {
            let _ = writeln!(orders, "{}", start.0);
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
