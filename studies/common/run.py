"""Runs a plan: on the threads of this machine, or on a Dask cluster.

Finished chunks are kept; missing ones are computed.
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from laxity import LaxityError, __version__
from laxity._native import StudyStop

from studies.common.progress import Progress
from studies.common.store import Store
from studies.common.study import Work

ROOT = Path(__file__).parents[1]


def run(plan: Work, folder: Path, *, threads: int | None = None, dask: str | None = None, workers: int = 0) -> Path:
    """Evaluates what is missing of a plan and returns the path of the result, a Parquet file.

    May be stopped at any moment, also by kill -9: a later run with the same plan and folder goes on from there.

    Args:
        plan: what to evaluate.
        folder: where parts and result go.
        threads: on this machine; None: one a CPU.
        dask: address of a Dask scheduler; "local" for a cluster of processes on this machine; None: threads.
        workers: of a local Dask cluster; 0: one a CPU.

    Raises:
        LaxityError: if the folder holds another run.
        KeyboardInterrupt: after Ctrl-C, with everything finished so far kept.
    """
    store = Store(folder, plan)
    missing = store.missing()
    progress = Progress(plan.study, sum(chunk.count for chunk in missing), plan.unit)
    results = _on_dask(plan, missing, dask, workers) if dask else _on_threads(plan, missing, threads or _cpus())
    for chunk, table in results:
        store.write(chunk, table)
        progress.add(chunk.count)
    progress.close()
    return store.merge()


def _cpus() -> int:
    """CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def _on_threads(plan: Work, chunks: list[Any], threads: int) -> Iterator[tuple[Any, pa.Table]]:
    """Chunks with their tables as they are done. The evaluation does not hold the GIL."""
    stop, left = StudyStop(), iter(chunks)
    running: dict[Future[pa.Table | None], Any] = {}

    def submit(pool: ThreadPoolExecutor) -> None:
        for chunk in left:
            running[pool.submit(plan.evaluate, chunk, stop)] = chunk
            return

    with ThreadPoolExecutor(threads) as pool:
        try:
            for _ in range(2 * threads):
                submit(pool)
            while running:
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(done), done.result()
                    submit(pool)
        finally:
            stop.set()


def evaluate(plan: Work, chunk: Any, version: str) -> pa.Table:
    """What a Dask worker does. Its laxity must be this one: another may draw other task sets."""
    if version != __version__:
        raise LaxityError(f"a worker has laxity {__version__}, the client {version}; install the same on both")
    return plan.evaluate(chunk)


def _on_dask(plan: Work, chunks: list[Any], address: str, workers: int) -> Iterator[tuple[Any, pa.Table]]:
    """Chunks with their tables as they are done. Dask gives the chunks of a worker that died to another."""
    with _client(address, workers) as (client, as_completed):
        _send_code(client)
        by_key = {f"{plan.study}-{chunk.name}": chunk for chunk in chunks}
        futures = [
            client.submit(evaluate, plan, chunk, __version__, key=key, retries=3) for key, chunk in by_key.items()
        ]
        for future in as_completed(futures):
            table = future.result()
            future.release()
            yield by_key[future.key], table


def _send_code(client: Any) -> None:
    """Gives the code of the studies to all workers, also to those that come later: they have only the package."""
    from distributed import WorkerPlugin  # noqa: PLC0415

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted([*ROOT.rglob("*.py"), *ROOT.glob("*/data/*.csv")]):
            out.write(path, Path(ROOT.name) / path.relative_to(ROOT))

    # Defined here, so that it is sent with its code: workers cannot import this module before they have it.
    class Code(WorkerPlugin):
        def __init__(self, content: bytes) -> None:
            self.content = content

        def setup(self, worker: Any) -> None:
            path = Path(worker.local_directory) / "studies.zip"
            path.write_bytes(self.content)
            sys.path.insert(0, str(path))

    client.register_plugin(Code(archive.getvalue()), name="laxity-studies")


@contextmanager
def _client(address: str, workers: int) -> Iterator[tuple[Any, Any]]:
    """A client, and how to wait for its futures. A local cluster ends with it, an existing one goes on."""
    try:
        import distributed  # noqa: PLC0415 (an optional dependency)
    except ModuleNotFoundError as error:
        raise LaxityError("Dask is not installed; run `pip install distributed`, or leave out --dask") from error
    dask: Any = distributed
    if address != "local":
        with dask.Client(address) as client:
            yield client, dask.as_completed
        return
    with (
        dask.LocalCluster(n_workers=workers or _cpus(), threads_per_worker=1, dashboard_address=None) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client, dask.as_completed
