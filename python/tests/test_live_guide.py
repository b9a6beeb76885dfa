"""What the documentation of live graphs shows, as it is written there."""

import asyncio
import inspect
import os
import re
import textwrap
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from laxity import live

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"


def defined(code, registry):
    """What `code` defines; its graphs are those of the test."""
    names = {}
    exec(code.replace("live.Registry()", f"live.Registry({registry.directory!r})"), names)
    return names


def section():
    """The Python of the guide's section on live graphs, block by block."""
    text = GUIDE.read_text().split("## Live graphs")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def both(shown, registry):
    """Runs what is shown for two processes in two threads."""
    with ThreadPoolExecutor() as threads:
        for done in [threads.submit(shown["detector"]), threads.submit(shown["camera"])]:
            done.result()
    assert registry.names() == []


def test_the_guide_finds_every_image(registry):
    shown = defined(section()[0], registry)
    both(shown, registry)
    assert shown["found"] == [float(number) for number in range(10)]


def test_the_documentation_of_the_module_finds_every_image(registry, capsys):
    text = inspect.getdoc(live)
    code = textwrap.dedent(text[text.index("    import numpy") : text.index("A job runs when")])
    both(defined(code, registry), registry)
    assert capsys.readouterr().out.split() == [str(float(number)) for number in range(100)]


def test_the_patient_loop_of_the_guide_waits_for_the_return_of_the_lost(registry):
    said, heard = [], threading.Event()

    def hear(text):
        said.append(text)
        heard.set()

    shown = defined("\n".join(section()), registry) | {"print": hear}
    patient = types.FunctionType(shown["patient"].__code__, shown)
    with registry.create(shown["spec"]) as graph, graph.claim("detector") as node, ThreadPoolExecutor() as threads:
        received = threads.submit(lambda: [job.input("camera")[0] for job in patient(node)])
        with pytest.raises(ZeroDivisionError), graph.claim("camera") as camera:  # noqa: PT012
            send(camera, 1)
            with camera.wait():
                raise ZeroDivisionError
        assert heard.wait(timeout=60)
        with graph.claim("camera") as camera:
            send(camera, 2)
            camera.terminate()
        assert received.result() == [1, 2]
    assert said == [f"waiting for camera, which process {os.getpid()} had"]


def test_the_event_loop_of_the_guide_serves_a_node_until_it_ends(registry):
    shown = defined("\n".join(section()), registry)
    with registry.create(shown["spec"]) as graph, graph.claim("detector") as detector, ThreadPoolExecutor() as threads:
        camera = threads.submit(shown["camera"])
        asyncio.run(shown["serve"](detector))
        camera.result()
    assert shown["found"] == [float(number) for number in range(10)]


def test_the_pipeline_of_the_guide_tracks(registry):
    shown = defined("\n".join(section()), registry)
    assert shown["tracker_spec"] == shown["pipeline"].build(2)
    found = []
    with (
        registry.create(shown["tracker_spec"]) as graph,
        graph.claim("camera") as camera,
        graph.claim("tracker") as tracker,
        graph.claim("display") as display,
    ):
        for number in (10, 20):
            with camera.wait() as job:
                job.write("image")[:] = bytes([number]) * (640 * 480)
            with tracker.wait() as job:
                shown["track"](job)
            with display.wait() as job:
                found.append(job.read("points").cast("f")[1023])
    assert found == pytest.approx([10, 29])


def test_the_recording_of_the_guide_has_every_job(registry):
    shown = defined("\n".join(section()), registry)
    with registry.create(shown["spec"]) as graph, ThreadPoolExecutor() as threads:
        longest = threads.submit(shown["watch"], "vision")
        with graph.claim("camera") as camera, graph.claim("detector") as detector:
            for number in range(5):
                send(camera, number)
                detector.wait().complete()
            camera.terminate()
            assert list(detector) == []
        assert longest.result() >= 0


def send(node, number):
    with node.wait() as job:
        job.send("detector", bytes([number]))
