//! How Linux schedules the threads of tasks.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::thread;

use laxity_model::{PriorityRule, Scheduler, Task};
use laxity_trace::LinuxClass;

use crate::attributes::Attributes;
use crate::kernel::Unfit;

/// The highest priority of a thread of a task, which non-preemptive sections have; below what Linux itself needs.
pub(crate) const PRIORITY_MAX: u8 = 98;

/// A scheduling class of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinuxScheduler {
    /// Laxity's scheduler in user space, upon `SCHED_FIFO`: the policies that are simulated.
    Laxity,
    /// Laxity's scheduler in the kernel, if it is loaded.
    Kernel,
    /// `SCHED_FIFO`: fixed priorities.
    Fifo,
    /// `SCHED_DEADLINE`: earliest deadline first, each task with its worst case as budget.
    Deadline,
    /// `SCHED_OTHER`: fair shares, and no guarantee.
    Other,
}

impl LinuxScheduler {
    /// All, the strongest first.
    pub const ALL: [LinuxScheduler; 5] = [
        LinuxScheduler::Laxity,
        LinuxScheduler::Kernel,
        LinuxScheduler::Fifo,
        LinuxScheduler::Deadline,
        LinuxScheduler::Other,
    ];

    /// The name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            LinuxScheduler::Laxity => "laxity",
            LinuxScheduler::Kernel => "kernel",
            LinuxScheduler::Fifo => "fifo",
            LinuxScheduler::Deadline => "deadline",
            LinuxScheduler::Other => "other",
        }
    }

    /// The class of Linux that decides; none where Laxity's scheduler in user space does.
    pub const fn class(self) -> Option<LinuxClass> {
        match self {
            LinuxScheduler::Laxity => None,
            LinuxScheduler::Kernel => Some(LinuxClass::Kernel),
            LinuxScheduler::Fifo => Some(LinuxClass::Fifo),
            LinuxScheduler::Deadline => Some(LinuxClass::Deadline),
            LinuxScheduler::Other => Some(LinuxClass::Other),
        }
    }
}

impl FromStr for LinuxScheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = LinuxScheduler::ALL.into_iter().find(|scheduler| scheduler.name() == text);
        found.ok_or_else(|| format!("{text:?} is none; write laxity, kernel, fifo, deadline or other"))
    }
}

impl fmt::Display for LinuxScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LinuxScheduler::Laxity => "Laxity's scheduler, upon SCHED_FIFO",
            LinuxScheduler::Kernel => "Laxity's scheduler in the kernel",
            LinuxScheduler::Fifo => "SCHED_FIFO",
            LinuxScheduler::Deadline => "SCHED_DEADLINE",
            LinuxScheduler::Other => "SCHED_OTHER",
        })
    }
}

/// Why Linux does not schedule a thread by `attributes`, and the way out.
pub(crate) fn refused(attributes: Attributes, error: &io::Error) -> String {
    let what = match attributes {
        Attributes::Other => "SCHED_OTHER".to_owned(),
        Attributes::Fifo { priority, .. } => format!("SCHED_FIFO priority {priority}"),
        Attributes::Deadline { runtime, deadline, period } => {
            format!("SCHED_DEADLINE with {runtime} in {period}, due within {deadline},")
        }
    };
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{what} is not permitted: {error}; raise the limit of priorities (`ulimit -r {PRIORITY_MAX}`), give the \
             program the capability (`sudo setcap cap_sys_nice+ep $(command -v laxity)`), or take --scheduler other"
        ),
        io::ErrorKind::ResourceBusy => format!(
            "{what} is not admitted: {error}; the tasks, with what else is promised, need more than the CPUs offer \
             (/proc/sys/kernel/sched_rt_runtime_us of each sched_rt_period_us), so lower a wcet or take --scheduler fifo"
        ),
        _ => format!("{what} is refused: {error}; take --scheduler other"),
    }
}

fn apply(attributes: Attributes) -> Result<(), String> {
    attributes.apply().map_err(|error| refused(attributes, &error))
}

/// Tries `attributes` on a thread that ends at once, as there may be no way back.
pub(crate) fn try_out(attributes: Attributes) -> Result<(), String> {
    thread::spawn(move || apply(attributes)).join().unwrap_or_else(|_| Err("its thread panicked".to_owned()))
}

/// The reason why `SCHED_DEADLINE` cannot schedule `tasks`; `uses_all` says whether all CPUs are one cluster that
/// is all of the machine that this process may use.
pub(crate) fn deadline_obstacle(tasks: &[Task], uses_all: bool) -> Option<String> {
    if !uses_all {
        return Some(
            "SCHED_DEADLINE does not keep to some CPUs (Linux answers EPERM, 1) unless they are an exclusive cpuset; \
             take a global policy on all CPUs, make a cpuset, or take --scheduler laxity"
                .to_owned(),
        );
    }
    tasks.iter().find(|task| task.deadline > task.period).map(|task| {
        format!(
            "task \"{}\": relative deadline {} exceeds period {}, which SCHED_DEADLINE does not take (EINVAL, 22); \
             shorten the deadline or take --scheduler laxity",
            task.name, task.deadline, task.period
        )
    })
}

/// The priority of the task of `rank` among `count`: the last has 1, and those beyond what there is share it.
pub(crate) fn priority(rank: u32, count: usize) -> u8 {
    let highest = count.min(usize::from(PRIORITY_MAX) - 1) as u32;
    highest.saturating_sub(rank).max(1) as u8
}

/// The class for `scheduler`, as `wanted` or the strongest that there is, and what to say about the choice; `reserved` is
/// what each of the `tasks` would have under `SCHED_DEADLINE`, and `in_kernel` says whether the scheduler in the kernel can.
/// One that is loaded and can is taken, unless a class of Linux is wanted: it was loaded for that.
///
/// # Errors
/// If what is wanted cannot be.
pub(crate) fn choose(
    scheduler: &Scheduler,
    wanted: Option<LinuxScheduler>,
    in_kernel: impl FnOnce() -> Result<(), Unfit>,
    tasks: &[Task],
    reserved: &[Attributes],
    uses_all: bool,
) -> Result<(LinuxScheduler, Option<String>), String> {
    if scheduler.rule == PriorityRule::Fair {
        return match wanted {
            None | Some(LinuxScheduler::Other) => Ok((LinuxScheduler::Other, None)),
            Some(other) => Err(format!(
                "{scheduler} is SCHED_OTHER, not {other}; leave --scheduler out, or take another policy, as in --policy G-RM"
            )),
        };
    }
    // Exhaustive: a class of Linux is taken only for a rule that it is known to follow.
    let is_edf = match scheduler.rule {
        PriorityRule::Edf => true,
        PriorityRule::RateMonotonic | PriorityRule::DeadlineMonotonic | PriorityRule::Given => false,
        PriorityRule::Fair => unreachable!("it was answered above"),
    };
    let (probe, ours) = (Attributes::fifo(1), Attributes::fifo(laxity_sched::BASE_PRIORITY + 2));
    let unused = match wanted {
        Some(LinuxScheduler::Kernel) => {
            return match in_kernel() {
                Ok(()) => Ok((LinuxScheduler::Kernel, None)),
                Err(unfit) => Err(unfit.reason().to_owned()),
            };
        }
        None | Some(LinuxScheduler::Laxity) => match in_kernel() {
            Ok(()) => return Ok((LinuxScheduler::Kernel, None)),
            Err(Unfit::NotLoaded(_)) => None,
            Err(Unfit::Other(reason)) => Some(format!("the scheduler in the kernel is not used: {reason}")),
        },
        Some(_) => None,
    };
    match wanted {
        Some(LinuxScheduler::Laxity) => try_out(ours).map(|()| (LinuxScheduler::Laxity, unused)),
        Some(LinuxScheduler::Kernel) => unreachable!("it was answered above"),
        Some(LinuxScheduler::Fifo) if is_edf => {
            let deadline = if deadline_obstacle(tasks, uses_all).is_none() { "deadline or " } else { "" };
            Err(format!(
                "SCHED_FIFO has fixed priorities and {scheduler} has none; take --scheduler {deadline}laxity, or a policy with \
                 fixed priorities, as in --policy G-RM"
            ))
        }
        Some(LinuxScheduler::Fifo) => try_out(probe).map(|()| (LinuxScheduler::Fifo, None)),
        Some(LinuxScheduler::Deadline) => match deadline_obstacle(tasks, uses_all) {
            Some(obstacle) => Err(obstacle),
            None if !is_edf => Err(format!(
                "SCHED_DEADLINE schedules by EDF, not by {scheduler}; take --scheduler fifo, or --policy G-EDF"
            )),
            None => Ok((LinuxScheduler::Deadline, None)),
        },
        Some(LinuxScheduler::Other) => Ok((LinuxScheduler::Other, None)),
        None => {
            let (chosen, note) = strongest(is_edf, deadline_obstacle(tasks, uses_all), reserved, [probe, ours]);
            Ok((chosen, note.or(unused)))
        }
    }
}

/// The class that does exactly what the policy says, if Linux has one; else Laxity's scheduler. `probes` say whether
/// `SCHED_FIFO` is permitted, with any priority and with those of Laxity's scheduler.
fn strongest(
    is_edf: bool,
    obstacle: Option<String>,
    reserved: &[Attributes],
    probes: [Attributes; 2],
) -> (LinuxScheduler, Option<String>) {
    let [any, ours] = probes;
    let by_linux = match (is_edf, obstacle) {
        (false, _) => try_out(any).map(|()| LinuxScheduler::Fifo),
        (true, Some(obstacle)) => Err(obstacle),
        (true, None) => admitted_together(reserved).map(|()| LinuxScheduler::Deadline),
    };
    match by_linux.or_else(|reason| try_out(ours).map(|()| LinuxScheduler::Laxity).map_err(|_| reason)) {
        Ok(scheduler) => (scheduler, None),
        Err(reason) => (LinuxScheduler::Other, Some(format!("scheduled by SCHED_OTHER, without guarantees: {reason}"))),
    }
}

/// Whether Linux admits threads with all of `attributes` at the same time.
fn admitted_together(attributes: &[Attributes]) -> Result<(), String> {
    let barrier = &std::sync::Barrier::new(attributes.len());
    thread::scope(|scope| {
        let threads: Vec<_> = attributes
            .iter()
            .map(|attributes| {
                scope.spawn(move || {
                    let outcome = apply(*attributes);
                    // None goes before all were asked.
                    barrier.wait();
                    outcome
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })
}

#[cfg(test)]
mod tests {
    use laxity_model::Nanos;

    use super::*;

    fn none_loaded() -> Result<(), Unfit> {
        Err(Unfit::NotLoaded("none is loaded".to_owned()))
    }

    #[test]
    fn the_scheduler_in_the_kernel_is_taken_if_it_can_and_no_class_of_linux_is_wanted() {
        let edf = Scheduler::GLOBAL_EDF;
        let with = |wanted, in_kernel: Result<(), Unfit>| choose(&edf, wanted, || in_kernel, &[], &[], true);
        for wanted in [None, Some(LinuxScheduler::Laxity), Some(LinuxScheduler::Kernel)] {
            assert_eq!(with(wanted, Ok(())), Ok((LinuxScheduler::Kernel, None)));
        }
        assert_eq!(with(Some(LinuxScheduler::Other), Ok(())), Ok((LinuxScheduler::Other, None)));
        assert_eq!(with(Some(LinuxScheduler::Kernel), none_loaded()), Err("none is loaded".to_owned()));
        let other = Unfit::Other("it has P-RM".to_owned());
        let (chosen, note) = with(None, Err(other)).expect("there is always one");
        assert!(chosen != LinuxScheduler::Kernel && note.is_some(), "{note:?}");
    }

    #[test]
    fn ranks_become_priorities_from_one_up_and_the_last_share_one() {
        assert_eq!([0, 1, 2].map(|rank| priority(rank, 3)), [3, 2, 1]);
        assert_eq!([0, 96, 97, 199].map(|rank| priority(rank, 200)), [97, 1, 1, 1]);
    }

    #[test]
    fn edf_has_no_fixed_priorities_and_clusters_no_deadline_class() {
        let tasks = [Task::periodic("t", Nanos::from_millis(1), Nanos::from_millis(10))];
        let reserved = [Attributes::deadline(&tasks[0], 0)];
        let edf = Scheduler::GLOBAL_EDF;
        let error = choose(&edf, Some(LinuxScheduler::Fifo), none_loaded, &tasks, &reserved, true).expect_err("EDF");
        assert!(error.contains("--scheduler deadline"), "{error}");
        let error =
            choose(&edf, Some(LinuxScheduler::Deadline), none_loaded, &tasks, &reserved, false).expect_err("a cluster");
        assert!(error.contains("EPERM, 1"), "{error}");
        let late = [Task { deadline: Nanos::from_millis(20), ..tasks[0].clone() }];
        let error = choose(&edf, Some(LinuxScheduler::Deadline), none_loaded, &late, &reserved, true)
            .expect_err("a late deadline");
        assert!(error.contains("20 ms exceeds period 10 ms"), "{error}");
        let (chosen, why) = choose(&edf, None, none_loaded, &tasks, &reserved, false).expect("there is always one");
        match chosen {
            LinuxScheduler::Laxity => assert_eq!(why, None, "it has clusters"),
            _ => assert!(chosen == LinuxScheduler::Other && why.is_some_and(|why| why.contains("cpuset"))),
        }
    }

    #[test]
    fn the_fair_class_is_what_linux_calls_other() {
        let fair: Scheduler = "SCHED_OTHER".parse().expect("a scheduler");
        let chosen = |wanted| choose(&fair, wanted, none_loaded, &[], &[], true);
        assert_eq!(chosen(None), Ok((LinuxScheduler::Other, None)), "there is nothing weaker about it");
        assert_eq!(chosen(Some(LinuxScheduler::Other)), Ok((LinuxScheduler::Other, None)));
        let error = chosen(Some(LinuxScheduler::Fifo)).expect_err("another class");
        assert!(error.contains("G-CFS is SCHED_OTHER, not SCHED_FIFO"), "{error}");
    }
}
