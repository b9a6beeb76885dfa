//! The threads that watch for deaths: one holds this process's word and waits on those of the others, one sees to what
//! the dead left.
//!
//! They are two because who holds a word through the robust list (`laxity_sys::robust`) must hold no robust mutex of
//! the C library, and seeing to the dead takes some.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use laxity_model::{Instant, Nanos};
use laxity_sys::robust::{Holder, while_held};
use laxity_sys::{clock, futex, scheduling};

use crate::layout::{COMINGS, MEMBERS_MAX};
use crate::members::Burial;
use crate::shared::Shared;

/// They sleep unless a process comes or dies, and then nothing is more urgent.
const PRIORITY: u8 = 98;
/// How often to look if Linux cannot wait on many words.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);
/// How often to look whether the last threads of a killed process have ended.
const ENDING: Duration = Duration::from_micros(100);
const STACK: usize = 256 << 10;

/// Ends the threads, and with them the membership, when dropped.
#[derive(Debug)]
pub(crate) struct Guardian {
    shared: Arc<Shared>,
    is_over: Arc<AtomicBool>,
    threads: Option<[JoinHandle<()>; 2]>,
    /// Whether Linux let them have their priority.
    pub may_raise: bool,
}

impl Guardian {
    /// Makes this process the member at `place`, which is announced before this returns.
    pub fn start(shared: &Arc<Shared>, place: usize) -> io::Result<Guardian> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (started, has_started) = mpsc::sync_channel(1);
        // One piece of news that was not heard yet is as good as many.
        let (news, heard) = mpsc::sync_channel(1);
        let buries = {
            let (shared, is_over) = (shared.clone(), is_over.clone());
            spawn("laxity-heir", move || see_to_the_dead(&shared, &heard, &is_over))?
        };
        let guards = {
            let (shared, is_over) = (shared.clone(), is_over.clone());
            spawn("laxity-guardian", move || {
                // Whoever may not have a priority is not told sooner than others run.
                let may_raise = scheduling::set_fifo(PRIORITY).is_ok();
                let word = shared.segment.u32(shared.layout.member(place).word);
                let held = while_held(word, || {
                    shared.announce();
                    let _ = started.send(Ok(may_raise));
                    guard(&shared, place, &is_over, &news);
                });
                // If it was held, nobody listens any more.
                let taken = || io::Error::new(io::ErrorKind::ResourceBusy, "another process took its place");
                let _ = started.try_send(held.and_then(|held| held.ok_or_else(taken)).map(|()| may_raise));
            })?
        };
        let may_raise = has_started.recv().unwrap_or_else(|_| Err(io::Error::other("the guardian ended")))?;
        Ok(Guardian { shared: shared.clone(), is_over, threads: Some([guards, buries]), may_raise })
    }

    /// Forgets the threads: this process is a copy of the one that has them.
    pub fn abandon(&mut self) {
        self.threads = None;
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        for thread in self.threads.take().into_iter().flatten() {
            self.is_over.store(true, Ordering::SeqCst);
            self.shared.announce();
            let _ = thread.join();
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(body)
}

fn guard(shared: &Shared, ourselves: usize, is_over: &AtomicBool, news: &SyncSender<()>) {
    let comings = shared.segment.u32(COMINGS);
    while !is_over.load(Ordering::SeqCst) {
        // Read before looking, so that whoever comes while we look ends the wait.
        let seen = comings.load(Ordering::SeqCst);
        let mut words: Vec<(&AtomicU32, u32)> = vec![(comings, seen)];
        for place in (0..MEMBERS_MAX).filter(|&place| place != ourselves) {
            let word = shared.segment.u32(shared.layout.member(place).word);
            let value = word.load(Ordering::SeqCst);
            match Holder::of(value) {
                Holder::Alive => words.push((word, value)),
                Holder::Died => {
                    // Linux wakes one guardian. It wakes the others before anything else.
                    futex::wake_all(word);
                    // Full: what is there to be heard was not heard yet.
                    let _ = news.try_send(());
                }
                Holder::Nobody => {}
            }
        }
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        if futex::wait_any(&words, Instant::NEVER).is_err() {
            futex::wait(comings, seen, clock::now().saturating_add(LOOK_AGAIN));
        }
    }
}

/// Until the guardian has ended.
fn see_to_the_dead(shared: &Shared, heard: &Receiver<()>, is_over: &AtomicBool) {
    let _ = scheduling::set_fifo(PRIORITY);
    while heard.recv().is_ok() {
        // If the memory is damaged nobody can go on, and everyone else is told so.
        while matches!(shared.bury(), Ok(Burial::Pending)) && !is_over.load(Ordering::SeqCst) {
            thread::sleep(ENDING);
        }
    }
}
