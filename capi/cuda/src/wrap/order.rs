//! What is behind it in its stream waits for: events, functions of the host, values in memory, other interfaces.

use super::stream_wrappers;
use crate::issue::wait;
use crate::layer::Layer;
use crate::real::ask;
use crate::types::*;

stream_wrappers! { real, default:
    cuStreamWaitEvent / cuStreamWaitEvent_ptsz(stream: Word, event: Word, flags: Word) => {
        let call = || unsafe { real(stream, event, flags) };
        // An event whose operations are complete holds nothing up. One of a capture must not be asked: that ends it.
        let layer = Layer::get();
        let is_free = !layer.is_on()
            || match layer.is_any_captured() {
                true => {
                    // The stream may join a capture by this.
                    layer.close_tails();
                    layer.recorded(event as CUevent).is_none()
                }
                false => ask!(c"cuEventQuery": fn(CUevent)(event as CUevent)) != NOT_READY,
            };
        if is_free { call() } else { wait(stream as CUstream, default, call) }
    };
    cuLaunchHostFunc / cuLaunchHostFunc_ptsz(stream: Word, function: Word, data: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, function, data) });
    cuLaunchHostFunc_v2 / cuLaunchHostFunc_v2_ptsz(stream: Word, function: Word, data: Word, mode: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, function, data, mode) });
    cuStreamAddCallback / cuStreamAddCallback_ptsz(stream: Word, function: Word, data: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, function, data, flags) });
    cuStreamWaitValue32 / cuStreamWaitValue32_ptsz(stream: Word, address: Word, value: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, address, value, flags) });
    cuStreamWaitValue32_v2 / cuStreamWaitValue32_v2_ptsz(stream: Word, address: Word, value: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, address, value, flags) });
    cuStreamWaitValue64 / cuStreamWaitValue64_ptsz(stream: Word, address: Word, value: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, address, value, flags) });
    cuStreamWaitValue64_v2 / cuStreamWaitValue64_v2_ptsz(stream: Word, address: Word, value: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, address, value, flags) });
    cuStreamBatchMemOp / cuStreamBatchMemOp_ptsz(stream: Word, count: Word, list: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, count, list, flags) });
    cuStreamBatchMemOp_v2 / cuStreamBatchMemOp_v2_ptsz(stream: Word, count: Word, list: Word, flags: Word)
        => wait(stream as CUstream, default, || unsafe { real(stream, count, list, flags) });
    cuWaitExternalSemaphoresAsync / cuWaitExternalSemaphoresAsync_ptsz
        (semaphores: Word, list: Word, count: Word, stream: Word)
        => wait(stream as CUstream, default, || unsafe { real(semaphores, list, count, stream) });
}
