"""A folder of results, read.

`run.json` has, with all files named relative to the folder:

    laxity, date                 version and time (ISO 8601)
    machine                      cpu, cpus, memory_bytes, kernel, system, load (what else it was doing)
    gpu                          what stood in for a GPU; left out if nothing did
    command                      what does it all again
    missing                      each {what, why}: parts that are not there
    video                        clip, width, height, duration_ns, load; maybe start_ns: how long the start lasts, whose
                                 frames are told apart from those of the steady state
        instances                each {name, period_ns}
        configurations           each {name, says, folder}, the first to compare the others with; the folder has
                                 NAME.csv for each instance; maybe gantt (a picture), gantt_says, files and cpu_time
    stabilized                   sheet (a picture), says, before_px, after_px; maybe files
    workloads                    each {name, file, says, verdict, part, runs}: verdict and part are what
                                 `laxity report --part` printed and wrote
        runs                     each {name, says; maybe files, cpu_time}
    sections                     each {title, says, pictures}, where pictures are each {file, says}

where files, which lie beside the page, are each {name, file}, and cpu_time is a list of {name, share}: of the time of
all CPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from laxity.report._beside import beside
from laxity.report._cpu_time import Share, shares
from laxity.report._fields import Fields
from laxity.report._files import ResultsError, picture
from laxity.report._frames import Frames, read_frames
from laxity.report._workload import Workload, read_workload


@dataclass(frozen=True)
class Picture:
    """A picture, as a URI that has all of it."""

    uri: str
    says: str


@dataclass(frozen=True)
class Configuration:
    """A way to run all instances, and what they put out.

    Attributes:
        name: of the way.
        says: what that way is.
        instances: frames of each instance in the steady state.
        start: likewise in the start; empty where that is not told apart.
        gantt: maybe a part of the schedule of an instance.
        files: what lies beside the page, by name.
        cpu_time: shares of it, as far as they were recorded.
    """

    name: str
    says: str
    instances: tuple[Frames, ...]
    start: tuple[Frames, ...]
    gantt: Picture | None
    files: dict[str, str]
    cpu_time: tuple[Share, ...]


@dataclass(frozen=True)
class Video:
    """The stabilizers, run under each configuration in turn."""

    clip: str
    width: int
    height: int
    duration_ns: int
    start_ns: int
    load: str
    configurations: tuple[Configuration, ...]


@dataclass(frozen=True)
class Stabilized:
    """What became of the picture: shake is the acceleration of its corners, in pixels."""

    sheet: str
    says: str
    before_px: float
    after_px: float
    files: dict[str, str]


@dataclass(frozen=True)
class Section:
    """Pictures that belong together."""

    title: str
    says: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Missing:
    """A part that is not there."""

    what: str
    why: str


@dataclass(frozen=True)
class Results:
    """All of a folder."""

    version: str
    date: datetime
    machine: dict[str, str]
    command: str
    missing: tuple[Missing, ...]
    video: Video | None
    stabilized: Stabilized | None
    workloads: tuple[Workload, ...]
    sections: tuple[Section, ...]


def read(folder: Path) -> Results:
    """Reads a folder of results. Raises ResultsError if something in it is not what it should be."""
    run = Fields.read(folder / "run.json")
    return Results(
        version=run.text("laxity"),
        date=_date(folder, run.text("date")),
        machine=_machine(run),
        command=run.text("command"),
        missing=tuple(Missing(part.text("what"), part.text("why")) for part in run.each("missing")),
        video=_video(folder, run.inner("video")) if "video" in run else None,
        stabilized=_stabilized(folder, run.inner("stabilized")) if "stabilized" in run else None,
        workloads=tuple(read_workload(folder, workload) for workload in run.each("workloads")),
        sections=tuple(_section(folder, section) for section in run.each("sections")),
    )


def _date(folder: Path, written: str) -> datetime:
    try:
        return datetime.fromisoformat(written)
    except ValueError as error:
        raise ResultsError(f'{folder / "run.json"}: "date" is {written}; write it as 2026-01-31T12:00:00Z') from error


def _machine(run: Fields) -> dict[str, str]:
    machine = run.inner("machine")
    gigabytes = machine.whole("memory_bytes") / (1 << 30)
    return {
        "CPU": f"{machine.whole('cpus')} x {machine.text('cpu')}",
        "Memory": f"{gigabytes:.0f} GiB",
        "System": f"{machine.text('system')}, Linux {machine.text('kernel')}",
        "Others": machine.text("load"),
        "GPU": run.text("gpu") if "gpu" in run else "none; nothing here used one",
    }


def _video(folder: Path, video: Fields) -> Video:
    duration_ns = video.whole("duration_ns")
    instances = [(instance.text("name"), instance.whole("period_ns")) for instance in video.each("instances")]
    if not instances or any(period_ns < 1 or period_ns > duration_ns for _, period_ns in instances):
        raise ResultsError(
            f"{folder / 'run.json'}: video: instances need periods from 1 ns to the {duration_ns} ns run"
        )
    start_ns = video.maybe("start_ns") or 0
    if not 0 <= start_ns < duration_ns:
        raise ResultsError(f"{folder / 'run.json'}: video: the start of {start_ns} ns is not within {duration_ns} ns")
    configurations = [
        Configuration(
            run.text("name"),
            run.text("says"),
            *_frames(folder / run.text("folder"), instances, duration_ns, start_ns),
            Picture(picture(folder / run.text("gantt")), run.text("gantt_says")) if "gantt" in run else None,
            beside(folder, run.each("files")),
            shares(run.each("cpu_time")),
        )
        for run in video.each("configurations")
    ]
    if not configurations:
        raise ResultsError(f'{folder / "run.json"}: video: "configurations" is empty; leave "video" out')
    return Video(
        video.text("clip"),
        video.whole("width"),
        video.whole("height"),
        duration_ns,
        start_ns,
        video.text("load"),
        tuple(configurations),
    )


def _frames(
    folder: Path, instances: list[tuple[str, int]], duration_ns: int, start_ns: int
) -> tuple[tuple[Frames, ...], tuple[Frames, ...]]:
    """The frames of each instance in the steady state, and in the start."""
    whole = [read_frames(folder / f"{name}.csv", name, period_ns, duration_ns) for name, period_ns in instances]
    if not start_ns:
        return tuple(whole), ()
    # All instances begin together.
    origin_ns = min((int(frames.release_ns.min()) for frames in whole if frames.completed), default=0)
    start, steady = zip(*(frames.split(origin_ns, start_ns) for frames in whole), strict=True)
    return steady, start


def _stabilized(folder: Path, stabilized: Fields) -> Stabilized:
    return Stabilized(
        picture(folder / stabilized.text("sheet")),
        stabilized.text("says"),
        stabilized.number("before_px"),
        stabilized.number("after_px"),
        beside(folder, stabilized.each("files")),
    )


def _section(folder: Path, section: Fields) -> Section:
    pictures = [Picture(picture(folder / item.text("file")), item.text("says")) for item in section.each("pictures")]
    return Section(section.text("title"), section.text("says"), tuple(pictures))
