//! Packets, tracks and events, written as they come.

use std::io;

use laxity_model::{CpuId, Instant, JobId, TaskId};
use prost::Message;

use super::messages::{
    DebugAnnotation, ProcessDescriptor, ThreadDescriptor, TracePacket, TracePacketDefaults, TrackDescriptor,
    TrackEvent, Value,
};
use super::names::{Category, Fact, Name, interned};
use crate::TraceHeader;

/// The process that stands for the workload. Its threads, the tasks, have the numbers after it.
pub const PROCESS: i32 = 1_000;
/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;
/// Time since boot.
const CLOCK_BOOTTIME: u32 = 6;
/// Children are ordered by their rank.
const EXPLICIT: i32 = 3;
/// Bytes collected before they are handed on.
const CHUNK: usize = 64 * 1_024;

/// Writes packets.
pub struct PacketWriter<W> {
    writer: W,
    buffer: Vec<u8>,
}

/// The number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track(u64);

impl Track {
    const PROCESS: Track = Track(1);
    const OVERHEADS: Track = Track(2);

    /// A CPU's overheads.
    pub fn cpu(cpu: CpuId) -> Track {
        Track(16 + u64::from(cpu.0))
    }

    /// A task's thread.
    pub fn task(task: TaskId) -> Track {
        Track((1 + u64::from(task.0)) << 32)
    }

    /// One of the tracks of a task's jobs: those that are pending at the same time need as many.
    pub fn lane(task: TaskId, lane: u32) -> Track {
        Track(Track::task(task).0 + 1 + u64::from(lane))
    }
}

/// What an event is.
pub enum What {
    /// A slice begins.
    Begin(Name, Category),
    /// A job's slice begins.
    BeginJob(String),
    /// The slice that began last on the track ends.
    End,
    /// It happens at a point in time.
    Instant(Name, Category),
}

/// The thread of a task.
pub fn tid(task: TaskId) -> i32 {
    i32::try_from(task.0).unwrap_or(i32::MAX).saturating_add(PROCESS + 1)
}

/// A fact about an event.
pub fn fact(name: Fact, value: Value) -> DebugAnnotation {
    DebugAnnotation { name_iid: Some(name.iid()), value: Some(value) }
}

impl<W: io::Write> PacketWriter<W> {
    /// Starts the trace: interned names, and a track for the workload and for every task and CPU.
    pub fn new(writer: W, header: &TraceHeader) -> io::Result<Self> {
        let mut packets = PacketWriter { writer, buffer: Vec::with_capacity(2 * CHUNK) };
        packets.packet(TracePacket {
            sequence_flags: STATE_CLEARED,
            first_packet_on_sequence: true,
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: CLOCK_BOOTTIME }),
            interned_data: Some(interned()),
            ..TracePacket::default()
        })?;
        packets.workload(header)?;
        Ok(packets)
    }

    fn workload(&mut self, header: &TraceHeader) -> io::Result<()> {
        let process = ProcessDescriptor { pid: Some(PROCESS), process_name: Some(header.workload.clone()) };
        self.track(Track::PROCESS, None, TrackDescriptor { process: Some(process), ..TrackDescriptor::default() })?;
        let name = format!("overheads, {}", header.scheduler);
        let overheads =
            TrackDescriptor { name: Some(name), child_ordering: Some(EXPLICIT), ..TrackDescriptor::default() };
        self.track(Track::OVERHEADS, Some(Track::PROCESS), overheads)?;
        for cpu in (0..=u16::MAX).take(header.cpus) {
            let descriptor = TrackDescriptor {
                name: Some(CpuId(cpu).to_string()),
                sibling_order_rank: Some(i32::from(cpu)),
                ..TrackDescriptor::default()
            };
            self.track(Track::cpu(CpuId(cpu)), Some(Track::OVERHEADS), descriptor)?;
        }
        for (task, info) in (0..=u32::MAX).zip(&header.tasks) {
            let thread = ThreadDescriptor {
                pid: Some(PROCESS),
                tid: Some(i64::from(tid(TaskId(task)))),
                thread_name: Some(info.name.clone()),
            };
            let descriptor = TrackDescriptor { thread: Some(thread), ..TrackDescriptor::default() };
            self.track(Track::task(TaskId(task)), None, descriptor)?;
        }
        Ok(())
    }

    /// Introduces a track of jobs. Those of a task have one name, so that the UI shows them as one.
    pub fn lane(&mut self, task: TaskId, lane: u32) -> io::Result<()> {
        let descriptor = TrackDescriptor { name: Some("jobs".to_owned()), ..TrackDescriptor::default() };
        self.track(Track::lane(task, lane), Some(Track::task(task)), descriptor)
    }

    fn track(&mut self, track: Track, parent: Option<Track>, descriptor: TrackDescriptor) -> io::Result<()> {
        let parent_uuid = parent.map(|parent| parent.0);
        let descriptor = TrackDescriptor { uuid: Some(track.0), parent_uuid, ..descriptor };
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })
    }

    /// Writes an event on a track.
    pub fn event(
        &mut self,
        at: Instant,
        track: Track,
        what: What,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        let event = track_event(track, what, debug_annotations);
        self.track_event(at, event)
    }

    /// Writes an instant from which an arrow leaves (`starts`), or at which it ends.
    pub fn flow(&mut self, at: Instant, track: Track, name: Name, flow: u64, starts: bool) -> io::Result<()> {
        let mut event = track_event(track, What::Instant(name, Category::Overhead), Vec::new());
        let ids = if starts { &mut event.flow_ids } else { &mut event.terminating_flow_ids };
        ids.push(flow);
        self.track_event(at, event)
    }

    fn track_event(&mut self, at: Instant, event: TrackEvent) -> io::Result<()> {
        self.packet(TracePacket {
            timestamp: Some(at.0),
            sequence_flags: NEEDS_STATE,
            track_event: Some(event),
            ..TracePacket::default()
        })
    }

    /// Writes one packet of the sequence.
    pub fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let packet = TracePacket { trusted_packet_sequence_id: SEQUENCE, ..packet };
        // Field 1 of `Trace`, length-delimited: a trace is the concatenation of its packets.
        self.buffer.push(0x0A);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        if self.buffer.len() >= CHUNK {
            self.writer.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Hands on what was collected, and the writer back.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.write_all(&self.buffer)?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}

fn track_event(track: Track, what: What, debug_annotations: Vec<DebugAnnotation>) -> TrackEvent {
    let (kind, name_iid, name, category) = match what {
        What::Begin(name, category) => (1, Some(name.iid()), None, Some(category)),
        What::BeginJob(name) => (1, None, Some(name), Some(Category::Job)),
        What::End => (2, None, None, None),
        What::Instant(name, category) => (3, Some(name.iid()), None, Some(category)),
    };
    TrackEvent {
        r#type: Some(kind),
        track_uuid: Some(track.0),
        name_iid,
        name,
        category_iids: category.map(Category::iid).into_iter().collect(),
        debug_annotations,
        ..TrackEvent::default()
    }
}

/// The name of a job's slice: `camera 3`.
pub fn job_name(header: &TraceHeader, job: JobId) -> String {
    match header.tasks.get(job.task.index()) {
        Some(task) => format!("{} {}", task.name, job.index),
        None => job.to_string(),
    }
}
