//! GPUSync: token blocking and FIFO engine waits.

use laxity_analysis::gpusync::{TokenConfiguration, engine_blocking_fifo, token_hold};
use laxity_model::rng::SplitMix64;
use laxity_model::{EngineOrder, GpuArbitration, GpuSync, TokenHold};
use laxity_trace::{LockKind, TraceHeader};

use crate::system::{Section, Shape, System};
use crate::waits::{Wait, waits};

fn sync(tokens: u32, fifo_length: u32) -> GpuSync {
    GpuSync {
        tokens,
        fifo_length: Some(fifo_length),
        engine_order: EngineOrder::Fifo,
        hold: TokenHold::Section,
        ..GpuSync::DEFAULT
    }
}

fn kind<'a>(header: &'a TraceHeader, wait: &Wait) -> &'a LockKind {
    &header.locks[wait.lock.index()].kind
}

/// How long task `own` waits at most for the execution engine or the copy engine.
fn engine_wait(sections: &[Section], own: usize, kernels: bool, tokens: u32) -> u128 {
    let longest: Vec<u64> = sections.iter().map(|section| section.longest(kernels)).collect();
    engine_blocking_fifo(&longest, own, tokens)
}

/// The longest hold of a token, engine waits included.
fn longest_hold(sections: &[Section], tokens: u32) -> u64 {
    let hold = |(own, section): (usize, &Section)| {
        let wait = |kernels| engine_wait(sections, own, kernels, tokens);
        let operations: Vec<(u64, u128)> =
            section.operations.iter().map(|&(time, kernel)| (time, wait(kernel))).collect();
        token_hold(section.cpu, &operations, 0) as u64
    };
    sections.iter().enumerate().map(hold).max().unwrap_or(0)
}

/// (m, g, rho): f = m / (rho g).
const BALANCED: [(u32, u32, u32); 10] =
    [(6, 1, 1), (6, 1, 2), (6, 1, 3), (6, 1, 6), (4, 2, 1), (4, 2, 2), (6, 3, 1), (2, 1, 1), (3, 1, 1), (2, 1, 2)];

/// A request is *displaced* when it ceases to be among the m highest: it loses its donee, and may have to wait for
/// another when it returns, for up to f holds each time.
#[test]
fn no_request_that_stays_among_the_m_highest_is_blocked_for_longer_than_its_bound() {
    let (mut attained, mut displaced) = (0, 0);
    for seed in 0..10_000 {
        let mut rng = SplitMix64::new(seed);
        let (cpus, gpus, tokens) = BALANCED[seed as usize % BALANCED.len()];
        let configuration = TokenConfiguration::balanced(cpus, gpus, tokens).expect("rho * g divides m");
        let tasks = rng.between(2, 3 * u64::from(cpus)) as usize;
        let arbitration = GpuArbitration::GpuSync(sync(tokens, configuration.fifo));
        let shape = Shape {
            tasks,
            cpus: cpus as usize,
            gpus: gpus as usize,
            arbitration,
            bottom_half: 0,
            is_uniform: rng.below(2) == 0,
        };
        let system = System::random(&mut rng, &shape);
        let longest = longest_hold(&system.sections, tokens);
        let bound = configuration.token_blocking(longest, usize::MAX).expect("balanced");
        let again =
            u128::from(configuration.displacement_requests(usize::MAX).expect("balanced")) * u128::from(longest);
        let (header, records) = system.run(seed);
        for wait in waits(&header, &records) {
            if !matches!(kind(&header, &wait), LockKind::Tokens { .. }) {
                continue;
            }
            let bound = bound + u128::from(wait.displaced) * again;
            assert!(u128::from(wait.blocked) <= bound, "seed {seed}: {shape:?}: {wait:?}, not {bound}");
            attained += u64::from(u128::from(wait.blocked) == bound);
            displaced += u64::from(wait.displaced > 0);
        }
    }
    assert!(attained > 2 && displaced > 1_000, "{attained} waited for as long, {displaced} were displaced");
}

/// A CPU for each job: the holder of an engine gives it up as soon as its operation is over.
#[test]
fn no_wait_for_an_engine_is_longer_than_one_operation_of_each_other_holder() {
    let mut attained = 0;
    for seed in 0..1_500 {
        let mut rng = SplitMix64::new(seed);
        let (tasks, gpus) = (rng.between(2, 8) as usize, rng.between(1, 2) as usize);
        let tokens = rng.between(1, 4) as u32;
        let arbitration = GpuArbitration::GpuSync(sync(tokens, rng.between(1, 4) as u32));
        let shape = Shape { tasks, cpus: tasks, gpus, arbitration, bottom_half: 0, is_uniform: false };
        let system = System::random(&mut rng, &shape);
        let (header, records) = system.run(seed);
        for wait in waits(&header, &records) {
            let LockKind::Engine { engine, .. } = *kind(&header, &wait) else { continue };
            let kernels = engine == laxity_model::Engine::Execution;
            let bound = engine_wait(&system.sections, wait.job.task.index(), kernels, tokens);
            assert!(u128::from(wait.whole) <= bound, "seed {seed}: {shape:?}: {wait:?}, not {bound}");
            attained += u64::from(u128::from(wait.whole) == bound && bound > 0);
        }
    }
    assert!(attained > 100, "a bound that is hardly attained is hardly tested: {attained}");
}
