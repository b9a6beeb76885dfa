"""Two processes: one splits numbers over two edges, the other joins them four at a time. Start them in any order.

                 left                    python fork_join.py split &
              .-------> sum              python fork_join.py join
    split ----'            \\
         \\                  > join       The second prints "joined 25 times: sum 4950, count 100".
          `--> count ------'

`split` begins a job for each number. `sum` and `count` wait for four tokens (the threshold), and take them away.
"""

import os
import sys

from laxity import live

NUMBERS, TOGETHER, BYTES = 100, 4, 8

# Both processes describe the graph; the first of them creates it.
numbers = live.Ring(message=BYTES, capacity=2 * TOGETHER)
results = live.Ring(message=BYTES, capacity=2)
SPEC = live.Spec(
    "fork-join-example",
    nodes=[live.NodeSpec("split", period="1 ms"), "sum", "count", "join"],
    edges=[
        live.EdgeSpec("split", "sum", numbers, consume=TOGETHER),
        live.EdgeSpec("split", "count", consume=TOGETHER),
        live.EdgeSpec("sum", "join", results),
        live.EdgeSpec("count", "join", results),
    ],
)


def read(message: memoryview) -> int:
    """The number in a message."""
    return int.from_bytes(message, "little")


def split(graph: live.Graph) -> None:
    """Sends every number."""
    with graph.claim("split") as node:
        for number in range(NUMBERS):
            with node.wait() as job:
                job.send("sum", number.to_bytes(BYTES, "little"))
        # The other process is there: without it the ring would have been full before. It gets what is left.
        node.terminate()


def join(graph: live.Graph) -> None:
    """Has three nodes in one thread: it knows in which order they can run."""
    times = total = counted = 0
    with graph.claim("sum") as summing, graph.claim("count") as counting, graph.claim("join") as joining:
        for sum_job in summing:
            with sum_job:
                partial = sum(read(message) for message in sum_job.inputs("split"))
                sum_job.send("join", partial.to_bytes(BYTES, "little"))
            with counting.wait() as count_job:
                count_job.send("join", TOGETHER.to_bytes(BYTES, "little"))
            with joining.wait() as job:
                total += read(job.input("sum"))
                counted += read(job.input("count"))
                times += 1
    print(f"joined {times} times: sum {total}, count {counted}")


def main() -> None:
    """Is the process that the command line names."""
    roles = {"split": split, "join": join}
    if len(sys.argv) != 2 or sys.argv[1] not in roles:
        sys.exit("usage: fork_join.py split|join")
    registry = live.Registry(os.environ.get("LAXITY_DIRECTORY"))
    with registry.create_or_attach(SPEC) as graph:
        roles[sys.argv[1]](graph)


if __name__ == "__main__":
    main()
