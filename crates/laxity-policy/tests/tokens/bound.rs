//! The token blocking bound: with queues that hold one request per CPU, `rho * g * f = m`, no request is pi-blocked
//! for longer than `(2 f - 1) L`, suspension-oblivious, L being the longest hold.
//!
//! A request is pi-blocked in a slot in which it waits while fewer than m jobs of higher base priority are pending.

use laxity_model::rng::SplitMix64;

use crate::cluster::{Cluster, Sizes};

const BALANCED: [Sizes; 10] = [
    Sizes::balanced(6, 1, 1),
    Sizes::balanced(6, 1, 2),
    Sizes::balanced(6, 1, 3),
    Sizes::balanced(6, 1, 6),
    Sizes::balanced(4, 2, 1),
    Sizes::balanced(4, 2, 2),
    Sizes::balanced(6, 3, 1),
    Sizes::balanced(2, 1, 1),
    Sizes::balanced(3, 1, 1),
    Sizes::balanced(4, 1, 2),
];

/// What is left of a job, in slots. Its index is its priority.
#[derive(Clone, Debug)]
struct Job {
    arrival: u64,
    /// On a CPU, before it asks for a token and after it has unlocked it.
    before: u64,
    after: u64,
    /// While it holds the token, the last slot first: on a CPU, or suspended for the GPU. Empty: it asks for none.
    section: Vec<On>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Cpu,
    Gpu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Future,
    Before,
    Waits,
    Holds,
    After,
    Done,
}

/// m CPUs, global, preemptive, by effective priority; a slot at a time.
struct Schedule {
    cpus: usize,
    jobs: Vec<Job>,
    phases: Vec<Phase>,
    blocked: Vec<u64>,
    cluster: Cluster,
}

impl Schedule {
    fn new(sizes: Sizes, jobs: Vec<Job>) -> Self {
        let count = jobs.len();
        let phases = vec![Phase::Future; count];
        Schedule { cpus: sizes.cpus.into(), jobs, phases, blocked: vec![0; count], cluster: sizes.cluster(count) }
    }

    /// Slots that each job is pi-blocked for.
    fn run(mut self) -> Vec<u64> {
        for now in 0.. {
            self.cluster.now = now;
            // Unlocks come before requests of the same instant.
            (0..self.jobs.len()).for_each(|job| self.leave(job));
            (0..self.jobs.len()).for_each(|job| self.enter(job, now));
            if self.phases.iter().all(|&phase| phase == Phase::Done) {
                break;
            }
            self.slot();
        }
        self.blocked
    }

    /// Phases that are over.
    fn leave(&mut self, job: usize) {
        if self.phases[job] == Phase::Holds && self.jobs[job].section.is_empty() {
            self.phases[job] = Phase::After;
            let grants = self.cluster.unlock(job);
            self.granted(&grants);
        }
        if self.phases[job] == Phase::After && self.jobs[job].after == 0 {
            self.phases[job] = Phase::Done;
            self.cluster.complete(job);
        }
    }

    /// Phases that begin.
    fn enter(&mut self, job: usize, now: u64) {
        if self.phases[job] == Phase::Future && self.jobs[job].arrival == now {
            self.phases[job] = Phase::Before;
            self.cluster.arrive(job);
        }
        if self.phases[job] == Phase::Before && self.jobs[job].before == 0 {
            if self.jobs[job].section.is_empty() {
                self.phases[job] = Phase::After;
                return self.leave(job);
            }
            self.phases[job] = Phase::Waits;
            let grants = self.cluster.request(job);
            self.granted(&grants);
        }
    }

    fn granted(&mut self, grants: &[(usize, u16)]) {
        for &(job, _) in grants {
            assert_eq!(self.phases[job], Phase::Waits, "a grant goes to one who waits");
            self.phases[job] = Phase::Holds;
        }
    }

    fn slot(&mut self) {
        let pending: Vec<usize> =
            (0..self.jobs.len()).filter(|&job| !matches!(self.phases[job], Phase::Future | Phase::Done)).collect();
        for (higher, &job) in pending.iter().enumerate() {
            self.blocked[job] += u64::from(self.phases[job] == Phase::Waits && higher < self.cpus);
        }
        let on_gpu = |&job: &usize| self.phases[job] == Phase::Holds && self.jobs[job].section.last() == Some(&On::Gpu);
        let (served, mut ready): (Vec<usize>, Vec<usize>) = { pending }.into_iter().partition(on_gpu);
        ready.retain(|&job| self.phases[job] != Phase::Waits);
        ready.sort_by_key(|&job| self.cluster.priority(job));
        ready.truncate(self.cpus);
        for job in served.into_iter().chain(ready) {
            match self.phases[job] {
                Phase::Before => self.jobs[job].before -= 1,
                Phase::Holds => drop(self.jobs[job].section.pop()),
                Phase::After => self.jobs[job].after -= 1,
                Phase::Future | Phase::Waits | Phase::Done => unreachable!("it is ready"),
            }
        }
    }
}

/// The later jobs tend to be of higher priority in half of the systems: the worst for those that wait.
fn random_jobs(rng: &mut SplitMix64, cpus: u64) -> Vec<Job> {
    let count = rng.between(2, 4 * cpus);
    let longest = rng.between(1, 5);
    let span = rng.between(1, 3 * longest * cpus);
    let (gpu_share, lone_share) = (rng.below(5), rng.below(3));
    let job = |rng: &mut SplitMix64| {
        let hold = if rng.below(2) == 0 { longest } else { rng.between(1, longest) };
        let hold = if rng.below(8) < lone_share { 0 } else { hold };
        let on = |rng: &mut SplitMix64| if rng.below(4) < gpu_share { On::Gpu } else { On::Cpu };
        let section = (0..hold).map(|_| on(rng)).collect();
        let spare = |rng: &mut SplitMix64| rng.below(3) / 2 * rng.below(4);
        Job { arrival: rng.below(span), before: spare(rng), after: spare(rng), section }
    };
    let mut jobs: Vec<Job> = (0..count).map(|_| job(rng)).collect();
    if rng.below(2) == 0 {
        jobs.sort_by_key(|job| std::cmp::Reverse(job.arrival));
        let (a, b) = (rng.below(count) as usize, rng.below(count) as usize);
        jobs.swap(a, b);
    }
    jobs
}

fn longest(jobs: &[Job]) -> u64 {
    jobs.iter().map(|job| job.section.len() as u64).max().unwrap_or(0)
}

/// Mutations that this fails for: `Tokens::donate` without a body; `Requests::donate` that promotes nobody (only the
/// job that asks may become a donor); a refill that ignores the releaser's own donor.
#[test]
fn no_request_is_pi_blocked_for_longer_than_its_bound() {
    let mut attained = [0; BALANCED.len()];
    for seed in 0..10_000u64 {
        let which = (seed % BALANCED.len() as u64) as usize;
        let sizes = BALANCED[which];
        let jobs = random_jobs(&mut SplitMix64::new(seed), sizes.cpus.into());
        let bound = (2 * u64::from(sizes.fifo_length) - 1) * longest(&jobs);
        let blocked = Schedule::new(sizes, jobs.clone()).run();
        for (job, &blocked) in blocked.iter().enumerate() {
            assert!(blocked <= bound, "seed {seed}: {sizes:?}: job {job} for {blocked} of {bound} in {jobs:#?}");
            attained[which] += u32::from(bound > 0 && blocked == bound);
        }
    }
    eprintln!("attained {attained:?}");
}
