//! How long CPUs wait for each other's locks at most, from how long one CPU holds them where no other one wants them.

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{CpuId, Instant, Measurement, Nanos, OverheadKind, OverheadTable};

use super::{ByTasks, Filtered, Part, filtered};

/// From when a lock was asked for until it was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The lock; [`Part::Early`]: none.
    pub lock: Part,
    /// What it is a part of, and when that began.
    pub whole: Part,
    /// On this CPU.
    pub cpu: CpuId,
    /// By which the holds of one whole belong together.
    pub began: Instant,
    /// How long it was.
    pub span: Nanos,
}

/// How often each lock was taken in a whole, by when that began, and where.
type Counts = BTreeMap<(Instant, CpuId), [u64; 3]>;

/// How often locks are taken in releases, decisions, switches and ticks of one realization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// By the number of tasks, and of which whole.
    wholes: BTreeMap<(u32, Part), Counts>,
    /// CPUs that have had each lock.
    holders: [BTreeSet<CpuId>; 3],
}

const LOCKS: [Part; 3] = [Part::Links, Part::Times, Part::Early];
/// Leaves that one section carries up at most: that of the job that is linked, and of the one that waits in its place.
const CLIMBS: u64 = 2;

/// A number of holds or a length in thousandths: the worst case, or the mean.
type Of = fn(Filtered) -> u64;

impl Waiting {
    /// Adds a hold, with so many tasks.
    ///
    /// Panics if it is a hold of something else than [`Part::is_hold`] says.
    pub fn add(&mut self, tasks: u32, hold: Hold) {
        let lock = LOCKS.iter().position(|&lock| lock == hold.lock).expect("a hold is of one of these");
        self.wholes.entry((tasks, hold.whole)).or_default().entry((hold.began, hold.cpu)).or_default()[lock] += 1;
        self.holders[lock].insert(hold.cpu);
    }

    /// How often `whole` took each lock with so many tasks, in thousandths.
    fn counts(&self, tasks: u32, whole: Part, outliers: u32, of: Of) -> [u64; 3] {
        let Some(wholes) = self.wholes.get(&(tasks, whole)) else { return [0; 3] };
        [0, 1, 2].map(|lock| {
            let counts: Vec<u64> = wholes.values().map(|counts| counts[lock]).collect();
            filtered(&counts, outliers).map_or(0, of)
        })
    }

    /// How long a whole waits at most, in ps: see [`ByTasks::contended`].
    fn waits(&self, measured: &ByTasks, tasks: u32, kind: OverheadKind, others: u64, outliers: u32, of: Of) -> u64 {
        let whole = match kind {
            OverheadKind::Release => Part::Release,
            OverheadKind::Scheduling | OverheadKind::TimerRearming => Part::Scheduling,
            OverheadKind::ContextSwitch => Part::Switch,
            OverheadKind::Tick => Part::Tick,
            _ => return 0,
        };
        let [links, times, early] = self.counts(tasks, whole, outliers, of).map(u128::from);
        // In ps, as `of` is in thousandths of ns.
        let [links_held, times_held, climb] =
            LOCKS.map(|lock| measured.of(tasks, lock, outliers).map_or(0, of)).map(u128::from);
        // A decision takes the lock of times to set the timer.
        let (links, times, early) = match kind {
            OverheadKind::Scheduling => (links, 0, early),
            OverheadKind::TimerRearming => (0, times, 0),
            _ => (links, times, early),
        };
        let again = u128::from(CLIMBS) * climb;
        let others = u128::from(others);
        let of_links = links * (others * (links_held + again) + again);
        let of_times = if self.holders[1].len() > 1 || !self.is_apart() { times * others * times_held } else { 0 };
        u64::try_from((of_links + of_times + early * climb).div_ceil(1_000)).unwrap_or(u64::MAX)
    }

    /// Whether the CPU that has the lock of times is not one of those that decide: it is dedicated to releases.
    fn is_apart(&self) -> bool {
        self.holders[0].len() > self.holders[1].len()
    }
}

impl ByTasks {
    /// `alone`, which [`ByTasks::measurement`] made of this, with what CPUs wait where `cpus` of them take the same locks.
    ///
    /// A lock has one holder at a time and goes to CPUs in the order in which they ask for it. So each time that one asks, it waits for each
    /// other CPU once at most: (m - 1) holds of the longest that was measured, in the worst case. Each hold is waited for by m - 1
    /// CPUs at most, so that on average a CPU does not wait longer than (m - 1) times the mean of all holds.
    /// Queues of kind F and H decide a match anew that another CPU decided meanwhile, once at most: each of the two leaves that
    /// a hold carries up, and the early one, are charged twice.
    ///
    /// `outliers` in a thousand are left out, of holds and of their numbers. It is no bound of a real machine: a hold is as long
    /// as it was measured, on as many CPUs as there were.
    pub fn contended(
        &self,
        waiting: &Waiting,
        alone: &Measurement,
        name: &str,
        cpus: u32,
        outliers: u32,
    ) -> Measurement {
        let others = u64::from(cpus.saturating_sub(1));
        let mut found = alone.clone();
        let statistics: [(&str, Of); 2] =
            [("worst", |it| it.worst.saturating_mul(1_000)), ("average", |it| it.mean_picos)];
        for (profile, (statistic, of)) in [&mut found.worst, &mut found.average].into_iter().zip(statistics) {
            profile.name = format!("{name}-{statistic}");
            for kind in OverheadKind::ALL {
                let OverheadTable::Points(points) = &mut profile.tables[kind as usize] else { continue };
                for (tasks, picos) in points {
                    *picos = picos.saturating_add(waiting.waits(self, *tasks, kind, others, outliers, of));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::MeasuredMachine;

    use super::*;

    fn hold(lock: Part, whole: Part, cpu: u16, began: u64, span: u64) -> Hold {
        Hold { lock, whole, cpu: CpuId(cpu), began: Instant(began), span: Nanos(span) }
    }

    /// Two releases and a decision: links 100, 300 and 200 ns, times 10 and 30 ns.
    fn measured(holds: &[Hold]) -> (ByTasks, Waiting) {
        let (mut measured, mut waiting) = (ByTasks::default(), Waiting::default());
        measured.extend(25, Part::Release, [1_000]);
        measured.extend(25, Part::Scheduling, [2_000]);
        measured.extend(25, Part::Rearming, [400]);
        measured.extend(25, Part::Kick, [5_000]);
        for &hold in holds {
            measured.extend(25, hold.lock, [hold.span.0]);
            waiting.add(25, hold);
        }
        (measured, waiting)
    }

    const HOLDS: [(Part, Part, u64, u64); 6] = [
        (Part::Links, Part::Release, 1, 100),
        (Part::Links, Part::Release, 1, 300),
        (Part::Times, Part::Release, 1, 10),
        (Part::Times, Part::Release, 2, 30),
        (Part::Links, Part::Scheduling, 3, 200),
        (Part::Times, Part::Scheduling, 3, 20),
    ];

    fn costs(cpus: u32, holds: &[Hold]) -> [[Nanos; 4]; 2] {
        let (measured, waiting) = measured(holds);
        let alone = measured.measurement("kernel-CEm", 0, MeasuredMachine::default());
        let found = measured.contended(&waiting, &alone, "kernel-CEm-waiting", cpus, 0);
        assert_eq!(found.worst.name, "kernel-CEm-waiting-worst");
        [&found.worst, &found.average]
            .map(|profile| profile.at(25))
            .map(|costs| [costs.release, costs.scheduling, costs.timer_rearming, costs.ipi_latency])
    }

    #[test]
    fn each_time_that_a_cpu_asks_it_waits_for_one_hold_of_each_other() {
        let holds = HOLDS.map(|(lock, whole, began, span)| hold(lock, whole, 0, began, span));
        // Worst: two holds of links in a release, each behind three of 300 ns; one of times, behind three of 30 ns.
        let worst = [1_000 + 2 * 3 * 300 + 3 * 30, 2_000 + 3 * 300, 400 + 3 * 30, 5_000].map(Nanos);
        // Mean: one hold of links in a release, of 200 ns, and one of times, of 20 ns.
        let mean = [1_000 + 3 * 200 + 3 * 20, 2_000 + 3 * 200, 400 + 3 * 20, 5_000].map(Nanos);
        assert_eq!(costs(4, &holds), [worst, mean]);
        let alone = [1_000, 2_000, 400, 5_000].map(Nanos);
        assert_eq!(costs(1, &holds), [alone; 2], "no other CPU");
    }

    #[test]
    fn a_dedicated_cpu_waits_for_no_other_that_sets_its_timer() {
        let on = |whole| u16::from(whole == Part::Scheduling);
        let holds: Vec<Hold> =
            HOLDS[..5].iter().map(|&(lock, whole, began, span)| hold(lock, whole, on(whole), began, span)).collect();
        let [worst, _] = costs(4, &holds);
        assert_eq!(worst[0], Nanos(1_000 + 2 * 3 * 300), "the lock of times is its own");
    }

    #[test]
    fn a_match_of_a_queue_without_locks_is_decided_twice() {
        let holds = [
            hold(Part::Early, Part::Release, 0, 1, 50),
            hold(Part::Links, Part::Release, 0, 1, 300),
            hold(Part::Links, Part::Scheduling, 0, 2, 300),
        ];
        let [worst, mean] = costs(4, &holds);
        // Two climbs more in its own hold and in those of three others, and the early one.
        let again = 2 * 50;
        assert_eq!(worst[0], Nanos(1_000 + 3 * (300 + again) + again + 50));
        assert_eq!(worst[1], Nanos(2_000 + 3 * (300 + again) + again));
        assert_eq!(mean, worst, "all are alike");
    }
}
