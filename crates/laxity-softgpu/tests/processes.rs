//! Processes that share a soft GPU, and are killed.

mod support;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use laxity_model::Nanos;
use laxity_model::rng::SplitMix64;
use laxity_policy::gpu::{Action, Engines, Operation};
use laxity_softgpu::{Entry, GpuError, Options, SoftGpu, Wait, What};
use laxity_sys::packets::{self, Packets};
use laxity_sys::segment::{Format, HEADER, Segment};
use laxity_trace::check;

use support::{PATIENCE, config, given, history, name, open, start};

/// A word that all processes of a test share: how many kernels run. It goes with the process that made it.
struct Witness {
    word: Arc<Segment>,
    is_ours: bool,
}

impl Witness {
    const FORMAT: Format = Format { magic: *b"WITNESS!", version: 1 };

    fn path(gpu: &SoftGpu) -> PathBuf {
        PathBuf::from(format!("/dev/shm/laxity-{}", gpu.name()))
    }

    fn new(gpu: &SoftGpu) -> Self {
        let word = Segment::draft(&Witness::path(gpu), Self::FORMAT, 8).expect("memory");
        word.publish().expect("the name is free");
        Witness { word: Arc::new(word), is_ours: true }
    }

    fn of(gpu: &SoftGpu) -> Self {
        let word = Segment::open(&Witness::path(gpu), Self::FORMAT).expect("it was made");
        Witness { word: Arc::new(word), is_ours: false }
    }

    fn running(word: &Segment) -> &AtomicU32 {
        word.u32(HEADER)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if self.is_ours {
            let _ = fs::remove_file(self.word.path());
        }
    }
}

/// Copies, kernels that watch out for others, and copies back, on two streams.
fn use_it(gpu: &SoftGpu, rounds: usize, witness: Option<&Witness>) {
    let mine = std::process::id().to_ne_bytes();
    let streams = ["a", "b"].map(|name| gpu.stream(name).expect("a stream"));
    let buffers = [(); 2].map(|()| gpu.alloc(4096).expect("memory"));
    for _ in 0..rounds {
        let results: Vec<_> = streams
            .iter()
            .zip(&buffers)
            .map(|(stream, buffer)| {
                stream.copy_in(buffer, 100, mine).expect("issued");
                let (witness, buffer_of_kernel) = (witness.map(|witness| witness.word.clone()), buffer.clone());
                stream
                    .launch(move |device| {
                        let running = witness.as_deref().map(Witness::running);
                        let others = running.map_or(0, |running| running.fetch_add(1, Ordering::SeqCst));
                        device.write(&buffer_of_kernel, 0..4096)?[100..104].reverse();
                        std::thread::yield_now();
                        running.map(|running| running.fetch_sub(1, Ordering::SeqCst));
                        if others == 0 { Ok(()) } else { Err("another kernel runs".into()) }
                    })
                    .expect("issued");
                stream.copy_out(buffer, 100..104).expect("issued")
            })
            .collect();
        for result in results {
            let mut bytes = result.wait(Wait::Blocking).expect("no kernel met another");
            bytes.reverse();
            assert_eq!(bytes, mine, "the bytes are this process's");
        }
    }
}

#[test]
fn share() {
    if let Some(gpu) = given() {
        use_it(&gpu, 20, Some(&Witness::of(&gpu)));
    }
}

/// Says that it is there, and then goes on for ever.
#[test]
fn storm() {
    let Some(gpu) = given() else { return };
    eprintln!("there");
    loop {
        use_it(&gpu, 1, None);
        gpu.stream("timed").expect("a stream").launch_timed(Nanos::from_micros(300)).expect("issued");
    }
}

/// The same by the state machine of the simulator.
fn assert_first_come_first_served(entries: &[Entry]) {
    let (mut engines, mut actions) = (Engines::new(2), Vec::new());
    for &Entry { what, engine, stream, index, .. } in entries {
        match what {
            What::Issued => {
                let operation = Operation { stream, engine, duration: Nanos::ZERO, what: (engine, stream, index) };
                engines.issue(operation, &mut actions);
            }
            What::Ended => assert_eq!(engines.complete(engine, &mut actions), (engine, stream, index)),
            What::Began | What::Interrupted => {}
        }
    }
    let began = entries.iter().filter(|entry| entry.what == What::Began);
    let began: Vec<_> = began.map(|entry| (entry.engine, entry.stream, entry.index)).collect();
    let replayed: Vec<_> = actions.into_iter().map(|Action::Begin { what, .. }| what).collect();
    assert_eq!(began, replayed);
}

#[test]
fn processes_share_engines_one_operation_at_a_time_each() {
    let name = name("share");
    let gpu = open(&name);
    let witness = Witness::new(&gpu);
    let children: Vec<Child> = (0..3).map(|_| start("share", &name)).collect();
    use_it(&gpu, 20, Some(&witness));
    for mut child in children {
        assert!(child.wait().expect("it is ours").success(), "a process saw something wrong; see above");
    }
    let entries = history(&gpu);
    assert_eq!(entries.iter().filter(|entry| entry.what == What::Began).count(), 4 * 20 * 2 * 3);
    assert_first_come_first_served(&entries);
    let trace = gpu.trace().expect("the server is there");
    let report = check::legality(&trace.header, &trace.records, |_| None);
    assert!(report.is_clean(), "{report}");
}

fn wait_until_there(child: &mut Child) {
    let output = BufReader::new(child.stderr.take().expect("it was asked for"));
    let is_there = output.lines().map_while(Result::ok).any(|line| line.contains("there"));
    assert!(is_there, "the process ended before it was killed");
}

fn storming(gpu: &str) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "storm", "--nocapture", "--test-threads=1"])
        .env(support::NAME, gpu)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// 200 processes die, four at a time, some before they are connected; this one uses the soft GPU all the while.
#[test]
fn processes_that_are_killed_leave_engines_and_memory_to_the_others() {
    let name = name("kills");
    let gpu = open(&name);
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut rng = SplitMix64::new(seed);
    for _ in 0..50 {
        let mut children: Vec<Child> = (0..4).map(|_| storming(&name)).collect();
        for child in &mut children {
            let moment = Duration::from_micros(rng.below(3_000));
            if rng.below(4) > 0 {
                wait_until_there(child);
            }
            std::thread::sleep(moment);
            child.kill().expect("it is ours");
        }
        for mut child in children {
            assert_eq!(child.wait().expect("it is ours").code(), None, "it was killed and saw nothing wrong");
        }
        use_it(&gpu, 1, None);
    }
    let everything = gpu.alloc(gpu.config().memory as usize).expect("what the dead had is free");
    drop(everything);
    let trace = gpu.trace().expect("the server is there");
    let report = check::legality(&trace.header, &trace.records, |_| None);
    assert!(report.is_clean(), "{report}");
}

fn kill(pid: u32) {
    let status = Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill(1)");
    assert!(status.success());
}

#[test]
fn when_the_server_is_killed_all_users_see_it_and_another_takes_its_place() {
    let name = name("server");
    let mut rng = SplitMix64::new(7);
    for _ in 0..10 {
        let gpu = open(&name);
        let stream = gpu.stream("s").expect("a stream");
        let ((began, begun), (go, gone)) = (channel(), channel::<()>());
        stream
            .launch(move |_| {
                began.send(())?;
                Ok(gone.recv_timeout(PATIENCE)?)
            })
            .expect("issued");
        stream.add_callback(|| panic!("nothing was complete")).expect("added");
        begun.recv_timeout(PATIENCE).expect("it runs");
        let waiting = stream.clone();
        let waiter = std::thread::spawn(move || waiting.synchronize(Wait::Blocking));
        std::thread::sleep(Duration::from_micros(rng.below(2_000)));
        kill(gpu.server().expect("Linux knows"));
        assert!(matches!(waiter.join().expect("no panic"), Err(GpuError::Gone { .. })));
        go.send(()).expect("the kernel waits");
        assert!(matches!(stream.launch_timed(Nanos(1)), Err(GpuError::Gone { .. })));
        assert!(matches!(gpu.alloc(1), Err(GpuError::Gone { .. })));
        let another = open(&name);
        assert_ne!(another.server(), gpu.server());
        use_it(&another, 1, None);
    }
}

#[test]
fn a_server_without_users_ends_and_leaves_nothing() {
    let name = name("idle");
    let gpu = open(&name);
    let process = PathBuf::from(format!("/proc/{}", gpu.server().expect("Linux knows")));
    assert!(process.exists());
    let pending = gpu.stream("s").expect("a stream");
    pending.launch_timed(Nanos::from_secs(3600)).expect("issued");
    drop((pending, gpu));
    let start = Instant::now();
    while process.exists() {
        assert!(start.elapsed() < PATIENCE, "it stays");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!fs::read_to_string("/proc/net/unix").expect("it is readable").contains(&name));
    let files = fs::read_dir("/dev/shm").expect("it is there").map(|entry| entry.expect("an entry").file_name());
    assert!(files.into_iter().all(|file| !file.to_string_lossy().contains(&name)));
}

#[test]
fn processes_that_open_it_at_once_find_one_server() {
    let name = name("start");
    std::thread::scope(|scope| {
        let opening: Vec<_> = (0..8).map(|_| scope.spawn(|| open(&name))).collect();
        let gpus: Vec<SoftGpu> = opening.into_iter().map(|one| one.join().expect("no panic")).collect();
        let servers: Vec<_> = gpus.iter().map(SoftGpu::server).collect();
        assert!(servers.iter().all(|server| *server == servers[0]), "{servers:?}");
    });
}

/// What Linux counts of the CPU time of a process, in its ticks.
fn ticks(process: u32) -> u64 {
    let line = fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let fields: Vec<&str> = line.rsplit_once(") ").expect("after its name").1.split(' ').collect();
    [11, 12].map(|field| fields[field].parse::<u64>().expect("a number")).iter().sum()
}

/// It has the priority of hardware: if it polled for room, no other thread would get its CPU.
#[test]
fn a_server_without_descriptors_sleeps_until_a_process_leaves() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = folder.path().join("server");
    let program = env!("CARGO_BIN_EXE_laxity-softgpu-server");
    fs::write(&server, format!("#!/bin/sh\nulimit -n 24\nexec '{program}' \"$@\"\n")).expect("a file");
    fs::set_permissions(&server, Permissions::from_mode(0o755)).expect("a file");

    let name = name("full");
    let options = Options { server: Some(server.clone()), ..Options::default() };
    let open = || SoftGpu::open_with(&name, config(), &options);
    let first = open().expect("a soft GPU");
    let process = first.server().expect("Linux knows");
    let address = format!("laxity-softgpu/{}/{name}", packets::user());
    let strangers: Vec<_> = (0..40).map(|_| Packets::connect(&address).expect("it listens")).collect();
    std::thread::sleep(Duration::from_millis(50));
    let before = ticks(process);
    std::thread::sleep(Duration::from_millis(500));
    let spent = ticks(process) - before;
    assert!(spent <= 10, "{spent} hundredths of a second of CPU time in a half");
    first.stream("s").expect("a stream").launch_timed(Nanos(1)).expect("issued").wait(Wait::Blocking).expect("done");
    drop(strangers);
    open().expect("there is room again");
}
