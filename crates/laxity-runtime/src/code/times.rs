//! How long code takes: for each step of each task the times of all its calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use laxity_model::{CodeSource, Nanos, OwnCode};
use laxity_sys::clock;
use laxity_sys::own_code::{StepKind, View, WARM_UP};

use super::{Account, Bound, Code, Edges, MakeCode};
use crate::plan::LivePlan;

/// Times of the calls of each step of each task.
type Times = BTreeMap<(String, u32), Vec<Nanos>>;

/// Times of calls while a plan runs.
#[derive(Clone, Debug, Default)]
pub struct CallTimes(Arc<Mutex<Times>>);

/// Code whose calls are timed.
struct Timed {
    code: Box<dyn Code>,
    task: String,
    times: CallTimes,
    /// Whether it executes in other processes.
    is_elsewhere: bool,
}

impl LivePlan {
    /// Has the calls of all code timed that is loaded or bound so far: by the CPU time of the thread, and suspensions and
    /// commands, which execute elsewhere, by the clock.
    pub fn time_calls(&mut self) -> CallTimes {
        let times = CallTimes::default();
        for task in &mut self.tasks {
            let Some(Bound { make, warm }) = task.code.take() else { continue };
            let is_command = matches!(task.run, Some(OwnCode { source: CodeSource::Command(_), .. }));
            task.code = Some(Bound { make: timed(make, times.clone(), is_command), warm });
        }
        times
    }
}

fn timed(make: MakeCode, times: CallTimes, is_elsewhere: bool) -> MakeCode {
    Arc::new(move |task: &str, edges: &Edges| {
        let code = make(task, edges)?;
        Ok(Box::new(Timed { code, task: task.to_owned(), times: times.clone(), is_elsewhere }) as Box<dyn Code>)
    })
}

impl CallTimes {
    /// The times of the calls for step `step` of the task or node called `task`, in the order of its jobs.
    pub fn of(&self, task: &str, step: u32) -> Vec<Nanos> {
        let times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.get(&(task.to_owned(), step)).cloned().unwrap_or_default()
    }
}

impl Code for Timed {
    fn call(&mut self, view: &mut View<'_>) -> Result<(), String> {
        self.time(view, |code, view| code.call(view))
    }

    fn call_charged(&mut self, view: &mut View<'_>, account: &mut dyn Account) -> Result<(), String> {
        self.time(view, |code, view| code.call_charged(view, account))
    }

    fn keeps_messages(&self) -> bool {
        self.code.keeps_messages()
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        self.code.end()
    }
}

impl Timed {
    fn time(
        &mut self,
        view: &mut View<'_>,
        call: impl FnOnce(&mut dyn Code, &mut View<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let by_clock = self.is_elsewhere || view.kind() == StepKind::Suspend;
        let now = || if by_clock { Nanos(clock::now().0) } else { clock::thread_cpu_time() };
        let (step, is_job) = (view.step(), view.job() != WARM_UP);
        let start = now();
        call(&mut *self.code, view)?;
        let time = Nanos(now().0.saturating_sub(start.0));
        if is_job {
            let mut times = self.times.0.lock().unwrap_or_else(PoisonError::into_inner);
            times.entry((self.task.clone(), step)).or_default().push(time);
        }
        Ok(())
    }
}
