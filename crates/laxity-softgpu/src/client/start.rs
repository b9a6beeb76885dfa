//! Finding the server of a soft GPU, or starting it.

use std::env;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use laxity_model::Engine;
use laxity_sys::packets::{Packets, Received};
use laxity_sys::sparse::Sparse;
use laxity_sys::{inherit, scheduling};

use crate::config::{Config, NAME_MAX};
use crate::error::OpenError;
use crate::message::{Message, PACKET_MAX, Reply, Request, VERSION};
use crate::server::{self, arguments};

/// The variable of the environment that names the server's program, if that is not beside the program that opens a soft
/// GPU.
pub const SERVER_VARIABLE: &str = "LAXITY_SOFTGPU_SERVER";
const SERVER: &str = "laxity-softgpu-server";
/// An idle server may end between any two of these steps. Each attempt starts another server.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// A server that made this process welcome.
pub(super) struct Connection {
    pub packets: Packets,
    pub memory: Sparse,
    /// By engine, the connection on which its thread is told to begin.
    pub engines: [Packets; Engine::ALL.len()],
}

/// Connects to the server that is there, or starts one.
pub(super) fn connect(name: &str, config: &Config, server: Option<&Path>) -> Result<Connection, OpenError> {
    if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
        return Err(OpenError::Name(name.to_owned()));
    }
    config.check().map_err(OpenError::Config)?;
    let server = server.map_or_else(find, Path::to_owned);
    for attempt in 0..ATTEMPTS {
        // A server that ends keeps its name a moment longer.
        thread::sleep(PAUSE * attempt);
        match Packets::connect(&server::address(name)) {
            Ok(packets) => {
                if let Some(welcome) = greet(name, config, packets)? {
                    return Ok(welcome);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => start(name, config, &server)?,
            Err(error) => return Err(OpenError::System { action: "connect to its server", error }),
        }
    }
    Err(OpenError::NoServer { name: name.to_owned() })
}

/// `None` if the server ended instead.
fn greet(name: &str, config: &Config, packets: Packets) -> Result<Option<Connection>, OpenError> {
    if packets.send(&Request::Hello(VERSION).encode()).is_err() {
        return Ok(None);
    }
    let mut packet = [0; PACKET_MAX];
    let (Received::Packet(length), descriptors) = packets.receive_with(&mut packet) else { return Ok(None) };
    let Some(Reply::Welcome(found)) = Reply::decode(&packet[..length]) else { return Ok(None) };
    if found != *config {
        return Err(OpenError::Different { name: name.to_owned(), found, asked: *config });
    }
    // Linux drops descriptors for which this process has no room.
    let Ok([memory, engines @ ..]) = <[OwnedFd; 1 + Engine::ALL.len()]>::try_from(descriptors) else {
        let error = io::Error::other("too many files are open in this process");
        return Err(OpenError::System { action: "take what its server sent", error });
    };
    let memory = Sparse::adopt(memory).map_err(OpenError::Memory)?;
    let engines = engines.map(|engine| Packets::from(engine).kept_from_children());
    Ok(Some(Connection { packets: packets.kept_from_children(), memory, engines }))
}

fn find() -> PathBuf {
    if let Some(path) = env::var_os(SERVER_VARIABLE) {
        return path.into();
    }
    let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join(SERVER)));
    // Where `liblaxity` is installed in PREFIX/lib, the server is in PREFIX/bin.
    let installed =
        laxity_sys::own_code::own_file().and_then(|own| Some(own.parent()?.parent()?.join("bin").join(SERVER)));
    // Otherwise the one in PATH.
    beside.into_iter().chain(installed).find(|path| path.exists()).unwrap_or_else(|| SERVER.into())
}

/// Starts the server and waits until it listens, or another one does.
fn start(name: &str, config: &Config, server: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::Start { server: server.to_owned(), error };
    // A name alone is looked up in PATH. A path must not depend on the server's working directory.
    let is_name = server.components().count() == 1 && !server.has_root();
    let program = if is_name { server.to_owned() } else { path::absolute(server).map_err(failed)? };
    // A process that ended is a zombie until it is waited for. If this process ends first, init waits. The thread that waits
    // is there before the server, which would remain without it.
    let reaper = thread::Builder::new().name("softgpu-reaper".to_owned()).stack_size(64 << 10);
    let (hand, handed) = channel::<Child>();
    scheduling::spawn(reaper, move || drop(handed.recv().map(|mut child| child.wait()))).map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(arguments::write(name, config))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // It serves other processes, too: a terminal that ends this process does not end it.
        .process_group(0)
        .current_dir("/");
    // The server outlives this process: it must not keep its files, pipes and locks.
    let mut child = inherit::nothing(&mut command).map_err(failed)?;
    let output = child.stdout.take().expect("it was asked for");
    let mut line = String::new();
    hand.send(child).expect("the thread waits for it");
    let read = BufReader::new(output).read_line(&mut line);
    match (read, line.trim_end()) {
        (Err(error), _) => Err(failed(error)),
        (Ok(_), "ready") => Ok(()),
        (Ok(0), _) => Err(OpenError::Refused { server: server.to_owned(), reason: "it ended".to_owned() }),
        (Ok(_), reason) => Err(OpenError::Refused { server: server.to_owned(), reason: reason.to_owned() }),
    }
}
