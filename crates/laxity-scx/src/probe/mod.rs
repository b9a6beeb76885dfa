//! Whether a machine can run the scheduler in its kernel, and what to do where it cannot. Only reads files.
//!
//! The files are looked for below a folder, `/` for this machine, so that those of another machine can be judged.

mod files;
mod functions;

use std::path::Path;

use files::{Files, Reading};
pub use functions::Functions;

/// The oldest kernel that has sched_ext.
const OLDEST: (u32, u32) = (6, 12);

/// One thing that the scheduler needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// A word for it: `kernel`, `btf`, `sched_ext`, `free`, `timers`, `jit`, `rights`, `loader`, `functions`.
    pub name: &'static str,
    /// Whether the machine has it.
    pub holds: bool,
    /// What was found.
    pub found: String,
    /// What to do about it, where the machine lacks it.
    pub remedy: Option<&'static str>,
}

/// All that the scheduler needs of a machine, in the order in which one would see to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Each need.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether nothing is missing.
    pub fn is_ready(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }
}

/// Looks at the machine whose files are below `root`.
pub fn probe(root: &Path) -> Report {
    let files = Files::below(root);
    let checks =
        vec![kernel(&files), sched_ext(&files), btf(&files), jit(&files), timers(&files), free(&files), rights(&files)];
    Report { checks }
}

fn check(name: &'static str, holds: bool, found: String, remedy: &'static str) -> Check {
    Check { name, holds, found, remedy: (!holds).then_some(remedy) }
}

fn kernel(files: &Files) -> Check {
    let remedy = "boot Linux 6.12 or newer";
    let release = match files.text("proc/sys/kernel/osrelease") {
        Reading::Is(release) => release,
        other => return check("kernel", false, other.why_not("its version"), remedy),
    };
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => {
            check("kernel", (major, minor) >= OLDEST, format!("Linux {release}"), remedy)
        }
        _ => check("kernel", false, format!("a version that is none: {release:?}"), remedy),
    }
}

fn sched_ext(files: &Files) -> Check {
    let found = match files.exists("sys/kernel/sched_ext") {
        Reading::Is(()) => "there".to_owned(),
        Reading::Missing => "this kernel was built without it".to_owned(),
        refused => refused.why_not("sched_ext"),
    };
    let remedy = "boot a kernel with CONFIG_SCHED_CLASS_EXT=y: that of Debian's backports or sid, Ubuntu 25.04, Fedora, \
                  Arch or openSUSE Tumbleweed has it";
    check("sched_ext", found == "there", found, remedy)
}

fn btf(files: &Files) -> Check {
    let found = match files.exists("sys/kernel/btf/vmlinux") {
        Reading::Is(()) => "there".to_owned(),
        Reading::Missing => "the kernel does not describe its types".to_owned(),
        refused => refused.why_not("the types of the kernel"),
    };
    check("btf", found == "there", found, "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, as all distributions build it")
}

/// The kernel links its own functions to those of a scheduler by code that only the JIT makes.
fn jit(files: &Files) -> Check {
    let (holds, found) = match files.text("proc/sys/net/core/bpf_jit_enable") {
        Reading::Is(text) if text == "0" => (false, "switched off".to_owned()),
        Reading::Is(_) => (true, "on".to_owned()),
        // Not in a network namespace of its own; loading says so if it is off.
        Reading::Missing => (true, "not known here".to_owned()),
        refused => (true, refused.why_not("whether it is on")),
    };
    check("jit", holds, found, "sysctl net.core.bpf_jit_enable=1")
}

/// Releases come from timers of BPF, which PREEMPT_RT kernels refuse.
fn timers(files: &Files) -> Check {
    let is_real_time = matches!(files.text("sys/kernel/realtime"), Reading::Is(text) if text == "1");
    let found = if is_real_time { "a PREEMPT_RT kernel refuses timers of BPF" } else { "possible" };
    check("timers", !is_real_time, found.to_owned(), "boot a kernel without PREEMPT_RT")
}

/// One scheduler can be loaded at a time.
fn free(files: &Files) -> Check {
    let state = match files.text("sys/kernel/sched_ext/state") {
        Reading::Is(state) => state,
        Reading::Missing => return check("free", true, "no other scheduler is loaded".to_owned(), ""),
        refused => return check("free", false, refused.why_not("whether another scheduler is loaded"), "become root"),
    };
    if state == "disabled" {
        return check("free", true, "no other scheduler is loaded".to_owned(), "");
    }
    let name = match files.text(concat!("sys/kernel/sched_ext/root", "/ops")) {
        Reading::Is(name) => format!("{name} is loaded"),
        _ => "another scheduler is loaded".to_owned(),
    };
    check("free", false, format!("{name} ({state})"), "end the process that loaded it")
}

/// Bits of `CapEff` (`linux/capability.h`).
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// A program of the kind that sched_ext takes may be loaded with CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, which stands
/// for both (Linux, `bpf_prog_load`).
fn rights(files: &Files) -> Check {
    let remedy = "run it as root, or give it CAP_BPF and CAP_PERFMON: \
                  systemd-run -p AmbientCapabilities='CAP_BPF CAP_PERFMON', or setcap";
    let status = match files.text("proc/self/status") {
        Reading::Is(status) => status,
        other => return check("rights", false, other.why_not("this process's capabilities"), remedy),
    };
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(Ok(effective)) = effective.map(|set| u64::from_str_radix(set.trim(), 16)) else {
        return check("rights", false, "no capabilities in /proc/self/status".to_owned(), remedy);
    };
    let has = |bits: u64| effective & bits == bits;
    let lacks: Vec<&str> = [("CAP_BPF", BPF), ("CAP_PERFMON", PERFMON)]
        .into_iter()
        .filter(|&(_, bit)| !has(bit))
        .map(|(it, _)| it)
        .collect();
    match (has(SYS_ADMIN), lacks.is_empty()) {
        (true, _) => check("rights", true, "CAP_SYS_ADMIN".to_owned(), remedy),
        (_, true) => check("rights", true, "CAP_BPF and CAP_PERFMON".to_owned(), remedy),
        _ => check("rights", false, format!("without {}", lacks.join(" and ")), remedy),
    }
}
