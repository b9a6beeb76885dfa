//! What clients do that share GPUs, at random, under the eyes of a witness.

use std::sync::atomic::Ordering;

use laxity_gpu::{Client, LockError, Token, TokenRequest};
use laxity_model::{CopyDirection, Engine, Instant, Nanos};
use laxity_sys::clock::now;

use crate::witness::Witness;
use laxity_testing::{Random, soon};

/// A token for a while, if it is granted, and some engines with it.
pub fn turn(witness: &Witness, client: &Client, gpus: u16, worker: u64, random: &mut Random) {
    let (deadline, is_patient) = match random.below(8) {
        0 => (Instant::ZERO, false),
        1 => (now().saturating_add(Nanos::from_micros(random.below(300))), false),
        _ => (soon(), true),
    };
    let gpu = (random.below(3) == 0).then(|| random.below(gpus.into()) as u16);
    let token = match client.request(TokenRequest { gpu, deadline, length: Nanos::ZERO }) {
        Ok(token) => token,
        Err(LockError::TimedOut { .. }) if !is_patient => return,
        Err(error) => panic!("{error}"),
    };
    assert!(gpu.is_none_or(|gpu| gpu == token.gpu()));
    let place = usize::from(token.replica().0);
    witness.enter(place, worker);
    for _ in 0..random.below(3) {
        engines(witness, &token, gpus, worker, random);
    }
    witness.leave(place, worker);
    witness.progress(worker).fetch_add(1, Ordering::SeqCst);
}

fn engines(witness: &Witness, token: &Token<'_>, gpus: u16, worker: u64, random: &mut Random) {
    let place = |gpu: u16, engine: Engine| 32 + 3 * usize::from(gpu) + engine.index();
    let hold = |place: usize| {
        witness.enter(place, worker);
        witness.leave(place, worker);
    };
    match random.below(4) {
        0 if gpus > 1 => {
            let pair = token.peer_copy((token.gpu() + 1) % gpus, soon()).expect("in time");
            let places = pair.engines().each_ref().map(|engine| place(engine.gpu(), engine.engine()));
            places.iter().for_each(|&place| witness.enter(place, worker));
            places.iter().for_each(|&place| witness.leave(place, worker));
        }
        1 => {
            let mut chunks = token.copy_chunks(CopyDirection::Out, 2500, soon());
            while let Some(chunk) = chunks.next().expect("in time") {
                hold(place(token.gpu(), chunk.engine().engine()));
            }
        }
        _ => {
            let engine = token.engine(Engine::Execution, soon()).expect("in time");
            hold(place(token.gpu(), engine.engine()));
        }
    }
}
