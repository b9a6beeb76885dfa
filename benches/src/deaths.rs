//! How long it takes until the next waiter has the token of a process that was killed.

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use laxity_gpu::{Base, Config, Registry};
use laxity_model::Nanos;
use laxity_sys::clock::now;

/// The option of the process that is killed: the arbitration in which it holds the token.
pub const HOLD: &str = "hold";

/// Longer than any machine takes.
const PATIENCE: Nanos = Nanos::from_secs(60);

/// What follows a kill, in microseconds after it.
pub struct Death {
    /// The waiter has the token.
    pub granted: f64,
    /// Linux has told the parent that the process has ended: what every process can know of every child of its own.
    pub ended: f64,
}

/// Runs in the process that is killed: takes the token, says so, and keeps it.
///
/// # Errors
/// If it does not get it.
pub fn hold(registry: &Registry, name: &str) -> Result<(), Box<dyn Error>> {
    let arbitration = registry.attach(name)?;
    let client = arbitration.register("killed", Base::Background)?;
    let _token = client.try_token()?;
    println!("held");
    // Until it is killed, or its parent is gone.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Kills a process that holds the only token, for which a thread of this one waits.
///
/// # Errors
/// If the process cannot be started.
pub fn kill(registry: &Registry, name: &str) -> Result<Death, Box<dyn Error>> {
    let arbitration = registry.create(name, &Config::new(2, 1))?;
    let mut process = start(name)?;
    let waits = {
        let arbitration = arbitration.clone();
        thread::spawn(move || {
            let client = arbitration.register("waits", Base::Background).expect("there is room");
            let token = client.token_for(PATIENCE).expect("its holder is killed");
            let granted = now();
            drop(token);
            granted
        })
    };
    while arbitration.snapshot()?.tokens.waiting.is_empty() {
        thread::sleep(Duration::from_micros(100));
    }
    let killed = now();
    process.kill()?;
    process.wait()?;
    let ended = now();
    let granted = waits.join().expect("no panic");
    let [granted, ended] = [granted, ended].map(|at| at.saturating_since(killed).0 as f64 / 1000.0);
    Ok(Death { granted, ended })
}

/// This program again, when it holds the token.
fn start(name: &str) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(format!("--{HOLD}")).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn()?;
    let mut said = String::new();
    BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut said)?;
    if said.trim() == "held" { Ok(process) } else { Err("a process that is to be killed holds no token".into()) }
}
