//! A program under an arbitration, whose driver is its test: it says when operations are complete.

#![allow(dead_code, reason = "no test program uses all of it")]

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_gpu::{Config, Registry};
use laxity_interpose::{LiveStream, Operation, Process};
use laxity_policy::program::{OperationId, Order, Work};
use laxity_testing::Directory;

/// The variable by which a test runs itself as the program.
const PROGRAM: &str = "LAXITY_TEST_PROGRAM";

pub fn is_program() -> bool {
    std::env::var_os(PROGRAM).is_some()
}

/// Runs `test` again as a program under an arbitration of its own, with settings, and does something `meanwhile`, with the folder that
/// both share.
pub fn run_as_program(test: &str, config: &Config, settings: &[(&str, &str)], meanwhile: impl FnOnce(&Path, &Child)) {
    let directory = Directory::new(test);
    let _arbitration = Registry::at(directory.path()).create("alone", config).expect("created");
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args([test, "--exact", "--nocapture"]).env(PROGRAM, directory.path());
    command.env("LAXITY_GPU_ARBITRATION", "alone").env("LAXITY_GPU_FOLDER", directory.path());
    for (key, value) in settings {
        command.env(format!("LAXITY_GPU_{}", key.to_uppercase()), value);
    }
    let mut program = command.spawn().expect("it starts");
    meanwhile(directory.path(), &program);
    assert!(program.wait().expect("it ends").success());
}

/// A folder that the program and its test share.
pub fn folder() -> PathBuf {
    std::env::var_os(PROGRAM).expect("a program").into()
}

/// An operation that its test completes.
#[derive(Default)]
pub struct Held {
    is_open: AtomicBool,
}

impl Held {
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }
}

impl Operation for Held {
    type Place = Infallible;

    fn mark(_: &LiveStream<Self>, place: Infallible, _: OperationId) -> Option<Arc<Self>> {
        match place {}
    }

    fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }

    fn is_complete(&self) -> bool {
        false
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// What the environment says of this program.
pub fn process() -> Arc<Process> {
    let process = Arc::new(Process::start("test"));
    assert!(process.is_arbitrating());
    process
}

pub fn stream(process: &Arc<Process>) -> LiveStream<Held> {
    LiveStream::new(process, process.settings.policy, Order::InOrder, 0, None)
}

/// Issues a kernel that was never seen before, so that it shares its engine with no other.
pub fn issue(stream: &LiveStream<Held>, key: u64) -> (OperationId, Arc<Held>) {
    let ticket = stream.begin(Work::Kernel { key }, true, || None).expect("arbitrated");
    let (id, is_gated, operation) = (ticket.id, ticket.is_gated, Arc::<Held>::default());
    operation.is_open.store(!is_gated, Ordering::Release);
    ticket.attach(operation.clone());
    (id, operation)
}
