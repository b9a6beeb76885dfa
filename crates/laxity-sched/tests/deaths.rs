//! Processes that are killed, stopped, or execute another program in place, at any instruction: their tasks are gone, the
//! other tasks go on, and no thread keeps a priority or a CPU that a system gave it.

mod support;
#[path = "support/worker.rs"]
mod worker;

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity_sched::{Registry, Snapshot, TaskSnapshot, TaskState};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{Attributes, current_thread, thread_name};
use laxity_testing::{Process, Random, role, until};
use rustix::process::{Pid, Signal, kill_process};
use support::{Place, on, one_cpu, release, task};
use worker::{Order, Shape, THREADS};

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    match role.split(' ').collect::<Vec<_>>()[..] {
        ["hold", what] => worker::hold(&Registry::at(&place), what),
        ["work", shape, number] => worker::work(&place, Shape::of_name(shape), number.parse().expect("a number")),
        _ => panic!("no such role: {role}"),
    }
}

fn look(place: &Place) -> Snapshot {
    place.look("s").expect("whole")
}

fn named(snapshot: &Snapshot, name: &str) -> Option<TaskSnapshot> {
    snapshot.tasks.iter().find(|task| task.name == name).cloned()
}

#[test]
fn the_cpu_of_a_killed_process_goes_to_the_next_job() {
    for what in ["linked", "in-section"] {
        let Some((place, system)) = one_cpu(what) else { return };
        let mut process = Process::start(&place, &format!("hold {what}"));
        until("it has the CPU", || named(&look(&place), what).is_some_and(|task| task.state == TaskState::Linked));
        let task = task(&system, "next", 60_000);
        release(&task, 0);
        assert!(!task.is_linked(), "the other deadline is earlier");
        process.kill();
        until("the next job has the CPU", || task.is_linked());
        let priority = Attributes::of(current_thread()).expect("this one").fixed_priority();
        assert_eq!(priority, Some(91), "{what}: the next thread runs");
        assert!(named(&look(&place), what).is_none(), "the task of the dead is gone");
        task.complete().expect("it has a job");
    }
}

#[test]
fn a_killed_process_leaves_no_task_that_waits() {
    for what in ["parked", "suspended"] {
        let Some((place, _system)) = one_cpu(what) else { return };
        let state = if what == "parked" { TaskState::Parked } else { TaskState::Suspended };
        let mut process = Process::start(&place, &format!("hold {what}"));
        until("it waits", || named(&look(&place), what).is_some_and(|task| task.state == state));
        process.kill();
        until("it is gone", || look(&place).tasks.is_empty());
    }
}

#[test]
fn a_stopped_process_keeps_its_link_and_others_use_its_cpu() {
    let Some((place, system)) = one_cpu("stopped") else { return };
    let mut process = Process::start(&place, "hold spinning");
    until("it has the CPU", || named(&look(&place), "spinning").is_some_and(|task| task.state == TaskState::Linked));
    send(&process, Signal::STOP);
    let task = task(&system, "next", 60_000);
    release(&task, 0);
    assert!(!task.is_linked(), "a stopped process is not dead");
    // It got here on the CPU of the stopped thread, and completes there.
    task.complete().expect("it has a job");
    assert_eq!(named(&look(&place), "spinning").map(|task| task.state), Some(TaskState::Linked));
    send(&process, Signal::CONT);
    process.kill();
    until("it is gone", || look(&place).tasks.len() == 1);
}

#[test]
fn a_task_ends_with_its_thread_even_if_its_handle_is_forgotten() {
    let Some((place, system)) = one_cpu("forgotten") else { return };
    let is_released = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let task = task(&system, "forgotten", 50);
            release(&task, 0);
            is_released.store(true, Ordering::SeqCst);
            std::mem::forget(task);
        });
    });
    assert!(is_released.load(Ordering::SeqCst));
    until("its task is gone", || look(&place).tasks.is_empty());
    let task = task(&system, "next", 500);
    release(&task, 0);
    assert!(task.is_linked(), "the CPU is free");
}

/// The first thread, whose number is the process's; another one, which gets that number; and one that is no task.
#[test]
fn a_program_that_is_executed_in_place_of_a_member_is_scheduled_as_usual() {
    for thread in 0..=THREADS {
        let Some((place, system)) = on("exec", Shape::OneCpu.config()) else { return };
        let mut worker = Worker::start(&place, Shape::OneCpu, 0);
        worker.works(&place);
        let next = task(&system, "next", 60_000);
        worker.execute_another(&place, thread);
        worker.is_gone(&place);
        release(&next, 0);
        until("the CPU is free", || next.is_linked());
        worker.process.kill();
    }
}

fn send(process: &Process, signal: Signal) {
    let process = Pid::from_raw(process.id() as i32).expect("a process has a number");
    kill_process(process, signal).expect("it is ours");
}

/// A process of several tasks.
struct Worker {
    number: u64,
    /// It had these when it was started.
    cpus: CpuMask,
    process: Process,
}

impl Worker {
    fn start(place: &Place, shape: Shape, number: u64) -> Worker {
        let cpus = CpuMask::of_thread(current_thread()).expect("this one");
        Worker { number, cpus, process: Process::start(place, &format!("work {} {number}", shape.name())) }
    }

    /// The number of the last job of each of its tasks, if all are there and have begun one.
    fn jobs(&self, snapshot: &Snapshot) -> Option<Vec<u64>> {
        let job = |thread| named(snapshot, &worker::task_name(self.number, thread)).map(|task| task.job);
        (0..THREADS).map(|thread| job(thread).filter(|&job| job > 0)).collect()
    }

    fn works(&self, place: &Place) {
        // The first worker creates the system.
        until("all its tasks work", || place.look("s").is_ok_and(|snapshot| self.jobs(&snapshot).is_some()));
    }

    /// All its tasks begin another job.
    fn goes_on(&self, place: &Place) {
        let before = OnceCell::new();
        until("each of its tasks goes on", || {
            let Some(jobs) = self.jobs(&look(place)) else { return false };
            let before = before.get_or_init(|| jobs.clone());
            jobs.iter().zip(before).all(|(job, before)| job > before)
        });
    }

    /// A thread of it executes another program: that of a task, or one that is none.
    fn execute_another(&mut self, place: &Place, thread: u64) {
        Order::Execute { thread }.give(place.as_ref(), self.number);
        let pid = self.process.id();
        until("it is another program", || thread_name(pid, pid).as_deref() == Some("sleep"));
        until("it is scheduled as usual", || {
            let priority = Attributes::of(pid).expect("it sleeps").fixed_priority();
            priority.is_none() && CpuMask::of_thread(pid).expect("it sleeps") == self.cpus
        });
        assert!(self.process.is_running(), "it is not harmed");
    }

    fn is_gone(&self, place: &Place) {
        let pid = self.process.id();
        until("its tasks are gone", || look(place).tasks.iter().all(|task| task.pid != pid));
    }

    /// It leaves the system. It has seen for itself that each of its threads is then scheduled as before.
    fn leave(mut self, place: &Place) {
        Order::Leave.give(place.as_ref(), self.number);
        assert!(self.process.wait().success(), "its threads are scheduled as before");
    }
}

/// What happened, for the report.
#[derive(Default, Debug)]
struct Counts {
    kills: u64,
    stops: u64,
    execs: u64,
}

/// How many processes work at a time.
const PROCESSES: u64 = 4;

fn random_deaths(test: &str, shape: Shape, deaths: u64) {
    let Some((place, system)) = on(test, shape.config()) else { return };
    // Only the members that are killed see to each other.
    drop(system);
    let mut random = Random::new();
    let mut workers: Vec<Worker> = (0..PROCESSES).map(|number| Worker::start(&place, shape, number)).collect();
    let (mut next, mut counts) = (PROCESSES, Counts::default());
    for _ in 0..deaths {
        // At times two at once, so that one dies while it sees to the other. Two always live.
        let first = random.below(PROCESSES) as usize;
        let victims: Vec<usize> = (first..=first + random.below(4) as usize / 3).collect();
        let victims: Vec<usize> = victims.into_iter().map(|victim| victim % PROCESSES as usize).collect();
        victims.iter().for_each(|&victim| workers[victim].works(&place));
        random.pause(4000);
        let mut dead = Vec::new();
        for victim in victims {
            let worker = &mut workers[victim];
            match random.below(4) {
                0 => {
                    counts.execs += 1;
                    worker.execute_another(&place, random.below(THREADS + 1));
                    worker.is_gone(&place);
                }
                1 => {
                    counts.stops += 1;
                    send(&worker.process, Signal::STOP);
                    random.pause(6000);
                    if random.below(2) == 0 {
                        send(&worker.process, Signal::CONT);
                        continue;
                    }
                }
                _ => counts.kills += 1,
            }
            worker.process.kill();
            dead.push(victim);
        }
        for victim in dead {
            workers[victim].is_gone(&place);
            workers[victim] = Worker::start(&place, shape, next);
            next += 1;
        }
        workers.iter().for_each(|worker| worker.goes_on(&place));
    }
    println!("{test}: {counts:?}");
    let threads: Vec<u32> = look(&place).tasks.iter().map(|task| task.thread).collect();
    assert!(threads.len() as u64 >= PROCESSES, "they are tasks until they leave");
    workers.into_iter().for_each(|worker| worker.leave(&place));
    assert_eq!(place.names().expect("readable"), Vec::<String>::new(), "the last one out leaves nothing");
}

#[test]
fn random_kills_stops_and_execs_lose_no_task_and_raise_no_thread() {
    random_deaths("random-one", Shape::OneCpu, 16);
    random_deaths("random-all", Shape::AllCpus, 12);
    random_deaths("random-parts", Shape::Partitioned, 12);
}

/// `make test-kill`.
#[test]
#[ignore = "takes minutes"]
fn two_thousand_random_kills_stops_and_execs() {
    random_deaths("many-one", Shape::OneCpu, 800);
    random_deaths("many-all", Shape::AllCpus, 800);
    random_deaths("many-parts", Shape::Partitioned, 400);
}
