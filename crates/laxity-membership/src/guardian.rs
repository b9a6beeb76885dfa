//! The thread that holds this process's word at a memory and waits on those of the others.
//!
//! It sees to what the dead left, or has another thread, the heir, do so: who holds a word through the robust list must
//! hold no robust mutex of the C library.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_model::{Instant, Nanos};
use laxity_sys::robust::{Holder, while_held};
use laxity_sys::{clock, futex, scheduling};

use crate::kind::{Kind, Reaped};
use crate::members::{MEMBERS_MAX, Members};

/// They sleep unless a process comes or dies, and then nothing is more urgent.
const PRIORITY: u8 = 98;
/// How often to look if Linux cannot wait on many words.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
/// How often to look whether the last threads of a killed process have ended.
const ENDING: Duration = Duration::from_micros(200);
const STACK: usize = 64 << 10;
/// To reap takes what the memory's kind needs for it.
const HEIRS_STACK: usize = 256 << 10;

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
        let heir = if K::REAPS_WITH_MUTEXES { Some(heir(memory, &is_over)?) } else { None };
        let (heir, news) = heir.unzip();
        let (started, has_started) = mpsc::sync_channel(1);
        let guardian = {
            let (memory, is_over) = (memory.clone(), is_over.clone());
            spawn("laxity-guardian", STACK, move || {
                // Whoever may not have a priority is not told sooner than others run.
                let may_raise = scheduling::set_fifo(PRIORITY).is_ok();
                let members = memory.members();
                let held = while_held(members.word(slot), || {
                    members.announce();
                    let _ = started.send(Ok(may_raise));
                    guard(members, slot, &is_over, || match &news {
                        // Full: what is there to be heard was not heard yet.
                        Some(news) => drop(news.try_send(())),
                        None => see_to_the_dead(&*memory, &is_over),
                    });
                });
                // If it was held, nobody listens any more.
                let taken = || io::Error::new(io::ErrorKind::ResourceBusy, "another process took its slot");
                let _ = started.try_send(held.and_then(|held| held.ok_or_else(taken)).map(|()| may_raise));
            })?
        };
        let may_raise = has_started.recv().unwrap_or_else(|_| Err(io::Error::other("the guardian ended")))?;
        let threads = [guardian].into_iter().chain(heir).collect();
        Ok(Guardian { memory: memory.clone(), is_over, threads, may_raise })
    }

    /// Ends the membership. The heir ends when it hears no more news.
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
    thread::Builder::new().name(name.to_owned()).stack_size(stack).spawn(body)
}

/// A thread that sees to the dead whenever there is news, until nobody is left to tell it any.
fn heir<K: Kind>(memory: &Arc<K>, is_over: &Arc<AtomicBool>) -> io::Result<(JoinHandle<()>, SyncSender<()>)> {
    // One piece of news that was not heard yet is as good as many.
    let (news, heard): (_, Receiver<()>) = mpsc::sync_channel(1);
    let (memory, is_over) = (memory.clone(), is_over.clone());
    let thread = spawn("laxity-heir", HEIRS_STACK, move || {
        let _ = scheduling::set_fifo(PRIORITY);
        while heard.recv().is_ok() {
            see_to_the_dead(&*memory, &is_over);
        }
    })?;
    Ok((thread, news))
}

/// Until the last threads of those that were killed have ended. If the memory is damaged nobody can go on, and everyone
/// else is told so.
fn see_to_the_dead<K: Kind>(memory: &K, is_over: &AtomicBool) {
    while matches!(memory.reap(), Ok(Reaped::Pending)) && !is_over.load(Ordering::SeqCst) {
        thread::sleep(ENDING);
    }
}

/// Waits for deaths, at the slot `ourselves`, and has each `seen_to`.
fn guard(members: Members<'_>, ourselves: usize, is_over: &AtomicBool, see_to: impl Fn()) {
    let epoch = members.epoch();
    while !is_over.load(Ordering::SeqCst) {
        // Read before looking, so that whoever comes while we look ends the wait.
        let seen = epoch.load(Ordering::SeqCst);
        let mut words: Vec<(&AtomicU32, u32)> = vec![(epoch, seen)];
        let mut has_dead = false;
        for slot in (0..MEMBERS_MAX).filter(|&slot| slot != ourselves) {
            let word = members.word(slot);
            let value = word.load(Ordering::SeqCst);
            match Holder::of(value) {
                Holder::Alive => words.push((word, value)),
                Holder::Died => {
                    // Linux wakes one guardian. It wakes the others before anything else.
                    futex::wake_all(word);
                    has_dead = true;
                }
                Holder::Free => {}
            }
        }
        if has_dead {
            // Who dies meanwhile ends the wait, as the word is not what it was.
            see_to();
        }
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        if futex::wait_any(&words, Instant::NEVER).is_err() {
            futex::wait(epoch, seen, clock::now().saturating_add(LOOK_AGAIN));
        }
    }
}
