//! Runs: a workload is simulated, and what is asked for is measured on the way; nothing is traced.

use laxity_model::{Instant, InterruptHandling, Nanos, Workload};
use laxity_plan::Plan;
use laxity_sim::{Simulator, pace};
use laxity_trace::metrics::Inversions;
use laxity_trace::{Event, Sink, TraceHeader};

use super::responses::Fold;
use super::task_sets::{self, task_set};
use super::{Definition, InversionLengths, Measured, RuntimeOptions, System, TaskResponses, table2};
use crate::StudyError;

/// The study with its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuntimeStudy {
    options: RuntimeOptions,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was asked for.
    OnRequest,
    /// The workload cannot be drawn or simulated.
    Error(StudyError),
}

impl RuntimeStudy {
    /// The study under `options`.
    pub fn new(options: RuntimeOptions) -> Self {
        RuntimeStudy { options }
    }

    /// Its options.
    pub fn options(&self) -> &RuntimeOptions {
        &self.options
    }

    /// The task set of total utilization `point`, in thousandths of a CPU, under C-EDF, the k-FMLP and `handling`.
    ///
    /// # Errors
    /// If no such task set can be drawn.
    pub fn task_set(&self, point: u64, handling: InterruptHandling) -> Result<Workload, StudyError> {
        task_set(point, handling, &self.options)
    }

    /// The workload of Table II as it runs on `system` in that repetition.
    pub fn table2(&self, system: &System, repetition: u64) -> Workload {
        table2::table2(system, repetition, &self.options)
    }

    /// Runs the task set of that utilization for `duration` and measures priority inversions. `stop` is asked now and
    /// then.
    ///
    /// # Errors
    /// If no such task set can be drawn, or `stop` says so.
    pub fn inversions(
        &self,
        point: u64,
        handling: InterruptHandling,
        duration: Nanos,
        stop: impl Fn() -> bool,
    ) -> Result<Measured, Stopped> {
        let workload = self.task_set(point, handling)?;
        let sink = |header: &TraceHeader| {
            let inversions = Inversions::new(header, InversionLengths::default());
            let inversions = match self.options.definition {
                Definition::Any => inversions,
                Definition::Entitled => inversions.entitled_only(),
            };
            (inversions, Interrupts(0))
        };
        let end = Instant::ZERO + duration;
        let (inversions, interrupts) = simulate(&workload, task_sets::simulation_seed(point), end, sink, stop)?;
        Ok(Measured { lengths: inversions.finish(end), interrupts: interrupts.0 })
    }

    /// Runs the workload of Table II on `system` for `duration` and measures the jobs of each task. `stop` is asked now
    /// and then.
    ///
    /// # Errors
    /// If `stop` says so.
    pub fn responses(
        &self,
        system: &System,
        repetition: u64,
        duration: Nanos,
        stop: impl Fn() -> bool,
    ) -> Result<Vec<TaskResponses>, Stopped> {
        let workload = self.table2(system, repetition);
        let end = Instant::ZERO + duration;
        let uses_gpu = task_sets::uses_gpu(&workload.tasks);
        let sink = |_: &TraceHeader| Fold::new(&workload.tasks, &uses_gpu, end);
        let fold = simulate(&workload, table2::simulation_seed(repetition), end, sink, stop)?;
        Ok(fold.finish())
    }
}

/// Simulates `workload` until `end` into what `sink` makes of the header.
fn simulate<S: Sink>(
    workload: &Workload,
    seed: u64,
    end: Instant,
    sink: impl FnOnce(&TraceHeader) -> S,
    stop: impl Fn() -> bool,
) -> Result<S, Stopped> {
    let plan = Plan::new(workload, &workload.scheduler, seed)
        .map_err(|refusal| Stopped::Error(StudyError::Refused(refusal.to_string())))?;
    let mut simulator = Simulator::new(&plan, sink(&plan.header));
    pace::run(&mut simulator, end, |_| if stop() { Err(Stopped::OnRequest) } else { Ok(()) })?;
    Ok(simulator.finish())
}

/// Counts the interrupts that devices raise.
struct Interrupts(u64);

impl Sink for Interrupts {
    #[inline]
    fn record(&mut self, _at: Instant, event: Event) {
        self.0 += u64::from(matches!(event, Event::Interrupt { .. }));
    }
}

impl From<StudyError> for Stopped {
    fn from(error: StudyError) -> Self {
        Stopped::Error(error)
    }
}
