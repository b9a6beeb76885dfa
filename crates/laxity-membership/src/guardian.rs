//! The thread that holds this process's liveness word in a memory and waits on those of the others.
//!
//! It reaps the members that died, or has another thread do so, the reaper: a thread that holds a word through the
//! robust list must hold no robust mutex of the C library.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use laxity_model::{Instant, Nanos};
use laxity_sys::backoff::Backoff;
use laxity_sys::robust::{Holder, while_held};
use laxity_sys::{clock, futex, scheduling};

use crate::kind::{Kind, Reaped};
use crate::members::{MEMBERS_MAX, Members};

/// They sleep unless a process comes or dies, and then nothing is more urgent.
const PRIORITY: u8 = 98;
/// How often to look if Linux cannot wait on many words.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
/// Pauses before looking again whether the last threads of a dead process have ended: mostly they do so at once, but a
/// core dump takes seconds.
const ENDING: [Nanos; 2] = [Nanos::from_micros(200), Nanos::from_millis(100)];
const STACK: usize = 64 << 10;
/// To reap takes what the memory's kind needs for it.
const REAPERS_STACK: usize = 256 << 10;

/// Ends the threads, and with them the membership.
#[derive(Debug)]
pub(crate) struct Guardian<K: Kind> {
    memory: Arc<K>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Whether Linux let it have its priority.
    pub may_raise: bool,
}

impl<K: Kind> Guardian<K> {
    /// Makes this process the member at `slot`, which is announced before this returns.
    pub fn start(memory: &Arc<K>, slot: usize) -> io::Result<Guardian<K>> {
        let is_over = Arc::new(AtomicBool::new(false));
        let reaper = if K::REAPS_WITH_MUTEXES { Some(reaper(memory, &is_over)?) } else { None };
        let (reaper, news) = reaper.unzip();
        let (started, has_started) = mpsc::sync_channel(1);
        // From here on an error ends the threads that there are.
        let threads = Vec::from_iter(reaper);
        let mut guardian = Guardian { memory: memory.clone(), is_over: is_over.clone(), threads, may_raise: false };
        let thread = {
            let memory = memory.clone();
            spawn("laxity-guardian", STACK, move || {
                // Without the priority the guardian hears of deaths when other threads let it run.
                let may_raise = scheduling::set_fifo(PRIORITY).is_ok();
                let members = memory.members();
                let held = while_held(members.word(slot), || {
                    members.announce();
                    let _ = started.send(Ok(may_raise));
                    guard(members, slot, &is_over, || match &news {
                        Some(news) => {
                            // If the channel is full, the reaper has not taken the last news yet.
                            let _ = news.try_send(());
                            Reaped::Done
                        }
                        None => reap(&*memory),
                    });
                });
                // If the word was held, the receiver is gone.
                let taken = || io::Error::new(io::ErrorKind::ResourceBusy, "another process took its slot");
                let _ = started.try_send(held.and_then(|held| held.ok_or_else(taken)).map(|()| may_raise));
            })?
        };
        // Joined first: the reaper ends when the guardian has dropped its end of the channel.
        guardian.threads.insert(0, thread);
        guardian.may_raise = has_started.recv().unwrap_or_else(|_| Err(io::Error::other("the guardian ended")))?;
        Ok(guardian)
    }

    /// No thread, for a simulated member.
    #[cfg(debug_assertions)]
    pub fn none(memory: &Arc<K>) -> Guardian<K> {
        Guardian { memory: memory.clone(), is_over: Arc::default(), threads: Vec::new(), may_raise: false }
    }

    /// Ends the membership. The reaper ends when its channel is closed.
    pub fn end(&mut self) {
        for thread in self.threads.drain(..) {
            self.is_over.store(true, Ordering::SeqCst);
            self.memory.members().announce();
            let _ = thread.join();
        }
    }

    /// Forgets the threads: this process is a copy of the one that has them.
    pub fn abandon(&mut self) {
        self.threads.clear();
    }
}

impl<K: Kind> Drop for Guardian<K> {
    fn drop(&mut self) {
        self.end();
    }
}

fn spawn(name: &str, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    scheduling::spawn(std::thread::Builder::new().name(name.to_owned()).stack_size(stack), body)
}

/// A thread that reaps the dead whenever there is news, until the channel is closed.
fn reaper<K: Kind>(memory: &Arc<K>, is_over: &Arc<AtomicBool>) -> io::Result<(JoinHandle<()>, SyncSender<()>)> {
    // One piece of news that was not taken yet is as good as many.
    let (news, taken): (_, Receiver<()>) = mpsc::sync_channel(1);
    let (memory, is_over) = (memory.clone(), is_over.clone());
    let thread = spawn("laxity-reaper", REAPERS_STACK, move || {
        let _ = scheduling::set_fifo(PRIORITY);
        let mut backoff = backoff();
        while await_news(&taken, &*memory) {
            backoff.reset();
            while reap(&*memory) == Reaped::Pending && !is_over.load(Ordering::SeqCst) {
                match taken.recv_timeout(Duration::from_nanos(backoff.pause().0)) {
                    Ok(()) => backoff.reset(),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        }
    })?;
    Ok((thread, news))
}

/// Waits for news, looking at the memory as often as its kind wants. Answers whether there can be more.
fn await_news<K: Kind>(taken: &Receiver<()>, memory: &K) -> bool {
    let Some(pause) = K::LOOKS else { return taken.recv().is_ok() };
    loop {
        match taken.recv_timeout(Duration::from_nanos(pause.0)) {
            Ok(()) => return true,
            Err(RecvTimeoutError::Timeout) => memory.look(),
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

fn backoff() -> Backoff {
    let [first, longest] = ENDING;
    Backoff::new(first, longest)
}

/// If the memory is damaged no member can go on, and all other callers are told so.
fn reap<K: Kind>(memory: &K) -> Reaped {
    memory.reap().unwrap_or(Reaped::Done)
}

/// Waits for deaths, at the slot `ourselves`, and calls `reap` for each, and again while a dead process has not ended.
fn guard(members: Members<'_>, ourselves: usize, is_over: &AtomicBool, reap: impl Fn() -> Reaped) {
    let epoch = members.epoch();
    let (mut backoff, mut dead_before) = (backoff(), 0);
    while !is_over.load(Ordering::SeqCst) {
        // Read before looking, so that a process that comes while we look ends the wait.
        let seen = epoch.load(Ordering::SeqCst);
        let mut words: Vec<(&AtomicU32, u32)> = vec![(epoch, seen)];
        let mut dead = 0;
        for slot in (0..MEMBERS_MAX).filter(|&slot| slot != ourselves) {
            let word = members.word(slot);
            let value = word.load(Ordering::SeqCst);
            match Holder::of(value) {
                Holder::Alive => words.push((word, value)),
                Holder::Died => {
                    // Linux wakes one guardian. It wakes the others before it does anything else.
                    futex::wake_all(word);
                    dead += 1;
                }
                Holder::Free => {}
            }
        }
        if dead != dead_before {
            backoff.reset();
            dead_before = dead;
        }
        // A process that dies meanwhile ends the wait, as its word is not what it was.
        let look_again = match if dead > 0 { reap() } else { Reaped::Done } {
            Reaped::Done => Instant::NEVER,
            Reaped::Pending => clock::now().saturating_add(backoff.pause()),
        };
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        if futex::wait_any(&words, look_again).is_err() {
            futex::wait(epoch, seen, look_again.min(clock::now().saturating_add(LOOK_AGAIN)));
        }
    }
}
