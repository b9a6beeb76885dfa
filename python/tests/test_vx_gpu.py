"""Vision graphs whose kernels use a soft GPU: what they compute, which token a job holds, what is refused."""

import gc
import itertools
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from waiting import wait_until

from laxity import gpu, vx

NUMBERS = itertools.count()
EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "vision_gpu.py"


def opened(**options):
    """A device of its own, whose server goes soon when the test is over."""
    name = f"vx-python-{os.getpid()}-{next(NUMBERS)}"
    return gpu.Device(name, **{"memory": "1 MiB", "linger": "50 ms", **options})


@pytest.fixture(scope="module")
def shared():
    """A device without an arbitration, which many tests use."""
    return opened()


@pytest.fixture
def folder():
    """A folder of its own, where no test leaves anything."""
    with tempfile.TemporaryDirectory(prefix="laxity-python-vx-gpu-", dir="/dev/shm") as path:
        yield path
        gc.collect()
        assert os.listdir(path) == [], "the last one out takes graphs and arbitrations along"


def execute(folder, device, kernel, frames=1):
    """A graph of one node, until it has ended; what its kernel raises is raised here."""
    graph = vx.Graph("one", folder)
    graph.node("n", [], kernel)
    with graph.verify().spawn("300 us", frames=frames, gpu=device) as run:
        try:
            run.wait()
        except vx.GraphFailedError as failed:
            raise failed.__cause__ from None


def inverting(folder, device, seen):
    """A graph that inverts images on the GPU, and adds one to each pixel there."""
    graph = vx.Graph("inverting", folder)
    raw, inverted, added = (graph.object(name, (16, 24), np.uint8) for name in ["raw", "inverted", "added"])
    graph.node("fill", [vx.output(raw)], lambda job: job.write(raw).fill(job.index))

    def on_gpu(source, target, gpu_kernel, early):
        there, back = (device.alloc((16, 24), np.uint8) for _ in range(2))

        def kernel(job):
            before = job.gpu.holds_token
            job.gpu.copy_in(there, job.read(source))
            job.gpu.launch(gpu_kernel, read=[there], write=[back])
            assert job.gpu.copy_out(back, job.write(target)) is not None
            behind = job.gpu.token_gpu
            if early:
                job.gpu.release()
            seen.append((before, behind, job.gpu.holds_token))

        return [vx.input(source), vx.output(target)], kernel

    graph.node("invert", *on_gpu(raw, inverted, np.invert, early=True))
    graph.node("add", *on_gpu(inverted, added, lambda image, out: np.add(image, 1, out=out), early=False))
    results = []
    graph.output([vx.input(added)], lambda job: results.append(set(job.read(added).flat)))
    return graph.verify(), results


EXPECTED = [{(255 - frame + 1) % 256} for frame in range(10)]


def test_nodes_compute_on_a_gpu_without_arbitration(folder, shared):
    seen = []
    graph, results = inverting(folder, shared, seen)
    with graph.spawn("300 us", frames=10, gpu=shared) as run:
        run.wait()
    assert results == EXPECTED
    assert set(seen) == {(False, None, False)}, "there are no tokens"


def test_each_job_takes_one_token_and_lets_it_go_at_its_end_or_earlier(folder):
    """Paper 003, section 5.4.3 and Fig. 5.7."""
    with gpu.Arbitration.create("car", gpus=1, cpus=2, chunk="100 B", directory=folder) as car:
        seen = []
        device = opened(arbitration=car)
        graph, results = inverting(folder, device, seen)
        with graph.spawn("300 us", frames=10, gpu=device) as run:
            run.wait()
        assert results == EXPECTED
        assert sorted(seen) == [(False, 0, False)] * 10 + [(False, 0, True)] * 10
        assert not [row for row in car.snapshot().to_pylist() if row["state"] == "holds"]


def test_two_nodes_share_a_gpu_and_the_one_that_waits_lets_others_run(folder):
    """The holder of the only token goes on when it sees the other wait: with the GIL, that one never would."""
    car = gpu.Arbitration.create("car", gpus=1, cpus=2, tokens=1, directory=folder)
    device = opened(arbitration=car)
    holders, seen = [], []

    def kernel(job):
        assert job.gpu.acquire() == 0
        holders.append(job.index)
        seen.append(len(holders))
        if job.index == 0 and len(seen) == 1:
            wait_until(lambda: any(row["state"] == "waits" for row in car.snapshot().to_pylist()))
        job.gpu.launch_timed("100 us")
        holders.pop()

    graph = vx.Graph("pair", folder)
    graph.node("left", [], kernel)
    graph.node("right", [], kernel)
    with graph.verify().spawn("300 us", frames=8, gpu=device) as run:
        run.wait()
    assert seen == [1] * 16, "never two at a time"
    car.close()


def test_a_node_that_uses_no_gpu_does_not_register(folder):
    car = gpu.Arbitration.create("car", gpus=1, cpus=2, clients=1, directory=folder)
    device = opened(arbitration=car)
    names = []
    graph = vx.Graph("few", folder)
    graph.node("other", [], lambda job: None)
    graph.node("user", [], lambda job: job.gpu.launch_timed("1 us"))
    graph.output([], lambda job: names.extend(row["name"] for row in car.snapshot().to_pylist() if row["name"]))
    with graph.verify().spawn("300 us", frames=3, gpu=device) as run:
        run.wait()
    assert set(names) == {"few.user"}
    car.close()


def test_what_a_gpu_kernel_raises_is_raised_by_the_launch_and_the_buffer_is_free_again(folder, shared):
    buffer = shared.alloc(10, np.float32)
    found = []

    def broken(array):
        copies = array[:5]
        raise LookupError(len(copies))

    def kernel(job):
        with pytest.raises(LookupError, match="5"):
            job.gpu.launch(broken, write=[buffer])
        job.gpu.launch(lambda array: array.fill(2.5), write=[buffer])
        found.append(job.gpu.copy_out(buffer))

    execute(folder, shared, kernel, frames=2)
    assert [list(array) for array in found] == [[2.5] * 10] * 2

    def failing(job):
        job.gpu.launch(broken, read=[buffer])

    with pytest.raises(LookupError):
        execute(folder, shared, failing)


def test_arrays_of_a_gpu_kernel_are_read_only_where_it_reads_and_end_with_it(folder, shared):
    source, target, kept = shared.alloc((2, 3), np.int32), shared.alloc((3, 2), np.int32), []
    shapes = []

    def look(read, written):
        shapes.append((read.shape, read.flags.writeable, written.shape, written.flags.writeable))

    def kernel(job):
        job.gpu.copy_in(source, np.arange(6, dtype=np.int32).reshape(2, 3))
        job.gpu.launch(look, read=[source], write=[target])
        with pytest.raises(BufferError, match="copy what must live longer"):
            job.gpu.launch(kept.append, read=[source])
        assert kept[0][1, 2] == 5
        with pytest.raises(gpu.UseError):
            job.gpu.launch(lambda array: None, write=[source])

    execute(folder, shared, kernel)
    assert shapes == [((2, 3), False, (3, 2), True)]
    assert list(kept[0].flat) == list(range(6)), "it stays readable, and no other buffer gets the memory"


def test_a_graph_without_a_gpu_says_so(folder):
    with pytest.raises(gpu.UseError, match="the graph has no GPU; spawn it with one"):
        execute(folder, None, lambda job: job.gpu)


def test_buffers_of_another_gpu_are_refused(folder):
    car = gpu.Arbitration.create("car", gpus=2, cpus=2, directory=folder)
    device, other = opened(arbitration=car), opened()
    here, there, elsewhere = device.alloc(8), device.alloc(8, gpu=1), other.alloc(8)
    eight = np.zeros(8, np.uint8)

    def kernel(job):
        assert job.gpu.acquire(gpu=1) == 1
        assert job.gpu.token_gpu == 1
        for use in (
            lambda: job.gpu.copy_in(here, eight),
            lambda: job.gpu.launch(lambda *_: None, read=[here]),
            lambda: job.gpu.launch(lambda *_: None, read=[there, here]),
        ):
            with pytest.raises(gpu.ForeignBufferError, match=r"GPU|another"):
                use()
        job.gpu.launch(lambda array: array.fill(3), write=[there])
        assert job.gpu.copy_out(there).tolist() == [3] * 8
        assert job.gpu.acquire(gpu=0) == 1, "one token a job"
        job.gpu.release()
        job.gpu.launch(lambda array: array.fill(4), write=[here])
        assert job.gpu.token_gpu == 0, "a buffer has its own GPU used"
        with pytest.raises(gpu.ForeignBufferError):
            job.gpu.copy_in(elsewhere, eight)
        with pytest.raises(gpu.UnknownGpuError, match="GPU 2"):
            job.gpu.acquire(gpu=2)

    execute(folder, device, kernel)
    car.close()


def test_a_token_may_be_let_go_of_twice_and_taken_again(folder):
    car = gpu.Arbitration.create("car", gpus=1, cpus=2, directory=folder)
    device = opened(arbitration=car)
    held = []

    def kernel(job):
        use = job.gpu
        use.launch_timed("1 us")
        for _ in range(2):
            use.release()
            held.append(use.holds_token)
        use.copy_timed("h2d", 100)
        held.append(use.holds_token)

    execute(folder, device, kernel)
    assert held == [False, False, True]
    car.close()


def test_the_gpu_of_a_job_is_for_its_thread_and_until_its_kernel_returns(folder, shared):
    kept, raised = [], []

    def elsewhere(use):
        try:
            use.release()
        except gpu.UseError as error:
            raised.append(str(error))

    def kernel(job):
        kept.append(job.gpu)
        thread = threading.Thread(target=elsewhere, args=[job.gpu])
        thread.start()
        thread.join()
        if job.index > 0:
            with pytest.raises(gpu.UseError, match="the job is over"):
                kept[0].launch_timed("1 us")
        job.gpu.launch_timed("1 us")

    execute(folder, shared, kernel, frames=2)
    assert len(raised) == 2
    assert "another thread" in raised[0]


def test_arrays_that_do_not_fit_a_buffer_are_refused(folder, shared):
    buffer = shared.alloc((2, 3), np.float32)
    assert (buffer.nbytes, buffer.gpu) == (24, 0)
    frozen = np.zeros((2, 3), np.float32)
    frozen.flags.writeable = False

    def kernel(job):
        for array in (np.zeros((3, 2), np.float32), np.zeros((2, 3))):
            for use in (job.gpu.copy_in, job.gpu.copy_out):
                with pytest.raises(ValueError, match="make them alike"):
                    use(buffer, array)
        for out in (frozen, np.zeros((3, 2), np.float32).T):
            with pytest.raises(ValueError, match="contiguous, and not read-only"):
                job.gpu.copy_out(buffer, out)
        job.gpu.copy_in(buffer, np.arange(6, dtype=np.float32).reshape(3, 2).T)
        assert job.gpu.copy_out(buffer).tolist() == [[0, 2, 4], [1, 3, 5]]
        with pytest.raises(gpu.ConfigError, match="up"):
            job.gpu.copy_timed("up", 1)
        with pytest.raises(ValueError, match="unit"):
            job.gpu.launch_timed("5")

    execute(folder, shared, kernel)


def test_devices_that_cannot_be_are_refused(folder, shared):
    with pytest.raises(gpu.DeviceMemoryError, match="bytes"):
        shared.alloc(2 << 20)
    with pytest.raises(gpu.UnknownGpuError, match="GPU 1"):
        shared.alloc(1, gpu=1)
    with pytest.raises(gpu.ConfigError, match="references"):
        shared.alloc(1, object)
    with pytest.raises(gpu.DifferentError, match="agree on one"):
        gpu.Device(shared.name, memory="2 MiB", linger="50 ms")
    with pytest.raises(gpu.SoftGpuError, match="cannot start"):
        opened(server="/nowhere/server")
    for wrong in ({"gpus": 0}, {"memory": "much"}, {"copy_engines": 3}, {"handling": "soon"}, {"engines": 100}):
        with pytest.raises(gpu.GpuError):
            opened(**wrong)
    with (
        gpu.Arbitration.create("car", gpus=1, cpus=2, directory=folder) as car,
        pytest.raises(gpu.DifferentError, match="2 GPUs"),
    ):
        opened(arbitration=car, gpus=2)


def test_the_server_of_the_package_says_why_it_does_not_run():
    server = Path(sysconfig.get_path("scripts"), "laxity-softgpu-server")
    done = subprocess.run([server, "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.strip()
    assert not done.stderr


def test_the_guide_inverts_images(folder, shared):
    guide = (EXAMPLE.parents[2] / "docs" / "guides" / "python.md").read_text()
    section = guide.split("## Vision graphs")[1].split("\n## ")[0]
    code = re.findall(r"```python\n(.*?)```", section, re.DOTALL)[1]
    names = {"np": np, "vx": vx}
    exec(code.replace('vx.Graph("inverter")', f'vx.Graph("inverter", {folder!r})'), names)
    images = [np.full((4, 5), shade, np.uint8) for shade in range(6)]
    assert [image.tolist() for image in names["run_on"](shared, images)] == [(255 - image).tolist() for image in images]


def test_the_example_blurs_what_it_should():
    done = subprocess.run([sys.executable, EXAMPLE, "5"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("5 frames")
