//! Holds of engines and tokens, from what streams noted.

use std::collections::BTreeMap;

use laxity_model::{Engine, JobId};

use super::Logs;
use super::tasks::Tasks;
use crate::log::Line;

/// A stream held an engine.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub job: JobId,
    pub level: u64,
    pub gpu: u16,
    pub engine: Engine,
    pub requested: u64,
    pub granted: u64,
    /// When its stream noted the grant: the order of these is the order of holds.
    noted: u64,
    pub unlocked: Option<u64>,
    /// The token, if it was taken for this hold.
    pub token: Option<TokenHold>,
    pub operations: Vec<Operation>,
}

/// A stream held a token.
#[derive(Clone, Debug)]
pub(super) struct TokenHold {
    pub replica: u16,
    pub requested: u64,
    pub granted: u64,
    pub released: Option<u64>,
}

/// An operation that a hold was for.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    number: u64,
    /// What its program calls it.
    pub label: Option<String>,
    pub opened: u64,
    pub completed: Option<u64>,
}

/// A program notes a request before it makes it. It may be preempted in between, so that the order of what is noted need
/// not be that of requests: by so many nanoseconds at most is a request moved to where the order of grants has it. A
/// larger difference is left for the checkers to find.
const REQUEST_TOLERANCE: u64 = 10_000_000;

/// How many of the next holds of an engine are looked at: each is of another stream, or comes later in any case.
const SIGHT: usize = 64;

/// All holds, in the order in which they were noted.
pub(super) fn of(logs: &Logs, tasks: &Tasks) -> Vec<Hold> {
    let mut holds = Vec::new();
    for (index, stream) in logs.streams.iter().enumerate() {
        of_stream(|job| tasks.job(index, job), stream.gpu, &stream.lines, &mut holds);
    }
    holds.sort_by_key(|hold| hold.noted);
    holds
}

fn of_stream(known: impl Fn(u32) -> Option<JobId>, gpu: u16, lines: &[(u64, Line)], holds: &mut Vec<Hold>) {
    let mut levels: BTreeMap<u32, u64> = BTreeMap::new();
    let mut request: Option<(u64, u32, Engine)> = None;
    // The hold that has the stream's token, and the present hold.
    let (mut with_token, mut present): (Option<usize>, Option<usize>) = (None, None);
    for (at, line) in lines {
        let at = *at;
        match line.clone() {
            Line::Begins { job, level, .. } => {
                levels.insert(job, level);
            }
            Line::Requests { job, engine, .. } => {
                request = Engine::ALL.get(engine).map(|&engine| (at, job, engine));
            }
            Line::Granted { token, .. } => {
                let Some((requested, number, engine)) = request.take() else { continue };
                let Some(job) = known(number) else { continue };
                let token = with_token.is_none().then_some(TokenHold {
                    replica: token,
                    requested,
                    granted: requested,
                    released: None,
                });
                let level = levels.get(&number).copied().unwrap_or(u64::MAX);
                present = Some(holds.len());
                with_token = with_token.or(present);
                holds.push(Hold {
                    job,
                    level,
                    gpu,
                    engine,
                    requested,
                    granted: requested,
                    noted: at,
                    unlocked: None,
                    token,
                    operations: Vec::new(),
                });
            }
            Line::Opens { operation, label, .. } => {
                if let Some(hold) = present {
                    holds[hold].operations.push(Operation { number: operation, label, opened: at, completed: None });
                }
            }
            Line::Complete { operation, .. } => {
                if let Some(hold) = present {
                    let mut operations = holds[hold].operations.iter_mut();
                    if let Some(known) = operations.find(|known| known.number == operation) {
                        known.completed = Some(at);
                    }
                }
            }
            Line::Unlocks { .. } => {
                if let Some(hold) = present.take() {
                    holds[hold].unlocked = Some(at);
                }
            }
            Line::Releases { .. } => {
                if let Some(token) = with_token.take().and_then(|hold| holds[hold].token.as_mut()) {
                    token.released = Some(at);
                }
            }
            Line::Program { .. } | Line::Stream { .. } | Line::Ends { .. } | Line::Late { .. } => {}
        }
    }
}

/// Finds when each was granted: when it was requested, or when the hold before it ended.
pub(super) fn settle(holds: &mut [Hold], by_priority: bool) {
    let mut tokens: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (at, hold) in holds.iter().enumerate() {
        if let Some(token) = &hold.token {
            tokens.entry(token.replica).or_default().push(at);
        }
    }
    for order in tokens.values() {
        let mut spans: Vec<Span> = order.iter().map(|&at| Span::of_token(&holds[at])).collect();
        settle_lock(&mut spans, Grants::Any);
        for (&at, span) in order.iter().zip(spans) {
            let hold = &mut holds[at];
            // The engine is requested when the token is there.
            hold.requested = span.granted;
            let token = hold.token.as_mut().expect("it has one");
            (token.requested, token.granted, token.released) = (span.requested, span.granted, span.ended);
        }
    }
    let mut engines: BTreeMap<(u16, usize), Vec<usize>> = BTreeMap::new();
    for (at, hold) in holds.iter().enumerate() {
        engines.entry((hold.gpu, hold.engine.index())).or_default().push(at);
    }
    let grants = if by_priority { Grants::Priority } else { Grants::Fifo };
    for order in engines.values() {
        let mut spans: Vec<Span> = order.iter().map(|&at| Span::of_engine(&holds[at])).collect();
        settle_lock(&mut spans, grants);
        for (&at, span) in order.iter().zip(spans) {
            let hold = &mut holds[at];
            (hold.requested, hold.granted, hold.unlocked) = (span.requested, span.granted, span.ended);
        }
    }
}

/// In which order a lock is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grants {
    Fifo,
    Priority,
    /// By rules that traces do not check.
    Any,
}

/// A hold of one lock.
#[derive(Clone, Copy, Debug)]
struct Span {
    level: u64,
    requested: u64,
    granted: u64,
    noted: u64,
    ended: Option<u64>,
}

impl Span {
    fn of_token(hold: &Hold) -> Span {
        let token = hold.token.as_ref().expect("it has one");
        let Hold { level, noted, .. } = *hold;
        Span { level, requested: token.requested, granted: 0, noted, ended: token.released }
    }

    fn of_engine(hold: &Hold) -> Span {
        let Hold { level, requested, noted, unlocked, .. } = *hold;
        Span { level, requested, granted: 0, noted, ended: unlocked }
    }
}

/// `spans` of one lock, in the order in which it was held.
fn settle_lock(spans: &mut [Span], grants: Grants) {
    let mut free = 0;
    for at in 0..spans.len() {
        let (before, later) = spans.split_at_mut(at + 1);
        let this = &mut before[at];
        this.granted = this.requested.max(free);
        // The program was killed, or stopped noting: its hold ended by the next grant.
        this.ended = this.ended.or(later.first().map(|next| next.noted));
        free = this.ended.unwrap_or(this.granted).max(this.granted);
        for other in later.iter_mut().take(SIGHT) {
            // A waiter would have had the lock when it was free.
            let was_free = this.granted == this.requested && other.requested < this.granted;
            let moved = match grants {
                _ if was_free => this.granted,
                Grants::Fifo if other.requested < this.requested => this.requested,
                Grants::Priority if other.level < this.level && other.requested <= this.granted => this.granted + 1,
                _ => continue,
            };
            if moved - other.requested <= REQUEST_TOLERANCE && moved <= other.noted {
                other.requested = moved;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(level: u64, requested: u64, noted: u64, ended: u64) -> Span {
        Span { level, requested, granted: 0, noted, ended: Some(ended) }
    }

    fn settled(mut spans: Vec<Span>, grants: Grants) -> Vec<(u64, u64)> {
        settle_lock(&mut spans, grants);
        spans.iter().map(|span| (span.requested, span.granted)).collect()
    }

    #[test]
    fn a_lock_is_handed_over_when_it_is_unlocked() {
        let spans = vec![span(1, 10, 10, 50), span(1, 20, 55, 60), span(1, 100, 101, 110)];
        assert_eq!(settled(spans, Grants::Fifo), [(10, 10), (20, 50), (100, 100)]);
    }

    #[test]
    fn a_request_that_was_noted_a_little_too_early_is_moved_to_where_the_grants_have_it() {
        let fifo = vec![span(1, 12, 13, 50), span(1, 10, 51, 60)];
        assert_eq!(settled(fifo, Grants::Fifo), [(12, 12), (12, 50)]);
        // The more urgent request came after the decision at 50.
        let by_priority = vec![span(1, 10, 10, 50), span(5, 20, 51, 60), span(2, 49, 61, 70)];
        assert_eq!(settled(by_priority, Grants::Priority), [(10, 10), (20, 50), (51, 60)]);
    }

    #[test]
    fn a_request_that_waited_for_long_behind_a_later_one_stays_for_the_checkers_to_find() {
        let late = 10 + 2 * REQUEST_TOLERANCE;
        let spans = vec![span(1, late, late, late + 5), span(1, 10, late + 6, late + 9)];
        assert_eq!(settled(spans, Grants::Fifo)[1].0, 10);
    }

    #[test]
    fn a_hold_of_a_killed_program_ends_with_the_next_grant() {
        let mut spans = vec![span(1, 10, 10, 0), span(1, 20, 40, 60)];
        spans[0].ended = None;
        settle_lock(&mut spans, Grants::Fifo);
        assert_eq!((spans[0].ended, spans[1].granted), (Some(40), 40));
    }
}
