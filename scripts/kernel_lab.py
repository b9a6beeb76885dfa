"""A small Linux with sched_ext in QEMU, in which programs of this repository run: Laxity's scheduler in its kernel.

    kernel_lab.py install     installs, as root, what the lab needs; without the rights it prints what is missing
    kernel_lab.py kernel      fetches a kernel, and prints where it is
    kernel_lab.py kernels     prints the versions that can be fetched or were built, oldest first
    kernel_lab.py run [--smp N] [--timeout S] [--out DIR] SCRIPT [PROGRAM...]
                              boots, has busybox's shell run SCRIPT, and ends with its exit code

SCRIPT finds the PROGRAMs (with the shared libraries that they need) in its PATH. Files that it writes below /out are
in DIR afterwards. Its output is printed, and is in DIR/output.txt. The kernel is not installed: it comes from a newer
suite of the mirror that this machine's apt uses, into target/kernel-lab. LAXITY_LAB_KERNEL=7.3 (or 7.3.4) chooses one.

The machine is emulated: one instruction takes one nanosecond (-icount), and all CPUs take turns on one thread. With one
CPU, times of two runs are a few percent apart at most. With several, decisions are right, and times are not: while
instructions of one CPU are carried out the others stand still, for milliseconds.
"""

import argparse
import contextlib
import dataclasses
import lzma
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / "target" / "kernel-lab"

QEMU = "qemu-system-x86_64"
# What is called, and the Debian package that has it.
TOOLS = {QEMU: "qemu-system-x86", "busybox": "busybox-static", "ldd": "libc-bin", "apt-get": "apt", "dpkg": "dpkg"}

# Suites with newer kernels than Debian 12's.
SUITES = ["trixie-backports", "sid", "experimental"]
# Taken where none is asked for, or else the newest.
PREFERRED = "6.18"


class MissingError(Exception):
    """Something that the lab needs is not to be had here: the reason."""


class FailedError(Exception):
    """The lab ran and went wrong: the reason."""


def missing_tools() -> dict[str, str]:
    """What is not installed, and the package that has it."""
    found = {tool: package for tool, package in TOOLS.items() if not shutil.which(tool)}
    busybox = shutil.which("busybox")
    if busybox and _libraries(Path(busybox)):
        found["busybox"] = "busybox-static"
    if os.uname().machine != "x86_64":
        found["an x86-64 machine"] = "none"
    return found


def install() -> None:
    """Installs what is missing."""
    lacking = missing_tools()
    packages = sorted(set(lacking.values()) - {"none"})
    if os.geteuid() == 0 and packages and shutil.which("apt-get"):
        print("installing", *packages)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        _run_quietly("apt-get", "update")
        command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
        subprocess.run(command, env=quiet, capture_output=True, check=False)
        lacking = missing_tools()
    if lacking:
        raise MissingError(not_installed(lacking))


def not_installed(lacking: dict[str, str]) -> str:
    """What is missing, and how to get it."""
    return f"{', '.join(sorted(lacking))} not there: apt-get install {' '.join(sorted(set(lacking.values())))}"


# --- the kernel ----------------------------------------------------------------------------------------------------


def wanted() -> str:
    """The version of the kernel that is asked for, or preferred."""
    return os.environ.get("LAXITY_LAB_KERNEL", PREFERRED)


def cached_kernel(version: str) -> Path | None:
    """A kernel of that version, such as 6.18, that is here already."""
    return max(HOME.glob(f"kernel/linux-image-{version}[.+-]*/vmlinuz"), default=None)


def fetch_kernel() -> Path:
    """A kernel that has sched_ext, fetched if need be."""
    kernel = cached_kernel(wanted())
    if kernel:
        return kernel
    HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        reasons = []
        for suite in SUITES:
            try:
                return Suite(suite, Path(folder) / suite).kernel(os.environ.get("LAXITY_LAB_KERNEL"))
            except MissingError as reason:
                reasons.append(f"{suite}: {reason}")
        raise MissingError("; ".join(reasons))


def kernel_modules(names: list[str]) -> list[Path]:
    """Modules of that kernel, such as uio, fetched if need be and not compressed."""
    home = fetch_kernel().parent
    found = [home / f"{name}.ko" for name in names]
    if all(module.exists() for module in found):
        return found
    reasons = []
    for suite in SUITES:
        with tempfile.TemporaryDirectory(dir=HOME) as folder:
            try:
                here = Suite(suite, Path(folder) / suite).unpacked(home.name)
            except MissingError as reason:
                reasons.append(f"{suite}: {reason}")
                continue
            for module in found:
                for packed in here.rglob(f"{module.name}.xz"):
                    module.write_bytes(lzma.decompress(packed.read_bytes()))
        if all(module.exists() for module in found):
            return found
        reasons.append(f"{suite}: {home.name} has not all of {', '.join(names)}")
    raise MissingError("; ".join(reasons))


def versions() -> list[str]:
    """The versions of kernels that can be fetched or were built here, such as 6.18, oldest first."""
    HOME.mkdir(parents=True, exist_ok=True)
    built = (re.search(r"-(\d+)\.(\d+)[^/]*\+built$", str(kernel.parent)) for kernel in HOME.glob("kernel/*/vmlinuz"))
    found = {tuple(map(int, match.groups())) for match in built if match}
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        for suite in SUITES:
            with contextlib.suppress(MissingError):
                found |= {version[:2] for _, version in ranked(Suite(suite, Path(folder) / suite).names())}
    return [f"{major}.{minor}" for major, minor in sorted(found)]


def _mirror() -> tuple[str, str]:
    """Where this machine's apt gets Debian's main packages, and the keys that sign them."""
    fields = "$(REPO_URI)|$(SIGNED_BY)|$(ORIGIN)|$(LABEL)|$(COMPONENT)"
    command = ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"]
    for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
        uri, keys, origin, label, component = line.split("|")
        if (origin, label, component) == ("Debian", "Debian", "main"):
            return uri, keys if keys.startswith("/") else "/usr/share/keyrings/debian-archive-keyring.gpg"
    raise MissingError("this machine's apt has no Debian mirror; run apt-get update once")


class Suite:
    """A suite of Debian, whose packages are looked up and fetched with settings of their own."""

    def __init__(self, suite: str, folder: Path) -> None:
        self.folder = folder
        uri, keys = _mirror()
        for part in ["lists/partial", "cache/archives/partial", "packages"]:
            (folder / part).mkdir(parents=True)
        (folder / "sources.list").write_text(f"deb [signed-by={keys}] {uri} {suite} main\n")
        (folder / "status").touch()
        settings = {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
        }
        self.options = [option for name, value in settings.items() for option in ("-o", f"{name}={value}")]
        self._apt("apt-get", "update")

    def _apt(self, program: str, *arguments: str) -> str:
        command = [program, *self.options, *arguments]
        done = subprocess.run(command, cwd=self.folder / "packages", capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise MissingError(f"{program} {arguments[0]}: {last}")
        return done.stdout

    def names(self) -> list[str]:
        """The names of packages of kernels, and of parts of those."""
        return self._apt("apt-cache", "pkgnames", "linux-").split()

    def kernel(self, asked: str | None) -> Path:
        """A kernel with sched_ext, of that version if one is asked for."""
        names = self.names()
        for name, _ in ranked(names, asked):
            kernel = HOME / "kernel" / name / "vmlinuz"
            if kernel.exists():
                return kernel
            here = self.unpacked(name, parts(name, names))
            # Below /boot, or beside the modules.
            (image, *_), (config, *_) = (sorted(here.rglob(file)) or [here] for file in ["vmlinuz*", "config*"])
            if image.is_file() and config.is_file() and "CONFIG_SCHED_CLASS_EXT=y" in config.read_text().splitlines():
                kernel.parent.mkdir(parents=True, exist_ok=True)
                return image.rename(kernel)
            shutil.rmtree(here)
        raise MissingError(f"it has no small kernel{f' {asked}' if asked else ''} with sched_ext")

    def unpacked(self, image: str, packages: list[str] | None = None) -> Path:
        """A folder with what is in a kernel's packages."""
        here = self.folder / "unpacked"
        for part in packages or parts(image, self.names()):
            self._apt("apt-get", "download", part)
            (package,) = (self.folder / "packages").glob(f"{part}_*.deb")
            subprocess.run(["dpkg", "-x", package, here], check=True)
            package.unlink()
        return here


def parts(image: str, names: list[str]) -> list[str]:
    """The packages that have a kernel and its configuration: two others than its own, if they are among the names."""
    others = [image.replace("-image-", kind, 1) for kind in ["-binary-", "-base-"]]
    return others if set(others) <= set(names) else [image]


def ranked(names: list[str], asked: str | None = None) -> list[tuple[str, tuple[int, ...]]]:
    """Packages of small kernels for virtual machines that may have sched_ext, of the version that is asked for.

    The preferred version comes first, then the newest.
    """
    preferred = tuple(map(int, PREFERRED.split(".")))
    found = []
    for name in names:
        match = re.fullmatch(r"linux-image-(\d+)\.(\d+)(?:\.(\d+))?\S*-cloud-amd64", name)
        version = tuple(int(part or 0) for part in match.groups()) if match else ()
        # From 6.19 on a package without its parts is empty: its kernel is in the mirror no more.
        is_whole = version < (6, 19) or len(parts(name, names)) == 2
        if version >= (6, 12) and is_whole and (asked is None or f".{asked}." in f".{'.'.join(map(str, version))}."):
            found.append((name, version))
    return sorted(found, key=lambda one: (one[1][:2] == preferred, one[1]), reverse=True)


# --- the first file system ----------------------------------------------------------------------------------------

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /out /tmp /root
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
export PATH=/lab:/bin HOME=/root
cd /out
{ sh /lab/script; echo $? > /out/status; } 2>&1 | tee /out/output.txt
for port in /sys/class/virtio-ports/*; do
    if [ "$(cat $port/name)" = results ]; then tar c -C /out . > /dev/${port##*/}; fi
done
sync
poweroff -f
"""


def _libraries(program: Path) -> list[Path]:
    """The shared libraries that a program needs, its loader included."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return [Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", said.stdout, re.MULTILINE)]


def write_initramfs(archive: Path, files: dict[str, tuple[bytes, bool]]) -> None:
    """A cpio archive (`newc`) of files by their names, each executable or not, with the folders that they need."""
    folders = sorted({str(folder) for name in files for folder in Path(name).parents} - {"."})
    entries = [(folder, b"", stat.S_IFDIR | 0o755) for folder in folders]
    entries += [(name, data, stat.S_IFREG | (0o755 if runs else 0o644)) for name, (data, runs) in files.items()]
    entries.append(("TRAILER!!!", b"", 0))
    with archive.open("wb") as out:
        for number, (name, data, mode) in enumerate(entries, 1):
            encoded = name.encode() + b"\0"
            # inode, mode, user, group, links, time, length, device (2), its device (2), length of the name, checksum
            fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0]
            head = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
            out.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))


def initramfs(archive: Path, script: str, programs: list[Path], more: dict[str, Path]) -> None:
    """All that the small Linux has: busybox, the programs with their libraries, and what they are to do."""
    busybox = shutil.which("busybox")
    if not busybox:
        raise MissingError("busybox")
    files = {
        "init": (INIT.encode(), True),
        "bin/busybox": (Path(busybox).read_bytes(), True),
        "lab/script": (script.encode(), True),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, file in [*((f"lab/{program.name}", program) for program in programs), *more.items()]:
            stripped = Path(folder) / file.name
            is_program = os.access(file, os.X_OK)
            is_binary = file.read_bytes()[:4] == b"\x7fELF" and (is_program or ".so" in file.suffixes)
            if not (is_binary and shutil.which("strip") and _run_quietly("strip", "-o", stripped, file)):
                stripped = file
            files[name.lstrip("/")] = (stripped.read_bytes(), is_program)
            for library in _libraries(file) if is_binary else []:
                files[str(library).lstrip("/")] = (library.read_bytes(), True)
    write_initramfs(archive, files)


def _run_quietly(*command: str | Path) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


# What a script begins with that loads Laxity's scheduler: `start`, with options of `laxity sched start`.
START = """
start() {
    touch /tmp/loader
    laxity sched start "$@" > /tmp/loader 2>&1 & loader=$!
    until grep -q scheduling /tmp/loader; do
        kill -0 $loader || { cat /tmp/loader; exit 9; }
        sleep 0.5
    done
}
"""


# --- a run ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Machine:
    """What a machine has besides its CPUs."""

    # Arguments for QEMU.
    devices: list[str] = dataclasses.field(default_factory=list)
    # Modules of the kernel, which the script loads from /lab.
    modules: list[str] = dataclasses.field(default_factory=list)
    # Words for the kernel's command line.
    parameters: list[str] = dataclasses.field(default_factory=list)
    # Files by where they lie there; programs and libraries have the shared libraries that they need.
    files: dict[str, Path] = dataclasses.field(default_factory=dict)


@contextlib.contextmanager
def _qemu(command: list[str], console: Path) -> Iterator[subprocess.Popen[bytes]]:
    """QEMU, which ends with the block, however that ends."""
    with console.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def run(
    script: str,
    programs: list[Path],
    out: Path,
    smp: int = 1,
    timeout: float = 240,
    *,
    machine: Machine | None = None,
    console: Path | None = None,
) -> int:
    """Boots, runs `script`, and returns its exit code; what it wrote below /out is in the folder `out`.

    What the machine says meanwhile is in the file `console`, if that is given.
    """
    lacking = missing_tools()
    if lacking:
        raise MissingError(not_installed(lacking))
    machine = machine or Machine()
    image = fetch_kernel()
    programs = programs + (kernel_modules(machine.modules) if machine.modules else [])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        archive, results = (Path(folder) / name for name in ["initramfs", "results.tar"])
        console = console or Path(folder) / "console.txt"
        initramfs(archive, script, programs, machine.files)
        command = [QEMU, "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max", "-smp", str(smp)]
        command += [
            "-m",
            "1024",
            "-display",
            "none",
            "-serial",
            "stdio",
            "-no-reboot",
            "-nic",
            "none",
        ]
        command += ["-device", "virtio-serial-pci", "-chardev", f"file,id=results,path={results}"]
        command += ["-device", "virtserialport,chardev=results,name=results"]
        command += ["-kernel", str(image), "-initrd", str(archive)]
        words = ["console=ttyS0", "quiet", "skew_tick=1", "panic=-1", "oops=panic", *machine.parameters]
        command += ["-append", " ".join(words), *machine.devices]
        if "-monitor" not in machine.devices:
            command += ["-monitor", "none"]
        with _qemu(command, console) as process, contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        shutil.copy(console, out / "console.txt")
        said = console.read_text(errors="replace")
        try:
            with tarfile.open(results) as archived:
                archived.extractall(out, filter="data")
            return int((out / "status").read_text())
        except (OSError, ValueError, tarfile.TarError):
            state = "did not end" if process.returncode == -signal.SIGKILL else "ended without results"
            last = "\n    ".join(said.strip().splitlines()[-25:])
            raise FailedError(f"the machine {state} within {timeout:.0f} s; it said last:\n    {last}") from None


def main() -> int:
    """Does what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("kernel")
    verbs.add_parser("kernels")
    verbs.add_parser("install")
    running = verbs.add_parser("run")
    running.add_argument("--smp", type=int, default=1)
    running.add_argument("--timeout", type=float, default=240)
    running.add_argument("--out", type=Path, default=HOME / "out")
    running.add_argument("script", type=Path)
    running.add_argument("programs", type=Path, nargs="*")
    arguments = parser.parse_args()
    # A request to end is an end like that by Ctrl-C: QEMU ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if arguments.verb == "kernel":
            print(fetch_kernel())
        elif arguments.verb == "kernels":
            print(*versions(), sep="\n")
        elif arguments.verb == "install":
            install()
        else:
            script = arguments.script.read_text()
            code = run(script, arguments.programs, arguments.out, arguments.smp, arguments.timeout)
            sys.stdout.write((arguments.out / "output.txt").read_text(errors="replace"))
            return code
    except (MissingError, FailedError) as reason:
        print(f"kernel lab: {reason}", file=sys.stderr)
        return 77 if isinstance(reason, MissingError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
