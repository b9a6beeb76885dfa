//! The part of Perfetto's trace format that is written here: messages and field numbers of
//! `protos/perfetto/trace/*.proto` (Perfetto is Apache-2.0), as plain structs. Readers skip unlisted fields.

/// A whole trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// Its packets.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One packet.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Scheduling events of one CPU.
    #[prost(message, optional, tag = "1")]
    pub ftrace_events: Option<FtraceEventBundle>,
    /// Time of the event, in ns.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The sequence that it belongs to; interned names are per sequence.
    #[prost(uint32, tag = "10")]
    pub trusted_packet_sequence_id: u32,
    /// An event on a track.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Names that later packets refer to by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// 1: forget what was interned before; 2: needs what was interned.
    #[prost(uint32, tag = "13")]
    pub sequence_flags: u32,
    /// What holds where a packet says nothing.
    #[prost(message, optional, tag = "59")]
    pub trace_packet_defaults: Option<TracePacketDefaults>,
    /// Introduces a track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    /// Whether no packet of the sequence came before.
    #[prost(bool, tag = "87")]
    pub first_packet_on_sequence: bool,
}

/// Defaults of a sequence.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacketDefaults {
    /// The clock of timestamps; 6 is the time since boot.
    #[prost(uint32, tag = "58")]
    pub timestamp_clock_id: u32,
}

/// Scheduling events of one CPU.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FtraceEventBundle {
    /// The CPU. Written even if 0.
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    /// The events, ordered by time.
    #[prost(message, repeated, tag = "2")]
    pub event: Vec<FtraceEvent>,
}

/// A scheduling event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FtraceEvent {
    /// When, in ns.
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    /// The thread that was running.
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    /// The CPU switched threads.
    #[prost(message, optional, tag = "4")]
    pub sched_switch: Option<SchedSwitch>,
    /// A thread became ready.
    #[prost(message, optional, tag = "20")]
    pub sched_waking: Option<SchedWaking>,
}

/// The CPU switched from one thread to another.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedSwitch {
    /// Name of the thread switched out.
    #[prost(string, optional, tag = "1")]
    pub prev_comm: Option<String>,
    /// Its number.
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    /// Its priority.
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    /// Its state: 0 idle thread, 1 sleeps, 256 preempted.
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    /// Name of the thread switched in.
    #[prost(string, optional, tag = "5")]
    pub next_comm: Option<String>,
    /// Its number.
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    /// Its priority.
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

/// A thread became ready.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SchedWaking {
    /// Its name.
    #[prost(string, optional, tag = "1")]
    pub comm: Option<String>,
    /// Its number.
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    /// Its priority.
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    /// Always 1.
    #[prost(int32, optional, tag = "4")]
    pub success: Option<i32>,
    /// Where.
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

/// A track: of a process, a thread, or just named.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Its number, by which events name it.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name; process and thread tracks have their own.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// The process it is.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// The thread it is.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The track it is shown below.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Order of its children: 3 is by `sibling_order_rank`.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Place among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// A process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A thread.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ThreadDescriptor {
    /// Its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its number.
    #[prost(int64, optional, tag = "2")]
    pub tid: Option<i64>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

/// An event on a track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Its category, interned.
    #[prost(uint64, repeated, tag = "3")]
    pub category_iids: Vec<u64>,
    /// Facts about it.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// 1: a slice begins; 2: the last slice begun ends; 3: an instant.
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Its name, interned.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Its track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Arrows that leave from here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// A fact about an event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Its name, interned.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Its value.
    #[prost(oneof = "Value", tags = "2, 3, 4, 6")]
    pub value: Option<Value>,
}

/// The value of a [`DebugAnnotation`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// Yes or no.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// A count, a point in time or a span, in ns.
    #[prost(uint64, tag = "3")]
    Unsigned(u64),
    /// A signed span in ns.
    #[prost(int64, tag = "4")]
    Signed(i64),
    /// A name.
    #[prost(string, tag = "6")]
    Text(String),
}

/// Names that later packets refer to by number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Categories.
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<InternedName>,
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Names of annotations.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
}

/// A name and its number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedName {
    /// The number, not 0.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
