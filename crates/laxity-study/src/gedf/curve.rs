//! The curves of the study: a realization, its measured overheads, and what is asked of it.

use laxity_model::{Invocation, OverheadProfile, Quanta, Scheduler, Statistic};

use super::kernel::{self, Waiting};
use crate::Curve;

/// What a task set must be shown to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criterion {
    /// Meet every deadline.
    Hard,
    /// Have bounded tardiness.
    Soft,
}

/// A curve of the study.
#[derive(Clone, Debug)]
pub struct GedfCurve {
    /// What is asked.
    pub criterion: Criterion,
    /// Its name in the paper's legends.
    pub name: &'static str,
    /// The realization with its overheads; `None`: no overheads, event-driven, all CPUs.
    pub realization: Option<(Scheduler, OverheadProfile)>,
}

/// Without overheads; the paper numbers its curves from here.
const IDEAL: &str = "G-EDF";
/// In the order of the paper's legends: 2 to 8.
const PLUGINS: [&str; 7] = ["CEm", "CE1", "FEm", "FE1", "HEm", "CQm", "CQ1"];
/// 9 and 10, hard only.
const STAGGERED: [&str; 2] = ["S-CQm", "S-CQ1"];

impl Criterion {
    /// The name of the graph.
    pub const fn name(self) -> &'static str {
        match self {
            Criterion::Hard => "hard",
            Criterion::Soft => "soft",
        }
    }
}

impl GedfCurve {
    /// All curves: ten hard ones, then eight soft ones, in the order of the paper's legends.
    pub fn all() -> Vec<GedfCurve> {
        Self::of(|scheduler, statistic| {
            OverheadProfile::published_for(scheduler, statistic).expect("the paper measured these seven")
        })
    }

    /// The same curves with what the scheduler in the kernel costs.
    pub fn in_kernel(waiting: Waiting) -> Vec<GedfCurve> {
        // Staggered quanta or not: what is event-driven has none.
        let name = |scheduler: &Scheduler| match scheduler.invocation {
            Invocation::EventDriven => Scheduler { quanta: Quanta::Aligned, ..*scheduler }.realization(),
            Invocation::QuantumDriven => scheduler.realization(),
        };
        Self::of(|scheduler, statistic| kernel::profile(&name(scheduler), statistic, waiting))
    }

    fn of(costs: impl Fn(&Scheduler, Statistic) -> OverheadProfile) -> Vec<GedfCurve> {
        let hard = PLUGINS.iter().chain(&STAGGERED).map(|&name| Self::measured(Criterion::Hard, name, &costs));
        let soft = PLUGINS.iter().map(|&name| Self::measured(Criterion::Soft, name, &costs));
        [Self::ideal(Criterion::Hard)]
            .into_iter()
            .chain(hard)
            .chain([Self::ideal(Criterion::Soft)])
            .chain(soft)
            .collect()
    }

    /// Its place in a graph.
    pub fn curve(&self) -> Curve {
        Curve { graph: self.criterion.name().to_owned(), name: self.name.to_owned() }
    }

    /// Whether its scheduler acts at quantum boundaries only.
    pub fn is_quantum_driven(&self) -> bool {
        self.realization.as_ref().is_some_and(|(scheduler, _)| scheduler.invocation == Invocation::QuantumDriven)
    }

    const fn ideal(criterion: Criterion) -> Self {
        GedfCurve { criterion, name: IDEAL, realization: None }
    }

    /// Hard: worst-case overheads, and quanta as the name says. Soft: average overheads, staggered quanta.
    fn measured(
        criterion: Criterion,
        name: &'static str,
        costs: impl Fn(&Scheduler, Statistic) -> OverheadProfile,
    ) -> Self {
        let mut scheduler: Scheduler = name.parse().expect("the paper's names are realizations");
        let statistic = match criterion {
            Criterion::Hard => Statistic::Worst,
            Criterion::Soft => {
                scheduler.quanta = Quanta::Staggered;
                Statistic::Average
            }
        };
        let profile = costs(&scheduler, statistic);
        GedfCurve { criterion, name, realization: Some((scheduler, profile)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paper 002, section 4.2: worst case and aligned for hard, with two staggered curves more; average and staggered
    /// for soft.
    #[test]
    fn the_curves_take_the_overheads_the_paper_says() {
        let curves = GedfCurve::all();
        let profiles: Vec<String> = curves
            .iter()
            .map(|curve| {
                let profile = curve.realization.as_ref().map_or("none", |(_, profile)| profile.name.as_str());
                format!("{} {} {}", curve.criterion.name(), curve.name, profile.trim_start_matches("brandenburg2009-"))
            })
            .collect();
        assert_eq!(profiles.len(), 18);
        assert_eq!(profiles[0], "hard G-EDF none");
        assert_eq!(profiles[1], "hard CEm CEm-worst-aligned");
        assert_eq!(
            profiles[8..12],
            [
                "hard S-CQm CQm-worst-staggered",
                "hard S-CQ1 CQ1-worst-staggered",
                "soft G-EDF none",
                "soft CEm CEm-average-staggered",
            ]
        );
        assert_eq!(profiles[17], "soft CQ1 CQ1-average-staggered");
    }

    #[test]
    fn in_the_kernel_soft_curves_have_staggered_quanta_too() {
        let names = |waiting| -> Vec<String> {
            let curves = GedfCurve::in_kernel(waiting).into_iter();
            curves
                .filter_map(|curve| {
                    let (_, profile) = curve.realization?;
                    Some(format!("{} {} {}", curve.criterion.name(), curve.name, profile.name))
                })
                .collect()
        };
        assert_eq!(
            names(Waiting::Nothing),
            [
                "hard CEm kernel-CEm-worst",
                "hard CE1 kernel-CE1-worst",
                "hard FEm kernel-FEm-worst",
                "hard FE1 kernel-FE1-worst",
                "hard HEm kernel-HEm-worst",
                "hard CQm kernel-CQm-worst",
                "hard CQ1 kernel-CQ1-worst",
                "hard S-CQm kernel-S-CQm-worst",
                "hard S-CQ1 kernel-S-CQ1-worst",
                "soft CEm kernel-CEm-average",
                "soft CE1 kernel-CE1-average",
                "soft FEm kernel-FEm-average",
                "soft FE1 kernel-FE1-average",
                "soft HEm kernel-HEm-average",
                "soft CQm kernel-S-CQm-average",
                "soft CQ1 kernel-S-CQ1-average",
            ]
        );
        let waiting = names(Waiting::Longest);
        assert_eq!(waiting.len(), 16);
        assert_eq!(waiting[15], "soft CQ1 kernel-S-CQ1-waiting-32-average");
    }
}
