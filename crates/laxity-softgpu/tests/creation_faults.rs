//! Every system call of a soft GPU's life fails, with every error that Linux documents for it, at every occurrence in turn:
//! creating the server, in this process so that its calls fail, too, or as a program; attaching, allocating, copying,
//! launching and leaving. After each: no process, thread, descriptor or device memory is left, the name is free again, and an
//! error says what failed.
#![cfg(debug_assertions)]

mod support;

use std::fs;
use std::thread;

use laxity_model::Nanos;
use laxity_softgpu::server::Server;
use laxity_softgpu::{Config, Wait};
use laxity_testing::{each_call_fails, until};
use support::{name, try_open};

/// Whatever fails on a connection, at either end, the connection is lost.
const LOST: [&str; 2] = ["its server is gone", "no server made this process welcome"];

/// What an error says instead of Linux's words for it.
fn meanings() -> Vec<(i32, &'static str)> {
    let lost = [
        libc::EAGAIN,
        libc::ECONNREFUSED,
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOBUFS,
        libc::ENOMEM,
        libc::EPERM,
        libc::ETOOMANYREFS,
    ];
    let lost = lost.into_iter().flat_map(|error| LOST.map(|words| (error, words)));
    let memory =
        [libc::ENOSPC, libc::EOPNOTSUPP, libc::EFBIG].map(|error| (error, "bytes of this machine's memory left"));
    lost.chain(memory).chain([(libc::EADDRINUSE, "another server has the name already")]).collect()
}

fn config() -> Config {
    Config { copy_engines: 2, memory: 1 << 20, linger: Nanos::from_millis(30), ..Config::default() }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// In and out again, through a kernel. The server is started if there is none.
fn invert(name: &str) -> Result<(), String> {
    let gpu = try_open(name, config()).map_err(text)?;
    let stream = gpu.stream("s").map_err(text)?;
    let buffer = gpu.alloc(5000).map_err(text)?;
    stream.copy_in(&buffer, 0, vec![1; 5000]).map_err(text)?;
    let inverted = buffer.clone();
    let kernel = move |device: &laxity_softgpu::DeviceView| {
        device.write(&inverted, 0..5000)?.iter_mut().for_each(|byte| *byte = !*byte);
        Ok(())
    };
    stream.launch(kernel).map_err(text)?;
    let bytes = stream.copy_out(&buffer, 0..5000).map_err(text)?.wait(Wait::Blocking).map_err(text)?;
    assert_eq!(bytes, [!1; 5000], "what is not refused is done");
    Ok(())
}

/// As [`invert`], with the server in a thread of this process.
fn serve_and_invert(name: &str) -> Result<(), String> {
    let server = Server::new(name, config()).map_err(text)?;
    let serving = thread::spawn(move || server.run());
    let result = invert(name);
    serving.join().expect("a server does not panic");
    result
}

/// Linux's numbers of the processes that a thread of this one started, zombies included.
fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("readable");
    let of = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let all: String = tasks.flatten().map(of).collect();
    all.split_whitespace().map(str::to_owned).collect()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").expect("readable").count()
}

fn has_device_memory() -> bool {
    fs::read_to_string("/proc/self/maps").expect("readable").contains("laxity-softgpu (deleted)")
}

#[test]
fn a_system_call_that_fails_while_a_soft_gpu_is_created_or_used_leaves_nothing_behind() {
    type Scenario = fn(&str) -> Result<(), String>;
    let (name, before, mut injected) = (name("creation"), threads(), 0);
    for (what, scenario) in [("serve", serve_and_invert as Scenario), ("start", invert)] {
        let calls = each_call_fails(
            what,
            || scenario(&name),
            &meanings(),
            |_, what| {
                until(&format!("{what}: no process is left, and all are waited for"), || children().is_empty());
                until(&format!("{what}: no thread is left"), || threads() == before);
                assert!(!has_device_memory(), "{what}: device memory is still mapped");
                // A server that had the name would refuse this.
                until(&format!("{what}: the name is free"), || Server::new(&name, config()).is_ok());
            },
        );
        println!("{what}: {calls} calls failed");
        assert!(calls > 20, "{what}: {calls}");
        injected += calls;
    }
    println!("{injected} calls failed");
}
