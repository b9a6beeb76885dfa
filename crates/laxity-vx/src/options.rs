//! How a graph is executed.

use std::path::PathBuf;

use laxity_device::Device;
use laxity_graph::RECORDER_DEFAULT;
use laxity_model::{Instant, Nanos};
use laxity_sched::System;

/// How a graph is executed: begin with [`SpawnOptions::every`].
#[derive(Clone, Debug)]
pub struct SpawnOptions {
    /// A frame is released so often.
    pub period: Nanos,
    /// How the nodes' threads are scheduled.
    pub policy: Policy,
    /// For [`Policy::Laxity`]: the system whose tasks the nodes are, among those of other graphs and processes.
    pub system: Option<System>,
    /// Replicas of each object: how many frames can be worked on at the same time. By default the graph's depth.
    pub replicas: Option<u32>,
    /// When time 0 is, on the monotonic clock: releases that are over then happen at once. By default, when all threads
    /// are ready.
    pub start: Option<Instant>,
    /// The first frame is released so long after time 0.
    pub phase: Nanos,
    /// The graph ends after so many frames.
    pub frames: Option<u64>,
    /// No frame is released so long after the first, or later.
    pub duration: Option<Nanos>,
    /// The CPUs that threads keep to; empty for all.
    pub cpus: Vec<usize>,
    /// Whether all memory of the process is kept in RAM.
    pub lock_memory: bool,
    /// What kernels use through [`Job::gpu`](crate::Job::gpu): one for the process.
    pub gpu: Option<Device>,
    /// How many of its last jobs each node remembers, for traces and releases.
    pub recorder: u32,
    /// For [`Policy::Laxity`], of a graph that has a system of one cluster to itself, whose locks are those of its GPUs: where
    /// its trace is written, with the links of the policy. It is whole when the run has been waited for, or is dropped.
    pub trace: Option<PathBuf>,
}

/// How the threads of nodes are scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`: as other programs.
    #[default]
    Other,
    /// `SCHED_FIFO`: a node's priority is this one and the length of the longest path from the input callback to it, as
    /// it is more important to finish frames than to begin them (paper 003, section 5.4.1).
    Fifo {
        /// The priority of the input callback.
        base: u8,
    },
    /// `SCHED_DEADLINE`: each node has a budget in each period of the graph, which is also its relative deadline.
    Deadline {
        /// Where budgets come from.
        budgets: Budgets,
    },
    /// Laxity's own scheduler, by the policy of [`SpawnOptions::system`]: each node is a task, whose jobs have the deadlines
    /// that follow from the graph (paper 003, section 5.2.3: an early job keeps its deadline, a late one shifts those behind
    /// it). With a GPU, the device is to be opened with the same system ([`DeviceOptions::scheduling`]).
    ///
    /// [`DeviceOptions::scheduling`]: laxity_device::DeviceOptions::scheduling
    Laxity {
        /// Which of the system's clusters the nodes are in.
        cluster: usize,
    },
}

/// Where the budgets of nodes come from, for [`Policy::Deadline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budgets {
    /// [`Node::budget`](crate::Node::budget) says.
    Given {
        /// That of nodes that say nothing; without, they are refused. Callbacks that say nothing have
        /// [`Budgets::CALLBACK`], if this is `None`.
        default: Option<Nanos>,
    },
    /// Measured: each node runs some frames under `SCHED_OTHER`, and then has the most that a job of them needed, with a
    /// margin, but no more than the period. Nodes with a budget of their own are not measured.
    Measured {
        /// How many frames.
        frames: u32,
        /// How much is added, in hundredths.
        margin_percent: u32,
    },
}

impl Budgets {
    /// That of a callback of which nothing is said.
    pub const CALLBACK: Nanos = Nanos::from_micros(100);

    /// The least that Linux takes.
    pub const MIN: Nanos = Nanos(1024);
}

impl SpawnOptions {
    /// A frame every `period`, without end, under `SCHED_OTHER`.
    pub fn every(period: Nanos) -> SpawnOptions {
        SpawnOptions {
            period,
            policy: Policy::Other,
            system: None,
            replicas: None,
            start: None,
            phase: Nanos::ZERO,
            frames: None,
            duration: None,
            cpus: Vec::new(),
            lock_memory: false,
            gpu: None,
            recorder: RECORDER_DEFAULT,
            trace: None,
        }
    }

    /// How many frames are to be released, if they end.
    pub(crate) fn frames(&self) -> Option<u64> {
        let in_time = self.duration.map(|duration| duration.0.div_ceil(self.period.0.max(1)));
        [self.frames, in_time].into_iter().flatten().min()
    }
}
