//! Interrupt sources that serve no job: a network card, a disk.

use crate::{Arrival, CpuId, ExecutionTime, Nanos};

/// A device whose bottom halves are anonymous: no job owns them. Those of GPUs have owners and follow from the
/// operations of jobs.
///
/// Where its bottom halves run is said by [`GpuManagement::handling`](crate::GpuManagement::handling), as for those of
/// GPUs, but for the two kinds of handling that go by the owner's priority. Process-aware interrupts have no owner to go
/// by and run them as standard Linux does. klmirqd gives the device an independent thread, which [`Device::server`]
/// schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Unique name.
    pub name: String,
    /// The cluster it belongs to: an index into [`Platform::clusters`](crate::Platform::clusters).
    pub cluster: usize,
    /// How its interrupts arrive, the first at time 0.
    pub arrival: Arrival,
    /// Exact (periodic) or minimum (sporadic) separation of interrupts.
    pub period: Nanos,
    /// How long the top half of an interrupt takes.
    pub top_half: ExecutionTime,
    /// How long its bottom half takes.
    pub bottom_half: ExecutionTime,
    /// CPUs that may receive its interrupts; never empty.
    pub interrupt_cpus: Vec<CpuId>,
    /// The server of its klmirqd thread; `None`: the thread runs when no real-time job wants a CPU of its cluster.
    pub server: Option<Server>,
}

/// A bandwidth server: whatever it runs gets at most `budget` in `period`, at the priority of a task of this period
/// and an equal deadline. It bounds what anonymous bottom halves take from jobs (paper 000, section III, independent
/// threads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    /// What happens when the budget is used up.
    pub kind: ServerKind,
    /// CPU time in each period, from 1 ns to the period.
    pub budget: Nanos,
    /// Its period.
    pub period: Nanos,
    /// For fixed priorities given by hand: the smaller number is the higher priority.
    pub priority: Option<u32>,
}

/// What a server does when its budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// Constant bandwidth server, hard reservation: it waits until its deadline, when the budget is full again.
    CbsHard,
    /// Constant bandwidth server: the budget is full at once and the deadline a period later, so that it may go on
    /// with less urgency (Abeni & Buttazzo, RTSS 1998).
    CbsSoft,
    /// Sporadic server: each part of the budget comes back a period after there was first work for it, whether that had the
    /// CPU then or not (Sprunt, Sha & Lehoczky 1989).
    Sporadic,
}

impl ServerKind {
    /// All kinds.
    pub const ALL: [ServerKind; 3] = [ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            ServerKind::CbsHard => "cbs_hard",
            ServerKind::CbsSoft => "cbs_soft",
            ServerKind::Sporadic => "sporadic",
        }
    }
}
