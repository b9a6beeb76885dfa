"""Camera -> filter -> display: three processes and two rings. Each image is written, filtered and shown in place.

Start them in any order:

    python pipeline.py camera &
    python pipeline.py filter &
    python pipeline.py display

The third prints "10 images, 45 is the sum of their first pixels, doubled: 90".
"""

import os
import sys

import numpy as np
from laxity import live

IMAGES, HEIGHT, WIDTH = 10, 480, 640

# All three describe the graph; the first of them creates it.
images = live.Ring(message=HEIGHT * WIDTH, capacity=4)
SPEC = live.Spec(
    "pipeline-example",
    nodes=[live.NodeSpec("camera", period="33 ms"), "filter", "display"],
    edges=[live.EdgeSpec("camera", "filter", images), live.EdgeSpec("filter", "display", images)],
)


def pixels(message: memoryview) -> np.ndarray:
    """The image in a message, in place: uint8 of shape (HEIGHT, WIDTH)."""
    return np.frombuffer(message, np.uint8).reshape(HEIGHT, WIDTH)


def camera(node: live.Node) -> None:
    """Takes ten images and ends."""
    for image in range(IMAGES):
        with node.wait() as job:  # waits for room
            pixels(job.output("filter")).fill(image)
    # The others are there: without them the rings would have been full before. They get what is left.
    node.terminate()


def filter_images(node: live.Node) -> None:
    """Doubles every pixel."""
    for job in node:
        with job:
            np.multiply(pixels(job.input("camera")), 2, out=pixels(job.output("display")))


def display(node: live.Node) -> None:
    """Adds up the first pixels."""
    count = total = 0
    for job in node:
        with job:
            count += 1
            total += int(pixels(job.input("filter"))[0, 0])
    print(f"{count} images, {total // 2} is the sum of their first pixels, doubled: {total}")


def main() -> None:
    """Is the node that the command line names."""
    roles = {"camera": camera, "filter": filter_images, "display": display}
    if len(sys.argv) != 2 or sys.argv[1] not in roles:
        sys.exit("usage: pipeline.py camera|filter|display")
    registry = live.Registry(os.environ.get("LAXITY_DIRECTORY"))
    with registry.create_or_attach(SPEC) as graph, graph.claim(sys.argv[1]) as node:
        roles[sys.argv[1]](node)


if __name__ == "__main__":
    main()
