//! R2: the heap of Hunt, Michael, Parthasarathy and Scott, which many CPUs may work on at once.

use laxity_model::TaskId;

use super::super::Priority;
use super::ReadyQueue;
use super::choice::{precedes, select};

/// The fine-grained heap of paper 002 (section 3, R2): G. Hunt, M. Michael, S. Parthasarathy, M. Scott, "An efficient
/// algorithm for concurrent priority queue heaps", Information Processing Letters 60(3), 1996.
///
/// It is a binary heap in an array (root at 1, children of `i` at `2i` and `2i + 1`) with one change: the positions of
/// a level are not filled from left to right but in **bit-reversed** order, so that consecutive insertions climb to
/// the root on paths that share as little as possible:
///
/// ```text
///   insertion   1 | 2  3 | 4  5  6  7 |  8   9  10  11  12  13  14  15
///   position    1 | 2  3 | 4  6  5  7 |  8  12  10  14   9  13  11  15
/// ```
///
/// In the concurrent original every node has a lock, so that operations on disjoint paths do not wait for one another,
/// and a tag (empty, available, or the id of the CPU whose insertion still carries the item upwards), by which a
/// climbing insertion finds its item again when a deletion has moved it meanwhile. The one lock they share protects
/// the size, and is held only until the operation's first node is locked. Here the handlers that use the queue run one
/// after the other (they are linearized by their caller), each operation is complete before the next begins, and so
/// neither locks nor tags are needed; positions and paths are those of the original. The costs of contention enter the
/// simulation as measured overhead.
///
/// There is no better merge than inserting one by one: jobs released together cost O(k log n), which is what R1 is
/// compared with. Removal of a given task is not in the original: the last item takes its place, as in a deletion, and
/// moves up or down.
#[derive(Clone, Debug)]
pub struct HuntHeap {
    /// The item at each position; position 0 is unused. The length is a power of two: whole levels.
    items: Vec<Priority>,
    /// Where the job of each task is; [`ABSENT`] if it is not queued.
    positions: Vec<u32>,
    len: usize,
}

/// The item at a free position: every job precedes it.
const EMPTY: Priority = Priority { major: u64::MAX, tie: u32::MAX, task: TaskId(u32::MAX) };
/// In place of a position (no item is at position 0).
const ABSENT: u32 = 0;
const TOP: usize = 1;

/// Position of the `count`-th item, `count >= 1`: its leading binary one, then the other digits reversed.
fn nth_position(count: usize) -> usize {
    let above = count.leading_zeros();
    let level_start = 1 << (usize::BITS - 1 - above);
    level_start | (((count - level_start).reverse_bits() >> 1) >> above)
}

impl HuntHeap {
    /// Moves `item` from the free position `at` towards the root until its parent is more urgent.
    fn sift_up(&mut self, mut at: usize, item: Priority) {
        while at > TOP {
            let parent = self.items[at / 2];
            if parent < item {
                break;
            }
            self.place(at, parent);
            at /= 2;
        }
        self.place(at, item);
    }

    /// Moves `item` from the free position `at` towards the leaves until no child is more urgent. A left child is empty
    /// only if the right one is: even positions come first in bit-reversed order.
    fn sift_down(&mut self, mut at: usize, item: Priority) {
        while 2 * at + 1 < self.items.len() {
            let (left, right) = (self.items[2 * at], self.items[2 * at + 1]);
            let right_is_first = precedes(right, left);
            let child = select(right_is_first, right, left);
            if item < child {
                break;
            }
            self.place(at, child);
            at = 2 * at + usize::from(right_is_first);
        }
        self.place(at, item);
    }

    fn place(&mut self, at: usize, item: Priority) {
        self.items[at] = item;
        self.positions[item.task.index()] = at as u32;
    }

    /// Takes the item out that was inserted last, as far as positions tell; the heap must not be empty.
    fn take_last(&mut self) -> (usize, Priority) {
        let at = nth_position(self.len);
        self.len -= 1;
        (at, std::mem::replace(&mut self.items[at], EMPTY))
    }

    /// Panics if the structure is broken. For tests and fuzzers; O(n log n).
    pub fn assert_invariants(&self) {
        let mut occupied: Vec<usize> = (1..=self.len).map(nth_position).collect();
        occupied.sort_unstable();
        let found: Vec<usize> = (0..self.items.len()).filter(|&at| self.items[at] != EMPTY).collect();
        assert_eq!(found, occupied, "the items are at the bit-reversed positions of 1 to their number");
        for &at in &occupied {
            let item = self.items[at];
            assert_eq!(self.positions[item.task.index()] as usize, at, "{} is where the index says", item.task);
            assert!(at == TOP || self.items[at / 2] < item, "no child precedes its parent");
        }
        let indexed = self.positions.iter().filter(|&&at| at != ABSENT).count();
        assert_eq!(indexed, self.len, "the index has the queued tasks and no others");
    }
}

impl ReadyQueue for HuntHeap {
    fn with_capacity(tasks: usize, _cpus: usize) -> Self {
        assert!(tasks < u32::MAX as usize, "{tasks} tasks are more than 32-bit positions can tell apart");
        let whole_levels = (tasks + 1).next_power_of_two().max(TOP + 1);
        HuntHeap { items: vec![EMPTY; whole_levels], positions: vec![ABSENT; tasks], len: 0 }
    }

    fn insert(&mut self, _cpu: usize, priority: Priority) {
        assert_eq!(self.positions[priority.task.index()], ABSENT, "a task has at most one ready job");
        self.len += 1;
        self.sift_up(nth_position(self.len), priority);
    }

    fn merge(&mut self, cpu: usize, batch: &mut Vec<Priority>) {
        for priority in batch.drain(..) {
            self.insert(cpu, priority);
        }
    }

    fn peek(&self) -> Option<Priority> {
        (self.len > 0).then(|| self.items[TOP])
    }

    fn pop(&mut self) -> Option<Priority> {
        let first = self.peek()?;
        let (last_at, last) = self.take_last();
        self.positions[first.task.index()] = ABSENT;
        if last_at != TOP {
            self.sift_down(TOP, last);
        }
        Some(first)
    }

    fn remove(&mut self, task: TaskId) -> Option<Priority> {
        let at = self.positions.get(task.index()).map_or(ABSENT, |&at| at) as usize;
        if at == ABSENT as usize {
            return None;
        }
        let removed = self.items[at];
        let (last_at, last) = self.take_last();
        self.positions[task.index()] = ABSENT;
        if last_at != at {
            if last < removed {
                self.sift_up(at, last);
            } else {
                self.sift_down(at, last);
            }
        }
        Some(removed)
    }

    fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::nth_position;

    /// Hunt et al.'s bit-reversed counter, worked by hand for four levels.
    #[test]
    fn consecutive_insertions_go_to_bit_reversed_positions() {
        let positions: Vec<usize> = (1..=15).map(nth_position).collect();
        assert_eq!(positions, [1, 2, 3, 4, 6, 5, 7, 8, 12, 10, 14, 9, 13, 11, 15]);
    }
}
