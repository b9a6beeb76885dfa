//! GPUSync's token blocking against a simulation of the protocol (I6), and relations between its bounds (I34).
//!
//! The protocol: a request joins the shortest FIFO queue with room, else waits in a priority queue. Top is the c
//! unfinished requests of highest priority; a Top request in the priority queue donates its priority to the lowest
//! queued request that is not in Top and has no donor. When the head of a FIFO queue completes, its donor takes the
//! place that becomes free, else the first of the priority queue. A request that waits while fewer than c of higher
//! priority are pending is blocked, suspension-oblivious. One that leaves Top while it is in the priority queue is
//! displaced, and its bound is another.

use laxity_analysis::gpusync::{TokenConfiguration, engine_blocking_fifo};
use laxity_model::rng::SplitMix64;
use proptest::prelude::*;

/// A request, which is also the whole job. Its index in the list breaks ties between arrivals.
#[derive(Clone, Copy, Debug)]
struct Request {
    arrival: u64,
    /// Smaller is higher; all differ.
    priority: u64,
    hold: u64,
}

/// The allocator of one cluster, all queues by index of the request.
struct Protocol<'a> {
    requests: &'a [Request],
    cpus: usize,
    fifo_max: usize,
    fifos: Vec<Vec<usize>>,
    /// In the priority queue, donors included.
    waiting: Vec<usize>,
    /// Of each request, its donor.
    donor: Vec<Option<usize>>,
    left: Vec<u64>,
    outcomes: Vec<Outcome>,
    /// Requests in the priority queue that are in Top.
    top_waiting: Vec<usize>,
}

/// What befell a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Ticks that it was blocked for.
    blocked: u64,
    /// How often it was displaced.
    displaced: u64,
}

impl<'a> Protocol<'a> {
    fn new(configuration: &TokenConfiguration, requests: &'a [Request]) -> Self {
        let replicas = (configuration.gpus * configuration.tokens) as usize;
        Protocol {
            requests,
            cpus: configuration.cpus as usize,
            fifo_max: configuration.fifo as usize,
            fifos: vec![Vec::new(); replicas],
            waiting: Vec::new(),
            donor: vec![None; requests.len()],
            left: requests.iter().map(|request| request.hold).collect(),
            outcomes: vec![Outcome::default(); requests.len()],
            top_waiting: Vec::new(),
        }
    }

    /// What befalls each request.
    fn run(mut self) -> Vec<Outcome> {
        let mut now = 0;
        while self.left.iter().any(|&left| left > 0) {
            self.complete();
            for request in (0..self.requests.len()).filter(|&request| self.requests[request].arrival == now) {
                self.issue(request);
                self.donate();
            }
            self.donate();
            self.tick();
            now += 1;
        }
        self.outcomes
    }

    fn complete(&mut self) {
        for fifo in 0..self.fifos.len() {
            let Some(&head) = self.fifos[fifo].first().filter(|&&head| self.left[head] == 0) else { continue };
            self.fifos[fifo].remove(0);
            let highest = || self.waiting.iter().copied().min_by_key(|&request| self.requests[request].priority);
            let Some(next) = self.donor[head].or_else(highest) else { continue };
            self.waiting.retain(|&request| request != next);
            self.donor.iter_mut().filter(|donor| **donor == Some(next)).for_each(|donor| *donor = None);
            self.fifos[fifo].push(next);
            self.donate();
        }
    }

    fn issue(&mut self, request: usize) {
        match self.fifos.iter_mut().filter(|fifo| fifo.len() < self.fifo_max).min_by_key(|fifo| fifo.len()) {
            Some(shortest) => shortest.push(request),
            None => self.waiting.push(request),
        }
    }

    /// Donors that left Top stop; Top requests in the priority queue begin, the highest first.
    fn donate(&mut self) {
        let mut unfinished: Vec<usize> = self.fifos.iter().flatten().chain(&self.waiting).copied().collect();
        unfinished.sort_by_key(|&request| self.requests[request].priority);
        let top = &unfinished[..unfinished.len().min(self.cpus)];
        let displaced =
            self.top_waiting.iter().filter(|request| self.waiting.contains(request) && !top.contains(request));
        displaced.for_each(|&request| self.outcomes[request].displaced += 1);
        self.top_waiting = top.iter().copied().filter(|request| self.waiting.contains(request)).collect();
        self.donor.iter_mut().filter(|donor| donor.is_some_and(|donor| !top.contains(&donor))).for_each(|d| *d = None);
        for request in top.iter().copied().filter(|request| self.waiting.contains(request)) {
            if self.donor.contains(&Some(request)) {
                continue;
            }
            let queued = self.fifos.iter().flatten().copied();
            let donee = queued.filter(|queued| !top.contains(queued) && self.donor[*queued].is_none());
            let donee = donee.max_by_key(|&queued| self.requests[queued].priority);
            // The queues hold at least c requests when one waits, so as many outside Top as Top has waiting.
            self.donor[donee.expect("a request to donate to")] = Some(request);
        }
    }

    fn tick(&mut self) {
        let heads: Vec<usize> = self.fifos.iter().filter_map(|fifo| fifo.first().copied()).collect();
        let pending: Vec<usize> = self.fifos.iter().flatten().chain(&self.waiting).copied().collect();
        for &request in pending.iter().filter(|request| !heads.contains(request)) {
            let priority = self.requests[request].priority;
            let higher = pending.iter().filter(|&&other| self.requests[other].priority < priority).count();
            self.outcomes[request].blocked += u64::from(higher < self.cpus);
        }
        for head in heads {
            self.left[head] -= 1;
        }
    }
}

fn balanced(cpus: u32, gpus: u32, tokens: u32) -> TokenConfiguration {
    TokenConfiguration::balanced(cpus, gpus, tokens).expect("rho * g divides c")
}

fn random_requests(rng: &mut SplitMix64, cpus: u32) -> (Vec<Request>, u64) {
    let count = rng.between(2, 4 * u64::from(cpus)) as usize;
    let longest = rng.between(1, 5);
    let span = rng.between(1, 3 * longest * u64::from(cpus));
    let mut priorities: Vec<u64> = (0..count as u64).collect();
    for last in (1..count).rev() {
        priorities.swap(last, rng.below(last as u64 + 1) as usize);
    }
    // Later arrivals tend to be of higher priority in half of the cases: the worst for those that wait.
    if rng.below(2) == 0 {
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        let (a, b) = (rng.below(count as u64) as usize, rng.below(count as u64) as usize);
        priorities.swap(a, b);
    }
    let mut arrivals: Vec<u64> = (0..count).map(|_| rng.below(span)).collect();
    arrivals.sort_unstable();
    let hold = |rng: &mut SplitMix64| if rng.below(2) == 0 { longest } else { rng.between(1, longest) };
    let request = |(arrival, priority)| Request { arrival, priority, hold: hold(rng) };
    (arrivals.into_iter().zip(priorities).map(request).collect(), longest)
}

const SIZES: [(u32, u32, u32); 8] =
    [(6, 1, 1), (6, 1, 2), (6, 1, 3), (6, 1, 6), (4, 2, 1), (4, 2, 2), (6, 3, 1), (3, 1, 1)];

/// The sizes, the requests and the longest hold that follow from `seed`. Half of the time the queues are longer than
/// they need be.
fn random_system(seed: u64) -> (TokenConfiguration, Vec<Request>, u64) {
    let (cpus, gpus, tokens) = SIZES[(seed % SIZES.len() as u64) as usize];
    let mut rng = SplitMix64::new(seed);
    let mut configuration = balanced(cpus, gpus, tokens);
    configuration.fifo += (rng.below(4) / 2 * rng.between(1, 3)) as u32;
    let (requests, longest) = random_requests(&mut rng, cpus);
    (configuration, requests, longest)
}

#[test]
fn no_request_is_blocked_for_longer_than_its_token_bound() {
    let mut attained = [0; SIZES.len()];
    // The last systems are around the one of the next test.
    for seed in (0..8_000).chain(40_000..41_000) {
        let (configuration, requests, longest) = random_system(seed);
        let coarse = configuration.token_blocking(longest, requests.len()).expect("balanced");
        let more = configuration.displacement_requests(requests.len()).expect("balanced") * longest;
        let holds: Vec<u64> = requests.iter().map(|request| request.hold).collect();
        for (own, outcome) in Protocol::new(&configuration, &requests).run().into_iter().enumerate() {
            let Outcome { blocked, displaced } = outcome;
            let bound = coarse + u128::from(displaced * more);
            let told = || format!("seed {seed}: {configuration:?} {requests:?}: {own}: {outcome:?}");
            assert!(u128::from(blocked) <= bound, "{}, not {bound}", told());
            // Every task requests once.
            let fine = configuration.token_blocking_fine(&holds, own).expect("balanced");
            assert!(u128::from(blocked) <= fine || displaced > 0, "{}, not {fine}", told());
            attained[(seed % SIZES.len() as u64) as usize] += u32::from(u128::from(blocked) == coarse);
        }
    }
    assert!(attained.iter().all(|&count| count > 10), "{attained:?}");
}

/// Six CPUs, three tokens, two places each, holds of up to 3: without displacement no request would be blocked for longer
/// than 9.
#[test]
fn a_displaced_request_may_be_blocked_for_longer() {
    let (configuration, requests, longest) = random_system(40_662);
    assert_eq!(configuration.token_blocking(longest, requests.len()), Ok(9));
    let outcomes = Protocol::new(&configuration, &requests).run();
    assert_eq!(outcomes[14], Outcome { blocked: 10, displaced: 1 });
}

/// The lowest request sits last in a queue when the highest arrives and donates to it; meanwhile others refill the
/// queue, and the highest then waits behind them.
#[test]
fn the_token_bound_is_attained_when_the_donee_is_last_in_a_refilled_queue() {
    const HOLD: u64 = 7;
    for (tokens, bound) in [(1, 11), (2, 5), (3, 3), (6, 1)] {
        let configuration = balanced(6, 1, tokens);
        assert_eq!(configuration.blocking_requests(100), Ok(bound));
        let request = |priority| Request { arrival: 0, priority, hold: HOLD };
        // Six low requests fill the queues, the lowest last; then the highest, then enough to refill the queues.
        let mut requests: Vec<Request> = (0..6).map(|index| request(100 + index)).collect();
        requests.push(request(0));
        requests.extend((0..5).map(|index| request(50 + index)));
        let outcomes = Protocol::new(&configuration, &requests).run();
        assert_eq!(outcomes[6], Outcome { blocked: bound * HOLD, displaced: 0 }, "{tokens} tokens");
    }
}

proptest! {
    /// I34: with one token per GPU its holder has the engines to itself.
    #[test]
    fn one_token_leaves_no_other_user_to_wait_for_at_an_engine(operations in prop::collection::vec(0u64..100, 1..9), own in 0usize..9) {
        let own = own % operations.len();
        prop_assert_eq!(engine_blocking_fifo(&operations, own, 1), 0);
        let all: u128 = operations.iter().map(|&operation| u128::from(operation)).sum();
        prop_assert_eq!(engine_blocking_fifo(&operations, own, 100), all - u128::from(operations[own]));
        for tokens in 1..8 {
            let (fewer, more) = (engine_blocking_fifo(&operations, own, tokens), engine_blocking_fifo(&operations, own, tokens + 1));
            prop_assert!(fewer <= more);
        }
    }

    /// I34: longer queues never shorten token blocking.
    #[test]
    fn token_blocking_does_not_fall_with_the_length_of_the_queues(
        cpus in 1u32..13, gpus in 1u32..4, tokens in 1u32..5, requesters in 0usize..30, longest in 0u64..1_000,
    ) {
        let first = cpus.div_ceil(gpus * tokens);
        let blocking = |fifo| TokenConfiguration { cpus, gpus, tokens, fifo }.token_blocking(longest, requesters);
        for fifo in first..first + 20 {
            prop_assert!(blocking(fifo).expect("long enough") <= blocking(fifo + 1).expect("long enough"));
        }
        prop_assert!(first == 1 || blocking(first - 1).is_err());
    }
}
