//! Machines as folders: each lacks one thing, and the report says which, and what to do.

use std::fs;
use std::path::{Path, PathBuf};

use laxity_scx::{Check, Functions, probe};
use laxity_testing::Directory;

/// A machine that has all.
const READY: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/btf/vmlinux", "types"),
    ("proc/sys/net/core/bpf_jit_enable", "1\n"),
    ("proc/self/status", "Name:\tlaxity\nCapEff:\t000000c000000000\nCapBnd:\t0\n"),
];

struct Machine {
    root: PathBuf,
    _folder: Directory,
}

impl Machine {
    fn new(name: &str) -> Machine {
        let folder = Directory::new(name);
        let machine = Machine { root: folder.path().to_owned(), _folder: folder };
        READY.iter().for_each(|(path, text)| machine.write(path, text));
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn remove(&self, path: &str) {
        let path = self.root.join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("it is there");
    }

    /// The checks that fail.
    fn lacks(&self) -> Vec<Check> {
        let report = probe(&self.root);
        let lacking: Vec<Check> = report.checks.iter().filter(|check| !check.holds).cloned().collect();
        assert_eq!(report.is_ready(), lacking.is_empty());
        for check in &report.checks {
            assert_eq!(check.remedy.is_some(), !check.holds, "a remedy where one is needed: {check:?}");
        }
        lacking
    }

    /// The one check that fails: its name and what was found.
    fn lack(&self) -> (&'static str, String) {
        let [check] = <[Check; 1]>::try_from(self.lacks()).expect("one thing is missing");
        (check.name, check.found)
    }
}

#[test]
fn a_machine_that_has_all_is_ready() {
    assert_eq!(Machine::new("scx-ready").lacks(), []);
}

#[test]
fn kernels_before_6_12_are_refused_by_their_version() {
    let machine = Machine::new("scx-version");
    for (release, is_new) in
        [("6.11.99-x", false), ("5.19", false), ("6.12.0", true), ("6.13-rc1", true), ("7.0.1", true), ("10.2", true)]
    {
        machine.write("proc/sys/kernel/osrelease", release);
        assert_eq!(machine.lacks().is_empty(), is_new, "{release}");
    }
    machine.write("proc/sys/kernel/osrelease", "6.11.2-amd64\n");
    assert_eq!(machine.lack(), ("kernel", "Linux 6.11.2-amd64".to_owned()));
    for broken in ["", "six", "6", "99999999999.1", "\u{1b}[2J"] {
        machine.write("proc/sys/kernel/osrelease", broken);
        assert_eq!(machine.lack().0, "kernel", "{broken:?}");
    }
    machine.remove("proc/sys/kernel/osrelease");
    assert_eq!(machine.lack().0, "kernel");
}

#[test]
fn what_the_kernel_was_built_without_is_named() {
    for (path, name) in [("sys/kernel/sched_ext", "sched_ext"), ("sys/kernel/btf/vmlinux", "btf")] {
        let machine = Machine::new("scx-built");
        machine.remove(path);
        assert_eq!(machine.lack().0, name);
    }
    let machine = Machine::new("scx-real-time");
    machine.write("sys/kernel/realtime", "1\n");
    assert_eq!(machine.lack().0, "timers");
    machine.write("sys/kernel/realtime", "0\n");
    machine.write("proc/sys/net/core/bpf_jit_enable", "0\n");
    assert_eq!(machine.lack().0, "jit");
    machine.remove("proc/sys/net/core/bpf_jit_enable");
    assert_eq!(machine.lacks(), [], "a network namespace does not show it");
}

#[test]
fn another_scheduler_is_named() {
    let machine = Machine::new("scx-other");
    machine.write("sys/kernel/sched_ext/state", "enabled\n");
    assert_eq!(machine.lack(), ("free", "another scheduler is loaded (enabled)".to_owned()));
    machine.write(concat!("sys/kernel/sched_ext/root", "/ops"), "rusty_1.0\n");
    assert_eq!(machine.lack(), ("free", "rusty_1.0 is loaded (enabled)".to_owned()));
}

#[test]
fn capabilities_that_are_missing_are_named() {
    let machine = Machine::new("scx-rights");
    for (set, lacks) in [
        ("000001ffffffffff", None),
        ("0000000000200000", None),
        ("0000004000000000", Some("without CAP_BPF")),
        ("0000008000000000", Some("without CAP_PERFMON")),
        ("0000000000000000", Some("without CAP_BPF and CAP_PERFMON")),
        ("none", Some("no capabilities in /proc/self/status")),
    ] {
        machine.write("proc/self/status", &format!("Name:\tlaxity\nCapEff:\t{set}\n"));
        let found = machine.lacks().pop().map(|check| check.found);
        assert_eq!(found.as_deref(), lacks, "{set}");
    }
}

#[test]
fn an_empty_folder_and_no_folder_lack_all_that_must_be_there() {
    let folder = Directory::new("scx-empty");
    let of = |root: &Path| -> Vec<&str> {
        probe(root).checks.iter().filter(|check| !check.holds).map(|check| check.name).collect()
    };
    let expected = ["kernel", "sched_ext", "btf", "rights"];
    assert_eq!(of(folder.path()), expected);
    assert_eq!(of(&folder.path().join("none")), expected);
}

#[test]
fn functions_that_a_kernel_lacks_or_describes_wrongly_are_named() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let fitting = Functions { fitting: names(&["a", "b"]), ..Functions::default() };
    assert!(fitting.check().holds && fitting.check().found == "all 2 that the scheduler calls");
    let missing = Functions { missing: names(&["c", "d"]), ..fitting.clone() };
    let different = Functions { different: names(&["e"]), ..missing.clone() };
    let unhidden = Functions { unhidden: names(&["f"]), ..different.clone() };
    let only_different = Functions { missing: Vec::new(), ..different.clone() };
    // The build of the kernel is said first: with it nothing else can be known.
    for (functions, found, remedy) in [
        (missing, "this kernel has no c, no d", "Linux 6.12"),
        (different, "this kernel has no c, no d", "Linux 6.12"),
        (unhidden, "this kernel's BTF describes f wrongly", "another build"),
        (only_different, "e of this kernel take other arguments", "a Laxity that knows this kernel"),
    ] {
        let check = functions.check();
        assert!(!check.holds && check.found == found, "{check:?}");
        assert!(check.remedy.expect("a way out").contains(remedy), "{check:?}");
    }
}
