"""Live graphs: threads and processes that exchange tokens and data over named graphs in shared memory.

    import numpy as np
    from laxity import live

    spec = live.Spec(
        "vision",
        nodes=[live.NodeSpec("camera", period="33 ms"), "detector"],
        edges=[live.EdgeSpec("camera", "detector", live.Ring(message=640 * 480, capacity=4))],
    )

    def camera():                                               # a process
        with live.Registry().create(spec) as graph, graph.claim("camera") as node:
            for number in range(100):
                with node.wait() as job:                        # waits for room
                    job.output("detector")[:] = bytes([number]) * (640 * 480)
            node.terminate()

    def detector():                                             # another one: all it needs is the name
        with live.Registry().attach("vision", timeout="5 s") as graph, graph.claim("detector") as node:
            for job in node:                                    # waits for images, until the camera ends
                with job:                                       # complete at its end
                    print(brightness(job))

    def brightness(job):
        return np.frombuffer(job.input("camera"), np.uint8).mean()      # in place: nothing is copied

A job runs when there are tokens on all edges to its node, and room on all from it. When it completes, its tokens and
messages are there all at once. Any process may be killed: a process that waits for it gets `LostError`, and the process
that claims its node next gets the job that was not completed.

Messages end with their job. The memoryviews that a job hands out raise ValueError from then on; but numpy arrays cannot
be taken back, so that a job does not complete (BufferError) while one shows its messages. Use them in a function that
returns before, as above, and copy what must live longer.

Nodes that share memory rather than hand over messages are described by a `Pipeline`. `Graph.record` makes a
`laxity.Trace` of what happens; `Node.fileno` is for event loops.

The documentation of the Rust crate ``laxity-graph`` has the rules; every decision is made there.
"""

from laxity._native import Graph, Job, Node, Pipeline, Recording, Registry, Spec, UserData
from laxity.live._describe import (
    Channel,
    Collected,
    Counter,
    EdgeSpec,
    Fifo,
    NodeSpec,
    NodeStatus,
    Queue,
    Ring,
    Stream,
)
from laxity.live._errors import (
    AccessError,
    ClaimError,
    GraphExistsError,
    GraphNotFoundError,
    ListenError,
    LiveError,
    LostError,
    MessageError,
    MessageLostError,
    RecorderError,
    RegistryError,
    ScheduleError,
    SpecError,
    TerminatedError,
    TimedOutError,
    UnknownError,
    UnreachableError,
    UseError,
    WaitError,
)

__all__ = [
    "AccessError",
    "Channel",
    "ClaimError",
    "Collected",
    "Counter",
    "EdgeSpec",
    "Fifo",
    "Graph",
    "GraphExistsError",
    "GraphNotFoundError",
    "Job",
    "ListenError",
    "LiveError",
    "LostError",
    "MessageError",
    "MessageLostError",
    "Node",
    "NodeSpec",
    "NodeStatus",
    "Pipeline",
    "Queue",
    "RecorderError",
    "Recording",
    "Registry",
    "RegistryError",
    "Ring",
    "ScheduleError",
    "Spec",
    "SpecError",
    "Stream",
    "TerminatedError",
    "TimedOutError",
    "UnknownError",
    "UnreachableError",
    "UseError",
    "UserData",
    "WaitError",
]
