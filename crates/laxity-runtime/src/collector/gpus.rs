//! The histories of the engines of soft GPUs, as their servers remember them.

use std::collections::{BTreeMap, VecDeque};

use laxity_model::{GpuId, Instant, JobId, TaskId};
use laxity_softgpu::{Entry, SoftGpu, What};
use laxity_trace::Event;

use crate::gpus;
use crate::handler::owner_of;

/// The GPUs of a run.
#[derive(Debug)]
pub(super) struct Gpus {
    gpus: Vec<Gpu>,
    /// Keeps them open.
    _open: gpus::Gpus,
}

#[derive(Debug)]
struct Gpu {
    gpu: SoftGpu,
    /// How many entries were read, and those that are not in the trace.
    read: u64,
    entries: VecDeque<Entry>,
    is_broken: bool,
    streams: Owners,
    /// The owners of interrupts that are not handled.
    raised: VecDeque<JobId>,
}

/// The tasks whose jobs issue the operations of a GPU's streams, by the numbers of these; `None`: one that is none of the run's.
#[derive(Clone, Debug)]
enum Owners {
    Known(BTreeMap<u32, TaskId>),
    /// Asked for by name when a stream first does something.
    Named {
        since: Instant,
        of: BTreeMap<u32, Option<TaskId>>,
    },
}

/// How it is known which streams of GPUs are those of which task.
#[derive(Clone, Debug)]
pub(crate) enum Streams {
    /// For each task the numbers of its streams, one a GPU.
    Numbered(Vec<Vec<u32>>),
    /// By their names, which the threads that handle interrupts go by, too: from that time on.
    Named { since: Instant },
}

/// An entry of a history.
pub(super) enum GpuRecord {
    Event(Event),
    /// The GPU interrupts the CPU of that number in Linux.
    Interrupt {
        cpu: usize,
        job: JobId,
    },
}

impl Owners {
    /// Asks `gpu` for the owner of a stream that is not known. Answers whether `entry` is one of the run.
    fn learn(&mut self, gpu: &SoftGpu, entry: &Entry) -> bool {
        let Owners::Named { since, of } = self else { return true };
        if entry.at < *since {
            return false;
        }
        let name = || gpu.stream_name(entry.stream).ok();
        of.entry(entry.stream).or_insert_with(|| name().and_then(|name| owner_of(&name)));
        true
    }

    fn of(&self, stream: u32) -> Option<TaskId> {
        match self {
            Owners::Known(streams) => streams.get(&stream).copied(),
            Owners::Named { of, .. } => of.get(&stream).copied().flatten(),
        }
    }
}

impl Gpus {
    /// Those of a run.
    pub fn new(open: gpus::Gpus, streams: &Streams) -> Gpus {
        let gpu = |(number, gpu): (usize, &SoftGpu)| {
            let of_task = |(task, numbers): (usize, &Vec<u32>)| Some((*numbers.get(number)?, TaskId(task as u32)));
            let streams = match streams {
                Streams::Numbered(streams) => Owners::Known(streams.iter().enumerate().filter_map(of_task).collect()),
                &Streams::Named { since } => Owners::Named { since, of: BTreeMap::new() },
            };
            Gpu {
                gpu: gpu.clone(),
                read: 0,
                entries: VecDeque::new(),
                is_broken: false,
                streams,
                raised: VecDeque::new(),
            }
        };
        Gpus { gpus: open.gpus.iter().enumerate().map(gpu).collect(), _open: open }
    }

    /// Takes the new entries of the servers. Entries that they add later have later times.
    pub fn read(&mut self) {
        for gpu in &mut self.gpus {
            while !gpu.is_broken {
                match gpu.gpu.history(gpu.read) {
                    Ok((_, entries)) if entries.is_empty() => break,
                    Ok((first, entries)) if first == gpu.read => {
                        gpu.read += entries.len() as u64;
                        let streams = &mut gpu.streams;
                        let of_run = entries.into_iter().filter(|entry| streams.learn(&gpu.gpu, entry));
                        gpu.entries.extend(of_run);
                    }
                    // The server has forgotten entries, or has gone with them.
                    Ok(_) | Err(_) => gpu.is_broken = true,
                }
            }
        }
    }

    /// Whether something is missing.
    pub fn is_broken(&self) -> bool {
        self.gpus.iter().any(|gpu| gpu.is_broken)
    }

    /// Which GPU did the next thing, and when.
    pub fn next(&self) -> Option<(Instant, usize)> {
        let first = |(number, gpu): (usize, &Gpu)| gpu.entries.front().map(|entry| (entry.at, number));
        self.gpus.iter().enumerate().filter_map(first).min()
    }

    /// When the last thing happened that is not in the trace.
    pub fn last(&self) -> Option<Instant> {
        self.gpus.iter().filter_map(|gpu| gpu.entries.back()).map(|entry| entry.at).max()
    }

    /// Removes the next thing that the GPU of `number` did, and answers what that was.
    pub fn take(&mut self, number: usize) -> Option<GpuRecord> {
        let id = GpuId(number as u16);
        let gpu = &mut self.gpus[number];
        let Entry { what, engine, cpu, stream, job: index, .. } = gpu.entries.pop_front()?;
        // Other processes may use the GPU, if they know its name; their operations are not the run's.
        let job = JobId { task: gpu.streams.of(stream)?, index: index? };
        match what {
            What::Issued => None,
            What::Began => Some(GpuRecord::Event(Event::EngineBegin { gpu: id, engine, job })),
            What::Ended => Some(GpuRecord::Event(Event::EngineEnd { gpu: id, engine, job })),
            What::Interrupted => {
                gpu.raised.push_back(job);
                Some(GpuRecord::Interrupt { cpu: cpu.into(), job })
            }
        }
    }

    /// The owner of the interrupt of device `number` that is handled next: a GPU's has one.
    pub fn handle(&mut self, number: usize) -> Option<JobId> {
        self.gpus.get_mut(number)?.raised.pop_front()
    }
}
