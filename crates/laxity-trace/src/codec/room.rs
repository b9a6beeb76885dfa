//! Room for one record: bytes are put down without asking each time whether there is room.

/// Upper bound on the bytes of a record: a tag, a kind and at most four varints of ten bytes, or a short name.
pub(super) const RECORD_MAX: usize = 64;

/// The place where a record is written.
pub(super) struct Room<'a> {
    bytes: &'a mut [u8; RECORD_MAX],
    length: usize,
}

impl<'a> Room<'a> {
    pub fn new(bytes: &'a mut [u8; RECORD_MAX]) -> Self {
        Room { bytes, length: 0 }
    }

    /// How many bytes were put.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    #[inline]
    pub fn put(&mut self, byte: u8) {
        // The remainder never changes the place; it tells the compiler that it is within the array.
        self.bytes[self.length % RECORD_MAX] = byte;
        self.length += 1;
    }

    /// Replaces the first byte.
    #[inline]
    pub fn set_first(&mut self, byte: u8) {
        self.bytes[0] = byte;
    }
}
