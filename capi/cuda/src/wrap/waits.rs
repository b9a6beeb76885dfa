//! Waits, and questions whether something is complete.

use super::wrapper;
use crate::issue::synchronize;
use crate::layer::Layer;
use crate::real;
use crate::types::*;

wrapper!(cuStreamSynchronize, (stream: Word), real => wait_for(stream, Default0::Legacy, || unsafe { real(stream) }));
wrapper!(cuStreamSynchronize_ptsz, (stream: Word), real
    => wait_for(stream, Default0::PerThread, || unsafe { real(stream) }));
wrapper!(cuStreamQuery, (stream: Word), real => ask(stream, Default0::Legacy, || unsafe { real(stream) }));
wrapper!(cuStreamQuery_ptsz, (stream: Word), real => ask(stream, Default0::PerThread, || unsafe { real(stream) }));
wrapper!(cuEventQuery, (event: Word), real => {
    // SAFETY: the program's call.
    let result = unsafe { real(event) };
    if result == SUCCESS { settle_event(event) }
    result
});
wrapper!(cuEventSynchronize, (event: Word), real => {
    let layer = Layer::get();
    let recorded = layer.is_on().then(|| layer.recorded(event as CUevent)).flatten();
    let _awaiting = recorded.as_ref().map(|(stream, until)| stream.before_wait(*until, true));
    // SAFETY: the program's call.
    let result = unsafe { real(event) };
    if result == SUCCESS { settle_event(event) }
    result
});
wrapper!(cuCtxSynchronize, (), real => wait_for_all(real::current_context(), || unsafe { real() }));
wrapper!(cuCtxSynchronize_v2, (context: Word), real => {
    let of = if context == 0 { real::current_context() } else { context as CUcontext };
    wait_for_all(of, || unsafe { real(context) })
});

/// By symbol.
pub fn rows() -> Vec<(&'static str, *const std::ffi::c_void)> {
    vec![
        ("cuStreamSynchronize", cuStreamSynchronize as _),
        ("cuStreamSynchronize_ptsz", cuStreamSynchronize_ptsz as _),
        ("cuStreamQuery", cuStreamQuery as _),
        ("cuStreamQuery_ptsz", cuStreamQuery_ptsz as _),
        ("cuEventQuery", cuEventQuery as _),
        ("cuEventSynchronize", cuEventSynchronize as _),
        ("cuCtxSynchronize", cuCtxSynchronize as _),
        ("cuCtxSynchronize_v2", cuCtxSynchronize_v2 as _),
    ]
}

fn wait_for(stream: Word, default: Default0, call: impl FnOnce() -> CUresult) -> CUresult {
    let layer = Layer::get();
    if !layer.is_on() || layer.is_captured(stream as CUstream, default) {
        return call();
    }
    synchronize(layer.known_stream(stream as CUstream, default).as_deref(), call)
}

fn ask(stream: Word, default: Default0, call: impl FnOnce() -> CUresult) -> CUresult {
    let layer = Layer::get();
    let known = layer.is_on().then(|| layer.known_stream(stream as CUstream, default)).flatten();
    let until = known.as_ref().and_then(|stream| stream.position());
    let result = call();
    if let (SUCCESS, Some(stream), Some(until)) = (result, known, until) {
        stream.settle(until);
    }
    result
}

fn settle_event(event: Word) {
    let layer = Layer::get();
    if let Some((stream, until)) = layer.is_on().then(|| layer.recorded(event as CUevent)).flatten() {
        stream.settle(until);
    }
}

fn wait_for_all(context: CUcontext, call: impl FnOnce() -> CUresult) -> CUresult {
    let layer = Layer::get();
    if !layer.is_on() {
        return call();
    }
    let streams = layer.streams_of(context);
    let until: Vec<_> = streams.iter().filter_map(|stream| Some((stream, stream.position()?))).collect();
    let is_all = until.len() == 1;
    let _awaiting: Vec<_> = until.iter().map(|(stream, until)| stream.before_wait(*until, is_all)).collect();
    let result = call();
    if result == SUCCESS {
        until.iter().for_each(|(stream, until)| stream.settle(*until));
    }
    result
}
