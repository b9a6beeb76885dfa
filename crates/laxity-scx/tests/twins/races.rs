//! Threads that change one ready queue at once, as CPUs do, with a lock for the links alone.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use laxity_scx::native::shared::{Locked, Shared};
use laxity_scx::native::{Arrival, Core, Invocation, Queue, Refusal, Rule};
use laxity_testing::Random;

use crate::OF_RACES;

const THREADS: usize = 4;
const CPUS: u32 = 3;

/// A task's job, as the lock guards it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Inactive,
    Pending,
    Suspended,
}

/// What must be, in a form that is easily judged.
struct Model {
    jobs: Vec<Job>,
    levels: Vec<(u64, u32)>,
    events: u64,
}

impl Model {
    /// After each event and its decision the most urgent pending jobs are linked.
    fn judge(&self, links: &[Option<u32>]) -> Result<(), String> {
        let mut linked: Vec<u32> = links.iter().flatten().copied().collect();
        let level = |&task: &u32| (self.levels[task as usize], task);
        linked.sort_by_key(level);
        let mut all: Vec<u32> =
            (0..self.jobs.len() as u32).filter(|&task| self.jobs[task as usize] == Job::Pending).collect();
        all.sort_by_key(level);
        all.truncate(CPUS as usize);
        if linked == all { Ok(()) } else { Err(format!("{linked:?} are linked, and {all:?} should be")) }
    }
}

/// An event of `task` under the lock. `outcome` is C's; refused where it cannot have happened, or comes second.
fn report(core: &mut Locked<'_>, model: &mut Model, task: u32, arrival: Arrival, major: u64) -> Result<(), String> {
    let job = model.jobs[task as usize];
    let (fits, outcome) = match arrival {
        Arrival::Fresh => (job == Job::Inactive, core.release(task, major)),
        Arrival::Back => (job == Job::Suspended, core.resume(task)),
    };
    match outcome {
        Ok(()) if fits => {
            model.jobs[task as usize] = Job::Pending;
            if arrival == Arrival::Fresh {
                model.levels[task as usize] = (major, task);
            }
            Ok(())
        }
        // Another thread has claimed it, and reports the same.
        Err(Refusal::IsPending | Refusal::NotSuspended) => Ok(()),
        _ => Err(format!("task {task} is {job:?}, {arrival:?} comes, and C says {outcome:?}")),
    }
}

/// One random event.
fn step(shared: &Shared<Model>, random: &mut Random) -> Result<(), String> {
    let (tasks, kind) = (shared.with(|_, model| model.jobs.len()), random.below(10));
    let task = random.below(tasks as u64) as u32;
    let (major, tie) = (random.below(30), random.below(tasks as u64) as u32);
    if kind < 5 {
        // Two threads may report an arrival of one task, each early.
        let (job, level) = shared.with(|_, model| (model.jobs[task as usize], model.levels[task as usize]));
        let (arrival, level) = match job {
            Job::Inactive => (Arrival::Fresh, (major, task)),
            Job::Suspended => (Arrival::Back, level),
            Job::Pending => return Ok(()),
        };
        let cpu = random.below(u64::from(CPUS)) as u32;
        let leaf = if random.below(8) > 0 { shared.arrive_early(task, arrival, cpu, level) } else { None };
        return shared.with(|core, model| {
            if let Some(leaf) = leaf {
                core.expect(leaf);
            }
            report(core, model, task, arrival, major)?;
            if leaf.is_some() {
                core.end_early(task);
            }
            decided(core, model)
        });
    }
    shared.with(|core, model| {
        let links = core.links();
        let cpu = random.below(u64::from(CPUS)) as usize;
        match (kind, links[cpu], model.jobs[task as usize]) {
            (5..8, Some(linked), _) => {
                let suspends = kind == 7;
                core.leave(cpu as u32, linked, suspends).map_err(|refusal| refusal.to_string())?;
                model.jobs[linked as usize] = if suspends { Job::Suspended } else { Job::Inactive };
            }
            (8.., _, Job::Pending | Job::Suspended) => {
                core.prioritize(task, (major, tie)).map_err(|refusal| refusal.to_string())?;
                model.levels[task as usize] = (major, tie);
            }
            _ => return Ok(()),
        }
        decided(core, model)
    })
}

fn decided(core: &mut Locked<'_>, model: &mut Model) -> Result<(), String> {
    core.decide();
    model.events += 1;
    model.judge(&core.links())
}

/// So many events of each of the threads; how many there were, or the first difference.
fn run(queue: Queue, mutant: u32, each: u64, random: &mut Random) -> Result<u64, String> {
    let tasks = 4 + random.below(12) as u32;
    let model = Model { jobs: vec![Job::Inactive; tasks as usize], levels: vec![(0, 0); tasks as usize], events: 0 };
    let shared = Shared::new(tasks, CPUS, queue, mutant, model).expect("a small system");
    let failed = AtomicBool::new(false);
    let hammer = |mut random: Random| -> Result<(), String> {
        for _ in 0..each {
            if failed.load(Ordering::Relaxed) {
                break;
            }
            step(&shared, &mut random).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    let hammer = &hammer;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| Random::of(random.below(u64::MAX)))
            .map(|random| scope.spawn(move || hammer(random)))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread fails by itself"))
    })?;
    Ok(shared.with(|_, model| model.events))
}

/// Threads put jobs in and take them out as fast as they can, each its own ones; after each round the first one must be the least.
fn hammer_queue(queue: Queue, mutant: u32, rounds: u64, random: &mut Random) -> Result<(), String> {
    let tasks = THREADS as u32 * 2;
    let shared = Shared::new(tasks, CPUS, queue, mutant, ()).expect("a small system");
    let (barrier, wrong) = (Barrier::new(THREADS), AtomicBool::new(false));
    let keys: Vec<AtomicU64> = (0..tasks).map(|_| AtomicU64::new(u64::MAX)).collect();
    let (shared, barrier, wrong, keys) = (&shared, &barrier, &wrong, &keys);
    let own = |thread: usize, mut random: Random| {
        for _ in 0..rounds {
            for task in [thread as u32, (THREADS + thread) as u32] {
                keys[task as usize].store(u64::MAX, Ordering::Relaxed);
                shared.leave_early(task);
                if random.below(3) > 0 {
                    let major = random.below(1_000);
                    let cpu = random.below(u64::from(CPUS)) as u32;
                    let _ = shared.arrive_early(task, Arrival::Fresh, cpu, (major, task)).expect("it is ours");
                    keys[task as usize].store(major, Ordering::Relaxed);
                }
            }
            barrier.wait();
            let least = (0..tasks).map(|task| (keys[task as usize].load(Ordering::Relaxed), task)).min();
            let expected = least.filter(|&(key, _)| key != u64::MAX).map(|(_, task)| task);
            if shared.first() != expected {
                wrong.store(true, Ordering::Relaxed);
            }
            barrier.wait();
            if wrong.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let own = &own;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let random = Random::of(random.below(u64::MAX));
            scope.spawn(move || own(thread, random));
        }
    });
    if wrong.load(Ordering::Relaxed) { Err("the first one is not the least".to_owned()) } else { Ok(()) }
}

const QUEUES: [Queue; 2] = [Queue::Fine, Queue::Hierarchical];

#[test]
fn links_are_right_after_each_event_while_threads_change_the_queue() {
    let mut random = Random::new();
    let mut events = 0;
    for queue in QUEUES {
        for _ in 0..10 {
            events += run(queue, 0, 3_000, &mut random).unwrap_or_else(|difference| panic!("{queue:?}: {difference}"));
        }
    }
    assert!(events > 60_000, "{events} events");
}

#[test]
fn the_first_of_a_queue_is_the_least_whatever_threads_put_in_and_take_out() {
    let mut random = Random::new();
    for queue in QUEUES {
        for _ in 0..10 {
            hammer_queue(queue, 0, 4_000, &mut random).unwrap_or_else(|difference| panic!("{queue:?}: {difference}"));
        }
    }
}

/// What happens between two instructions of a CPU, one at a time: whether the queue is right afterwards.
fn is_right_with_others_in_between(queue: Queue, mutant: u32) -> bool {
    let small = || Core::broken(8, CPUS, Rule::ByJob, Invocation::EventDriven, queue, mutant).expect("a small system");
    // Another CPU has decided a match since this one looked at it.
    let mut core = small();
    core.release(0, 1).expect("no job is pending");
    let overtakes = [1, 2, 128].into_iter().any(|at| core.overtakes(0, at));
    // Another CPU, which looked before, is faster in a match.
    let mut core = small();
    core.interfere(1);
    core.release(3, 1).expect("no job is pending");
    let is_found = core.decide() != 0;
    // Two CPUs report one release; a decision in between takes out what the first has put in, and the second has not climbed.
    let mut core = small();
    let first = core.arrive_early(5, Arrival::Fresh, 0, (7, 5)).expect("no job is pending");
    core.decide();
    let second = core.claim(5, Arrival::Fresh).expect("it was taken out");
    core.publish(5, second, 0, (7, 5));
    core.expect(first);
    core.release(5, 7).expect("it is the first");
    core.end_early(5);
    !overtakes && is_found && core.decide() != 0
}

#[test]
fn each_broken_rule_of_races_is_noticed() {
    for queue in QUEUES {
        assert!(is_right_with_others_in_between(queue, 0), "{queue:?}");
        for mutant in OF_RACES {
            let is_right = is_right_with_others_in_between(queue, mutant);
            assert!(!is_right, "{queue:?}: nothing noticed that rule {mutant} was broken");
        }
    }
}
