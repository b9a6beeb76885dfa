//! Arrivals in C that are put into the queue before they are reported: claimed, put in, and reported with events in between.

use laxity_model::{CpuId, Instant};
use laxity_policy::cpu::Event;
use laxity_scx::native::{Arrival, Leaf, Queue, Refusal};
use laxity_testing::Random;

use crate::driver::{Difference, Job, Twins, id, must};

/// An arrival that was not reported yet.
#[derive(Clone, Copy, Debug)]
pub struct Early {
    task: usize,
    cpu: usize,
    leaf: Leaf,
    is_in: bool,
    event: Arriving,
}

#[derive(Clone, Copy, Debug)]
enum Arriving {
    Released(u64),
    Resumed,
    Woken((u64, u32)),
}

impl Arriving {
    fn arrival(self) -> Arrival {
        if matches!(self, Arriving::Resumed) { Arrival::Back } else { Arrival::Fresh }
    }
}

impl Twins {
    /// Whether the next arrival of `task` is on its way.
    pub fn is_early(&self, task: usize) -> bool {
        self.early.iter().any(|early| early.task == task)
    }

    /// Goes on with an early arrival, or has another one begin; `None`: neither.
    pub fn arrive_early(&mut self, random: &mut Random) -> Result<Option<bool>, Difference> {
        if self.cluster.queue == Queue::Coarse || random.below(4) > 0 {
            return Ok(None);
        }
        if self.early.is_empty() || (self.early.len() < 5 && random.below(2) == 0) {
            return self.begin_early(random).map(|()| Some(false));
        }
        let at = random.below(self.early.len() as u64) as usize;
        let early = self.early[at];
        if early.is_in {
            self.early.swap_remove(at);
            return self.end_early(early, random).map(Some);
        }
        self.comes_second(early)?;
        let level = self.early_level(early.task, early.event, random);
        let leaf = self.c.put_early(early.task as u32, early.leaf, early.cpu as u32, level);
        self.early[at] = Early { leaf, is_in: true, ..early };
        Ok(Some(false))
    }

    fn begin_early(&mut self, random: &mut Random) -> Result<(), Difference> {
        let task = random.below(self.jobs.len() as u64) as usize;
        let cpu = random.below(self.links.len() as u64) as usize;
        let event = match self.jobs[task] {
            _ if self.is_early(task) => return Ok(()),
            Job::Ready
                if [Arrival::Fresh, Arrival::Back].into_iter().any(|it| self.c.claim(task as u32, it).is_some()) =>
            {
                return Err(format!("the job of task {task} is pending, and C lets it arrive"));
            }
            Job::Ready => return Ok(()),
            Job::Suspended => Arriving::Resumed,
            Job::Inactive if task < self.cluster.tasks => Arriving::Released(self.drawn_major(random)),
            Job::Inactive => Arriving::Woken(self.level(random)),
        };
        let (number, arrival) = (task as u32, event.arrival());
        let is_first = self.first[task].is_none();
        let is_in = random.below(2) == 0;
        let leaf = if is_in {
            let level = self.early_level(task, event, random);
            self.c.arrive_early(number, arrival, cpu as u32, level)
        } else {
            self.c.claim(number, arrival)
        };
        match leaf {
            Some(leaf) if is_first || !is_in => self.early.push(Early { task, cpu, leaf, is_in, event }),
            None if is_in && !is_first => {}
            _ => return Err(format!("task {task}, {event:?}: an early arrival, and C says {leaf:?}")),
        }
        Ok(())
    }

    /// Mostly the one that it will have; what another CPU does meanwhile may change it.
    fn early_level(&self, task: usize, event: Arriving, random: &mut Random) -> (u64, u32) {
        let (major, tie) = match event {
            Arriving::Released(major) => self.cluster.level(task, major),
            Arriving::Resumed => self.levels[task],
            Arriving::Woken(level) => level,
        };
        match random.below(4) {
            0 => self.level(random),
            1 => (major, random.below(self.jobs.len() as u64) as u32),
            _ => (major, tie),
        }
    }

    /// While a job is claimed another arrival of it is refused.
    fn comes_second(&mut self, early: Early) -> Result<(), Difference> {
        let task = early.task as u32;
        let (outcome, expected) = match early.event {
            Arriving::Released(major) => (self.c.release(task, major), Refusal::IsPending),
            Arriving::Resumed => (self.c.resume(task), Refusal::NotSuspended),
            Arriving::Woken(level) => (self.c.wake(task, None, level), Refusal::IsPending),
        };
        if outcome == Err(expected) {
            return Ok(());
        }
        Err(format!("the job of task {task} arrives twice, and C says {outcome:?}"))
    }

    /// The arrival of what is in the queue is reported, or it turns out that it must not be.
    fn end_early(&mut self, early: Early, random: &mut Random) -> Result<bool, Difference> {
        let (task, at) = (early.task, CpuId(early.cpu as u16));
        let is_reported = random.below(8) > 0;
        if is_reported {
            self.jobs[task] = Job::Ready;
            self.c.expect(early.leaf);
            match early.event {
                Arriving::Released(major) => {
                    self.levels[task] = self.cluster.level(task, major);
                    self.tell(Event::Released { cpu: at, task: id(task), deadline: Instant(major) });
                    must(self.c.release(task as u32, major))?;
                }
                Arriving::Resumed => {
                    self.tell(Event::Resumed { cpu: at, task: id(task) });
                    must(self.c.resume(task as u32))?;
                }
                Arriving::Woken(level) => {
                    self.levels[task] = level;
                    self.tell(Event::Woken { cpu: at, thread: id(task), owner: None, level });
                    must(self.c.wake(task as u32, None, level))?;
                }
            }
        }
        self.c.end_early(task as u32);
        Ok(is_reported)
    }
}
