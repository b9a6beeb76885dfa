//! A pipeline of five nodes that hand numbers on: what is lost, stale or torn is seen.
#![allow(dead_code, reason = "each test file uses some of it")]

use laxity_graph::{Channel, ChannelKind, Job, MessageError, Node, Spec, WaitError};
use laxity_testing::HANG;

use crate::support::{back, edge, graph};

/// a --ring--> b --ring--> c --counter--> d --ring--> sink, and a counter from a to c; sink --counter back--> a.
pub fn pipeline() -> Spec {
    pipeline_of([ChannelKind::Ring, ChannelKind::Ring, ChannelKind::Counter, ChannelKind::Ring, ChannelKind::Counter])
}

/// Likewise, of other kinds of edges.
pub fn pipeline_of(kinds: [ChannelKind; 5]) -> Spec {
    let edges = vec![edge(0, 1), edge(1, 2), edge(2, 3), edge(3, 4), edge(0, 2), back(4, 0, 6)];
    let mut channels = kinds.map(|kind| kind.channel(LENGTH as u32, 3)).to_vec();
    channels.push(Channel::Counter);
    Spec::with_channels(graph(&["a", "b", "c", "d", "sink"], edges), channels).expect("a graph that can be")
}

/// Of a message: a pipe takes it in two pieces.
pub const LENGTH: usize = 6000;

/// All edges of the pipeline are rings that exchange buffers.
pub fn swapping_pipeline() -> Spec {
    pipeline_of([ChannelKind::Ring; 5]).with_swapping(&[0, 1, 2, 3, 4]).expect("rings of one length")
}

/// Every message of job `index` says so, from its first byte to its last. Answers how many were lost on the way.
pub fn exchange(job: &mut Job<'_>) -> u32 {
    let mut lost = 0;
    let index = job.index();
    let number = index.to_le_bytes();
    let inputs = job.messages().0;
    for edge in 0..6 {
        match inputs.get(edge, 0) {
            Ok(message) => {
                assert_eq!(message.len(), LENGTH, "edge {edge}, job {number:?}: not written");
                assert!(message.chunks(8).all(|chunk| chunk == number), "edge {edge}, job {number:?}: stale or torn");
            }
            Err(MessageError::Lost { .. }) => lost += 1,
            Err(_) => {}
        }
    }
    // Where buffers are exchanged some jobs hand on what came, as it is or written again in place.
    match index % 3 {
        1 if hands_on(job) => return lost,
        2 => _ = hands_on(job),
        _ => {}
    }
    let mut outputs = job.messages().1;
    for edge in 0..6 {
        if let Ok(message) = outputs.get(edge, 0) {
            message.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&number));
        }
    }
    lost
}

/// Swaps a message that came with the one that goes, if there are such edges.
pub fn hands_on(job: &mut Job<'_>) -> bool {
    (0..5).flat_map(|from| (0..5).map(move |to| (from, to))).any(|(from, to)| job.swap((from, 0), (to, 0)).is_ok())
}

/// One job of `node`, whatever dies meanwhile: its number, and how many of its messages were lost.
pub fn one_job(node: &mut Node) -> (u64, u32) {
    loop {
        match node.wait_for(HANG) {
            Ok(mut job) => {
                let done = (job.index(), exchange(&mut job));
                job.complete();
                return done;
            }
            Err(WaitError::Lost { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
