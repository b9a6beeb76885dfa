//! The histories of the engines of soft GPUs, as their servers remember them.

use std::collections::{BTreeMap, VecDeque};

use laxity_model::{GpuId, Instant, JobId, TaskId};
use laxity_softgpu::{Entry, SoftGpu, What};
use laxity_trace::Event;

use crate::gpus;

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
    /// By number of the stream its task.
    streams: BTreeMap<u32, TaskId>,
    /// The owners of interrupts that are not handled.
    raised: VecDeque<JobId>,
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

impl Gpus {
    /// `streams` lists for each task the numbers of its streams, one a GPU.
    pub fn new(open: gpus::Gpus, streams: &[Vec<u32>]) -> Gpus {
        let gpu = |(number, gpu): (usize, &SoftGpu)| {
            let of_task = |(task, numbers): (usize, &Vec<u32>)| Some((*numbers.get(number)?, TaskId(task as u32)));
            Gpu {
                gpu: gpu.clone(),
                read: 0,
                entries: VecDeque::new(),
                is_broken: false,
                streams: streams.iter().enumerate().filter_map(of_task).collect(),
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
                        gpu.entries.extend(entries);
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
        let job = JobId { task: *gpu.streams.get(&stream)?, index: index? };
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
