//! A whole search: climbs, simplifies the best, simulates them for longer, and says what each change buys.

use laxity_model::Workload;
use serde::Serialize;

use crate::edit::Edit;
use crate::{Bottleneck, Choice, Dimension, Effort, Score, Search, Setting, Space, bottlenecks, evaluate, growth};

/// How often the search starts anew, if there is time.
const RESTARTS: u32 = 8;
/// The longer simulations that decide between the best are so many times as long.
const LONGER: u64 = 4;
/// Tenths of its time after which the search ends; the rest is for what is shown.
const SEARCHED: u32 = 6;
/// The same for simplifying the best.
const SIMPLIFIED: u32 = 8;
/// Its whole time: after that simulations end where they are.
const ALL: u32 = 10;

/// The threads and the clock, which the caller has.
pub trait Host: Sync {
    /// What `score` says of each of `settings`, in their order; several at once, if the caller likes.
    fn map(&self, settings: &[Setting], score: &(dyn Fn(&Setting) -> Option<Score> + Sync)) -> Vec<Option<Score>>;
    /// Whether `tenths` of the time that the search may take have passed, or it is to end as soon as possible, with what was found
    /// by then. Also asked in the middle of simulations.
    fn is_over(&self, tenths: u32) -> bool;
    /// So many settings were tried, and this is the best of them.
    fn progress(&self, tried: usize, best: Option<&Score>);
}

/// What a search found.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    /// How many settings there are.
    pub settings: u64,
    /// How many of them were tried.
    pub tried: usize,
    /// The workload's own configuration.
    pub own: Ranked,
    /// The best, in order; empty if no configuration is possible.
    pub best: Vec<Ranked>,
    /// What each change of the best buys.
    pub changes: Vec<Effect>,
    /// By how many thousandths all execution times of the best may be multiplied before it is no longer proven.
    pub growth_permille: Option<u64>,
    /// Whether the search for that ended at its limit: the true factor is at least this.
    pub growth_is_capped: bool,
    /// What alone may shrink so that the best is proven, if it is not; as far as there was time to look.
    pub bottlenecks: Vec<Bottleneck>,
    /// The workload as the best configures it.
    #[serde(skip)]
    pub workload: Workload,
}

/// A setting and its score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// Where it differs from the workload's own configuration.
    pub changes: Vec<Change>,
    /// How good it is.
    pub score: Score,
    /// The setting itself.
    #[serde(skip)]
    pub setting: Setting,
}

/// One choice that differs from the workload's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The dimension: `scheduler`.
    pub what: String,
    /// The choice: `P-RM`.
    pub to: String,
    #[serde(skip)]
    dimension: usize,
}

/// What a change buys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// The change.
    pub change: Change,
    /// The workload's own configuration with this change alone.
    pub alone: Score,
    /// The best without it.
    pub without: Score,
}

/// Searches `space` and keeps the `count` best, at least one. The search and its simulations are seeded by `effort`; how far
/// they get depends on the time that `host` has.
pub fn tune(space: &Space, effort: &Effort, count: usize, host: &impl Host) -> Tuned {
    let count = count.max(1);
    let mut search = Search::new(space, effort.seed, RESTARTS);
    climb(&mut search, space, effort, host);
    let tried = search.tried();
    let mut settings = few(&mut search, space, effort, count, host);
    let base = space.base();
    if !settings.contains(&base) {
        settings.push(base.clone());
    }
    // Other draws, and more of them, so that the best is not the one that the first draws happened to suit.
    let longer = effort.longer(LONGER);
    let mut scores = scores(space, &settings, &longer, host);
    if host.is_over(ALL) {
        // Those that were told to end say less than the shorter ones.
        let shorter = |(setting, score): (&Setting, Score)| search.score(setting).cloned().unwrap_or(score);
        scores = settings.iter().zip(scores).map(shorter).collect();
    }
    let ranked = |(setting, score): (Setting, Score)| Ranked { changes: changes(space, &setting), score, setting };
    let mut all: Vec<Ranked> = settings.into_iter().zip(scores).map(ranked).collect();
    all.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.setting.cmp(&b.setting)));
    let own = all.iter().find(|ranked| ranked.setting == base).cloned().expect("the base is among them");
    all.retain(|ranked| ranked.score.is_possible());
    all.truncate(count);
    let changes = if host.is_over(ALL) { Vec::new() } else { settle(&mut all, count, space, &longer, host) };
    let best = all.first().unwrap_or(&own).clone();
    let workload = space.workload(&best.setting);
    let growth = growth(&workload);
    Tuned {
        settings: space.size(),
        tried,
        changes,
        growth_permille: growth.and_then(|scaling| scaling.permille),
        growth_is_capped: growth.is_some_and(|scaling| scaling.is_capped),
        bottlenecks: bottlenecks(&workload, || host.is_over(ALL)),
        own,
        best: all,
        workload,
    }
}

/// Tries settings until there are no better ones, or no time.
fn climb(search: &mut Search, space: &Space, effort: &Effort, host: &impl Host) {
    // The workload's own configuration is always evaluated: the others are compared with it.
    let mut is_first = true;
    loop {
        let batch = search.propose();
        if batch.is_empty() {
            return;
        }
        let end = if is_first { ALL } else { SEARCHED };
        let score = |setting: &Setting| {
            let is_over = || host.is_over(end);
            let score = (is_first || !is_over()).then(|| evaluate(&space.workload(setting), effort, &is_over));
            score.filter(|score| is_first || score.tail.is_some() || !is_over())
        };
        let told = host.map(&batch, &score);
        let is_whole = told.iter().all(Option::is_some);
        for (setting, score) in batch.into_iter().zip(told) {
            if let Some(score) = score {
                search.tell(setting, score);
            }
        }
        is_first = false;
        host.progress(search.tried(), search.best().first().map(|(_, score)| *score));
        if !is_whole || host.is_over(SEARCHED) {
            return;
        }
    }
}

/// The best settings without changes that buy nothing.
fn few(search: &mut Search, space: &Space, effort: &Effort, count: usize, host: &impl Host) -> Vec<Setting> {
    let candidates: Vec<Setting> =
        search.best().into_iter().take(2 * count).map(|(setting, _)| setting.clone()).collect();
    let mut settings: Vec<Setting> = Vec::new();
    for mut setting in candidates {
        while !host.is_over(SIMPLIFIED) {
            let score = search.score(&setting).cloned();
            let simpler = Search::simpler(&setting);
            let unknown: Vec<Setting> =
                simpler.iter().filter(|setting| search.score(setting).is_none()).cloned().collect();
            for (setting, score) in unknown.iter().zip(scores(space, &unknown, effort, host)) {
                search.tell(setting.clone(), score);
            }
            let no_worse =
                simpler.into_iter().find(|simpler| score.is_some() && search.score(simpler) >= score.as_ref());
            match no_worse {
                Some(simpler) => setting = simpler,
                None => break,
            }
        }
        // Settings that differ in a rule whose priorities are fixed otherwise are one configuration.
        if !settings.iter().any(|other| *other == setting || space.workload(other) == space.workload(&setting)) {
            settings.push(setting);
        }
    }
    settings.truncate(count);
    settings
}

fn scores(space: &Space, settings: &[Setting], effort: &Effort, host: &impl Host) -> Vec<Score> {
    let is_over = || host.is_over(ALL);
    let score = |setting: &Setting| Some(evaluate(&space.workload(setting), effort, &is_over));
    host.map(settings, &score).into_iter().flatten().collect()
}

/// The choices of `setting`, and the scheduler as it is in the end: priorities that are fixed by another choice are those of
/// no rule.
fn changes(space: &Space, setting: &Setting) -> Vec<Change> {
    let chosen = space.dimensions().iter().zip(setting).enumerate().filter(|(_, (_, choice))| **choice != 0);
    let change = |(dimension, (of, &choice)): (usize, (&Dimension, &u16))| {
        let Choice { label, edit } = &of.choices[usize::from(choice)];
        let to = match edit {
            Edit::Scheduler(..) => space.workload(setting).scheduler.to_string(),
            _ => label.clone(),
        };
        Change { what: of.name.clone(), to, dimension }
    };
    chosen.map(change).collect()
}

/// What each change of the first of `all` buys. A setting that is tried for that may turn out to be better, as longer
/// simulations draw other jobs: then it becomes the first of `all`, which keeps `count`, and its changes are looked at.
fn settle(all: &mut Vec<Ranked>, count: usize, space: &Space, effort: &Effort, host: &impl Host) -> Vec<Effect> {
    loop {
        let Some(best) = all.first().cloned() else { return Vec::new() };
        let (effects, tried) = effects(space, &best, effort, host);
        // Ends, as there are finitely many settings and the score of the first only grows.
        let better =
            tried.into_iter().filter(|(_, score)| *score > best.score).max_by(|one, other| one.1.cmp(&other.1));
        let Some((setting, score)) = better.filter(|_| !host.is_over(ALL)) else { return effects };
        all.retain(|ranked| ranked.setting != setting);
        all.insert(0, Ranked { changes: changes(space, &setting), score, setting });
        all.truncate(count);
    }
}

/// What each change of `best` buys, as it is by itself, and the settings that were tried for that.
fn effects(space: &Space, best: &Ranked, effort: &Effort, host: &impl Host) -> (Vec<Effect>, Vec<(Setting, Score)>) {
    let pair = |change: &Change| {
        let (mut alone, mut without) = (space.base(), best.setting.clone());
        alone[change.dimension] = best.setting[change.dimension];
        without[change.dimension] = 0;
        [alone, without]
    };
    let settings: Vec<Setting> = best.changes.iter().flat_map(pair).collect();
    let found = scores(space, &settings, effort, host);
    let mut scores = found.clone().into_iter();
    let by_itself = |change: &Change| {
        let choice = usize::from(best.setting[change.dimension]);
        let to = space.dimensions()[change.dimension].choices[choice].label.clone();
        Change { to, ..change.clone() }
    };
    let effect =
        |change: &Change| Some(Effect { change: by_itself(change), alone: scores.next()?, without: scores.next()? });
    let effects = best.changes.iter().filter_map(effect).collect();
    (effects, settings.into_iter().zip(found).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread, and all the time it takes.
    struct Patient;

    impl Host for Patient {
        fn map(&self, settings: &[Setting], score: &(dyn Fn(&Setting) -> Option<Score> + Sync)) -> Vec<Option<Score>> {
            settings.iter().map(score).collect()
        }

        fn is_over(&self, _: u32) -> bool {
            false
        }

        fn progress(&self, _: usize, _: Option<&Score>) {}
    }

    /// Random execution times beyond what can be proven, so that the simulated tail decides, which other draws change.
    const WORKLOAD: &str = r#"laxity = 1
name = "w"
scheduler = "P-RM"
[platform]
cpus = 2
[[platform.gpu]]
name = "g"
bandwidth = "1 GB/s"
[[task]]
name = "a"
period = "10 ms"
body = [{ cpu = "5 ms", actual = { uniform = ["1 ms", "5 ms"] } }, { kernel = "3 ms", actual = { uniform = ["1 ms", "3 ms"] } }]
[[task]]
name = "b"
period = "14 ms"
body = [{ cpu = "6 ms", actual = { uniform = ["1 ms", "6 ms"] } }, { kernel = "4 ms", actual = { uniform = ["1 ms", "4 ms"] } }]
[[task]]
name = "c"
period = "20 ms"
wcet = "12 ms"
actual = { uniform = ["2 ms", "12 ms"] }
"#;

    #[test]
    fn the_scheduler_of_a_configuration_is_that_of_its_workload() {
        let workload = Workload::from_toml(WORKLOAD, "w.toml").expect("a workload");
        let space = Space::of(workload.clone());
        let place = |name: &str| space.dimensions().iter().position(|of| of.name == name).expect("it can be chosen");
        let mut setting = space.base();
        let edf = space.dimensions()[place("scheduler")].choices.iter().position(|choice| choice.label == "P-EDF/CEm");
        setting[place("scheduler")] = edf.expect("a choice") as u16;
        let scheduler = |setting: &Setting| changes(&space, setting)[0].to.clone();
        assert_eq!(scheduler(&setting), "P-EDF/CEm");
        setting[place("priorities")] = 1;
        assert_eq!(scheduler(&setting), "P-FP/CEm");
        assert_eq!(space.workload(&setting).scheduler.to_string(), "P-FP/CEm");
    }

    #[test]
    fn nothing_that_is_shown_is_better_than_the_best() {
        let workload = Workload::from_toml(WORKLOAD, "w.toml").expect("a workload");
        for seed in 0..12 {
            let effort = Effort::new(&workload, laxity_model::Nanos::from_millis(20), seed);
            let tuned = tune(&Space::of(workload.clone()), &effort, 2, &Patient);
            let best = &tuned.best[0].score;
            for effect in &tuned.changes {
                assert!(effect.alone <= *best && effect.without <= *best, "seed {seed}: {:?}", effect.change);
            }
            assert!(tuned.own.score <= *best, "seed {seed}: the workload's own is better");
        }
    }

    /// As [`Patient`], but its time was over before it began.
    struct Hasty;

    impl Host for Hasty {
        fn map(&self, settings: &[Setting], score: &(dyn Fn(&Setting) -> Option<Score> + Sync)) -> Vec<Option<Score>> {
            settings.iter().map(score).collect()
        }

        fn is_over(&self, _: u32) -> bool {
            true
        }

        fn progress(&self, _: usize, _: Option<&Score>) {}
    }

    /// A simulation of ten years would take days.
    #[test]
    fn a_search_without_time_ends_in_the_middle_of_its_first_simulation() {
        let workload = Workload::from_toml(WORKLOAD, "w.toml").expect("a workload");
        let effort = Effort::new(&workload, laxity_model::Nanos::LONGEST, 0);
        let tuned = tune(&Space::of(workload), &effort, 3, &Hasty);
        assert!(tuned.own.score.tail.is_none() && tuned.best.iter().all(|ranked| ranked.score.tail.is_none()));
        assert_eq!(tuned.tried, 1);
    }
}
