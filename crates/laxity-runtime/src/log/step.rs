//! What entries of a log say, and how they have it in numbers.

use laxity_model::{CpuId, LockId, ReplicaId, TaskId};

/// A step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobStep {
    /// It has its CPU for the first time.
    Begin,
    NonPreemptiveBegin,
    NonPreemptiveEnd,
    /// It goes to sleep for a time.
    Suspend,
    /// It slept long enough, and has a CPU.
    Resume,
    /// It requests a lock, and may have it at once.
    Request(LockId),
    /// It did not get the lock at once, and waits. Noted of resources that Linux locks only.
    Wait(LockId),
    /// It has a replica of the lock, and a CPU.
    Grant(LockId, ReplicaId),
    /// It is about to unlock it.
    Unlock(LockId, ReplicaId),
    /// It waits from here on without giving up its CPU.
    SpinBegin,
    SpinEnd,
    Complete,
    /// Laxity's scheduler knows that it is released, or that it goes on after a suspension.
    Ready,
    Resumed,
    /// It executes, having got a CPU from Laxity's scheduler.
    Executes,
    /// Laxity's scheduler decided that a CPU of that cluster is to run the job of that task, or none.
    Linked(u16, CpuId, Option<TaskId>),
    /// The thread of that task got this CPU of the cluster, or lost its CPU.
    Carried(TaskId, Option<CpuId>),
    /// The job of that task holds the replica from now on, by a lock of Laxity's scheduler.
    Granted(TaskId, LockId, ReplicaId),
    /// The job of that task has this effective priority from now on.
    Prioritized(TaskId, (u64, u32)),
    /// The job of that task waits for a lock of Laxity's scheduler.
    Waits(TaskId),
    /// The job of that task waits no longer.
    GoesOn(TaskId),
    /// Best-effort tasks of the CPU may cause so much traffic a second from now on, in bytes.
    Regulate(Option<u64>),
    /// They stand still from now on, because of that task.
    Throttle(Option<TaskId>),
    /// They go on, having stood still for so many nanoseconds.
    Unthrottle(Option<TaskId>, u64),
    /// The task is given so large a budget, in nanoseconds,
    Amount(u64),
    /// with that deadline.
    Replenish(u64),
    /// The job of the task that is not complete has that deadline for Laxity's scheduler. It may be another one than follows
    /// from the job's release in the trace: a node's job is released there as its producers complete, and its thread knows of
    /// that some microseconds later.
    Priority(u64),
    /// The thread, which handles interrupts, has one to handle.
    Serves,
    /// It has no budget left in code of the user, which goes on below all real-time threads: noted by its supervisor.
    Throttled,
    /// Not even the most urgent thread had the CPU for so many nanoseconds until now.
    Stolen(u64),
    /// The thread, which handles interrupts of a device and has a server, is given one that is due then.
    Released(u64),
    /// That device interrupted the CPU, whose top half took so many nanoseconds from now on; none: nothing is known of that.
    TopHalf(u16, u64),
    /// There was nothing left to do for it: its node has ended, and no job of it comes after.
    Ended,
}

/// A step as an entry has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encoded {
    pub number: u16,
    /// A lock, a CPU or a task.
    pub first: u16,
    /// A replica, a task, or both.
    pub second: u32,
    pub level: u64,
}

impl JobStep {
    pub(super) fn encode(self) -> Encoded {
        let of = |number| Encoded { number, ..Encoded::default() };
        let on = |number, lock: LockId| Encoded { first: lock.0, ..of(number) };
        let held = |number, lock, replica: ReplicaId| Encoded { second: replica.0.into(), ..on(number, lock) };
        // A system has at most 1024 tasks and as many CPUs.
        let task = |task: TaskId| task.0 as u16;
        let or_none = |task: Option<TaskId>| task.map_or(0, |task| task.0 + 1);
        match self {
            JobStep::Begin => of(0),
            JobStep::NonPreemptiveBegin => of(1),
            JobStep::NonPreemptiveEnd => of(2),
            JobStep::Suspend => of(3),
            JobStep::Resume => of(4),
            JobStep::Request(lock) => on(5, lock),
            JobStep::Wait(lock) => on(6, lock),
            JobStep::Grant(lock, replica) => held(7, lock, replica),
            JobStep::Unlock(lock, replica) => held(8, lock, replica),
            JobStep::Complete => of(9),
            JobStep::SpinBegin => of(10),
            JobStep::SpinEnd => of(11),
            JobStep::Ready => of(12),
            JobStep::Resumed => of(13),
            JobStep::Executes => of(14),
            JobStep::Linked(cluster, cpu, task) => {
                let second = task.map_or(0, |task| task.0 + 1);
                Encoded { first: cpu.0, second, level: cluster.into(), ..of(15) }
            }
            JobStep::Carried(of_task, cpu) => {
                Encoded { first: cpu.map_or(0, |cpu| cpu.0 + 1), second: of_task.0, ..of(16) }
            }
            JobStep::Granted(of_task, lock, replica) => {
                Encoded { first: lock.0, second: of_task.0 << 16 | u32::from(replica.0), ..of(17) }
            }
            JobStep::Prioritized(of_task, (level, tie)) => {
                Encoded { first: task(of_task), second: tie, level, ..of(18) }
            }
            JobStep::Waits(of_task) => Encoded { first: task(of_task), ..of(19) },
            JobStep::GoesOn(of_task) => Encoded { first: task(of_task), ..of(20) },
            JobStep::Regulate(budget) => {
                Encoded { first: budget.is_some().into(), level: budget.unwrap_or(0), ..of(21) }
            }
            JobStep::Throttle(task) => Encoded { second: or_none(task), ..of(22) },
            JobStep::Unthrottle(task, level) => Encoded { second: or_none(task), level, ..of(23) },
            JobStep::Amount(level) => Encoded { level, ..of(24) },
            JobStep::Replenish(level) => Encoded { level, ..of(25) },
            JobStep::Priority(level) => Encoded { level, ..of(26) },
            JobStep::Serves => of(27),
            JobStep::Stolen(level) => Encoded { level, ..of(28) },
            JobStep::Throttled => of(29),
            JobStep::Ended => of(30),
            JobStep::Released(level) => Encoded { level, ..of(31) },
            JobStep::TopHalf(first, level) => Encoded { first, level, ..of(32) },
        }
    }

    /// Nothing if no step is encoded so.
    pub(super) fn decode(Encoded { number, first, second, level }: Encoded) -> Option<JobStep> {
        let (lock, replica, task) = (LockId(first), ReplicaId(second as u16), TaskId(first.into()));
        Some(match number {
            0 => JobStep::Begin,
            1 => JobStep::NonPreemptiveBegin,
            2 => JobStep::NonPreemptiveEnd,
            3 => JobStep::Suspend,
            4 => JobStep::Resume,
            5 => JobStep::Request(lock),
            6 => JobStep::Wait(lock),
            7 => JobStep::Grant(lock, replica),
            8 => JobStep::Unlock(lock, replica),
            9 => JobStep::Complete,
            10 => JobStep::SpinBegin,
            11 => JobStep::SpinEnd,
            12 => JobStep::Ready,
            13 => JobStep::Resumed,
            14 => JobStep::Executes,
            15 => JobStep::Linked(level as u16, CpuId(first), second.checked_sub(1).map(TaskId)),
            16 => JobStep::Carried(TaskId(second), first.checked_sub(1).map(CpuId)),
            17 => JobStep::Granted(TaskId(second >> 16), lock, replica),
            18 => JobStep::Prioritized(task, (level, second)),
            19 => JobStep::Waits(task),
            20 => JobStep::GoesOn(task),
            21 => JobStep::Regulate((first != 0).then_some(level)),
            22 => JobStep::Throttle(second.checked_sub(1).map(TaskId)),
            23 => JobStep::Unthrottle(second.checked_sub(1).map(TaskId), level),
            24 => JobStep::Amount(level),
            25 => JobStep::Replenish(level),
            26 => JobStep::Priority(level),
            27 => JobStep::Serves,
            28 => JobStep::Stolen(level),
            29 => JobStep::Throttled,
            30 => JobStep::Ended,
            31 => JobStep::Released(level),
            32 => JobStep::TopHalf(first, level),
            _ => return None,
        })
    }
}
