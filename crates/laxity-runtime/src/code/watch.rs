//! Looks after threads that are in code of the user, which may crash or not come back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use laxity_sys::crash::Crash;
use laxity_sys::process;

use crate::worker::Started;

/// No job: the thread is not in code of the user.
const OUTSIDE: u64 = u64::MAX;
/// In code that precedes all jobs.
const BEFORE: u64 = u64::MAX - 1;
/// In code that follows them.
const AFTER: u64 = u64::MAX - 2;

/// How long code of the user may go on when all is over, before its thread is left behind.
const PATIENCE: Duration = Duration::from_secs(2);
/// Until threads are looked at again.
const LOOK: Duration = Duration::from_millis(5);

/// Which code is called.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// What precedes all jobs.
    Before,
    /// A part of this job.
    Job(u32),
    /// What follows all jobs.
    After,
}

/// All threads of a run that call code, and what they would leave behind with them.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    pub list: Vec<Arc<Watch>>,
    /// The system that schedules them, if that is Laxity's.
    pub system: Option<String>,
    /// The arbitrations of their GPUs.
    pub arbitrations: Vec<String>,
}

/// One thread that calls code.
#[derive(Debug)]
pub(crate) struct Watch {
    task: String,
    crash: Crash,
    job: AtomicU64,
    program: Mutex<Executing>,
}

/// Which program executes a job elsewhere than on its thread.
#[derive(Debug, Default)]
enum Executing {
    #[default]
    None,
    /// The process with this number, which leads a process group and was not waited for.
    Program(u32),
    /// None may any more: the run has ended.
    Over,
}

impl Watches {
    /// The run has ended: programs that execute for it are killed, as they would go on without it.
    pub fn end_programs(&self) {
        self.list.iter().for_each(|watch| watch.end_programs());
    }

    /// How one crashed, if one did.
    pub fn crashed(&self) -> Option<String> {
        self.list.iter().find_map(|watch| watch.crashed())
    }

    /// Whether one crashed, or is in code of the user although all were told to end.
    pub fn are_lost(&self, is_stopped: bool) -> bool {
        self.crashed().is_some() || is_stopped && self.stuck().is_some()
    }

    fn stuck(&self) -> Option<String> {
        self.list.iter().find_map(|watch| watch.is_stuck())
    }

    /// Waits until all `threads` are over, which have been told to end; but not for ever for those that code of the user
    /// does not give back, and those that wait for a lock of these: they are left behind, and their shared memory loses
    /// its names; that of the graphs is removed by the caller, which has their registry: [`LivePlan::unlink_graphs`].
    ///
    /// [`LivePlan::unlink_graphs`]: crate::LivePlan::unlink_graphs
    ///
    /// Answers whether all are over, and why a worker could not go on, or which was left behind.
    pub fn join(&self, threads: Vec<Started>) -> (bool, Result<(), String>) {
        let mut waited = Duration::ZERO;
        while !self.list.is_empty() && !threads.iter().all(Started::is_over) {
            if waited >= PATIENCE && (self.crashed().is_some() || self.stuck().is_some()) {
                break;
            }
            thread::sleep(LOOK);
            waited += LOOK;
        }
        let (crashed, stuck) = (self.crashed(), self.stuck());
        let is_held_up = crashed.is_some() || stuck.is_some();
        let is_left = |thread: &Started| is_held_up && !thread.is_over();
        let (left, over): (Vec<_>, Vec<_>) = threads.into_iter().partition(is_left);
        let are_over = left.is_empty();
        if !are_over {
            self.unlink();
        }
        left.into_iter().for_each(Started::abandon);
        // Where one failed, the others were told to end because of that: one that then did not come back is no cause.
        let failed = over.into_iter().map(Started::join).fold(Ok(()), Result::and);
        let crashed = crashed.map_or(Ok(()), Err);
        (are_over, crashed.and(failed).and(stuck.map_or(Ok(()), Err)))
    }

    /// If one crashed before the run has begun.
    pub fn unlink_after_crash(&self) {
        if self.crashed().is_some() {
            self.unlink();
        }
    }

    /// The memory goes with the process, which its names would outlast.
    fn unlink(&self) {
        // What cannot be removed has no remedy here; `laxity gpu gc` and `laxity sched gc` remove it later.
        for arbitration in &self.arbitrations {
            let _ = laxity_gpu::Registry::default().unlink(arbitration);
        }
        if let Some(system) = &self.system {
            let _ = laxity_sched::Registry::default().unlink(system);
        }
    }
}

impl Watch {
    pub fn new(task: &str) -> Watch {
        Watch {
            task: task.to_owned(),
            crash: Crash::default(),
            job: AtomicU64::new(OUTSIDE),
            program: Mutex::default(),
        }
    }

    /// Does `call`.
    pub fn during<R>(&self, part: Part, call: impl FnOnce() -> R) -> R {
        let job = match part {
            Part::Before => BEFORE,
            Part::Job(job) => job.into(),
            Part::After => AFTER,
        };
        self.job.store(job, Ordering::Release);
        let result = self.crash.watch(call);
        self.job.store(OUTSIDE, Ordering::Release);
        result
    }

    /// As [`Account::begin_program`](super::Account::begin_program).
    pub fn begin_program(&self, pid: u32) {
        match &mut *self.executing() {
            Executing::Over => process::kill_group(pid),
            executing => *executing = Executing::Program(pid),
        }
    }

    /// As [`Account::end_program`](super::Account::end_program).
    pub fn end_program(&self) -> bool {
        match &mut *self.executing() {
            Executing::Over => true,
            executing => {
                *executing = Executing::None;
                false
            }
        }
    }

    fn end_programs(&self) {
        if let Executing::Program(pid) = std::mem::replace(&mut *self.executing(), Executing::Over) {
            process::kill_group(pid);
        }
    }

    fn executing(&self) -> MutexGuard<'_, Executing> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it crashed, if it did.
    pub fn crashed(&self) -> Option<String> {
        let how = self.crash.end()?;
        Some(format!("{}: its code {how}; the trace is complete up to there", self.place()))
    }

    /// How it crashed before its first job, if it did, in words that follow its task.
    pub fn crashed_at_first(&self) -> Option<String> {
        self.crash.end().map(|how| format!("before its first job: its code {how}"))
    }

    /// That it has not come back, if it is in code.
    pub fn is_stuck(&self) -> Option<String> {
        let is_inside = self.job.load(Ordering::Acquire) != OUTSIDE;
        is_inside.then(|| format!("{}: its code has not returned although the run has ended", self.place()))
    }

    fn place(&self) -> String {
        match self.job.load(Ordering::Acquire) {
            OUTSIDE => format!("task \"{}\"", self.task),
            BEFORE => format!("task \"{}\": before its first job", self.task),
            AFTER => format!("task \"{}\": after its last job", self.task),
            job => format!("task \"{}\": job {job}", self.task),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_code_is_that_of_a_job_or_before_or_after_all() {
        let watch = Watch::new("t");
        assert_eq!(watch.during(Part::Before, || watch.place()), "task \"t\": before its first job");
        assert_eq!(watch.during(Part::Job(3), || watch.place()), "task \"t\": job 3");
        assert_eq!(watch.during(Part::After, || watch.place()), "task \"t\": after its last job");
        assert_eq!(watch.place(), "task \"t\"");
    }
}
