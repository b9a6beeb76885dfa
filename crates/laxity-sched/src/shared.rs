//! A system as this process has it open: its memory, and for each cluster the policy that works on the state there.

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

use laxity_sys::peers::Peers;
use laxity_sys::scheduling::Attributes;
use laxity_sys::segment::Segment;

use crate::cluster_cache::ClusterCache;
use crate::config::Config;
use crate::layout::Layout;
use crate::locks_cache::LocksCache;
use crate::memory::Memory;

#[derive(Debug)]
pub(crate) struct Shared {
    memory: Memory,
    /// Of each cluster, for the thread that holds its state lock.
    pub caches: Vec<Mutex<ClusterCache>>,
    /// Of the locks, for the thread that holds their state lock.
    pub locks: Mutex<LocksCache>,
    /// The processes whose threads this one may schedule.
    pub peers: Peers,
    /// For each task the number of its thread, if that is one of this process; else 0.
    pub own_threads: Vec<AtomicU32>,
    /// By [`Class`](crate::placement::Class).
    pub attributes_of_classes: [Attributes; 5],
}

impl Shared {
    /// `segment` is that of a draft, or of one of our systems.
    pub fn new(segment: Segment, name: String, config: Config, layout: Layout) -> Self {
        let caches = config.clusters.iter().map(|cpus| ClusterCache::new(&config, cpus.len()));
        let caches = caches.map(Mutex::new).collect();
        let [waiting, running, urgent] =
            [0, 1, 2].map(|class| Attributes::fifo_not_inherited(config.base_priority + class));
        let attributes_of_classes = [Attributes::ordinary_not_inherited(), waiting, waiting, running, urgent];
        let own_threads = (0..config.tasks).map(|_| AtomicU32::new(0)).collect();
        let locks = Mutex::new(LocksCache::new(&config));
        let memory = Memory { segment, layout, name, config };
        Shared { memory, caches, locks, peers: Peers::default(), own_threads, attributes_of_classes }
    }

    /// The layout of a valid configuration.
    pub fn layout(config: &Config) -> Layout {
        let longest = config.clusters.iter().map(|cpus| ClusterCache::new(config, cpus.len()).saved_max()).max();
        let longest = longest.unwrap_or(0).max(LocksCache::new(config).saved_max());
        // After the clusters come the locks.
        Layout::new(config.clusters.len() + 1, config.tasks.into(), longest)
    }
}

impl Deref for Shared {
    type Target = Memory;

    #[inline(always)]
    fn deref(&self) -> &Memory {
        &self.memory
    }
}
