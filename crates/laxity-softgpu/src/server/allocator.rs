//! The owners of device memory, byte by byte.

use std::collections::BTreeMap;
use std::ops::Range;

/// First fit, in whole pages: no two processes share a page, and each page is reserved or not.
#[derive(Debug)]
pub(crate) struct Allocator {
    page: u64,
    /// The lengths of free pieces, by offset. Neighbours are merged.
    free: BTreeMap<u64, u64>,
    /// By offset.
    taken: BTreeMap<u64, Piece>,
    /// Bytes of pieces that have an owner.
    used: u64,
}

#[derive(Debug)]
struct Piece {
    length: u64,
    /// `None`: given back, but not free yet.
    owner: Option<u64>,
}

impl Allocator {
    /// For `memory` bytes in pages of `page` bytes. A part of a page is not used.
    pub fn new(memory: u64, page: u64) -> Self {
        Allocator { page, free: BTreeMap::from([(0, memory / page * page)]), taken: BTreeMap::new(), used: 0 }
    }

    /// Gives `client` `bytes`, rounded up to pages.
    ///
    /// # Errors
    /// The length of the largest free piece.
    pub fn allocate(&mut self, client: u64, bytes: u64) -> Result<Range<u64>, u64> {
        let largest = || self.free.values().copied().max().unwrap_or(0);
        // A buffer of no bytes has a page, too, so that its offset is its own.
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
        self.used += length;
        Ok(offset..offset + length)
    }

    /// The owner of the piece at `offset`.
    pub fn owner(&self, offset: u64) -> Option<u64> {
        self.taken.get(&offset)?.owner
    }

    /// `client` gives back its piece at `offset`, which is not free yet. `None` if it has none there.
    pub fn disown(&mut self, client: u64, offset: u64) -> Option<Range<u64>> {
        let piece = self.taken.get_mut(&offset).filter(|piece| piece.owner == Some(client))?;
        piece.owner = None;
        self.used -= piece.length;
        Some(offset..offset + piece.length)
    }

    /// `client` gives back all its pieces. As [`Allocator::disown`].
    pub fn disown_all(&mut self, client: u64) -> Vec<Range<u64>> {
        let its = self.taken.iter().filter(|(_, piece)| piece.owner == Some(client));
        let offsets: Vec<u64> = its.map(|(&offset, _)| offset).collect();
        offsets.into_iter().filter_map(|offset| self.disown(client, offset)).collect()
    }

    /// The piece at `offset`, which was given back, is free.
    pub fn free(&mut self, offset: u64) {
        let piece = self.taken.remove(&offset).expect("a piece is freed once");
        assert_eq!(piece.owner, None, "a piece with an owner is not free");
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

    /// Bytes of pieces that have an owner.
    pub fn used(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 256;

    proptest! {
        /// When all pieces are freed there is one again.
        #[test]
        fn taken_pieces_never_overlap_and_no_byte_is_lost(
            steps in prop::collection::vec((0u64..3, 0u64..2000, any::<prop::sample::Index>()), 1..80)
        ) {
            let memory = 8192;
            let mut allocator = Allocator::new(memory + 5, PAGE);
            let mut taken: Vec<(Range<u64>, u64)> = Vec::new();
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
