//! Jobs that run the user's code: each step that has a time, and is not the GPU's, is a call.

use std::cell::RefCell;
use std::iter;
use std::sync::Arc;

use laxity_graph::{Inputs, LatestInputs, LatestOutputs, Outputs};
use laxity_model::{ExecutionTime, Instant, Nanos};
use laxity_plan::Op;
use laxity_policy::server::Budget;
use laxity_sys::own_code::{Frame, Head, StepKind, View, WARM_UP};

use super::{Cut, Holding, JobError, Jobs};
use crate::code::{Account, Code, Edges, Part, Watch};
use crate::plan::{CodeEdges, TaskPlan};

/// The code of a task.
pub(super) struct Calls {
    code: Box<dyn Code>,
    frame: Frame,
    edges: CodeEdges,
    watch: Arc<Watch>,
    /// For each step of the job which call it is, if it is one.
    steps: Vec<Option<u32>>,
    /// How long the messages are that the job wrote so far; none before its first call.
    lengths: Vec<usize>,
    release: Instant,
    deadline: Instant,
}

/// A way to the messages of the node's job.
pub(super) trait Exchange {
    fn exchange(&self, with: &mut With<'_>);

    /// Sets the length of the value that goes out over the latest-value edge at `edge`.
    fn truncate_latest(&self, edge: usize, length: usize);

    /// The memory of all messages stays where it is, for as long as the process lasts.
    fn keep_memory(&self);
}

/// Uses the messages and the latest values of a job.
type With<'w> = dyn FnMut((Inputs<'_>, Outputs<'_>), (LatestInputs<'_>, LatestOutputs<'_>)) + 'w;

impl Exchange for RefCell<&mut laxity_graph::Job<'_>> {
    fn exchange(&self, with: &mut With<'_>) {
        let mut job = self.borrow_mut();
        let (messages, latest) = job.messages_and_latest();
        with(messages, latest);
    }

    fn truncate_latest(&self, edge: usize, length: usize) {
        // The frame says no more than fits.
        let _ = self.borrow_mut().truncate_latest(edge, length);
    }

    fn keep_memory(&self) {
        self.borrow_mut().keep_memory();
    }
}

impl Calls {
    /// Those of `task`, if it has code, which is warmed up if it is to be. Made on the thread of the task.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn new(task: &TaskPlan, watch: Option<Arc<Watch>>) -> Result<Option<Calls>, String> {
        let (Some(bound), Some(watch)) = (&task.code, watch) else { return Ok(None) };
        let edges =
            Edges { inputs: task.edges.inputs().cloned().collect(), outputs: task.edges.outputs().cloned().collect() };
        let code = watch.during(Part::Before, || (bound.make)(&task.name, &edges))?;
        let frame = Frame::new(&task.name, edges.inputs, edges.outputs);
        let mut calls = Calls {
            code,
            frame,
            edges: task.edges.clone(),
            watch,
            steps: numbered(&task.ops),
            lengths: Vec::new(),
            release: Instant::ZERO,
            deadline: Instant::NEVER,
        };
        if bound.warm {
            calls.warm_up(&task.ops)?;
        }
        Ok(Some(calls))
    }

    /// Calls each step once, without messages.
    fn warm_up(&mut self, ops: &[Op]) -> Result<(), String> {
        let Calls { frame, code, watch, .. } = self;
        for (op, step) in ops.iter().zip(&self.steps) {
            let (Some(step), Some(kind)) = (*step, kind(op)) else { continue };
            let head = Head { job: WARM_UP, release_ns: 0, deadline_ns: u64::MAX, step, kind };
            let call = || frame.with(head, iter::empty(), iter::empty(), &[], |view| code.call(view));
            watch
                .during(Part::Before, call)
                .map_err(|what| format!("its code failed when it was warmed up: {what}"))?;
        }
        Ok(())
    }

    /// A job begins.
    pub fn begin_job(&mut self, release: Instant, deadline: Instant) {
        (self.release, self.deadline) = (release, deadline);
        self.lengths.clear();
    }

    /// Calls the code for step `at` of job `index`, if that step is a call.
    fn call(
        &mut self,
        index: u32,
        (at, kind): (usize, StepKind),
        job: Option<&dyn Exchange>,
        account: &mut dyn Account,
    ) -> Result<(), String> {
        let Some(step) = self.steps[at] else { return Ok(()) };
        let head = Head { job: index.into(), release_ns: self.release.0, deadline_ns: self.deadline.0, step, kind };
        let Calls { frame, code, watch, lengths, edges, .. } = self;
        let mut call = |view: &mut View<'_>| watch.during(Part::Job(index), || code.call_charged(view, account));
        let Some(job) = job.filter(|_| !edges.is_empty()) else {
            return frame.with(head, iter::empty(), iter::empty(), &[], call);
        };
        let mut outcome = Ok(());
        job.exchange(&mut |(inputs, outputs), (latest_inputs, latest_outputs)| {
            let read = edges.inputs.iter().flat_map(|(edge, it)| (0..it.count).map(move |number| (*edge, number)));
            // A job sees as many messages as the plan says.
            let read = read.map(|(edge, number)| Some(inputs.get(edge, number).unwrap_or(&[])));
            let read = read.chain(latest_inputs.map(|(_, value)| value.map(|value| value.bytes)));
            let written = outputs.into_messages().chain(latest_outputs).map(|(_, message)| message);
            outcome = frame.with(head, read, written, lengths, &mut call);
        });
        if code.keeps_messages() {
            job.keep_memory();
        }
        lengths.clear();
        lengths.extend(frame.lengths());
        let messages: usize = edges.outputs.iter().map(|(_, it)| it.count as usize).sum();
        let (of_messages, of_latest) = lengths.split_at(messages.min(lengths.len()));
        job.exchange(&mut |(_, mut outputs), _| {
            let messages = edges.outputs.iter().flat_map(|(edge, it)| (0..it.count).map(move |number| (*edge, number)));
            for ((edge, number), &length) in messages.zip(of_messages) {
                // The frame says no more than fits.
                let _ = outputs.truncate(edge, number, length);
            }
        });
        for (&(edge, _), &length) in edges.latest_outputs.iter().zip(of_latest) {
            job.truncate_latest(edge, length);
        }
        outcome.and_then(|()| frame.too_long().map_or(Ok(()), |message| Err(message.to_string())))
    }

    /// There are no more jobs.
    pub fn end(self) -> Result<(), JobError> {
        let Calls { code, watch, .. } = self;
        watch.during(Part::After, || code.end()).map_err(|message| JobError::CodeEnd { message })
    }
}

impl Jobs {
    /// Uses the CPU for step `at`: by the user's code, or else for as long as is drawn.
    pub(super) fn use_cpu(
        &mut self,
        time: &ExecutionTime,
        at: usize,
        kind: StepKind,
        holding: Holding<'_>,
    ) -> Result<(), Cut> {
        if self.code.is_none() {
            return self.execute(self.draw(time, at));
        }
        let before = self.lend_budget();
        let outcome = self.call_code(at, kind, holding);
        self.take_budget_back(before)?;
        outcome
    }

    /// Calls the code of the task for step `at`.
    pub(super) fn call_code(&mut self, at: usize, kind: StepKind, holding: Holding<'_>) -> Result<(), Cut> {
        if self.stop.is_stopped() {
            return Err(Cut::Stopped);
        }
        let index = self.index;
        let Some(mut code) = self.code.take() else { return Ok(()) };
        let watch = Arc::clone(&code.watch);
        let mut account = OfJob { jobs: self, is_suspended: kind == StepKind::Suspend, watch, cut: None };
        let called = code.call(index, (at, kind), holding.job, &mut account);
        let cut = account.cut.take();
        self.code = Some(code);
        match cut {
            Some(cut) => Err(cut),
            None => Ok(called.map_err(|message| JobError::Code { index, message })?),
        }
    }
}

/// The budget of a job whose program executes for it.
struct OfJob<'a> {
    jobs: &'a mut Jobs,
    /// Whether the job is suspended meanwhile, and so not charged.
    is_suspended: bool,
    watch: Arc<Watch>,
    /// Why the job does not go on.
    cut: Option<Cut>,
}

impl Account for OfJob<'_> {
    fn left(&self) -> Option<Nanos> {
        // In a section it goes on without a budget.
        let budget = self.jobs.budget.as_ref().filter(|budget| !self.is_suspended && budget.throttled().is_none());
        budget.map(Budget::left)
    }

    fn charge(&mut self, used: Nanos) -> bool {
        self.jobs.charge(used);
        self.jobs.must_wait()
    }

    fn wait(&mut self) -> bool {
        self.cut = self.jobs.await_budget().err();
        self.cut.is_none()
    }

    fn begin_program(&mut self, pid: u32) {
        self.watch.begin_program(pid);
    }

    fn end_program(&mut self) -> bool {
        let was_ended = self.watch.end_program();
        if was_ended {
            self.cut.get_or_insert(Cut::Stopped);
        }
        was_ended
    }
}

/// For each of `ops` which call it is, if it is one: steps that take no time are there for the executor alone.
fn numbered(ops: &[Op]) -> Vec<Option<u32>> {
    let mut calls = 0;
    let number = |op: &Op| {
        let (Op::Run(time) | Op::NonPreemptive(time) | Op::Suspend(time)) = op else { return None };
        if time.wcet.is_zero() {
            return None;
        }
        calls += 1;
        Some(calls - 1)
    };
    ops.iter().map(number).collect()
}

fn kind(op: &Op) -> Option<StepKind> {
    match op {
        Op::Run(_) => Some(StepKind::Cpu),
        Op::NonPreemptive(_) => Some(StepKind::NonPreemptive),
        Op::Suspend(_) => Some(StepKind::Suspend),
        _ => None,
    }
}
