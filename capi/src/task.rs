//! Threads that are tasks of a system.
//!
//! ```text
//!            _wait, or _release_job            a CPU             _complete, or the next _wait
//!   (no job) ---------------------> waits for a CPU -> has one ------------------------------> (no job)
//!                                         ^   ^--- displaced ---'  | _suspend
//!                                         '------- _resume -- (suspended)
//! ```

use std::ffi::c_char;
use std::rc::Rc;

use laxity_model::{Instant, LockId, Nanos, ServerKind};
use laxity_sched::{Job, LockRequest, Parameters, Task};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};
use crate::of_thread::OfThread;
use crate::system::laxity_system;

/// A thread that is a task of a system. That thread alone uses and releases it.
pub struct laxity_task {
    _opaque: (),
}

/// What a task is. All zeros but for `name` and `period_ns`: due at the end of each period, in the first cluster.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_task_parameters {
    /// For people; 1 to 64 bytes.
    name: *const c_char,
    /// Which of the system's clusters schedules it, numbered from 0.
    cluster: u32,
    /// With LAXITY_RULE_GIVEN, its place among others: the smaller the more urgent. Elsewhere without a meaning.
    priority: u32,
    /// Of its releases, or the least time between two.
    period_ns: u64,
    /// Relative to each release, and as long as is wanted; 0: the period.
    deadline_ns: u64,
    /// The most that a job takes; 0: not known.
    wcet_ns: u64,
    /// What jobs may take in each period, which is enforced; 0: as much as they need.
    budget_ns: u64,
    /// One of enum laxity_server: what happens to a job that has used up the budget. One other than 0 needs a budget.
    server: u32,
}

/// What happens to a job that has used up the budget of its task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_server {
    /// It waits for the budget of the next period (a hard constant bandwidth server). Code that goes on meanwhile is below
    /// all real-time threads.
    LAXITY_SERVER_CBS_HARD = 0,
    /// It goes on, due a period later (a soft constant bandwidth server): for LAXITY_RULE_EDF.
    LAXITY_SERVER_CBS_SOFT = 1,
    /// It waits until what it used first comes back, a period after a job could first use it (a sporadic server).
    LAXITY_SERVER_SPORADIC = 2,
}

/// A job of a task. Times are those of CLOCK_MONOTONIC.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct laxity_task_job {
    /// Its number, from 0.
    index: u64,
    /// When it was released.
    release_ns: u64,
    /// When it is due.
    deadline_ns: u64,
}

impl Handle for laxity_task {
    /// Shared with the threads of devices that are this task.
    type Value = OfThread<Rc<Task>>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-task");
    const NAME: &'static str = "task";
}

impl From<Job> for laxity_task_job {
    fn from(job: Job) -> Self {
        laxity_task_job { index: job.index, release_ns: job.release.0, deadline_ns: job.deadline.0 }
    }
}

impl laxity_task_parameters {
    /// # Safety
    /// `name` is null or ends with NUL.
    unsafe fn parameters(&self) -> Result<Parameters, Error> {
        // SAFETY: as the caller promises.
        let name = unsafe { text(self.name, "name") }?;
        let or = |span: u64| (span != 0).then_some(Nanos(span));
        const SERVERS: [(laxity_server, ServerKind); 3] = [
            (laxity_server::LAXITY_SERVER_CBS_HARD, ServerKind::CbsHard),
            (laxity_server::LAXITY_SERVER_CBS_SOFT, ServerKind::CbsSoft),
            (laxity_server::LAXITY_SERVER_SPORADIC, ServerKind::Sporadic),
        ];
        let unknown = || CallError::Value { argument: "server", value: self.server, of: "enum laxity_server" };
        let server = SERVERS.iter().find(|(number, _)| *number as u32 == self.server).ok_or_else(unknown)?.1;
        let periodic = Parameters::periodic(name, Nanos(self.period_ns));
        Ok(Parameters {
            cluster: self.cluster as usize,
            deadline: or(self.deadline_ns).unwrap_or(periodic.period),
            wcet: Nanos(self.wcet_ns),
            budget: or(self.budget_ns),
            // All zeros name the first one, and ask for none. With another one a budget is missing.
            server: Some(server).filter(|_| self.budget_ns != 0 || self.server != 0),
            priority: Some(self.priority),
            ..periodic
        })
    }
}

/// Calls `call` with the task.
///
/// # Safety
/// As for [`handle::get`].
unsafe fn with(task: *const laxity_task, call: impl FnOnce(&Task) -> Result<(), Error>) -> laxity_result {
    // SAFETY: as the caller promises.
    answer(|| call(&*unsafe { of_handle(task) }?))
}

/// The task of a handle, for the thread that is this task.
///
/// # Safety
/// As for [`handle::get`].
pub(crate) unsafe fn of_handle(task: *const laxity_task) -> Result<Rc<Task>, Error> {
    // SAFETY: as the caller promises.
    Ok(unsafe { handle::get(task) }?.get()?.clone())
}

/// The calling thread becomes a task of the system. From now on Laxity decides when it runs, on the CPUs of its cluster,
/// above all ordinary threads; what it starts is scheduled as usual. LAXITY_ERROR_SYSTEM if Linux does not let it have
/// SCHED_FIFO, LAXITY_ERROR_FULL if the system has as many tasks as it was created for, LAXITY_ERROR_ORDER if the thread is a
/// task already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_begin(
    system: *const laxity_system,
    parameters: *const laxity_task_parameters,
    task: *mut *mut laxity_task,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `task` can be written.
        let place = unsafe { out(task, "task") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `parameters` can be read unless
        // it is null.
        let (system, parameters) = unsafe { (handle::get(system)?, parameters.as_ref()) };
        let parameters = parameters.ok_or(CallError::Null { argument: "parameters" })?;
        // SAFETY: the caller promises that its text ends with NUL.
        *place = handle::make(OfThread::new(Rc::new(system.begin(unsafe { parameters.parameters() }?)?)));
        Ok(())
    })
}

/// The thread is no task any more: its job ends, and Linux schedules the thread as before. If a thread ends without this,
/// its task ends, too; any thread may release the handle then, whose memory stays and keeps this process attached. Sets `*task` to NULL; does nothing if it
/// is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_release(task: *mut *mut laxity_task) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not used any more.
        unsafe { OfThread::release(task) }
    })
}

/// The first release of laxity_task_wait is at `start_ns` of CLOCK_MONOTONIC, and the next ones follow a period apart:
/// tasks with one start are released together. Without this call the first release is at the first wait.
/// LAXITY_ERROR_ORDER after the first wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_start_at(task: *const laxity_task, start_ns: u64) -> laxity_result {
    let start = |task: &Task| Ok(task.start_at(Instant(start_ns))?);
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, start) }
}

/// Completes the present job, if there is one, and with it its sections, and waits for the next release, one period after the last. If that is in
/// the past, the next job begins at once and keeps its release and deadline. Writes the job to `job`, which may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_wait(task: *const laxity_task, job: *mut laxity_task_job) -> laxity_result {
    let wait = |task: &Task| {
        let next = task.wait_for_next_job()?;
        // SAFETY: the caller promises that `job` can be written unless it is null.
        if let Some(job) = unsafe { job.as_mut() } {
            *job = next.into();
        }
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, wait) }
}

/// A job is ready, as `job` says: for tasks that wait for events by themselves. The last one must be complete. Returns
/// when the thread may run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_release_job(
    task: *const laxity_task,
    job: *const laxity_task_job,
) -> laxity_result {
    let release = |task: &Task| {
        // SAFETY: the caller promises that `job` can be read unless it is null.
        let job = unsafe { job.as_ref() }.ok_or(CallError::Null { argument: "job" })?;
        let (release, deadline) = (Instant(job.release_ns), Instant(job.deadline_ns));
        task.release(Job { index: job.index, release, deadline })?;
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, release) }
}

/// The present job is complete, and its sections have ended. The thread is expected to wait for the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_complete(task: *const laxity_task) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.complete().map(drop)?)) }
}

/// The present job suspends itself, and others get its CPU: before the thread waits for a device or another thread. Its sections end
/// with that; enter them again after laxity_task_resume if they are to go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_suspend(task: *const laxity_task) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.suspend().map(drop)?)) }
}

/// The suspended job goes on: after the wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_resume(task: *const laxity_task) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.resume().map(drop)?)) }
}

/// The present job has this priority from now on, the smaller the more urgent: under EDF a deadline on CLOCK_MONOTONIC,
/// else a level from 1. Of equal ones the smaller `tie` is first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_prioritize(task: *const laxity_task, level: u64, tie: u32) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.prioritize((level, tie)).map(drop)?)) }
}

/// No other task gets this thread's CPU until laxity_task_leave_section. Waits for a CPU first, if another task just took
/// it. Sections nest.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_enter_section(task: *const laxity_task) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.enter_section()?)) }
}

/// Ends the section that was entered last. If another task is to have the CPU, it gets it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_leave_section(task: *const laxity_task) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.leave_section().map(drop)?)) }
}

/// Waits for lock number `lock` of the system; the job is suspended meanwhile. `length_ns` bounds how long it will be held,
/// 0: not known; `gpu` is the only GPU of tokens that will do, negative: any. Writes the replica to `replica`, which may be
/// NULL. LAXITY_ERROR_ORDER without a job, if the job holds the lock, or if the system has no such lock.
///
/// The holder inherits the priority of jobs that wait, by the system's rule, under EDF too. If its thread ends, the next job
/// is granted the lock. Jobs that lock several do so in one order, or else wait for each other for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_lock(
    task: *const laxity_task,
    lock: u16,
    length_ns: u64,
    gpu: i32,
    replica: *mut u16,
) -> laxity_result {
    let wait = |task: &Task| {
        let only = match u16::try_from(gpu) {
            Ok(gpu) => Some(gpu),
            Err(_) if gpu < 0 => None,
            Err(_) => return Err(CallError::Gpu { gpu }.into()),
        };
        let granted = task.lock(LockRequest { lock: LockId(lock), length: Nanos(length_ns), only }, &mut ())?;
        // SAFETY: the caller promises that `replica` can be written unless it is null.
        if let Some(replica) = unsafe { replica.as_mut() } {
            *replica = granted.0;
        }
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, wait) }
}

/// Unlocks lock number `lock`; the next job goes on by the same decision. LAXITY_ERROR_ORDER if the job does not hold it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_unlock(task: *const laxity_task, lock: u16) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.unlock(LockId(lock), &mut ())?)) }
}

/// Unlocks lock number `lock`, the only one that the job holds, and completes the job by the same decision: the next holder
/// does not preempt it in between.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_unlock_and_complete(task: *const laxity_task, lock: u16) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, |task| Ok(task.unlock_and_complete(LockId(lock), &mut ())?)) }
}

/// The present job, or else the last one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_get_job(task: *const laxity_task, job: *mut laxity_task_job) -> laxity_result {
    let read = |task: &Task| {
        // SAFETY: the caller promises that `job` can be written.
        *unsafe { out(job, "job") }? = task.job().into();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, read) }
}

/// Whether the present job has a CPU; if not, a more urgent one has it, and this thread runs where that leaves it idle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_task_is_linked(task: *const laxity_task, is_linked: *mut bool) -> laxity_result {
    let read = |task: &Task| {
        // SAFETY: the caller promises that `is_linked` can be written.
        *unsafe { out(is_linked, "is_linked") }? = task.is_linked();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, read) }
}
