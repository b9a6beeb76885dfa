//! Jobs of vision graphs, while their kernels run.

use std::ffi::{c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, ThreadId};

use ::laxity_vx::{Delay, Format, Job};
use laxity_sys::process::forks;

use crate::device::laxity_device_thread;
use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, out, text};
use crate::of_thread::OfThread;

/// A kernel's view of its node in one frame, valid until it returns; for the thread that runs it.
pub struct laxity_vx_job {
    _opaque: (),
}

const TAG: u64 = u64::from_le_bytes(*b"lax-vxjo");
const NAME: &str = "job";

/// The memory of a `laxity_vx_job`. It begins with its tag, which is 0 once the kernel has returned.
#[repr(C)]
struct Lent<'a, 'b> {
    tag: u64,
    /// The thread that runs the kernel.
    owner: ThreadId,
    /// [`forks`] of its process.
    forks: u32,
    state: Mutex<State<'a, 'b>>,
    objects: &'a [(u32, Delay<Format>)],
}

struct State<'a, 'b> {
    job: &'a mut Job<'b>,
    /// The GPU that [`Job::lend_gpu`] lent, or null.
    gpu: *mut laxity_device_thread,
    /// The text of `laxity_vx_job_fail`.
    failure: Option<String>,
}

impl Drop for State<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: null, or made in `laxity_vx_job_gpu`, and C is told not to use it any more.
        if let Ok(Some(gpu)) = unsafe { handle::take(&raw mut self.gpu) } {
            self.job.return_gpu(OfThread::into_inner(gpu));
        }
    }
}

/// Calls `call` with `job`, whose node uses `objects`. Returns its result, and the reason for its failure if it gave
/// one.
pub(crate) fn with<T>(
    job: &mut Job<'_>,
    objects: &[(u32, Delay<Format>)],
    call: impl FnOnce(*mut laxity_vx_job) -> T,
) -> (T, Option<String>) {
    let state = Mutex::new(State { job, gpu: std::ptr::null_mut(), failure: None });
    let mut lent = Lent { tag: TAG, owner: thread::current().id(), forks: forks(), state, objects };
    let result = call((&raw mut lent).cast());
    lent.tag = 0;
    let failure = lent.lock().ok().and_then(|mut state| state.failure.take());
    (result, failure)
}

/// # Safety
/// `job` is null, or what a kernel was given that has not returned.
unsafe fn get<'a>(job: *const laxity_vx_job) -> Result<&'a Lent<'a, 'a>, Error> {
    if job.is_null() {
        return Err(CallError::Null { argument: NAME }.into());
    }
    let lent = job.cast::<Lent<'a, 'a>>();
    if !lent.is_aligned() {
        return Err(CallError::Handle { expected: NAME }.into());
    }
    // SAFETY: not null and aligned (checked above); the caller promises that it can be read. The tag comes first.
    if unsafe { *lent.cast::<u64>() } != TAG {
        return Err(CallError::Handle { expected: NAME }.into());
    }
    // SAFETY: the tag says that it is from `with`, which has not returned.
    let lent = unsafe { &*lent };
    if lent.forks != forks() {
        return Err(CallError::Forked { handle: NAME }.into());
    }
    if lent.owner != thread::current().id() {
        return Err(CallError::Thread.into());
    }
    Ok(lent)
}

impl<'a, 'b> Lent<'a, 'b> {
    fn lock(&self) -> Result<MutexGuard<'_, State<'a, 'b>>, Error> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(error)) => Ok(PoisonError::into_inner(error)),
            Err(TryLockError::WouldBlock) => {
                let (what, way_out) =
                    ("the job is in use", "call from the thread that runs its kernel, one call at a time");
                Err(CallError::Busy { what, way_out }.into())
            }
        }
    }

    fn object(&self, number: u32) -> Result<Delay<Format>, Error> {
        let found = self.objects.iter().find(|(object, _)| *object == number);
        found.map(|(_, object)| *object).ok_or_else(|| CallError::Undeclared { object: number }.into())
    }
}

/// The frame, from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_job_index(job: *const laxity_vx_job, index: *mut u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the kernel has not returned, and that `index` can be written.
        let (job, index) = unsafe { (get(job)?, out(index, "index")?) };
        *index = job.lock()?.job.index();
        Ok(())
    })
}

/// The release of the job and its deadline, both on CLOCK_MONOTONIC; either pointer may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_job_times(
    job: *const laxity_vx_job,
    release_ns: *mut u64,
    deadline_ns: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the kernel has not returned.
        let state = unsafe { get(job) }?.lock()?;
        for (place, time) in [(release_ns, state.job.release()), (deadline_ns, state.job.deadline())] {
            // SAFETY: the caller promises that it can be written unless it is null.
            if let (Some(place), Some(time)) = (unsafe { place.as_mut() }, time) {
                *place = time.0;
            }
        }
        Ok(())
    })
}

/// An object that is an input of the node, or a slot of a delay, as it was so many jobs `ago`: in place, and there
/// until the kernel returns. `length` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_job_read(
    job: *const laxity_vx_job,
    object: u32,
    ago: u32,
    bytes: *mut *const c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the kernel has not returned, and that `bytes` can be written.
        let (lent, bytes) = unsafe { (get(job)?, out(bytes, "bytes")?) };
        *bytes = std::ptr::null();
        let state = lent.lock()?;
        let found = state.job.read(lent.object(object)?.ago(ago))?;
        *bytes = found.as_ptr().cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = found.len();
        }
        Ok(())
    })
}

/// An object that is an output of the node, in which anything may be (only arrays are empty), or one that it changes:
/// in place, until the kernel returns. `length` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_job_write(
    job: *mut laxity_vx_job,
    object: u32,
    bytes: *mut *mut c_void,
    length: *mut usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the kernel has not returned, and that `bytes` can be written.
        let (lent, bytes) = unsafe { (get(job.cast_const())?, out(bytes, "bytes")?) };
        *bytes = std::ptr::null_mut();
        let mut state = lent.lock()?;
        let found = state.job.write(lent.object(object)?)?;
        *bytes = found.as_mut_ptr().cast();
        // SAFETY: the caller promises that `length` can be written unless it is null.
        if let Some(length) = unsafe { length.as_mut() } {
            *length = found.len();
        }
        Ok(())
    })
}

/// The GPU as the node's thread uses it: for copies and launches until the kernel returns. It belongs to the job, and
/// is not released. The first operation takes a token if there is an arbitration; the end of the job releases it, or,
/// earlier, laxity_device_release_token. LAXITY_ERROR_NO_GPU if the graph was spawned without one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_job_gpu(
    job: *mut laxity_vx_job,
    thread: *mut *mut laxity_device_thread,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `thread` can be written.
        let place = unsafe { out(thread, "thread") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the kernel has not returned.
        let mut state = unsafe { get(job.cast_const()) }?.lock()?;
        if state.gpu.is_null() {
            state.gpu = handle::make(OfThread::new(state.job.lend_gpu()?));
        }
        *place = state.gpu;
        Ok(())
    })
}

/// States why the kernel is about to fail. Threads that wait for the graph get this text, if the kernel does not return
/// 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_vx_job_fail(job: *mut laxity_vx_job, why: *const c_char) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the kernel has not returned, and that `why` ends with NUL.
        let (lent, why) = unsafe { (get(job.cast_const())?, text(why, "why")?) };
        lent.lock()?.failure = Some(why.to_owned());
        Ok(())
    })
}
