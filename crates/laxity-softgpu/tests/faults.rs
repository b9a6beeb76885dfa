//! Every system call of a process that uses a soft GPU fails, with every error that Linux documents for it, at every
//! occurrence in turn, while the process connects, allocates, copies, launches and leaves. After each: another connection
//! has its memory and its operations, the server has forgotten the process, no descriptor is left, and an error says what
//! failed.
#![cfg(debug_assertions)]

mod support;

use laxity_softgpu::{SoftGpu, Wait};
use laxity_testing::{each_call_fails, until};
use support::{config, name, open, try_open};

/// Whatever fails on a connection, it is lost with the server at its other end.
const GONE: &str = "its server is gone";
const NO_WELCOME: &str = "no server made this process welcome";
const MEANINGS: &[(i32, &str)] = &[
    (libc::ENOBUFS, GONE),
    (libc::ENOBUFS, NO_WELCOME),
    (libc::ENOMEM, GONE),
    (libc::ENOMEM, NO_WELCOME),
    (libc::ECONNREFUSED, GONE),
    (libc::ECONNREFUSED, NO_WELCOME),
];

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// In and out again, through a kernel, on a connection of its own.
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

/// Whether the connection works, and what it keeps in device memory.
fn kept(gpu: &SoftGpu, buffer: &laxity_softgpu::Buffer) -> Vec<u8> {
    let stream = gpu.stream("kept").expect("its server is there");
    stream.copy_out(buffer, 0..100).expect("issued").wait(Wait::Blocking).expect("done")
}

#[test]
fn a_system_call_that_fails_harms_no_other_connection() {
    let name = name("faults");
    let other = open(&name);
    let buffer = other.alloc(100).expect("memory");
    let stream = other.stream("before").expect("a stream");
    stream.copy_in(&buffer, 0, vec![9; 100]).expect("issued");
    stream.synchronize(Wait::Blocking).expect("done");
    let usage = other.usage().expect("its server is there");
    let injected = each_call_fails(
        "invert",
        || invert(&name),
        MEANINGS,
        |_, what| {
            assert_eq!(kept(&other, &buffer), [9; 100], "{what}");
            until(&format!("{what}: the server has forgotten the process"), || {
                other.usage().is_ok_and(|now| (now.processes, now.used) == (usage.processes, usage.used))
            });
        },
    );
    println!("{injected} calls failed");
    assert!(injected > 20, "{injected}");
}
