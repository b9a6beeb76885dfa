//! Device memory takes this machine's only where it is allocated.

mod support;

use std::time::{Duration, Instant};

use laxity_model::Nanos;
use laxity_softgpu::{Buffer, Config, GpuError, SoftGpu, Usage, Wait, look, names};

use support::{PATIENCE, config, given, name, open, start, try_open};

const MIB: usize = 1 << 20;
const GIB: u64 = 1 << 30;

fn large(memory: u64) -> Config {
    Config { memory, ..config() }
}

fn reserved(gpu: &SoftGpu) -> u64 {
    gpu.usage().expect("the server is there").reserved
}

/// Memory and streams are given back soon, not at once.
fn wait_for(gpu: &SoftGpu, is_so: impl Fn(&Usage) -> bool) -> Usage {
    let start = Instant::now();
    loop {
        let usage = gpu.usage().expect("the server is there");
        if is_so(&usage) {
            return usage;
        }
        assert!(start.elapsed() < PATIENCE, "{usage:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// All of `buffer`, as a kernel sees it.
fn bytes(gpu: &SoftGpu, buffer: &Buffer) -> Vec<u8> {
    let stream = gpu.stream("bytes").expect("a stream");
    stream.copy_out(buffer, 0..buffer.len()).expect("issued").wait(Wait::Blocking).expect("done")
}

#[test]
fn a_soft_gpu_takes_nothing_until_memory_is_allocated_and_nothing_once_it_is_freed() {
    let gpu = try_open(&name("large"), large(64 * GIB)).expect("64 GiB of nothing");
    assert_eq!(reserved(&gpu), 0);
    // Longer than what is reserved at a time, and not of whole pages.
    let buffer = gpu.alloc(9 * MIB + 1).expect("memory");
    let usage = gpu.usage().expect("the server is there");
    assert!(usage.reserved == usage.used && usage.used > 9 * MIB as u64, "{usage:?}");
    assert!(usage.used < 10 * MIB as u64, "{usage:?}");
    drop(buffer);
    let usage = wait_for(&gpu, |usage| usage.reserved == 0);
    assert_eq!((usage.used, usage.config.memory, usage.processes), (0, 64 * GIB, 1));
}

#[test]
fn more_than_the_machine_has_left_is_refused_with_both_numbers_and_takes_nothing() {
    let asked = 1 << 40;
    let gpu = try_open(&name("huge"), large(asked)).expect("a terabyte of nothing");
    let refused = gpu.alloc(asked as usize).expect_err("no machine has as much");
    assert!(matches!(refused, GpuError::Shortage { asked: a, left } if a == asked && left < asked), "{refused}");
    wait_for(&gpu, |usage| usage.reserved == 0 && usage.used == 0);
    let _some = gpu.alloc(MIB).expect("what there is can be had");
    assert!(matches!(gpu.alloc(2 << 40), Err(GpuError::Memory { largest, .. }) if largest < asked));
}

#[test]
fn allocated_memory_is_zero_whatever_it_held_before() {
    // As much memory as one buffer: the second has the pages of the first.
    let gpu = open(&name("zero"));
    let size = MIB;
    let stream = gpu.stream("s").expect("a stream");
    for _ in 0..3 {
        let buffer = gpu.alloc(size).expect("what was freed before");
        assert!(bytes(&gpu, &buffer).iter().all(|byte| *byte == 0));
        stream.copy_in(&buffer, 0, vec![7; size]).expect("issued");
        stream.synchronize(Wait::Blocking).expect("done");
        assert!(bytes(&gpu, &buffer).iter().all(|byte| *byte == 7));
    }
}

/// A server that runs for days must not grow with the streams that have come and gone.
#[test]
fn a_stream_is_released_with_its_last_handle_and_event() {
    let gpu = open(&name("streams"));
    let event = gpu.stream("kept").expect("a stream").launch_timed(Nanos(1)).expect("issued");
    for _ in 0..1_000 {
        gpu.stream("gone")
            .expect("a stream")
            .launch_timed(Nanos(1))
            .expect("issued")
            .wait(Wait::Blocking)
            .expect("done");
    }
    wait_for(&gpu, |usage| usage.streams == 1);
    event.wait(Wait::Blocking).expect("done");
    drop(event);
    wait_for(&gpu, |usage| usage.streams == 0);
}

/// Allocates, and waits to be killed.
#[test]
fn hold() {
    let Some(gpu) = given() else { return };
    let _held: Vec<Buffer> = (0..4).map(|_| gpu.alloc(MIB / 8).expect("memory")).collect();
    std::thread::sleep(PATIENCE);
}

#[test]
fn memory_of_a_killed_process_is_given_back() {
    let name = name("killed");
    let gpu = open(&name);
    let mut child = start("hold", &name);
    wait_for(&gpu, |usage| usage.used == MIB as u64 / 2 && usage.reserved == usage.used);
    assert_eq!(gpu.usage().expect("the server is there").processes, 2);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    let usage = wait_for(&gpu, |usage| usage.reserved == 0);
    assert_eq!((usage.used, usage.processes), (0, 1));
}

/// `mlockall` brings in all that a process has mapped, so this runs in a process of its own.
#[test]
fn lock() {
    if std::env::var(support::NAME).is_err() {
        return;
    }
    let gpu = try_open(&name("locked"), large(64 * GIB)).expect("a soft GPU");
    let buffer = gpu.alloc(MIB).expect("memory");
    match laxity_sys::memory::lock_all() {
        Ok(()) => assert_eq!(reserved(&gpu), MIB as u64),
        // By its limit a user may not: how much is mapped counts, too.
        Err(error) => println!("not locked: {error}"),
    }
    assert_eq!(buffer.len(), MIB);
}

#[test]
fn locking_the_memory_of_a_process_takes_none_that_is_not_allocated() {
    assert!(start("lock", "none").wait().expect("it is ours").success(), "see above");
}

#[test]
fn looking_shows_the_use_and_does_not_prolong_the_servers_stay() {
    let name = name("look");
    assert_eq!(look(&name).expect("Linux answers"), None);
    let gpu = open(&name);
    let buffer = gpu.alloc(1).expect("memory");
    assert!(names().expect("there is /proc").contains(&name));
    let seen = look(&name).expect("Linux answers").expect("it is there");
    assert_eq!(seen, gpu.usage().expect("the server is there"));
    assert_eq!((seen.config, seen.processes), (config(), 1));
    assert!(seen.used > 0 && seen.used == seen.reserved, "{seen:?}");
    drop((gpu, buffer));
    let start = Instant::now();
    // More often than it lingers.
    while look(&name).expect("Linux answers").is_some() {
        assert!(start.elapsed() < PATIENCE, "it stays");
        std::thread::sleep(Duration::from_nanos(config().linger.0 / 4));
    }
}

/// A kernel waits for its time, not for the memory of others.
#[test]
fn engines_go_on_while_memory_is_reserved() {
    let gpu = try_open(&name("meanwhile"), large(64 * GIB)).expect("a soft GPU");
    let stream = gpu.stream("s").expect("a stream");
    std::thread::scope(|scope| {
        let allocating = scope.spawn(|| gpu.alloc(200 * MIB).map(|buffer| buffer.len()));
        (0..20).for_each(|_| {
            stream.launch_timed(Nanos::from_micros(10)).expect("issued").wait(Wait::Blocking).expect("done");
        });
        assert_eq!(allocating.join().expect("no panic").expect("memory"), 200 * MIB);
    });
}

#[test]
fn memory_is_copied_from_one_soft_gpu_to_another() {
    let [near, far] = ["near", "far"].map(|test| open(&name(test)));
    let [from, to] = [&far, &near].map(|gpu| gpu.alloc(5_000).expect("memory"));
    let [stream, other] = [&near, &far].map(|gpu| gpu.stream("peer").expect("a stream"));
    let written: Vec<u8> = (0..5_000u32).map(|at| at as u8).collect();
    other.copy_in(&from, 0, written.clone()).expect("issued").wait(Wait::Blocking).expect("done");
    let begun = Instant::now();
    stream.copy_from_peer(&from, &to, Nanos::from_millis(5)).expect("issued").wait(Wait::Blocking).expect("done");
    assert!(begun.elapsed() >= Duration::from_millis(5), "its engine is busy that long");
    assert_eq!(bytes(&near, &to), written);
    let short = near.alloc(4_999).expect("memory");
    for (from, to) in [(&from, &short), (&short, &from)] {
        let refused = stream.copy_from_peer(from, to, Nanos::ZERO);
        assert!(matches!(refused, Err(GpuError::Range { .. } | GpuError::Foreign)), "{refused:?}");
    }
}
