//! What has CPUs and is no task of the trace: other threads of the machine, and interrupts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Event, TraceHeader};

/// Something that has a CPU at times and is no task of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outsider {
    /// What it is.
    pub kind: OutsiderKind,
    /// Its index in [`TraceHeader::outsiders`], which says how it is called.
    pub number: u16,
}

/// What an [`Outsider`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutsiderKind {
    /// A thread.
    #[default]
    Thread,
    /// The handler of an interrupt.
    Interrupt,
    /// What Linux does after interrupts, in the place of the thread that is there (softirq).
    SoftInterrupt,
}

/// An outsider of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutsiderInfo {
    /// What it is.
    pub kind: OutsiderKind,
    /// Its name in Linux; of a thread the 15 bytes that Linux keeps.
    pub name: String,
    /// The number of a thread in Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
}

/// A name of at most 15 bytes without NUL, as Linux keeps of a thread, or a piece of a longer one.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ShortName([u8; ShortName::LENGTH_MAX]);

impl OutsiderKind {
    /// All kinds, by their number in files.
    pub const ALL: [OutsiderKind; 3] = [OutsiderKind::Thread, OutsiderKind::Interrupt, OutsiderKind::SoftInterrupt];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            OutsiderKind::Thread => "thread",
            OutsiderKind::Interrupt => "interrupt",
            OutsiderKind::SoftInterrupt => "soft_interrupt",
        }
    }
}

impl ShortName {
    /// Its length in bytes, at most.
    pub const LENGTH_MAX: usize = 15;

    /// The name that has these bytes; `None` if they are too many, not UTF-8, or one is NUL.
    pub fn new(bytes: &[u8]) -> Option<ShortName> {
        let is_name = std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0);
        let mut name = [0; ShortName::LENGTH_MAX];
        name.get_mut(..bytes.len()).filter(|_| is_name)?.copy_from_slice(bytes);
        Some(ShortName(name))
    }

    /// The pieces of `name`, which make it when put together; at least one. NUL characters are left out.
    pub fn pieces(name: &str) -> Vec<ShortName> {
        let mut pieces = vec![String::new()];
        for letter in name.chars().filter(|&letter| letter != '\0') {
            if pieces.last().is_none_or(|piece| piece.len() + letter.len_utf8() > ShortName::LENGTH_MAX) {
                pieces.push(String::new());
            }
            pieces.last_mut().expect("there is one").push(letter);
        }
        pieces.iter().map(|piece| ShortName::new(piece.as_bytes()).expect("it is short, and without NUL")).collect()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(ShortName::LENGTH_MAX);
        std::str::from_utf8(&self.0[..length]).expect("it was checked when it was made")
    }
}

impl fmt::Debug for ShortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl TraceHeader {
    /// Takes from a record how an outsider is called: a run learns that only while it goes on.
    pub fn learn(&mut self, event: &Event) {
        match *event {
            Event::OutsiderName { outsider, piece, name } => {
                let info = self.outsider_mut(outsider);
                if piece == 0 {
                    *info = OutsiderInfo { kind: outsider.kind, ..OutsiderInfo::default() };
                }
                info.name.push_str(name.as_str());
            }
            Event::OutsiderThread { outsider, thread } => self.outsider_mut(outsider).thread = Some(thread),
            _ => {}
        }
    }

    fn outsider_mut(&mut self, Outsider { number, .. }: Outsider) -> &mut OutsiderInfo {
        let number = usize::from(number);
        if self.outsiders.len() <= number {
            self.outsiders.resize(number + 1, OutsiderInfo::default());
        }
        &mut self.outsiders[number]
    }

    /// `kworker/1:2 (57)`: how the outsider is called; of a thread with its number.
    pub fn outsider_name(&self, Outsider { kind, number }: Outsider) -> String {
        let info = self.outsiders.get(usize::from(number)).filter(|info| info.kind == kind && !info.name.is_empty());
        match info {
            Some(OutsiderInfo { name, thread: Some(thread), .. }) => format!("{name} ({thread})"),
            Some(OutsiderInfo { name, .. }) => name.clone(),
            None => format!("{number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::Scheduler;

    use super::*;
    use crate::Origin;

    #[test]
    fn names_are_put_together_from_pieces_that_no_letter_is_cut_by() {
        let name = "interrupt-of-ünïcödé-device";
        let pieces = ShortName::pieces(name);
        assert!(pieces.len() > 1);
        let scheduler = "G-EDF".parse::<Scheduler>().expect("a scheduler");
        let mut header = TraceHeader::new(Origin::Live, "w", 1, scheduler);
        let outsider = Outsider { kind: OutsiderKind::Interrupt, number: 2 };
        // Twice, as of a header that knows it already.
        for _ in 0..2 {
            for (piece, &name) in pieces.iter().enumerate() {
                header.learn(&Event::OutsiderName { outsider, piece: piece as u8, name });
            }
        }
        assert_eq!(header.outsider_name(outsider), name);
        assert_eq!(header.outsiders.len(), 3);
        assert_eq!(header.outsider_name(Outsider { number: 9, ..outsider }), "9");
        assert_eq!(ShortName::pieces("").len(), 1);
        assert_eq!(ShortName::new(b"0123456789abcdef"), None);
        assert_eq!(ShortName::new(b"0\x00"), None);
    }
}
