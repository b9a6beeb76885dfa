//! The server of a soft GPU. The first process that opens one starts it.
//!
//! It writes `ready` to its standard output once processes can connect, also if another server had the name first, and
//! ends when no process has used it for a while.

use std::io::{self, Write};
use std::process::ExitCode;

use laxity_softgpu::server::{Server, ServerError, arguments};

fn main() -> ExitCode {
    let (name, config) = match arguments::read(std::env::args().skip(1)) {
        Ok(read) => read,
        Err(error) => return fail(&error),
    };
    match Server::new(&name, config) {
        Ok(server) => {
            say("ready");
            server.run();
            ExitCode::SUCCESS
        }
        Err(ServerError::Running) => {
            say("ready");
            ExitCode::SUCCESS
        }
        Err(error) => fail(&error.to_string()),
    }
}

/// The process that started it may be gone. It serves others all the same.
fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}

fn fail(error: &str) -> ExitCode {
    say(error);
    ExitCode::FAILURE
}
