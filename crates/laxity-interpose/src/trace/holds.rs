//! Holds of engines and tokens, from what streams noted.

use std::collections::BTreeMap;

use laxity_model::{Engine, JobId, TaskId};

use super::{Logs, id};
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
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    number: u64,
    pub opened: u64,
    pub completed: Option<u64>,
}

/// A program notes a request before it makes it. Another may come in between, so that the order of what is noted need not
/// be that of requests: by so many nanoseconds at most is a request moved to where the order of grants has it. A larger
/// difference is left for the checkers to find.
const REQUEST_TOLERANCE: u64 = 1_000_000;

/// How many of the next holds of an engine are looked at: each is of another stream, or comes later in any case.
const SIGHT: usize = 64;

/// All holds, in the order in which they were noted.
pub(super) fn of(logs: &Logs) -> Vec<Hold> {
    let mut holds = Vec::new();
    for (index, stream) in logs.streams.iter().enumerate() {
        of_stream(TaskId(index as u32), stream.gpu, &stream.lines, &mut holds);
    }
    holds.sort_by_key(|hold| hold.noted);
    holds
}

fn of_stream(task: TaskId, gpu: u16, lines: &[(u64, Line)], holds: &mut Vec<Hold>) {
    let mut levels: BTreeMap<u32, u64> = BTreeMap::new();
    let mut request: Option<(u64, u32, Engine)> = None;
    // The hold that has the stream's token, and the present hold.
    let (mut with_token, mut present): (Option<usize>, Option<usize>) = (None, None);
    for (at, line) in lines {
        let at = *at;
        match *line {
            Line::Begins { job, level, .. } => {
                levels.insert(job, level);
            }
            Line::Requests { job, engine, .. } => {
                request = Engine::ALL.get(engine).map(|&engine| (at, job, engine));
            }
            Line::Granted { token, .. } => {
                let Some((requested, job, engine)) = request.take() else { continue };
                let token = with_token.is_none().then_some(TokenHold {
                    replica: token,
                    requested,
                    granted: requested,
                    released: None,
                });
                let level = levels.get(&job).copied().unwrap_or(u64::MAX);
                let job = id(task, job);
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
            Line::Opens { operation, .. } => {
                if let Some(hold) = present {
                    holds[hold].operations.push(Operation { number: operation, opened: at, completed: None });
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
    settle_tokens(holds);
    let mut locks: BTreeMap<(u16, usize), Vec<usize>> = BTreeMap::new();
    for (at, hold) in holds.iter().enumerate() {
        locks.entry((hold.gpu, hold.engine.index())).or_default().push(at);
    }
    for order in locks.values() {
        settle_engine(holds, order, by_priority);
    }
}

fn settle_tokens(holds: &mut [Hold]) {
    // For each token the hold that has it last.
    let mut last: BTreeMap<u16, usize> = BTreeMap::new();
    for at in 0..holds.len() {
        let noted = holds[at].noted;
        let Some(token) = &holds[at].token else { continue };
        let (replica, requested) = (token.replica, token.requested);
        let free = last.insert(replica, at).and_then(|before| {
            let token = holds[before].token.as_mut().expect("it has one");
            // The program was killed, or stopped noting: it ended by then.
            Some(*token.released.get_or_insert(noted))
        });
        let granted = requested.max(free.unwrap_or(0));
        let hold = &mut holds[at];
        hold.token.as_mut().expect("it has one").granted = granted;
        // The engine is requested when the token is there.
        hold.requested = granted;
    }
}

/// `order`: the holds of one engine, in their order.
fn settle_engine(holds: &mut [Hold], order: &[usize], by_priority: bool) {
    let mut free = 0;
    for (number, &at) in order.iter().enumerate() {
        holds[at].granted = holds[at].requested.max(free);
        let (requested, granted, level) = (holds[at].requested, holds[at].granted, holds[at].level);
        // Those that come later were requested later, or are less urgent.
        for &later in order[number + 1..].iter().take(SIGHT) {
            let is_wrong = match by_priority {
                true => holds[later].level < level && holds[later].requested <= granted,
                false => holds[later].requested < requested,
            };
            let moved = if by_priority { granted + 1 } else { requested };
            if is_wrong && moved - holds[later].requested <= REQUEST_TOLERANCE && moved <= holds[later].noted {
                holds[later].requested = moved;
            }
        }
        let next = order.get(number + 1).map(|&next| holds[next].noted);
        let unlocked = match (holds[at].unlocked, next) {
            (None, Some(next)) => Some(next),
            (unlocked, _) => unlocked,
        };
        holds[at].unlocked = unlocked;
        free = unlocked.unwrap_or(granted);
    }
}
