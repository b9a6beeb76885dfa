//! A thread is killed after its decision counts and before Linux knows of it: the next thread tells Linux.

use std::sync::atomic::Ordering;
use std::thread;

use laxity_model::{CpuId, Nanos};
use laxity_policy::cpu::Event;
use laxity_sys::clock::now;
use laxity_sys::cpu_mask::CpuMask;
use laxity_sys::scheduling::{Attributes, current_thread};
use laxity_testing::{TestRegistry, skip};

use crate::registry::Registry;
use crate::{BASE_PRIORITY, BeginError, Config, Parameters};

#[test]
fn what_a_killed_thread_decided_is_carried_out_by_the_next() {
    let registry: TestRegistry<Registry> = TestRegistry::new("repair");
    let cpus = CpuMask::of_thread(current_thread()).expect("this one");
    let system = registry.create("s", &Config::global_edf(cpus.cpus().map(|cpu| cpu as u16))).expect("a new name");
    let task = match system.begin(Parameters::periodic("t", Nanos::from_secs(1))) {
        Ok(task) => task,
        Err(error @ BeginError::Refused { .. }) => return skip(format_args!("{error}")),
        Err(error) => panic!("{error}"),
    };
    let scheduled = || {
        let ours = current_thread();
        let priority = Attributes::of(ours).expect("this one").fixed_priority();
        (priority, CpuMask::of_thread(ours).expect("this one").cpus().collect::<Vec<_>>())
    };
    let (shared, id) = (system.shared(), task.id());
    // As if it waits for its CPU, to enter a section.
    shared.gate(id).store(1, Ordering::SeqCst);
    thread::scope(|scope| {
        let killed = scope.spawn(|| {
            let mut state = shared.lock(0).expect("the memory is sound");
            let deadline = now() + Nanos::from_secs(1);
            state.handle(id, Event::Released { cpu: CpuId(0), task: id, deadline });
            state.decide();
            state.commit();
            state.die();
        });
        killed.join().expect("no panic");
    });
    assert_eq!(scheduled(), (Some(BASE_PRIORITY + 2), cpus.cpus().collect()), "Linux has heard nothing of it");
    drop(shared.lock(0).expect("the memory is sound"));
    let (priority, on) = scheduled();
    assert_eq!((priority, on.len()), (Some(BASE_PRIORITY + 1), 1), "it runs, on its CPU");
    assert!(task.is_linked());
    assert_eq!(shared.gate(id).load(Ordering::SeqCst), 0, "it is let go on");
}
