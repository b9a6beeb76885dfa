//! Operations as arbitration sees them, and the engines that they occupy.

use std::ops::Range;

use laxity_model::{CopyDirection, Engine};

use crate::gpu::copy_engine;

/// An operation that a program issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A GPU kernel, or a fill or copy within the memory of the device, which the execution engine does.
    Kernel {
        /// Operations of the same key take about as long as each other: a number of the kernel.
        key: u64,
    },
    /// A copy from the host to the device.
    CopyIn {
        /// How many bytes.
        bytes: u64,
    },
    /// A copy from the device to the host.
    CopyOut {
        /// How many bytes.
        bytes: u64,
    },
    /// Complete when what it waits for is; occupies no engine.
    Marker,
    /// As a marker, and whatever is issued to its stream afterwards waits for it.
    Barrier,
}

/// The engines of a GPU, as far as a program's operations can be told apart. Drivers choose engines themselves and tell
/// no program which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineUse {
    /// All operations occupy one: the memory is the host's, or there is no copy engine.
    One,
    /// Kernels occupy the execution engine, copies between host and device a copy engine.
    Separate {
        /// 1, which takes copies in both directions, or 2.
        copy_engines: u8,
    },
}

impl EngineUse {
    /// The engine that does `work`; `None`: it needs none.
    pub fn engine(self, work: Work) -> Option<Engine> {
        let direction = match work {
            Work::Kernel { .. } => return Some(Engine::Execution),
            Work::Marker | Work::Barrier => return None,
            Work::CopyIn { .. } => CopyDirection::In,
            Work::CopyOut { .. } => CopyDirection::Out,
        };
        Some(match self {
            EngineUse::One => Engine::Execution,
            EngineUse::Separate { copy_engines } => copy_engine(copy_engines, direction),
        })
    }
}

impl Work {
    /// Whether its completion is all that operations behind it in its stream wait for.
    pub(super) fn uses_no_engine(self) -> bool {
        matches!(self, Work::Marker | Work::Barrier)
    }

    /// What operations have in common that take about as long as each other: a kernel, or copies in one direction of
    /// sizes within a factor of two.
    pub(super) fn key(self) -> Option<u64> {
        match self {
            // Two bits say what it is; keys of kernels are numbers from 0 on.
            Work::Kernel { key } => Some(key << 2),
            Work::CopyIn { bytes } => Some(u64::from(bytes.max(1).ilog2()) << 2 | 1),
            Work::CopyOut { bytes } => Some(u64::from(bytes.max(1).ilog2()) << 2 | 2),
            Work::Marker | Work::Barrier => None,
        }
    }
}

/// The parts of a copy of `bytes` bytes, each of at most `chunk`, in order. Without `chunk`, and for a copy of no bytes,
/// one part.
///
/// A copy in chunks gives up its engine between two of them, so that another waits for one chunk at most (paper 003,
/// section 3.2.3.4).
pub fn chunks(bytes: u64, chunk: Option<u64>) -> impl Iterator<Item = Range<u64>> {
    let chunk = chunk.unwrap_or(bytes).max(1);
    let count = bytes.div_ceil(chunk).max(1);
    (0..count).map(move |number| number * chunk..bytes.min((number + 1).saturating_mul(chunk)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_engine_takes_all_and_separate_ones_take_what_is_theirs() {
        let kernel = Work::Kernel { key: 7 };
        let (copy_in, copy_out) = (Work::CopyIn { bytes: 1 }, Work::CopyOut { bytes: 1 });
        let engines = |engines: EngineUse| [kernel, copy_in, copy_out, Work::Marker].map(|work| engines.engine(work));
        let execution = Some(Engine::Execution);
        assert_eq!(engines(EngineUse::One), [execution, execution, execution, None]);
        let copies = [Some(Engine::Copy(0)), Some(Engine::Copy(1))];
        let separate = engines(EngineUse::Separate { copy_engines: 2 });
        assert_eq!(separate, [execution, copies[0], copies[1], None]);
        let shared = engines(EngineUse::Separate { copy_engines: 1 });
        assert_eq!(shared, [execution, copies[0], copies[0], None]);
    }

    #[test]
    fn chunks_cover_a_copy_once_in_order() {
        for (bytes, chunk) in
            [(0, None), (10, None), (10, Some(4)), (8, Some(4)), (3, Some(4)), (1 << 40, Some(1 << 38))]
        {
            let parts: Vec<_> = chunks(bytes, chunk).collect();
            assert_eq!(parts.first().map(|part| part.start), Some(0));
            assert_eq!(parts.last().map(|part| part.end), Some(bytes));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{parts:?}");
            assert!(parts.iter().all(|part| chunk.is_none_or(|chunk| part.end - part.start <= chunk)), "{parts:?}");
        }
        assert_eq!(chunks(u64::MAX, Some(u64::MAX - 1)).count(), 2, "sums do not overflow");
    }
}
