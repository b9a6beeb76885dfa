//! A piece of a message on its way.
//!
//! ```text
//! | token: 64 bits | epoch: 32 | total: 32 | offset: 32 | length: 32 | length bytes of the message, from offset on |
//! ```
//!
//! Numbers are little-endian. A message of `total` bytes is in frames that follow each other without a gap.

/// Bytes before those of the message.
pub(super) const HEADER: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub token: u64,
    pub epoch: u32,
    pub total: u32,
    pub offset: u32,
    pub bytes: &'a [u8],
}

/// What the start of a stream of bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// A frame, which takes that many bytes.
    Frame(Frame<'a>, usize),
    /// Part of a frame.
    Part,
    /// Nothing that was made here.
    Damaged,
}

impl<'a> Frame<'a> {
    /// The frames of `message`, each of at most `longest` bytes with its header.
    pub fn all(token: u64, epoch: u32, message: &'a [u8], longest: usize) -> impl Iterator<Item = Frame<'a>> {
        let piece = longest - HEADER;
        message.chunks(piece).enumerate().map(move |(number, bytes)| Frame {
            token,
            epoch,
            // A channel's longest message is a number of 32 bits.
            total: message.len() as u32,
            offset: (number * piece) as u32,
            bytes,
        })
    }

    pub fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&self.token.to_le_bytes());
        let numbers = [self.epoch, self.total, self.offset, self.bytes.len() as u32];
        for (place, number) in header[8..].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        header
    }

    /// The frame that `packet` is, if it is one.
    pub fn of_packet(packet: &'a [u8]) -> Option<Frame<'a>> {
        match Frame::at_start(packet, packet.len()) {
            Start::Frame(frame, length) if length == packet.len() => Some(frame),
            _ => None,
        }
    }

    /// What `bytes` start with; no frame is longer than `longest` with its header.
    pub fn at_start(bytes: &'a [u8], longest: usize) -> Start<'a> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Start::Part };
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let (token, _) = header.split_first_chunk().expect("a header is longer");
        let (token, epoch, total, offset, length) =
            (u64::from_le_bytes(*token), u32_at(8), u32_at(12), u32_at(16), u32_at(20));
        let is_within = offset.checked_add(length).is_some_and(|end| end <= total);
        if length == 0 || !is_within || length as usize > longest.saturating_sub(HEADER) {
            return Start::Damaged;
        }
        match rest.get(..length as usize) {
            Some(bytes) => Start::Frame(Frame { token, epoch, total, offset, bytes }, HEADER + bytes.len()),
            None => Start::Part,
        }
    }
}

/// How many frames of at most `longest` bytes a message of `message` bytes takes.
pub(super) fn count(message: u32, longest: usize) -> u64 {
    u64::from(message).div_ceil((longest - HEADER) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_stream_of_frames_is_read_as_it_was_written(
            message in prop::collection::vec(any::<u8>(), 1..500), longest in HEADER + 1..200, cut in 0usize..HEADER,
        ) {
            let mut stream = Vec::new();
            for frame in Frame::all(7, 3, &message, longest) {
                stream.extend(frame.header());
                stream.extend(frame.bytes);
            }
            let (mut rest, mut read, mut frames) = (&stream[..], Vec::<u8>::new(), 0);
            while let Start::Frame(frame, length) = Frame::at_start(rest, longest) {
                prop_assert_eq!((frame.token, frame.epoch, frame.total), (7, 3, message.len() as u32));
                prop_assert_eq!(frame.offset as usize, read.len());
                prop_assert_eq!(Frame::at_start(&rest[..cut], longest), Start::Part);
                read.extend(frame.bytes);
                rest = &rest[length..];
                frames += 1;
            }
            prop_assert!(rest.is_empty());
            prop_assert_eq!(frames, count(message.len() as u32, longest));
            prop_assert_eq!(read, message);
        }

        /// Any process may have written the bytes of a channel.
        #[test]
        fn any_bytes_are_read_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..100), longest in 0usize..100,
        ) {
            let _ = Frame::at_start(&bytes, longest);
            let _ = Frame::of_packet(&bytes);
        }
    }
}
