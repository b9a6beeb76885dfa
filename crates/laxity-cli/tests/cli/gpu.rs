//! `laxity gpu`: GPUs that processes share, seen from outside.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use laxity_gpu::{Arbitration, Base, Config, Inheritance, MobileClient, Registry};
use laxity_model::{Engine, GpuArbitration, GpuSync, Instant, Nanos};
use laxity_sys::scheduling;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::graph::memory;
use crate::support::{example, fixture, run};
use crate::terminal::{self, Terminal};

/// `laxity gpu --folder FOLDER` with these words.
fn gpu(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let folder = folder.to_str().expect("UTF-8");
    run(["gpu", "--folder", folder].iter().chain(words))
}

/// What they print, which succeeds and is JSON.
fn json(folder: &Path, words: &[&str]) -> Value {
    let (code, out, err) = gpu(folder, words);
    assert_eq!((code, err.as_str()), (0, ""), "{words:?}");
    serde_json::from_str(&out).expect("JSON")
}

pub fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
    command.args(["gpu", "--folder"]).arg(folder).args(words);
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("TERM", "xterm");
    command
}

/// A process that is killed when the test is over, however that ends.
struct Process(Child);

impl Process {
    /// Starts it, and waits for the first line that it prints.
    fn start(folder: &Path, words: &[&str]) -> (Process, String) {
        let mut process = Process(command(folder, words).stdout(Stdio::piped()).spawn().expect("runs"));
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("UTF-8");
        (process, line)
    }

    fn end(mut self, signal: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("it is ours");
        self.0.wait().expect("it is ours").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One GPU with one token, whose queue has room for its holder and one more: a third that waits donates or is outside.
fn crowded() -> Config {
    let sync = GpuSync { fifo_length: Some(2), fifo_requests: Some(2), ..GpuSync::DEFAULT };
    Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) }
}

/// `holder` (20) has the token and an engine; `donee` (10) waits for it, `donor` (50) donates to that, and `last` (5)
/// is outside, while `look` looks.
fn while_all_wait(arbitration: &Arbitration, look: impl FnOnce()) {
    let waiting = |count: usize| {
        while arbitration.snapshot().expect("whole").tokens.waiting.len() < count {
            thread::sleep(Duration::from_millis(1));
        }
    };
    thread::scope(|scope| {
        // Of the closure, so that waiting clients are granted also if `look` fails.
        let holder = arbitration.register("holder", Base::Fixed(20)).expect("there is room");
        let token = holder.token().expect("it is free");
        let _engine = token.engine(Engine::Execution, Instant::ZERO).expect("it is free");
        for (number, (name, priority)) in [("donee", 10), ("last", 5), ("donor", 50)].into_iter().enumerate() {
            scope.spawn(move || {
                let client = arbitration.register(name, Base::Fixed(priority)).expect("there is room");
                drop(client.token().expect("granted some day"));
            });
            waiting(number + 1);
        }
        look();
    });
}

#[test]
fn top_shows_holders_queues_donors_and_inheritance() {
    let folder = memory();
    let arbitration = Registry::at(folder.path()).create("car", &crowded()).expect("the name is free");
    let pid = std::process::id().to_string();
    while_all_wait(&arbitration, || {
        let (code, out, err) = gpu(folder.path(), &["top", "--once"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let words: Vec<Vec<&str>> = out.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0][..5], ["0", "token", "0", "holder", pid.as_str()], "{out}");
        assert_eq!(words[0][5..8], ["20", "→", "50"], "{out}");
        assert!(out.contains("donee ← donor"), "{out}");
        assert_eq!(words[1][..4], ["0", "EE", "holder", pid.as_str()], "{out}");
        assert_eq!(words[2], ["0", "CE0", "-", "-", "-"], "{out}");
        assert_eq!(words.last().expect("rows"), &["any", "outside", "last"], "{out}");

        let look = json(folder.path(), &["top", "car", "--once", "--json"]);
        let client = |name: &str| {
            let clients = look["clients"].as_array().expect("a list");
            clients.iter().find(|client| client["name"] == name).expect(name)
        };
        let id = |name: &str| client(name)["client"].clone();
        let token = &look["gpus"][0]["tokens"][0];
        assert_eq!((&token["holder"], &token["waiting"]), (&id("holder"), &Value::from(vec![id("donee")])));
        assert_eq!(look["outside"], Value::from(vec![id("last")]));
        assert_eq!(look["donors"][0]["donor"], id("donor"));
        assert_eq!(look["donors"][0]["donee"], id("donee"));
        let holder = client("holder");
        assert_eq!((&holder["base"]["fixed"], &holder["effective"]["fixed"]), (&20.into(), &50.into()));
        assert_eq!(holder["inherits_from"], id("donor"));

        let list = json(folder.path(), &["list", "--json"]);
        let row = &list["arbitrations"][0];
        let numbers = ["gpus", "tokens", "tokens_held", "clients", "waiting"].map(|field| row[field].as_u64());
        assert_eq!(numbers, [1, 1, 1, 4, 3].map(Some), "{row}");
    });
}

/// What a program under an interposer says while a watcher looks.
#[test]
fn top_names_what_the_holder_of_an_engine_runs_and_the_holders_of_the_bandwidth_lock() {
    let folder = memory();
    let arbitration = Registry::at(folder.path()).create("car", &Config::new(2, 1)).expect("the name is free");
    let client = arbitration.register("detector", Base::Fixed(20)).expect("there is room");
    let mut client = MobileClient::new(client, Base::Fixed(20));
    let top = |words: &[&str]| gpu(folder.path(), &[&["top", "car", "--once"], words].concat());
    assert!(!arbitration.is_watched());
    top(&[]);
    assert!(arbitration.is_watched(), "a look is an order to say names");
    client.protect(Some(64_000_000));
    client.say("blur \u{1b}[5m\nblink");
    client.count_operation();
    assert!(client.take_if_free(0, Engine::Execution));
    let (code, out, err) = top(&[]);
    assert_eq!((code, err.as_str()), (0, ""));
    let engine = out.lines().find(|line| line.contains("EE")).expect("a row");
    assert!(engine.contains("blur \\u001b[5m\\u000ablink"), "{out}");
    let bandwidth: Vec<&str> =
        out.lines().find(|line| line.contains("bandwidth")).expect("a row").split_whitespace().collect();
    assert_eq!(bandwidth[..3], ["any", "bandwidth", "detector"], "{out}");
    assert_eq!(bandwidth[5..], ["64", "MB/s"], "{out}");
    let program: Vec<&str> =
        out.lines().find(|line| line.contains("program")).expect("a row").split_whitespace().collect();
    assert_eq!(program[..2], ["program", "detector"], "{out}");
    assert!(program.join(" ").contains("1 operation, waited 0"), "{out}");
    let look = json(folder.path(), &["top", "car", "--once", "--json"]);
    let client = &look["clients"][0];
    assert_eq!(
        (&client["operations"], &client["waited_ns"], &client["bandwidth"]),
        (&1.into(), &0.into(), &64_000_000.into())
    );
    assert_eq!(client["operation"], "blur \u{1b}[5m\nblink", "JSON escapes by itself");
}

#[test]
fn top_shows_threads_that_follow_holders_with_the_priority_that_they_have_now() {
    let folder = memory();
    let arbitration = &Registry::at(folder.path()).create("car", &crowded()).expect("the name is free");
    let is_real = arbitration.inheritance() == Inheritance::Real;
    let pid = std::process::id().to_string();
    let ((say, said), (end, ended)) = (channel(), channel::<()>());
    thread::scope(|scope| {
        // Both end as the closure does.
        let end = end;
        let servant = thread::Builder::new().name("servant".to_owned());
        let servant = servant.spawn_scoped(scope, move || {
            say.send(scheduling::current_thread()).expect("it is asked for");
            let _ = ended.recv();
        });
        servant.expect("a thread");
        let servant = said.recv().expect("it says so");
        let follower = arbitration.follow(0, servant).expect("there is room");
        let row = || {
            let (code, out, err) = gpu(folder.path(), &["top", "--once"]);
            assert_eq!((code, err.as_str()), (0, ""));
            let row = out.lines().find(|line| line.contains("follows")).map(str::to_owned);
            row.map(|row| row.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let number = servant.to_string();
        let expected =
            |priority| ["0", "follows", "servant", number.as_str(), pid.as_str(), priority].map(str::to_owned);
        assert_eq!(row().expect("it follows"), expected("-"));
        let hold = || {
            // Where Linux does not permit it nothing follows from it.
            let _ = scheduling::set_fifo(20);
            let holder = arbitration.register("holder", Base::Fixed(20)).expect("there is room");
            let _token = holder.token().expect("it is free");
            let priority = if is_real { "20" } else { "-" };
            assert_eq!(row().expect("it follows")[..6], expected(priority));

            let look = json(folder.path(), &["top", "car", "--once", "--json"]);
            let [follower] = look["followers"].as_array().expect("a list").as_slice() else { panic!("{look}") };
            assert_eq!((&follower["name"], &follower["thread"]), (&"servant".into(), &servant.into()));
            assert_eq!((&follower["gpu"], follower["pid"].to_string()), (&0.into(), pid.clone()));
            assert_eq!(follower["fixed"], if is_real { 20.into() } else { Value::Null });
            assert!(!is_real || follower["refused_errno"].is_null(), "{follower}");
            let list = json(folder.path(), &["list", "--json"]);
            assert_eq!(list["arbitrations"][0]["followers"], 1);
        };
        // In a thread of its own, whose priority it is.
        thread::scope(|scope| scope.spawn(hold).join().expect("no panic"));
        assert_eq!(row().expect("it follows"), expected("-"), "the holder has left");
        drop(follower);
        assert_eq!(row(), None);
        drop(end);
    });
}

#[test]
fn list_shows_how_much_memory_of_soft_gpus_is_in_use() {
    let name = format!("test-{}-list", std::process::id());
    let config = laxity_softgpu::Config { memory: 64 << 30, linger: Nanos::from_millis(10), ..Default::default() };
    let server = laxity_softgpu::server::Server::new(&name, config).expect("the name is free");
    let server = thread::spawn(move || server.run());
    let gpu_used = laxity_softgpu::SoftGpu::open(&name, config).expect("it is there");
    let buffer = gpu_used.alloc(3_000_000).expect("memory");
    let folder = memory();
    let list = json(folder.path(), &["list", "--json"]);
    let soft = list["soft_gpus"].as_array().expect("a list");
    let soft = soft.iter().find(|soft| soft["name"] == name.as_str()).expect("it is there");
    assert_eq!((&soft["memory"], &soft["processes"]), (&(64u64 << 30).into(), &1.into()));
    assert_eq!(soft["memory_used"], soft["memory_reserved"]);
    assert!(soft["memory_used"].as_u64().is_some_and(|used| (3_000_000..3_100_000).contains(&used)), "{soft}");
    let (code, out, _) = gpu(folder.path(), &["list"]);
    let row = out.lines().find(|line| line.starts_with(&name)).expect("a row");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert!(code == 0 && words[2..5] == ["kB", "68.7", "GB"], "{out}");
    drop((buffer, gpu_used));
    server.join().expect("no panic");
    let (_, out, _) = gpu(folder.path(), &["list"]);
    assert!(!out.contains(&name), "{out}");
}

#[test]
fn what_create_made_is_there_until_it_is_asked_to_end() {
    let folder = memory();
    let words = ["create", "car", "--gpus", "2", "--cpus", "6", "--tokens", "3", "--chunk", "1 MiB"];
    let (process, line) = Process::start(folder.path(), &words);
    assert_eq!(line, "car: 2 GPUs for the threads of 6 CPUs under gpusync, 3 tokens each; until Ctrl-C\n");
    let registry = Registry::at(folder.path());
    let config = *registry.attach("car").expect("it is there").config();
    assert_eq!((config.gpus, config.cpus, config.chunk()), (2, 6, Some(1 << 20)));
    let (code, _, err) = gpu(folder.path(), &["create", "car", "--gpus", "1"]);
    assert_eq!((code, err.as_str()), (1, "error: arbitration car: exists and is in use; attach to it\n"));
    assert_eq!(process.end(Signal::SIGINT), Some(0));
    assert_eq!(registry.names().expect("readable"), [""; 0], "the last one out takes it along");

    let (process, _) = Process::start(folder.path(), &["create", "car", "--gpus", "1", "--arbitration", "k_fmlp"]);
    let arbitration = registry.attach("car").expect("it is there");
    assert_eq!(process.end(Signal::SIGTERM), Some(0));
    assert!(registry.is_in_use("car").expect("readable"), "it stays for its users");
    drop(arbitration);
    assert_eq!(registry.names().expect("readable"), [""; 0]);
}

/// Started by util-linux's `prlimit` and, if this is root's process, `setpriv`: the ways to SCHED_FIFO are closed.
#[test]
fn creating_an_arbitration_that_cannot_raise_holders_prints_a_warning() {
    let folder = memory();
    let mut ways = vec!["prlimit", "--rtprio=0"];
    if nix::unistd::geteuid().is_root() {
        ways.extend(["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]);
    }
    let mut limited = Command::new(ways[0]);
    let create = command(folder.path(), &["create", "car", "--gpus", "1"]);
    limited.args(&ways[1..]).arg(create.get_program()).args(create.get_args()).env("NO_COLOR", "1");
    let mut process =
        Process(limited.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("util-linux is there"));
    let mut line = String::new();
    BufReader::new(process.0.stderr.take().expect("a pipe")).read_line(&mut line).expect("UTF-8");
    let wanted = "note: grants are in order of priority, but holders cannot be raised: allow SCHED_FIFO (CAP_SYS_NICE, or \
                  ulimit -r 99)\n";
    assert_eq!(line, wanted);
    assert_eq!(process.end(Signal::SIGTERM), Some(0));
}

#[test]
fn a_workload_says_what_is_shared() {
    let folder = memory();
    let path = example("gpu_pool.toml");
    let words = ["create", "car", "--tokens", "2", "--file", path.to_str().expect("UTF-8")];
    let (process, line) = Process::start(folder.path(), &words);
    assert_eq!(line, "car: 2 GPUs for the threads of 6 CPUs under gpusync, 2 tokens each; until Ctrl-C\n");
    let config = *Registry::at(folder.path()).attach("car").expect("it is there").config();
    let GpuArbitration::GpuSync(sync) = config.arbitration else { panic!("{config:?}") };
    assert_eq!((sync.tokens, sync.chunk, config.copy_engines), (2, Some(1 << 20), 2), "the file's but for the option");
    assert_eq!(process.end(Signal::SIGTERM), Some(0));
}

#[test]
fn what_cannot_be_shared_is_refused_before_anything_begins() {
    let folder = memory();
    let (without, driver) = (fixture("two.toml"), fixture("gpu.toml"));
    let (without, driver) = (without.to_str().expect("UTF-8"), driver.to_str().expect("UTF-8"));
    let refused: [(&[&str], &str); 8] = [
        (&["create", "car"], "--gpus"),
        (&["create", "car", "--gpus", "0"], "GPUs: 0 is outside 1 to 64; choose one within"),
        (&["create", "a/b", "--gpus", "1"], "arbitration name \"a/b\""),
        (
            &["create", "car", "--gpus", "1", "--arbitration", "k_fmlp", "--tokens", "2"],
            "--tokens is a parameter of gpusync",
        ),
        (&["create", "car", "--file", without], "the platform has no GPU; add a [[platform.gpu]]"),
        (&["create", "car", "--file", driver], "arbitration driver cannot be done live; choose k_fmlp or gpusync"),
        (&["create", "car", "--file", driver, "--cluster", "7"], "clusters with GPUs are 0; write --cluster N"),
        (&["create", "car", "--gpus", "1", "--chunk", "7"], "has no unit"),
    ];
    for (words, expected) in refused {
        let (code, out, err) = gpu(folder.path(), words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
    assert_eq!(Registry::at(folder.path()).names().expect("readable"), [""; 0]);
}

#[test]
fn what_a_killed_process_left_is_told_and_removed() {
    let folder = memory();
    assert_eq!(gpu(folder.path(), &["gc"]), (0, String::new(), String::new()));
    let (code, out, _) = gpu(folder.path(), &["list"]);
    assert!(code == 0 && out.starts_with("no shared GPUs in "), "{out}");
    let (process, _) = Process::start(folder.path(), &["create", "car", "--gpus", "1"]);
    assert_eq!(gpu(folder.path(), &["gc"]).1, "", "it is in use");
    let mut watch = command(folder.path(), &["top", "car", "--json", "--every", "20ms"]);
    let mut watch = Process(watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs"));
    let mut lines = BufReader::new(watch.0.stdout.take().expect("a pipe")).lines();
    let look: Value = serde_json::from_str(&lines.next().expect("a look").expect("UTF-8")).expect("JSON");
    assert_eq!((&look["arbitration"], &look["gpus"][0]["tokens"][0]["holder"]), (&"car".into(), &Value::Null));
    assert_eq!(process.end(Signal::SIGKILL), None);
    assert!(lines.all(|line| line.is_ok()), "until it ends");
    assert_eq!(watch.0.wait().expect("it is ours").code(), Some(1));

    let left = "error: arbitration car: all its processes were killed; remove it with `laxity gpu gc`\n";
    assert_eq!(gpu(folder.path(), &["top"]), (1, String::new(), left.to_owned()));
    let (code, out, err) = gpu(folder.path(), &["list"]);
    assert!(code == 0 && out.contains("left over\n") && err.contains("laxity gpu gc"), "{out}{err}");
    assert_eq!(gpu(folder.path(), &["gc"]), (0, "car\n".to_owned(), String::new()));
    let missing = "error: arbitration car: does not exist; there is no arbitration\n";
    assert_eq!(gpu(folder.path(), &["top", "car"]), (2, String::new(), missing.to_owned()));
}

#[test]
fn of_several_arbitrations_one_is_to_be_named() {
    let folder = memory();
    let registry = Registry::at(folder.path());
    let _both = ["car", "robot"].map(|name| registry.create(name, &Config::new(2, 1)).expect("the name is free"));
    let which = "error: which arbitration? write one of car, robot\n";
    assert_eq!(gpu(folder.path(), &["top"]), (2, String::new(), which.to_owned()));
    let near = "error: arbitration cat: does not exist; did you mean `car`?\n";
    assert_eq!(gpu(folder.path(), &["top", "cat"]), (2, String::new(), near.to_owned()));
}

#[test]
fn top_in_a_terminal_leaves_the_last_table() {
    let folder = memory();
    let arbitration = Registry::at(folder.path()).create("car", &crowded()).expect("the name is free");
    let mut terminal = None;
    while_all_wait(&arbitration, || {
        let mut top = Terminal::start(command(folder.path(), &["top", "car", "--every", "20ms"]));
        top.read_until("donee ← donor");
        terminal = Some(top);
    });
    drop(arbitration);
    let written = terminal.expect("it was started").finish();
    let screen = terminal::screen(&written);
    // Titles, rule, a token and three engines, and the client that was outside last.
    assert!(screen.iter().any(|line| line.starts_with("GPU  lock")), "{screen:#?}");
    assert!((6..=7).contains(&screen.len()), "{screen:#?}");
}
