//! Packets, tracks and events, written as they come.

use std::collections::BTreeSet;
use std::io;

use laxity_model::{CpuId, Engine, GpuId, Instant, JobId, LockId, ReplicaId, TaskId};
use prost::Message;

use super::messages::{
    DebugAnnotation, ProcessDescriptor, ThreadDescriptor, TracePacket, TracePacketDefaults, TrackDescriptor,
    TrackEvent, Value,
};
use super::names::{Category, Fact, Name, interned};
use crate::{Origin, TraceHeader};

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
    /// Tracks introduced on their first use.
    introduced: BTreeSet<Track>,
}

/// The number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track(u64);

/// What the tracks of a task's jobs show; each has a quarter of the numbers below the task's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// The jobs themselves.
    Jobs = 0,
    /// Their waits for locks.
    LockWaits = 1,
    /// Priorities that they inherit.
    Priority = 2,
}

impl LaneKind {
    /// The tracks of all jobs of a task have one name, so that the UI shows them as one.
    const fn name(self) -> &'static str {
        match self {
            LaneKind::Jobs => "jobs",
            LaneKind::LockWaits => "lock waits",
            LaneKind::Priority => "priority",
        }
    }
}

impl Track {
    const PROCESS: Track = Track(1);
    const OVERHEADS: Track = Track(2);
    const GPUS: Track = Track(3);
    const LOCKS: Track = Track(4);

    /// A CPU's overheads.
    pub fn cpu(cpu: CpuId) -> Track {
        Track(16 + u64::from(cpu.0))
    }

    /// When a CPU was stolen: on a track of its own, as a slice would overlap those of interrupts.
    fn stolen(cpu: CpuId) -> Track {
        Track((1 << 17) + u64::from(cpu.0))
    }

    /// What had a CPU and is no task: on a track of its own, as a slice would overlap what a job did there.
    fn outside(cpu: CpuId) -> Track {
        Track((1 << 18) + u64::from(cpu.0))
    }

    /// A task's thread.
    pub fn task(task: TaskId) -> Track {
        Track((1 + u64::from(task.0)) << 32)
    }

    /// One of the tracks of a task's jobs: those that are pending at the same time need as many.
    pub fn lane(task: TaskId, lane: u32, kind: LaneKind) -> Track {
        Track(Track::task(task).0 + ((kind as u64) << 30) + 1 + u64::from(lane))
    }

    /// An engine of a GPU: above the CPUs, whose numbers have 16 bits.
    pub fn engine(gpu: GpuId, engine: Engine) -> Track {
        Track((1 << 20) + (u64::from(gpu.0) << 2) + engine.index().min(2) as u64)
    }

    /// A replica of a lock: above every task there is memory for.
    pub fn replica(lock: LockId, replica: ReplicaId) -> Track {
        Track((1 << 63) + (u64::from(lock.0) << 16) + u64::from(replica.0))
    }
}

/// What an event is.
pub enum What {
    /// A slice begins.
    Begin(Name, Category),
    /// A slice with a name of its own begins.
    BeginNamed(String, Category),
    /// The slice that began last on the track ends.
    End,
    /// It happens at a point in time.
    Instant(Name, Category),
}

/// The arrows of an event, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Arrows {
    /// Those that begin here, or come from before and go on.
    pub through: Vec<u64>,
    /// Those that end here.
    pub ending: Vec<u64>,
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
        let mut packets = PacketWriter { writer, buffer: Vec::with_capacity(2 * CHUNK), introduced: BTreeSet::new() };
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
        let origin = match header.origin {
            Origin::Simulated => "",
            Origin::Live => ", recorded live",
        };
        let name = format!("{}{origin}", header.workload);
        let process = ProcessDescriptor { pid: Some(PROCESS), process_name: Some(name) };
        self.track(Track::PROCESS, None, TrackDescriptor { process: Some(process), ..TrackDescriptor::default() })?;
        self.group(Track::OVERHEADS, format!("overheads, {}", header.scheduled_by()))?;
        for cpu in (0..=u16::MAX).take(header.cpus) {
            let name = CpuId(cpu).to_string();
            self.member(Track::cpu(CpuId(cpu)), Track::OVERHEADS, name, i32::from(cpu))?;
        }
        if !header.gpus.is_empty() {
            self.group(Track::GPUS, format!("GPUs, {}", header.arbitration))?;
        }
        for (gpu, info) in (0..=u16::MAX).map(GpuId).zip(&header.gpus) {
            for engine in Engine::ALL.into_iter().take(1 + usize::from(info.copy_engines)) {
                let rank = 4 * i32::from(gpu.0) + engine.index() as i32;
                let name = format!("{} {}", info.name, engine.name());
                self.member(Track::engine(gpu, engine), Track::GPUS, name, rank)?;
            }
        }
        if !header.locks.is_empty() {
            self.group(Track::LOCKS, "locks".to_owned())?;
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

    /// A track of the workload that only has others below it, ordered by rank.
    fn group(&mut self, track: Track, name: String) -> io::Result<()> {
        let descriptor =
            TrackDescriptor { name: Some(name), child_ordering: Some(EXPLICIT), ..TrackDescriptor::default() };
        self.track(track, Some(Track::PROCESS), descriptor)
    }

    /// A track of a group.
    fn member(&mut self, track: Track, group: Track, name: String, rank: i32) -> io::Result<()> {
        let descriptor =
            TrackDescriptor { name: Some(name), sibling_order_rank: Some(rank), ..TrackDescriptor::default() };
        self.track(track, Some(group), descriptor)
    }

    /// One of the tracks of a task's jobs, introduced on its first use.
    pub fn lane(&mut self, task: TaskId, lane: u32, kind: LaneKind) -> io::Result<Track> {
        let track = Track::lane(task, lane, kind);
        if self.introduced.insert(track) {
            let descriptor = TrackDescriptor { name: Some(kind.name().to_owned()), ..TrackDescriptor::default() };
            self.track(track, Some(Track::task(task)), descriptor)?;
        }
        Ok(track)
    }

    /// The track of the time in which a CPU was stolen, introduced on its first use.
    pub fn stolen(&mut self, cpu: CpuId) -> io::Result<Track> {
        let track = Track::stolen(cpu);
        if self.introduced.insert(track) {
            self.member(track, Track::OVERHEADS, format!("{cpu} stolen"), i32::from(cpu.0))?;
        }
        Ok(track)
    }

    /// The track of what had a CPU and is no task, introduced on its first use.
    pub fn outside(&mut self, cpu: CpuId) -> io::Result<Track> {
        let track = Track::outside(cpu);
        if self.introduced.insert(track) {
            self.member(track, Track::OVERHEADS, format!("{cpu} other threads, interrupts"), i32::from(cpu.0))?;
        }
        Ok(track)
    }

    /// The track of a lock's replica, introduced on its first use: a lock may have thousands.
    pub fn replica(&mut self, header: &TraceHeader, lock: LockId, replica: ReplicaId) -> io::Result<Track> {
        let track = Track::replica(lock, replica);
        if self.introduced.insert(track) {
            let name = match header.locks.get(lock.index()) {
                Some(info) if info.replicas > 1 => format!("{} {}", info.name, replica.0),
                Some(info) => info.name.clone(),
                None => String::new(),
            };
            let rank = (i32::from(lock.0) << 15).saturating_add(i32::from(replica.0));
            self.member(track, Track::LOCKS, name, rank)?;
        }
        Ok(track)
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

    /// Writes an instant at which arrows begin and end.
    pub fn flow(
        &mut self,
        at: Instant,
        track: Track,
        (name, category): (Name, Category),
        arrows: Arrows,
        debug_annotations: Vec<DebugAnnotation>,
    ) -> io::Result<()> {
        let event = TrackEvent {
            flow_ids: arrows.through,
            terminating_flow_ids: arrows.ending,
            ..track_event(track, What::Instant(name, category), debug_annotations)
        };
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
        What::BeginNamed(name, category) => (1, None, Some(name), Some(category)),
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
