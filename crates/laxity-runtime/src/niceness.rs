//! Weights of the fair class as Linux takes them: niceness.

use std::thread;

use laxity_sys::{fairness, scheduling};

/// The weight of each niceness, from -20 to 19 (Linux, `kernel/sched/core.c`, `sched_prio_to_weight`).
const WEIGHTS: [u32; 40] = [
    88_761, 71_755, 56_483, 46_273, 36_291, 29_154, 23_254, 18_705, 14_949, 11_916, 9_548, 7_620, 6_100, 4_904, 3_906,
    3_121, 2_501, 1_991, 1_586, 1_277, 1_024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

const LOWEST: i32 = -20;
const HIGHEST: i32 = 19;

/// The niceness whose weight is closest to `weight`, by their ratio.
fn closest(weight: u32) -> i32 {
    // Both below 2^32, so that no product overflows. `a / b` against `b / a`, whichever is above 1.
    let off = |other: u32| {
        let (large, small) = (u64::from(weight.max(other)), u64::from(weight.min(other)).max(1));
        large * 1_000_000 / small
    };
    let best = (0..WEIGHTS.len()).min_by_key(|&at| off(WEIGHTS[at])).expect("there are forty");
    LOWEST + best as i32
}

/// The niceness of threads with these weights, and what the user should know about it. Where Linux does not let this user
/// favour threads, all are nicer by the same: among each other they share as asked for.
pub(crate) fn of_weights(weights: &[u32]) -> (Vec<i32>, Option<String>) {
    shifted(weights.iter().map(|&weight| closest(weight)).collect(), may_have)
}

fn shifted(wanted: Vec<i32>, may_have: impl Fn(i32) -> bool) -> (Vec<i32>, Option<String>) {
    let Some(&least) = wanted.iter().min() else { return (wanted, None) };
    if least >= 0 || may_have(least) {
        return (wanted, None);
    }
    let beyond = wanted.iter().any(|niceness| niceness - least > HIGHEST);
    let shares = if beyond { "; the lightest among them get more than their share" } else { "" };
    let note = format!(
        "best-effort tasks are nicer by {} than their weights say, as this user may not favour threads{shares}; raise the \
         limit (`ulimit -e {}`), or take smaller weights",
        -least,
        20 - least
    );
    (wanted.iter().map(|niceness| (niceness - least).min(HIGHEST)).collect(), Some(note))
}

/// Whether this user's threads may have `niceness`: tried on one that ends at once, as there may be no way back.
fn may_have(niceness: i32) -> bool {
    let set = move || fairness::set_niceness(scheduling::current_thread(), niceness).is_ok();
    thread::spawn(set).join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_gets_the_closest_niceness() {
        assert_eq!([1024, 1, 88_761, u32::MAX, 2048, 512, 820].map(closest), [0, 19, -20, -20, -3, 3, 1]);
    }

    #[test]
    fn users_without_the_right_to_favour_threads_get_the_same_shares_among_them() {
        assert_eq!(shifted(vec![-3, 0, 3], |_| true), (vec![-3, 0, 3], None));
        let (niceness, note) = shifted(vec![-3, 0, 3], |niceness| niceness >= 0);
        assert_eq!(niceness, [0, 3, 6]);
        assert!(note.is_some_and(|note| note.contains("nicer by 3") && note.contains("ulimit -e 23")));
        let (niceness, note) = shifted(vec![-10, 15], |niceness| niceness >= 0);
        assert_eq!(niceness, [0, 19]);
        assert!(note.is_some_and(|note| note.contains("more than their share")));
        assert_eq!(shifted(Vec::new(), |_| false), (Vec::new(), None));
    }
}
