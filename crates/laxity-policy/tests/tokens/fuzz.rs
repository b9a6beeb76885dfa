//! Random events: whatever happens, the allocator's own invariants hold (the driver has them checked after every
//! event), no token has two holders, every task that keeps waiting is granted in the end, and priorities go where they
//! ought to.

use proptest::prelude::*;

use crate::cluster::{Cluster, Sizes};

const TASKS: usize = 14;

/// What the driver knows of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Idle,
    Waits { only: Option<u16> },
    Holds { replica: u16 },
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The task asks, for the GPU only if `only` is among the pool's, or unlocks what it holds.
    Toggle {
        task: usize,
        only: u16,
        length: u64,
    },
    Withdraw {
        task: usize,
    },
    Overrun {
        task: usize,
    },
    Wait {
        span: u64,
    },
}

struct Driver {
    sizes: Sizes,
    cluster: Cluster,
    jobs: [Job; TASKS],
    restricted: bool,
}

impl Driver {
    fn step(&mut self, step: Step) {
        match step {
            Step::Toggle { task, only, length } if self.jobs[task] == Job::Idle => {
                let only = (only < self.sizes.gpus).then_some(only);
                self.restricted |= only.is_some();
                self.jobs[task] = Job::Waits { only };
                let grants = self.cluster.request_with(task, only, length);
                self.granted(&grants);
            }
            Step::Toggle { task, .. } => self.unlock(task),
            Step::Withdraw { task } if matches!(self.jobs[task], Job::Waits { .. }) => {
                self.jobs[task] = Job::Idle;
                let grants = self.cluster.withdraw(task);
                self.granted(&grants);
            }
            Step::Overrun { task } if matches!(self.jobs[task], Job::Holds { .. }) => {
                let grants = self.cluster.overrun(task);
                self.granted(&grants);
            }
            Step::Withdraw { .. } | Step::Overrun { .. } => {}
            Step::Wait { span } => self.cluster.now += span,
        }
        self.check();
    }

    fn unlock(&mut self, task: usize) {
        if matches!(self.jobs[task], Job::Holds { .. }) {
            self.jobs[task] = Job::Idle;
            let grants = self.cluster.unlock(task);
            self.granted(&grants);
        }
    }

    fn granted(&mut self, grants: &[(usize, u16)]) {
        for &(task, replica) in grants {
            let Job::Waits { only } = self.jobs[task] else { panic!("{task} is granted what it does not wait for") };
            assert!(only.is_none_or(|gpu| replica % self.sizes.gpus == gpu), "{task} wants no token of that GPU");
            assert_eq!(self.jobs.iter().find(|&&job| job == Job::Holds { replica }), None, "{replica} has a holder");
            self.jobs[task] = Job::Holds { replica };
        }
    }

    fn check(&self) {
        for replica in 0..self.sizes.gpus * self.sizes.tokens {
            let holder = self.jobs.iter().position(|&job| job == Job::Holds { replica });
            assert_eq!(self.cluster.holder(replica), holder, "tokens are neither lost nor made");
        }
        self.check_gifts();
    }

    fn check_gifts(&self) {
        let gifts = self.cluster.gifts();
        assert!(gifts.is_sorted_by(|a, b| a.0 < b.0), "one gives to two: {gifts:?}");
        let waits = |task: usize| matches!(self.jobs[task], Job::Waits { .. });
        assert!(gifts.iter().all(|&(from, _)| waits(from)), "a task gives that does not wait: {gifts:?}");
        let donors = |donee: usize| gifts.iter().filter(|&&(_, to)| to == donee).count();
        assert!((0..TASKS).all(|task| !waits(task) || donors(task) <= 1), "two donate to one: {gifts:?}");
        let places = usize::from(self.sizes.fifo_requests)
            .min(usize::from(self.sizes.fifo_length) * usize::from(self.sizes.gpus * self.sizes.tokens));
        if self.restricted || places < self.sizes.cpus.into() {
            return;
        }
        // The priority of each of the m highest requests reaches a holder.
        for task in (0..TASKS).filter(|&task| self.jobs[task] != Job::Idle).take(self.sizes.cpus.into()) {
            let mut reached = task;
            while let Some(&(_, to)) = gifts.iter().find(|&&(from, _)| from == reached) {
                reached = to;
            }
            assert!(!waits(reached), "{task} waits, and what it gives ends at {reached}, which waits: {gifts:?}");
            assert!(self.cluster.effective(reached) <= Some(task));
        }
    }

    /// Holders unlock, until no task waits.
    fn drain(&mut self) {
        for _ in 0..TASKS {
            (0..TASKS).for_each(|task| self.unlock(task));
            self.check();
        }
        assert_eq!(self.jobs, [Job::Idle; TASKS], "a task waits though all is free");
    }
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let unbalanced =
        (1u16..5, 1u16..4, 1u16..4, 1u16..5, 1u16..12).prop_map(|(cpus, gpus, tokens, fifo_length, fifo_requests)| {
            Sizes { cpus, gpus, tokens, fifo_length, fifo_requests }
        });
    let balanced =
        (1u16..4, 1u16..3, 1u16..3).prop_map(|(f, gpus, tokens)| Sizes::balanced(f * gpus * tokens, gpus, tokens));
    prop_oneof![balanced, unbalanced]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        // Most requests will do with any GPU.
        8 => (0..TASKS, 0u16..20, 0u64..50).prop_map(|(task, only, length)| Step::Toggle { task, only, length }),
        1 => (0..TASKS).prop_map(|task| Step::Withdraw { task }),
        1 => (0..TASKS).prop_map(|task| Step::Overrun { task }),
        2 => (0u64..40).prop_map(|span| Step::Wait { span }),
    ]
}

proptest! {
    #[test]
    fn tokens_have_one_holder_and_priorities_one_way(
        sizes in sizes(),
        migration in prop::option::of(0u64..60),
        restricted in any::<bool>(),
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let cluster = sizes.predicting(TASKS, migration);
        let mut driver = Driver { sizes, cluster, jobs: [Job::Idle; TASKS], restricted: false };
        for step in steps {
            driver.step(match step {
                Step::Toggle { task, length, .. } if !restricted => Step::Toggle { task, only: u16::MAX, length },
                step => step,
            });
        }
        driver.drain();
    }
}
