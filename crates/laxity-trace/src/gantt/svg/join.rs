//! Joins pieces that an interruption too short to be seen has split.

use laxity_model::Nanos;

use super::layout::Layout;
use crate::intervals::{Activity, Begin, Interval};

/// Interruptions narrower than this many pixels do not split a bar.
const GAP: f64 = 1.0;

/// An interval as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joined {
    /// From the first piece's beginning to the last piece's end, and stopped as that was.
    pub interval: Interval,
    /// Total time of the pieces, without the interruptions.
    pub duration: Nanos,
}

/// The intervals of a row, ordered by their beginning, with the pieces of a dispatch joined where the overhead between
/// them is narrower than a pixel: a tick every millisecond would otherwise cut every bar into slices.
pub fn join(layout: &Layout, intervals: &[Interval]) -> Vec<Joined> {
    let mut joined: Vec<Joined> = Vec::new();
    // The last execution; overheads may stand between it and its continuation.
    let mut last = None;
    for interval in intervals {
        if let Activity::Execution { begin, .. } = interval.activity {
            let previous = last.and_then(|position: usize| joined.get_mut(position));
            if let Some(previous) = previous.filter(|previous| {
                begin == Begin::AfterOverhead && {
                    previous.interval.activity.job() == interval.activity.job()
                        && layout.x(interval.from) - layout.x(previous.interval.to) < GAP
                }
            }) {
                extend(previous, interval);
                continue;
            }
            last = Some(joined.len());
        }
        joined.push(Joined { interval: *interval, duration: interval.duration() });
    }
    joined
}

fn extend(joined: &mut Joined, piece: &Interval) {
    joined.interval.to = piece.to;
    joined.duration = Nanos(joined.duration.0.saturating_add(piece.duration().0));
    if let (Activity::Execution { end, .. }, Activity::Execution { end: stopped, .. }) =
        (&mut joined.interval.activity, piece.activity)
    {
        *end = stopped;
    }
}
