//! GPUs on the PCI bus, their interrupts and the threads that handle them, as `/sys` and `/proc` show them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

/// What a machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub kernel: Kernel,
    pub gpus: Vec<Gpu>,
    /// Threads of drivers that serve GPUs beside their interrupts' threads.
    pub helpers: Vec<Thread>,
}

/// What the kernel does with interrupts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    pub release: String,
    /// It is a PREEMPT_RT kernel.
    pub is_realtime: bool,
    /// It was started with `threadirqs`.
    pub threads_all: bool,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// Its PCI address.
    pub address: String,
    pub vendor: u16,
    pub device: u16,
    pub driver: Option<String>,
    pub interrupts: Vec<Interrupt>,
}

/// An interrupt of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    pub number: u32,
    /// On all CPUs, since the machine started.
    pub count: u64,
    /// What drivers called their handlers.
    pub handlers: Vec<String>,
    pub threads: Vec<Thread>,
}

/// A thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    pub pid: u32,
    pub name: String,
    /// Its priority under SCHED_FIFO or SCHED_RR; none: it has no real-time class.
    pub priority: Option<u8>,
}

/// What can be done about the priority of a GPU's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Possible {
    /// No driver has it.
    NoDriver,
    /// Threads handle them: theirs can be set.
    Threads,
    /// There are threads, and the driver does the work in the hard interrupt.
    ThreadsAfterHard,
    /// There are none.
    HardOnly,
}

const NVIDIA: u16 = 0x10de;

/// Reads `sys` and `proc` below `root`.
///
/// # Errors
/// `/proc` cannot be read. A machine without PCI has no GPU here.
pub fn find(root: &Path) -> io::Result<Found> {
    let proc = root.join("proc");
    let threads = threads(&proc)?;
    let counts = counts(&fs::read_to_string(proc.join("interrupts")).unwrap_or_default());
    let mut gpus = Vec::new();
    for entry in fs::read_dir(root.join("sys/bus/pci/devices")).into_iter().flatten().flatten() {
        gpus.extend(gpu(&entry.path(), &proc, &threads, &counts));
    }
    gpus.sort_by(|one, other| one.address.cmp(&other.address));
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let kernel = Kernel {
        release: text("proc/sys/kernel/osrelease").trim().to_owned(),
        is_realtime: text("sys/kernel/realtime").trim() == "1",
        threads_all: text("proc/cmdline").split_whitespace().any(|word| word == "threadirqs"),
    };
    // NVIDIA's driver has these beside the threads of interrupts.
    let is_helper =
        |thread: &&Thread| ["nv_queue", "UVM GPU", "nvidia"].iter().any(|name| thread.name.starts_with(name));
    let helpers = if gpus.is_empty() { Vec::new() } else { threads.iter().filter(is_helper).cloned().collect() };
    Ok(Found { kernel, gpus, helpers })
}

/// The GPU at `path` of `/sys/bus/pci/devices`; `None`: it is none.
fn gpu(path: &Path, proc: &Path, threads: &[Thread], counts: &BTreeMap<u32, u64>) -> Option<Gpu> {
    let hex = |name: &str| {
        let text = fs::read_to_string(path.join(name)).ok()?;
        u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    // Display controllers: VGA, 3D, others.
    if hex("class")? >> 16 != 0x03 {
        return None;
    }
    let driver = fs::read_link(path.join("driver")).ok();
    let interrupt = |number: u32| Interrupt {
        number,
        count: counts.get(&number).copied().unwrap_or(0),
        handlers: handlers(&proc.join("irq").join(number.to_string())),
        threads: threads.iter().filter(|thread| thread.handles() == Some(number)).cloned().collect(),
    };
    Some(Gpu {
        address: path.file_name()?.to_str()?.to_owned(),
        vendor: hex("vendor")? as u16,
        device: hex("device")? as u16,
        driver: driver.and_then(|driver| Some(driver.file_name()?.to_str()?.to_owned())),
        interrupts: numbers(path).into_iter().map(interrupt).collect(),
    })
}

/// The interrupts of the device at `path` of `/sys/bus/pci/devices`.
fn numbers(path: &Path) -> Vec<u32> {
    let mut numbers: Vec<u32> = fs::read_dir(path.join("msi_irqs"))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    if numbers.is_empty() {
        let line = fs::read_to_string(path.join("irq")).ok().and_then(|text| text.trim().parse().ok());
        numbers.extend(line.filter(|&number: &u32| number > 0));
    }
    numbers.sort_unstable();
    numbers
}

/// The threads that handle the interrupts of the PCI device at `address`, which need not be a GPU. Devices may share one.
pub fn threads_of(root: &Path, address: &str) -> io::Result<Vec<Thread>> {
    let path = root.join("sys/bus/pci/devices").join(address);
    fs::metadata(&path)?;
    let numbers = numbers(&path);
    let mut threads = threads(&root.join("proc"))?;
    threads.retain(|thread| thread.handles().is_some_and(|number| numbers.contains(&number)));
    Ok(threads)
}

/// Each handler of an interrupt has a folder in its folder.
fn handlers(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// All threads of the kernel that handle an interrupt or serve a GPU's driver. They are processes to `/proc`.
fn threads(proc: &Path) -> io::Result<Vec<Thread>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(proc)? {
        let path = entry?.path();
        let Some(pid) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else { continue };
        // It may have ended.
        let Ok(name) = fs::read_to_string(path.join("comm")) else { continue };
        let name = name.trim_end().to_owned();
        if ["irq/", "nv_queue", "UVM GPU", "nvidia"].iter().any(|start| name.starts_with(start)) {
            let priority = fs::read_to_string(path.join("stat")).ok().and_then(|stat| priority(&stat));
            found.push(Thread { pid, name, priority });
        }
    }
    found.sort_by_key(|thread| thread.pid);
    Ok(found)
}

/// The fields 40 and 41 of a `stat` file are the real-time priority and the class; the name, which may have blanks, ends
/// with the last parenthesis.
fn priority(stat: &str) -> Option<u8> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let (priority, class) = (fields.get(37)?.parse().ok()?, fields.get(38)?);
    // SCHED_FIFO, SCHED_RR.
    ["1", "2"].contains(class).then_some(priority)
}

/// `/proc/interrupts`: how often each came, on all CPUs together.
fn counts(text: &str) -> BTreeMap<u32, u64> {
    let cpus = text.lines().next().map_or(0, |line| line.split_whitespace().count());
    let line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let counts = rest.split_whitespace().take(cpus).map_while(|word| word.parse::<u64>().ok());
        Some((number.trim().parse().ok()?, counts.sum()))
    };
    text.lines().skip(1).filter_map(line).collect()
}

impl Thread {
    /// The interrupt that it handles: `irq/NN-NAME` is its name.
    fn handles(&self) -> Option<u32> {
        self.name.strip_prefix("irq/")?.split('-').next()?.parse().ok()
    }
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.pid, self.name)?;
        match self.priority {
            Some(priority) => write!(f, "{priority}"),
            None => f.write_str("not real-time"),
        }
    }
}

impl Gpu {
    /// The maker's name.
    pub fn maker(&self) -> String {
        match self.vendor {
            NVIDIA => "NVIDIA".to_owned(),
            0x1002 => "AMD".to_owned(),
            0x8086 => "Intel".to_owned(),
            other => format!("{other:04x}"),
        }
    }

    /// What can be done.
    pub fn possible(&self, kernel: &Kernel) -> Possible {
        let has_threads = self.interrupts.iter().any(|interrupt| !interrupt.threads.is_empty());
        let all_in_threads = kernel.is_realtime || kernel.threads_all;
        match (&self.driver, has_threads) {
            (None, _) => Possible::NoDriver,
            (Some(_), false) => Possible::HardOnly,
            (Some(driver), true) if driver == "nvidia" && !all_in_threads => Possible::ThreadsAfterHard,
            (Some(_), true) => Possible::Threads,
        }
    }
}

impl Possible {
    /// For JSON.
    pub fn name(self) -> &'static str {
        match self {
            Possible::NoDriver => "no_driver",
            Possible::Threads => "threads",
            Possible::ThreadsAfterHard => "threads_after_hard",
            Possible::HardOnly => "hard_only",
        }
    }

    /// For people: what is so, and the way out.
    pub fn text(self) -> &'static str {
        match self {
            Possible::NoDriver => "no driver has it: it sends no interrupts",
            Possible::Threads => {
                "threads handle its interrupts: `laxity gpu irq --follow NAME` gives them the priority of the thread that holds \
                 the GPU's token in that arbitration"
            }
            Possible::ThreadsAfterHard => {
                "threads handle a part of its interrupts: this driver serves completions in the hard interrupt, which comes \
                 before every task; start the kernel with threadirqs (or take a PREEMPT_RT kernel) to have threads do it"
            }
            Possible::HardOnly => {
                "no thread handles its interrupts: they come before every task; start the kernel with threadirqs, or take a \
                 PREEMPT_RT kernel"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_cpus_are_added() {
        let text = "           CPU0       CPU1\n  0:         10          5   IO-APIC   2-edge  timer\n 131:  7 8 PCI-MSI 0-edge nvidia\nNMI: 1 2 x\n";
        assert_eq!(counts(text), BTreeMap::from([(0, 15), (131, 15)]));
    }

    #[test]
    fn a_real_time_priority_is_read_behind_a_name_with_blanks() {
        let rest = "S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 300 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 0 0 17 1";
        assert_eq!(priority(&format!("77 (irq/131-nv (x) y) {rest} 50 1 0 0 0")), Some(50));
        assert_eq!(priority(&format!("78 (nv_queue) {rest} 0 0 0 0 0")), None);
    }

    #[test]
    fn the_threads_of_a_device_are_those_of_its_interrupts() {
        let folder = laxity_testing::Directory::new("device-threads");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("it is below the folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        let device = "sys/bus/pci/devices/0000:00:10.0";
        write(&format!("{device}/irq"), "10\n");
        for (thread, name) in
            [(7, "irq/10-uio_pci_generic"), (8, "irq/10-s-uio_pci_generic"), (9, "irq/100-x"), (5, "sh")]
        {
            write(&format!("proc/{thread}/comm"), name);
        }
        let found = |address| Ok::<_, io::Error>(threads_of(folder.path(), address)?.iter().map(|it| it.pid).collect());
        assert_eq!(found("0000:00:10.0").expect("it is there"), [7, 8]);
        assert!(found("0000:00:11.0").is_err_and(|error: io::Error| error.kind() == io::ErrorKind::NotFound));
        // Interrupts of its own come in place of the line.
        write(&format!("{device}/msi_irqs/100"), "msi");
        let of_message: Vec<u32> = found("0000:00:10.0").expect("it is there");
        assert_eq!(of_message, [9]);
    }
}
