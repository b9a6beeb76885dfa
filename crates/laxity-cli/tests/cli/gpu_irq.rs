//! `laxity gpu irq`, on folders that imitate /sys and /proc.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::support::{folder, run};

/// Fields 3 to 39 of a thread's `stat`, before its priority and its class.
const STAT: &str = "S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 -51 0 1 0 300 0 0 18446744073709551615 0 0 0 0 0 0 0 2147483647 0 0 \
                    0 0 17 1";

pub fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn thread(root: &Path, pid: u32, name: &str, priority: u8, class: u8) {
    write(root, &format!("proc/{pid}/comm"), &format!("{name}\n"));
    write(root, &format!("proc/{pid}/stat"), &format!("{pid} ({name}) {STAT} {priority} {class} 0 0 0\n"));
}

/// A device of the PCI bus.
pub fn device(root: &Path, address: &str, class: &str, vendor: &str) -> PathBuf {
    let path = format!("sys/bus/pci/devices/{address}");
    write(root, &format!("{path}/class"), &format!("{class}\n"));
    write(root, &format!("{path}/vendor"), &format!("{vendor}\n"));
    write(root, &format!("{path}/device"), "0x2330\n");
    root.join(path)
}

/// A machine with a GPU of NVIDIA's, one of Intel's without a driver, and a network card.
pub fn machine(root: &Path) {
    let nvidia = device(root, "0000:41:00.0", "0x030200", "0x10de");
    device(root, "0000:00:02.0", "0x030000", "0x8086");
    device(root, "0000:03:00.0", "0x020000", "0x8086");
    fs::create_dir_all(root.join("sys/bus/pci/drivers/nvidia")).expect("made");
    symlink("../../drivers/nvidia", nvidia.join("driver")).expect("linked");
    write(&nvidia, "msi_irqs/131", "msix\n");
    write(&nvidia, "msi_irqs/132", "msix\n");
    fs::create_dir_all(root.join("proc/irq/131/nvidia")).expect("made");
    write(root, "proc/interrupts", "      CPU0  CPU1\n131:  40  2  PCI-MSI 0-edge  nvidia\n");
    write(root, "proc/cmdline", "quiet\n");
    write(root, "proc/sys/kernel/osrelease", "6.1.0\n");
    thread(root, 77, "irq/131-nvidia", 50, 1);
    thread(root, 78, "nv_queue", 0, 0);
    thread(root, 79, "irq/9-acpi", 50, 1);
    thread(root, 80, "bash", 0, 0);
}

fn irq(root: &Path, words: &[&str]) -> (i32, String, String) {
    let root = root.to_str().expect("UTF-8");
    run(["gpu", "irq", "--root", root].iter().chain(words))
}

#[test]
fn the_threads_of_a_gpus_interrupts_are_found_with_their_priorities() {
    let place = folder();
    machine(place.path());
    let (code, out, err) = irq(place.path(), &["--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["gpus"].as_array().map(Vec::len), Some(2), "the network card is none: {out}");
    let gpu = &found["gpus"][1];
    assert_eq!((&gpu["address"], &gpu["driver"]), (&"0000:41:00.0".into(), &"nvidia".into()));
    let first = &gpu["interrupts"][0];
    assert_eq!((&first["number"], &first["count"], &first["handlers"][0]), (&131.into(), &42.into(), &"nvidia".into()));
    assert_eq!(first["threads"], serde_json::json!([{"pid": 77, "name": "irq/131-nvidia", "priority": 50}]));
    assert_eq!(gpu["interrupts"][1]["threads"], serde_json::json!([]));
    assert_eq!(gpu["possible"], "threads_after_hard");
    assert_eq!(found["gpus"][0]["possible"], "no_driver");
    assert_eq!(found["helpers"][0]["name"], "nv_queue");
}

#[test]
fn what_this_driver_and_kernel_allow_is_said_plainly() {
    let place = folder();
    machine(place.path());
    let (_, out, _) = irq(place.path(), &[]);
    assert!(out.contains("77 irq/131-nvidia 50"), "{out}");
    assert!(out.contains("serves completions in the hard interrupt") && out.contains("threadirqs"), "{out}");
    write(place.path(), "proc/cmdline", "quiet threadirqs\n");
    let (_, out, _) = irq(place.path(), &[]);
    assert!(out.contains("0000:41:00.0  threads handle its interrupts"), "{out}");
    fs::remove_dir_all(place.path().join("proc/77")).expect("removed");
    let (_, out, _) = irq(place.path(), &[]);
    assert!(out.contains("no thread handles its interrupts"), "{out}");
}

#[test]
fn a_machine_without_a_gpu_says_so() {
    let place = folder();
    fs::create_dir(place.path().join("proc")).expect("made");
    let (code, out, _) = irq(place.path(), &[]);
    assert_eq!(code, 0);
    assert!(out.contains("no GPU on this machine's PCI bus"), "{out}");
}
