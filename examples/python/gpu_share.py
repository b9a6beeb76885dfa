"""Two processes share a GPU: each job takes a token, and an engine for each operation.

    python gpu_share.py urgent 3 & python gpu_share.py patient 3

The "GPU" here is memory and a loop: Laxity decides which job may use it when, and the program decides what to do with
it. Start any number of these, in any order; kill any of them.
"""

import os
import sys
import zlib

from laxity import gpu

PRIORITIES = {"urgent": 50, "patient": 10}
IMAGE = bytes(range(256)) * 1024


def job(me: gpu.Client) -> int:
    """Copies an image to the GPU in chunks, has it summed up there, and copies the sum back."""
    with me.token(timeout="10 s") as token:
        memory = bytearray(len(IMAGE))
        for chunk in token.copy_chunks("h2d", len(IMAGE)):
            memory[chunk] = IMAGE[chunk]
        with token.execution_engine():
            result = zlib.crc32(memory)
        with token.copy_engine("d2h"):
            return result


def main(role: str, jobs: int) -> None:
    """Takes part in the arbitration, which the first process creates and the last one takes along."""
    directory = os.environ.get("LAXITY_DIRECTORY")
    share = gpu.Arbitration.create_or_attach("share", gpus=1, chunk="64 KiB", directory=directory)
    with share, share.client(role, PRIORITIES[role]) as me:
        results = {job(me) for _ in range(jobs)}
    assert results == {zlib.crc32(IMAGE)}
    print(f"{role}: {jobs} jobs")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in PRIORITIES:
        sys.exit(f"usage: gpu_share.py {'|'.join(PRIORITIES)} JOBS")
    main(sys.argv[1], int(sys.argv[2]))
