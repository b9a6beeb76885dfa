//! The thread of a stream: it is the arbitration's client, waits for what is not granted at once, opens gates, and looks
//! after operations of which the driver says nothing.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use laxity_gpu::{MobileClient, RegisterError};
use laxity_model::Nanos;
use laxity_policy::program::{Event, Order};
use laxity_sys::clock;

use crate::log::Line;
use crate::operation::Operation;
use crate::process::Leave;
use crate::state::{Attached, Home, State, Why};
use crate::stream::{Inner, LiveStream, until_in_order};

/// How often it asks the driver about operations that are under way: some drivers call no callback for one that failed. And how
/// often it writes what was noted.
const LOOK: Duration = Duration::from_millis(20);

/// It skips so many looks but one while the program issues operations, each of which tells enough: a look takes a CPU from the program
/// for as long as a short operation.
const SELDOM: u32 = 5;

/// It parks when a stream has had no operations for so long: waking a parked thread costs the issuing one a system call.
const IDLE: Duration = Duration::from_millis(100);

/// How many looks a stream waits for a place in the arbitration: those of queues that programs gave up are about to end.
const FULL_TRIES: u32 = 50;

/// Starts it. Where Linux starts no thread, nothing is arbitrated, and the user is told.
pub(crate) fn start<O: Operation>(inner: &Arc<Inner<O>>, state: &mut State<O>) {
    let of_thread = inner.clone();
    let started = thread::Builder::new().name("laxity-stream".to_owned()).spawn(move || run(&of_thread));
    state.home = match started {
        Ok(_) => Home::Awake,
        Err(error) => {
            inner.process.notice(format_args!("{}: runs unarbitrated: no thread: {error}", inner.name));
            Home::Ended
        }
    };
}

fn run<O: Operation>(inner: &Arc<Inner<O>>) {
    let client = register(inner);
    let is_arbitrated = client.is_some();
    if is_arbitrated {
        inner.process.has_client(inner.number);
    }
    let mut state = inner.lock();
    state.client = client;
    let mut idle = Duration::ZERO;
    let mut skipped = 0;
    loop {
        if let Some(request) = state.acquire {
            if !is_arbitrated {
                state.acquire = None;
                state.handle(&inner.process.settings, Event::Refused);
                inner.tell(&mut state);
                continue;
            }
            // A thread of the program may be waiting with the client. It wakes this one when it puts the client back.
            if let Some(client) = state.client.take() {
                state.acquire = None;
                let (job, engine) = (request.job, request.engine.index());
                state.note(|stream| Line::Requests { at: clock::now().0, stream, job, engine });
                drop(state);
                let (client, is_granted) = inner.acquire(client, request);
                state = inner.lock();
                let token = client.token().map_or(0, |token| token.0);
                state.client = Some(client);
                if is_granted {
                    state.note(|stream| Line::Granted { at: clock::now().0, stream, token });
                }
                state.handle(&inner.process.settings, if is_granted { Event::Granted } else { Event::Refused });
                inner.tell(&mut state);
            } else {
                let wait = inner.work.wait_timeout(state, LOOK);
                state = wait.unwrap_or_else(PoisonError::into_inner).0;
            }
            continue;
        }
        if !state.to_open.is_empty() {
            let gates = std::mem::take(&mut state.to_open);
            drop(state);
            gates.iter().for_each(|operation| operation.open());
            drop(gates);
            state = inner.lock();
            continue;
        }
        state = clean_up(inner, state);
        if state.needs_home() {
            continue;
        }
        if state.home == Home::Ending && (state.machine.last().is_none() || inner.process.is_exiting()) {
            break;
        }
        if !state.is_idle() {
            idle = Duration::ZERO;
        }
        // While a token is kept, there is a time at which it is released.
        if idle >= IDLE && state.home == Home::Awake && state.machine.next_timeout().is_none() {
            state.home = Home::Parked;
            state = inner.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            if state.home == Home::Parked {
                state.home = Home::Awake;
            }
            idle = Duration::ZERO;
            continue;
        }
        let due = state.machine.next_timeout().map(|due| due.saturating_since(clock::now()));
        let wait = due.map_or(LOOK, |due| Duration::from_nanos(due.0).min(LOOK)).max(Duration::from_micros(50));
        let (began, issued) = (clock::now(), state.issued());
        let (woken, outcome) = inner.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
        state = woken;
        let late = clock::now().saturating_since(began).0.saturating_sub(wait.as_nanos() as u64);
        if late > LOOK.as_nanos() as u64 {
            // The program was stopped, or this thread had no CPU.
            state.machine.excuse(Nanos(late));
        }
        if outcome.timed_out() {
            idle += wait;
            skipped += 1;
        } else {
            idle = Duration::ZERO;
        }
        let is_leaving = state.home == Home::Ending || inner.process.is_exiting();
        let is_quiet = outcome.timed_out() && (state.issued() == issued || skipped >= SELDOM);
        if is_quiet || state.should_mark(is_leaving) {
            state = look(inner, state);
            skipped = 0;
        }
        state.timeout(&inner.process.settings);
        inner.tell(&mut state);
    }
    end(inner, state);
}

fn register<O: Operation>(inner: &Inner<O>) -> Option<MobileClient> {
    let base = inner.process.settings.base(None);
    let arbitration = inner.process.arbitration()?;
    let mut left = FULL_TRIES;
    loop {
        match arbitration.register(&inner.name, base) {
            Ok(client) => {
                let mut client = MobileClient::new(client, base);
                client.protect(inner.process.settings.bandwidth);
                client.look_around();
                return Some(client);
            }
            Err(RegisterError::Full { .. }) if left > 0 && !inner.process.is_exiting() => {
                left -= 1;
                thread::sleep(LOOK);
            }
            Err(error) => {
                inner.process.notice(format_args!("{}: runs unarbitrated: {error}", inner.name));
                return None;
            }
        }
    }
}

/// Looks for other clients, asks the driver what is complete and what is ready, and has it say when what is unwatched is complete.
fn look<'a, O: Operation>(inner: &'a Arc<Inner<O>>, mut state: MutexGuard<'a, State<O>>) -> MutexGuard<'a, State<O>> {
    if let Some(client) = &mut state.client {
        client.look_around();
    }
    let attached = state.attached();
    if !attached.is_empty() {
        drop(state);
        let news = |attached: &Attached<O>| match attached.is_open {
            true => attached.operation.is_complete(),
            false => attached.operation.is_ready(),
        };
        // References of the operations are dropped while the state is not locked.
        let news: Vec<_> =
            attached.iter().filter(|&attached| news(attached)).map(|of| (of.id, of.is_open, of.is_marker)).collect();
        drop(attached);
        state = inner.lock();
        for (id, is_open, is_marker) in news {
            if is_marker {
                let complete = until_in_order(&state, id, Order::InOrder);
                state.complete(&inner.process.settings, &complete);
            } else {
                let event = if is_open { Event::Completed(id) } else { Event::Ready(id) };
                state.handle(&inner.process.settings, event);
            }
        }
    }
    if state.unwatched() == 0 {
        return state;
    }
    drop(state);
    // A thread that issues does it itself, if need be.
    if let Some(_issuing) = inner.issuing.try_lock() {
        let until = inner.lock().take_unwatched();
        if let Some(until) = until {
            LiveStream { inner: inner.clone() }.mark(until);
        }
    }
    inner.lock()
}

/// Writes what was noted, tells the user what was late, and drops what is over.
fn clean_up<'a, O: Operation>(inner: &'a Inner<O>, mut state: MutexGuard<'a, State<O>>) -> MutexGuard<'a, State<O>> {
    let leftovers = state.leftovers();
    let has_noted = state.has_noted();
    let late = std::mem::take(&mut state.late);
    drop(state);
    drop(leftovers);
    if has_noted {
        inner.write();
    }
    let limit = inner.process.settings.policy.hold_limit;
    for (name, why) in late {
        let what = match why {
            Why::Late => format!("was not complete after {limit}: its engine is unlocked, and it"),
            Why::Forced => format!("waited {limit} for something that its program may have to do first: it"),
        };
        let way_out = "raise LAXITY_GPU_HOLD_LIMIT if it takes so long";
        inner.process.notice(format_args!("{}: {name} {what} runs unarbitrated; {way_out}", inner.name));
    }
    inner.lock()
}

fn end<'a, O: Operation>(inner: &'a Inner<O>, state: MutexGuard<'a, State<O>>) {
    let mut state = clean_up(inner, state);
    let client = state.client.take();
    drop(state);
    // Here, on its home, its registration ends.
    drop(client);
    let mut state = inner.lock();
    state.home = Home::Ended;
    inner.news.notify_all();
}
