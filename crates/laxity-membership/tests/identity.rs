//! A member that lives is never taken for dead, whatever a process that attaches cannot read, and a process is gone when
//! it carries out no instruction of its program any more.
//!
//! Other processes are this test program, started again for the test `child`.
#![cfg(debug_assertions)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;

use laxity_membership::{Kind, Membership, NameTable, RegistryError, Standing};
use laxity_model::Nanos;
use laxity_sys::fault;
use laxity_sys::segment::{HEADER, SegmentError};
use laxity_testing::{Directory, Process, role, skip, until};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use support::{Plain, scene};

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, directory)) = role() else { return };
    let names = NameTable::at(&directory);
    let member = || names.attach::<Plain>("m").expect("it was created").0;
    let sleep = || loop {
        thread::park();
    };
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("starve", free) => starve(&names, free.parse().expect("a number")),
        ("blind", _) => {
            let error = names.attach::<Plain>("m").map(drop).expect_err("nothing says which boot this is").to_string();
            assert!(error.contains("/proc/"), "{error}");
            assert!(names.is_in_use::<Plain>("m").is_err() && names.gc::<Plain>().is_err());
        }
        ("comm", _) => {
            // Cut in the middle of a letter.
            fs::write("/proc/self/comm", b"caf\xc3").expect("a thread has a name");
            let _member = member();
            sleep();
        }
        ("exec", _) => {
            let _member = member();
            until("the test has seen it", || directory.join("go").exists());
            panic!("{}", Command::new("sleep").arg("1000").exec());
        }
        ("fork", _) => fork(&member(), &directory),
        ("lock", _) => {
            let member = member();
            let _locked = member.memory().segment().lock().expect("it is free");
            fs::write(directory.join("locked"), "").expect("writable");
            sleep();
        }
        ("stranger", _) => {
            let error = names.attach::<Plain>("m").map(drop).expect_err("it belongs to the superuser");
            assert!(
                matches!(error, RegistryError::Segment(SegmentError::Owner { owner: 0, user: 65534, .. })),
                "{error}"
            );
        }
        ("squat", _) => {
            drop(Plain::draft(&names).0.publish());
            sleep();
        }
        _ => panic!("no such role: {role}"),
    }
}

/// Attaches with so many descriptors left.
fn starve(names: &NameTable, free: u64) {
    let used = fs::read_dir("/proc/self/fd").expect("readable").count() as u64 - 1;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(used + free), ..limit }).expect("less is allowed");
    match names.attach::<Plain>("m").map(|(member, ())| member.is_alone()) {
        Ok(is_alone) => assert!(!is_alone, "with {free} free descriptors the living are taken for dead"),
        Err(error) => assert!(error.to_string().contains("Too many open files"), "{error}"),
    }
}

/// Goes on in a copy of this process, too, made while this one holds the lock.
fn fork(member: &Membership<Plain>, directory: &Path) {
    let _locked = member.memory().segment().lock().expect("it is free");
    let copy = fault::fork_idle(100_000).expect("another process");
    fs::write(directory.join("copy.new"), copy.to_string()).expect("writable");
    fs::rename(directory.join("copy.new"), directory.join("copy")).expect("writable");
    loop {
        thread::park();
    }
}

/// Memory with this process as a member, whose words must not change while another process misbehaves.
fn with_member(test: &str) -> (Directory, NameTable, Membership<Plain>, impl Fn() + use<>) {
    let (directory, names) = scene(test);
    let member = Plain::create(&names);
    let memory = member.memory().clone();
    let words = move || {
        let members = memory.members();
        (members.word(0).load(Ordering::SeqCst), members.id(0), members.pid(0), memory.reaped().load(Ordering::SeqCst))
    };
    let before = words();
    let unchanged = move || assert_eq!(words(), before, "the member that lives was touched");
    (directory, names, member, unchanged)
}

#[test]
fn a_process_without_descriptors_is_refused_or_attaches_and_changes_no_other_member() {
    let (directory, _names, _member, unchanged) = with_member("starved");
    for free in 0..=12 {
        let status = Process::start(directory.path(), &format!("starve {free}")).wait();
        assert!(status.success(), "{free} descriptors");
        unchanged();
    }
}

/// As in a chroot, and under systemd's `ProcSubset=pid`.
#[test]
fn a_process_that_cannot_read_proc_is_refused_and_changes_no_other_member() {
    let may_unshare = Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success());
    if !may_unshare {
        return skip("this user may not make a mount namespace");
    }
    let (directory, names, _member, unchanged) = with_member("blind");
    for mount in ["-t tmpfs tmpfs", "-t proc -o subset=pid proc"] {
        let script = format!("mount {mount} /proc && exec \"$0\" \"$@\"");
        let wrapper = ["unshare", "--mount", "sh", "-c", &script];
        let status = Process::spawn(&mut Process::command(directory.path(), "blind", &wrapper)).wait();
        assert!(status.success(), "{mount}");
        unchanged();
        assert_eq!(names.list::<Plain>().expect("readable"), ["m"]);
    }
}

#[test]
fn a_member_whose_name_is_no_text_lives() {
    let (directory, names) = scene("comm");
    let member = Plain::create(&names);
    let mut process = Process::start(directory.path(), "comm");
    until("it is attached", || !member.is_alone());
    drop(member);
    assert!(names.is_in_use::<Plain>("m").expect("whole"));
    assert_eq!(names.gc::<Plain>().expect("readable"), Vec::<String>::new());
    process.kill();
}

/// Container runtimes show each container a boot of its own.
#[test]
fn a_member_of_another_boot_lives_while_it_is_present() {
    let (_directory, names, member, _) = with_member("container");
    // Its slot is the first, 64 bytes after the header, and its boot is 16 bytes into it.
    let boot = member.memory().0.u64(HEADER + 64 + 16);
    boot.store(boot.load(Ordering::SeqCst) ^ 1, Ordering::SeqCst);
    let (other, ()) = names.attach::<Plain>("m").expect("it is there");
    assert_eq!((other.id().slot, other.memory().members().standing(0)), (1, Standing::Alive));
    assert_eq!(other.memory().reaped().load(Ordering::SeqCst), 0);
    assert!(!other.is_alone());
}

#[test]
fn a_member_that_executes_another_program_is_gone() {
    let (directory, names) = scene("exec");
    let member = Plain::create(&names);
    let mut process = Process::start(directory.path(), "exec");
    until("it is attached", || !member.is_alone());
    fs::write(directory.path().join("go"), "").expect("writable");
    until("its slot is free", || member.memory().members().standing(1) == Standing::Vacant);
    assert!(process.is_running(), "the other program has its number");
    assert!(member.is_alone());
    drop(member);
    assert!(names.list::<Plain>().expect("readable").is_empty(), "and keeps nothing");
    process.kill();
}

/// A copy has the same descriptors and mappings, and lives on.
#[test]
fn what_a_killed_member_held_is_free_though_a_forked_copy_of_it_lives() {
    let (directory, names) = scene("fork");
    let member = Plain::create(&names);
    let mut process = Process::start(directory.path(), "fork");
    until("there is a copy", || directory.path().join("copy").exists());
    process.kill();
    let copy = fs::read_to_string(directory.path().join("copy")).expect("a number").parse().expect("a number");
    let copy = Pid::from_raw(copy).expect("a number");
    until("its slot is free", || member.memory().members().standing(1) == Standing::Vacant);
    let (second, ()) = names.attach::<Plain>("m").expect("its lock is free");
    assert_eq!(second.id().slot, 1);
    kill_process(copy, Signal::KILL).expect("the copy lives");
}

#[test]
fn a_lock_that_is_held_for_too_long_is_an_error_that_names_the_holder() {
    let (directory, names) = scene("lock");
    let member = Plain::create(&names);
    let mut process = Process::start(directory.path(), "lock");
    until("it has the lock", || directory.path().join("locked").exists());
    let error = member.memory().segment().lock_within(Nanos::from_millis(20)).map(drop).expect_err("it is held");
    let text = format!("process {} has held its lock for 20 ms", process.id());
    assert!(error.to_string().contains(&text), "{error}");
    process.kill();
    drop(member.memory().segment().lock().expect("its holder is gone"));
    drop((member, names));
}

#[test]
fn memory_of_another_user_is_refused_in_both_directions() {
    if !rustix::process::geteuid().is_root() {
        return skip("only the superuser can start a process of another user");
    }
    let (directory, names, member, unchanged) = with_member("users");
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o1777)).expect("ours");
    let start = |role: &str| {
        // Of a copy that the other user can reach.
        let program = directory.path().join("program");
        fs::copy(std::env::current_exe().expect("this test"), &program).expect("writable");
        let command = Process::command(directory.path(), role, &[]);
        let mut reachable = Command::new(&program);
        reachable.args(command.get_args()).uid(65534).gid(65534).current_dir("/");
        reachable.envs(command.get_envs().map(|(name, value)| (name, value.expect("set"))));
        Process::spawn(&mut reachable)
    };
    // Found, though the superuser's file could not be opened anyway.
    assert!(start("stranger").wait().success());
    unchanged();
    drop(member);
    let mut squatter = start("squat");
    let path: PathBuf = directory.path().join("laxity-memory.m");
    until("the name is taken", || path.exists());
    let error = names.attach::<Plain>("m").map(drop).expect_err("it is another user's");
    assert!(matches!(error, RegistryError::Segment(SegmentError::Owner { owner: 65534, user: 0, .. })), "{error}");
    assert!(names.publish("m", Plain::draft(&names)).is_err());
    assert_eq!(names.gc::<Plain>().expect("left alone"), Vec::<String>::new());
    assert!(path.exists());
    squatter.kill();
}
