//! Latest-value edges: which value a job reads.

use laxity_model::{EdgeId, JobId, TaskId};

/// A latest-value edge between tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatestEdge {
    /// Its number.
    pub edge: EdgeId,
    /// The task that writes the value.
    pub producer: TaskId,
    /// The task that reads it.
    pub consumer: TaskId,
}

/// The values of all latest-value edges. A job that begins reads what the producer's newest complete job wrote; jobs of a
/// task complete in order, so that their number is the whole state. Simulated and live graphs share it.
#[derive(Clone, Debug)]
pub struct LatestValues {
    edges: Vec<LatestEdge>,
    /// By task, how many jobs are complete.
    completed: Vec<u32>,
    /// By task, how many jobs began.
    begun: Vec<u32>,
}

impl LatestValues {
    /// Nothing written yet.
    pub fn new(edges: &[LatestEdge], tasks: usize) -> Self {
        LatestValues { edges: edges.to_vec(), completed: vec![0; tasks], begun: vec![0; tasks] }
    }

    /// `job` begins: hands each edge that it reads to `read`, and the index of the job whose value it finds there. Nothing if
    /// it began before.
    pub fn begin(&mut self, job: JobId, read: impl FnMut(EdgeId, Option<u32>)) {
        if self.begun[job.task.index()] <= job.index {
            self.begun[job.task.index()] = job.index + 1;
            self.read(job.task, read);
        }
    }

    /// As [`LatestValues::begin`], for a job that may have begun before and lost what it read.
    pub fn read(&self, consumer: TaskId, mut read: impl FnMut(EdgeId, Option<u32>)) {
        for edge in self.edges.iter().filter(|edge| edge.consumer == consumer) {
            read(edge.edge, self.completed[edge.producer.index()].checked_sub(1));
        }
    }

    /// `job` is complete: from now on its value is the newest.
    pub fn complete(&mut self, job: JobId) {
        self.completed[job.task.index()] = job.index + 1;
    }
}
