"""A control loop with a delay: the heating that a controller orders takes effect two steps later.

    room --temperature--> controller          python feedback.py
     ^                        |
     '------- heating --------'               Prints the temperature, step by step.
      back-edge, 2 at the start

The two initial tokens are the delay: job n of the room reads what job n - 2 of the controller wrote, and zeros before.
"""

import os
from concurrent.futures import ThreadPoolExecutor

from laxity import live

STEPS, DELAY, WANTED, BYTES = 20, 2, 200, 4

SPEC = live.Spec(
    f"feedback-{os.getpid()}",
    nodes=[live.NodeSpec("room", period="1 ms"), "controller"],
    edges=[
        live.EdgeSpec("room", "controller", live.Ring(message=BYTES, capacity=1)),
        live.EdgeSpec(
            "controller", "room", live.Ring(message=BYTES, capacity=DELAY + 1), initial=DELAY, back_edge=True
        ),
    ],
)


def read(message: memoryview) -> int:
    """The number in a message."""
    return int.from_bytes(message, "little", signed=True)


def controller(graph: live.Graph) -> None:
    """Heats the more, the more is missing."""
    with graph.claim("controller") as node:
        for job in node:
            with job:
                heating = int((WANTED - read(job.input("room"))) / 4)  # towards zero
                job.send("room", heating.to_bytes(BYTES, "little", signed=True))


def room(graph: live.Graph) -> list[int]:
    """The temperature of each step."""
    temperatures = [0]
    with graph.claim("room") as node:
        for _ in range(STEPS):
            with node.wait() as job:
                temperatures.append(temperatures[-1] + read(job.input("controller")))
                job.send("controller", temperatures[-1].to_bytes(BYTES, "little", signed=True))
        node.terminate()
    return temperatures[1:]


def main() -> None:
    """Runs each node in a thread."""
    with live.Registry(os.environ.get("LAXITY_DIRECTORY")).create(SPEC) as graph, ThreadPoolExecutor() as threads:
        controlled = threads.submit(controller, graph)
        print(*room(graph))
        controlled.result()


if __name__ == "__main__":
    main()
