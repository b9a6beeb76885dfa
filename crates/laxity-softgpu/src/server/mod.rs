//! The process that is the soft GPU: it decides what each engine does, and keeps time. It executes nothing itself; work
//! is carried out by the processes, each for its own operations, while it holds the engine for them.

mod allocator;
pub mod arguments;
#[cfg(test)]
mod conformance;
pub(crate) mod device;
pub mod history;
#[cfg(test)]
mod hostile;
mod memory;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::AsFd;

use laxity_model::{Engine, Instant};
use laxity_sys::packets::{self, Listener, Packets, Received};
use laxity_sys::sparse::Sparse;
use laxity_sys::{clock, scheduling};

use self::device::{Device, Effect, Now, Violation};
use self::memory::{Answer, Memory};
use crate::config::Config;
use crate::message::{ENTRIES_MAX, PACKET_MAX, Reply, Request};
use crate::usage::Usage;

/// Hardware does not wait for a CPU. Below the threads that watch for deaths.
const PRIORITY: u8 = 97;
/// Packets that wait for a process that does not take them; one that leaves more is turned out.
const OUTBOX_MAX: usize = 4 * device::OUTSTANDING_MAX;
/// Packets of a process that are heard before it is another's turn.
const TURN: usize = 16;
const ENGINES: usize = Engine::ALL.len();

/// Why a server does not run.
#[derive(Debug)]
pub enum ServerError {
    /// Another one does, by this name.
    Running,
    /// There is no memory without a name.
    Memory(io::Error),
    /// Linux refuses.
    System(io::Error),
}

/// Where others find the soft GPU `name`, which each user may have.
pub(crate) fn address(name: &str) -> String {
    format!("{}{name}", address_prefix())
}

/// What the addresses of this user's soft GPUs begin with.
pub(crate) fn address_prefix() -> String {
    format!("laxity-softgpu/{}/", packets::user())
}

/// One process.
#[derive(Debug)]
struct Client {
    packets: Packets,
    outbox: VecDeque<Vec<u8>>,
    /// Where the threads hear that carry out its work, by engine; there once it is welcome.
    engines: Option<[Packets; ENGINES]>,
    /// It does not hear.
    is_lost: bool,
}

/// A server that has its name.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    config: Config,
    memory: Memory<Sparse>,
    device: Device,
    clients: BTreeMap<u32, Client>,
    clients_seen: u32,
    /// Since when there are no clients.
    idle_since: Instant,
}

impl Server {
    /// Of the soft GPU `name`. From when this returns, processes can connect.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn new(name: &str, config: Config) -> Result<Server, ServerError> {
        let listener = Listener::bind(&address(name)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServerError::Running,
            _ => ServerError::System(error),
        })?;
        // There as long as someone has it open, and no longer.
        let pages = Sparse::new("laxity-softgpu", config.memory).map_err(ServerError::Memory)?;
        Ok(Server {
            listener,
            config,
            memory: Memory::new(pages, config.memory),
            device: Device::new(config.copy_engines),
            clients: BTreeMap::new(),
            clients_seen: 0,
            idle_since: clock::now(),
        })
    }

    /// Serves until nobody has used it for as long as it lingers.
    pub fn run(mut self) {
        // Not where, or how, the thread ran that happened to be the first to open it. Who may not have a priority runs
        // like others, and is soft for one more reason.
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
            // After all that may have made room: nobody leaves between this and the wait.
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
                // Who connected just now finds the connection ended before it was welcome, and starts another server.
                return;
            }
            self.wait(is_full, deadline.min(over));
        }
    }

    /// If it `is_full`, those who want in wait until somebody leaves.
    fn wait(&self, is_full: bool, deadline: Instant) {
        let sockets = self.clients.values().map(|client| client.packets.as_fd());
        let readable: Vec<_> = sockets.chain((!is_full).then(|| self.listener.as_fd())).collect();
        let full = self.clients.values().filter(|client| !client.outbox.is_empty());
        let writable: Vec<_> = full.map(|client| client.packets.as_fd()).collect();
        packets::wait(&readable, &writable, deadline);
    }

    /// Lets in who has connected; answers whether there are no descriptors left for one more.
    fn admit(&mut self) -> bool {
        loop {
            let packets = match self.listener.accept() {
                Ok(Some(packets)) => packets,
                Ok(None) => return false,
                Err(_) => return true,
            };
            let number = self.clients_seen;
            self.clients_seen = self.clients_seen.checked_add(1).expect("a connection takes longer to make than 1 us");
            self.clients.insert(number, Client { packets, outbox: VecDeque::new(), engines: None, is_lost: false });
        }
    }

    /// Hears every client.
    fn listen(&mut self, effects: &mut Vec<Effect>) {
        let numbers: Vec<u32> = self.clients.keys().copied().collect();
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

    fn hear(&mut self, number: u32, request: Request, effects: &mut Vec<Effect>) -> Result<(), Violation> {
        let client = self.clients.get_mut(&number).ok_or(Violation)?;
        // First of all, and once; who only looks need not say it.
        if client.is_welcome() == matches!(request, Request::Hello(_)) && request != Request::Look {
            return Err(Violation);
        }
        let reply = match request {
            Request::Hello(_) => {
                // Whether that is what the process wants is for the process to say.
                client.welcome(self.config, self.memory.pages()).map_err(|_| Violation)?;
                self.device.join(number);
                return Ok(());
            }
            Request::Stream(name) => Reply::Stream(self.device.stream(number, name)),
            Request::Name(stream) => Reply::Name(self.device.name(stream).unwrap_or_default().to_owned()),
            Request::Allocate(bytes) => {
                // Answers come in the order of questions, so that nobody has two.
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
            Request::Look => Reply::Seen(self.usage()),
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

    /// Takes or gives back a little of the machine's memory, if somebody waits for that.
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
            // Linux knows of a file that is open.
            reserved: self.memory.pages().reserved().unwrap_or(0),
            processes: self.clients.values().filter(|client| client.is_welcome()).count() as u64,
        }
    }

    /// Has it sent when there is room.
    fn send(&mut self, number: u32, reply: Reply) {
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

    /// Sends what there is room for.
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

    /// The process is gone, or as good as that: what it says is not understood.
    fn dismiss(&mut self, number: u32, effects: &mut Vec<Effect>) {
        // Who only looked has nothing, and is no reason to stay.
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

    /// Sends it the configuration, the memory, and for each engine the end of a connection that its thread hears at.
    fn welcome(&mut self, config: Config, memory: &Sparse) -> io::Result<()> {
        let pairs = [Packets::pair()?, Packets::pair()?, Packets::pair()?];
        let [execution, copy_in, copy_out] = pairs.each_ref().map(|(_, theirs)| theirs.as_fd());
        let descriptors = [memory.as_fd(), execution, copy_in, copy_out];
        self.packets.send_with(&Reply::Welcome(config).encode(), &descriptors)?;
        self.engines = Some(pairs.map(|(ours, _)| ours));
        Ok(())
    }

    /// Says to the thread of `engine` to begin. It hears that at once and by itself: a thread between would be one more
    /// switch, and, as urgent and on its CPU, would drive it to another one.
    fn begin(&mut self, engine: Engine, operation: u64) {
        let begin = Reply::Begin(operation).encode();
        let told = self.engines.as_ref().map(|engines| engines[engine.index()].try_send(&begin));
        // An engine does one thing at a time. So there is room, but in a process that says it did what it did not hear.
        // One whose threads hear no more is closing: its other engines may still work, until its connection ends.
        self.is_lost |= matches!(told, Some(Ok(false)));
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

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Running => write!(f, "another server has the name already"),
            ServerError::Memory(error) => write!(f, "no device memory: {error}"),
            ServerError::System(error) => write!(f, "cannot listen: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}
