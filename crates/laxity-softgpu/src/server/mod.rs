//! The server of a soft GPU: it decides what each engine does, and keeps time. It executes nothing itself: each process
//! carries out the work of its own operations while the server holds the engine for it.

mod allocator;
pub mod arguments;
#[cfg(test)]
mod conformance_tests;
pub(crate) mod device;
pub mod history;
#[cfg(test)]
mod hostile_tests;
mod memory;
pub(crate) mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::AsFd;

use laxity_model::{Engine, Instant};
use laxity_sys::packets::{self, Listener, Packets, Received};
use laxity_sys::sparse::Sparse;
use laxity_sys::{clock, scheduling};
use thiserror::Error;

use self::device::{Device, Effect, Now, Violation};
use self::memory::{Answer, Memory};
use crate::config::Config;
use crate::message::{ENTRIES_MAX, Message, PACKET_MAX, Reply, Request};
use crate::usage::Usage;

/// Hardware does not wait for a CPU. Less than that of the threads that watch for deaths.
const PRIORITY: u8 = 97;
/// The most packets that wait for one process. The server disconnects a process that leaves more of them.
const OUTBOX_MAX: usize = 4 * device::OUTSTANDING_MAX;
/// The most packets that the server takes from one process before it is the next one's turn.
const TURN: usize = 16;
const ENGINES: usize = Engine::ALL.len();

/// Why a server does not run.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Another server has the name.
    #[error("another server has the name already")]
    Running,
    /// Linux gives no device memory.
    #[error("no device memory: {0}")]
    Memory(io::Error),
    /// Linux refuses a call.
    #[error("cannot listen: {0}")]
    System(io::Error),
}

/// Where processes of this user find the soft GPU `name`.
pub(crate) fn address(name: &str) -> String {
    format!("{}{name}", address_prefix())
}

/// What the addresses of this user's soft GPUs begin with.
pub(crate) fn address_prefix() -> String {
    format!("laxity-softgpu/{}/", packets::user())
}

/// A process, as the server sees it.
#[derive(Debug)]
struct Client {
    packets: Packets,
    outbox: VecDeque<Vec<u8>>,
    /// By engine, the connection to the thread that carries out its work. `None` until the process said hello.
    engines: Option<[Packets; ENGINES]>,
    /// The process does not take its packets.
    is_lost: bool,
}

/// A server that has its name.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    config: Config,
    memory: Memory<Sparse>,
    device: Device,
    clients: BTreeMap<u64, Client>,
    /// The number of the next one. Numbers are never used twice: dead processes' operations keep them.
    next_client: u64,
    /// When the last process left.
    idle_since: Instant,
}

impl Server {
    /// The server of the soft GPU `name`. Processes can connect from now on.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn new(name: &str, config: Config) -> Result<Server, ServerError> {
        let listener = Listener::bind(&address(name)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServerError::Running,
            _ => ServerError::System(error),
        })?;
        // It ends with the last process that has it open.
        let pages = Sparse::new("laxity-softgpu", config.memory).map_err(ServerError::Memory)?;
        Ok(Server {
            listener,
            config,
            memory: Memory::new(pages, config.memory),
            device: Device::new(config.copy_engines),
            clients: BTreeMap::new(),
            next_client: 0,
            idle_since: clock::now(),
        })
    }

    /// Serves until no process has used it for as long as it lingers.
    pub fn run(mut self) {
        // The thread that happened to start it may have been kept on few CPUs. Without the permission for a priority
        // the server runs like other threads.
        let _ = scheduling::keep_on(&(0..scheduling::cpus()).collect::<Vec<_>>());
        let _ = scheduling::set_fifo(PRIORITY);
        packets::raise_limit();
        loop {
            let mut effects = Vec::new();
            self.device.pass(now(), &mut effects);
            self.listen(&mut effects);
            self.tell(effects);
            self.serve_memory();
            self.flush();
            // After all that may have made room: no process leaves between this and the wait.
            let is_full = self.admit();
            let deadline = match self.memory.is_busy() {
                true => Instant::ZERO,
                false => self.device.next_timeout().unwrap_or(Instant::NEVER),
            };
            if !self.clients.is_empty() {
                self.wait(is_full, deadline);
                continue;
            }
            let over = self.idle_since.saturating_add(self.config.linger);
            if clock::now() >= over {
                // A process that connected just now sees its connection end before the welcome, and starts a server.
                return;
            }
            self.wait(is_full, deadline.min(over));
        }
    }

    /// If the server `is_full`, new connections wait until a process leaves.
    fn wait(&self, is_full: bool, deadline: Instant) {
        let sockets = self.clients.values().map(|client| client.packets.as_fd());
        let readable: Vec<_> = sockets.chain((!is_full).then(|| self.listener.as_fd())).collect();
        let full = self.clients.values().filter(|client| !client.outbox.is_empty());
        let writable: Vec<_> = full.map(|client| client.packets.as_fd()).collect();
        packets::wait(&readable, &writable, deadline);
    }

    /// Accepts new connections. Answers whether there are no descriptors left for one more.
    fn admit(&mut self) -> bool {
        loop {
            let packets = match self.listener.accept() {
                Ok(Some(packets)) => packets,
                Ok(None) => return false,
                Err(_) => return true,
            };
            let number = self.next_client;
            self.next_client += 1;
            self.clients.insert(number, Client { packets, outbox: VecDeque::new(), engines: None, is_lost: false });
        }
    }

    /// Takes requests from every process in turn.
    fn listen(&mut self, effects: &mut Vec<Effect>) {
        let numbers: Vec<u64> = self.clients.keys().copied().collect();
        let mut packet = [0; PACKET_MAX];
        for number in numbers {
            for _ in 0..TURN {
                let heard = match self.clients[&number].packets.try_receive(&mut packet) {
                    Received::Nothing => break,
                    Received::End => Err(Violation),
                    Received::Packet(length) => {
                        let request = Request::decode(&packet[..length]).ok_or(Violation);
                        request.and_then(|request| self.hear(number, request, effects))
                    }
                };
                if heard.is_err() {
                    self.dismiss(number, effects);
                    break;
                }
            }
        }
    }

    fn hear(&mut self, number: u64, request: Request, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let client = self.clients.get_mut(&number).ok_or(Violation)?;
        // The first request, and only that, is a hello. A process that only looks needs none.
        let is_look = matches!(request, Request::Look(_));
        if client.is_welcome() == matches!(request, Request::Hello(_)) && !is_look {
            return Err(Violation);
        }
        let reply = match request {
            Request::Hello(_) => {
                // The process compares the configuration with its own.
                client.welcome(self.config, self.memory.pages()).map_err(|_| Violation)?;
                self.device.join(number);
                return Ok(());
            }
            Request::Stream(name) => Reply::Stream(self.device.create_stream(number, name)?),
            Request::Release(stream) => return self.device.release_stream(number, stream),
            Request::Name(stream) => Reply::Name(self.device.streams().name(stream).unwrap_or_default().to_owned()),
            Request::Allocate(bytes) => {
                // Answers come in the order of questions, so a process asks one at a time.
                return match self.memory.is_asked_by(number) {
                    true => Err(Violation),
                    false => {
                        self.memory.allocate(number, bytes);
                        Ok(())
                    }
                };
            }
            Request::Free(offset) => {
                return if self.memory.free(number, offset) { Ok(()) } else { Err(Violation) };
            }
            Request::Look(_) => Reply::Seen(self.usage()),
            Request::Issue(issue) => return self.device.issue(now(), number, issue, effects),
            Request::Worked(operation) => return self.device.worked(now(), number, operation, effects),
            Request::History(from) => {
                let (first, entries) = self.device.history().from(from, ENTRIES_MAX);
                Reply::History { first, entries }
            }
        };
        self.send(number, reply);
        Ok(())
    }

    /// Reserves or releases a little of the machine's memory, if there is a task.
    fn serve_memory(&mut self) {
        if let Some((number, answer)) = self.memory.step() {
            self.send(
                number,
                match answer {
                    Answer::Allocated(offset) => Reply::Allocated(offset),
                    Answer::NoMemory(largest) => Reply::NoMemory(largest),
                    Answer::Shortage(left) => Reply::Shortage(left),
                },
            );
        }
    }

    fn usage(&self) -> Usage {
        Usage {
            config: self.config,
            used: self.memory.used(),
            // Linux can tell of an open file.
            reserved: self.memory.pages().reserved().unwrap_or(0),
            streams: self.device.streams().count() as u64,
            processes: self.clients.values().filter(|client| client.is_welcome()).count() as u64,
        }
    }

    /// Queues a packet, to be sent when there is room.
    fn send(&mut self, number: u64, reply: Reply) {
        if let Some(client) = self.clients.get_mut(&number) {
            client.outbox.push_back(reply.encode());
        }
    }

    fn tell(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Begin { client, engine, operation } => {
                    if let Some(client) = self.clients.get_mut(&client) {
                        client.begin(engine, operation);
                    }
                }
                Effect::Complete { client, operation } => self.send(client, Reply::Complete(operation)),
            }
        }
    }

    /// Sends queued packets while there is room.
    fn flush(&mut self) {
        loop {
            let mut lost = Vec::new();
            for (&number, client) in &mut self.clients {
                if client.flush().is_err() || client.is_lost || client.outbox.len() > OUTBOX_MAX {
                    lost.push(number);
                }
            }
            if lost.is_empty() {
                return;
            }
            let mut effects = Vec::new();
            lost.into_iter().for_each(|number| self.dismiss(number, &mut effects));
            self.tell(effects);
        }
    }

    /// Ends the connection of a process that is gone or broke the protocol.
    fn dismiss(&mut self, number: u64, effects: &mut Vec<Effect>) {
        // A process that only looked has nothing, and does not prolong the server's stay.
        if self.clients.remove(&number).is_some_and(|client| client.is_welcome()) {
            self.device.leave(now(), number, effects);
            self.memory.free_all(number);
            self.idle_since = clock::now();
        }
    }
}

impl Client {
    fn is_welcome(&self) -> bool {
        self.engines.is_some()
    }

    /// Sends the configuration, the memory, and for each engine's thread its end of a connection.
    fn welcome(&mut self, config: Config, memory: &Sparse) -> io::Result<()> {
        let pairs = [Packets::pair()?, Packets::pair()?, Packets::pair()?];
        let [execution, copy_in, copy_out] = pairs.each_ref().map(|(_, theirs)| theirs.as_fd());
        let descriptors = [memory.as_fd(), execution, copy_in, copy_out];
        self.packets.send_with(&Reply::Welcome(config).encode(), &descriptors)?;
        self.engines = Some(pairs.map(|(ours, _)| ours));
        Ok(())
    }

    /// Tells the thread of `engine` to begin, directly: a thread in between would be one more switch, and, being as
    /// urgent and on the same CPU, would drive it to another CPU.
    fn begin(&mut self, engine: Engine, operation: u64) {
        let begin = Reply::Begin(operation).encode();
        let told = self.engines.as_ref().map(|engines| engines[engine.index()].try_send(&begin));
        // An engine has one operation at a time, so there is room, except in a process that reports work it was never
        // given. If the thread is gone, the process is closing: its other engines may still work, until its connection ends.
        // Any other error, such as too little memory, leaves the engine waiting for a thread that was never told.
        self.is_lost |= match told {
            Some(Err(error)) => !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset),
            Some(Ok(has_room)) => !has_room,
            None => false,
        };
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(packet) = self.outbox.front() {
            if !self.packets.try_send(packet)? {
                break;
            }
            self.outbox.pop_front();
        }
        Ok(())
    }
}

fn now() -> Now {
    Now { at: clock::now(), cpu: scheduling::current_cpu() as u16 }
}
