//! Streams and events: how they come and go, what is recorded, what is captured.

use super::wrapper;
use crate::layer::Layer;
use crate::types::*;

wrapper!(cuStreamDestroy, (stream: Word), real => {
    Layer::get().forget_stream(stream as CUstream);
    // SAFETY: the program's call.
    unsafe { real(stream) }
});
wrapper!(cuStreamDestroy_v2, (stream: Word), real => {
    Layer::get().forget_stream(stream as CUstream);
    // SAFETY: the program's call.
    unsafe { real(stream) }
});
wrapper!(cuEventCreate, (event: Word, flags: Word), real => {
    let blocking = if Layer::get().suspends() { EVENT_BLOCKING_SYNC as Word } else { 0 };
    // SAFETY: the program's call, with one flag more.
    unsafe { real(event, flags | blocking) }
});
wrapper!(cuEventDestroy, (event: Word), real => {
    Layer::get().forget_event(event as CUevent);
    // SAFETY: the program's call.
    unsafe { real(event) }
});
wrapper!(cuEventDestroy_v2, (event: Word), real => {
    Layer::get().forget_event(event as CUevent);
    // SAFETY: the program's call.
    unsafe { real(event) }
});
wrapper!(cuEventRecord, (event: Word, stream: Word), real
    => record(event, stream, Default0::Legacy, || unsafe { real(event, stream) }));
wrapper!(cuEventRecord_ptsz, (event: Word, stream: Word), real
    => record(event, stream, Default0::PerThread, || unsafe { real(event, stream) }));
wrapper!(cuEventRecordWithFlags, (event: Word, stream: Word, flags: Word), real
    => record(event, stream, Default0::Legacy, || unsafe { real(event, stream, flags) }));
wrapper!(cuEventRecordWithFlags_ptsz, (event: Word, stream: Word, flags: Word), real
    => record(event, stream, Default0::PerThread, || unsafe { real(event, stream, flags) }));

/// Captures: each wrapper that begins or ends one.
macro_rules! captures {
    ($($symbol:ident($stream:ident $(, $name:ident)*) => $then:ident;)*) => {
        $(
            wrapper!($symbol, ($stream: Word $(, $name: Word)*), real => {
                // An event of ours that was recorded later would be part of the capture.
                Layer::get().close_tails();
                // SAFETY: the program's call.
                let result = unsafe { real($stream $(, $name)*) };
                $then(result);
                result
            });
        )*

        /// By symbol.
        pub fn rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![
                ("cuStreamDestroy", cuStreamDestroy as _),
                ("cuStreamDestroy_v2", cuStreamDestroy_v2 as _),
                ("cuEventCreate", cuEventCreate as _),
                ("cuEventDestroy", cuEventDestroy as _),
                ("cuEventDestroy_v2", cuEventDestroy_v2 as _),
                ("cuEventRecord", cuEventRecord as _),
                ("cuEventRecord_ptsz", cuEventRecord_ptsz as _),
                ("cuEventRecordWithFlags", cuEventRecordWithFlags as _),
                ("cuEventRecordWithFlags_ptsz", cuEventRecordWithFlags_ptsz as _),
                $((stringify!($symbol), $symbol as *const std::ffi::c_void)),*
            ]
        }
    };
}

captures! {
    cuStreamBeginCapture(stream) => begins;
    cuStreamBeginCapture_ptsz(stream) => begins;
    cuStreamBeginCapture_v2(stream, mode) => begins;
    cuStreamBeginCapture_v2_ptsz(stream, mode) => begins;
    cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode) => begins;
    cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies, edges, count, mode) => begins;
    cuStreamBeginRecaptureToGraph(stream, mode, graph, callback, data) => begins;
    cuStreamBeginRecaptureToGraph_ptsz(stream, mode, graph, callback, data) => begins;
    cuStreamBeginCaptureToCig(stream, parameters) => begins;
    cuStreamBeginCaptureToCig_ptsz(stream, parameters) => begins;
    cuStreamEndCapture(stream, graph) => ends;
    cuStreamEndCapture_ptsz(stream, graph) => ends;
    cuStreamEndCaptureToCig(stream) => ends;
    cuStreamEndCaptureToCig_ptsz(stream) => ends;
}

/// `CUDA_ERROR_ILLEGAL_STATE`, `CUDA_ERROR_STREAM_CAPTURE_UNMATCHED`, `..._WRONG_THREAD`: no capture ended.
const STILL_CAPTURED: [CUresult; 3] = [401, 903, 908];

fn begins(result: CUresult) {
    if result == SUCCESS {
        Layer::get().begin_capture();
    }
}

fn ends(result: CUresult) {
    if !STILL_CAPTURED.contains(&result) {
        Layer::get().end_capture();
    }
}

fn record(event: Word, stream: Word, default: Default0, call: impl FnOnce() -> CUresult) -> CUresult {
    let layer = Layer::get();
    let result = call();
    if result == SUCCESS && layer.is_on() {
        let is_captured = layer.is_captured(stream as CUstream, default);
        match layer.known_stream(stream as CUstream, default).filter(|_| !is_captured) {
            Some(stream) => layer.record(event as CUevent, &stream),
            None => layer.forget_event(event as CUevent),
        }
    }
    result
}
