//! Which interrupt an overhead handles.

use std::collections::VecDeque;

use laxity_model::OverheadKind;

use crate::intervals::Source;

/// The interrupts of one CPU on their way from the device to their bottom halves.
///
/// Overheads do not name the interrupt that they handle; their order does. Top halves run in the order in which the
/// interrupts were raised, and a bottom half is queued right after its top half (paper 000, Figs. 10 and 11).
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    /// Raised, and the top half did not run.
    raised: VecDeque<Source>,
    /// The one whose top half ran last.
    handled: Option<Source>,
}

impl Interrupts {
    pub fn raise(&mut self, source: Source) {
        self.raised.push_back(source);
    }

    /// The interrupt that an overhead of this kind, beginning now, handles.
    pub fn handle(&mut self, kind: OverheadKind) -> Option<Source> {
        match kind {
            OverheadKind::TopHalf => {
                self.handled = self.raised.pop_front();
                self.handled
            }
            OverheadKind::ThreadRelease | OverheadKind::PaiEnqueue => self.handled,
            _ => None,
        }
    }

    /// The bottom half begins or was queued, so the top half is over: if it took no time, there was no record of it.
    pub fn settle(&mut self, source: Source) {
        if let Some(position) = self.raised.iter().position(|&raised| raised == source) {
            self.raised.remove(position);
        }
    }
}
