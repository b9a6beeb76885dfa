//! Streams, what they wait for, and captures of them.

use std::ffi::{c_int, c_uint};

use super::{entries, put, stream_entries};
use crate::context::Context;
use crate::dispatch::{Data, HostCall};
use crate::event::{EVENTS, Recorded};
use crate::graph::{self, GRAPHS, Step};
use crate::handles::lock;
use crate::stream::{self, Command, Kind, STREAMS};
use crate::types::*;

entries! { call:
    cuStreamCreate(stream: *mut CUstream, flags: c_uint) => create(stream, flags, 0);
    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int)
        => create(stream, flags, priority.clamp(-5, 0));
    cuStreamDestroy(stream: CUstream) => STREAMS.remove(stream).map(|stream| stream.let_go());
    cuStreamDestroy_v2(stream: CUstream) => STREAMS.remove(stream).map(|stream| stream.let_go());
    cuThreadExchangeStreamCaptureMode(mode: *mut c_int) => {
        if mode.is_null() || !(0..=2).contains(&*mode) {
            return Err(INVALID_VALUE);
        }
        put(mode, crate::context::exchange_capture_mode(*mode))
    };
}

stream_entries! { default:
    cuStreamGetFlags / cuStreamGetFlags_ptsz(stream: CUstream, flags: *mut c_uint)
        => put(flags, stream::find(stream, default)?.flags);
    cuStreamGetPriority / cuStreamGetPriority_ptsz(stream: CUstream, priority: *mut c_int)
        => put(priority, stream::find(stream, default)?.priority);
    cuStreamGetId / cuStreamGetId_ptsz(stream: CUstream, id: *mut u64) => put(id, stream::find(stream, default)?.id);
    cuStreamGetCtx / cuStreamGetCtx_ptsz(stream: CUstream, context: *mut CUcontext)
        => put(context, stream::find(stream, default)?.context.handle());
    cuStreamGetDevice / cuStreamGetDevice_ptsz(stream: CUstream, device: *mut CUdevice)
        => put(device, stream::find(stream, default)?.context.device.ordinal as CUdevice);
    cuStreamQuery / cuStreamQuery_ptsz(stream: CUstream) => {
        let stream = stream::find(stream, default)?;
        stream.refuse_in_capture()?;
        if stream.is_complete() { Ok(()) } else { Err(NOT_READY) }
    };
    cuStreamSynchronize / cuStreamSynchronize_ptsz(stream: CUstream) => stream::find(stream, default)?.synchronize();
    cuStreamWaitEvent / cuStreamWaitEvent_ptsz(stream: CUstream, event: CUevent, flags: c_uint) => {
        let (stream, event) = (stream::find(stream, default)?, EVENTS.get(event)?);
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let recorded = lock(&event.recorded);
        match &*recorded {
            Recorded::Never => Ok(()),
            Recorded::Captured { capture, nodes } => graph::wait(&stream, capture, nodes),
            Recorded::At { point, .. } => {
                let point = point.clone();
                drop(recorded);
                stream.refuse_in_capture()?;
                if point.is_complete() { Ok(()) } else { stream.enqueue([Command::Wait(point)]) }
            }
        }
    };
    cuStreamAddCallback / cuStreamAddCallback_ptsz(handle: CUstream, callback: StreamCallback, data: Handle, flags: c_uint)
        => {
            let stream = stream::find(handle, default)?;
            stream.refuse_in_capture()?;
            if flags != 0 || callback.is_none() {
                return Err(INVALID_VALUE);
            }
            stream.issue([Step::Host(HostCall::Callback(callback, Data(handle), Data(data)))])
        };
    cuLaunchHostFunc / cuLaunchHostFunc_ptsz(stream: CUstream, function: HostFunction, data: Handle) => {
        let stream = stream::find(stream, default)?;
        if function.is_none() {
            return Err(INVALID_VALUE);
        }
        stream.issue([Step::Host(HostCall::Function(function, Data(data)))])
    };
    cuStreamBeginCapture / cuStreamBeginCapture_ptsz(stream: CUstream)
        => graph::begin(&stream::find(stream, default)?, 0);
    cuStreamBeginCapture_v2 / cuStreamBeginCapture_v2_ptsz(stream: CUstream, mode: c_int)
        => graph::begin(&stream::find(stream, default)?, mode);
    cuStreamEndCapture / cuStreamEndCapture_ptsz(stream: CUstream, graph: *mut CUgraph) => {
        if graph.is_null() {
            return Err(INVALID_VALUE);
        }
        put(graph, std::ptr::null_mut())?;
        put(graph, GRAPHS.add(graph::end(&stream::find(stream, default)?)?))
    };
    cuStreamIsCapturing / cuStreamIsCapturing_ptsz(stream: CUstream, status: *mut c_int) => {
        let stream = stream::find(stream, default)?;
        // None, active, invalidated.
        put(status, lock(&stream.captured).as_ref().map_or(0, |captured| 1 + c_int::from(captured.capture.is_invalid())))
    };
    cuStreamGetCaptureInfo / cuStreamGetCaptureInfo_ptsz(stream: CUstream, status: *mut c_int, id: *mut u64) => {
        let stream = stream::find(stream, default)?;
        let captured = lock(&stream.captured);
        let found = captured.as_ref().map(|captured| &captured.capture);
        put(status, found.map_or(0, |capture| 1 + c_int::from(capture.is_invalid())))?;
        // A place that is null is left out.
        let _ = put(id, found.map_or(0, |capture| capture.id));
        Ok(())
    };
}

unsafe fn create(stream: *mut CUstream, flags: c_uint, priority: c_int) -> Outcome {
    if stream.is_null() || flags & !STREAM_NON_BLOCKING != 0 {
        return Err(INVALID_VALUE);
    }
    let kind = if flags & STREAM_NON_BLOCKING != 0 { Kind::NonBlocking } else { Kind::Blocking };
    let created = Context::current()?.add_stream(kind, flags, priority)?;
    // SAFETY: the program's place.
    unsafe { put(stream, STREAMS.add(created)) }
}
