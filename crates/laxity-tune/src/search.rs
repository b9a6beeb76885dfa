//! Climbs from setting to better setting.

use std::collections::BTreeMap;

use laxity_model::rng::SplitMix64;

use crate::{Score, Setting, Space};

/// A search that is told scores and says which setting to try next.
///
/// ```text
///              no single change is better              tried enough starts
///   (climbs) ----------------------------> (restarts) --------------------> (over)
///      ^ next dimension                        |
///      '---------------------------------------'
/// ```
#[derive(Clone, Debug)]
pub struct Search<'a> {
    space: &'a Space,
    rng: SplitMix64,
    known: BTreeMap<Setting, Score>,
    current: Setting,
    /// The dimension whose choices are tried.
    dimension: usize,
    /// Dimensions since the last change for the better.
    unchanged: usize,
    restarts: u32,
}

impl<'a> Search<'a> {
    /// From the file's own configuration on, and from `restarts` others that `seed` draws.
    pub fn new(space: &'a Space, seed: u64, restarts: u32) -> Search<'a> {
        let current = space.base();
        Search {
            space,
            rng: SplitMix64::new(seed),
            known: BTreeMap::new(),
            current,
            dimension: 0,
            unchanged: 0,
            restarts,
        }
    }

    /// The settings to try next, none twice; empty once the search is over. All must be told before it is asked again.
    pub fn propose(&mut self) -> Vec<Setting> {
        if self.known.is_empty() {
            return vec![self.space.base()];
        }
        loop {
            if !self.known.contains_key(&self.current) {
                return vec![self.current.clone()];
            }
            if self.unchanged >= self.space.dimensions().len() {
                if self.restarts == 0 {
                    return Vec::new();
                }
                self.restart();
                continue;
            }
            let batch: Vec<Setting> =
                self.neighbours().into_iter().filter(|setting| !self.known.contains_key(setting)).collect();
            if !batch.is_empty() {
                return batch;
            }
            self.climb();
        }
    }

    /// What `setting` is worth.
    pub fn tell(&mut self, setting: Setting, score: Score) {
        self.known.insert(setting, score);
    }

    /// The settings that were tried and are possible, the best first; of equals the one with the fewest changes.
    pub fn best(&self) -> Vec<(&Setting, &Score)> {
        let mut all: Vec<(&Setting, &Score)> = self.known.iter().filter(|(_, score)| score.is_possible()).collect();
        let changes = |setting: &Setting| setting.iter().filter(|&&choice| choice != 0).count();
        all.sort_by(|a, b| b.1.cmp(a.1).then_with(|| (changes(a.0), a.0).cmp(&(changes(b.0), b.0))));
        all
    }

    /// `setting` with one of its changes undone, for each of them: if one is not worse, that change buys nothing.
    pub fn simpler(setting: &Setting) -> Vec<Setting> {
        let changed = setting.iter().enumerate().filter(|(_, choice)| **choice != 0);
        let undone = |(dimension, _): (usize, &u16)| {
            let mut simpler = setting.clone();
            simpler[dimension] = 0;
            simpler
        };
        changed.map(undone).collect()
    }

    /// What is known of `setting`.
    pub fn score(&self, setting: &Setting) -> Option<&Score> {
        self.known.get(setting)
    }

    /// How many settings were tried.
    pub fn tried(&self) -> usize {
        self.known.len()
    }

    /// The current setting with each choice of the current dimension.
    fn neighbours(&self) -> Vec<Setting> {
        let choices = self.space.dimensions()[self.dimension].choices.len();
        let with = |choice: usize| {
            let mut setting = self.current.clone();
            setting[self.dimension] = choice as u16;
            setting
        };
        (0..choices).map(with).collect()
    }

    /// Takes the best choice of the current dimension, and goes on to the next.
    fn climb(&mut self) {
        let own = self.known[&self.current].clone();
        let neighbours = self.neighbours().into_iter().filter_map(|setting| Some((self.known.get(&setting)?, setting)));
        // Of equals the first; only what is better is a change.
        let best = neighbours.fold(None::<(&Score, Setting)>, |best, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        });
        match best {
            Some((score, setting)) if *score > own => {
                self.current = setting;
                self.unchanged = 1;
            }
            _ => self.unchanged += 1,
        }
        self.dimension = (self.dimension + 1) % self.space.dimensions().len().max(1);
    }

    fn restart(&mut self) {
        self.restarts -= 1;
        self.unchanged = 0;
        let draw = |dimension: &crate::Dimension| self.rng.below(dimension.choices.len() as u64) as u16;
        self.current = self.space.dimensions().iter().map(draw).collect();
    }
}
