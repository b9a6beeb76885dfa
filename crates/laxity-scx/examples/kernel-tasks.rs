//! Random periodic threads as tasks of the scheduler in the kernel: what the lab runs, and how a program uses it.
//!
//!     kernel-tasks [seed=1] [tasks=6] [load=1500] [for=3000] [suspend=0] [section=0] [lock=0] [runaway=0] [exits=0] [linux=0]
//!     kernel-tasks inversion=1
//!
//! `load` is the sum of utilizations in thousandths, `for` in ms. Of `suspend` in a hundred jobs each sleeps for a while half-way,
//! of `section` in a hundred each executes in a non-preemptive section, and of `lock` holding a lock that all share, for 2 ms at most.
//! With `runaway=1` there is one more task, whose job never returns: a quarter of a CPU, enforced. With `runaway=2` there is one, with
//! `runaway=3` there are two, and so on, without a budget.
//! With `exits=8` there are eight more at any time, each of which ends within its first job, without leaving first, and is
//! followed by another one.
//! With `linux=1` no thread is a task: `SCHED_FIFO` schedules them, shorter periods first; with `linux=2`, `SCHED_OTHER`. Prints
//! a line for each task; `delay` is from a release to the start of the job.
//!
//! With `inversion=1` there are three tasks under fixed
//! priorities: the most urgent one waits for a lock of the least urgent one, while the third computes.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use laxity_model::{Instant, Nanos};
use laxity_scx::{Lock, Membership, Task, TaskRequest};
use laxity_sys::clock::{now, sleep_until, thread_cpu_time};
use laxity_sys::scheduling::{current_thread, set_fifo};
use laxity_testing::Random;

const PERIODS_MS: &[u64] = &[8, 10, 16, 20, 25, 40, 50, 80, 100];

struct Wanted {
    seed: u64,
    tasks: u64,
    load: u64,
    span: Nanos,
    suspend: u64,
    section: u64,
    lock: u64,
    runaway: u64,
    exits: u64,
    linux: u64,
    inversion: u64,
}

impl Wanted {
    fn read() -> Result<Wanted, String> {
        let (mut seed, mut tasks, mut load, mut span) = (1, 6, 1_500, 3_000);
        let (mut suspend, mut section, mut lock, mut runaway, mut exits) = (0, 0, 0, 0, 0);
        let (mut linux, mut inversion) = (0, 0);
        for argument in std::env::args().skip(1) {
            let (key, value) = argument.split_once('=').ok_or_else(|| format!("{argument}: key=number is expected"))?;
            let value: u64 = value.parse().map_err(|error| format!("{argument}: {error}"))?;
            match key {
                "seed" => seed = value,
                "tasks" => tasks = value.clamp(1, 200),
                "load" => load = value,
                "for" => span = value,
                "suspend" => suspend = value,
                "section" => section = value,
                "lock" => lock = value,
                "runaway" => runaway = value,
                "exits" => exits = value,
                "linux" => linux = value,
                "inversion" => inversion = value,
                _ => {
                    return Err(format!(
                        "{key}: seed, tasks, load, for, suspend, section, lock, runaway, exits, linux and inversion are known"
                    ));
                }
            }
        }
        let span = Nanos::from_millis(span);
        Ok(Wanted { seed, tasks, load, span, suspend, section, lock, runaway, exits, linux, inversion })
    }
}

/// One random task.
struct Drawn {
    request: TaskRequest,
    suspend: u64,
    section: u64,
    lock: u64,
    seed: u64,
}

fn draw(wanted: &Wanted, start: Instant) -> Vec<Drawn> {
    let mut random = Random::of(wanted.seed);
    let weights: Vec<u64> = (0..wanted.tasks).map(|_| random.below(90) + 10).collect();
    let sum: u64 = weights.iter().sum();
    let task = |(number, weight): (u64, u64)| {
        let period = Nanos::from_millis(PERIODS_MS[random.below(PERIODS_MS.len() as u64) as usize]);
        // No task needs more than nine tenths of a CPU.
        let share = (wanted.load * weight / sum).clamp(1, 900);
        let request = TaskRequest {
            priority: number,
            release: Some(start),
            ..TaskRequest::periodic(format!("task{number}"), period, Nanos(period.0 / 1_000 * share))
        };
        let Wanted { seed, suspend, section, lock, .. } = *wanted;
        Drawn { request, suspend, section, lock, seed: seed * 1_000 + number }
    };
    (0..).zip(weights).map(task).collect()
}

/// The task whose job never returns.
fn runaway(is_bounded: bool, start: Instant) -> TaskRequest {
    let (period, wcet) = (Nanos::from_millis(20), Nanos::from_millis(5));
    let (budget, release) = (is_bounded.then_some(wcet), Some(start));
    TaskRequest { budget, release, ..TaskRequest::periodic("runaway", period, wcet) }
}

fn run_away(membership: &Membership, request: &TaskRequest, end: Instant) -> Result<(), String> {
    let mut task = membership.begin(request).map_err(|error| error.to_string())?;
    task.next_job();
    let (begin, executed) = (now(), thread_cpu_time());
    while now() < end {}
    let ms = |time: Nanos| time.0 / 1_000_000;
    let (executed, passed) = (thread_cpu_time().0 - executed.0, end.saturating_since(begin));
    println!("runaway cpu_ms={} of={}", ms(Nanos(executed)), ms(passed));
    Ok(())
}

/// Threads that become tasks, one after another, and end within their first jobs. Returns how many.
fn exit_as_tasks(membership: &Arc<Membership>, lane: u64, end: Instant) -> Result<u32, String> {
    let mut random = Random::of(lane);
    let mut count = 0;
    while now() < end {
        let period = Nanos::from_millis(PERIODS_MS[random.below(PERIODS_MS.len() as u64) as usize]);
        let (wcet, priority) = (Nanos(period.0 / 16), 100 + lane);
        let request = TaskRequest { priority, ..TaskRequest::periodic(format!("exit{lane}"), period, wcet) };
        let membership = Arc::clone(membership);
        let thread = thread::spawn(move || {
            let asked = now();
            let mut task = membership.begin(&request).map_err(|error| error.to_string())?;
            let job = task.next_job();
            // A thread is told nothing of jobs of the one that had its place before.
            if job.number != 1 || job.release < asked {
                return Err(format!(
                    "{}: its first job is another task's: {job:?}, asked for at {asked:?}",
                    request.name
                ));
            }
            execute(wcet);
            // As if it were killed.
            std::mem::forget(task);
            Ok::<_, String>(())
        });
        thread.join().map_err(|_| "a thread panicked".to_owned())??;
        count += 1;
    }
    Ok(count)
}

/// The thread that executed last: on one CPU a thread sees here whether it was preempted by another one.
static LAST: AtomicU32 = AtomicU32::new(0);

/// Uses the CPU for `cost`, whatever else happens. Returns whether no other thread executed meanwhile.
fn execute(cost: Nanos) -> bool {
    let (begin, this, mut is_alone) = (thread_cpu_time(), current_thread(), true);
    LAST.store(this, Ordering::Relaxed);
    while thread_cpu_time().0 - begin.0 < cost.0 {
        is_alone &= LAST.swap(this, Ordering::Relaxed) == this;
    }
    is_alone
}

/// Counts a section, and whether it was preempted. Returns what it took.
fn section(drawn: &Drawn, task: &Task, random: &mut Random, done: &mut Done) -> Nanos {
    let cost = Nanos(drawn.request.wcet.0.min(4_000_000) / 2);
    if drawn.section == 0 || random.below(100) >= drawn.section {
        return Nanos::ZERO;
    }
    done.sections += 1;
    done.preempted += u32::from(!task.non_preemptive(|| execute(cost)));
    cost
}

/// What all tasks share.
static SHARED: Lock = Lock::new();

/// Executes with the lock that all share. Returns what it took.
fn critical_section(drawn: &Drawn, task: &Task, random: &mut Random, done: &mut Done) -> Nanos {
    let cost = Nanos(drawn.request.wcet.0.min(4_000_000) / 2);
    if drawn.lock == 0 || random.below(100) >= drawn.lock {
        return Nanos::ZERO;
    }
    done.locks += 1;
    let _guard = task.lock(&SHARED);
    // No other task is in here.
    assert!(!std::mem::replace(&mut *IS_INSIDE.lock().expect("no panic"), true));
    execute(cost);
    *IS_INSIDE.lock().expect("no panic") = false;
    cost
}

static IS_INSIDE: Mutex<bool> = Mutex::new(false);

/// The rest of a job that has executed for `executed`, which is at most half its WCET.
fn body(drawn: &Drawn, random: &mut Random, executed: Nanos) {
    let wcet = drawn.request.wcet.0;
    let cost = wcet / 2 + random.below(wcet / 2 + 1) - executed.0;
    if random.below(100) < drawn.suspend {
        execute(Nanos(cost / 2));
        sleep_until(now().saturating_add(Nanos(drawn.request.period.0 / 16)));
        execute(Nanos(cost / 2));
    } else {
        execute(Nanos(cost));
    }
}

/// Jobs of a task: completed, late, and done under Linux.
struct Done {
    jobs: u32,
    late: u32,
    by_linux: u32,
    tardiness_max: Nanos,
    delay_max: Nanos,
    /// Non-preemptive sections, and those in which another thread executed.
    sections: u32,
    preempted: u32,
    /// How often it had the lock.
    locks: u32,
}

impl Done {
    fn none() -> Done {
        let (tardiness_max, delay_max) = (Nanos::ZERO, Nanos::ZERO);
        Done { jobs: 0, late: 0, by_linux: 0, tardiness_max, delay_max, sections: 0, preempted: 0, locks: 0 }
    }

    fn begin(&mut self, release: Instant) {
        self.delay_max = self.delay_max.max(now().saturating_since(release));
    }

    fn note(&mut self, deadline: Instant, is_scheduled: bool) {
        let tardiness = now().saturating_since(deadline);
        self.jobs += 1;
        self.late += u32::from(!tardiness.is_zero());
        self.by_linux += u32::from(!is_scheduled);
        self.tardiness_max = self.tardiness_max.max(tardiness);
    }
}

fn under_laxity(drawn: &Drawn, mut task: Task, end: Instant) -> Done {
    let mut done = Done::none();
    let mut random = Random::of(drawn.seed);
    loop {
        let job = task.next_job();
        if job.release >= end {
            return done;
        }
        done.begin(job.release);
        let executed = match critical_section(drawn, &task, &mut random, &mut done) {
            Nanos::ZERO => section(drawn, &task, &mut random, &mut done),
            executed => executed,
        };
        body(drawn, &mut random, executed);
        done.note(job.deadline, job.is_scheduled);
    }
}

fn under_linux(drawn: &Drawn, end: Instant, is_fifo: bool) -> Result<Done, String> {
    let period = drawn.request.period;
    let rank = PERIODS_MS.iter().position(|&it| Nanos::from_millis(it) == period).unwrap_or(0);
    if is_fifo {
        set_fifo(90 - rank as u8).map_err(|error| format!("no right to SCHED_FIFO: {error}"))?;
    }
    let mut done = Done::none();
    let mut random = Random::of(drawn.seed);
    let mut release = drawn.request.release.expect("it is given");
    while release < end {
        sleep_until(release);
        done.begin(release);
        body(drawn, &mut random, Nanos::ZERO);
        done.note(release.saturating_add(period), false);
        release = release.saturating_add(period);
    }
    Ok(done)
}

/// Priority inversion: the response time of the most urgent of three tasks, whose lock the least urgent one has for 20 ms of
/// its time while the third computes for 200 ms.
fn inversion() -> Result<(), String> {
    let membership = Arc::new(Membership::join().map_err(|error| error.to_string())?);
    let start = now().saturating_add(Nanos::from_millis(3_000));
    let task = |name: &str, after, priority| {
        let period = Nanos::from_millis(2_000);
        let release = Some(start.saturating_add(Nanos::from_millis(after)));
        TaskRequest { priority, release, ..TaskRequest::periodic(name, period, Nanos::from_millis(300)) }
    };
    let tasks = [(task("low", 0, 3), 20, true), (task("middle", 10, 2), 200, false), (task("high", 5, 1), 1, true)];
    let threads = tasks.map(|(request, cost, locks)| {
        let membership = Arc::clone(&membership);
        thread::spawn(move || {
            let mut task = membership.begin(&request).map_err(|error| error.to_string())?;
            let job = task.next_job();
            let guard = locks.then(|| task.lock(&SHARED));
            execute(Nanos::from_millis(cost));
            drop(guard);
            let response = now().saturating_since(job.release);
            // The task goes on: no other's time is its end.
            task.next_job();
            Ok::<_, String>((request.name, response))
        })
    });
    for thread in threads {
        let (name, response) = thread.join().map_err(|_| "a thread panicked".to_owned())??;
        println!("{name} response_us={}", response.0 / 1_000);
    }
    Ok(())
}

fn run(wanted: &Wanted) -> Result<(), String> {
    if wanted.inversion > 0 {
        return inversion();
    }
    // All threads are tasks by then: a new control page takes Linux a grace period of RCU.
    let start = now().saturating_add(Nanos::from_millis(1_000));
    let end = start.saturating_add(wanted.span);
    let membership = match wanted.linux {
        1.. => None,
        0 => Some(Arc::new(Membership::join().map_err(|error| error.to_string())?)),
    };
    let without_end: Vec<_> = (0..wanted.runaway.max(2) - 1)
        .filter_map(|_| membership.clone().filter(|_| wanted.runaway > 0))
        .map(|membership| {
            let request = runaway(wanted.runaway == 1, start);
            thread::spawn(move || run_away(&membership, &request, end))
        })
        .collect();
    let exits: Vec<_> = (0..wanted.exits)
        .filter_map(|lane| Some((lane, membership.clone()?)))
        .map(|(lane, membership)| thread::spawn(move || exit_as_tasks(&membership, lane, end)))
        .collect();
    let threads: Vec<_> = draw(wanted, start)
        .into_iter()
        .map(|drawn| {
            let membership = membership.clone();
            let is_fifo = wanted.linux == 1;
            thread::spawn(move || {
                let done = match membership {
                    None => under_linux(&drawn, end, is_fifo)?,
                    Some(membership) => {
                        let task = membership.begin(&drawn.request).map_err(|error| error.to_string())?;
                        under_laxity(&drawn, task, end)
                    }
                };
                Ok::<_, String>((drawn.request, done))
            })
        })
        .collect();
    for thread in threads {
        let (task, done) = thread.join().map_err(|_| "a thread panicked".to_owned())??;
        let Done { jobs, late, by_linux, tardiness_max, delay_max, sections, preempted, locks } = done;
        println!(
            "{} period_ms={} wcet_us={} jobs={jobs} late={late} by_linux={by_linux} tardiness_max_us={} delay_max_us={} sections={sections} preempted={preempted} locks={locks}",
            task.name,
            task.period.0 / 1_000_000,
            task.wcet.0 / 1_000,
            tardiness_max.0 / 1_000,
            delay_max.0 / 1_000
        );
    }
    for thread in exits {
        let count = thread.join().map_err(|_| "a thread panicked".to_owned())??;
        println!("exited as tasks: {count}");
    }
    without_end.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
}

fn main() -> ExitCode {
    match Wanted::read().and_then(|wanted| run(&wanted)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
