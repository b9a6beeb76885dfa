//! Jobs of streams.

use std::collections::BTreeMap;

use laxity_model::{Instant, TaskId};
use laxity_trace::Event;

use super::holds::Hold;
use super::logs::StreamLog;
use super::{CPU, Group, NO_DEADLINE, Rank, id};
use crate::log::Line;

/// Adds those of `stream`, which is `task`. The trace begins at `start`.
pub(super) fn add(task: TaskId, stream: &StreamLog, start: u64, holds: &[Hold], groups: &mut Vec<Group>) {
    let mut over: BTreeMap<u32, u64> = BTreeMap::new();
    for hold in holds.iter().filter(|hold| hold.job.task == task) {
        // It holds nothing when it is over.
        let released = hold.token.as_ref().and_then(|token| token.released);
        let last = hold.unlocked.max(released).unwrap_or(hold.granted);
        let known = over.entry(hold.job.index).or_default();
        *known = last.max(*known);
    }
    let ends: BTreeMap<u32, u64> = stream
        .lines
        .iter()
        .filter_map(|(at, line)| end(line, *at))
        .map(|(job, at)| (job, at.max(over.get(&job).copied().unwrap_or(0))))
        .collect();
    let mut free = 0;
    for (at, line) in &stream.lines {
        let Line::Begins { job, deadline, level, .. } = *line else { continue };
        let number = id(task, job);
        let due = deadline.map_or(Instant(at.saturating_sub(start)).saturating_add(NO_DEADLINE), |due| {
            Instant(due.saturating_sub(start))
        });
        groups.push(Group {
            at: *at,
            rank: Rank::Releases,
            events: vec![Event::Release { job: number, deadline: due }],
        });
        let begin = free.max(*at);
        // Fixed priorities come before all deadlines, as live.
        let level = if level < 100 || deadline.is_none() { level } else { due.0.max(100) };
        let events = vec![
            Event::Ready { cpu: CPU, job: number },
            Event::Priority { job: number, level, of: task },
            Event::Dispatch { cpu: CPU, job: number },
            Event::Suspend { cpu: CPU, job: number },
        ];
        groups.push(Group { at: begin, rank: Rank::JobBegins, events });
        let Some(&end) = ends.get(&job) else { break };
        let end = end.max(begin);
        let events = vec![
            Event::Resume { cpu: CPU, job: number },
            Event::Dispatch { cpu: CPU, job: number },
            Event::Complete { cpu: CPU, job: number },
        ];
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
