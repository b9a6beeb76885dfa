//! The states of the waiting disciplines.

use laxity_model::{Nanos, TaskId};
use smallvec::SmallVec;

use super::{Codec, Damaged, Saved};
use crate::cpu::Priority;
use crate::lock::discipline::Request;
use crate::lock::kfmlp::KFmlp;
use crate::lock::queue::Queue;
use crate::lock::tokens::Tokens;
use crate::lock::tokens::affinity::{Affinity, History, Hold, SAMPLE_MAX, WINDOW, Window};
use crate::lock::tokens::fifos::{Fifo, Fifos};
use crate::lock::tokens::requests::{Entry, RequestState, Requests};

/// Numbers of a [`Request`].
const REQUEST: usize = 3;

impl Saved for Queue {
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        self.holders.iter_mut().try_for_each(|holder| codec.optional_task(holder))?;
        codec.list(&mut self.waiting, codec.tasks(), Codec::request)
    }

    fn numbers_max(&self, tasks: usize) -> usize {
        self.holders.len() + 1 + REQUEST * tasks
    }
}

impl Saved for KFmlp {
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        let tasks = codec.tasks();
        self.queues.iter_mut().try_for_each(|queue| codec.list(queue, tasks, Codec::request))
    }

    fn numbers_max(&self, tasks: usize) -> usize {
        self.queues.len() + REQUEST * tasks
    }
}

impl Saved for Tokens {
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        let replicas = self.fifos.replicas().count();
        self.requests.code(codec, replicas)?;
        self.fifos.code(codec)?;
        if codec.is_loading() {
            let agrees = |(task, replica)| self.fifos.contains(replica, task);
            let agree = self.requests.queued().all(agrees) && self.requests.queued().count() == self.fifos.total();
            codec.expect(agree, "the end of a state in which requests are where they say")?;
        }
        self.affinity.iter_mut().try_for_each(|affinity| affinity.code(codec))
    }

    fn numbers_max(&self, tasks: usize) -> usize {
        let affinity = self.affinity.as_ref().map_or(0, |_| Affinity::numbers_max(tasks));
        Requests::numbers_max(tasks) + self.fifos.numbers_max(tasks) + affinity
    }
}

impl Requests {
    fn code(&mut self, codec: &mut Codec<'_>, replicas: usize) -> Result<(), Damaged> {
        codec.list(&mut self.entries, codec.tasks(), |codec, entry: &mut Entry| {
            codec.priority(&mut entry.priority)?;
            codec.nanos(&mut entry.length)?;
            codec.optional_gpu(&mut entry.only)?;
            entry.state.code(codec, replicas)
        })?;
        if !codec.is_loading() {
            return Ok(());
        }
        let mut tasks: SmallVec<[TaskId; 16]> = self.entries.iter().map(|entry| entry.priority.task).collect();
        tasks.sort_unstable();
        codec.expect(tasks.is_sorted_by(|a, b| a < b), "the end of requests of which each task has one")?;
        let is_queued = |donee| self.rank(donee).is_some_and(|rank| self.entries[rank].replica().is_some());
        let are_queued = self.donations().all(|(_, donee)| is_queued(donee));
        codec.expect(are_queued, "the end of requests in which donees are in queues")
    }

    fn numbers_max(tasks: usize) -> usize {
        1 + 7 * tasks
    }
}

impl RequestState {
    /// A kind, and where there is one a replica or a donee.
    fn code(&mut self, codec: &mut Codec<'_>, replicas: usize) -> Result<(), Damaged> {
        let kind = match self {
            RequestState::Waiting => 0,
            RequestState::Queued(_) => 1,
            RequestState::Donor { .. } => 2,
        };
        match codec.below(kind, 3, "the state of a request")? {
            0 => {
                *self = RequestState::Waiting;
                codec.below(0, 1, "nothing").map(|_| ())
            }
            1 => {
                let mut replica = if let RequestState::Queued(replica) = *self { replica } else { Default::default() };
                codec.replica(&mut replica, replicas)?;
                *self = RequestState::Queued(replica);
                Ok(())
            }
            _ => {
                let mut donee = if let RequestState::Donor { donee } = *self { donee } else { Default::default() };
                codec.task(&mut donee)?;
                *self = RequestState::Donor { donee };
                Ok(())
            }
        }
    }
}

impl Fifos {
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        let tasks = codec.tasks();
        self.queues.iter_mut().try_for_each(|Fifo { requests, overran }| {
            codec.optional_task(overran)?;
            codec.list(requests, tasks, Codec::task)
        })
    }

    fn numbers_max(&self, tasks: usize) -> usize {
        2 * self.queues.len() + tasks
    }
}

impl Affinity {
    fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        codec.list(&mut self.tasks, codec.tasks(), |codec, history: &mut History| {
            codec.optional_gpu(&mut history.last_gpu)?;
            let mut gpu = history.current.map(|hold| hold.gpu);
            codec.optional_gpu(&mut gpu)?;
            let Hold { mut since, mut estimate, .. } = history.current.unwrap_or_default();
            if let Some(gpu) = gpu {
                codec.instant(&mut since)?;
                codec.nanos(&mut estimate)?;
                history.current = Some(Hold { since, gpu, estimate });
            }
            let Window { samples: at_home } = &mut history.at_home;
            codec.list(at_home, WINDOW, sample)?;
            codec.list(&mut history.away.samples, WINDOW, sample)
        })
    }

    fn numbers_max(tasks: usize) -> usize {
        1 + tasks * (4 + 2 * (1 + WINDOW))
    }
}

fn sample(codec: &mut Codec<'_>, sample: &mut Nanos) -> Result<(), Damaged> {
    *sample = Nanos(codec.below(sample.0, SAMPLE_MAX.0 + 1, "a sample")?);
    Ok(())
}

impl Default for Request {
    fn default() -> Self {
        Request { task: TaskId(0), length: Nanos::ZERO, only: None }
    }
}

impl Default for Entry {
    fn default() -> Self {
        let priority = Priority::of(0, TaskId(0));
        Entry { priority, length: Nanos::ZERO, only: None, state: RequestState::Waiting }
    }
}
