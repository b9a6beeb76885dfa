//! Budgets of jobs that use GPUs, for the threads that enforce them.
//!
//! ```text
//!                laxity_budget_exhaust                    laxity_budget_replenish
//! holds nothing  ---------------------> asks for nothing  -----------------------> asks for a token as before
//! waits          ---------------------> is withdrawn      -----------------------> asks again, as if new
//! holds a token  ---------------------> the next waiter is admitted as if the token were free, and has it when it is
//! ```

use ::laxity_device::DeviceThread;
use laxity_gpu::Budget;

use crate::device::{laxity_device_thread, with};
use crate::error::answer;
use crate::error::laxity_result;
use crate::gpu_client::laxity_gpu_client;
use crate::handle::{self, Handle, out};

/// The budget of a thread's jobs, for the thread that enforces it: another thread, or the same one between its calls.
/// Threads may share it, and it may outlive the client.
pub struct laxity_budget {
    _opaque: (),
}

impl Handle for laxity_budget {
    type Value = Budget;
    const TAG: u64 = u64::from_le_bytes(*b"lax-budg");
    const NAME: &'static str = "budget";
}

/// The handle by which a thread tells that a job of this client has exhausted its budget. The client's thread calls
/// this; any thread may use the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_client_budget(
    client: *const laxity_gpu_client,
    budget: *mut *mut laxity_budget,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `budget` can be written.
        let place = unsafe { out(budget, "budget") }?;
        *place = std::ptr::null_mut();
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let state = unsafe { handle::get(client) }?.get()?;
        *place = handle::make(state.client().budget());
        Ok(())
    })
}

/// Whether the budget of the client's job is exhausted. A job that holds a token should then release it. The client's
/// thread calls this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_gpu_client_is_exhausted(
    client: *const laxity_gpu_client,
    is_exhausted: *mut bool,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `is_exhausted` can be written.
        let place = unsafe { out(is_exhausted, "is_exhausted") }?;
        // SAFETY: the caller promises that the handle is not released meanwhile.
        *place = unsafe { handle::get(client) }?.get()?.client().is_exhausted();
        Ok(())
    })
}

/// The handle by which a thread tells that a job of this thread has exhausted its budget; NULL without an arbitration.
/// If the job holds a token, its next operation waits for those under way, releases the token, and returns
/// LAXITY_ERROR_EXHAUSTED; otherwise the job waits for budget and a token. This thread calls this; any thread may use
/// the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_device_budget(
    thread: *mut laxity_device_thread,
    budget: *mut *mut laxity_budget,
) -> laxity_result {
    let ask = |thread: &mut DeviceThread| {
        // SAFETY: the caller promises that `budget` can be written.
        let place = unsafe { out(budget, "budget") }?;
        *place = thread.budget().map_or(std::ptr::null_mut(), handle::make);
        Ok(())
    };
    // SAFETY: the caller promises that the handle is not released meanwhile.
    unsafe { with(thread, ask) }
}

/// Tells that the job's budget is exhausted. Its request is withdrawn, and its thread goes on waiting; if it holds a
/// token, the next request in the queue is admitted in its place. Does nothing if that is known, or the client is
/// released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_budget_exhaust(budget: *const laxity_budget) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    answer(|| Ok(unsafe { handle::get(budget) }?.exhaust()?))
}

/// Tells that the job has budget again. It repeats its request, behind those that came meanwhile. A token that it still
/// holds does not get its place in the queue back. Does nothing if that is known, or the client is released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_budget_replenish(budget: *const laxity_budget) -> laxity_result {
    // SAFETY: the caller promises that the handle is not released meanwhile.
    answer(|| Ok(unsafe { handle::get(budget) }?.replenish()?))
}

/// Releases the handle of a budget, whose state stays. Sets `*budget` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_budget_release(budget: *mut *mut laxity_budget) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(budget) }.map(drop))
}
