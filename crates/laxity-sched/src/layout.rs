//! Offsets in the segment of a system. Sizes follow from the configuration.
//!
//! ```text
//! header of the segment | members (laxity-membership) | configuration
//! clusters       for each: the state mutex, the version that counts, the state twice
//! tasks          eight cache lines each
//! ```

use laxity_membership::{CONTENTS, Home};
use laxity_model::TaskId;
use laxity_sys::cpu_mask;
use laxity_sys::mutex;
use laxity_sys::segment::Format;

/// What a segment must be to hold a system.
pub(crate) const FORMAT: Format = Format { magic: *b"laxsched", version: 5 };

/// The longest name of a task, in bytes.
pub const NAME_MAX: usize = 64;

/// Where its threads' numbers and mutexes mean something.
pub(crate) const HOME: Home = Home { offset: CONTENTS };
/// The length of the configuration, and the configuration.
pub(crate) const CONFIG_LENGTH: usize = HOME.offset + Home::SIZE;
pub(crate) const CONFIG: usize = CONFIG_LENGTH + 8;
/// The longest configuration, in bytes: every CPU in a cluster of its own takes less.
pub(crate) const CONFIG_MAX: usize = 24 << 10;

const LINE: usize = 64;
/// CPUs fetch cache lines in pairs.
const PAIR: usize = 2 * LINE;

const CLUSTERS: usize = (CONFIG + CONFIG_MAX).next_multiple_of(PAIR);
const TASK: usize = mutex::SIZE + 7 * LINE;
const _: () = assert!(mutex::SIZE == LINE && TASK.is_multiple_of(PAIR) && NAME_MAX <= LINE);
const _: () = assert!(8 * cpu_mask::WORDS == 2 * LINE);

/// The offsets of one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    clusters: usize,
    /// Bytes of a copy of a cluster's state.
    copy: usize,
    /// Numbers that fit into a copy after its length.
    pub copy_length: usize,
    tasks: usize,
    /// Bytes, the segment's header included.
    pub total: usize,
}

/// The words of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterWords {
    /// The mutex of the state.
    pub mutex: usize,
    /// How often the state was changed: 64 bits. An even number means the first copy.
    pub version: usize,
    /// The two copies.
    copies: [usize; 2],
}

/// The words of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskWords {
    /// A mutex that the thread holds while it is a task and lives.
    pub liveness: usize,
    /// How Linux is to schedule the thread ([`crate::placement`]): 64 bits.
    pub demand: usize,
    /// How often another thread changed how Linux schedules the thread: 32 bits.
    pub carried: usize,
    /// What became of its request for a lock ([`crate::locks`]): 32 bits.
    pub request: usize,
    /// Waited on by a thread that is to have its CPU before it goes on: 32 bits.
    pub gate: usize,
    /// The error with which Linux refused last, else 0: 32 bits.
    pub refused: usize,
    /// Whether its job, which is suspended, has no budget left, while its thread would go on: 32 bits.
    pub throttled: usize,
    /// Non-preemptive sections that the thread is in, and whether it is to give up its CPU after them: 32 bits each.
    pub sections: usize,
    /// Whether its job gave itself the top priority, which locks do not change: 32 bits.
    pub above: usize,
    pub is_due: usize,
    /// The number of the cluster that has the task, and one more; 0: none. 32 bits.
    pub claim: usize,
    /// The current job: number, release, absolute deadline: 64 bits each.
    pub job: usize,
    pub release: usize,
    pub deadline: usize,
    /// Completed jobs, those of them that were late, and the latest by how much: 64 bits each.
    pub completed: usize,
    pub late: usize,
    pub tardiness: usize,
    /// The member slot of its process, the thread's number and that of its process: 32 bits each.
    pub member: usize,
    pub thread: usize,
    pub pid: usize,
    /// The cluster: 32 bits.
    pub cluster: usize,
    /// The number of the process whose first thread is scheduled in place of the task's own; 0: none. 32 bits.
    pub program: usize,
    /// Period, relative deadline, worst-case execution time, budget, level: 64 bits each.
    pub period: usize,
    pub relative: usize,
    pub wcet: usize,
    pub budget: usize,
    pub level: usize,
    /// Its scheduling attributes before it became a task: two words of 64 bits.
    pub own: usize,
    /// Length of the name (32 bits), and the name.
    pub name_length: usize,
    pub name: usize,
    /// The CPUs that it might use before it became a task.
    pub own_cpus: usize,
}

impl Layout {
    /// For that many clusters and tasks, whose states are at most `copy_length` numbers.
    pub fn new(clusters: usize, tasks: usize, copy_length: usize) -> Layout {
        let copy = (8 * (1 + copy_length)).next_multiple_of(PAIR);
        let tasks_start = CLUSTERS + clusters * (2 * PAIR + 2 * copy);
        Layout { clusters: CLUSTERS, copy, copy_length, tasks: tasks_start, total: tasks_start + tasks * TASK }
    }

    pub fn cluster(&self, cluster: usize) -> ClusterWords {
        let start = self.clusters + cluster * (2 * PAIR + 2 * self.copy);
        let copies = start + 2 * PAIR;
        ClusterWords { mutex: start, version: start + PAIR, copies: [copies, copies + self.copy] }
    }

    pub fn task(&self, task: TaskId) -> TaskWords {
        let start = self.tasks + task.index() * TASK;
        let (shared, own) = (start + mutex::SIZE, start + 2 * LINE);
        let (cold, rest) = (start + 3 * LINE, start + 4 * LINE);
        TaskWords {
            liveness: start,
            demand: shared,
            carried: shared + 8,
            gate: shared + 16,
            refused: shared + 20,
            is_due: shared + 24,
            claim: shared + 28,
            request: shared + 32,
            throttled: shared + 36,
            sections: own,
            above: own + 4,
            job: own + 8,
            release: own + 16,
            deadline: own + 24,
            completed: own + 32,
            late: own + 40,
            tardiness: own + 48,
            member: cold,
            thread: cold + 4,
            pid: cold + 8,
            cluster: cold + 12,
            period: cold + 16,
            relative: cold + 24,
            wcet: cold + 32,
            budget: cold + 40,
            level: cold + 48,
            name_length: cold + 56,
            program: cold + 60,
            own: rest,
            name: start + 5 * LINE,
            own_cpus: start + 6 * LINE,
        }
    }
}

impl ClusterWords {
    /// The copy that counts at `version`.
    pub fn copy(&self, version: u64) -> usize {
        self.copies[(version & 1) as usize]
    }
}
