//! Events.

use std::ffi::c_uint;
use std::sync::{Arc, Mutex};

use super::{entries, put, stream_entries};
use crate::context::Context;
use crate::event::{EVENTS, Event, Mark, Point, Recorded};
use crate::handles::lock;
use crate::stream::{self, Command};
use crate::types::*;

entries! { call:
    cuEventCreate(event: *mut CUevent, flags: c_uint) => {
        if event.is_null() || flags & !EVENT_FLAGS != 0 {
            return Err(INVALID_VALUE);
        }
        let created = Event { context: Context::current()?, flags, recorded: Mutex::default() };
        put(event, EVENTS.add(Arc::new(created)))
    };
    cuEventDestroy(event: CUevent) => EVENTS.remove(event).map(drop);
    cuEventDestroy_v2(event: CUevent) => EVENTS.remove(event).map(drop);
    cuEventQuery(event: CUevent) => EVENTS.get(event)?.query();
    cuEventSynchronize(event: CUevent) => EVENTS.get(event)?.wait();
    cuEventElapsedTime(milliseconds: *mut f32, from: CUevent, to: CUevent) => elapsed(milliseconds, from, to);
    cuEventElapsedTime_v2(milliseconds: *mut f32, from: CUevent, to: CUevent) => elapsed(milliseconds, from, to);
}

stream_entries! { default:
    cuEventRecord / cuEventRecord_ptsz(event: CUevent, stream: CUstream)
        => record(&*EVENTS.get(event)?, &stream::find(stream, default)?);
    cuEventRecordWithFlags / cuEventRecordWithFlags_ptsz(event: CUevent, stream: CUstream, flags: c_uint)
        => if flags <= 1 { record(&*EVENTS.get(event)?, &stream::find(stream, default)?) } else { Err(INVALID_VALUE) };
}

fn record(event: &Event, stream: &Arc<stream::Stream>) -> Outcome {
    if !Arc::ptr_eq(&event.context, &stream.context) {
        return Err(INVALID_HANDLE);
    }
    if let Some(captured) = &*lock(&stream.captured) {
        let (capture, nodes) = (captured.capture.clone(), captured.nodes.clone());
        *lock(&event.recorded) = Recorded::Captured { capture, nodes };
        return Ok(());
    }
    let recorded = if event.flags & EVENT_DISABLE_TIMING != 0 && stream.implicit_waits()?.is_empty() {
        Recorded::At { point: stream.point(), time: None }
    } else {
        let mark = Arc::<Mark>::default();
        stream.enqueue([Command::Record(mark.clone())])?;
        let time = (event.flags & EVENT_DISABLE_TIMING == 0).then(|| mark.clone());
        Recorded::At { point: Point::Mark(mark), time }
    };
    *lock(&event.recorded) = recorded;
    Ok(())
}

unsafe fn elapsed(milliseconds: *mut f32, from: CUevent, to: CUevent) -> Outcome {
    let (from, to) = (EVENTS.get(from)?.time()?, EVENTS.get(to)?.time()?);
    // SAFETY: the program's place.
    unsafe { put(milliseconds, ((to.0 as f64 - from.0 as f64) / 1e6) as f32) }
}
