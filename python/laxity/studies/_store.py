"""Results on disk: a part file for each chunk, written at once or not at all, and one file when all are there."""

from __future__ import annotations

import csv
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from laxity._errors import LaxityError
from laxity.studies._plan import Chunk, Plan, load
from laxity.studies._statistics import wilson

COUNTS = ("sets", "accepted", "undecided", "weight", "weight_accepted")


class Store:
    """The folder of a run.

    Raises LaxityError if the folder holds another run.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.parts = folder / "parts"
        self.result = folder / "result.parquet"
        self.parts.mkdir(parents=True, exist_ok=True)
        self._claim()

    def _claim(self) -> None:
        """Writes what the run is, or checks that it is the same."""
        record, identity = self.folder / "run.json", self.plan.identity()
        if not record.exists():
            write_atomically(record, json.dumps(identity, indent=1).encode())
            return
        found = json.loads(record.read_text())
        different = [key for key in identity if found.get(key) != identity[key]]
        if different:
            raise LaxityError(
                f"{self.folder} holds another run, with different {', '.join(different)}; "
                "name another folder with --out, or delete this one"
            )

    def missing(self) -> list[Chunk]:
        """The chunks without a part file, in the order of the plan."""
        there = {entry.name for entry in os.scandir(self.parts)}
        return [chunk for chunk in self.plan.chunks() if f"{chunk.name}.parquet" not in there]

    def write(self, chunk: Chunk, counts: pa.Table) -> None:
        """Keeps the counts of a chunk."""
        sink = pa.BufferOutputStream()
        pq.write_table(counts, sink)
        write_atomically(self.parts / f"{chunk.name}.parquet", sink.getvalue())

    def merge(self) -> Path:
        """Adds up all chunks, writes the result, and returns its path. The same bytes however the work was split."""
        names = (self.parts / f"{chunk.name}.parquet" for chunk in self.plan.chunks())
        return self.finish(_rows(pq.ParquetFile(name).read() for name in names))

    def finish(self, rows: Iterable[tuple[tuple[int, int, int], tuple[int, ...]]]) -> Path:
        """Writes the result from counts by (scenario, curve, x)."""
        study = load(self.plan.study, self.plan.options)
        sums: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0] * len(COUNTS))
        for place, counts in rows:
            total = sums[place]
            for index, count in enumerate(counts):
                total[index] += count
        self._check_complete(sums)
        places = sorted(sums)
        columns = {name: np.array([sums[place][i] for place in places], np.uint64) for i, name in enumerate(COUNTS)}
        fraction, low, high = wilson(columns["accepted"], columns["sets"])
        table = pa.table(
            {
                "scenario": [study.scenarios[place[0]] for place in places],
                "graph": [study.curves[place[1]][0] for place in places],
                "curve": [study.curves[place[1]][1] for place in places],
                "x_thousandths": np.array([place[2] for place in places], np.uint64),
                **columns,
                "fraction": fraction,
                "low": low,
                "high": high,
                "weighted": _weighted(places, columns["weight"], columns["weight_accepted"]),
            }
        )
        table = table.replace_schema_metadata({"laxity.study": json.dumps(self.plan.identity(), sort_keys=True)})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        write_atomically(self.result, sink.getvalue())
        return self.result

    def _check_complete(self, sums: dict[tuple[int, int, int], list[int]]) -> None:
        """Every curve of every scenario has seen each task set once."""
        seen: defaultdict[tuple[int, int], int] = defaultdict(int)
        for place, counts in sums.items():
            seen[place[:2]] += counts[0]
        study, expected = load(self.plan.study, self.plan.options), len(self.plan.points) * self.plan.replicates
        for scenario in self.plan.scenarios:
            for curve in range(len(study.curves)):
                sets = seen.pop((scenario, curve), 0)
                if sets != expected:
                    name = f"{study.scenarios[scenario]}, {' '.join(study.curves[curve])}"
                    raise LaxityError(f"{name}: {sets} task sets, expected {expected}; name the run they belong to")
        if seen:
            raise LaxityError(
                f"task sets of {len(seen)} curves that the run does not have; name the run they belong to"
            )


def _rows(tables: Iterable[pa.Table]) -> Iterator[tuple[tuple[int, int, int], tuple[int, ...]]]:
    for table in tables:
        columns = [table.column(name).to_pylist() for name in ("scenario", "curve", "x", *COUNTS)]
        for scenario, curve, x, *counts in zip(*columns, strict=True):
            yield (scenario, curve, x), tuple(counts)


def _weighted(places: list[tuple[int, int, int]], weight: np.ndarray, accepted: np.ndarray) -> np.ndarray:
    """The weighted schedulability of each row's curve: utilization accepted over utilization drawn."""
    sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for place, total, part in zip(places, weight.tolist(), accepted.tolist(), strict=True):
        sums[place[:2]][0] += total
        sums[place[:2]][1] += part
    return np.array([sums[place[:2]][1] / max(1, sums[place[:2]][0]) for place in places])


def import_csv(store: Store, paths: Iterable[Path]) -> Path:
    """Makes the result from CSV files of ``run_study``, the Rust example that needs no Python.

    Raises:
        LaxityError: if a file is of another study or has other options, or the files together are not the run.
    """
    study = load(store.plan.study, store.plan.options)
    scenarios = {name: index for index, name in enumerate(study.scenarios)}
    curves = {name: index for index, name in enumerate(study.curves)}

    def rows() -> Iterator[tuple[tuple[int, int, int], tuple[int, ...]]]:
        for path in paths:
            with path.open(newline="") as lines:
                head, expected = lines.readline().rstrip("\n"), f"# study={study.name} options={study.options}"
                if head != expected:
                    raise LaxityError(f"{path} begins with {head!r}, not {expected!r}; name the run it belongs to")
                for row in csv.DictReader(lines):
                    place = scenarios[row["scenario"]], curves[row["graph"], row["curve"]], int(row["x_thousandths"])
                    yield place, tuple(int(row[name]) for name in COUNTS)

    return store.finish(rows())


def write_atomically(path: Path, content: bytes | pa.Buffer) -> None:
    """Writes a file that is either complete or not there, also after kill -9."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)
