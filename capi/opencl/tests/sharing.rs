//! Programs that want the GPU at the same time: grants come in the arbiter's order, as in simulations.

mod support;

use laxity_model::EngineOrder;
use support::{Place, plain, program};

#[test]
fn the_more_urgent_program_is_granted_first() {
    let place = Place::by_priority("urgent");
    let Some(semantics) = program("urgent", "semantics.c") else { return };
    let order = place.order_of_grants(&["background", "10", "60", "30"], || plain(&semantics));
    assert_eq!(order[..3], [2, 3, 1], "60, 30, 10");
}

#[test]
fn programs_of_one_priority_are_granted_in_the_order_of_their_requests() {
    let place = Place::new("fifo", EngineOrder::Fifo);
    let Some(semantics) = program("fifo", "semantics.c") else { return };
    assert_eq!(place.order_of_grants(&["20", "20", "20"], || plain(&semantics)), [0, 1, 2]);
}
