//! Threads that take turns by a seed: any interleaving of their steps, each of which can be repeated.
//!
//! A crate whose threads share memory calls [`point`] before each access that another thread may notice, [`sleep`] and
//! [`wake`] instead of Linux's futex, and [`now`] instead of its clock, where [`is_simulated`]. Of the threads that a
//! [`Simulation`] started, the *actors*, one runs at a time, from one point to the next. At each point the seed decides
//! which one goes on, which sleeper is late, which thread is stopped for a while, and when something happens from outside,
//! such as a death. After each step the test's check looks at the memory. If all that is left sleeps and nothing can wake
//! it, a wake-up was lost.
//!
//! Memory is sequentially consistent here, as one thread runs at a time: weaker orders are for the models of loom.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use laxity_model::{Instant, Nanos};
use laxity_sys::futex::Ended;
use laxity_sys::{fault, scheduling};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Random;

/// More steps than any schedule takes.
const STEPS_MAX: u64 = 1_000_000;
/// Of the simulated clock.
const STEP: Nanos = Nanos(100);
const STACK: usize = 1 << 18;
/// Whose turn it is when it is no actor's.
const DIRECTOR: usize = usize::MAX;
/// One in so many steps wakes a sleeper too late, and one stops a thread; for at most so many steps.
const LATE_EVERY: u64 = 40;
const STOP_EVERY: u64 = 2000;
const STOP_MAX: u64 = 3000;

thread_local! {
    static ACTOR: RefCell<Option<(usize, Arc<Stage>)>> = const { RefCell::new(None) };
    /// The test's check looks at the memory: no step.
    static IS_CHECKING: Cell<bool> = const { Cell::new(false) };
}

/// What looks at the memory after each step, and at what the sleepers that nothing but a wake-up ends sleep on.
pub type Check = Box<dyn Fn(&mut dyn Iterator<Item = u64>) + Send + Sync>;

/// Why no actor goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Something is to happen from outside.
    Event,
    /// All have ended.
    Over,
}

/// The actors, and whose turn it is.
struct Stage {
    turn: AtomicUsize,
    director: Thread,
    check: Check,
    play: Mutex<Play>,
}

/// Changed by the thread that has the turn.
struct Play {
    random: Random,
    actors: Vec<Actor>,
    /// The numbers of those that have not ended.
    living: Vec<usize>,
    steps: u64,
    stops: u64,
    /// One in so many points changes the actor.
    switch_every: u64,
    /// One in so many steps, and how often yet, something happens from outside.
    event_every: u64,
    events: u32,
    clock: Instant,
    /// Of all choices so far.
    hash: u64,
    failure: Option<Box<dyn Any + Send>>,
}

struct Actor {
    thread: Thread,
    /// Its number in Linux.
    linux: u32,
    state: State,
    command: Command,
    /// The step until which it does not go on.
    stopped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Asleep { key: u64, until: Instant },
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    GoOn,
    BeLate,
    Die,
}

/// Whether this thread is an actor, and acts.
pub fn is_simulated() -> bool {
    !thread::panicking() && !IS_CHECKING.get() && ACTOR.try_with(|actor| actor.borrow().is_some()).unwrap_or(false)
}

/// Another actor may go on here, and this one may be killed.
pub fn point() {
    if is_simulated() {
        step(State::Ready);
    }
}

/// Sleeps on `word`, which is `key` for all threads that use it, while it is `seen`: until it is woken, or is late. `None`: this
/// thread is no actor.
pub fn sleep(key: u64, word: &AtomicU32, seen: u32, until: Instant) -> Option<Ended> {
    if !is_simulated() {
        return None;
    }
    point();
    if word.load(Ordering::SeqCst) != seen {
        return Some(Ended::LookAgain);
    }
    Some(rest(key, until))
}

/// Sleeps on `key` until it is woken, or until `until` or later.
pub fn rest(key: u64, until: Instant) -> Ended {
    match step(State::Asleep { key, until }) {
        Command::BeLate => Ended::TimedOut,
        Command::GoOn | Command::Die => Ended::LookAgain,
    }
}

/// Wakes those that sleep on `key`; at most so many.
pub fn wake(key: u64, most: usize) {
    if let Some((_, stage)) = is_simulated().then(actor).flatten() {
        stage.play().wake(key, most);
    }
}

/// The time of the simulation, for its actors.
pub fn now() -> Option<Instant> {
    let (_, stage) = is_simulated().then(actor).flatten()?;
    let clock = stage.play().clock;
    Some(clock)
}

fn actor() -> Option<(usize, Arc<Stage>)> {
    ACTOR.with(|actor| actor.borrow().clone())
}

/// This actor comes to a point.
fn step(state: State) -> Command {
    let (number, stage) = actor().expect("an actor");
    stage.look();
    let mut play = stage.play();
    play.actors[number].state = state;
    let next = play.choose(number);
    let command = play.actors[number].command;
    if next == number {
        return command;
    }
    stage.pass(play, next);
    stage.await_command(number)
}

impl Stage {
    fn play(&self) -> MutexGuard<'_, Play> {
        self.play.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the test look at the memory.
    fn look(&self) {
        IS_CHECKING.set(true);
        let play = self.play();
        let mut sleepers = play.living.iter().filter_map(|&number| match play.actors[number].state {
            State::Asleep { key, until: Instant::NEVER } => Some(key),
            _ => None,
        });
        (self.check)(&mut sleepers);
        IS_CHECKING.set(false);
    }

    fn pass(&self, play: MutexGuard<'_, Play>, next: usize) {
        let thread = play.actors.get(next).map_or_else(|| self.director.clone(), |actor| actor.thread.clone());
        drop(play);
        self.turn.store(next, Ordering::SeqCst);
        thread.unpark();
    }

    fn await_turn(&self, number: usize) {
        while self.turn.load(Ordering::SeqCst) != number {
            thread::park();
        }
    }

    /// Waits for the turn of an actor, unless it is to die.
    fn await_command(&self, number: usize) -> Command {
        self.await_turn(number);
        let command = self.play().actors[number].command;
        if command == Command::Die {
            fault::end_thread();
        }
        command
    }
}

impl Play {
    /// Whose turn it is after this step of `current`.
    fn choose(&mut self, current: usize) -> usize {
        self.steps += 1;
        self.clock = self.clock.saturating_add(STEP);
        if self.failure.is_some() {
            return DIRECTOR;
        }
        assert!(self.steps < STEPS_MAX, "the threads go in circles");
        if self.events > 0 && self.random.below(self.event_every) == 0 {
            self.events -= 1;
            return DIRECTOR;
        }
        let next = self.next(current);
        self.hash = (self.hash ^ next as u64).wrapping_mul(0x0100_0000_01b3);
        let Some(actor) = self.actors.get_mut(next) else { return DIRECTOR };
        actor.command = match actor.state {
            State::Asleep { until, .. } => {
                self.clock = self.clock.max(until);
                Command::BeLate
            }
            State::Ready | State::Over => Command::GoOn,
        };
        actor.state = State::Ready;
        actor.stopped = 0;
        if self.random.below(STOP_EVERY) == 0 {
            self.stops += 1;
            actor.stopped = self.steps + self.random.below(STOP_MAX);
        }
        next
    }

    fn next(&mut self, current: usize) -> usize {
        let is_late = self.random.below(LATE_EVERY) == 0;
        let may = |actor: &Actor| actor.state == State::Ready && actor.stopped <= self.steps;
        if !is_late && self.actors.get(current).is_some_and(may) && self.random.below(self.switch_every) != 0 {
            return current;
        }
        let may_be_late = |actor: &Actor| matches!(actor.state, State::Asleep { until, .. } if until != Instant::NEVER);
        if is_late && let Some(next) = self.any(may_be_late) {
            return next;
        }
        let steps = self.steps;
        let ready = self.any(|actor| actor.state == State::Ready && actor.stopped <= steps);
        // What else is left: those that are stopped, which go on some day, and those that wait for a time.
        ready.or_else(|| self.any(|actor| actor.state == State::Ready || may_be_late(actor))).unwrap_or(DIRECTOR)
    }

    /// A random one of the actors that are such.
    fn any(&mut self, is_such: impl Fn(&Actor) -> bool) -> Option<usize> {
        let such = || self.living.iter().copied().filter(|&number| is_such(&self.actors[number]));
        let count = such().count() as u64;
        (count > 0).then(|| such().nth(self.random.below(count) as usize)).flatten()
    }

    fn wake(&mut self, key: u64, most: usize) {
        // Linux wakes in the order in which they came; any other order can be, too.
        for _ in 0..most {
            let sleeps = |actor: &Actor| matches!(actor.state, State::Asleep { key: on, .. } if on == key);
            let Some(number) = self.any(sleeps) else { return };
            self.actors[number].state = State::Ready;
        }
    }

    fn end(&mut self, number: usize) {
        self.actors[number].state = State::Over;
        self.living.retain(|&living| living != number);
    }
}

/// A schedule by a seed.
pub struct Simulation {
    stage: Arc<Stage>,
}

/// How a schedule went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// From point to point.
    pub steps: u64,
    /// Threads that were stopped for a while.
    pub stops: u64,
    /// Of all choices: the same for the same schedule.
    pub hash: u64,
}

impl Simulation {
    /// A schedule by `seed`, in which something happens from outside `events` times, once in about `event_every` steps.
    pub fn new(seed: u64, events: u32, event_every: u64, check: Check) -> Simulation {
        // Killed threads never close what they had open.
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        let mut random = Random::of(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let play = Play {
            // Some schedules change the thread at nearly every point, others seldom.
            switch_every: 2 << random.below(4),
            random,
            actors: Vec::new(),
            living: Vec::new(),
            steps: 0,
            stops: 0,
            event_every,
            events,
            clock: Instant(1_000_000_000),
            hash: 0xcbf2_9ce4_8422_2325,
            failure: None,
        };
        let (turn, director) = (AtomicUsize::new(DIRECTOR), thread::current());
        Simulation { stage: Arc::new(Stage { turn, director, check, play: Mutex::new(play) }) }
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&self, bound: u64) -> u64 {
        self.stage.play().random.below(bound)
    }

    /// A new actor, whose first step comes some day. Answers with its number, which counts from 0.
    pub fn start(&mut self, body: impl FnOnce(usize) + Send + 'static) -> usize {
        let number = self.stage.play().actors.len();
        let (stage, (tell, told)) = (self.stage.clone(), channel());
        let life = move || {
            tell.send(scheduling::current_thread()).expect("it is awaited");
            ACTOR.with(|actor| actor.replace(Some((number, stage.clone()))));
            stage.await_command(number);
            let ended = catch_unwind(AssertUnwindSafe(|| body(number)));
            // What ends with the thread is no step any more.
            ACTOR.with(|actor| actor.take());
            let mut play = stage.play();
            play.end(number);
            play.failure = play.failure.take().or(ended.err());
            let next = if play.steps < STEPS_MAX { play.choose(number) } else { DIRECTOR };
            stage.pass(play, next);
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(life).expect("a thread").thread().clone();
        let linux = told.recv().expect("it says so");
        let mut play = self.stage.play();
        play.living.push(number);
        play.actors.push(Actor { thread, linux, state: State::Ready, command: Command::GoOn, stopped: 0 });
        number
    }

    /// Lets the actors take turns until something is to happen from outside, or all have ended.
    ///
    /// Panics if one of them did, or if the rest sleeps for ever.
    pub fn go_on(&mut self) -> Pause {
        let mut play = self.stage.play();
        let events = play.events;
        let next = play.choose(DIRECTOR);
        if next != DIRECTOR {
            self.stage.pass(play, next);
            self.stage.await_turn(DIRECTOR);
            play = self.stage.play();
        }
        if let Some(failure) = play.failure.take() {
            drop(play);
            resume_unwind(failure);
        }
        if play.events != events {
            return Pause::Event;
        }
        let sleepers: Vec<(usize, State)> = play.living.iter().map(|&it| (it, play.actors[it].state)).collect();
        assert_eq!(sleepers, [], "all threads sleep: a wake-up was lost");
        Pause::Over
    }

    /// Ends the thread of an actor where it is, by the bare system call: Linux marks its robust mutexes, and nothing of it
    /// is dropped.
    pub fn kill(&mut self, number: usize) {
        let mut play = self.stage.play();
        if play.actors[number].state == State::Over {
            return;
        }
        play.end(number);
        play.actors[number].command = Command::Die;
        let linux = play.actors[number].linux;
        self.stage.pass(play, number);
        while scheduling::is_thread_of(linux, std::process::id()) {
            thread::yield_now();
        }
        self.stage.turn.store(DIRECTOR, Ordering::SeqCst);
    }

    /// Wakes those that sleep on `key`; at most so many.
    pub fn wake(&mut self, key: u64, most: usize) {
        self.stage.play().wake(key, most);
    }

    /// The numbers of the actors that have not ended.
    pub fn living(&self) -> Vec<usize> {
        self.stage.play().living.clone()
    }

    /// Whether something is still to happen from outside.
    pub fn is_eventful(&self) -> bool {
        self.stage.play().events > 0
    }

    /// How it went so far.
    pub fn played(&self) -> Played {
        let play = self.stage.play();
        Played { steps: play.steps, stops: play.stops, hash: play.hash }
    }
}
