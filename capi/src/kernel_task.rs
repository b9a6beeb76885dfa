//! Threads that are tasks of Laxity's scheduler in the kernel.

use std::ffi::c_char;

use laxity_model::{Instant, Nanos};
use laxity_scx::{InterruptThread, Job, Lock, Membership, Releases, Task, TaskRequest};
use laxity_sys::clock::sleep_until;

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

/// When jobs of a task are released, after the first one.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_kernel_releases {
    /// Once a period: laxity_kernel_task_wait.
    LAXITY_KERNEL_PERIODIC = 0,
    /// When the thread says: laxity_kernel_task_wait_until.
    LAXITY_KERNEL_TOLD = 1,
    /// At events: laxity_kernel_task_begin_event and laxity_kernel_task_end_event.
    LAXITY_KERNEL_EVENTS = 2,
}

/// A thread of the kernel that handles interrupts for tasks: `laxity sched irq` has it do so.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct laxity_kernel_interrupts {
    /// By which the scheduler knows it.
    number: u32,
    /// The cluster of the tasks that it works for.
    cluster: u32,
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
    /// When others are released: one of enum laxity_kernel_releases; 0: once a period.
    releases: u32,
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
    releases: Releases,
    /// It said that it waits for an event.
    awaits_event: bool,
}

impl Own {
    /// Whether its job can be complete, and the next one released so.
    fn ends(&self, is_so: bool) -> Result<(), Error> {
        if self.locks > 0 || self.is_in_section {
            return Err(NO_LOCKS.into());
        }
        if !is_so {
            let (what, way_out) = ("the task's jobs are released otherwise", "call what its `releases` names");
            return Err(CallError::Order { what, way_out }.into());
        }
        Ok(())
    }
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
            releases: match self.releases {
                number if number == laxity_kernel_releases::LAXITY_KERNEL_PERIODIC as u32 => Releases::Periodic,
                number if number == laxity_kernel_releases::LAXITY_KERNEL_TOLD as u32 => Releases::Told { due: None },
                number if number == laxity_kernel_releases::LAXITY_KERNEL_EVENTS as u32 => Releases::Events,
                number => return Err(CallError::NoReleases { number }.into()),
            },
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

/// # Safety
/// `job` can be written unless it is null.
unsafe fn write(job: *mut laxity_kernel_job, next: Job) {
    // SAFETY: as the caller promises.
    if let Some(job) = unsafe { job.as_mut() } {
        *job = next.into();
    }
}

/// # Safety
/// `interrupts` can be read unless it is null.
unsafe fn thread(interrupts: *const laxity_kernel_interrupts) -> Result<InterruptThread, Error> {
    // SAFETY: as the caller promises.
    let known = unsafe { interrupts.as_ref() }.ok_or(CallError::Null { argument: "interrupts" })?;
    Ok(InterruptThread::of_parts(known.number, known.cluster as usize))
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
        let request = unsafe { parameters.request() }?;
        let task = kernel.begin(&request)?;
        let (locks, is_in_section, releases, awaits_event) = (0, false, request.releases, false);
        *place = handle::make(OfThread::new(Own { task, locks, is_in_section, releases, awaits_event }));
        Ok(())
    })
}

/// The thread is no task any more, and Linux or the scheduler's share for other threads schedules it. If a thread ends
/// without this, its task ends, too; any thread may release the handle then, whose memory stays and keeps this process attached. Sets `*task` to NULL; does
/// nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_release(task: *mut *mut laxity_kernel_task) -> laxity_result {
    answer(|| {
        let has_none = |own: &Own| if own.locks > 0 { Err(NO_LOCKS.into()) } else { Ok(()) };
        // SAFETY: the caller promises that the handle is not used any more.
        unsafe { OfThread::release_if(task, has_none) }
    })
}

/// Completes the present job, if there is one, and returns when the next one is released and has a CPU. Writes that to `job`,
/// which may be NULL. LAXITY_ERROR_ORDER if the job holds a lock or is in a section, or if jobs are not released once a period.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_wait(
    task: *const laxity_kernel_task,
    job: *mut laxity_kernel_job,
) -> laxity_result {
    let wait = |own: &mut Own| {
        own.ends(own.releases == Releases::Periodic)?;
        let next = own.task.next_job();
        // SAFETY: the caller promises that `job` can be written unless it is null.
        unsafe { write(job, next) };
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, wait) }
}

/// As laxity_kernel_task_wait, for a job that is released at `release_ns` and due at `deadline_ns`, on CLOCK_MONOTONIC: of a
/// sporadic task, or one with release jitter (LAXITY_KERNEL_TOLD). The first job is released at the parameters' `start_ns`, whatever is
/// said here, and due as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_wait_until(
    task: *const laxity_kernel_task,
    release_ns: u64,
    deadline_ns: u64,
    job: *mut laxity_kernel_job,
) -> laxity_result {
    let wait = |own: &mut Own| {
        own.ends(matches!(own.releases, Releases::Told { .. }))?;
        let sleep = |until| {
            sleep_until(until);
            true
        };
        let next = own.task.next_job_at(Instant(release_ns), Instant(deadline_ns), sleep);
        let next = next.expect("it sleeps to the end");
        // SAFETY: the caller promises that `job` can be written unless it is null.
        unsafe { write(job, next) };
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, wait) }
}

/// The present job is complete once the thread sleeps, which waits for an event from now on, by whatever call; it calls
/// laxity_kernel_task_end_event then (LAXITY_KERNEL_EVENTS). The first job is released at `start_ns`: it is what the thread does before
/// the first event. LAXITY_ERROR_ORDER as of laxity_kernel_task_wait, or if it waits already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_begin_event(task: *const laxity_kernel_task) -> laxity_result {
    let begin = |own: &mut Own| {
        own.ends(own.releases == Releases::Events && !own.awaits_event)?;
        own.awaits_event = true;
        own.task.begin_event();
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, begin) }
}

/// The event is there. Writes the job that it released to `job`, which may be NULL: released when the thread woke, due as the
/// parameters say and a period after the last one at the earliest. LAXITY_ERROR_ORDER if it does not wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_end_event(
    task: *const laxity_kernel_task,
    job: *mut laxity_kernel_job,
) -> laxity_result {
    let end = |own: &mut Own| {
        own.ends(own.awaits_event)?;
        own.awaits_event = false;
        let next = own.task.end_event();
        // SAFETY: the caller promises that `job` can be written unless it is null.
        unsafe { write(job, next) };
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, end) }
}

/// Finds the thread of the kernel with that number in Linux. LAXITY_ERROR_CONFIG if it handles no interrupts for tasks: `laxity sched
/// irq` has it do so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_scheduler_interrupts(
    kernel: *const laxity_kernel_scheduler,
    thread: u32,
    interrupts: *mut laxity_kernel_interrupts,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `interrupts` can be written.
        let (kernel, place) = unsafe { (handle::get(kernel)?, out(interrupts, "interrupts")?) };
        let found = kernel.interrupt_thread(thread)?;
        let cluster = u32::try_from(found.cluster()).expect("there are 64 at most");
        *place = laxity_kernel_interrupts { number: found.number(), cluster };
        Ok(())
    })
}

/// From now on, until laxity_kernel_task_expect_no_more, that thread works for this task's job: when an interrupt comes it has its
/// priority, and goes before it. To be called before the device is told to begin. Costs a store. LAXITY_ERROR_ORDER if eight threads work
/// for it already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_expect(
    task: *const laxity_kernel_task,
    interrupts: *const laxity_kernel_interrupts,
) -> laxity_result {
    let expect = |own: &mut Own| {
        // SAFETY: the caller promises that `interrupts` can be read unless it is null.
        let thread = unsafe { thread(interrupts) }?;
        let (what, way_out) = ("eight threads work for the task", "end what it does not wait for any more");
        own.task.begin_expecting(&thread).then_some(()).ok_or(CallError::Order { what, way_out }.into())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, expect) }
}

/// The thread works for this task's job no more. LAXITY_ERROR_ORDER if it did not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_kernel_task_expect_no_more(
    task: *const laxity_kernel_task,
    interrupts: *const laxity_kernel_interrupts,
) -> laxity_result {
    let end = |own: &mut Own| {
        // SAFETY: the caller promises that `interrupts` can be read unless it is null.
        let thread = unsafe { thread(interrupts) }?;
        let (what, way_out) = ("the thread does not work for the task", "expect it first");
        own.task.end_expecting(&thread).then_some(()).ok_or(CallError::Order { what, way_out }.into())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(task, end) }
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
