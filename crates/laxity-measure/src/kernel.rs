//! Overheads of the scheduler in the kernel, as it writes them down itself, over the number of tasks.

use std::collections::BTreeMap;

use laxity_model::{
    MeasuredMachine, MeasuredQuantity, Measurement, Nanos, OverheadKind, OverheadProfile, OverheadTable,
};

use crate::samples::Samples;

mod waiting;

pub use waiting::{Hold, Waiting};

/// A time that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The handler of the timer that releases jobs.
    Release,
    /// The decision which thread is next.
    Scheduling,
    /// From then until sched_ext is told that the thread has the CPU.
    Switch,
    /// From then until the thread's first instruction after `next_job`, as it reads on its clock.
    FirstInstruction,
    /// From when another CPU is kicked until Linux asks there which thread is next.
    Kick,
    /// The same, of a CPU that kicks itself.
    KickHere,
    /// The handler of the timer of a quantum.
    Tick,
    /// Setting the timer of releases after a completion.
    Rearming,
    /// From when a timer of releases or quanta was due until its handler begins.
    Lateness,
    /// What an interruption takes from a task that is alone: Linux's own tick, most of all.
    Interruption,
    /// From when the lock of the links is asked for until it is given back.
    Links,
    /// The same, of the lock of the tasks that wait for a time.
    Times,
    /// A job that arrives is put into a queue of kind F or H, without a lock.
    Early,
}

impl Part {
    /// All, in the order in which they are listed.
    pub const ALL: [Part; 13] = [
        Part::Release,
        Part::Scheduling,
        Part::Switch,
        Part::FirstInstruction,
        Part::Kick,
        Part::KickHere,
        Part::Tick,
        Part::Rearming,
        Part::Lateness,
        Part::Interruption,
        Part::Links,
        Part::Times,
        Part::Early,
    ];

    /// Whether it is measured only where that is asked for: how long locks are held.
    pub const fn is_hold(self) -> bool {
        matches!(self, Part::Links | Part::Times | Part::Early)
    }

    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Release => "release_handler",
            Part::Scheduling => "scheduling",
            Part::Switch => "switch",
            Part::FirstInstruction => "first_instruction",
            Part::Kick => "kick",
            Part::KickHere => "kick_here",
            Part::Tick => "tick_handler",
            Part::Rearming => "rearming",
            Part::Lateness => "timer_lateness",
            Part::Interruption => "interruption",
            Part::Links => "links_held",
            Part::Times => "times_held",
            Part::Early => "early",
        }
    }
}

/// Samples of each part, in ns.
pub type Parts = BTreeMap<Part, Vec<u64>>;

/// What was measured of one realization: samples by the number of tasks; those with 0 tasks hold for any number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ByTasks(pub BTreeMap<u32, Parts>);

/// Samples without outliers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The largest that is left, in ns.
    pub worst: u64,
    /// The mean of those that are left, in ps, rounded up.
    pub mean_picos: u64,
    /// Half of all are no more, in ns.
    pub median: u64,
}

/// Leaves out the largest of `samples`: `outliers` in a thousand, rounded down. `None` if there are no samples.
///
/// Paper 002 leaves outliers out before it takes maxima and means (section 4.1, appendix A), and refers to another paper for
/// which. An interrupt that comes in between makes an interval longer, and never shorter.
pub fn filtered(samples: &[u64], outliers: u32) -> Option<Filtered> {
    assert!(outliers < 1_000, "something is left of any number of samples");
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let left = &sorted[..sorted.len() - sorted.len() * outliers as usize / 1_000];
    let &worst = left.last()?;
    let sum: u128 = left.iter().map(|&sample| u128::from(sample) * 1_000).sum();
    let mean_picos = u64::try_from(sum.div_ceil(left.len() as u128)).unwrap_or(u64::MAX);
    Some(Filtered { worst, mean_picos, median: sorted[(sorted.len() - 1) / 2] })
}

impl ByTasks {
    /// Adds samples of a part with so many tasks; 0: whatever their number.
    pub fn extend(&mut self, tasks: u32, part: Part, samples: impl IntoIterator<Item = u64>) {
        self.0.entry(tasks).or_default().entry(part).or_default().extend(samples);
    }

    /// The numbers of tasks.
    pub fn counts(&self) -> Vec<u32> {
        self.0.keys().copied().filter(|&tasks| tasks > 0).collect()
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.0.values().flat_map(BTreeMap::values).map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn of(&self, tasks: u32, part: Part, outliers: u32) -> Option<Filtered> {
        filtered(self.0.get(&tasks)?.get(&part)?, outliers)
    }

    /// The parts of which there is no sample; holds are not among them.
    pub fn missing(&self) -> Vec<Part> {
        let has = |part: &Part| self.0.values().any(|parts| parts.get(part).is_some_and(|samples| !samples.is_empty()));
        Part::ALL.into_iter().filter(|part| !part.is_hold() && !has(part)).collect()
    }

    /// A profile for the worst case and one for the average, called `name` and that, with what they follow from:
    ///
    /// | Source of paper 002 | Is |
    /// | --- | --- |
    /// | release | `release_handler`, and the median of `timer_lateness` |
    /// | scheduling | `scheduling` |
    /// | context switch | `switch` and `first_instruction` |
    /// | IPI latency | `kick` |
    /// | tick | `interruption`; quantum-driven also `tick_handler`, and the median of `timer_lateness` |
    /// | timer re-arming | `rearming` |
    ///
    /// Linux itself enters an interrupt before a handler can look at the clock: in the median nothing else delays it. `outliers`
    /// in a thousand are left out of each part, for each number of tasks. A source of which a part is missing costs nothing
    /// there, as others of its parts do; [`ByTasks::missing`] says which.
    pub fn measurement(&self, name: &str, outliers: u32, machine: MeasuredMachine) -> Measurement {
        let profile = |statistic: &str, of: fn(Filtered) -> u64| OverheadProfile {
            name: format!("{name}-{statistic}"),
            tables: OverheadKind::ALL.map(|kind| self.table(kind, outliers, of)),
        };
        Measurement {
            machine,
            worst: profile("worst", |it| it.worst.saturating_mul(1_000)),
            average: profile("average", |it| it.mean_picos),
            quantities: self.quantities(),
        }
    }

    fn table(&self, kind: OverheadKind, outliers: u32, of: fn(Filtered) -> u64) -> OverheadTable {
        let (parts, is_timer): (&[Part], bool) = match kind {
            OverheadKind::Release => (&[Part::Release], true),
            OverheadKind::Scheduling => (&[Part::Scheduling], false),
            OverheadKind::ContextSwitch => (&[Part::Switch, Part::FirstInstruction], false),
            OverheadKind::IpiLatency => (&[Part::Kick], false),
            OverheadKind::Tick => (&[Part::Tick], true),
            OverheadKind::TimerRearming => (&[Part::Rearming], false),
            _ => (&[], false),
        };
        let interruption =
            self.of(0, Part::Interruption, outliers).filter(|_| kind == OverheadKind::Tick).map_or(0, of);
        let point = |tasks: u32| {
            let found: Vec<u64> = parts.iter().filter_map(|&part| self.of(tasks, part, outliers)).map(of).collect();
            let late = self.of(tasks, Part::Lateness, outliers).filter(|_| is_timer && !found.is_empty());
            let late = late.map_or(0, |it| it.median.saturating_mul(1_000));
            let sum = found.iter().fold(late, |sum, &picos| sum.saturating_add(picos));
            (!found.is_empty()).then_some((tasks, sum.saturating_add(interruption)))
        };
        let points: Vec<(u32, u64)> = self.counts().into_iter().filter_map(point).collect();
        match points.is_empty() {
            true => OverheadTable::Constant(Nanos(interruption.div_ceil(1_000))),
            false => OverheadTable::Points(points),
        }
    }

    /// All samples, outliers too.
    fn quantities(&self) -> Vec<MeasuredQuantity> {
        let named = |part: Part, tasks: u32| match tasks {
            0 => part.name().to_owned(),
            tasks => format!("{}_{tasks}", part.name()),
        };
        let mut quantities = Vec::new();
        for part in Part::ALL {
            for (&tasks, parts) in &self.0 {
                let mut samples = Samples::default();
                parts.get(&part).into_iter().flatten().for_each(|&sample| samples.record(Nanos(sample)));
                quantities.extend(samples.quantity(named(part, tasks)));
            }
        }
        quantities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_samples_are_left_out_and_the_mean_is_of_the_others() {
        let mut samples: Vec<u64> = (1..=199).rev().collect();
        samples.push(1_000_000);
        let all = filtered(&samples, 0).expect("samples");
        assert_eq!((all.worst, all.median), (1_000_000, 100));
        let most = filtered(&samples, 10).expect("samples");
        // Two of 200.
        assert_eq!((most.worst, most.mean_picos, most.median), (198, 99_500, 100));
        assert_eq!(
            filtered(&samples[..99], 10).map(|it| it.worst),
            Some(199),
            "of less than a hundred none is left out"
        );
        assert_eq!(filtered(&[1, 2, 2], 0).map(|it| it.mean_picos), Some(1_667), "rounded up");
        assert_eq!(filtered(&[], 10), None);
    }

    fn measured() -> ByTasks {
        let mut measured = ByTasks::default();
        measured.extend(0, Part::Interruption, [3_000, 5_000]);
        for (tasks, cost) in [(25, 1_000), (50, 2_000)] {
            measured.extend(tasks, Part::Release, [cost, cost + 10]);
            measured.extend(tasks, Part::Lateness, [100, 200, 90_000]);
            measured.extend(tasks, Part::Switch, [40]);
            measured.extend(tasks, Part::FirstInstruction, [60, 80]);
        }
        measured.extend(50, Part::Rearming, [7]);
        measured
    }

    #[test]
    fn a_profile_has_a_point_for_each_number_of_tasks_and_sums_of_parts() {
        let measured = measured();
        let found = measured.measurement("kernel-CEm", 10, MeasuredMachine::default());
        assert_eq!(found.worst.name, "kernel-CEm-worst");
        let worst = |tasks| found.worst.at(tasks);
        assert_eq!([worst(25).release, worst(50).release], [Nanos(1_210), Nanos(2_210)], "with the median lateness");
        assert_eq!(worst(25).context_switch, Nanos(120));
        assert_eq!(worst(25).tick, Nanos(5_000), "of Linux alone: no quantum began");
        assert_eq!(worst(75).release, Nanos(3_210), "the last segment continues");
        assert_eq!(worst(25).timer_rearming, Nanos(7), "below the first point its value holds");
        assert_eq!([worst(50).scheduling, worst(50).ipi_latency], [Nanos::ZERO; 2]);
        let average = found.average.at(25);
        assert_eq!([average.release, average.context_switch, average.tick], [Nanos(1_205), Nanos(110), Nanos(4_000)]);
        assert_eq!(measured.missing(), [Part::Scheduling, Part::Kick, Part::KickHere, Part::Tick]);
        assert_eq!(found.quantity("timer_lateness_50").map(|it| (it.count, it.max)), Some((3, Nanos(90_000))));
        assert_eq!(found.quantity("interruption").map(|it| it.count), Some(2));
    }

    #[test]
    fn a_tick_that_decides_comes_on_top_of_the_one_of_linux() {
        let mut measured = measured();
        measured.extend(25, Part::Tick, [900]);
        let tick = measured.measurement("kernel-CQm", 10, MeasuredMachine::default()).worst.at(25).tick;
        assert_eq!(tick, Nanos(900 + 200 + 5_000));
    }

    #[test]
    fn what_was_measured_is_read_back_from_its_file() {
        let found = measured().measurement("kernel-CEm", 10, MeasuredMachine::default());
        for text in [found.to_toml(), found.to_json()] {
            assert_eq!(Measurement::from_text(&text, "m").expect(&text), found);
        }
    }
}
