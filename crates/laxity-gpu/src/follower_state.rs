//! The threads that follow holders, as snapshots show them.

use laxity_membership::MEMBERS_MAX;
use laxity_sys::scheduling::{self, Attributes};
use serde::Serialize;

use crate::shared::Shared;

/// A thread that works on behalf of those that hold tokens of a GPU: the live klmirqd. Serialized, it is a follower of the
/// JSON that `docs/reference/json.md` describes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FollowerState {
    /// The GPU.
    pub gpu: u16,
    /// What Linux calls it; empty if that is not known here.
    pub name: String,
    /// Its process, for whose holders it works.
    pub pid: u32,
    /// Its number.
    pub thread: u32,
    /// Its present fixed priority, as Linux says it; `None` if it has none.
    #[serde(rename = "fixed")]
    pub priority: Option<u8>,
    /// Why Linux did not let it be as urgent as it had to be, when that was tried last: an error number.
    #[serde(rename = "refused_errno")]
    pub refused: Option<i32>,
}

impl FollowerState {
    /// All that live, by GPU, process and number.
    pub(crate) fn all(shared: &Shared) -> Vec<FollowerState> {
        let indices = 0..shared.layout.followers_max();
        let slots = (0..MEMBERS_MAX).flat_map(|slot| indices.clone().map(move |index| (slot, index)));
        let mut all: Vec<_> = slots.filter_map(|(slot, index)| Self::read(shared, slot, index)).collect();
        all.sort_by_key(|follower| (follower.gpu, follower.pid, follower.thread));
        all
    }

    fn read(shared: &Shared, slot: usize, index: usize) -> Option<FollowerState> {
        let words = shared.layout.follower(slot, index);
        let thread = shared.number(words.thread);
        let pid = shared.pid(slot);
        // A follower that ended without being dropped, or whose process was killed, may have given its number to another.
        if thread == 0 || !scheduling::is_thread_of(thread, pid) {
            return None;
        }
        Some(FollowerState {
            gpu: shared.number(words.gpu) as u16,
            pid,
            thread,
            name: scheduling::thread_name(thread, pid).unwrap_or_default(),
            priority: Attributes::of(thread).ok()?.fixed_priority(),
            refused: Some(shared.number(words.refused) as i32).filter(|&error| error != 0),
        })
    }
}
