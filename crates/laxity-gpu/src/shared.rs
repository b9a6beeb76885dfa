//! An arbitration as this process has it open: its memory, and the arbiter that works on the state there.

use std::ops::Deref;
use std::sync::Mutex;

use laxity_sys::peers::Peers;
use laxity_sys::segment::Segment;

use crate::arbiter_cache::ArbiterCache;
use crate::config::Config;
use crate::memory::Memory;

#[derive(Debug)]
pub(crate) struct Shared {
    memory: Memory,
    /// For the thread that holds the state lock.
    pub cache: Mutex<ArbiterCache>,
    /// The processes whose threads this one may schedule.
    pub peers: Peers,
}

impl Shared {
    /// `segment` is that of a draft, or of one of our arbitrations.
    pub fn new(segment: Segment, name: String, config: Config) -> Self {
        let (arbiter, layout) = Memory::arbiter_and_layout(&config);
        let memory = Memory::new(segment, name, config, layout);
        let cache = Mutex::new(ArbiterCache::new(arbiter, memory.locks.len(), config.clients));
        Shared { memory, cache, peers: Peers::default() }
    }
}

impl Deref for Shared {
    type Target = Memory;

    #[inline(always)]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}
