//! Records of what has CPUs and is no task.

use super::kinds::{extended, kind};
use super::record::{Decoder, Encoder, Malformed, take_byte};
use super::varint;
use crate::{Event, Outsider, OutsiderKind, ShortName};

impl Encoder<'_, '_> {
    /// Writes all of `event`, which is of outsiders, but its tag; returns its kind.
    #[inline(never)]
    pub(super) fn outside(&mut self, event: Event) -> u8 {
        match event {
            Event::Outside { cpu, by } => {
                self.out.put(extended::OUTSIDE);
                self.cpu(cpu);
                match by {
                    // One byte: which is not the number of a kind.
                    None => self.out.put(NONE),
                    Some(by) => self.outsider(by),
                }
            }
            Event::OutsiderName { outsider, piece, name } => {
                self.out.put(extended::OUTSIDER_NAME);
                self.outsider(outsider);
                self.out.put(piece);
                let bytes = name.as_str().as_bytes();
                self.out.put(bytes.len() as u8);
                bytes.iter().for_each(|&byte| self.out.put(byte));
            }
            Event::OutsiderThread { outsider, thread } => {
                self.out.put(extended::OUTSIDER_THREAD);
                self.outsider(outsider);
                varint::write(self.out, thread.into());
            }
            Event::OutsidersLost { cpu, records } => {
                self.out.put(extended::OUTSIDERS_LOST);
                self.cpu(cpu);
                varint::write(self.out, records);
            }
            _ => unreachable!("it is not of outsiders"),
        }
        kind::EXTENDED
    }

    fn outsider(&mut self, Outsider { kind, number }: Outsider) {
        self.out.put(kind as u8);
        self.number(number);
    }
}

/// In place of the kind of an outsider: there is none.
const NONE: u8 = u8::MAX;

impl Decoder<'_, '_> {
    /// The record of the extended `kind`; nothing if that is not of outsiders.
    #[inline(never)]
    pub(super) fn outside(&mut self, kind: u8) -> Result<Option<Event>, Malformed> {
        Ok(Some(match kind {
            extended::OUTSIDE => {
                let cpu = self.cpu()?;
                match take_byte(self.bytes)? {
                    NONE => Event::Outside { cpu, by: None },
                    kind => Event::Outside { cpu, by: Some(self.outsider_of(kind)?) },
                }
            }
            extended::OUTSIDER_NAME => {
                let (outsider, piece) = (self.outsider()?, take_byte(self.bytes)?);
                let length = usize::from(take_byte(self.bytes)?);
                let (name, rest) = self.bytes.split_at_checked(length).ok_or(Malformed::Value)?;
                *self.bytes = rest;
                Event::OutsiderName { outsider, piece, name: ShortName::new(name).ok_or(Malformed::Value)? }
            }
            extended::OUTSIDER_THREAD => Event::OutsiderThread { outsider: self.outsider()?, thread: self.u32()? },
            extended::OUTSIDERS_LOST => Event::OutsidersLost { cpu: self.cpu()?, records: self.span()?.0 },
            _ => return Ok(None),
        }))
    }

    fn outsider(&mut self) -> Result<Outsider, Malformed> {
        let kind = take_byte(self.bytes)?;
        self.outsider_of(kind)
    }

    fn outsider_of(&mut self, kind: u8) -> Result<Outsider, Malformed> {
        let kind = *OutsiderKind::ALL.get(usize::from(kind)).ok_or(Malformed::Value)?;
        Ok(Outsider { kind, number: self.u16()? })
    }
}
