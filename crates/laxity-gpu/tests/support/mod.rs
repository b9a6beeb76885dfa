//! Arbitrations in a directory of their own.

use laxity_gpu::Registry;

/// Arbitrations in a directory of shared memory that goes with it.
pub type Place = laxity_testing::TestRegistry<Registry>;
