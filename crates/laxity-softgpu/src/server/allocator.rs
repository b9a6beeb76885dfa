//! Who has which bytes of device memory.

use std::collections::BTreeMap;

/// Buffers begin at multiples of this, as those of CUDA do.
const ALIGNMENT: u64 = 256;

/// First fit.
#[derive(Debug)]
pub(crate) struct Allocator {
    /// By offset, what nobody has: its length. Never two in a row.
    free: BTreeMap<u64, u64>,
    /// By offset, what someone has: its length and by whom.
    taken: BTreeMap<u64, (u64, u32)>,
}

impl Allocator {
    /// For `memory` bytes, of which those beyond a multiple of the alignment are not used.
    pub fn new(memory: u64) -> Self {
        Allocator { free: BTreeMap::from([(0, memory / ALIGNMENT * ALIGNMENT)]), taken: BTreeMap::new() }
    }

    /// Where `client` has `bytes` of its own.
    ///
    /// # Errors
    /// The most that it could have in one piece.
    pub fn allocate(&mut self, client: u32, bytes: u64) -> Result<u64, u64> {
        let largest = || self.free.values().copied().max().unwrap_or(0);
        // Even nothing has a place of its own.
        let length = bytes.max(1).checked_next_multiple_of(ALIGNMENT).ok_or_else(largest)?;
        let (offset, has) = self
            .free
            .iter()
            .find(|&(_, has)| *has >= length)
            .map(|(&offset, &has)| (offset, has))
            .ok_or_else(largest)?;
        self.free.remove(&offset);
        if has > length {
            self.free.insert(offset + length, has - length);
        }
        self.taken.insert(offset, (length, client));
        Ok(offset)
    }

    /// `client` needs what it has at `offset` no longer; answers whether it had any.
    pub fn free(&mut self, client: u32, offset: u64) -> bool {
        if self.taken.get(&offset).is_none_or(|&(_, owner)| owner != client) {
            return false;
        }
        let (mut length, _) = self.taken.remove(&offset).expect("it was found");
        let mut start = offset;
        if let Some(after) = self.free.remove(&(offset + length)) {
            length += after;
        }
        if let Some((&before, &has)) = self.free.range(..offset).next_back()
            && before + has == offset
        {
            (start, length) = (before, length + has);
        }
        self.free.insert(start, length);
        true
    }

    /// `client` needs nothing any longer.
    pub fn free_all(&mut self, client: u32) {
        let its: Vec<u64> =
            self.taken.iter().filter(|(_, (_, owner))| *owner == client).map(|(&offset, _)| offset).collect();
        for offset in its {
            self.free(client, offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is taken and freed: pieces do not overlap, and when all is freed there is one piece again.
        #[test]
        fn nothing_is_given_twice_and_nothing_is_lost(
            steps in prop::collection::vec((0u32..3, 0u64..2000, any::<prop::sample::Index>()), 1..80)
        ) {
            let memory = 8192;
            let mut allocator = Allocator::new(memory);
            let mut taken: Vec<(u64, u64, u32)> = Vec::new();
            for (client, bytes, which) in steps {
                if bytes % 3 == 0 && !taken.is_empty() {
                    let (offset, _, owner) = taken.swap_remove(which.index(taken.len()));
                    prop_assert!(!allocator.free(owner + 1, offset), "it is another's");
                    prop_assert!(allocator.free(owner, offset));
                    prop_assert!(!allocator.free(owner, offset), "once is enough");
                } else if let Ok(offset) = allocator.allocate(client, bytes) {
                    prop_assert!(offset + bytes <= memory);
                    for &(other, length, _) in &taken {
                        prop_assert!(offset + bytes.max(1) <= other || other + length.max(1) <= offset);
                    }
                    taken.push((offset, bytes, client));
                }
            }
            (0..3).for_each(|client| allocator.free_all(client));
            prop_assert_eq!(allocator.allocate(0, memory), Ok(0));
            prop_assert_eq!(allocator.allocate(0, 1), Err(0));
        }
    }
}
