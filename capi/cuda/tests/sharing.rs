//! Programs that want the GPU at the same time: grants come in the arbiter's order, as in simulations.

mod support;

use std::process::{Child, Stdio};

use laxity_gpu::Base;
use laxity_model::{EngineOrder, LockId};
use laxity_testing::until;
use laxity_trace::Event;
use support::{Place, Reach, plain, program};

/// Starts programs one after the other while the GPU is taken, each with its priority, and answers in which order they got
/// it.
fn order_of_grants(test: &str, place: &Place, priorities: &[&str]) -> Vec<usize> {
    let program = program(Reach::ProcAddress);
    let client = place.arbitration.register("holder", Base::Fixed(99)).expect("room");
    let token = client.token().expect("free");
    let mut children: Vec<Child> = Vec::new();
    for (number, priority) in priorities.iter().enumerate() {
        let mut command = plain(&program, test);
        place.arbitrate(command.args(["kernels", "1", "100"]), &[("priority", priority)]).stdout(Stdio::null());
        children.push(command.spawn().expect("it starts"));
        until("the next program waits", || {
            place.arbitration.snapshot().expect("whole").tokens.waiting.len() == number + 1
        });
    }
    drop(token);
    for child in &mut children {
        assert!(child.wait().expect("it is ours").success());
    }
    // The trace does not know why the programs waited at first: it has no holder for that time.
    let (header, records) = place.trace_of_programs();
    let process = |task: &str| {
        children.iter().position(|child| task.ends_with(&format!("({})", child.id()))).expect("one of them")
    };
    let mut order = Vec::new();
    for record in records {
        if let Event::Grant { job, lock: LockId(0), .. } = record.event {
            let number = process(&header.tasks[job.task.index()].name);
            if !order.contains(&number) {
                order.push(number);
            }
        }
    }
    order
}

#[test]
fn the_more_urgent_program_is_granted_first() {
    let place = Place::by_priority("urgent");
    let order = order_of_grants("urgent", &place, &["background", "10", "60", "30"]);
    assert_eq!(order[..3], [2, 3, 1], "60, 30, 10");
}

#[test]
fn programs_of_one_priority_are_granted_in_the_order_of_their_requests() {
    let place = Place::new("fifo", EngineOrder::Fifo);
    assert_eq!(order_of_grants("fifo", &place, &["20", "20", "20"]), [0, 1, 2]);
}
