//! How many jobs of a producer a job of its consumer needs, and how many jobs of a consumer those of its producer serve.

use laxity_policy::graph::{Edge, EdgeKind};
use proptest::prelude::*;

proptest! {
    #[test]
    fn needed_is_the_least_number_of_jobs_that_suffices(
        (produce, consume, ahead, initial) in (1u32.., 1u32..1 << 31, 0u32..1 << 31, any::<u32>()),
        index in 0u64..1 << 40,
    ) {
        let (kind, threshold) = (EdgeKind::Token, consume + ahead);
        let edge = Edge { producer: 0, consumer: 1, produce, consume, threshold, initial, kind, delay: 0 };
        let needed = edge.needed(index);
        prop_assert!(edge.suffices(needed, index));
        prop_assert!(needed == 0 || !edge.suffices(needed - 1, index));
    }

    #[test]
    fn enabled_is_the_first_job_for_which_those_complete_do_not_suffice(
        (produce, consume, ahead, initial) in (1u32.., 1u32..1 << 31, 0u32..1 << 31, any::<u32>()),
        completed in 0u64..1 << 30,
    ) {
        let (kind, threshold) = (EdgeKind::Token, consume + ahead);
        let edge = Edge { producer: 0, consumer: 1, produce, consume, threshold, initial, kind, delay: 0 };
        let enabled = edge.enabled(completed);
        prop_assert!(!edge.suffices(completed, enabled));
        prop_assert!(enabled == 0 || edge.suffices(completed, enabled - 1));
    }
}
