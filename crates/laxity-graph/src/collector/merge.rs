//! What happened to all nodes, in one order.

use std::collections::{BTreeSet, VecDeque};

use laxity_model::Instant;

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// It was released.
    Release { index: u64, deadline: Instant },
    /// It began; not for the first time if `again`.
    Begin { index: u64, cpu: u16, again: bool },
    /// It completed.
    Complete { index: u64, cpu: u16 },
    /// What happened until the next is not known.
    Gap,
}

/// Merges what happened to each node by time.
///
/// Of one instant come completions first, then releases, then beginnings, as each leads to the next; but nothing passes
/// what the same node recorded before.
#[derive(Debug)]
pub(super) struct Merge {
    /// For each node its releases, of which some lie before what was recorded before them, and all else.
    queues: Vec<[VecDeque<(Instant, Happening)>; 2]>,
    heads: BTreeSet<Head>,
    /// How much is in all queues.
    length: usize,
}

/// The first of a queue that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    at: Instant,
    rank: u8,
    node: usize,
    queue: usize,
}

impl Merge {
    pub fn new(nodes: usize) -> Self {
        Merge { queues: vec![Default::default(); nodes], heads: BTreeSet::new(), length: 0 }
    }

    /// How much was added and not removed.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Adds what happened to `node` at `at`.
    pub fn push(&mut self, node: usize, at: Instant, happening: Happening) {
        let queue = usize::from(!matches!(happening, Happening::Release { .. }));
        let entries = &mut self.queues[node][queue];
        // The clock of one thread does not go back, but nodes change threads.
        let at = entries.back().map_or(at, |&(last, _)| at.max(last));
        entries.push_back((at, happening));
        self.length += 1;
        if entries.len() == 1 {
            self.heads.insert(Head { at, rank: rank(happening), node, queue });
        }
    }

    /// Adds that what follows does not follow on what was added last.
    pub fn push_gap(&mut self, node: usize) {
        self.push(node, Instant::ZERO, Happening::Gap);
    }

    /// Removes what comes next, if that was at `until` or before.
    pub fn next_until(&mut self, until: Instant) -> Option<(usize, Instant, Happening)> {
        let head = *self.heads.first().filter(|head| head.at <= until)?;
        self.heads.remove(&head);
        self.length -= 1;
        let Head { node, queue, .. } = head;
        let entries = &mut self.queues[node][queue];
        let (at, happening) = entries.pop_front().expect("a head is the first of its queue");
        if let Some(&(at, happening)) = entries.front() {
            self.heads.insert(Head { at, rank: rank(happening), node, queue });
        }
        Some((node, at, happening))
    }
}

fn rank(happening: Happening) -> u8 {
    match happening {
        Happening::Complete { .. } | Happening::Gap => 0,
        Happening::Release { .. } => 1,
        Happening::Begin { .. } => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a's completion releases b's job, which begins; a's next began before it in no other order.
    #[test]
    fn of_one_instant_come_completions_then_releases_then_beginnings_and_nothing_passes_its_own_node() {
        let mut merge = Merge::new(2);
        let (at, later) = (Instant(5), Instant(6));
        let begin = |index| Happening::Begin { index, cpu: 0, again: false };
        let complete = |index| Happening::Complete { index, cpu: 0 };
        let release = Happening::Release { index: 0, deadline: later };
        merge.push(0, at, release);
        merge.push(0, at, begin(0));
        merge.push(0, at, complete(0));
        merge.push(0, later, begin(1));
        merge.push(1, at, complete(7));
        let mut order = Vec::new();
        while let Some((node, _, happening)) = merge.next_until(at) {
            order.push((node, happening));
        }
        assert_eq!(order, [(1, complete(7)), (0, release), (0, begin(0)), (0, complete(0))]);
        assert_eq!(merge.next_until(later), Some((0, later, begin(1))));
    }
}
