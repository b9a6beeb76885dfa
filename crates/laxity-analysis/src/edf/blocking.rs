//! What less urgent jobs keep the CPU for.

use std::collections::BTreeMap;

/// A section that a job may be in when more urgent jobs arrive. Times in ticks.
///
/// It counts in intervals that end from `from` on, when a job may be due that it keeps waiting, until before `until`: later its own
/// job is due in the interval, and then counts in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Section {
    /// The shortest interval in which it counts.
    pub from: u64,
    /// From this length on it counts no more.
    pub until: u64,
    /// How long it keeps the CPU.
    pub time: u64,
}

/// How long jobs that are due after the end of an interval keep the CPU within it, by the interval's length: a step function.
///
/// A job that is due by the end `d` of the interval is delayed by less urgent ones only as long as these are in sections that
/// they began before the interval. Such a job arrived before the interval too, so it is of a task whose deadline is beyond
/// `d`. Of sections that cannot be preempted one at most had begun (Jeffay, Stanat & Martel, RTSS 1991); the same is true of
/// sections under a ceiling (Baker, Real-Time Systems 3(1), 1991). Where jobs inherit instead, each task may be in one, or
/// wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocking {
    /// From which length on how long, ascending.
    steps: Vec<(u64, u64)>,
    /// The largest value up to each step.
    most: Vec<u64>,
}

impl Blocking {
    /// One of `once`, and all of `each`.
    pub fn new(once: &[Section], each: &[Section]) -> Blocking {
        let all = || once.iter().map(|section| (section, true)).chain(each.iter().map(|section| (section, false)));
        let mut changes: Vec<(u64, bool, u64, bool)> = Vec::new();
        for (section, is_once) in all().filter(|(section, _)| section.from < section.until && section.time > 0) {
            changes.push((section.from, true, section.time, is_once));
            changes.push((section.until, false, section.time, is_once));
        }
        changes.sort_unstable();
        let (mut longest, mut sum) = (BTreeMap::<u64, u64>::new(), 0u128);
        let mut blocking = Blocking::default();
        for (at, begins, time, is_once) in changes {
            match (begins, is_once) {
                (true, true) => *longest.entry(time).or_default() += 1,
                (false, true) => {
                    let count = longest.get_mut(&time).expect("a section ends that began");
                    *count -= 1;
                    if *count == 0 {
                        longest.remove(&time);
                    }
                }
                (true, false) => sum += u128::from(time),
                (false, false) => sum -= u128::from(time),
            }
            let value = sum + u128::from(longest.last_key_value().map_or(0, |(&time, _)| time));
            blocking.set(at, u64::try_from(value).unwrap_or(u64::MAX));
        }
        let mut most = 0;
        blocking.most = blocking
            .steps
            .iter()
            .map(|&(_, value)| {
                most = value.max(most);
                most
            })
            .collect();
        blocking
    }

    fn set(&mut self, at: u64, value: u64) {
        match self.steps.last_mut() {
            Some((last, now)) if *last == at => *now = value,
            _ => self.steps.push((at, value)),
        }
    }

    /// Whether nothing blocks.
    pub fn is_none(&self) -> bool {
        self.steps.is_empty()
    }

    /// In intervals of that length.
    pub fn at(&self, length: u64) -> u64 {
        self.step(length).map_or(0, |step| self.steps[step].1)
    }

    /// In intervals of that length or of a shorter one.
    pub fn most_up_to(&self, length: u64) -> u64 {
        self.step(length).map_or(0, |step| self.most[step])
    }

    /// In any interval.
    pub fn most(&self) -> u64 {
        self.most.last().copied().unwrap_or(0)
    }

    /// The length from which on nothing blocks.
    pub fn end(&self) -> u64 {
        self.steps.last().map_or(0, |&(at, _)| at)
    }

    /// The last step up to there.
    fn step(&self, length: u64) -> Option<usize> {
        self.steps.partition_point(|&(at, _)| at <= length).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_some_and_all_others_block() {
        let section = |from, until, time| Section { from, until, time };
        let once = [section(0, 10, 3), section(0, 20, 2), section(5, 5, 9)];
        let each = [section(4, 30, 1), section(6, 12, 5)];
        let blocking = Blocking::new(&once, &each);
        let at = [0, 4, 5, 6, 9, 10, 11, 12, 19, 20, 29, 30].map(|length| blocking.at(length));
        assert_eq!(at, [3, 4, 4, 9, 9, 8, 8, 3, 3, 1, 1, 0]);
        assert_eq!([3, 5, 12].map(|length| blocking.most_up_to(length)), [3, 4, 9]);
        assert_eq!((blocking.most(), blocking.end()), (9, 30));
        assert!(Blocking::new(&[section(1, 1, 1)], &[]).is_none());
    }
}
