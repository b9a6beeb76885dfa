//! Two threads of a process: one goes on with streams that waited, one runs host functions.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use crate::context;
use crate::driver::Driver;
use crate::handles::lock;
use crate::stream::Stream;
use crate::types::*;

/// A function of the host, in the order of a stream.
#[derive(Clone, Copy, Debug)]
pub enum HostCall {
    Function(HostFunction, Data),
    Callback(StreamCallback, Data, Data),
}

/// What a program gives to its function, or a handle of it.
#[derive(Clone, Copy, Debug)]
pub struct Data(pub Handle);

// SAFETY: a pointer that only the program's own function looks into, on the thread that CUDA calls it on.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

struct Threads {
    kick: Mutex<Sender<()>>,
    host: Mutex<Sender<(Arc<Stream>, HostCall)>>,
}

static THREADS: OnceLock<Threads> = OnceLock::new();

fn threads() -> &'static Threads {
    THREADS.get_or_init(|| {
        let (kick, kicks) = channel();
        let (host, calls) = channel();
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            let started = thread::Builder::new().name(name.to_owned()).spawn(body);
            if let Err(error) = started {
                crate::driver::say(&format!("no thread {name}: {error}: streams that wait do not go on"));
            }
        };
        spawn("softcuda-go-on", Box::new(move || go_on(&kicks)));
        spawn("softcuda-host", Box::new(move || run_host(&calls)));
        Threads { kick: Mutex::new(kick), host: Mutex::new(host) }
    })
}

/// Something is complete that a stream may wait for.
pub fn kick() {
    if crate::stream::is_any_held_back() {
        let _ = lock(&threads().kick).send(());
    }
}

/// Has `call` run on the thread of host functions; afterwards the stream goes on.
pub fn call(stream: &Arc<Stream>, call: HostCall) {
    let _ = lock(&threads().host).send((stream.clone(), call));
}

fn go_on(kicks: &Receiver<()>) {
    while kicks.recv().is_ok() {
        while kicks.try_recv().is_ok() {}
        let Ok(driver) = Driver::get() else { continue };
        for context in driver.contexts.all() {
            context.streams().iter().for_each(|stream| stream.go_on());
        }
    }
}

fn run_host(calls: &Receiver<(Arc<Stream>, HostCall)>) {
    context::enter_host();
    while let Ok((stream, call)) = calls.recv() {
        match call {
            // SAFETY: the program's function, with the program's data, once.
            HostCall::Function(Some(function), data) => unsafe { function(data.0) },
            // SAFETY: as above.
            HostCall::Callback(Some(function), handle, data) => unsafe { function(handle.0, SUCCESS, data.0) },
            HostCall::Function(None, _) | HostCall::Callback(None, ..) => {}
        }
        stream.host_is_done();
        kick();
    }
}
