"""A process at a live graph, to be killed: `python live_worker.py WORK DIRECTORY`, or the target of a `Process`."""

import sys
import time

from laxity import live

SPEC = live.Spec(
    "pair",
    nodes=[live.NodeSpec("a", period="10 ms"), "b"],
    edges=[live.EdgeSpec("a", "b", live.Ring(message=8, capacity=16))],
)


def number(node, end=None):
    """Sends the number of each job, for ever or until `end`."""
    for job in node:
        with job:
            job.send("b", job.index.to_bytes(8, "little"))
        if job.index + 1 == end:
            return


def hang(node):
    """Begins a job, says so and never completes it."""
    with node.wait() as job:
        job.send("b", b"half")
        print("begun", flush=True)
        time.sleep(3600)


def see(node):
    """Looks at the message of its first job, says so and never completes it."""
    with node.wait() as job:
        job.input("a")
        print("seen", flush=True)
        time.sleep(3600)


def count_to_hundred(directory):
    """Is node a for a hundred jobs."""
    with live.Registry(directory).attach("pair", timeout=None) as graph, graph.claim("a") as a:
        number(a, end=100)
        a.terminate()


if __name__ == "__main__":
    node, work = {"number": ("a", number), "hang": ("a", hang), "see": ("b", see)}[sys.argv[1]]
    with live.Registry(sys.argv[2]).attach("pair", timeout=None) as attached, attached.claim(node) as claimed:
        work(claimed)
