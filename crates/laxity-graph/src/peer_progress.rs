//! What a node knows of its peers: for how many of its jobs they have done enough, and which of them are gone.

use std::sync::atomic::Ordering;

use laxity_model::Instant;
use laxity_policy::graph::Edge;
use laxity_sys::{clock, scheduling};

use crate::link::Ends;
use crate::owner::{Owner, State};
use crate::shared::{Condition, Shared};
use crate::wait_error::WaitError;

/// How far a peer was when the node looked last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerProgress {
    /// Jobs that it had completed, and how many of these when it was seen before.
    completed: u64,
    before: u64,
    /// Jobs of the node for which what the peer had completed suffices. There may be more by now, but the peer need not be
    /// asked before these are complete.
    pub jobs: u64,
    /// Its owner word when its loss was reported last.
    reported: u64,
}

/// Jobs of a peer from one look to the next, below which the second was too early.
const FEW: u64 = 16;

impl PeerProgress {
    /// Before anything was seen: the tokens and room that were there at the start.
    pub fn first(rule: &Edge) -> PeerProgress {
        PeerProgress { jobs: rule.enabled(0), ..PeerProgress::default() }
    }

    /// The peer has `completed` jobs.
    fn note(&mut self, rule: &Edge, completed: u64) {
        if completed != self.completed {
            self.before = self.completed;
            self.completed = completed;
            self.jobs = rule.enabled(completed);
        }
    }

    /// Whether the peer had completed several jobs, but few, when it was seen last.
    ///
    /// Then it goes on while this node works off what it did. Each look takes the cache line from it that it writes with
    /// every job, and soon both would wait for that line with every job; if it gets ahead, only now and then. A peer that
    /// had completed just one job may wait for this node in turn, and is not left alone.
    pub fn is_close_behind(&self) -> bool {
        (2..FEW).contains(&self.completed.saturating_sub(self.before))
    }
}

/// Whether all that job `index` of `node` waits for is on other CPUs than this thread: a peer on this one could not go on
/// while it spins.
pub(crate) fn are_elsewhere(shared: &Shared, node: usize, index: u64) -> bool {
    let here = scheduling::current_cpu() as u64 + 1;
    let cpu = |node: usize| u64::from(shared.segment.u32(shared.words(node).cpu).load(Ordering::Relaxed));
    let waiting = |condition: &&Condition| condition.rule.enabled(shared.completed(condition.peer)) <= index;
    shared.conditions(node).iter().filter(waiting).all(|condition| ![0, here].contains(&cpu(condition.peer)))
}

/// Whether job `index` of `node` may run; `None` if it has to wait.
pub(crate) fn look(
    shared: &Shared,
    node: usize,
    index: u64,
    peers: &mut [PeerProgress],
    links: &mut Ends,
    deadline: Instant,
) -> Result<Option<()>, WaitError> {
    if shared.has_terminated(node) {
        return Err(WaitError::Terminated { node: shared.name(node), edge: None });
    }
    let mut is_ready = true;
    for (condition, progress) in shared.conditions(node).iter().zip(peers) {
        if progress.jobs > index || has_come(shared, condition, progress, index) {
            continue;
        }
        let absence = absence(shared, condition, progress.reported);
        // It may have completed jobs between the first look and its end.
        if has_come(shared, condition, progress, index) {
            continue;
        }
        is_ready = false;
        let edge = || shared.ends(condition.edge);
        let peer = || shared.name(condition.peer);
        match absence {
            Absence::None => {}
            Absence::Lost(owner) => {
                progress.reported = owner.word();
                let pid = shared.pid(owner);
                return Err(WaitError::Lost { node: peer(), edge: edge(), pid });
            }
            Absence::Terminated => {
                if condition.ends_with_peer {
                    shared.terminate(node);
                }
                return Err(WaitError::Terminated { node: peer(), edge: Some(edge()) });
            }
        }
    }
    if is_ready { links.prepare(shared, deadline) } else { Ok(None) }
}

fn has_come(shared: &Shared, condition: &Condition, progress: &mut PeerProgress, index: u64) -> bool {
    progress.note(&condition.rule, shared.completed(condition.peer));
    progress.jobs > index
}

enum Absence {
    None,
    Lost(Owner),
    Terminated,
}

/// Why the peer of a condition may not fulfil it.
fn absence(shared: &Shared, condition: &Condition, reported: u64) -> Absence {
    let owner = shared.owner(condition.peer);
    if shared.is_over(condition.peer) {
        Absence::Terminated
    } else if owner.state == State::Lost && owner.word() != reported {
        Absence::Lost(owner)
    } else {
        Absence::None
    }
}

/// Looks until `end` without giving up the CPU.
#[inline(always)]
pub(crate) fn spin_until<T>(end: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        // The clock costs more than a look.
        for _ in 0..16 {
            if let Some(found) = look() {
                return Some(found);
            }
            std::hint::spin_loop();
        }
        if clock::now() >= end {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_policy::graph::EdgeKind;

    use super::*;

    /// A producer that adds one token with each job, of which there are two at the start; a consumer that needs two and
    /// takes one.
    const EDGE: Edge = Edge {
        producer: 0,
        consumer: 1,
        produce: 1,
        consume: 1,
        threshold: 2,
        initial: 2,
        kind: EdgeKind::Token,
        delay: 0,
    };

    /// What a node saw that looked when its peer had completed so many jobs.
    fn seen(looks: &[u64]) -> PeerProgress {
        let mut progress = PeerProgress::first(&EDGE);
        looks.iter().for_each(|&completed| progress.note(&EDGE, completed));
        progress
    }

    #[test]
    fn it_knows_how_many_jobs_are_ready_from_the_start_on() {
        assert_eq!(seen(&[]).jobs, 1);
        assert_eq!(seen(&[0, 7]).jobs, 8);
    }

    #[test]
    fn only_a_peer_that_goes_on_a_few_jobs_ahead_is_left_alone() {
        assert!(seen(&[10, 13]).is_close_behind());
        assert!(seen(&[10, 13, 13]).is_close_behind(), "nothing new is no news");
        assert!(!seen(&[]).is_close_behind(), "nothing is known");
        assert!(!seen(&[10, 11]).is_close_behind(), "it may wait for this node");
        assert!(!seen(&[10, 10 + FEW]).is_close_behind(), "a look was worth it");
        assert!(!seen(&[10, 13, 14]).is_close_behind(), "it takes turns now");
    }
}
