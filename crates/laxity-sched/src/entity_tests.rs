//! A task and the interrupt thread that works for it: never side by side, on one CPU, and moved no more than that takes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_model::{CpuId, Instant, Nanos, TaskId};
use laxity_policy::cpu::Event;
use laxity_sys::clock;
use laxity_testing::TestRegistry;

use crate::config::{Carry, Config, Rule};
use crate::decision::Decision;
use crate::placement::{Class, Placement};
use crate::shared::Shared;
use crate::{Parameters, Registry, Service, System, Urgency};

const OWNER: TaskId = TaskId(0);
const THREAD: TaskId = TaskId(1);
const FIRST: TaskId = TaskId(2);
const SECOND: TaskId = TaskId(3);

fn two_cpus(registry: &TestRegistry<Registry>) -> System {
    let config = Config { tasks: 4, carry: Carry::Nothing, ..Config::new(Rule::Edf, vec![vec![0, 1]]) };
    let system = registry.create("s", &config).expect("a new name");
    let mut state = system.shared().lock(0).expect("the memory is sound");
    [OWNER, THREAD, FIRST, SECOND].into_iter().for_each(|task| state.cache.set_member(task, true));
    state.publish(None);
    system
}

fn happens(shared: &Shared, task: TaskId, event: impl Fn(CpuId) -> Event) -> Decision {
    let mut state = shared.lock(0).expect("the memory is sound");
    let event = event(state.cpu_of(task));
    state.handle(task, event);
    state.publish(None)
}

fn release(shared: &Shared, task: TaskId, deadline: u64) -> Decision {
    happens(shared, task, |cpu| Event::Released { cpu, task, deadline: Instant(deadline) })
}

fn complete(shared: &Shared, task: TaskId) -> Decision {
    happens(shared, task, |cpu| Event::Completed { cpu, task })
}

#[test]
fn an_owner_follows_its_interrupt_thread_and_both_stay_where_that_was_while_it_waits() {
    let registry: TestRegistry<Registry> = TestRegistry::new("entity");
    let system = two_cpus(&registry);
    let shared = system.shared();
    let (other, cpu) = (CpuId(0), CpuId(1));
    release(shared, FIRST, 100);
    release(shared, OWNER, 200);
    complete(shared, FIRST);
    assert_eq!(shared.demanded(OWNER).cpu, Some(cpu), "it came second");
    let on = |class, cpu| Placement { class, cpu: Some(cpu) };

    happens(shared, THREAD, |cpu| Event::Woken { cpu, thread: THREAD, owner: Some(OWNER), level: (200, OWNER.0) });
    assert_eq!(shared.demanded(THREAD), on(Class::Running, cpu), "the thread takes over the CPU");
    assert_eq!(shared.demanded(OWNER), on(Class::Held, cpu), "the owner waits there, and not where it is idle");

    release(shared, FIRST, 100);
    let taken = release(shared, SECOND, 150);
    assert_eq!(shared.demanded(THREAD), on(Class::Waiting, cpu), "it waits where it was");
    assert_eq!(shared.demanded(OWNER), on(Class::Held, cpu), "and so does its owner");
    assert!(taken.carried.iter().all(|carried| carried.task != OWNER), "which nothing happened to: {taken:?}");

    let there = if shared.demanded(FIRST).cpu == Some(other) { FIRST } else { SECOND };
    let moved = complete(shared, there);
    assert_eq!(shared.demanded(THREAD), on(Class::Running, other));
    assert_eq!(shared.demanded(OWNER), on(Class::Held, other), "they are never side by side");
    let of_owner = moved.carried.iter().find(|carried| carried.task == OWNER).expect("it was moved");
    assert_eq!(of_owner.cpu, None, "it may have run where it was, and has no CPU now");
}

#[test]
fn an_owner_that_goes_on_sleeps_while_its_interrupt_thread_works() {
    let registry: TestRegistry<Registry> = TestRegistry::new("held");
    let config = Config { tasks: 4, carry: Carry::Nothing, ..Config::new(Rule::Edf, vec![vec![0, 1]]) };
    let system = registry.create("s", &config).expect("a new name");
    let parameters = || Parameters::periodic("t", Nanos::from_secs(1));
    let thread = system.begin_as(parameters(), THREAD).expect("a free number");
    let (suspended, served, goes_on) = (Barrier::new(2), Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let owner = system.begin_as(parameters(), OWNER).expect("a free number");
            owner.wait_for_next_job().expect("it has none");
            owner.suspend().expect("it has a job");
            suspended.wait();
            served.wait();
            owner.resume().expect("it is suspended");
            goes_on.store(true, Ordering::SeqCst);
            owner.complete().expect("it goes on");
        });
        suspended.wait();
        thread.serve(0, Service { owner: Some(OWNER), urgency: Urgency::Owner }, &mut ()).expect("it has no work");
        served.wait();
        let shared = system.shared();
        let patience = clock::now().saturating_add(Nanos::from_secs(20));
        while shared.gate(OWNER).load(Ordering::SeqCst) == 0 {
            assert!(clock::now() < patience, "the owner never sleeps");
            std::thread::yield_now();
        }
        assert_eq!(shared.demanded(OWNER).class, Class::Held);
        assert!(!goes_on.load(Ordering::SeqCst), "it runs beside its thread");
        thread.complete().expect("it serves");
    });
    assert!(goes_on.load(Ordering::SeqCst));
}
