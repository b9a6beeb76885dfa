//! One description of a state, read in both directions.

use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};

use super::Damaged;
use crate::cpu::Priority;
use crate::lock::discipline::Request;

/// Appends numbers to a list, or takes them from one in the same order.
///
/// Every method passes one value: it appends the number of the value, or replaces the value by the next number after
/// checking it. Optional numbers are saved as 0 if absent, else as the number plus one.
#[derive(Debug)]
pub struct Codec<'a> {
    direction: Direction<'a>,
    /// How many tasks there are.
    tasks: usize,
}

#[derive(Debug)]
enum Direction<'a> {
    Save(&'a mut Vec<u64>),
    Load { numbers: &'a [u64], position: usize },
}

impl<'a> Codec<'a> {
    pub(in crate::lock) fn save(numbers: &'a mut Vec<u64>, tasks: usize) -> Self {
        Codec { direction: Direction::Save(numbers), tasks }
    }

    pub(in crate::lock) fn load(numbers: &'a [u64], tasks: usize) -> Self {
        Codec { direction: Direction::Load { numbers, position: 0 }, tasks }
    }

    /// How many tasks there are.
    #[inline]
    pub(in crate::lock) fn tasks(&self) -> usize {
        self.tasks
    }

    /// Whether values are replaced by numbers.
    #[inline]
    pub(in crate::lock) fn is_loading(&self) -> bool {
        matches!(self.direction, Direction::Load { .. })
    }

    /// That the number passed last is not `expected`.
    #[cold]
    pub(in crate::lock) fn damaged(&self, expected: &'static str) -> Damaged {
        let position = match &self.direction {
            Direction::Save(numbers) => numbers.len(),
            Direction::Load { position, .. } => *position,
        };
        Damaged { position: position.saturating_sub(1), expected }
    }

    /// Fails unless `holds`, which a saved state does.
    #[inline]
    pub(in crate::lock) fn expect(&self, holds: bool, expected: &'static str) -> Result<(), Damaged> {
        if holds || !self.is_loading() { Ok(()) } else { Err(self.damaged(expected)) }
    }

    /// Any number.
    #[inline]
    pub(in crate::lock) fn number(&mut self, value: &mut u64) -> Result<(), Damaged> {
        match &mut self.direction {
            Direction::Save(numbers) => numbers.push(*value),
            Direction::Load { numbers, position } => {
                let number = numbers.get(*position).copied();
                *position += 1;
                *value = number.ok_or_else(|| self.damaged("there"))?;
            }
        }
        Ok(())
    }

    /// A number below `bound`.
    #[inline]
    pub(in crate::lock) fn below(
        &mut self,
        mut value: u64,
        bound: u64,
        expected: &'static str,
    ) -> Result<u64, Damaged> {
        self.number(&mut value)?;
        self.expect(value < bound, expected)?;
        Ok(value)
    }

    /// How many things follow, at most `most`.
    #[inline]
    pub(in crate::lock) fn count(&mut self, count: usize, most: usize) -> Result<usize, Damaged> {
        Ok(self.below(count as u64, (most as u64).saturating_add(1), "a possible count")? as usize)
    }

    /// At most `most` items, each passed by `item`; the list must support pushing at its end.
    #[inline]
    pub(in crate::lock) fn list<T: Default, L: List<T>>(
        &mut self,
        list: &mut L,
        most: usize,
        mut item: impl FnMut(&mut Self, &mut T) -> Result<(), Damaged>,
    ) -> Result<(), Damaged> {
        let count = self.count(list.length(), most)?;
        if self.is_loading() {
            list.clear();
            for _ in 0..count {
                let mut loaded = T::default();
                item(self, &mut loaded)?;
                list.push(loaded);
            }
            return Ok(());
        }
        list.items().try_for_each(|saved| item(self, saved))
    }

    #[inline]
    pub(in crate::lock) fn task(&mut self, task: &mut TaskId) -> Result<(), Damaged> {
        task.0 = self.below(task.0.into(), self.tasks as u64, "a task")? as u32;
        Ok(())
    }

    #[inline]
    pub(in crate::lock) fn optional_task(&mut self, task: &mut Option<TaskId>) -> Result<(), Damaged> {
        let number = task.map_or(0, |task| 1 + u64::from(task.0));
        let number = self.below(number, self.tasks as u64 + 1, "a task or none")?;
        *task = number.checked_sub(1).map(|task| TaskId(task as u32));
        Ok(())
    }

    #[inline]
    pub(in crate::lock) fn optional_gpu(&mut self, gpu: &mut Option<u16>) -> Result<(), Damaged> {
        let number = self.below(gpu.map_or(0, |gpu| 1 + u64::from(gpu)), 1 << 16 | 1, "a GPU or none")?;
        *gpu = number.checked_sub(1).map(|gpu| gpu as u16);
        Ok(())
    }

    #[inline]
    pub(in crate::lock) fn u32(&mut self, value: &mut u32) -> Result<(), Damaged> {
        *value = self.below((*value).into(), 1 << 32, "a number of 32 bits")? as u32;
        Ok(())
    }

    #[inline]
    pub(in crate::lock) fn nanos(&mut self, span: &mut Nanos) -> Result<(), Damaged> {
        self.number(&mut span.0)
    }

    #[inline]
    pub(in crate::lock) fn instant(&mut self, instant: &mut Instant) -> Result<(), Damaged> {
        self.number(&mut instant.0)
    }

    #[inline]
    pub(in crate::lock) fn lock(&mut self, lock: &mut LockId, locks: usize) -> Result<(), Damaged> {
        lock.0 = self.below(lock.0.into(), locks as u64, "a lock")? as u16;
        Ok(())
    }

    #[inline]
    pub(in crate::lock) fn replica(&mut self, replica: &mut ReplicaId, replicas: usize) -> Result<(), Damaged> {
        replica.0 = self.below(replica.0.into(), replicas as u64, "a replica of the lock")? as u16;
        Ok(())
    }

    #[inline]
    pub(in crate::lock) fn priority(&mut self, priority: &mut Priority) -> Result<(), Damaged> {
        self.task(&mut priority.task)?;
        self.number(&mut priority.major)?;
        self.u32(&mut priority.tie)
    }

    #[inline]
    pub(in crate::lock) fn request(&mut self, request: &mut Request) -> Result<(), Damaged> {
        self.task(&mut request.task)?;
        self.nanos(&mut request.length)?;
        self.optional_gpu(&mut request.only)
    }
}

/// What [`Codec::list`] passes item by item.
pub(in crate::lock) trait List<T> {
    fn length(&self) -> usize;
    fn clear(&mut self);
    fn push(&mut self, item: T);
    fn items<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a;
}

impl<T> List<T> for Vec<T> {
    fn length(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn push(&mut self, item: T) {
        self.push(item);
    }

    fn items<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.iter_mut()
    }
}

impl<T> List<T> for std::collections::VecDeque<T> {
    fn length(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn push(&mut self, item: T) {
        self.push_back(item);
    }

    fn items<'a>(&'a mut self) -> impl Iterator<Item = &'a mut T>
    where
        T: 'a,
    {
        self.iter_mut()
    }
}
