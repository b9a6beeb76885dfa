//! Kernels and callbacks have stacks for ordinary code.

mod support;

use std::hint::black_box;
use std::sync::mpsc::channel;

use laxity_softgpu::{OpenError, Options, SoftGpu, Wait};

use support::{PATIENCE, config, name, open, options};

/// Uses `N` bytes of stack.
#[inline(never)]
fn deep<const N: usize>() -> u8 {
    let mut bytes = [1; N];
    black_box(&mut bytes);
    bytes[N / 2]
}

/// In a process of its own, as it would be killed. An ordinary thread has 8 MiB unless a user lowered the limit.
#[test]
fn use_stacks() {
    let Some(gpu) = support::given() else { return };
    let (stream, (called, calls)) = (gpu.stream("s").expect("a stream"), channel());
    stream.launch(|_| if deep::<{ 5 << 20 }>() == 1 { Ok(()) } else { Err("lost".into()) }).expect("issued");
    stream.add_callback(move || called.send(deep::<{ 5 << 20 }>()).expect("the test waits")).expect("added");
    stream.synchronize(Wait::Blocking).expect("the kernel had room");
    assert_eq!(calls.recv_timeout(PATIENCE), Ok(1));
}

#[test]
fn kernels_and_callbacks_have_stacks_as_large_as_ordinary_threads() {
    let name = name("stacks");
    let _gpu = open(&name);
    assert!(support::start("use_stacks", &name).wait().expect("it is ours").success(), "see above");
}

#[test]
fn the_size_of_stacks_is_an_option() {
    let options = Options { stack: Some(64 << 20), ..options() };
    let gpu = SoftGpu::open_with(&name("large-stacks"), config(), &options).expect("a soft GPU");
    let stream = gpu.stream("s").expect("a stream");
    stream.launch(|_| if deep::<{ 40 << 20 }>() == 1 { Ok(()) } else { Err("lost".into()) }).expect("issued");
    stream.synchronize(Wait::Blocking).expect("the kernel had room");
}

#[test]
fn a_stack_without_room_is_an_error() {
    let options = Options { stack: Some(usize::MAX), ..options() };
    let refused = SoftGpu::open_with(&name("no-room"), config(), &options);
    assert!(matches!(refused, Err(OpenError::System { action: "start threads", .. })), "{refused:?}");
}
