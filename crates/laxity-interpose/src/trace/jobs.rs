//! Jobs of streams.

use std::collections::BTreeMap;

use laxity_model::{Instant, JobId};
use laxity_trace::Event;

use super::holds::Hold;
use super::logs::StreamLog;
use super::{CPU, Group, NO_DEADLINE, Rank};
use crate::log::Line;

/// Adds those of `stream`, by their numbers in it. The trace begins at `start`.
pub(super) fn add(
    known: impl Fn(u32) -> Option<JobId>,
    stream: &StreamLog,
    start: u64,
    holds: &[Hold],
    groups: &mut Vec<Group>,
) {
    let mut over: BTreeMap<JobId, u64> = BTreeMap::new();
    for hold in holds {
        // It holds nothing when it is over.
        let released = hold.token.as_ref().and_then(|token| token.released);
        let last = hold.unlocked.max(released).unwrap_or(hold.granted);
        let latest = over.entry(hold.job).or_default();
        *latest = last.max(*latest);
    }
    let ends: BTreeMap<JobId, u64> = stream
        .lines
        .iter()
        .filter_map(|(at, line)| end(line, *at))
        .filter_map(|(number, at)| known(number).map(|job| (job, at)))
        .map(|(job, at)| (job, at.max(over.get(&job).copied().unwrap_or(0))))
        .collect();
    let mut free = 0;
    for (at, line) in &stream.lines {
        let Line::Begins { job: number, deadline, level, .. } = *line else { continue };
        let job = known(number).expect("it begins");
        let due = deadline.map_or(Instant(at.saturating_sub(start)).saturating_add(NO_DEADLINE), |due| {
            Instant(due.saturating_sub(start))
        });
        groups.push(Group { at: *at, rank: Rank::Releases, events: vec![Event::Release { job, deadline: due }] });
        let begin = free.max(*at);
        // Fixed priorities come before all deadlines, as live.
        let level = if level < 100 || deadline.is_none() { level } else { due.0.max(100) };
        let events = vec![
            Event::Ready { cpu: CPU, job },
            Event::Priority { job, level, of: job.task },
            Event::Dispatch { cpu: CPU, job },
            Event::Suspend { cpu: CPU, job },
        ];
        groups.push(Group { at: begin, rank: Rank::JobBegins, events });
        let Some(&end) = ends.get(&job) else { break };
        let end = end.max(begin);
        let events =
            vec![Event::Resume { cpu: CPU, job }, Event::Dispatch { cpu: CPU, job }, Event::Complete { cpu: CPU, job }];
        // A job may end at the instant at which it begins: then in this order.
        let rank = if end == begin { Rank::JobBegins } else { Rank::JobEnds };
        groups.push(Group { at: end, rank, events });
        free = end;
    }
}

fn end(line: &Line, at: u64) -> Option<(u32, u64)> {
    match *line {
        Line::Ends { job, .. } => Some((job, at)),
        _ => None,
    }
}
