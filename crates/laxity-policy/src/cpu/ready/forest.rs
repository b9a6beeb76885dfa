//! Binomial trees over a shared arena: what [`BinomialHeap`](super::BinomialHeap) and
//! [`HierarchicalQueue`](super::HierarchicalQueue) are built from.
//!
//! A binomial tree of degree `d`, written `B_d`, is a node with children `B_{d-1}, ..., B_1, B_0`; it has `2^d` nodes,
//! and no child precedes its parent. Linking two `B_d` makes one `B_{d+1}`: the later root becomes the first child of
//! the earlier one. A [`Forest`] has at most one tree of each degree, so that **the binary digits of its length say
//! which degrees are present** and its operations are arithmetic: insertion is `+ 1`, merging is `+`, removal is `- 1`.
//!
//! ```text
//!   len = 13 = 0b1101      roots[3] = B_3      roots[2] = B_2      roots[0] = B_0
//!
//!         B_3 = o------- child (sibling, sibling, ...) in falling degree
//!               +- B_2 - B_1 - B_0
//! ```
//!
//! The nodes live in an arena, [`Nodes`], with one slot a task: a task is its own handle, which no operation moves,
//! and nothing is allocated after creation. Several forests may share an arena, since a task is in one of them at
//! most. Source of the structure: Vuillemin, "A data structure for manipulating priority queues", CACM 21(4), 1978.

use std::hint::select_unpredictable;

use laxity_model::TaskId;

use super::super::Priority;
use super::choice::{precedes, select};

/// Highest number of trees: one of each degree a 32-bit length can have.
const DEGREES: usize = 32;
/// No node: the end of a list of siblings.
const NONE: u32 = u32::MAX;
/// In place of a parent: the node is a root.
const ROOT: u32 = u32::MAX - 1;
/// In place of a parent: the task is in no forest.
const FREE: u32 = u32::MAX - 2;

/// The nodes of one or more forests, one a task.
#[derive(Clone, Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
}

/// The job of the task whose index is the node's.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// [`Priority::major`]; [`Priority::task`] is the node's own index.
    major: u64,
    /// [`Priority::tie`].
    tie: u32,
    /// The node above, or [`ROOT`], or [`FREE`].
    parent: u32,
    /// The child of highest degree; [`NONE`] in a leaf.
    child: u32,
    /// The parent's child of the next lower degree; [`NONE`] in a child of degree 0, meaningless in a root.
    sibling: u32,
}

/// The trees cut free of a node that leaves: the one of degree `d` at index `d`.
type Pieces = [u32; DEGREES];

impl Nodes {
    /// An arena for tasks `0..tasks`, none of which is in a forest.
    pub fn with_capacity(tasks: usize) -> Self {
        assert!(tasks < FREE as usize, "{tasks} tasks are more than the {FREE} that 32-bit links can tell apart");
        Nodes { nodes: vec![Node { major: 0, tie: 0, parent: FREE, child: NONE, sibling: NONE }; tasks] }
    }

    /// Whether the task is in one of the forests of this arena. False for a task beyond the capacity.
    pub fn contains(&self, task: TaskId) -> bool {
        self.nodes.get(task.index()).is_some_and(|node| node.parent != FREE)
    }

    #[inline]
    fn priority(&self, node: u32) -> Priority {
        let Node { major, tie, .. } = self.nodes[node as usize];
        Priority { major, tie, task: TaskId(node) }
    }

    /// Joins two trees of equal degree, given by their roots; the root that is returned still has its old `parent`.
    ///
    /// Passing whole priorities keeps those of a chain of links in registers.
    #[inline]
    fn link(&mut self, a: Priority, b: Priority) -> Priority {
        let a_wins = precedes(a, b);
        let (winner, loser) = (select(a_wins, a, b), select(a_wins, b, a));
        let first_child = std::mem::replace(&mut self.nodes[winner.task.index()].child, loser.task.0);
        let node = &mut self.nodes[loser.task.index()];
        node.sibling = first_child;
        node.parent = winner.task.0;
        winner
    }

    /// Turns a free slot into a root without children.
    fn claim(&mut self, priority: Priority) {
        let slots = self.nodes.len();
        let Some(node) = self.nodes.get_mut(priority.task.index()) else {
            panic!("{} does not belong to an arena of {slots} tasks", priority.task)
        };
        assert_eq!(node.parent, FREE, "a task has at most one ready job");
        node.major = priority.major;
        node.tie = priority.tie;
        node.parent = ROOT;
        node.child = NONE;
    }

    fn free(&mut self, node: u32) -> Priority {
        self.nodes[node as usize].parent = FREE;
        self.priority(node)
    }

    /// The degree of `node`: how many children it has.
    fn degree(&self, node: u32) -> usize {
        let mut degree = 0;
        let mut child = self.nodes[node as usize].child;
        while child != NONE {
            degree += 1;
            child = self.nodes[child as usize].sibling;
        }
        degree
    }

    /// Writes the children of `node`, the root of a tree of degree `degree`, to the first `degree` of `pieces`.
    #[inline]
    fn children(&self, node: u32, degree: usize, pieces: &mut Pieces) {
        let mut child = self.nodes[node as usize].child;
        for piece in pieces[..degree].iter_mut().rev() {
            *piece = child;
            child = self.nodes[child as usize].sibling;
        }
    }

    /// Takes the tree that holds `node` apart around it: returns the tree's root and its degree `d`, and writes trees of
    /// degrees `0..d` that hold everything but `node` to the first `d` of `pieces`.
    ///
    /// Every ancestor gives up the child that leads to `node` (degree `k`) and the children of higher degree; left
    /// with its children of degrees `0..k`, it is a `B_k` itself. So the children of `node`, then each ancestor, then
    /// that ancestor's higher children fill the degrees from 0 up, each once. No priority is touched, unlike in
    /// the textbook's decrease-to-minus-infinity, which moves jobs between nodes and thus breaks handles.
    fn cut_out(&mut self, node: u32, pieces: &mut Pieces) -> (u32, usize) {
        let mut degree = self.degree(node);
        self.children(node, degree, pieces);
        let mut below = node;
        loop {
            let above = self.nodes[below as usize].parent;
            if above == ROOT {
                return (below, degree);
            }
            let full_degree = self.degree(above);
            let mut child = self.nodes[above as usize].child;
            for piece in pieces[degree + 1..full_degree].iter_mut().rev() {
                *piece = child;
                child = self.nodes[child as usize].sibling;
            }
            assert_eq!(child, below, "a child stands in its parent's list at the place of its degree");
            self.nodes[above as usize].child = self.nodes[below as usize].sibling;
            pieces[degree] = above;
            (below, degree) = (above, full_degree);
        }
    }
}

/// A binomial heap whose nodes live in an arena. Every call must pass the arena the forest's jobs were inserted in.
#[derive(Clone, Debug)]
pub struct Forest {
    /// The tree of each degree that `len` has a binary 1 for; stale elsewhere.
    roots: [u32; DEGREES],
    /// Number of jobs.
    len: u32,
    /// Degree of the tree with the most urgent job, kept so that `peek` need not look for it; stale while empty.
    first: usize,
}

impl Default for Forest {
    fn default() -> Self {
        Forest::new()
    }
}

impl Forest {
    /// An empty heap.
    pub fn new() -> Self {
        Forest { roots: [NONE; DEGREES], len: 0, first: 0 }
    }

    /// Number of queued jobs.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no job is queued.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most urgent job; O(1).
    pub fn peek(&self, nodes: &Nodes) -> Option<Priority> {
        if self.len == 0 {
            return None;
        }
        Some(nodes.priority(self.roots[self.first]))
    }

    /// Adds the job of `priority.task`, which must be in no forest of the arena; O(log n), and O(1) on average over a
    /// run of insertions.
    ///
    /// `len + 1` carries through the trailing ones of `len`: the new `B_0` is linked with the trees of those degrees.
    pub fn insert(&mut self, nodes: &mut Nodes, priority: Priority) {
        nodes.claim(priority);
        let mut tree = priority;
        let degree = self.len.trailing_ones() as usize;
        for &root in &self.roots[..degree] {
            tree = nodes.link(tree, nodes.priority(root));
        }
        // If the most urgent job was in a tree that the carry took, the root of the new tree is it or the new job.
        if self.len == 0 || self.first < degree || precedes(tree, nodes.priority(self.roots[self.first])) {
            self.first = degree;
        }
        self.set_root(nodes, degree, tree.task.0);
        self.len += 1;
    }

    /// Moves all jobs of `other`, a forest of the same arena, into this one; O(log n), whatever the number of jobs.
    /// Jobs released together are collected in a forest of their own and enter the ready queue in one step (paper 002,
    /// section 3, "Ready queue").
    ///
    /// `len + other.len` digit by digit: of two trees of a degree both go on as the carry, of three one stays.
    pub fn merge(&mut self, nodes: &mut Nodes, other: &mut Forest) {
        let mut carry = None;
        let mut degree = 0;
        while other.len >> degree != 0 || carry.is_some() {
            let (stays, goes_on) = match (self.root(nodes, degree), other.root(nodes, degree), carry) {
                (None, None, tree) | (None, tree, None) | (tree, None, None) => (tree, None),
                (None, Some(a), Some(b)) | (Some(a), None, Some(b)) | (Some(a), Some(b), None) => {
                    (None, Some(nodes.link(a, b)))
                }
                (Some(a), Some(b), Some(c)) => (Some(a), Some(nodes.link(b, c))),
            };
            if let Some(tree) = stays {
                self.set_root(nodes, degree, tree.task.0);
            }
            carry = goes_on;
            degree += 1;
        }
        self.len += std::mem::take(&mut other.len);
        self.first = self.find_first(nodes);
    }

    /// Builds a heap of the jobs in `batch` and merges it; leaves `batch` empty. None of the tasks may be in a forest of
    /// the arena.
    pub fn merge_batch(&mut self, nodes: &mut Nodes, batch: &mut Vec<Priority>) {
        // A heap of one is not worth building: adding one and merging one are the same arithmetic.
        if let [priority] = batch[..] {
            self.insert(nodes, priority);
            batch.clear();
            return;
        }
        let mut together = Forest::new();
        for priority in batch.drain(..) {
            together.insert(nodes, priority);
        }
        self.merge(nodes, &mut together);
    }

    /// Removes the most urgent job; O(log n).
    pub fn pop(&mut self, nodes: &mut Nodes) -> Option<Priority> {
        if self.len == 0 {
            return None;
        }
        let degree = self.first;
        let root = self.roots[degree];
        let mut pieces = [NONE; DEGREES];
        nodes.children(root, degree, &mut pieces);
        self.replace_tree(nodes, degree, &pieces);
        Some(nodes.free(root))
    }

    /// Removes the job of `task`; `None` if it is in no forest of the arena; O(log n). It must not be in another one.
    pub fn remove(&mut self, nodes: &mut Nodes, task: TaskId) -> Option<Priority> {
        if !nodes.contains(task) {
            return None;
        }
        let mut pieces = [NONE; DEGREES];
        let (root, degree) = nodes.cut_out(task.0, &mut pieces);
        let own_root = self.root(nodes, degree).map(|root| root.task.0);
        assert_eq!(own_root, Some(root), "a job is removed from the forest it is in");
        self.replace_tree(nodes, degree, &pieces);
        Some(nodes.free(task.0))
    }

    /// Puts `pieces`, trees of degrees `0..degree`, in place of the tree of that degree, of which one node left.
    ///
    /// `len - 1` borrows: with `z` the number of trailing zeros of `len` (hence `z <= degree`), the digits `0..z` become
    /// ones and digit `z` becomes a zero. So pieces of degrees `0..z` become trees as they are, and the tree of degree
    /// `z` takes in the pieces of degrees `z..degree` one after the other, which makes it the new tree of degree
    /// `degree`. These `degree - z` links are all that is needed; the trees between `z` and `degree` stay untouched.
    #[inline]
    fn replace_tree(&mut self, nodes: &mut Nodes, degree: usize, pieces: &Pieces) {
        let lowest = self.len.trailing_zeros() as usize;
        for (piece_degree, &piece) in pieces[..lowest].iter().enumerate() {
            self.set_root(nodes, piece_degree, piece);
        }
        if lowest < degree {
            let mut tree = nodes.priority(self.roots[lowest]);
            for &piece in &pieces[lowest..degree] {
                tree = nodes.link(tree, nodes.priority(piece));
            }
            self.set_root(nodes, degree, tree.task.0);
        }
        self.len -= 1;
        self.first = self.find_first(nodes);
    }

    /// Makes `node`, the root of a tree of degree `degree`, the forest's tree of that degree.
    #[inline]
    fn set_root(&mut self, nodes: &mut Nodes, degree: usize, node: u32) {
        nodes.nodes[node as usize].parent = ROOT;
        self.roots[degree] = node;
    }

    /// The root of the tree of degree `degree`, if there is one.
    fn root(&self, nodes: &Nodes, degree: usize) -> Option<Priority> {
        (self.len >> degree & 1 == 1).then(|| nodes.priority(self.roots[degree]))
    }

    /// The degree of the tree with the most urgent job; anything if there is no tree.
    fn find_first(&self, nodes: &Nodes) -> usize {
        let mut degrees = self.len;
        if degrees == 0 {
            return 0;
        }
        let mut first = degrees.trailing_zeros() as usize;
        let mut most_urgent = nodes.priority(self.roots[first]);
        degrees &= degrees - 1;
        while degrees != 0 {
            let degree = degrees.trailing_zeros() as usize;
            let root = nodes.priority(self.roots[degree]);
            let is_earlier = precedes(root, most_urgent);
            first = select_unpredictable(is_earlier, degree, first);
            most_urgent = select(is_earlier, root, most_urgent);
            degrees &= degrees - 1;
        }
        first
    }

    /// Panics unless every tree is a binomial tree in heap order and [`peek`](Self::peek) is right; returns the tasks
    /// in the forest, sorted. For tests and fuzzers; O(n log n).
    pub fn assert_invariants(&self, nodes: &Nodes) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for degree in 0..DEGREES {
            if let Some(root) = self.root(nodes, degree) {
                assert_eq!(nodes.nodes[root.task.index()].parent, ROOT, "a root has no parent");
                nodes.assert_tree(root.task.0, degree, &mut tasks);
            }
        }
        assert_eq!(tasks.len(), self.len(), "a tree of degree d has 2^d nodes");
        let first = tasks.iter().map(|task| nodes.priority(task.0)).min();
        assert_eq!(self.peek(nodes), first, "the root that is kept is the most urgent");
        tasks.sort_unstable();
        tasks
    }
}

impl Nodes {
    fn assert_tree(&self, node: u32, degree: usize, tasks: &mut Vec<TaskId>) {
        assert_eq!(self.degree(node), degree, "the root of a binomial tree of degree d has d children");
        tasks.push(TaskId(node));
        let mut children = [NONE; DEGREES];
        self.children(node, degree, &mut children);
        for (child_degree, &child) in children[..degree].iter().enumerate() {
            assert_eq!(self.nodes[child as usize].parent, node, "a child knows its parent");
            assert!(precedes(self.priority(node), self.priority(child)), "no child precedes its parent");
            self.assert_tree(child, child_degree, tasks);
        }
    }
}
