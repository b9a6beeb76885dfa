//! Many schedules of a [`Simulation`](crate::simulation::Simulation), one for each seed.

use std::ops::Range;

use crate::simulation::Played;

/// How many schedules went together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// From point to point.
    pub steps: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Threads that were stopped for a while.
    pub stops: u64,
}

/// Plays one schedule for each seed; `LAXITY_SEED` repeats one. `play` answers how it went, and how many processes were
/// killed. Prints the totals.
///
/// Panics if all schedules together take fewer steps than `steps_min`: they would show less than they claim.
pub fn play_all(seeds: Range<u64>, steps_min: u64, play: impl Fn(u64) -> (Played, u64)) -> Totals {
    let only = std::env::var("LAXITY_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut totals = Totals::default();
    for seed in only.map_or(seeds, |seed| seed..seed + 1) {
        println!("repeat with LAXITY_SEED={seed}");
        let (played, kills) = play(seed);
        totals.steps += played.steps;
        totals.kills += kills;
        totals.stops += played.stops;
    }
    let Totals { steps, kills, stops } = totals;
    println!("{steps} steps, {kills} kills, {stops} stops");
    assert!(only.is_some() || steps >= steps_min, "{steps} steps, and {steps_min} were meant to be tried");
    totals
}

/// Panics unless the same seed gives the same schedule to the last step, and the next seed another one.
pub fn assert_repeats(seed: u64, play: impl Fn(u64) -> (Played, u64)) {
    let first = play(seed);
    assert_eq!(first, play(seed));
    assert_ne!(first.0.hash, play(seed + 1).0.hash);
}
