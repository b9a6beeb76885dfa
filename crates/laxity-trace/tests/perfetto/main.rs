//! What the Perfetto UI will be shown.

#[path = "../gantt/fixtures.rs"]
mod fixtures;
mod golden;
mod gpu_tracks;
#[path = "../gantt/gpus.rs"]
mod gpus;
mod raw;
mod sched;
mod tracks;

use laxity_trace::perfetto::export;
use laxity_trace::perfetto::messages::{Trace, TracePacket};
use laxity_trace::{Record, TraceHeader};
use prost::Message as _;

/// The bytes of an exported trace.
fn bytes(header: &TraceHeader, records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    export(header, records, &mut bytes).expect("writing to memory does not fail");
    bytes
}

/// The packets of an exported trace.
fn packets(header: &TraceHeader, records: &[Record]) -> Vec<TracePacket> {
    Trace::decode(bytes(header, records).as_slice()).expect("what was written is read").packet
}
