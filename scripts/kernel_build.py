"""Builds a small Linux with sched_ext for the lab, of a version that the distribution has without it, such as 6.12.

    kernel_build.py VERSION   from the package linux-source-VERSION; LAXITY_LAB_KERNEL=VERSION takes it from then on

It has what the lab's scripts need and no modules. Takes ten minutes of two CPUs and 3 GB below target/kernel-lab
meanwhile. As root it installs what it builds with.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import kernel_lab

TOOLS = {
    "make": "make",
    "gcc": "gcc",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "pahole": "dwarves",
    "xz": "xz-utils",
}
# Has no program of its own: what the kernel's own tools are linked with.
HEADERS = {"/usr/include/libelf.h": "libelf-dev"}

# On top of the kernel's tinyconfig, which has next to nothing.
OPTIONS = """
64BIT SMP PREEMPT HIGH_RES_TIMERS NO_HZ_IDLE HZ_1000 IRQ_FORCED_THREADING HOTPLUG_CPU X86_LOCAL_APIC ACPI
SCHED_CLASS_EXT BPF BPF_SYSCALL BPF_JIT BPF_JIT_ALWAYS_ON DEBUG_KERNEL DEBUG_INFO_DWARF5 DEBUG_INFO_BTF
KALLSYMS KALLSYMS_ALL PERF_EVENTS FTRACE ENABLE_DEFAULT_TRACERS UNWINDER_FRAME_POINTER IKCONFIG IKCONFIG_PROC
PRINTK TTY SERIAL_8250 SERIAL_8250_CONSOLE PCI PCI_MSI VIRTIO_MENU VIRTIO VIRTIO_PCI VIRTIO_CONSOLE MAGIC_SYSRQ
BLK_DEV_INITRD BINFMT_ELF BINFMT_SCRIPT DEVTMPFS SHMEM TMPFS PROC_FS PROC_SYSCTL SYSFS CGROUPS
MULTIUSER NET UNIX INET FUTEX EPOLL SIGNALFD TIMERFD EVENTFD POSIX_TIMERS ADVISE_SYSCALLS MEMBARRIER RSEQ FILE_LOCKING
HYPERVISOR_GUEST PARAVIRT
"""


def packages() -> list[str]:
    """The packages that are missing."""
    lacking = {package for tool, package in TOOLS.items() if not shutil.which(tool)}
    return sorted(lacking | {package for header, package in HEADERS.items() if not Path(header).exists()})


def install() -> None:
    """Installs what is missing."""
    lacking = packages()
    if lacking and os.geteuid() == 0:
        print("installing", *lacking, flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *lacking]
        subprocess.run(command, env=quiet, capture_output=True, check=False)
        lacking = packages()
    if lacking:
        raise kernel_lab.MissingError(f"a kernel is built with more than there is: apt-get install {' '.join(lacking)}")


def step(what: str, *command: str | Path, folder: Path) -> None:
    """One step, whose words matter only if it fails."""
    print(what, flush=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n    ".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise kernel_lab.FailedError(f"{what} failed; it said last:\n    {last}")


def build(version: str) -> Path:
    """Builds the kernel in a folder that goes again, and keeps the image."""
    install()
    kernel_lab.HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kernel_lab.HOME) as name:
        folder = Path(name)
        step(
            "fetching the source",
            "apt-get",
            "-o",
            "APT::Sandbox::User=root",
            "download",
            f"linux-source-{version}",
            folder=folder,
        )
        (package,) = folder.glob("*.deb")
        step("unpacking", "dpkg", "-x", package, folder, folder=folder)
        (packed,) = (folder / "usr" / "src").glob("*.tar.xz")
        step("unpacking the source", "tar", "xf", packed, folder=folder)
        (source,) = (path for path in folder.glob("linux-source-*") if path.is_dir())
        step("configuring", "make", "tinyconfig", folder=source)
        with (source / ".config").open("a") as config:
            config.writelines(f"CONFIG_{option}=y\n" for option in OPTIONS.split())
        step("configuring", "make", "olddefconfig", folder=source)
        if "CONFIG_SCHED_CLASS_EXT=y" not in (source / ".config").read_text().splitlines():
            raise kernel_lab.FailedError(f"Linux {version} cannot be built with sched_ext")
        step("building, which takes long", "make", f"-j{len(os.sched_getaffinity(0))}", "bzImage", folder=source)
        command = ["make", "-s", "kernelversion"]
        full = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True).stdout.strip()
        kernel = kernel_lab.HOME / "kernel" / f"linux-image-{full}+built" / "vmlinuz"
        kernel.parent.mkdir(parents=True, exist_ok=True)
        return (source / "arch" / "x86" / "boot" / "bzImage").rename(kernel)


def main() -> int:
    """Does what the command line says."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    try:
        print(build(sys.argv[1]))
    except (kernel_lab.MissingError, kernel_lab.FailedError) as reason:
        print(f"kernel_build: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
