"""Vision graphs in OpenVX's terms, executed periodically: a thread a node, consecutive frames at the same time.

    import numpy as np
    from laxity import vx

    graph = vx.Graph("motion")
    image = graph.object("image", (480, 640), np.uint8)             # shape (height, width)
    gray = graph.delay("gray", (480, 640), np.float32, slots=3)     # this frame's, and those of the two before
    moving = graph.object("moving", (1,), np.int64)

    def read(job):                                                  # before all nodes; False: there is no frame
        job.write(image)[:] = camera()

    def convert(job):
        np.divide(job.read(image), 255, out=job.write(gray))

    def compare(job):
        job.write(moving)[0] = np.count_nonzero(job.read(gray) != job.read(gray, 2))

    graph.input([vx.output(image)], read)
    graph.node("convert", [vx.input(image), vx.output(gray)], convert)
    graph.node("compare", [vx.input(gray), vx.past(gray, 2), vx.output(moving)], compare)
    graph.output([vx.input(moving)], lambda job: print(job.read(moving)[0]))

    with graph.verify().spawn("33 ms", frames=300) as run:
        run.wait()

Which node waits for which follows from what they read and write: the graph computes what a loop computes that calls one
node after the other. A job's arrays are in shared memory, in place, and end with it: a kernel that keeps one fails.
Copy what must live longer. Kernels are threads of one Python: they overlap where numpy and others release its lock.

A graph that is spawned with a `laxity.gpu.Device` has a GPU: `Job.gpu` copies arrays there and back and launches GPU
kernels, and each job takes a token for it by itself.

The documentation of the Rust crate ``laxity-vx`` has the rules; every decision is made there.
"""

from laxity.vx._errors import GraphFailedError, SpawnError, UseError, VerifyError, VxError
from laxity.vx._gpu import Gpu
from laxity.vx._graph import Graph, Job, Verified
from laxity.vx._objects import (
    Dependency,
    FrameTimes,
    Object,
    Parameter,
    Policy,
    deadline,
    deadline_measured,
    fifo,
    inout,
    input,  # noqa: A004 (OpenVX's word)
    other,
    output,
    past,
)
from laxity.vx._run import Run

__all__ = [
    "Dependency",
    "FrameTimes",
    "Gpu",
    "Graph",
    "GraphFailedError",
    "Job",
    "Object",
    "Parameter",
    "Policy",
    "Run",
    "SpawnError",
    "UseError",
    "Verified",
    "VerifyError",
    "VxError",
    "deadline",
    "deadline_measured",
    "fifo",
    "inout",
    "input",
    "other",
    "output",
    "past",
]
