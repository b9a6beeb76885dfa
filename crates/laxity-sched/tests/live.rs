//! Threads that the policies schedule, on this machine: the most urgent jobs run, whatever else wants the CPU.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use laxity_model::Nanos;
use laxity_sched::{Config, Parameters, Rule, TaskState};
use laxity_sys::clock::{now, sleep_until};
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{Attributes, current_thread};
use laxity_testing::until;
use support::{count_until, execute, on, one_cpu, release, spin_until, task, usable};

#[test]
fn an_earlier_deadline_preempts_and_the_preempted_job_makes_no_progress() {
    let Some((_registry, system)) = one_cpu("preempts") else { return };
    let (stop, progress, has_begun) = (AtomicBool::new(false), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let task = task(&system, "later", 500);
            release(&task, 0);
            has_begun.store(true, Ordering::SeqCst);
            count_until(&stop, &progress);
            task.complete().expect("it has a job");
        });
        until("the first task executes", || has_begun.load(Ordering::SeqCst));
        scope.spawn(|| {
            let task = task(&system, "earlier", 50);
            release(&task, 0);
            let before = progress.load(Ordering::Relaxed);
            execute(Nanos::from_millis(5));
            let after = progress.load(Ordering::Relaxed);
            task.complete().expect("it has a job");
            assert_eq!(before, after, "the job with the later deadline waits");
        });
        until("the first task goes on", || {
            let before = progress.load(Ordering::Relaxed);
            sleep_until(now() + Nanos::from_millis(1));
            progress.load(Ordering::Relaxed) > before
        });
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn jobs_complete_in_the_order_of_their_deadlines_on_one_cpu() {
    let Some((_registry, system)) = one_cpu("order") else { return };
    let (order, all) = (Mutex::new(Vec::new()), Barrier::new(6));
    let deadlines = [300, 100, 500, 200, 400];
    thread::scope(|scope| {
        for deadline in deadlines {
            let (system, order, all) = (&system, &order, &all);
            scope.spawn(move || {
                let task = task(system, &format!("{deadline} ms"), deadline);
                all.wait();
                // By then all of them wait for it, and a section keeps the CPU.
                sleep_until(now() + Nanos::from_millis(10));
                release(&task, 0);
                order.lock().expect("no panic").push(deadline);
                task.complete().expect("it has a job");
            });
        }
        let first = task(&system, "first", 1);
        release(&first, 0);
        first.enter_section().expect("it has a job");
        all.wait();
        let are_ready = || {
            let snapshot = system.snapshot().expect("sound");
            snapshot.tasks.iter().filter(|task| task.state != TaskState::Parked).count() == 6
        };
        spin_until(are_ready);
        assert!(order.lock().expect("no panic").is_empty(), "no job runs beside a section");
        first.leave_section().expect("it is in one");
        first.complete().expect("it has a job");
    });
    assert_eq!(order.into_inner().expect("no panic"), [100, 200, 300, 400, 500]);
}

#[test]
fn fixed_priorities_decide_by_period_and_not_by_deadline() {
    let cpu = *usable().last().expect("it runs somewhere");
    let Some((_registry, system)) = on("rates", Config::new(Rule::RateMonotonic, vec![vec![cpu]])) else { return };
    let (stop, progress) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let fast = task(&system, "fast", 10);
        release(&fast, 0);
        let slow = scope.spawn(|| {
            let parameters =
                Parameters { deadline: Nanos::from_millis(1), ..Parameters::periodic("slow", Nanos::from_secs(1)) };
            let task = system.begin(parameters).expect("there is room");
            release(&task, 0);
            count_until(&stop, &progress);
            task.complete().expect("it has a job");
        });
        let ready = || system.snapshot().expect("sound").tasks.iter().any(|task| task.state == TaskState::Ready);
        spin_until(ready);
        assert_eq!(progress.load(Ordering::Relaxed), 0, "the job of the longer period waits, early as its deadline is");
        stop.store(true, Ordering::SeqCst);
        fast.complete().expect("it has a job");
        drop(fast);
        slow.join().expect("no panic");
    });
}

#[test]
fn a_ready_job_uses_a_cpu_that_a_linked_thread_leaves_idle() {
    let Some((_registry, system)) = one_cpu("idle") else { return };
    let (progress, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let linked = task(&system, "linked", 50);
        release(&linked, 0);
        scope.spawn(|| {
            let task = task(&system, "ready", 500);
            release(&task, 0);
            count_until(&stop, &progress);
            task.complete().expect("it has a job, though no link");
        });
        let is_ready = || system.snapshot().expect("sound").tasks.iter().any(|task| task.state == TaskState::Ready);
        // As a page fault does: the policy hears nothing of it.
        until("the other task runs in its place", || is_ready() && progress.load(Ordering::Relaxed) > 0);
        assert!(linked.is_linked(), "the policy does not know that it sleeps");
        let before = progress.load(Ordering::Relaxed);
        execute(Nanos::from_millis(3));
        assert_eq!(progress.load(Ordering::Relaxed), before, "it has its CPU back at once");
        stop.store(true, Ordering::SeqCst);
        until("the ready task is over", || system.snapshot().expect("sound").tasks.len() == 1);
        linked.complete().expect("it has a job");
    });
}

#[test]
fn a_thread_that_is_no_task_any_more_is_scheduled_as_before() {
    let Some((_registry, system)) = one_cpu("restored") else { return };
    let ours = current_thread();
    let before = (Attributes::of(ours).expect("this one"), CpuMask::of_thread(ours).expect("this one"));
    let task = task(&system, "t", 100);
    assert_eq!(Attributes::of(ours).expect("this one").fixed_priority(), Some(92), "it waits for its first job");
    release(&task, 0);
    assert_eq!(Attributes::of(ours).expect("this one").fixed_priority(), Some(91), "it runs");
    let child = thread::spawn(|| Attributes::of(current_thread()).expect("this one").fixed_priority());
    assert_eq!(child.join().expect("no panic"), None, "what a task starts is scheduled as usual");
    drop(task);
    assert_eq!((Attributes::of(ours).expect("this one"), CpuMask::of_thread(ours).expect("this one")), before);
    assert!(system.snapshot().expect("sound").tasks.is_empty());
}

#[test]
fn jobs_follow_each_other_at_their_releases_and_keep_their_numbers() {
    let Some((_registry, system)) = one_cpu("periodic") else { return };
    let task = task(&system, "periodic", 5);
    let start = now() + Nanos::from_millis(5);
    task.start_at(start).expect("no job was released");
    for index in 0..5 {
        let job = task.wait_for_next_job().expect("released");
        assert_eq!((job.index, job.release), (index, start + Nanos::from_millis(5 * index)));
        assert_eq!(job.deadline, job.release + Nanos::from_millis(5));
        assert!(now() >= job.release && task.is_linked());
        assert_eq!(task.job(), job);
    }
    assert_eq!(
        task.start_at(start).expect_err("numbers would begin again").to_string(),
        "task periodic: a first release needs no job to have been released by a wait; call it before the first wait"
    );
    let snapshot = system.snapshot().expect("sound");
    assert_eq!((snapshot.tasks[0].completed, snapshot.tasks[0].job), (4, 4));
    let suspended = task.suspend().expect("it has a job");
    assert!(suspended.links.iter().all(|link| link.task.is_none()));
    assert_eq!(
        task.complete().expect_err("it is suspended").to_string(),
        "task periodic: completion needs a job that is not suspended; resume it first"
    );
    task.resume().expect("it is suspended");
    task.complete().expect("it has a job");
}

#[test]
fn what_cannot_be_a_task_is_refused_with_the_way_out() {
    let Some((registry, system)) = one_cpu("refused") else { return };
    let text = |parameters| system.begin(parameters).expect_err("cannot be").to_string();
    let periodic = || Parameters::periodic("t", Nanos::from_millis(1));
    assert_eq!(
        text(Parameters { cluster: 3, ..periodic() }),
        "task t: cluster 3 is not one of the system's 1, which are numbered from 0"
    );
    assert_eq!(text(Parameters { period: Nanos::ZERO, ..periodic() }), "task t: its period is 0 ns; it must be longer");
    assert_eq!(text(Parameters::periodic("", Nanos(1))), "task name \"\" has 0 bytes; use 1 to 64");
    assert_eq!(
        text(Parameters::periodic("a\u{1b}[2J\n", Nanos(1))),
        r#"task name "a\u{1b}[2J\n" contains a control character; remove it"#
    );
    let other = registry.create_or_attach("s", &Config::global_edf([0, 1])).expect_err("it is on one CPU");
    assert_eq!(other.to_string(), "system s: exists but is another system; use one configuration in all processes");
}

/// The second one would have given back, at its end, what the first one made of the thread.
#[test]
fn a_thread_is_one_task_at_a_time_and_scheduled_as_before_once_it_is_none() {
    let Some((_registry, system)) = one_cpu("again") else { return };
    let ours = current_thread();
    let now = || (Attributes::of(ours).expect("this one"), CpuMask::of_thread(ours).expect("this one"));
    let before = now();
    let first = task(&system, "first", 5);
    let refused = system.begin(Parameters::periodic("second", Nanos::from_millis(5))).expect_err("it is a task");
    assert_eq!(
        refused.to_string(),
        "task second: this thread is task first of system s already; release that one, or take another thread"
    );
    assert_eq!(laxity_model::ErrorDetails::code(&refused), laxity_model::ErrorCode::Order);
    let of_another = thread::scope(|scope| scope.spawn(|| task(&system, "other", 5).id()).join().expect("no panic"));
    assert_ne!(of_another, first.id());
    drop(first);
    drop(task(&system, "second", 5));
    assert_eq!(now(), before);
}

#[test]
fn a_system_on_cpus_that_are_not_there_is_refused_before_there_is_one() {
    let place = laxity_testing::TestRegistry::<laxity_sched::Registry>::new("absent");
    let config = Config::new(Rule::Edf, vec![vec![0], vec![1023]]);
    let refused = place.create("s", &config).expect_err("it has no such CPU");
    assert!(refused.to_string().starts_with("there is no CPU 1023 here; CPUs 0"), "{refused}");
    assert_eq!(laxity_model::ErrorDetails::code(&refused), laxity_model::ErrorCode::Config);
    assert_eq!(place.names().expect("readable"), [""; 0]);
    let told_nothing = Config { carry: laxity_sched::Carry::Nothing, ..config };
    drop(place.create("s", &told_nothing).expect("it places no thread"));
}

#[test]
fn two_systems_on_one_cpu_are_refused_by_name_until_the_first_is_gone() {
    let Some((registry, system)) = one_cpu("overlap") else { return };
    let cpu = system.config().clusters[0][0];
    let Some(next) = usable().into_iter().find(|&other| other != cpu) else {
        return laxity_testing::skip("one CPU");
    };
    let config = Config::new(Rule::Given, vec![vec![next], vec![cpu]]);
    let text = |error: laxity_sched::RegistryError| error.to_string();
    let refused = registry.create("other", &config).map(drop).map_err(text).expect_err("it has that CPU, too");
    assert!(refused.starts_with(&format!("system other: CPU {cpu} also belongs to system s, whose")), "{refused}");
    assert!(refused.contains("`laxity sched gc`"), "{refused}");
    assert_eq!(registry.names().expect("readable"), ["s"], "the refused one is gone");
    let beside = Config::new(Rule::Edf, vec![vec![next]]);
    drop(registry.create("beside", &beside).expect("another CPU"));
    let told_nothing = Config { carry: laxity_sched::Carry::Nothing, ..config.clone() };
    drop(registry.create("nothing", &told_nothing).expect("it places no thread"));
    drop(system);
    drop(registry.create("other", &config).expect("the CPU is free"));
}

#[test]
fn of_processes_that_join_systems_on_one_cpu_at_once_none_goes_on_beside_another() {
    let Some((registry, system)) = one_cpu("overlaps") else { return };
    let config = system.config().clone();
    drop(system);
    let (inside, most, together) = (AtomicU64::new(0), AtomicU64::new(0), Barrier::new(4));
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (registry, config, inside, most, together) = (&registry, &config, &inside, &most, &together);
            scope.spawn(move || {
                for _ in 0..50 {
                    together.wait();
                    let Ok(system) = registry.create_or_attach(name, config) else { continue };
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    sleep_until(now() + Nanos::from_micros(200));
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(system);
                }
            });
        }
    });
    assert!(most.into_inner() <= 1, "one system at a time");
    drop(registry.create("s", &config).expect("all others left"));
}

#[test]
fn more_threads_than_a_system_has_room_for_are_refused_until_one_leaves() {
    let cpu = *usable().last().expect("it runs somewhere");
    let config = Config { tasks: 2, ..Config::new(Rule::Edf, vec![vec![cpu]]) };
    let Some((_registry, system)) = on("room", config) else { return };
    let _first = task(&system, "first", 100);
    let enter = || {
        let second = system.begin(Parameters::periodic("second", Nanos::from_millis(1)));
        second.map(drop).map_err(|error| error.to_string())
    };
    thread::scope(|scope| {
        let (begun, go_on) = (AtomicBool::new(false), AtomicBool::new(false));
        scope.spawn(move || ()).join().expect("no panic");
        let third = thread::scope(|scope| {
            scope.spawn(|| {
                let _second = task(&system, "second", 100);
                begun.store(true, Ordering::SeqCst);
                until("it may go", || go_on.load(Ordering::SeqCst));
            });
            until("there are two", || begun.load(Ordering::SeqCst));
            let third = scope.spawn(enter).join().expect("no panic");
            go_on.store(true, Ordering::SeqCst);
            third
        });
        let full = "task second: 2 threads are tasks, which is all that the system was created for; raise `tasks`";
        assert_eq!(third, Err(full.to_owned()));
    });
    assert_eq!(thread::scope(|scope| scope.spawn(enter).join().expect("no panic")), Ok(()));
}
