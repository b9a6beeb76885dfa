//! The thread that holds this process's word at a graph and waits on those of the others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use laxity_model::{Instant, Nanos};
use laxity_sys::robust::{Holder, while_held};
use laxity_sys::{clock, futex, scheduling};

use crate::layout::{COMINGS, MEMBERS_MAX};
use crate::members::{Burial, MemberId};
use crate::shared::Shared;

/// It sleeps unless a process comes or dies, and then nothing is more urgent.
const PRIORITY: u8 = 98;
/// How often to look where nothing wakes: while a killed process still ends, or if Linux cannot wait on many words.
const LOOK_AGAIN: Nanos = Nanos::from_millis(1);

/// Ends the guardian, and with it the membership, when dropped.
#[derive(Debug)]
pub(crate) struct Guardian {
    shared: Arc<Shared>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Guardian {
    /// Makes this process the member `member`, which is announced before this returns.
    pub fn start(shared: &Arc<Shared>, member: MemberId) -> io::Result<Guardian> {
        let is_over = Arc::new(AtomicBool::new(false));
        let (started, has_started) = mpsc::sync_channel(1);
        let thread = {
            let (shared, is_over) = (shared.clone(), is_over.clone());
            thread::Builder::new().name("laxity-guardian".to_owned()).stack_size(64 << 10).spawn(move || {
                // Whoever may not have a priority is not told sooner than others run.
                let _ = scheduling::set_fifo(PRIORITY);
                let word = shared.segment.u32(shared.layout.member(member.place).word);
                let held = while_held(word, || {
                    shared.announce();
                    let _ = started.send(Ok(()));
                    guard(&shared, member.place, &is_over);
                });
                // If it was held, nobody listens any more.
                let taken = || io::Error::new(io::ErrorKind::ResourceBusy, "another process took its place");
                let _ = started.try_send(held.and_then(|held| held.ok_or_else(taken)));
            })?
        };
        has_started.recv().unwrap_or_else(|_| Err(io::Error::other("the guardian ended")))?;
        Ok(Guardian { shared: shared.clone(), is_over, thread: Some(thread) })
    }

    /// Forgets the thread: this process is a copy of the one that has it.
    pub fn abandon(&mut self) {
        self.thread = None;
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.is_over.store(true, Ordering::SeqCst);
            self.shared.announce();
            let _ = thread.join();
        }
    }
}

fn guard(shared: &Shared, ourselves: usize, is_over: &AtomicBool) {
    let comings = shared.segment.u32(COMINGS);
    while !is_over.load(Ordering::SeqCst) {
        // Read before looking, so that whoever comes while we look ends the wait.
        let seen = comings.load(Ordering::SeqCst);
        let burial = shared.bury();
        let mut words: Vec<(&AtomicU32, u32)> = vec![(comings, seen)];
        let mut has_news = false;
        for place in (0..MEMBERS_MAX).filter(|&place| place != ourselves) {
            let word = shared.segment.u32(shared.layout.member(place).word);
            let value = word.load(Ordering::SeqCst);
            match Holder::of(value) {
                Holder::Alive => words.push((word, value)),
                Holder::Died => has_news |= burial == Burial::Done,
                Holder::Nobody => {}
            }
        }
        if has_news || is_over.load(Ordering::SeqCst) {
            continue;
        }
        let soon = || clock::now().saturating_add(LOOK_AGAIN);
        let deadline = if burial == Burial::Pending { soon() } else { Instant::NEVER };
        if futex::wait_any(&words, deadline).is_err() {
            futex::wait(comings, seen, soon());
        }
    }
}
