//! Laxity's scheduler in the kernel, as the tasks of a run have it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use laxity_model::{Instant, Invocation, Nanos, ReleaseInterrupts, Scheduler};
use laxity_scx::protocol::Status;
use laxity_scx::trace::QUANTUM;
use laxity_scx::{ClientError, InterruptRequest, InterruptThread, Lock, Membership, Task, TaskRequest};
use laxity_sys::scheduling;

use crate::kernel_locks::KernelLocks;
use crate::placement::Placement;
use crate::stop::StopSignal;

/// Why the scheduler in the kernel does not schedule a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// None is loaded.
    NotLoaded(String),
    /// One is, for something else; with the way out.
    Other(String),
}

impl Unfit {
    /// The reason, in words.
    pub fn reason(&self) -> &str {
        match self {
            Unfit::NotLoaded(reason) | Unfit::Other(reason) => reason,
        }
    }
}

/// Whether the scheduler that is loaded is `scheduler` on the CPUs of `placement`.
///
/// # Errors
/// Why it is not.
pub(crate) fn fits(scheduler: &Scheduler, placement: &Placement) -> Result<(), Unfit> {
    let status = Membership::join().and_then(|membership| membership.status()).map_err(|error| match error {
        ClientError::NotRunning => Unfit::NotLoaded(error.to_string()),
        error => Unfit::Other(error.to_string()),
    })?;
    // As in a simulation, the first one.
    let dedicated = (scheduler.interrupts == ReleaseInterrupts::Dedicated).then(|| placement.linux[0]);
    is_alike(scheduler, &placement.linux_clusters(), dedicated, &status)
}

fn is_alike(
    scheduler: &Scheduler,
    clusters: &[Vec<u16>],
    dedicated: Option<usize>,
    status: &Status,
) -> Result<(), Unfit> {
    let is_same = status.policy.parse() == Ok(Scheduler { coarse_lock: false, ..*scheduler });
    let asked: Vec<Vec<usize>> = clusters.iter().map(|cpus| cpus.iter().map(|&cpu| cpu.into()).collect()).collect();
    if is_same && asked == status.clusters && dedicated == status.dedicated {
        return Ok(());
    }
    let is_plain = scheduler.realization() == Scheduler::GLOBAL_EDF.realization();
    let policy = if is_plain { scheduler.algorithm() } else { scheduler.to_string() };
    let cpus: Vec<usize> = dedicated.into_iter().chain(asked.concat()).collect();
    let list = |cpus: &[usize]| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let size = match asked.first() {
        Some(first) if policy.starts_with("C-") => format!(" --cluster-size {}", first.len()),
        _ => String::new(),
    };
    Err(Unfit::Other(format!(
        "the scheduler in the kernel has {} on CPUs {}, and the workload {policy} on CPUs {}; load it with `laxity sched \
         start --policy {policy} --cpus {}{size}`, or take another --policy or --cpus",
        status.policy,
        groups(&status.clusters),
        groups(&asked),
        list(&cpus),
    )))
}

/// The CPUs of clusters, for people.
fn groups(clusters: &[Vec<usize>]) -> String {
    let list = |cpus: &Vec<usize>| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    clusters.iter().map(list).collect::<Vec<_>>().join(" | ")
}

/// The scheduler in the kernel, and what the tasks of a run share under it.
#[derive(Debug)]
pub(crate) struct InKernel {
    membership: Membership,
    /// The resources, where one thread after the other may have them.
    locks: Vec<Lock>,
    /// All locks, if an arbiter in user space grants them.
    arbitrated: Option<KernelLocks>,
    turns: Turns,
    /// Of each GPU the thread that handles its interrupts, under klmirqd.
    interrupts: Vec<OnceLock<InterruptThread>>,
    /// The nodes of graphs that are tasks already, by their numbers among the tasks of the run.
    places: Vec<OnceLock<Place>>,
    /// Jobs that Linux scheduled, because the scheduler had ended.
    by_linux: AtomicU64,
}

/// A node of a graph, as other threads say of it when its jobs are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which task of the process it is, for the scheduler.
    pub entry: u32,
    /// No job of it begins before.
    pub start: Instant,
    /// Whether its jobs may begin before their releases.
    pub may_be_early: bool,
}

impl Place {
    /// When the scheduler releases a job that is `now` known to be released, as its deadline counts, at `release`.
    pub fn begins(&self, release: Instant, now: Instant) -> Instant {
        if self.may_be_early { release.min(now).max(self.start) } else { release.max(self.start) }
    }
}

/// The tasks that have had their turns, which they take in the order of their numbers.
#[derive(Debug, Default)]
struct Turns {
    had: Mutex<BTreeSet<usize>>,
    changed: Condvar,
}

impl Turns {
    /// Waits until all tasks before `number` have had theirs. Whether they have, rather than that the run is stopped.
    fn wait(&self, number: usize, stop: &StopSignal) -> bool {
        let mut had = self.had.lock().unwrap_or_else(PoisonError::into_inner);
        while !(0..number).all(|before| had.contains(&before)) {
            if stop.is_stopped() {
                return false;
            }
            had = self.changed.wait_timeout(had, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Task `number` has had it, or needs none.
    fn pass(&self, number: usize) {
        self.had.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        self.changed.notify_all();
    }
}

/// So often a task that waits for its turn looks whether the run is over.
const LOOK: Duration = Duration::from_millis(20);

impl InKernel {
    /// For a run with that many resources, tasks and GPUs, and with all its locks if an arbiter grants them.
    ///
    /// # Errors
    /// If the scheduler is not there any more.
    pub fn join(
        resources: usize,
        tasks: usize,
        gpus: usize,
        arbitrated: Option<KernelLocks>,
    ) -> Result<InKernel, String> {
        let membership = Membership::join().map_err(|error| error.to_string())?;
        membership.prepare().map_err(|error| error.to_string())?;
        let locks = (0..resources).map(|_| Lock::new()).collect();
        let places = (0..tasks).map(|_| OnceLock::new()).collect();
        let interrupts = (0..gpus).map(|_| OnceLock::new()).collect();
        Ok(InKernel {
            membership,
            locks,
            arbitrated,
            turns: Turns::default(),
            interrupts,
            places,
            by_linux: AtomicU64::new(0),
        })
    }

    /// The calling thread becomes task `number` of the run. Tasks begin in the order of their numbers, as ties go to the one that
    /// began first. `None`: the run is stopped.
    ///
    /// # Errors
    /// The scheduler's reason.
    pub fn begin(&self, number: usize, request: &TaskRequest, stop: &StopSignal) -> Result<Option<Task>, ClientError> {
        if !self.turns.wait(number, stop) {
            return Ok(None);
        }
        self.membership.begin_then(request, || self.turns.pass(number)).map(Some)
    }

    /// Task `number` ends, perhaps without a job: no other one waits for its turn.
    pub fn pass(&self, number: usize) {
        self.turns.pass(number);
    }

    /// Task `number`, a node, has begun.
    pub fn set_place(&self, number: usize, place: Place) {
        // A thread is a task once.
        let _ = self.places[number].set(place);
    }

    /// Where task `number` is, if that is a node that has begun.
    pub fn place(&self, number: usize) -> Option<Place> {
        self.places.get(number)?.get().copied()
    }

    /// A resource.
    pub fn lock(&self, index: usize) -> &Lock {
        &self.locks[index]
    }

    /// The calling thread, which handles the interrupts of that GPU, works for tasks of `cluster` from now on.
    ///
    /// # Errors
    /// The scheduler's reason why it does not.
    pub fn handle_interrupts(&self, gpu: usize, cluster: usize) -> Result<(), ClientError> {
        let request = InterruptRequest { cluster: Some(cluster), ..InterruptRequest::of(scheduling::current_thread()) };
        let thread = self.membership.handle(&request)?;
        // A GPU has one such thread.
        let _ = self.interrupts[gpu].set(thread);
        Ok(())
    }

    /// The thread that handles the interrupts of that GPU, if it works for tasks.
    pub fn interrupt_thread(&self, gpu: usize) -> Option<&InterruptThread> {
        self.interrupts.get(gpu)?.get()
    }

    /// All locks, where an arbiter in user space grants them.
    pub fn arbitrated(&self) -> Option<&KernelLocks> {
        self.arbitrated.as_ref()
    }

    /// Linux schedules a job, because the scheduler has ended.
    pub fn count_by_linux(&self) {
        self.by_linux.fetch_add(1, Ordering::Relaxed);
    }

    /// A note to the user on how the run went.
    pub fn remark(&self) -> Option<String> {
        let by_linux = self.by_linux.load(Ordering::Relaxed);
        (by_linux > 0).then(|| {
            format!(
                "the scheduler in the kernel ended before the run: Linux scheduled {by_linux} of its jobs, without guarantees"
            )
        })
    }
}

/// From when all threads of so many tasks are there to time 0: each becomes a task in between.
pub(crate) fn lead(tasks: usize) -> Nanos {
    Nanos::from_millis(500 + 20 * tasks as u64)
}

/// Time 0 of a run that could begin at `soonest`: where a quantum begins, as in a simulation.
pub(crate) fn start(scheduler: &Scheduler, soonest: Instant) -> Instant {
    match scheduler.invocation {
        Invocation::EventDriven => soonest,
        Invocation::QuantumDriven => Instant(soonest.0.next_multiple_of(QUANTUM.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(policy: &str, clusters: &[&[usize]]) -> Status {
        Status {
            policy: policy.to_owned(),
            pid: 1,
            running: Nanos::ZERO,
            clusters: clusters.iter().map(|cpus| cpus.to_vec()).collect(),
            dedicated: None,
            lost: None,
            tasks: Vec::new(),
            interrupts: Vec::new(),
            others: Vec::new(),
        }
    }

    #[test]
    fn a_scheduler_for_other_cpus_or_of_another_policy_says_how_to_load_the_right_one() {
        let asked: Scheduler = "C-EDF".parse().expect("a scheduler");
        let clusters = [vec![0, 1], vec![2, 3]];
        let alike = |status: &Status| is_alike(&asked, &clusters, None, status);
        assert_eq!(alike(&status("C-EDF/CEm", &[&[0, 1], &[2, 3]])), Ok(()));
        for other in [
            status("C-RM", &[&[0, 1], &[2, 3]]),
            status("C-EDF", &[&[0], &[1]]),
            status("C-EDF/CQm", &[&[0, 1], &[2, 3]]),
            status("?", &[]),
        ] {
            let unfit = alike(&other).expect_err("it is another one");
            let reason = unfit.reason();
            assert!(reason.contains("sched start --policy C-EDF --cpus 0,1,2,3 --cluster-size 2"), "{reason}");
            assert!(matches!(unfit, Unfit::Other(_)));
        }
    }

    #[test]
    fn a_scheduler_must_have_the_realization_of_the_workload_and_its_dedicated_cpu() {
        let asked: Scheduler = "G-EDF/S-CQ1".parse().expect("a scheduler");
        let mut loaded = status("G-EDF/S-CQ1", &[&[1, 2]]);
        let alike = |status: &Status| is_alike(&asked, &[vec![1, 2]], Some(0), status);
        let reason = alike(&loaded).expect_err("no CPU is dedicated").reason().to_owned();
        assert!(reason.contains("sched start --policy G-EDF/S-CQ1 --cpus 0,1,2"), "{reason}");
        loaded.dedicated = Some(0);
        assert_eq!(alike(&loaded), Ok(()));
        loaded.policy = "G-EDF/CQ1".to_owned();
        assert!(alike(&loaded).is_err(), "its quanta are not staggered");
        for queue in ["G-EDF/FE1", "G-EDF/S-HQ1"] {
            let asked = queue.parse().expect("a scheduler");
            let alike = |status: &Status| is_alike(&asked, &[vec![1, 2]], Some(0), status);
            let reason = alike(&loaded).expect_err("its queue is coarse").reason().to_owned();
            assert!(reason.contains(&format!("sched start --policy {queue} --cpus 0,1,2")), "{reason}");
            assert_eq!(alike(&Status { policy: queue.to_owned(), ..loaded.clone() }), Ok(()));
        }
    }

    #[test]
    fn a_job_of_a_node_begins_early_where_it_may_but_never_before_time_0() {
        let place = Place { entry: 1, start: Instant(100), may_be_early: true };
        let begins = |release, now| place.begins(Instant(release), Instant(now)).0;
        assert_eq!([begins(300, 200), begins(150, 200), begins(300, 50), begins(0, 50)], [200, 150, 100, 100]);
        let on_time = Place { may_be_early: false, ..place };
        assert_eq!(on_time.begins(Instant(300), Instant(200)), Instant(300));
    }

    #[test]
    fn a_task_waits_for_those_before_it_also_if_one_ends_without_a_job() {
        let (turns, stop) = (Turns::default(), StopSignal::default());
        assert!(turns.wait(0, &stop), "the first waits for none");
        std::thread::scope(|scope| {
            let third = scope.spawn(|| turns.wait(2, &stop));
            // The second has no job in this run.
            turns.pass(1);
            std::thread::sleep(LOOK);
            assert!(!third.is_finished());
            turns.pass(0);
            assert!(third.join().expect("no panic"));
        });
        stop.stop();
        assert!(!turns.wait(9, &stop), "a run that is stopped has no more turns");
    }
}
