//! Who has which bytes of device memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// First fit, in whole pages: so no two processes have bytes of one page, and each page is there or not.
#[derive(Debug)]
pub(crate) struct Allocator {
    page: u64,
    /// By offset, what nobody has: its length. Never two in a row.
    free: BTreeMap<u64, u64>,
    /// By offset, what is taken.
    taken: BTreeMap<u64, Piece>,
}

#[derive(Debug)]
struct Piece {
    length: u64,
    /// `None`: nobody's any more, and not free yet.
    owner: Option<u32>,
}

impl Allocator {
    /// For `memory` bytes in pages of `page`. Those beyond a multiple of that are not used.
    pub fn new(memory: u64, page: u64) -> Self {
        Allocator { page, free: BTreeMap::from([(0, memory / page * page)]), taken: BTreeMap::new() }
    }

    /// Where `client` has `bytes` of its own, rounded up to pages.
    ///
    /// # Errors
    /// The most that it could have in one piece.
    pub fn allocate(&mut self, client: u32, bytes: u64) -> Result<Range<u64>, u64> {
        let largest = || self.free.values().copied().max().unwrap_or(0);
        // Even nothing has a place of its own.
        let length = bytes.max(1).checked_next_multiple_of(self.page).ok_or_else(largest)?;
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
        self.taken.insert(offset, Piece { length, owner: Some(client) });
        Ok(offset..offset + length)
    }

    /// Who has what begins at `offset`.
    pub fn owner(&self, offset: u64) -> Option<u32> {
        self.taken.get(&offset)?.owner
    }

    /// `client` needs what begins at `offset` no longer. Answers what that is, if it has any; it is not free yet.
    pub fn disown(&mut self, client: u32, offset: u64) -> Option<Range<u64>> {
        let piece = self.taken.get_mut(&offset).filter(|piece| piece.owner == Some(client))?;
        piece.owner = None;
        Some(offset..offset + piece.length)
    }

    /// `client` needs nothing any longer. As [`Allocator::disown`].
    pub fn disown_all(&mut self, client: u32) -> Vec<Range<u64>> {
        let its = self.taken.iter_mut().filter(|(_, piece)| piece.owner == Some(client));
        its.map(|(&offset, piece)| {
            piece.owner = None;
            offset..offset + piece.length
        })
        .collect()
    }

    /// What begins at `offset`, and is nobody's any more, is free.
    pub fn free(&mut self, offset: u64) {
        let piece = self.taken.remove(&offset).expect("it is taken until it is freed, which is once");
        assert_eq!(piece.owner, None, "what somebody has is not free");
        let (mut start, mut length) = (offset, piece.length);
        if let Some(after) = self.free.remove(&(offset + length)) {
            length += after;
        }
        if let Some((&before, &has)) = self.free.range(..offset).next_back()
            && before + has == offset
        {
            (start, length) = (before, length + has);
        }
        self.free.insert(start, length);
    }

    /// Bytes that somebody has.
    pub fn used(&self) -> u64 {
        self.taken.values().filter(|piece| piece.owner.is_some()).map(|piece| piece.length).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 256;

    proptest! {
        /// Whatever is taken and freed: pieces do not overlap, and when all is freed there is one piece again.
        #[test]
        fn nothing_is_given_twice_and_nothing_is_lost(
            steps in prop::collection::vec((0u32..3, 0u64..2000, any::<prop::sample::Index>()), 1..80)
        ) {
            let memory = 8192;
            let mut allocator = Allocator::new(memory + 5, PAGE);
            let mut taken: Vec<(Range<u64>, u32)> = Vec::new();
            for (client, bytes, which) in steps {
                if bytes % 3 == 0 && !taken.is_empty() {
                    let (range, owner) = taken.swap_remove(which.index(taken.len()));
                    prop_assert_eq!(allocator.disown(owner + 1, range.start), None, "it is another's");
                    prop_assert_eq!(allocator.disown(owner, range.start), Some(range.clone()));
                    prop_assert_eq!(allocator.disown(owner, range.start), None, "once is enough");
                    allocator.free(range.start);
                } else if let Ok(range) = allocator.allocate(client, bytes) {
                    prop_assert!(range.end - range.start >= bytes.max(1) && range.end <= memory);
                    prop_assert!(range.start % PAGE == 0 && range.end % PAGE == 0);
                    for (other, _) in &taken {
                        prop_assert!(range.end <= other.start || other.end <= range.start);
                    }
                    taken.push((range, client));
                }
                let used: u64 = taken.iter().map(|(range, _)| range.end - range.start).sum();
                prop_assert_eq!(allocator.used(), used);
            }
            for client in 0..3 {
                allocator.disown_all(client).into_iter().for_each(|range| allocator.free(range.start));
            }
            prop_assert_eq!(allocator.allocate(0, memory), Ok(0..memory));
            prop_assert_eq!(allocator.allocate(0, 1), Err(0));
        }
    }
}
