//! Process-aware interrupts on a multiprocessor: bottom halves that wait for their owner's priority to suffice.

/// The bottom halves of one cluster that wait to run on a process's stack (paper 000, section III, after Zhang & West,
/// RTSS 2006).
///
/// A bottom half has the effective priority its owner has when it is looked at: inheritance in the meantime counts. At
/// every scheduling decision the most urgent one is compared with the job about to run.
#[derive(Clone, Debug)]
pub struct ProcessAware<H> {
    /// In order of arrival, which breaks ties.
    waiting: Vec<H>,
}

impl<H> ProcessAware<H> {
    /// None waits.
    pub fn new() -> Self {
        ProcessAware { waiting: Vec::new() }
    }

    /// `half` waits from now on.
    pub fn enqueue(&mut self, half: H) {
        self.waiting.push(half);
    }

    /// Takes the most urgent bottom half unless `job` precedes it, the level of the job about to run on the CPU that asks
    /// (`None`: it would be idle). `level` is the current level of a bottom half's owner; `None`: anonymous, after all
    /// jobs. A bottom half goes before its own owner, which may be waiting for it by spinning; the paper asks for greater
    /// priority only, and would let such an owner spin for ever.
    pub fn take_before(&mut self, job: Option<(u64, u32)>, level: impl Fn(&H) -> Option<(u64, u32)>) -> Option<H> {
        let key = |half: &H| level(half).unwrap_or((u64::MAX, u32::MAX));
        // The first of equals: `min_by_key` keeps it.
        let first = (0..self.waiting.len()).min_by_key(|&at| key(&self.waiting[at]))?;
        let precedes = job.is_none_or(|job| key(&self.waiting[first]) <= job);
        precedes.then(|| self.waiting.remove(first))
    }

    /// Those that wait.
    pub fn iter(&self) -> impl Iterator<Item = &H> {
        self.waiting.iter()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<H> Default for ProcessAware<H> {
    fn default() -> Self {
        ProcessAware::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bottom_half_runs_only_before_less_urgent_jobs_and_the_most_urgent_goes_first() {
        let mut queue = ProcessAware::new();
        for half in [(30, 1), (10, 2), (10, 3)] {
            queue.enqueue(half);
        }
        let level = |half: &(u64, u32)| Some((half.0, 0));
        assert_eq!(queue.take_before(Some((9, 0)), level), None);
        assert_eq!(queue.take_before(Some((10, 0)), level), Some((10, 2)), "before its owner; the earlier of equals");
        assert_eq!(queue.take_before(Some((20, 0)), level), Some((10, 3)));
        assert_eq!(queue.take_before(Some((20, 0)), level), None);
        assert_eq!(queue.take_before(None, level), Some((30, 1)), "an idle CPU takes any");
        assert!(queue.is_empty());
    }

    #[test]
    fn what_an_owner_inherits_counts_when_its_bottom_half_is_looked_at() {
        let mut queue = ProcessAware::new();
        queue.enqueue('a');
        assert_eq!(queue.take_before(Some((20, 0)), |_| Some((30, 0))), None);
        assert_eq!(queue.take_before(Some((20, 0)), |_| Some((5, 0))), Some('a'));
    }

    #[test]
    fn an_anonymous_bottom_half_comes_after_all_jobs() {
        let mut queue = ProcessAware::new();
        queue.enqueue('n');
        assert_eq!(queue.take_before(Some((u64::MAX - 1, 0)), |_| None), None);
        assert_eq!(queue.take_before(None, |_| None), Some('n'));
    }
}
