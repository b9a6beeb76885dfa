//! Resources whose holder runs at the priority of their most urgent user.

use laxity_model::ResourceProtocol;

use crate::system::System;

/// T2 holds what T0 uses, too; T1 does not.
fn three_users(protocol: ResourceProtocol) -> System {
    let system = System::new(1, 0, Default::default()).resource(protocol);
    system.task(2, "1 a{ 1 }").task(1, "2").task(0, "a{ 3 } 1")
}

/// T1 does not run beside it. T0 is at the ceiling too, and of two jobs of one level the one listed first runs.
#[test]
fn under_a_ceiling_a_holder_has_the_priority_of_the_highest_user_from_the_grant_on() {
    let drawn = "
p0 2 2 0 2 0 1 1 2 .
t0     # ? #
t1   . . . . # #
t2 # # . # . . . #";
    let system = three_users(ResourceProtocol::PriorityCeiling);
    assert_eq!(system.draw("pt", 9), drawn);
    assert_eq!(system.priorities(9), [(0, 2, 0), (4, 2, 2)]);
}

/// Deadlines at 2 + 8, 1 + 10 and 20: under EDF the floor is the shortest relative deadline of a user, from the grant.
#[test]
fn under_edf_a_holder_has_the_shortest_relative_deadline_of_a_user_from_the_grant_on() {
    let drawn = "
p0 2 2 2 0 0 1 1 2 .
t0     . # #
t1   . . . . # #
t2 # # # . . . . #";
    let system = three_users(ResourceProtocol::PriorityCeiling).edf([8, 10, 20]);
    assert_eq!(system.draw("pt", 9), drawn);
}

#[test]
fn with_inheritance_a_holder_has_it_only_while_a_job_waits() {
    let drawn = "
p0 2 1 0 2 2 0 1 2 .
t0     # ? ? #
t1   # . . . . #
t2 # . . # # . . #";
    let system = three_users(ResourceProtocol::PriorityInheritance);
    assert_eq!(system.draw("pt", 9), drawn);
    assert_eq!(system.priorities(9), [(3, 2, 0), (5, 2, 2)]);
}
