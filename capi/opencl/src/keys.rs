//! Which operations take about as long as each other.

use laxity_policy::program::Work;

use crate::types::{CL_MIGRATE_MEM_OBJECT_HOST, cl_bitfield, cl_kernel};

/// Copies within the device.
pub const COPY: u64 = 0;
/// Fills.
pub const FILL: u64 = 1;
/// Operations on images within the device.
pub const IMAGE: u64 = 2;
/// Command buffers.
pub const COMMANDS: u64 = 3;
/// Functions of the host in the place of kernels.
pub const NATIVE: u64 = 4;

/// An operation of a `kind` on so many bytes within the device: sizes within a factor of two are alike.
pub fn within_device(kind: u64, bytes: u64) -> Work {
    // 64 sizes of each kind: far below any address.
    Work::Kernel { key: kind << 6 | u64::from(bytes.max(1).ilog2()) }
}

/// A migration of memory objects, whose sizes it does not name.
pub fn migration(flags: cl_bitfield) -> Work {
    if flags & CL_MIGRATE_MEM_OBJECT_HOST != 0 { Work::CopyOut { bytes: 0 } } else { Work::CopyIn { bytes: 0 } }
}

/// A kernel.
pub fn kernel(kernel: cl_kernel) -> Work {
    // The address of an object, which is aligned.
    Work::Kernel { key: kernel as u64 >> 3 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_operations_and_kernels_differ() {
        let mut keys: Vec<Work> = [COPY, FILL, IMAGE, COMMANDS, NATIVE].map(|kind| within_device(kind, 4096)).into();
        keys.extend([within_device(COPY, 8192), within_device(COPY, u64::MAX), kernel(0x5555_0000_1000 as cl_kernel)]);
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
        }
        assert_eq!(within_device(FILL, 4097), within_device(FILL, 8191));
    }
}
