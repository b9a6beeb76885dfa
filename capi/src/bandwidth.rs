//! The bandwidth lock, and the memory traffic that programs count themselves.

use crate::error::{answer, laxity_result};
use crate::gpu::laxity_gpus;
use crate::gpu_client::laxity_gpu_client;
use crate::handle;

/// Begins a section in which every regulated CPU may have at most `budget` bytes of memory traffic a second: the thread
/// holds the bandwidth lock until laxity_bandwidth_unlock, also while it is suspended. It excludes no thread, sections
/// nest, and the least budget of all holders counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_lock(client: *mut laxity_gpu_client, budget: u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(unsafe { handle::get(client) }?.get()?.client().begin_bandwidth(budget)?)
    })
}

/// Ends the innermost section. LAXITY_ERROR_ORDER if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_unlock(client: *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(unsafe { handle::get(client) }?.get()?.client().end_bandwidth()?)
    })
}

/// Before an asynchronous operation: the thread holds the bandwidth lock until it has synchronized with `stream`, any
/// number by which it knows the stream, such as its handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_launch(
    client: *mut laxity_gpu_client,
    stream: u64,
    budget: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(unsafe { handle::get(client) }?.get()?.client().launch_bandwidth(stream, budget)?)
    })
}

/// After all operations of `stream` are complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_synchronize(client: *mut laxity_gpu_client, stream: u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(unsafe { handle::get(client) }?.get()?.client().synchronize_bandwidth(Some(stream))?)
    })
}

/// After all operations of all streams of this thread are complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_synchronize_all(client: *mut laxity_gpu_client) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        Ok(unsafe { handle::get(client) }?.get()?.client().synchronize_bandwidth(None)?)
    })
}

/// Writes to `is_held` whether any thread holds the bandwidth lock, and then to `budget` the least budget of the holders.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_budget(
    gpus: *const laxity_gpus,
    is_held: *mut bool,
    budget: *mut u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that both can be written, and that the handle is not released meanwhile.
        let (held, budget) = unsafe { (handle::out(is_held, "is_held")?, handle::out(budget, "budget")?) };
        // SAFETY: as above.
        let least = unsafe { handle::get(gpus) }?.bandwidth_budget();
        *held = least.is_some();
        *budget = least.unwrap_or(0);
        Ok(())
    })
}

/// Counts `bytes` of memory traffic of this thread on its CPU. A best-effort program that is regulated by what it counts
/// calls this every few KiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_bandwidth_count(gpus: *const laxity_gpus, bytes: u64) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        unsafe { handle::get(gpus) }?.count_traffic(bytes);
        Ok(())
    })
}
