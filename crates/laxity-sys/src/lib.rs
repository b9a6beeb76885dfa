//! What Laxity asks of Linux, behind safe functions: the only crate that calls it.
//!
//! | Module | Linux offers | Needs |
//! | --- | --- | --- |
//! | [`segment`] | named shared memory, and locks that end with their holders | `O_TMPFILE` (tmpfs 3.11), `F_OFD_SETLK` (3.15) |
//! | [`sparse`] | shared memory that is taken page by page | `memfd_create` |
//! | [`shared_page`] | memory behind a descriptor, as words | |
//! | [`directory`] | that something appeared under a name | |
//! | [`futex`] | waiting on a word of memory | `futex_waitv` (5.16) for more than one |
//! | [`pi_lock`] | a lock that lends its holder the priority of its waiters | |
//! | [`membarrier`] | a fence of all threads | `membarrier` (4.16), or does with less |
//! | [`memory`] | memory that stays in RAM, and how much is left | `RLIMIT_MEMLOCK` |
//! | [`channel`] | named pipes, message queues, TCP | POSIX message queues for those |
//! | [`bell`] | a descriptor that other processes make readable | |
//! | [`event`] | a counter that event loops can poll | |
//! | [`timer`] | a timer that can be armed apart from waiting | |
//! | [`mutex`] | a lock that survives its holder's death | |
//! | [`robust`] | a word that says that its holder died | |
//! | [`process`] | the boot, the PID namespace, whether this is a forked copy | `/proc` |
//! | [`peer`], [`peers`] | whether a process belongs to this user | `pidfd_open` (5.3), `/proc` |
//! | [`cpu_mask`] | the CPUs that a thread may use | |
//! | [`own_code`], [`crash`] | shared libraries of users, and threads that crash in them | `dlopen` |
//! | [`backoff`], [`fault`] | pauses between attempts; failing calls, for tests | |
//! | [`inherit`] | programs that inherit no descriptors | `close_range` (5.11) |
//! | [`stack`] | the size of ordinary stacks | |
//! | [`standard_output`] | whether it is closed | |
//! | [`start`] | programs that begin on given CPUs, in a control group | control groups v2 for that |
//! | [`restorer`] | threads that get back how they were scheduled, once a process has ended | |
//! | [`started`], [`signals`] | a child that ends with this process, and signals to be passed on to it | `pidfd_open` (5.3) |
//! | [`program`] | a child that a real-time thread starts, which ends with it | `pidfd_open` (5.3) |
//! | [`counter`] | hardware counters of a CPU, with limits | counters that Linux sees, `CAP_PERFMON` |
//! | [`cpu_records`] | what a CPU does, thread by thread and interrupt by interrupt | `CAP_PERFMON`; tracefs for interrupts |
//! | [`fairness`] | niceness of threads, and how long they ran | `CONFIG_SCHED_INFO` |
//! | [`clock`], [`scheduling`], [`random`] | time, priorities, CPUs, numbers | |
//!
//! Every `unsafe` block of Laxity that is not about the contents of shared memory or a C interface is here.

pub mod backoff;
pub mod bell;
pub mod channel;
pub mod clock;
pub mod counter;
pub mod cpu_mask;
pub mod cpu_records;
pub mod crash;
pub mod directory;
pub mod event;
pub mod exclusive;
pub mod fairness;
pub mod fault;
mod fork;
pub mod futex;
pub mod inherit;
pub mod membarrier;
pub mod memory;
pub mod mutex;
pub mod own_code;
pub mod packets;
pub mod peer;
pub mod peers;
pub mod pi_lock;
pub mod pi_mutex;
pub mod process;
pub mod program;
pub mod random;
pub mod restorer;
pub mod robust;
pub mod scheduling;
pub mod segment;
pub mod shared_page;
mod signal_stack;
pub mod signals;
pub mod sparse;
pub mod stack;
pub mod standard_output;
pub mod start;
pub mod started;
pub mod timer;
