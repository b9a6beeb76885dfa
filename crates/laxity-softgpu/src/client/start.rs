//! Finding the server of a soft GPU, or starting it.

use std::env;
use std::io::{self, BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use laxity_model::Engine;
use laxity_sys::packets::{Packets, Received};
use laxity_sys::sparse::Sparse;

use crate::config::{Config, NAME_MAX};
use crate::error::OpenError;
use crate::message::{PACKET_MAX, Reply, Request};
use crate::server::{self, arguments};

/// Names the program that is the server, where it does not lie beside the program that opens a soft GPU.
pub const SERVER_VARIABLE: &str = "LAXITY_SOFTGPU_SERVER";
const SERVER: &str = "laxity-softgpu-server";
/// A server may go, being idle, between any two of our steps: each of these attempts starts another.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// A server that made this process welcome.
pub(super) struct Connection {
    pub packets: Packets,
    pub memory: Sparse,
    /// Where each engine's thread hears what it is to carry out.
    pub engines: [Packets; Engine::ALL.len()],
}

/// One that is there, or that this starts.
pub(super) fn connect(name: &str, config: &Config, server: Option<&Path>) -> Result<Connection, OpenError> {
    if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
        return Err(OpenError::Name(name.to_owned()));
    }
    config.check().map_err(OpenError::Config)?;
    let server = server.map_or_else(find, Path::to_owned);
    for attempt in 0..ATTEMPTS {
        // One that goes has its name a moment longer.
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

/// Nothing if the server ended instead.
fn greet(name: &str, config: &Config, packets: Packets) -> Result<Option<Connection>, OpenError> {
    if packets.send(&Request::Hello(*config).encode()).is_err() {
        return Ok(None);
    }
    let mut packet = [0; PACKET_MAX];
    let (Received::Packet(length), descriptors) = packets.receive_with(&mut packet) else { return Ok(None) };
    let Some(Reply::Welcome(found)) = Reply::decode(&packet[..length]) else { return Ok(None) };
    if found != *config {
        return Err(OpenError::Different { name: name.to_owned(), found, asked: *config });
    }
    // Linux keeps back those that this process has no room for.
    let Ok([memory, engines @ ..]) = <[OwnedFd; 1 + Engine::ALL.len()]>::try_from(descriptors) else {
        let error = io::Error::other("too many files are open in this process");
        return Err(OpenError::System { action: "take what its server sent", error });
    };
    let memory = Sparse::adopt(memory).map_err(OpenError::Memory)?;
    Ok(Some(Connection { packets, memory, engines: engines.map(Packets::from) }))
}

fn find() -> PathBuf {
    if let Some(path) = env::var_os(SERVER_VARIABLE) {
        return path.into();
    }
    let beside = env::current_exe().ok().and_then(|program| Some(program.parent()?.join(SERVER)));
    // Otherwise wherever PATH has it.
    beside.filter(|path| path.exists()).unwrap_or_else(|| SERVER.into())
}

/// Starts the server and waits until it listens, or another one does.
fn start(name: &str, config: &Config, server: &Path) -> Result<(), OpenError> {
    let failed = |error| OpenError::Start { server: server.to_owned(), error };
    // A name alone is looked for in PATH; a path must not depend on where the server will be.
    let is_name = server.components().count() == 1 && !server.has_root();
    let program = if is_name { server.to_owned() } else { path::absolute(server).map_err(failed)? };
    let mut child = Command::new(program)
        .args(arguments::write(name, config))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        // It serves others, too: what ends this process from a terminal does not end it.
        .process_group(0)
        .current_dir("/")
        .spawn()
        .map_err(failed)?;
    let output = child.stdout.take().expect("it was asked for");
    let mut line = String::new();
    let said = BufReader::new(output).read_line(&mut line);
    // Somebody must take note of its end; if we end first, that is init.
    let reaper = thread::Builder::new().name("softgpu-reaper".to_owned()).stack_size(64 << 10);
    reaper.spawn(move || child.wait()).map_err(failed)?;
    match (said, line.trim_end()) {
        (Err(error), _) => Err(failed(error)),
        (Ok(_), "ready") => Ok(()),
        (Ok(0), _) => Err(OpenError::Refused { server: server.to_owned(), reason: "it ended".to_owned() }),
        (Ok(_), reason) => Err(OpenError::Refused { server: server.to_owned(), reason: reason.to_owned() }),
    }
}
