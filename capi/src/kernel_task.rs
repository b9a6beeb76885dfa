//! Threads that are tasks of Laxity's scheduler in the kernel.

use std::ffi::c_char;

use laxity_model::{Instant, Nanos};
use laxity_scx::{Job, Lock, Membership, Task, TaskRequest};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};
use crate::of_thread::OfThread;

/// Laxity's scheduler in the kernel, as this process knows it: `laxity sched start` loads it. Any thread may use it.
pub struct laxity_kernel_scheduler {
    _opaque: (),
}

/// A thread that is a task of the scheduler in the kernel. That thread alone uses and releases it.
pub struct laxity_kernel_task {
    _opaque: (),
}

/// A lock between tasks of one struct laxity_kernel_scheduler: while tasks wait for it, the job that holds it has at least the
/// priority of the most urgent of them, and so do in turn the holders of locks that it waits for.
pub struct laxity_kernel_lock {
    _opaque: (),
}

/// What a task is. All zeros but for `name` and `period_ns`, and -1 as `cluster`: due at the end of each period, from now on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_kernel_parameters {
    /// For people; 1 to 64 bytes.
    name: *const c_char,
    /// Which of the scheduler's clusters has it, numbered from 0; negative: the one with the least load.
    cluster: i32,
    /// Under FP, its place among others: the smaller the more urgent. Elsewhere without a meaning.
    priority: u32,
    /// Of its releases.
    period_ns: u64,
    /// Relative to each release; 0: the period.
    deadline_ns: u64,
    /// The most that a job takes, by which a cluster is chosen.
    wcet_ns: u64,
    /// CPU time that a job may use until its deadline, and then again in each period, which is enforced; 0: as much as it
    /// needs.
    budget_ns: u64,
    /// The release of the first job, on CLOCK_MONOTONIC; 0: at once.
    start_ns: u64,
}

/// A job that may begin. Times are those of CLOCK_MONOTONIC.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct laxity_kernel_job {
    /// Its number, from 0.
    index: u64,
    /// When it was released.
    release_ns: u64,
    /// When it is due.
    deadline_ns: u64,
    /// Whether Laxity's scheduler released it. Otherwise that has ended, and Linux schedules the thread: the task goes on by
    /// Linux's clock.
    is_scheduled: bool,
}

/// A task, and what its job holds.
pub struct Own {
    task: Task,
    locks: usize,
    is_in_section: bool,
}

impl Handle for laxity_kernel_scheduler {
    type Value = Membership;
    const TAG: u64 = u64::from_le_bytes(*b"lax-kern");
    const NAME: &'static str = "scheduler";
}

impl Handle for laxity_kernel_task {
    type Value = OfThread<Own>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-ktsk");
    const NAME: &'static str = "task";
}

impl Handle for laxity_kernel_lock {
    type Value = Lock;
    const TAG: u64 = u64::from_le_bytes(*b"lax-klck");
    const NAME: &'static str = "lock";
}

impl From<Job> for laxity_kernel_job {
    fn from(job: Job) -> Self {
        laxity_kernel_job {
            index: u64::from(job.number).saturating_sub(1),
            release_ns: job.release.0,
            deadline_ns: job.deadline.0,
            is_scheduled: job.is_scheduled,
        }
    }
}

impl laxity_kernel_parameters {
    /// # Safety
    /// `name` is null or ends with NUL.
    unsafe fn request(&self) -> Result<TaskRequest, Error> {
        // SAFETY: as the caller promises.
        let name = unsafe { text(self.name, "name") }?.to_owned();
        let or = |number: u64| (number != 0).then_some(number);
        Ok(TaskRequest {
            name,
            period: Nanos(self.period_ns),
            deadline: Nanos(or(self.deadline_ns).unwrap_or(self.period_ns)),
            wcet: Nanos(self.wcet_ns),
            budget: or(self.budget_ns).map(Nanos),
            priority: u64::from(self.priority),
            cluster: usize::try_from(self.cluster).ok(),
            release: or(self.start_ns).map(Instant),
        })
    }
}

const NO_LOCKS: CallError = CallError::Order {
    what: "the job holds a lock, or is in a section",
    way_out: "unlock it and leave the section before the job ends",
};

/// Calls `call` with the task.
///
/// # Safety
/// As for [`handle::get`].
unsafe fn with(task: *const laxity_kernel_task, call: impl FnOnce(&mut Own) -> Result<(), Error>) -> laxity_result {
    // SAFETY: as the caller promises.
    answer(|| call(&mut *unsafe { handle::get(task) }?.get()?))
}

/// Finds the scheduler that is loaded now. LAXITY_ERROR_NO_SYSTEM if none is: `laxity sched start`, as root, loads it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_scheduler_join(kernel: *mut *mut laxity_kernel_scheduler) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `kernel` can be written.
        let place = unsafe { out(kernel, "kernel") }?;
        *place = std::ptr::null_mut();
        *place = handle::make(Membership::join()?);
        Ok(())
    })
}

/// Tasks that began go on. Sets `*kernel` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_scheduler_release(kernel: *mut *mut laxity_kernel_scheduler) -> laxity_result {
    // SAFETY: the caller promises that `kernel` can be written, and that the handle is not used any more.
    answer(|| unsafe { handle::take(kernel) }.map(drop))
}

/// The calling thread becomes a task. It has no CPU from now on until laxity_kernel_task_wait returns, or until Linux
/// schedules it because the scheduler ended. LAXITY_ERROR_CONFIG with the scheduler's reason if it cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_begin(
    kernel: *const laxity_kernel_scheduler,
    parameters: *const laxity_kernel_parameters,
    task: *mut *mut laxity_kernel_task,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `task` can be written.
        let place = unsafe { out(task, "task") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `parameters` can be read unless
        // it is null.
        let (kernel, parameters) = unsafe { (handle::get(kernel)?, parameters.as_ref()) };
        let parameters = parameters.ok_or(CallError::Null { argument: "parameters" })?;
        // SAFETY: the caller promises that its text ends with NUL.
        let task = kernel.begin(&unsafe { parameters.request() }?)?;
        *place = handle::make(OfThread::new(Own { task, locks: 0, is_in_section: false }));
        Ok(())
    })
}

/// The thread is no task any more, and Linux or the scheduler's share for other threads schedules it. If a thread ends
/// without this, its task ends, too; the memory of the handle stays. Sets `*task` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_release(task: *mut *mut laxity_kernel_task) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `task` can be written.
        let place = unsafe { out(task, "task") }?;
        if place.is_null() {
            return Ok(());
        }
        // SAFETY: the caller promises that the handle is not used any more.
        if unsafe { handle::get(*place) }?.get()?.locks > 0 {
            return Err(NO_LOCKS.into());
        }
        // SAFETY: as above.
        unsafe { handle::take(place) }.map(drop)
    })
}

/// Completes the present job, if there is one, and returns when the next one is released and has a CPU. Writes that to `job`,
/// which may be NULL. LAXITY_ERROR_ORDER if the job holds a lock or is in a section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_wait(
    task: *const laxity_kernel_task,
    job: *mut laxity_kernel_job,
) -> laxity_result {
    let wait = |own: &mut Own| {
        if own.locks > 0 || own.is_in_section {
            return Err(NO_LOCKS.into());
        }
        let next = own.task.next_job();
        // SAFETY: the caller promises that `job` can be written unless it is null.
        if let Some(job) = unsafe { job.as_mut() } {
            *job = next.into();
        }
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, wait) }
}

/// No job of another task preempts this one until laxity_kernel_task_leave_section, for 10 ms at most. Sections do not nest.
/// Costs a store where no job wants the CPU meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_enter_section(task: *const laxity_kernel_task) -> laxity_result {
    let enter = |own: &mut Own| {
        if own.is_in_section {
            let (what, way_out) = ("the task is in a section", "leave it first: they do not nest");
            return Err(CallError::Order { what, way_out }.into());
        }
        own.is_in_section = true;
        own.task.enter_section();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, enter) }
}

/// Ends the section. If a job of another task is to have the CPU, it gets it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_leave_section(task: *const laxity_kernel_task) -> laxity_result {
    let leave = |own: &mut Own| {
        if !own.is_in_section {
            let (what, way_out) = ("the task is in no section", "enter one first");
            return Err(CallError::Order { what, way_out }.into());
        }
        own.is_in_section = false;
        own.task.leave_section();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, leave) }
}

/// A lock that is free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_lock_create(lock: *mut *mut laxity_kernel_lock) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `lock` can be written.
        *unsafe { out(lock, "lock") }? = handle::make(Lock::new());
        Ok(())
    })
}

/// Sets `*lock` to NULL; does nothing if it is NULL already. No task holds it or waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_lock_release(lock: *mut *mut laxity_kernel_lock) -> laxity_result {
    // SAFETY: the caller promises that `lock` can be written, and that the handle is not used any more.
    answer(|| unsafe { handle::take(lock) }.map(drop))
}

/// Waits until the lock is free, and takes it; the job is suspended meanwhile. LAXITY_ERROR_ORDER if the task has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_lock(
    task: *const laxity_kernel_task,
    lock: *const laxity_kernel_lock,
) -> laxity_result {
    let take = |own: &mut Own| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let lock = unsafe { handle::get(lock) }?;
        if lock.is_held_by(&own.task) {
            let (what, way_out) = ("the task has the lock", "unlock it first: it would wait for itself");
            return Err(CallError::Order { what, way_out }.into());
        }
        lock.take(&own.task);
        own.locks += 1;
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, take) }
}

/// Gives the lock up. LAXITY_ERROR_ORDER if the task does not have it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_unlock(
    task: *const laxity_kernel_task,
    lock: *const laxity_kernel_lock,
) -> laxity_result {
    let give_up = |own: &mut Own| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let lock = unsafe { handle::get(lock) }?;
        if !lock.is_held_by(&own.task) {
            let (what, way_out) = ("the task does not have the lock", "lock it first");
            return Err(CallError::Order { what, way_out }.into());
        }
        lock.give_up();
        own.locks -= 1;
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, give_up) }
}
