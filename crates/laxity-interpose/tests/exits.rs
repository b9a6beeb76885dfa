//! What a program's streams noted is in its log when it has ended, however late Linux runs their threads.

use std::convert::Infallible;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use laxity_gpu::{Config, Registry};
use laxity_interpose::trace::Logs;
use laxity_interpose::{Label, LiveStream, Operation, Process};
use laxity_model::Engine;
use laxity_policy::program::{OperationId, Order, Policy, Work};
use laxity_testing::{Directory, until};
use laxity_trace::Event;

/// The variable by which this test runs itself as the program.
const PROGRAM: &str = "LAXITY_TEST_PROGRAM";

/// An operation whose driver keeps the stream's own thread until the program is gone.
struct Slow;

impl Operation for Slow {
    type Place = Infallible;

    fn mark(_: &LiveStream<Self>, place: Infallible, _: OperationId) -> Option<Arc<Self>> {
        match place {}
    }

    fn open(&self) {}

    fn is_complete(&self) -> bool {
        false
    }

    fn is_ready(&self) -> bool {
        true
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        thread::sleep(Duration::from_secs(1000));
    }
}

#[test]
fn an_exit_writes_what_was_noted_although_the_thread_of_the_stream_is_late() {
    if std::env::var_os(PROGRAM).is_some() {
        return program();
    }
    let directory = Directory::new("exits");
    let _arbitration = Registry::at(directory.path()).create("exits", &Config::new(1, 1)).expect("created");
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.env(PROGRAM, "yes").env("LAXITY_GPU_ARBITRATION", "exits");
    command.env("LAXITY_GPU_FOLDER", directory.path()).env("LAXITY_GPU_LOG", directory.path());
    assert!(command.status().expect("it starts").success());

    let logs = Logs::read(directory.path()).expect("logs");
    assert_eq!(logs.streams(), 1);
    let events: Vec<Event> = logs.records().into_iter().map(|record| record.event).collect();
    let count = |is_one: fn(&Event) -> bool| events.iter().filter(|event| is_one(event)).count();
    let begun = count(|event| matches!(event, Event::EngineBegin { engine: Engine::Copy(0), .. }));
    assert_eq!((begun, count(|event| matches!(event, Event::EngineEnd { .. }))), (1, 1), "{events:?}");
}

fn program() {
    let process = Arc::new(Process::start("test"));
    let stream = LiveStream::new(&process, Policy::default(), Order::InOrder, 0, None);
    let slow = Arc::new(Slow);
    let work = Work::CopyIn { bytes: 4096 };
    let ticket = stream.begin(work, true, || Some(Label::from("copy"))).expect("arbitrated");
    let id = ticket.id;
    ticket.attach(slow.clone());
    // The stream's own thread has the last one.
    let weak = Arc::downgrade(&slow);
    drop(slow);
    stream.wait_for_turn(id);
    stream.complete(id);
    until("the stream's thread drops the operation", || weak.strong_count() == 0);
    process.exit();
    std::process::exit(0);
}
