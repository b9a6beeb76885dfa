//! Streams, events, captures and graphs.

use std::ffi::{c_int, c_uint};

use super::{entries, stream_entries};
use crate::devices::{self, enter};
use crate::driver::ask;
use crate::types::*;

entries! {
    cudaStreamCreate(stream: *mut Stream) => create(stream, 0, 0);
    cudaStreamCreateWithFlags(stream: *mut Stream, flags: c_uint) => create(stream, flags, 0);
    cudaStreamCreateWithPriority(stream: *mut Stream, flags: c_uint, priority: c_int) => create(stream, flags, priority);
    cudaStreamDestroy(stream: Stream) => ask!(c"cuStreamDestroy": fn(Stream)(stream));
    cudaEventCreate(event: *mut Event) => create_event(event, 0);
    cudaEventCreateWithFlags(event: *mut Event, flags: c_uint) => create_event(event, flags);
    cudaEventDestroy(event: Event) => ask!(c"cuEventDestroy": fn(Event)(event));
    cudaEventQuery(event: Event) => ask!(c"cuEventQuery": fn(Event)(event));
    cudaEventSynchronize(event: Event) => ask!(c"cuEventSynchronize": fn(Event)(event));
    cudaEventElapsedTime(milliseconds: *mut f32, from: Event, to: Event)
        => ask!(c"cuEventElapsedTime": fn(*mut f32, Event, Event)(milliseconds, from, to));
    cudaThreadExchangeStreamCaptureMode(mode: *mut c_int) => {
        devices::init()?;
        ask!(c"cuThreadExchangeStreamCaptureMode": fn(*mut c_int)(mode))
    };
    cudaGraphCreate(graph: *mut Handle, flags: c_uint) => {
        enter()?;
        ask!(c"cuGraphCreate": fn(*mut Handle, c_uint)(graph, flags))
    };
    cudaGraphDestroy(graph: Handle) => ask!(c"cuGraphDestroy": fn(Handle)(graph));
    cudaGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize)
        => ask!(c"cuGraphGetNodes": fn(Handle, *mut Handle, *mut usize)(graph, nodes, count));
    cudaGraphInstantiate(exec: *mut Handle, graph: Handle, flags: u64) => instantiate(exec, graph, flags);
    cudaGraphInstantiateWithFlags(exec: *mut Handle, graph: Handle, flags: u64) => instantiate(exec, graph, flags);
    cudaGraphExecDestroy(exec: Handle) => ask!(c"cuGraphExecDestroy": fn(Handle)(exec));
    cudaGraphExecGetFlags(exec: Handle, flags: *mut u64)
        => ask!(c"cuGraphExecGetFlags": fn(Handle, *mut u64)(exec, flags));
}

stream_entries! { default:
    cudaStreamSynchronize / cudaStreamSynchronize_ptsz(stream: Stream) => {
        enter()?;
        ask!(c"cuStreamSynchronize": fn(Stream)(default.stream(stream)))
    };
    cudaStreamQuery / cudaStreamQuery_ptsz(stream: Stream) => {
        enter()?;
        ask!(c"cuStreamQuery": fn(Stream)(default.stream(stream)))
    };
    cudaStreamWaitEvent / cudaStreamWaitEvent_ptsz(stream: Stream, event: Event, flags: c_uint) => {
        enter()?;
        ask!(c"cuStreamWaitEvent": fn(Stream, Event, c_uint)(default.stream(stream), event, flags))
    };
    cudaStreamGetFlags / cudaStreamGetFlags_ptsz(stream: Stream, flags: *mut c_uint) => {
        enter()?;
        ask!(c"cuStreamGetFlags": fn(Stream, *mut c_uint)(default.stream(stream), flags))
    };
    cudaStreamGetPriority / cudaStreamGetPriority_ptsz(stream: Stream, priority: *mut c_int) => {
        enter()?;
        ask!(c"cuStreamGetPriority": fn(Stream, *mut c_int)(default.stream(stream), priority))
    };
    cudaStreamGetId / cudaStreamGetId_ptsz(stream: Stream, id: *mut u64) => {
        enter()?;
        ask!(c"cuStreamGetId": fn(Stream, *mut u64)(default.stream(stream), id))
    };
    cudaStreamAddCallback / cudaStreamAddCallback_ptsz
        (stream: Stream, callback: StreamCallback, data: Handle, flags: c_uint) => {
        enter()?;
        ask!(c"cuStreamAddCallback": fn(Stream, StreamCallback, Handle, c_uint)(
            default.stream(stream), callback, data, flags
        ))
    };
    cudaLaunchHostFunc / cudaLaunchHostFunc_ptsz(stream: Stream, function: HostFunction, data: Handle) => {
        enter()?;
        ask!(c"cuLaunchHostFunc": fn(Stream, HostFunction, Handle)(default.stream(stream), function, data))
    };
    cudaStreamBeginCapture / cudaStreamBeginCapture_ptsz(stream: Stream, mode: c_int) => {
        enter()?;
        ask!(c"cuStreamBeginCapture": fn(Stream, c_int)(default.stream(stream), mode))
    };
    cudaStreamEndCapture / cudaStreamEndCapture_ptsz(stream: Stream, graph: *mut Handle) => {
        enter()?;
        ask!(c"cuStreamEndCapture": fn(Stream, *mut Handle)(default.stream(stream), graph))
    };
    cudaStreamIsCapturing / cudaStreamIsCapturing_ptsz(stream: Stream, status: *mut c_int) => {
        enter()?;
        ask!(c"cuStreamIsCapturing": fn(Stream, *mut c_int)(default.stream(stream), status))
    };
    cudaEventRecord / cudaEventRecord_ptsz(event: Event, stream: Stream) => {
        enter()?;
        ask!(c"cuEventRecord": fn(Event, Stream)(event, default.stream(stream)))
    };
    cudaEventRecordWithFlags / cudaEventRecordWithFlags_ptsz(event: Event, stream: Stream, flags: c_uint) => {
        enter()?;
        ask!(c"cuEventRecordWithFlags": fn(Event, Stream, c_uint)(event, default.stream(stream), flags))
    };
    cudaGraphLaunch / cudaGraphLaunch_ptsz(exec: Handle, stream: Stream) => {
        enter()?;
        ask!(c"cuGraphLaunch": fn(Handle, Stream)(exec, default.stream(stream)))
    };
    cudaGraphUpload / cudaGraphUpload_ptsz(exec: Handle, stream: Stream) => {
        enter()?;
        ask!(c"cuGraphUpload": fn(Handle, Stream)(exec, default.stream(stream)))
    };
}

fn create(stream: *mut Stream, flags: c_uint, priority: c_int) -> Outcome {
    enter()?;
    ask!(c"cuStreamCreateWithPriority": fn(*mut Stream, c_uint, c_int)(stream, flags, priority))
}

fn create_event(event: *mut Event, flags: c_uint) -> Outcome {
    enter()?;
    ask!(c"cuEventCreate": fn(*mut Event, c_uint)(event, flags))
}

fn instantiate(exec: *mut Handle, graph: Handle, flags: u64) -> Outcome {
    enter()?;
    ask!(c"cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64)(exec, graph, flags))
}
