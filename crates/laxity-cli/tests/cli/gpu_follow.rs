//! `laxity gpu irq --follow`, on a thread of this machine's kernel that handles an interrupt: some GPU's, says a folder that
//! imitates /sys.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;

use laxity_gpu::{Base, Config, Registry};
use laxity_sys::scheduling::{self, Attributes};
use laxity_testing::{skip, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::gpu::command;
use crate::gpu_irq::{device, write};
use crate::support::{folder, run};

/// A thread `irq/NN-NAME` of this machine: its number and its interrupt's, if it may be scheduled.
fn handler() -> Result<(u32, u32), String> {
    let found = fs::read_dir("/proc").expect("mounted").flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        Some((pid, name.strip_prefix("irq/")?.split('-').next()?.parse().ok()?))
    });
    let (pid, interrupt) = found.ok_or("no thread of this kernel handles an interrupt")?;
    let own = Attributes::of(pid).map_err(|error| error.to_string())?;
    own.give_to(pid).map_err(|error| format!("the kernel's threads cannot be scheduled: {error}"))?;
    scheduling::set_fifo(1).map_err(|error| format!("no SCHED_FIFO: {error}"))?;
    Ok((pid, interrupt))
}

/// A machine whose only GPU with a driver raises that interrupt.
fn machine(root: &Path, pid: u32, interrupt: u32) {
    let gpu = device(root, "0000:41:00.0", "0x030200", "0x10de");
    device(root, "0000:00:02.0", "0x030000", "0x8086");
    fs::create_dir_all(root.join("sys/bus/pci/drivers/some")).expect("made");
    symlink("../../drivers/some", gpu.join("driver")).expect("linked");
    write(&gpu, &format!("msi_irqs/{interrupt}"), "msix\n");
    fs::create_dir_all(root.join("proc")).expect("made");
    symlink(format!("/proc/{pid}"), root.join(format!("proc/{pid}"))).expect("linked");
}

/// `laxity gpu irq --follow g`, which is ended by a signal.
struct Following(Child);

impl Following {
    fn start(place: &Path, root: &Path, words: &[&str]) -> Following {
        let root = root.to_str().expect("UTF-8");
        let mut command = command(place, &["irq", "--root", root, "--follow", "g"]);
        let mut child = command.args(words).stdout(Stdio::piped()).spawn().expect("runs");
        let out = BufReader::new(child.stdout.as_mut().expect("a pipe"));
        let begun = out.lines().map_while(Result::ok).any(|line| line == "until Ctrl-C");
        assert!(begun, "it ended");
        Following(child)
    }

    fn end(mut self, signal: Signal) -> (Option<i32>, String) {
        kill(Pid::from_raw(self.0.id() as i32), signal).expect("it is ours");
        let mut rest = String::new();
        self.0.stdout.take().expect("a pipe").read_to_string(&mut rest).expect("UTF-8");
        (self.0.wait().expect("it is ours").code(), rest)
    }
}

#[test]
fn the_thread_of_an_interrupt_has_the_holders_priority_and_its_own_in_the_end() {
    let (pid, interrupt) = match handler() {
        Ok(handler) => handler,
        Err(why) => return skip(why),
    };
    let priority = || Attributes::of(pid).expect("the kernel's threads stay").fixed_priority();
    let own = priority();
    let (place, root) = (folder(), folder());
    machine(root.path(), pid, interrupt);
    let arbitration = Registry::at(place.path()).create("g", &Config::new(2, 1)).expect("the name is free");
    let (following, hold) = (Following::start(place.path(), root.path(), &[]), |priority: u8| {
        scheduling::set_fifo(priority).expect("it was permitted");
        let client = arbitration.register("holder", Base::Fixed(priority)).expect("there is room");
        let token = client.token_of(0).expect("no other thread has it");
        until("the holder's priority", || Attributes::of(pid).is_ok_and(|now| now.fixed_priority() == Some(priority)));
        drop(token);
    });
    thread::scope(|scope| {
        until("idle", || priority() == Some(1));
        for urgent in [40, 20, 60] {
            scope.spawn(move || hold(urgent)).join().expect("no panic");
            until("idle again", || priority() == Some(1));
        }
    });
    let (code, rest) = following.end(Signal::SIGINT);
    assert_eq!((code, priority()), (Some(0), own), "{rest}");
    assert!(rest.contains("7 changes of priority"), "{rest}");

    // Killed in the middle of it, it leaves nothing as it made it.
    let following = Following::start(place.path(), root.path(), &["--gpu", "0=0000:41:00.0", "--idle", "7"]);
    until("idle", || priority() == Some(7));
    following.end(Signal::SIGKILL);
    until("its own", || priority() == own);
    let following = Following::start(place.path(), root.path(), &["--idle", "keep"]);
    thread::scope(|scope| scope.spawn(|| hold(30)).join().expect("no panic"));
    until("its own", || priority() == own);
    assert_eq!(following.end(Signal::SIGTERM).0, Some(0));
}

#[test]
fn what_cannot_be_followed_is_said_with_the_way_out() {
    let (place, root) = (folder(), folder());
    crate::gpu_irq::machine(root.path());
    let [at, below] = [place.path(), root.path()].map(|path| path.to_str().expect("UTF-8").to_owned());
    let follow = |words: &[&str]| {
        let fixed = ["gpu", "--folder", &at, "irq", "--root", &below, "--follow"];
        run(fixed.iter().chain(words))
    };
    let (code, _, err) = follow(&["g"]);
    assert!(code == 2 && err.contains("g"), "{code}: {err}");
    let _two = Registry::at(place.path()).create("g", &Config::new(2, 2)).expect("the name is free");
    for (words, wanted) in [
        (&["g"][..], "arbitration g has 2 GPUs, and 1 of this machine have a driver"),
        (&["g", "--gpu", "2=x"], "--gpu 2: arbitration g has 2, counted from 0"),
        (&["g", "--gpu", "0=0000:41:00.0"], "--gpu says nothing of GPU 1"),
        (
            &["g", "--gpu", "0=0000:41:00.0", "--gpu", "1=\u{1b}[2J"],
            "this machine has no GPU there; it has 0000:00:02.0",
        ),
        (&["g", "--gpu", "x"], "write NUMBER=ADDRESS"),
        (&["g", "--idle", "100"], "write a priority of 1 to 99, or keep"),
    ] {
        let (code, _, err) = follow(words);
        assert!(code == 2 && err.contains(wanted) && !err.contains('\u{1b}'), "{words:?}: {code}: {err}");
    }
    let (code, _, err) = follow(&["g", "--gpu", "1=0000:41:00.0", "--gpu", "0=0000:00:02.0"]);
    assert!(code == 1 && err.contains("0000:00:02.0: no driver has it"), "{code}: {err}");
}
