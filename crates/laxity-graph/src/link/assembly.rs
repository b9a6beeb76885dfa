//! Messages from their frames, in memory of the consumer.

use super::frame::Frame;

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All of it is there.
    There,
    /// Not all of it has come.
    Awaited,
    /// It does not come any more.
    Lost,
}

/// The messages that are under way, one for each of the tokens that can be.
#[derive(Debug)]
pub(super) struct Assembly {
    longest: u32,
    slots: Vec<Slot>,
    /// Frames come in the order of epoch and token. Those of messages before this one came, if they ever will.
    passed: (u32, u64),
}

#[derive(Clone, Debug, Default)]
struct Slot {
    token: u64,
    epoch: u32,
    bytes: Vec<u8>,
    /// Its first frames did not come: the former owner of the node took them.
    is_torn: bool,
}

impl Assembly {
    /// For `capacity` messages of at most `longest` bytes.
    pub fn new(longest: u32, capacity: u32) -> Self {
        Assembly { longest, slots: vec![Slot::default(); capacity as usize], passed: (0, 0) }
    }

    /// Takes a frame that came. The oldest token that is still of use is `first`; what cannot be a frame of those that
    /// are under way is dropped.
    pub fn accept(&mut self, frame: Frame<'_>, first: u64) {
        let place = (frame.epoch, frame.token);
        let is_under_way = frame.token.checked_sub(first).is_some_and(|ahead| ahead < self.slots.len() as u64);
        if !is_under_way || place < self.passed || frame.total > self.longest {
            return;
        }
        self.passed = place;
        let index = self.index(frame.token);
        let slot = &mut self.slots[index];
        if (slot.epoch, slot.token) != place {
            slot.bytes.clear();
            (slot.epoch, slot.token) = place;
            slot.is_torn = false;
        }
        slot.is_torn |= slot.bytes.len() != frame.offset as usize;
        if !slot.is_torn {
            slot.bytes.extend_from_slice(frame.bytes);
        }
    }

    /// How far the message of `token` is that was sent in `epoch` with `length` bytes.
    pub fn progress(&self, token: u64, epoch: u32, length: u32) -> Progress {
        let slot = &self.slots[self.index(token)];
        let is_it = (slot.epoch, slot.token) == (epoch, token);
        if is_it && !slot.is_torn && slot.bytes.len() == length as usize {
            Progress::There
        } else if self.passed > (epoch, token) || (is_it && (slot.is_torn || slot.bytes.len() > length as usize)) {
            Progress::Lost
        } else {
            Progress::Awaited
        }
    }

    /// No frame of the message of `token` that was sent in `epoch` is under way any more.
    pub fn give_up(&mut self, token: u64, epoch: u32) {
        self.passed = self.passed.max((epoch, token + 1));
    }

    /// The message of `token`, which is there.
    pub fn message(&self, token: u64) -> &[u8] {
        &self.slots[self.index(token)].bytes
    }

    fn index(&self, token: u64) -> usize {
        (token % self.slots.len() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u32 = 3;

    fn assembly() -> Assembly {
        Assembly::new(100, CAPACITY)
    }

    /// Sends frames of `message`, but not those before `from` nor those after `to`.
    fn send(assembly: &mut Assembly, token: u64, epoch: u32, message: &[u8], range: std::ops::Range<usize>) {
        let frames: Vec<Frame> = Frame::all(token, epoch, message, super::super::frame::HEADER + 2).collect();
        frames[range].iter().for_each(|frame| assembly.accept(*frame, 0));
    }

    #[test]
    fn a_message_is_there_when_its_last_frame_came() {
        let mut assembly = assembly();
        send(&mut assembly, 0, 1, b"hello", 0..2);
        assert_eq!(assembly.progress(0, 1, 5), Progress::Awaited);
        send(&mut assembly, 0, 1, b"hello", 2..3);
        assert_eq!(assembly.progress(0, 1, 5), Progress::There);
        assert_eq!(assembly.message(0), b"hello");
    }

    #[test]
    fn what_a_killed_producer_sent_of_a_job_is_not_mixed_with_what_its_successor_sends() {
        let mut assembly = assembly();
        // Two tokens a job: it was killed in the second, before the job was complete.
        send(&mut assembly, 0, 1, b"stale", 0..3);
        send(&mut assembly, 1, 1, b"stale", 0..2);
        assert_eq!(assembly.progress(0, 2, 5), Progress::Awaited);
        send(&mut assembly, 0, 2, b"fresh", 0..3);
        assert_eq!(assembly.progress(0, 2, 5), Progress::There);
        assert_eq!(assembly.message(0), b"fresh");
        assert_eq!(assembly.progress(1, 2, 5), Progress::Awaited);
        send(&mut assembly, 1, 2, b"fresh", 0..3);
        assert_eq!((assembly.progress(1, 2, 5), assembly.message(1)), (Progress::There, &b"fresh"[..]));
    }

    #[test]
    fn a_message_whose_start_a_killed_consumer_took_is_lost_and_the_next_is_not() {
        let mut assembly = assembly();
        send(&mut assembly, 0, 1, b"hello", 1..3);
        assert_eq!(assembly.progress(0, 1, 5), Progress::Lost);
        send(&mut assembly, 1, 1, b"world", 0..3);
        assert_eq!(assembly.progress(1, 1, 5), Progress::There);
    }

    #[test]
    fn a_message_is_lost_once_one_came_that_was_sent_later() {
        let mut assembly = assembly();
        send(&mut assembly, 1, 1, b"world", 0..1);
        assert_eq!(assembly.progress(0, 1, 5), Progress::Lost);
        assert_eq!(assembly.progress(1, 1, 5), Progress::Awaited);
        assembly.give_up(1, 1);
        assert_eq!(assembly.progress(1, 1, 5), Progress::Lost);
        assert_eq!(assembly.progress(2, 1, 5), Progress::Awaited);
    }

    #[test]
    fn frames_that_cannot_be_are_dropped() {
        let mut assembly = assembly();
        let frame = |token, total| Frame { token, epoch: 1, total, offset: 0, bytes: b"x" };
        assembly.accept(frame(u64::from(CAPACITY), 1), 0);
        assembly.accept(frame(0, 101), 0);
        assert_eq!(assembly.progress(0, 1, 1), Progress::Awaited);
        send(&mut assembly, 0, 2, b"hello", 0..3);
        assembly.accept(frame(0, 1), 0);
        assert_eq!((assembly.progress(0, 2, 5), assembly.message(0)), (Progress::There, &b"hello"[..]));
    }
}

#[cfg(test)]
mod fuzz {
    use super::super::frame::{HEADER, Start};
    use super::*;

    /// What comes out of a channel is bytes that any process of this user may have written, in pieces of any length.
    #[test]
    fn frames_from_a_channel() {
        const LONGEST: u32 = 16;
        bolero::check!().for_each(|input: &[u8]| {
            let mut assembly = Assembly::new(LONGEST, 3);
            let mut rest = input;
            while let Start::Frame(frame, length) = Frame::at_start(rest, HEADER + 64) {
                assembly.accept(frame, frame.token.saturating_sub(1));
                rest = &rest[length..];
                for token in [0, frame.token, u64::MAX] {
                    let progress = assembly.progress(token, frame.epoch, frame.total.min(LONGEST));
                    if progress == Progress::There {
                        assert_eq!(assembly.message(token).len(), frame.total.min(LONGEST) as usize);
                    }
                }
            }
        });
    }
}
