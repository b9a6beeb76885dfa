//! Overhead profiles measured by others, by name. The numbers and their sources are in `data/`.
//!
//! - `brandenburg2009-PLUGIN-STATISTIC-QUANTA`: paper 002, Tables 2 to 13; plugins CEm, FEm, HEm, CQm, CE1, FE1, CQ1;
//!   `worst` or `average`; `aligned` or `staggered` quanta.
//! - `elliott2012-klmirqd`: paper 000, the overheads of its appendix, for any number of tasks.

use crate::suggest;
use crate::{Nanos, OverheadKind, OverheadProfile, OverheadTable, Quanta, Scheduler};

const BRANDENBURG: &str = include_str!("../data/brandenburg2009_gedf_plugin_overheads_us.csv");
const ELLIOTT: &str = include_str!("../data/elliott2012_klmirqd_overheads_us.csv");

const FAMILY: &str = "brandenburg2009";
const NONE: &str = "none";
const KLMIRQD: &str = "elliott2012-klmirqd";
const PLUGINS: [&str; 7] = ["CEm", "FEm", "HEm", "CQm", "CE1", "FE1", "CQ1"];

/// Which of the measured values of an overhead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// The largest, outliers filtered (paper 002, section 4.1): for hard real-time.
    Worst,
    /// The mean: for soft real-time.
    Average,
}

/// There are no measurements of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown overhead profile `{name}`; {way_out}")]
pub struct UnknownProfile {
    name: String,
    way_out: String,
}

impl Statistic {
    /// The name in profile names.
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Worst => "worst",
            Statistic::Average => "average",
        }
    }
}

impl OverheadProfile {
    /// The published profile called `name`, one of [`OverheadProfile::published_names`].
    pub fn published(name: &str) -> Result<OverheadProfile, UnknownProfile> {
        if name == KLMIRQD {
            return Ok(klmirqd());
        }
        match name.split('-').collect::<Vec<_>>()[..] {
            [FAMILY, plugin, statistic, quanta]
                if PLUGINS.contains(&plugin) && is_statistic(statistic) && is_quanta(quanta) =>
            {
                Ok(plugin_profile(plugin, statistic, quanta))
            }
            _ => Err(UnknownProfile::new(name)),
        }
    }

    /// The names of all published profiles.
    pub fn published_names() -> Vec<String> {
        let mut names = Vec::new();
        for plugin in PLUGINS {
            for statistic in ["worst", "average"] {
                for quanta in ["aligned", "staggered"] {
                    names.push(format!("{FAMILY}-{plugin}-{statistic}-{quanta}"));
                }
            }
        }
        names.push(KLMIRQD.to_owned());
        names
    }

    /// The published profiles that are meant by the family `name`, such as `brandenburg2009-worst` or
    /// `brandenburg2009-worst-aligned`: one for each scheduler that was measured. `None`: it is no family.
    pub fn family(name: &str) -> Option<Vec<String>> {
        let (statistic, quanta) = match name.split('-').collect::<Vec<_>>()[..] {
            [FAMILY, statistic] if is_statistic(statistic) => (statistic, None),
            [FAMILY, statistic, quanta] if is_statistic(statistic) && is_quanta(quanta) => (statistic, Some(quanta)),
            _ => return None,
        };
        let is_member = |name: &String| match name.split('-').collect::<Vec<_>>()[..] {
            [FAMILY, _, of_statistic, of_quanta] => {
                of_statistic == statistic && quanta.is_none_or(|quanta| of_quanta == quanta)
            }
            _ => false,
        };
        Some(OverheadProfile::published_names().into_iter().filter(is_member).collect())
    }

    /// The published profile of `scheduler`'s realization; an error for the five that paper 002 did not measure.
    pub fn published_for(scheduler: &Scheduler, statistic: Statistic) -> Result<OverheadProfile, UnknownProfile> {
        let quanta = if scheduler.quanta == Quanta::Aligned { "aligned" } else { "staggered" };
        let aligned = Scheduler { quanta: Quanta::Aligned, ..*scheduler };
        let plugin = aligned.realization();
        OverheadProfile::published(&format!("{FAMILY}-{plugin}-{}-{quanta}", statistic.name())).map_err(|error| {
            UnknownProfile {
                way_out: format!("{plugin} was not measured, only {}; name one of them", PLUGINS.join(", ")),
                ..error
            }
        })
    }

    /// What a workload file means by `name`: a published profile, `none`, or a family such as
    /// `brandenburg2009-worst-aligned`, in which `scheduler`'s realization picks the plugin.
    ///
    /// A family that names the quanta takes those, one that does not (`brandenburg2009-worst`) the scheduler's.
    pub fn named(name: &str, scheduler: &Scheduler) -> Result<OverheadProfile, UnknownProfile> {
        if name == NONE {
            return Ok(OverheadProfile::zero());
        }
        let (statistic, quanta) = match name.split('-').collect::<Vec<_>>()[..] {
            [FAMILY, statistic] => (statistic, scheduler.quanta),
            [FAMILY, statistic, "aligned"] => (statistic, Quanta::Aligned),
            [FAMILY, statistic, "staggered"] => (statistic, Quanta::Staggered),
            _ => return OverheadProfile::published(name),
        };
        let scheduler = Scheduler { quanta, ..*scheduler };
        match statistic {
            "worst" => OverheadProfile::published_for(&scheduler, Statistic::Worst),
            "average" => OverheadProfile::published_for(&scheduler, Statistic::Average),
            _ => Err(UnknownProfile::new(name)),
        }
    }
}

fn is_statistic(text: &str) -> bool {
    matches!(text, "worst" | "average")
}

fn is_quanta(text: &str) -> bool {
    matches!(text, "aligned" | "staggered")
}

/// The rows of one plugin, per source in ascending number of tasks.
fn plugin_profile(plugin: &str, statistic: &str, quanta: &str) -> OverheadProfile {
    let tables = OverheadKind::ALL.map(|kind| {
        let point = |row: &'static str| match row.split(',').collect::<Vec<_>>()[..] {
            [_, source, of_quanta, of_statistic, tasks, of_plugin, micros]
                if (source, of_quanta, of_statistic, of_plugin) == (kind.name(), quanta, statistic, plugin) =>
            {
                Some((tasks.parse().expect("the data counts tasks"), picos(micros)))
            }
            _ => None,
        };
        let points: Vec<(u32, u64)> = BRANDENBURG.lines().filter_map(point).collect();
        match points.iter().all(|&(_, picos)| picos == 0) {
            // Cache-related delay is not in the paper, and no interrupt is sent under quanta.
            true => OverheadTable::Constant(Nanos::ZERO),
            false => OverheadTable::Points(points),
        }
    });
    OverheadProfile { name: format!("{FAMILY}-{plugin}-{statistic}-{quanta}"), tables }
}

/// Constants; the paper gives none for re-arming a timer.
fn klmirqd() -> OverheadProfile {
    let constant = |symbol: &str| {
        let row = ELLIOTT.lines().find(|row| row.split(',').next() == Some(symbol)).expect("the data has the symbol");
        let micros = row.rsplit(',').next().expect("a row has a last column");
        // Two decimals of a microsecond: whole nanoseconds.
        OverheadTable::Constant(Nanos(picos(micros) / 1_000))
    };
    let tables = OverheadKind::ALL.map(|kind| match kind {
        OverheadKind::Release => constant("rel"),
        OverheadKind::Scheduling => constant("sch"),
        OverheadKind::ContextSwitch => constant("cxs"),
        OverheadKind::IpiLatency => constant("ipi"),
        OverheadKind::Tick => constant("tck"),
        OverheadKind::TopHalf => constant("th"),
        OverheadKind::BottomHalf => constant("bh"),
        OverheadKind::ThreadRelease => constant("krel"),
        OverheadKind::PaiEnqueue => constant("pairel"),
        OverheadKind::PaiCheck => constant("paisch"),
        OverheadKind::TimerRearming | OverheadKind::CachePreemption | OverheadKind::CacheMigration => {
            OverheadTable::Constant(Nanos::ZERO)
        }
    });
    OverheadProfile { name: KLMIRQD.to_owned(), tables }
}

/// Microseconds with at most six decimals, as picoseconds. An empty cell is a dash in the paper: nothing.
fn picos(micros: &str) -> u64 {
    if micros.is_empty() {
        return 0;
    }
    crate::file::parse_picos(&format!("{micros} us")).expect("the data is decimal microseconds")
}

impl UnknownProfile {
    fn new(name: &str) -> Self {
        let unknown = |way_out: String| UnknownProfile { name: name.to_owned(), way_out };
        if let Some([first, ..]) = OverheadProfile::family(name).as_deref() {
            return unknown(format!(
                "that is a family, of which each scheduler has its own; name one, as in `{first}`"
            ));
        }
        if name == NONE {
            return unknown("that is the lack of overheads".to_owned());
        }
        let mut names = OverheadProfile::published_names();
        names.extend([NONE.to_owned(), format!("{FAMILY}-worst"), format!("{FAMILY}-average")]);
        let way_out = match suggest::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "write `none`, `{FAMILY}-worst`, `{FAMILY}-average` (the plugin that the scheduler names), \
                 `{FAMILY}-CEm-worst-aligned` (a certain one) or `{KLMIRQD}`"
            ),
        };
        unknown(way_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(name: &str) -> OverheadProfile {
        OverheadProfile::published(name).expect(name)
    }

    #[test]
    fn every_published_name_has_its_numbers() {
        let names = OverheadProfile::published_names();
        assert_eq!(names.len(), 29);
        for name in names {
            let profile = published(&name);
            assert_eq!(profile.name, name);
            assert!(profile.at(125).scheduling > Nanos::ZERO && profile.at(125).tick > Nanos::ZERO, "{name}");
            for table in &profile.tables {
                let OverheadTable::Points(points) = table else { continue };
                let tasks: Vec<u32> = points.iter().map(|&(tasks, _)| tasks).collect();
                assert_eq!(tasks, [50, 100, 150, 200, 250, 300, 350, 400, 450], "{name}");
            }
        }
    }

    /// Worked examples of the analysis, from tables 2, 5 and 7 of paper 002.
    #[test]
    fn published_overheads_interpolate_to_the_worked_examples() {
        assert_eq!(published("brandenburg2009-CEm-worst-aligned").at(125).scheduling, Nanos(112_597));
        let fem = published("brandenburg2009-FEm-worst-aligned");
        for tasks in [50, 51, 200, 450] {
            assert_eq!(fem.at(tasks).context_switch, Nanos(19_187), "{tasks} tasks: the maximum is at the first point");
        }
        assert_eq!(published("brandenburg2009-CE1-worst-aligned").at(500).ipi_latency, Nanos(44_557));
    }

    #[test]
    fn quantum_driven_plugins_send_no_interrupts() {
        assert_eq!(published("brandenburg2009-CQm-worst-staggered").at(450).ipi_latency, Nanos::ZERO);
        assert_eq!(published("brandenburg2009-CQ1-average-aligned").at(450).ipi_latency, Nanos::ZERO);
    }

    #[test]
    fn klmirqd_costs_what_its_appendix_says() {
        let costs = published("elliott2012-klmirqd").at(7);
        let nanos = [costs.scheduling, costs.context_switch, costs.ipi_latency, costs.release, costs.tick];
        assert_eq!(nanos, [Nanos(630), Nanos(360), Nanos(600), Nanos(670), Nanos(860)]);
        assert_eq!(costs.timer_rearming, Nanos::ZERO);
        let halves = [costs.top_half, costs.bottom_half, costs.thread_release, costs.pai_enqueue, costs.pai_check];
        assert_eq!(halves, [Nanos(16_440), Nanos(29_900), Nanos(1_390), Nanos(560), Nanos(130)]);
    }

    #[test]
    fn a_scheduler_picks_its_own_measurements() {
        let scheduler: Scheduler = "G-EDF/S-CQm".parse().expect("a scheduler");
        let profile = OverheadProfile::published_for(&scheduler, Statistic::Average).expect("measured");
        assert_eq!(profile.name, "brandenburg2009-CQm-average-staggered");
        let named = |name| OverheadProfile::named(name, &scheduler).map(|profile| profile.name);
        assert_eq!(named("brandenburg2009-worst").as_deref(), Ok("brandenburg2009-CQm-worst-staggered"));
        assert_eq!(named("brandenburg2009-worst-aligned").as_deref(), Ok("brandenburg2009-CQm-worst-aligned"));
        assert_eq!(named("none").as_deref(), Ok("none"));
    }

    #[test]
    fn a_family_has_a_profile_of_each_measured_scheduler() {
        let members = |name| OverheadProfile::family(name).map(|members| members.len());
        assert_eq!(["brandenburg2009-worst", "brandenburg2009-average-staggered"].map(members), [Some(14), Some(7)]);
        let others = ["none", "brandenburg2009", "brandenburg2009-best", "brandenburg2009-CEm-worst-aligned", KLMIRQD];
        assert_eq!(others.map(members), [None; 5]);
    }

    /// They said "unknown overhead profile `none`; did you mean `none`?".
    #[test]
    fn a_name_that_is_known_is_never_suggested_instead_of_itself() {
        let says = |name: &str| OverheadProfile::published(name).expect_err(name).to_string();
        assert!(says("brandenburg2009-worst").ends_with("name one, as in `brandenburg2009-CEm-worst-aligned`"));
        assert!(!says("none").contains("did you mean"), "{}", says("none"));
    }

    #[test]
    fn unknown_names_are_refused_with_the_way_out() {
        let says = |name: &str| OverheadProfile::named(name, &Scheduler::default()).expect_err(name).to_string();
        assert_eq!(
            says("brandenburg2009-CEm-worst-alinged"),
            "unknown overhead profile `brandenburg2009-CEm-worst-alinged`; did you mean \
             `brandenburg2009-CEm-worst-aligned`?"
        );
        assert!(says("fast").contains("write `none`"));
        let unmeasured: Scheduler = "HQ1".parse().expect("a scheduler");
        let error = OverheadProfile::published_for(&unmeasured, Statistic::Worst).expect_err("not measured");
        assert_eq!(
            error.to_string(),
            "unknown overhead profile `brandenburg2009-HQ1-worst-aligned`; HQ1 was not measured, only CEm, FEm, HEm, \
             CQm, CE1, FE1, CQ1; name one of them"
        );
    }
}
