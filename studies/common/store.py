"""Results on disk: a part file for each chunk, written at once or not at all, and one file when all are there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from laxity import LaxityError

from studies.common.counts import rows_of_csv, summed
from studies.common.plan import Plan, load
from studies.common.study import Work


class Store:
    """The folder of a run.

    Raises LaxityError if the folder holds another run, or cannot be made.
    """

    def __init__(self, folder: Path, plan: Work) -> None:
        self.folder = folder
        self.plan = plan
        self.parts = folder / "parts"
        self.path = folder / "result.parquet"
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LaxityError(f"{folder} cannot be made: {error.strerror}; name another folder with --out") from error
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

    def missing(self) -> list[Any]:
        """The chunks without a part file, in the order of the plan."""
        there = {entry.name for entry in os.scandir(self.parts)}
        return [chunk for chunk in self.plan.chunks() if f"{chunk.name}.parquet" not in there]

    def write(self, chunk: Any, table: pa.Table) -> None:
        """Keeps the table of a chunk."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        write_atomically(self.parts / f"{chunk.name}.parquet", sink.getvalue())

    def merge(self) -> Path:
        """Makes the result of all chunks and returns its path. The same bytes however the work was split."""

        def parts() -> Iterator[tuple[Any, pa.Table]]:
            for chunk in self.plan.chunks():
                yield chunk, pq.ParquetFile(self.parts / f"{chunk.name}.parquet").read()

        return self.keep(self.plan.result(parts()))

    def keep(self, result: pa.Table) -> Path:
        """Writes the result with what was run, and returns its path."""
        result = result.replace_schema_metadata({"laxity.study": json.dumps(self.plan.identity(), sort_keys=True)})
        sink = pa.BufferOutputStream()
        pq.write_table(result, sink, compression="zstd")
        write_atomically(self.path, sink.getvalue())
        return self.path


def import_csv(store: Store, paths: Iterable[Path]) -> Path:
    """Makes the result from CSV files of ``run_study``, the Rust example that needs no Python.

    Raises:
        LaxityError: if a file is of another study or has other options, or the files together are not the run.
    """
    plan = store.plan
    if not isinstance(plan, Plan):
        raise LaxityError(f"there are no CSV files to import for {plan.study}; run it without --import")
    study = load(plan.study, plan.options)
    return store.keep(summed(plan, study, rows_of_csv(study, paths)))


def write_atomically(path: Path, content: bytes | pa.Buffer) -> None:
    """Writes a file that is either complete or not there, also after kill -9."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)
