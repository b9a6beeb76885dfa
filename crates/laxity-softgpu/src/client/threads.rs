//! The threads of a process that has a soft GPU.
//!
//! ```text
//! server -- begin --> an engine's thread: carries out the work -----------------------------> server
//!    |
//!   link -- complete --> handling thread: wakes threads that synchronize --> callback thread
//!    +----- answers --> the thread that asked
//! ```
//!
//! The handling thread is the live klmirqd thread of this process, the callback thread that of its GPU run-time library
//! (paper 003, section 5.3). Both work on behalf of the streams' owners, and [`Handling`] learns the owner.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use laxity_model::{Engine, Instant};
use laxity_sys::packets::{Packets, Received};
use laxity_sys::{futex, scheduling};

use super::inside;
use super::options::Options;
use super::shared::{Call, Shared, Work};
use super::stream::KernelResult;
use crate::error::Panicked;
use crate::message::{Message, PACKET_MAX, Reply};

/// The stack of a thread that runs no code of users.
const OWN_STACK: usize = 256 << 10;
/// The link stands for hardware, which does not wait for a CPU.
const LINK_PRIORITY: u8 = 97;

/// A thread that works on behalf of the owners of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Handles interrupts.
    Interrupts,
    /// Calls callbacks.
    Callbacks,
}

/// Is told on whose behalf the handling thread and the callback thread work, so that they can have the owner's
/// priority.
///
/// It is called on the thread itself. To raise a thread that waits for a CPU, use its number:
/// [`SoftGpu::handling_threads`](crate::SoftGpu::handling_threads).
pub trait Handling: fmt::Debug + Send + Sync {
    /// The calling thread is that one, and begins. The GPU is open once this returned.
    fn begin(&self, _thread: Server) {}

    /// The thread works on behalf of the owner of the stream from now on.
    fn serve(&self, _thread: Server, _stream: &str) {}

    /// The thread has done that.
    fn done(&self, _thread: Server) {}
}

/// The threads keep the priority that they have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmanaged;

impl Handling for Unmanaged {}

/// All threads of one process that serve its soft GPU.
#[derive(Debug)]
pub(super) struct Threads {
    engines: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
    is_closing: Arc<AtomicBool>,
    numbers: Arc<Numbers>,
}

/// Linux's numbers of the threads that a user may want to schedule.
#[derive(Debug, Default)]
struct Numbers {
    handling: [AtomicU32; 2],
    engines: [AtomicU32; Engine::ALL.len()],
    /// How many threads have noted their numbers. `Threads::start` waits for all of them.
    begun: AtomicU32,
}

impl Numbers {
    /// Waits until all threads have begun.
    fn wait(&self) {
        let all = (self.handling.len() + self.engines.len()) as u32;
        loop {
            match self.begun.load(Ordering::SeqCst) {
                begun if begun == all => return,
                begun => drop(futex::wait(&self.begun, begun, Instant::NEVER)),
            }
        }
    }
}

impl Threads {
    pub fn start(shared: &Arc<Shared>, answers: Sender<Reply>, options: &Options) -> io::Result<Self> {
        let (stack, handling) = (options.stack(), &options.handling);
        let mut threads = Threads {
            engines: Vec::new(),
            others: Vec::new(),
            is_closing: Arc::new(AtomicBool::new(false)),
            numbers: Arc::default(),
        };
        let (interrupt, interrupts) = channel();
        let (call, calls) = channel();
        *shared.callbacks.lock() = Some(call);
        let started = (|| {
            for engine in Engine::ALL {
                let (shared, is_closing) = (shared.clone(), threads.is_closing.clone());
                let name = format!("softgpu-{}", engine_name(engine));
                let begin = threads.begin(move |numbers| &numbers.engines[engine.index()]);
                threads.engines.push(spawn(name, stack, move || {
                    begin();
                    work(&shared, engine, &is_closing);
                })?);
            }
            let (h, begin) = (handling.clone(), threads.begin(|numbers| &numbers.handling[1]));
            threads.others.push(spawn("softgpu-callback".to_owned(), stack, move || {
                h.begin(Server::Callbacks);
                begin();
                call_back(&calls, &*h);
            })?);
            let (s, h, begin) = (shared.clone(), handling.clone(), threads.begin(|numbers| &numbers.handling[0]));
            threads.others.push(spawn("softgpu-handling".to_owned(), stack, move || {
                h.begin(Server::Interrupts);
                begin();
                handle(&s, &interrupts, &*h);
            })?);
            let s = shared.clone();
            let link = move || link(&s, &answers, &interrupt);
            threads.others.push(spawn("softgpu-link".to_owned(), OWN_STACK, link)?);
            Ok(())
        })();
        match started {
            Ok(()) => {
                threads.numbers.wait();
                Ok(threads)
            }
            Err(error) => {
                // Without a link no other thread would tell those that run.
                *shared.callbacks.lock() = None;
                threads.close(shared);
                Err(error)
            }
        }
    }

    /// The first action of a thread: it notes its number in `place`.
    fn begin(&self, place: impl Fn(&Numbers) -> &AtomicU32 + Send + 'static) -> impl FnOnce() + Send + 'static {
        let numbers = self.numbers.clone();
        move || {
            place(&numbers).store(scheduling::current_thread(), Ordering::SeqCst);
            numbers.begun.fetch_add(1, Ordering::SeqCst);
            futex::wake_all(&numbers.begun);
        }
    }

    /// The numbers of the handling thread and the callback thread.
    pub fn handling(&self) -> [u32; 2] {
        self.numbers.handling.each_ref().map(|number| number.load(Ordering::SeqCst))
    }

    /// The numbers of the threads that carry out the work of engines, in the order of [`Engine::ALL`].
    pub fn engines(&self) -> [u32; Engine::ALL.len()] {
        self.numbers.engines.each_ref().map(|number| number.load(Ordering::SeqCst))
    }

    /// Ends all threads. Work that runs ends first: until then its engine and memory are this process's.
    pub fn close(self, shared: &Shared) {
        self.is_closing.store(true, Ordering::Release);
        shared.engines.iter().for_each(Packets::end);
        self.engines.into_iter().for_each(join);
        shared.packets.end();
        self.others.into_iter().for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    // Kernels and callbacks that panic are caught.
    let _ = thread.join();
}

fn spawn(name: String, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    scheduling::spawn(thread::Builder::new().name(name).stack_size(stack), move || {
        inside::enter();
        body();
    })
}

fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Execution => "ee",
        Engine::Copy(0) => "ce0",
        Engine::Copy(_) => "ce1",
    }
}

fn link(shared: &Shared, answers: &Sender<Reply>, interrupt: &Sender<u64>) {
    // Without the permission for a priority it is scheduled like other threads.
    let _ = scheduling::set_fifo(LINK_PRIORITY);
    let mut packet = [0; PACKET_MAX];
    while let Received::Packet(length) = shared.packets.receive(&mut packet) {
        let passed_on = match Reply::decode(&packet[..length]) {
            Some(Reply::Complete(operation)) => interrupt.send(operation).map_err(drop),
            Some(answer) => answers.send(answer).map_err(drop),
            None => Err(()),
        };
        if passed_on.is_err() {
            break;
        }
    }
    shared.packets.end();
}

fn work(shared: &Shared, engine: Engine, is_closing: &AtomicBool) {
    let mut packet = [0; PACKET_MAX];
    while let Received::Packet(length) = shared.engines[engine.index()].receive(&mut packet) {
        if is_closing.load(Ordering::Acquire) {
            break;
        }
        match Reply::decode(&packet[..length]) {
            Some(Reply::Begin(operation)) => shared.work(operation),
            // As the link does with a packet that it does not understand.
            _ => shared.packets.end(),
        }
    }
    if !is_closing.load(Ordering::Acquire) {
        // Operations of this engine would never begin, and their owners wait for ever.
        shared.packets.end();
    }
}

fn handle(shared: &Shared, interrupts: &Receiver<u64>, handling: &dyn Handling) {
    while let Ok(operation) = interrupts.recv() {
        let Some((core, failure)) = shared.take(operation) else { continue };
        handling.serve(Server::Interrupts, &core.name);
        core.complete(shared, failure);
        handling.done(Server::Interrupts);
    }
    // The link has ended, and all interrupts before that are handled.
    shared.lose();
    *shared.callbacks.lock() = None;
}

fn call_back(calls: &Receiver<Call>, handling: &dyn Handling) {
    while let Ok((core, callback, is_counted)) = calls.recv() {
        handling.serve(Server::Callbacks, &core.name);
        // A panic was printed, and concerns the callback's owner alone.
        let _ = catch_unwind(AssertUnwindSafe(callback));
        handling.done(Server::Callbacks);
        if is_counted {
            core.note_called();
        }
    }
}

/// The result of `work`, or the text of its panic.
pub(super) fn guarded(work: Work) -> KernelResult {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(Box::new(Panicked { message: message.unwrap_or_else(|| "no text".to_owned()) }))
    })
}
