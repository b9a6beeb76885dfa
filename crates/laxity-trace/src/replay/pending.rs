//! The pending jobs of a task, in the order of their release.

use std::collections::VecDeque;

use laxity_model::Instant;

/// A task's released and incomplete jobs with their deadlines. Jobs are released and complete in index order; a
/// recording may begin with any index. Grows with the backlog only.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// Index of the oldest pending job, or of the next to be released if none is pending.
    oldest: u32,
    deadlines: VecDeque<Instant>,
    started: bool,
}

impl Pending {
    /// Adds job `index`; `false`, and nothing is added, if it is not the next one.
    #[inline]
    pub fn release(&mut self, index: u32, deadline: Instant) -> bool {
        if !self.started {
            self.started = true;
            self.oldest = index;
        }
        let next = u64::from(self.oldest) + self.deadlines.len() as u64;
        let in_order = u64::from(index) == next;
        if in_order {
            self.deadlines.push_back(deadline);
        }
        in_order
    }

    /// Removes job `index` and returns its deadline; `None`, and nothing is removed, if it is not the oldest.
    #[inline]
    pub fn complete(&mut self, index: u32) -> Option<Instant> {
        let deadline = self.deadline(index).filter(|_| index == self.oldest)?;
        self.deadlines.pop_front();
        // After the last index a task can have, nothing follows.
        self.oldest = self.oldest.saturating_add(1);
        Some(deadline)
    }

    /// Index of the oldest pending job, or of the next to be released if none is pending.
    pub fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Index of the job to be released next; `None` before the first release, which may have any index.
    pub fn next(&self) -> Option<u32> {
        let next = u64::from(self.oldest) + self.deadlines.len() as u64;
        self.started.then(|| u32::try_from(next).unwrap_or(u32::MAX))
    }

    /// The deadline of job `index`, if it is pending.
    #[inline]
    pub fn deadline(&self, index: u32) -> Option<Instant> {
        let place = index.checked_sub(self.oldest)?;
        self.deadlines.get(place as usize).copied()
    }

    /// The pending jobs and their deadlines, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Instant)> + '_ {
        // Not by a range without an end, which would go on behind the last index that there is.
        self.deadlines.iter().enumerate().map(|(place, &deadline)| (self.oldest.saturating_add(place as u32), deadline))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_come_and_go_in_index_order_whatever_the_first_index() {
        let mut pending = Pending::default();
        assert!(pending.release(7, Instant(70)));
        assert!(pending.release(8, Instant(80)));
        assert!(!pending.release(8, Instant(80)), "a second time");
        assert!(!pending.release(10, Instant(100)), "after a gap");
        assert_eq!(pending.complete(8), None, "before its predecessor");
        assert_eq!(pending.deadline(8), Some(Instant(80)));
        assert_eq!(pending.complete(7), Some(Instant(70)));
        assert_eq!(pending.iter().collect::<Vec<_>>(), [(8, Instant(80))]);
        assert_eq!(pending.deadline(7), None, "it is complete");
    }

    #[test]
    fn the_last_index_that_there_is_has_no_successor() {
        let mut pending = Pending::default();
        assert!(pending.release(u32::MAX, Instant(70)));
        assert_eq!(pending.iter().collect::<Vec<_>>(), [(u32::MAX, Instant(70))]);
        assert!(!pending.release(u32::MAX, Instant(80)), "a second time");
        assert_eq!(pending.complete(u32::MAX), Some(Instant(70)));
        assert_eq!(pending.iter().count(), 0);
    }
}
