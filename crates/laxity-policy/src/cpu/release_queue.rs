//! Jobs to be released in the future.

use std::hint::select_unpredictable;

use laxity_model::{Instant, TaskId};

/// Pending releases, at most one a task (paper 002, section 3, "Release queue").
///
/// Releases that share an instant share one timer: there is one timer interrupt per instant of
/// [`next`](Self::next), on the CPU of [`next_cpu`](Self::next_cpu), and it releases all jobs that are then due.
///
/// A tournament tree: the leaves are the tasks, in order, each with its release or [`Instant::NEVER`]; every node above
/// repeats the earlier of its two children, the left one if they are equal. So the root is the next release, and of
/// equal ones that of the smallest task. It is a tree rather than the paper's hash table of timers because that is fastest
/// at the 100 to 400 tasks of interest, and because a table would need an order of its own among equal instants.
///
/// ```text
///                   [1] 5 T1
///            [2] 5 T1       [3] 7 T2
///       [4] 9   [5] 5    [6] 7   [7] never
///          T0      T1       T2      (T3)
/// ```
///
/// No operation allocates. Changing a release costs O(log n) at worst, and less if it is not among the next.
#[derive(Clone, Debug)]
pub struct ReleaseQueue {
    /// Node `i` has the children `2i` and `2i + 1`; the root is 1, the leaf of task `t` is `leaves + t`.
    tree: Vec<Entry>,
    /// Number of leaves: the number of tasks, rounded up to a power of two.
    leaves: usize,
    /// The CPU recorded for each task's release.
    cpus: Vec<u32>,
}

/// A release: when, and of which task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: Instant,
    task: TaskId,
}

const ROOT: usize = 1;

impl ReleaseQueue {
    /// An empty queue for tasks `0..tasks`.
    pub fn with_capacity(tasks: usize) -> Self {
        let leaves = tasks.next_power_of_two();
        let mut tree = vec![Entry { at: Instant::NEVER, task: TaskId(0) }; 2 * leaves];
        for (task, leaf) in tree[leaves..].iter_mut().enumerate() {
            leaf.task = TaskId(task as u32);
        }
        for node in (ROOT..leaves).rev() {
            tree[node] = tree[2 * node];
        }
        ReleaseQueue { tree, leaves, cpus: vec![0; tasks] }
    }

    /// Plans the release of the next job of `task` at `at`, in place of any earlier plan. `cpu` is where its timer
    /// should fire. A release at [`Instant::NEVER`] is none.
    pub fn set(&mut self, task: TaskId, at: Instant, cpu: usize) {
        self.cpus[task.index()] = cpu as u32;
        self.update(task, at);
    }

    /// Takes back the planned release of `task` and returns when it was to happen, if there was one.
    pub fn cancel(&mut self, task: TaskId) -> Option<Instant> {
        let planned = self.planned(task)?;
        self.update(task, Instant::NEVER);
        Some(planned)
    }

    /// When the next job of `task` is released, if that is planned.
    pub fn planned(&self, task: TaskId) -> Option<Instant> {
        if task.index() >= self.cpus.len() {
            return None;
        }
        let at = self.tree[self.leaves + task.index()].at;
        (at != Instant::NEVER).then_some(at)
    }

    /// The next instant at which a job is released; `None` if no release is planned. O(1).
    pub fn next(&self) -> Option<Instant> {
        let at = self.tree[ROOT].at;
        (at != Instant::NEVER).then_some(at)
    }

    /// Where the timer of the [`next`](Self::next) instant fires: the CPU recorded for the smallest task released then.
    /// O(1).
    pub fn next_cpu(&self) -> Option<usize> {
        self.next()?;
        Some(self.cpus[self.tree[ROOT].task.index()] as usize)
    }

    /// Takes out one release that is due at `now`: the earliest, among equal ones that of the smallest task. Call it
    /// until it returns `None` to get all that are due; a caller that polls every quantum gets those of past instants first.
    pub fn pop_due(&mut self, now: Instant) -> Option<(TaskId, Instant)> {
        let Entry { at, task } = self.tree[ROOT];
        if at > now || at == Instant::NEVER {
            return None;
        }
        self.update(task, Instant::NEVER);
        Some((task, at))
    }

    /// Changes a leaf and replays the matches on its way to the root, up to the first whose winner stays the same.
    fn update(&mut self, task: TaskId, at: Instant) {
        let mut node = self.leaves + task.index();
        let mut winner = Entry { at, task };
        self.tree[node] = winner;
        while node > ROOT {
            let sibling = self.tree[node ^ 1];
            // Equal instants go to the left child, which has the smaller tasks: the even one of the pair.
            let is_right = node % 2 == 1;
            let sibling_wins = (sibling.at < winner.at) | (is_right & (sibling.at == winner.at));
            // Without branches: how the matches end cannot be predicted, and this halves the time at 400 tasks.
            winner = Entry {
                at: Instant(select_unpredictable(sibling_wins, sibling.at.0, winner.at.0)),
                task: TaskId(select_unpredictable(sibling_wins, sibling.task.0, winner.task.0)),
            };
            node /= 2;
            if self.tree[node] == winner {
                break;
            }
            self.tree[node] = winner;
        }
    }

    /// Panics if the structure is broken. For tests and fuzzers; O(n).
    pub fn assert_invariants(&self) {
        for node in ROOT..self.leaves {
            let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
            let earlier = if right.at < left.at { right } else { left };
            assert_eq!(self.tree[node], earlier, "node {node} repeats the earlier of its children");
        }
        for task in 0..self.leaves {
            let leaf = self.tree[self.leaves + task];
            assert_eq!(leaf.task.index(), task, "leaves are in the order of the tasks");
            assert!(task < self.cpus.len() || leaf.at == Instant::NEVER, "leaves beyond the tasks are never due");
        }
    }
}
